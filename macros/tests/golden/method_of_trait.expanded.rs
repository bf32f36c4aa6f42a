impl<T> Engine for Cpu<T> {
    fn sync(&mut self) -> &mut T {
        const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::GpuForward
            .stage();
        static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
            __STAGETRACE_STAGE,
            ::stagetrace::__private0::SpanKind::Internal,
            &[],
            ::core::concat!(::core::module_path!(), "::", "sync"),
            ::core::file!(),
            ::core::line!(),
        );
        let __guard = ::stagetrace::__private0::enter_of::<
            { __STAGETRACE_STAGE.shape() },
        >(
            &__STAGETRACE_SITE,
            || ::stagetrace::__private0::locate(&self).on(&DiffStage::GpuForward),
        );
        let __value: &mut T = ::stagetrace::__private0::call(move || -> &mut T {
            let _ = &self;
            #[allow(clippy::diverging_sub_expression)]
            let __value: &mut T = { &mut self.state };
            #[allow(unreachable_code)] return __value;
        });
        __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
        return __value;
    }
    fn later(self, request: Request) -> impl ::core::future::Future<Output = Self> {
        const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::GpuForward
            .stage();
        static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
            __STAGETRACE_STAGE,
            ::stagetrace::__private0::SpanKind::Internal,
            &[],
            ::core::concat!(::core::module_path!(), "::", "later"),
            ::core::file!(),
            ::core::line!(),
        );
        return ::stagetrace::__private0::prepare_of(
                &__STAGETRACE_SITE,
                || ::stagetrace::__private0::locate(&request).on(&DiffStage::GpuForward),
            )
            .run(
                async move {
                    if let ::core::option::Option::Some(__never) = ::core::option::Option::<
                        Self,
                    >::None {
                        return __never;
                    }
                    let _ = &self;
                    let request = request;
                    let _ = &request;
                    #[allow(clippy::diverging_sub_expression)]
                    let __value: Self = { self };
                    #[allow(unreachable_code)] return __value;
                },
                |__output| ::stagetrace::__private0::judge!(DEFAULT, __output),
            );
    }
}

// With `--cfg stagetrace_off`:

impl<T> Engine for Cpu<T> {
    fn sync(&mut self) -> &mut T {
        const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
        if false {
            let _ = || {
                ::stagetrace::__private0::locate(&self).on(&DiffStage::GpuForward)
            };
            ::core::unreachable!()
        }
        #[allow(clippy::diverging_sub_expression)]
        let __value: &mut T = { &mut self.state };
        #[allow(unreachable_code)] return __value;
    }
    async fn later(self, request: Request) -> Self {
        const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
        if false {
            let _ = || {
                ::stagetrace::__private0::locate(&request).on(&DiffStage::GpuForward)
            };
            ::core::unreachable!()
        }
        #[allow(clippy::diverging_sub_expression)]
        let __value: Self = { self };
        #[allow(unreachable_code)] return __value;
    }
}

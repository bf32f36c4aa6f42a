fn forward<'a>(
    req: &'a Job,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::GpuForward
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "forward"),
        ::core::file!(),
        ::core::line!(),
    );
    let mut __stage = ::stagetrace::__private0::prepare_of(
            &__STAGETRACE_SITE,
            || ::stagetrace::__private0::locate(&req.inner).on(&DiffStage::GpuForward),
        )
        .begun();
    let __future = __stage
        .prelude(move || -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
            let req = req;
            let _ = &req;
            #[allow(clippy::diverging_sub_expression)]
            let __value: Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> = {
                Box::pin(async move { req.run().await })
            };
            #[allow(unreachable_code)] return __value;
        });
    return ::std::boxed::Box::pin(
        __stage
            .run(__future, |__output| ::stagetrace::__private0::judge!(NO_ERR, __output)),
    );
}

// With `--cfg stagetrace_off`:

fn forward<'a>(
    req: &'a Job,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    if false {
        let _ = || {
            ::stagetrace::__private0::locate(&req.inner).on(&DiffStage::GpuForward)
        };
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> = {
        Box::pin(async move { req.run().await })
    };
    #[allow(unreachable_code)] return __value;
}

pub fn forward<T: Send>(
    req: &mut Request,
    __arg_1: Permit,
    x: T,
) -> impl ::core::future::Future<Output = Result<Latents, Error>> {
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
    return ::stagetrace::__private0::prepare_of(
            &__STAGETRACE_SITE,
            || ::stagetrace::__private0::locate(&req).on(&DiffStage::GpuForward),
        )
        .run(
            async move {
                if let ::core::option::Option::Some(__never) = ::core::option::Option::<
                    Result<Latents, Error>,
                >::None {
                    return __never;
                }
                let req = req;
                let _ = &req;
                let __arg_1 = __arg_1;
                let x = x;
                #[allow(clippy::diverging_sub_expression)]
                let __value: Result<Latents, Error> = { run(req, x).await };
                #[allow(unreachable_code)] return __value;
            },
            |__output| ::stagetrace::__private0::judge!(ERR, __output),
        );
}

// With `--cfg stagetrace_off`:

pub async fn forward<T: Send>(
    req: &mut Request,
    _: Permit,
    x: T,
) -> Result<Latents, Error> {
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    if false {
        let _ = || ::stagetrace::__private0::locate(&req).on(&DiffStage::GpuForward);
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: Result<Latents, Error> = { run(req, x).await };
    #[allow(unreachable_code)]
    let _ = || ::stagetrace::__private0::judge!(ERR, & __value);
    #[allow(unreachable_code)] return __value;
}

pub fn forward(req: &Request, steps: u32) -> Result<Latents, Error> {
    #![allow(clippy::pedantic)]
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
    let __guard = ::stagetrace::__private0::enter_of::<
        { __STAGETRACE_STAGE.shape() },
    >(
        &__STAGETRACE_SITE,
        || ::stagetrace::__private0::locate(&req).on(&DiffStage::GpuForward),
    );
    let __value: Result<Latents, Error> = ::stagetrace::__private0::call(move || -> Result<
        Latents,
        Error,
    > {
        let req = req;
        let _ = &req;
        let mut steps = steps;
        #[allow(clippy::diverging_sub_expression)]
        let __value: Result<Latents, Error> = {
            let latents = run(req, steps)?;
            Ok(latents)
        };
        #[allow(unreachable_code)] return __value;
    });
    __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
    return __value;
}

// With `--cfg stagetrace_off`:

pub fn forward(req: &Request, mut steps: u32) -> Result<Latents, Error> {
    #![allow(clippy::pedantic)]
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    if false {
        let _ = || ::stagetrace::__private0::locate(&req).on(&DiffStage::GpuForward);
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: Result<Latents, Error> = {
        let latents = run(req, steps)?;
        Ok(latents)
    };
    #[allow(unreachable_code)] return __value;
}

#[track_caller]
fn check(ok: bool) -> u32 {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::GpuForward
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "check"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter::<
        { __STAGETRACE_STAGE.shape() },
    >(&__STAGETRACE_SITE);
    #[allow(clippy::diverging_sub_expression)]
    let __value: u32 = {
        assert!(ok);
        1
    };
    #[allow(unreachable_code)]
    __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
    #[allow(unreachable_code)] return __value;
}

// With `--cfg stagetrace_off`:

#[track_caller]
fn check(ok: bool) -> u32 {
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    #[allow(clippy::diverging_sub_expression)]
    let __value: u32 = {
        assert!(ok);
        1
    };
    #[allow(unreachable_code)] return __value;
}

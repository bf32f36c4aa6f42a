#[tokio::test]
async fn forward() {
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
    return ::stagetrace::__private0::prepare(&__STAGETRACE_SITE)
        .run(
            async move {
                #[allow(clippy::diverging_sub_expression)]
                let __value: () = { run().await };
                #[allow(unreachable_code)] return __value;
            },
            |__output| ::stagetrace::__private0::judge!(DEFAULT, __output),
        )
        .await;
}

// With `--cfg stagetrace_off`:

#[tokio::test]
async fn forward() {
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    #[allow(clippy::diverging_sub_expression)]
    let __value: () = { run().await };
    #[allow(unreachable_code)] return __value;
}

fn forward(steps: u32) -> impl Future<Output = u32> + Send {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::GpuForward
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &["steps"],
        ::core::concat!(::core::module_path!(), "::", "forward"),
        ::core::file!(),
        ::core::line!(),
    );
    let mut __stage = ::stagetrace::__private0::prepare(&__STAGETRACE_SITE).begun();
    let __future = __stage
        .prelude(move || {
            let steps = steps;
            ::stagetrace::__private0::record_current(
                &__STAGETRACE_SITE,
                0usize,
                |__late| __late.set((&(steps),)),
            );
            #[allow(clippy::diverging_sub_expression)]
            let __value = {
                let steps = steps + 1;
                async move { steps }
            };
            #[allow(unreachable_code)] return __value;
        });
    return __stage
        .run(__future, |__output| ::stagetrace::__private0::judge!(DEFAULT, __output));
}

// With `--cfg stagetrace_off`:

fn forward(steps: u32) -> impl Future<Output = u32> + Send {
    const _: ::stagetrace::__private0::Stage = DiffStage::GpuForward.stage();
    const _: &[&::core::primitive::str] = &["steps"];
    if false {
        let _ = |__begin: ::stagetrace::__private0::Begin<'_>| __begin.with((&(steps),));
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value = {
        let steps = steps + 1;
        async move { steps }
    };
    #[allow(unreachable_code)] return __value;
}

fn serve(permit: Permit) -> ! {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::Serve.stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "serve"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter::<
        { __STAGETRACE_STAGE.shape() },
    >(&__STAGETRACE_SITE);
    match ::stagetrace::__private0::call(move || -> ::core::convert::Infallible {
        let permit = permit;
        #[allow(clippy::diverging_sub_expression)]
        let __value: ::core::convert::Infallible = { loop {} };
        #[allow(unreachable_code)] return __value;
    }) {}
}

// With `--cfg stagetrace_off`:

fn serve(permit: Permit) -> ! {
    const _: ::stagetrace::__private0::Stage = DiffStage::Serve.stage();
    #[allow(clippy::diverging_sub_expression)]
    let __value: ::core::convert::Infallible = { loop {} };
    #[allow(unreachable_code)] match __value {};
}

async fn serve_async(permit: Permit) -> ! {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::Serve.stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "serve_async"),
        ::core::file!(),
        ::core::line!(),
    );
    match ::stagetrace::__private0::prepare(&__STAGETRACE_SITE)
        .run(
            async move {
                if let ::core::option::Option::Some(__never) = ::core::option::Option::<
                    ::core::convert::Infallible,
                >::None {
                    return __never;
                }
                let permit = permit;
                #[allow(clippy::diverging_sub_expression)]
                let __value: ::core::convert::Infallible = { loop {} };
                #[allow(unreachable_code)] return __value;
            },
            |__output| ::stagetrace::__private0::judge!(DEFAULT, __output),
        )
        .await
    {}
}

// With `--cfg stagetrace_off`:

async fn serve_async(permit: Permit) -> ! {
    const _: ::stagetrace::__private0::Stage = DiffStage::Serve.stage();
    #[allow(clippy::diverging_sub_expression)]
    let __value: ::core::convert::Infallible = { loop {} };
    #[allow(unreachable_code)] match __value {};
}

fn literal() {
    static __STAGETRACE_INFO: ::stagetrace::__private0::StageInfo = ::stagetrace::__private0::StageInfo::new(
        "",
        "decode",
        2u8,
        ::core::option::Option::None,
    );
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = ::stagetrace::__private0::Stage::new(
        &__STAGETRACE_INFO,
    );
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "literal"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter::<
        { __STAGETRACE_STAGE.shape() },
    >(&__STAGETRACE_SITE);
    let __value: () = ::stagetrace::__private0::call(move || -> () {
        #[allow(clippy::diverging_sub_expression)]
        let __value: () = {};
        #[allow(unreachable_code)] return __value;
    });
    __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
    return __value;
}

// With `--cfg stagetrace_off`:

fn literal() {
    const _: &::core::primitive::str = "decode";
    #[allow(clippy::diverging_sub_expression)]
    let __value: () = {};
    #[allow(unreachable_code)] return __value;
}

fn constant(req: &Request) -> impl ::core::future::Future<Output = ()> {
    static __STAGETRACE_INFO: ::stagetrace::__private0::StageInfo = ::stagetrace::__private0::StageInfo::new(
        "",
        NAME,
        2u8,
        ::core::option::Option::None,
    );
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = ::stagetrace::__private0::Stage::new(
        &__STAGETRACE_INFO,
    );
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "constant"),
        ::core::file!(),
        ::core::line!(),
    );
    return ::stagetrace::__private0::prepare_of(
            &__STAGETRACE_SITE,
            || ::stagetrace::__private0::locate(&req).position(),
        )
        .run(
            async move {
                let req = req;
                let _ = &req;
                #[allow(clippy::diverging_sub_expression)]
                let __value: () = {};
                #[allow(unreachable_code)] return __value;
            },
            |__output| ::stagetrace::__private0::judge!(DEFAULT, __output),
        );
}

// With `--cfg stagetrace_off`:

async fn constant(req: &Request) {
    const _: &::core::primitive::str = NAME;
    if false {
        let _ = || ::stagetrace::__private0::locate(&req).position();
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: () = {};
    #[allow(unreachable_code)] return __value;
}

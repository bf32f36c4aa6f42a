fn two(req: &Request, n: u32) -> u32 {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::Decode
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Client,
        &["n", keys::MODEL],
        ::core::concat!(::core::module_path!(), "::", "two"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter_of_with::<
        { __STAGETRACE_STAGE.shape() },
    >(
        &__STAGETRACE_SITE,
        || ::stagetrace::__private0::locate(&req).on(&DiffStage::Decode),
        |__begin| __begin.with((&(n), &(req.model))),
    );
    let __value: u32 = ::stagetrace::__private0::call(move || -> u32 {
        let req = req;
        let _ = &req;
        let n = n;
        let _ = &n;
        #[allow(clippy::diverging_sub_expression)]
        let __value: u32 = { n };
        #[allow(unreachable_code)] return __value;
    });
    __guard
        .end(|| {
            ::stagetrace::__private0::record_return(&__STAGETRACE_SITE, &__value);
            ::stagetrace::__private0::judge!(DEFAULT, & __value)
        });
    return __value;
}

// With `--cfg stagetrace_off`:

fn two(req: &Request, n: u32) -> u32 {
    const _: ::stagetrace::__private0::Stage = DiffStage::Decode.stage();
    const _: &[&::core::primitive::str] = &["n", keys::MODEL];
    if false {
        let _ = || ::stagetrace::__private0::locate(&req).on(&DiffStage::Decode);
        let _ = |__begin: ::stagetrace::__private0::Begin<'_>| {
            __begin.with((&(n), &(req.model)))
        };
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: u32 = { n };
    #[allow(unreachable_code)]
    let _ = |__site: &'static ::stagetrace::__private0::Site| ::stagetrace::__private0::record_return(
        __site,
        &__value,
    );
    #[allow(unreachable_code)] return __value;
}

fn nine(n: u32) {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::Decode
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ::core::concat!(::core::module_path!(), "::", "nine"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter_detached_with::<
        { __STAGETRACE_STAGE.shape() },
    >(
        &__STAGETRACE_SITE,
        |__begin| __begin.with((&(n), &(n), &(n), &(n), &(n), &(n), &(n), &(n))),
    );
    ::stagetrace::__private0::record_current(
        &__STAGETRACE_SITE,
        8usize,
        |__late| __late.set((&(n),)),
    );
    let __value: () = ::stagetrace::__private0::call(move || -> () {
        let n = n;
        let _ = &n;
        #[allow(clippy::diverging_sub_expression)]
        let __value: () = {};
        #[allow(unreachable_code)] return __value;
    });
    __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
    return __value;
}

// With `--cfg stagetrace_off`:

fn nine(n: u32) {
    const _: ::stagetrace::__private0::Stage = DiffStage::Decode.stage();
    const _: &[&::core::primitive::str] = &["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    if false {
        let _ = |__begin: ::stagetrace::__private0::Begin<'_>| {
            __begin.with((&(n), &(n), &(n), &(n), &(n), &(n), &(n), &(n)))
        };
        let _ = |__begin: ::stagetrace::__private0::Begin<'_>| __begin.with((&(n),));
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: () = {};
    #[allow(unreachable_code)] return __value;
}

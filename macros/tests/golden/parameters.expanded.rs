fn patterns(
    Json(req): Json<Request>,
    __arg_1: Pair,
    __arg_2: (A, B),
    __arg_3: Unused,
    #[cfg(feature = "x")]
    x: u32,
    y: u32,
    _permit: Permit,
) {
    const __STAGETRACE_STAGE: ::stagetrace::__private0::Stage = DiffStage::Decode
        .stage();
    static __STAGETRACE_SITE: ::stagetrace::__private0::Site = ::stagetrace::__private0::Site::new(
        __STAGETRACE_STAGE,
        ::stagetrace::__private0::SpanKind::Internal,
        &[],
        ::core::concat!(::core::module_path!(), "::", "patterns"),
        ::core::file!(),
        ::core::line!(),
    );
    let __guard = ::stagetrace::__private0::enter_of::<
        { __STAGETRACE_STAGE.shape() },
    >(
        &__STAGETRACE_SITE,
        || ::stagetrace::__private0::locate(&req).on(&DiffStage::Decode),
    );
    let __value: () = ::stagetrace::__private0::call(move || -> () {
        let mut req = req;
        let _ = &req;
        let __arg_1 = __arg_1;
        let Pair { left, .. } = __arg_1;
        let __arg_2 = __arg_2;
        let (ref a, b) = __arg_2;
        let __arg_3 = __arg_3;
        #[cfg(feature = "x")]
        let x = x;
        #[allow(unused_variables)]
        let mut y = y;
        #[allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]
        let _permit = _permit;
        #[allow(clippy::diverging_sub_expression)]
        let __value: () = {};
        #[allow(unreachable_code)] return __value;
    });
    __guard.end(|| ::stagetrace::__private0::judge!(DEFAULT, & __value));
    return __value;
}

// With `--cfg stagetrace_off`:

fn patterns(
    Json(mut req): Json<Request>,
    Pair { left, .. }: Pair,
    (ref a, b): (A, B),
    _: Unused,
    #[cfg(feature = "x")]
    x: u32,
    #[allow(unused_variables)]
    mut y: u32,
    _permit: Permit,
) {
    const _: ::stagetrace::__private0::Stage = DiffStage::Decode.stage();
    if false {
        let _ = || ::stagetrace::__private0::locate(&req).on(&DiffStage::Decode);
        ::core::unreachable!()
    }
    #[allow(clippy::diverging_sub_expression)]
    let __value: () = {};
    #[allow(unreachable_code)] return __value;
}

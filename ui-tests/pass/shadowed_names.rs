//! The user may call things as the standard library, the runtime and the macros do.

#![deny(warnings)]
#![allow(dead_code, missing_docs, non_camel_case_types, unreachable_pub, unused_macros)]
#![forbid(unsafe_code)]

mod shadowed {
    #![no_implicit_prelude]

    use ::stagetrace::{Stages, TraceState, Traced, request, stage};

    mod core {}
    mod std {}
    mod stagetrace {}

    enum Option {}
    enum Result {}
    struct Box;
    struct String;
    struct Some;
    struct str;
    struct u8;
    struct Site;
    struct Stage;
    trait Value {}
    trait Carrier {}
    trait Future {}
    const STAGE_0: u32 = 0;
    const STAGES: u32 = 0;
    const __INFO: &::core::primitive::str = "info.key";

    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }
    macro_rules! file {
        () => {};
    }
    macro_rules! line {
        () => {};
    }
    macro_rules! judge {
        () => {};
    }

    #[derive(Stages)]
    pub enum Steps {
        One,
        #[stage(within = One)]
        Two,
    }

    #[derive(Traced)]
    #[traced(stages = Steps)]
    pub struct Request {
        #[traced(id)]
        id: ::core::primitive::u32,
        #[traced(attr = __INFO)]
        info: ::core::primitive::u32,
        #[traced(attr = "out", with = out)]
        out: ::core::primitive::u32,
        #[traced(state)]
        trace: TraceState,
    }

    fn out(n: &::core::primitive::u32) -> ::core::primitive::u32 {
        *n
    }

    #[request(name = "added")]
    pub struct Added {
        id: ::core::primitive::u32,
    }

    #[stage(Steps::One, req, attrs("n" = n, __INFO = n), err)]
    pub fn sync(
        req: &Request,
        n: ::core::primitive::u32,
    ) -> ::core::result::Result<(), ::core::fmt::Error> {
        let _ = (req, n);
        ::core::result::Result::Ok(())
    }

    #[stage(Steps::Two, req, attrs("n" = n))]
    pub async fn later<Out>(req: &Request, n: ::core::primitive::u32, __value: Out) -> Out {
        let __guard = (req, n);
        let _ = __guard;
        __value
    }

    #[stage(Steps::Two)]
    pub fn locals(
        __guard: ::core::primitive::u32,
        __value: ::core::primitive::u32,
    ) -> ::core::primitive::u32 {
        __guard + __value
    }

    pub fn requests() -> (Request, Added) {
        let request =
            Request { id: 1, info: 1, out: 1, trace: ::core::default::Default::default() };
        (request, Added { id: 1, trace: ::core::default::Default::default() })
    }
}

#[test]
fn the_users_names_are_theirs() {
    let (request, added) = shadowed::requests();
    assert!(shadowed::sync(&request, 1).is_ok());
    assert_eq!(shadowed::locals(1, 2), 3);
    drop(shadowed::later(&request, 1, "x"));
    drop(added);
}

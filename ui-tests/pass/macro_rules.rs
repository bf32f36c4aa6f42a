//! The macros inside of `macro_rules!`, with fragments of every kind.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async)]
#![forbid(unsafe_code)]

use stagetrace::{Stages, TraceState, Traced, stage};

macro_rules! declare {
    ($(#[$meta:meta])* $vis:vis $set:ident { $($variant:ident = $name:literal at $level:literal),* }) => {
        $(#[$meta])*
        #[derive(Stages)]
        $vis enum $set {
            $(
                /// Generated.
                #[stage(name = $name, level = $level)]
                $variant,
            )*
        }
    };
}

declare! {
    /// The stages of these tests.
    pub Steps { One = "first_one" at 1, Two = "second_one" at 3 }
}

macro_rules! request {
    ($name:ident, $key:expr, $field:ident: $ty:ty) => {
        /// Generated.
        #[derive(Traced, Default)]
        #[traced(name = "generated", stages = [Steps])]
        pub struct $name {
            #[traced(attr = $key)]
            $field: $ty,
            #[traced(state)]
            trace: TraceState,
        }
    };
}

request!(Request, "the.key", steps: Option<u32>);

macro_rules! staged {
    (async $stage:expr, $name:ident($arg:pat_param, $place:expr, $ty:ty) -> $ret:ty $body:block) => {
        #[stage($stage, $place, attrs("n" = $place.steps))]
        async fn $name($arg: $ty) -> $ret $body
    };
    ($stage:path, $name:ident($arg:ident: $ty:ty) -> $ret:ty $body:block) => {
        #[stage($stage, $arg)]
        fn $name($arg: $ty) -> $ret $body
    };
}

staged!(Steps::One, sync(request: &Request) -> Option<u32> { request.steps });
staged!(async Steps::Two, later(request, request, &Request) -> Option<u32> { request.steps });

macro_rules! method {
    ($stage:expr) => {
        impl Request {
            #[stage($stage, self)]
            async fn method(&mut self, n: u32) -> &mut Option<u32> {
                self.steps = Some(n);
                &mut self.steps
            }

            #[stage($stage, self)]
            fn sync_method(&mut self, n: u32) -> &mut Option<u32> {
                self.steps = Some(n);
                &mut self.steps
            }
        }
    };
}

method!(Steps::One);

#[test]
fn the_macros_work_inside_of_macro_rules() {
    assert_eq!(Steps::ONE.name(), "first_one");
    let mut request = Request::default();
    assert_eq!(sync(&request), None);
    drop(later(&request));
    assert_eq!(*request.sync_method(1), Some(1));
    drop(request.method(2));
}

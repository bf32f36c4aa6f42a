//! Everything is dropped in the order of the bare function.

#![deny(warnings, missing_docs)]
#![allow(unreachable_pub)]
#![forbid(unsafe_code)]

use std::{
    cell::RefCell,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

thread_local! {
    static DROPPED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|dropped| dropped.push(self.0));
    }
}

struct Two {
    kept: Noisy,
    #[allow(dead_code)]
    rest: Noisy,
}

fn two() -> Two {
    Two { kept: Noisy("kept"), rest: Noisy("rest") }
}

fn dropped(run: impl FnOnce()) -> Vec<&'static str> {
    run();
    DROPPED.take()
}

fn complete<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

macro_rules! functions {
    ($module:ident $(, #[$staged:meta])?) => {
        mod $module {
            use super::{Noisy, Two};

            $(#[$staged])?
            pub fn sync(a: Noisy, _: Noisy, _permit: Noisy, (b, _): (Noisy, Noisy), Two { kept, .. }: Two) {
                let _local = Noisy("local");
                drop(b);
                let _used = &a;
                let _ = &kept;
            }

            $(#[$staged])?
            pub async fn later(a: Noisy, _: Noisy, _permit: Noisy, (b, _): (Noisy, Noisy), Two { kept, .. }: Two) {
                let _local = Noisy("local");
                std::future::ready(()).await;
                drop(b);
                let _used = &a;
                let _ = &kept;
            }

            impl Noisy {
                $(#[$staged])?
                pub fn $module(self, _other: Noisy) -> &'static str {
                    let _local = Noisy("local");
                    self.0
                }
            }
        }
    };
}

functions!(bare);
functions!(staged, #[stagetrace::stage("staged")]);

#[test]
fn everything_is_dropped_in_the_order_of_the_bare_function() {
    let n = Noisy;
    let sync_bare =
        dropped(|| bare::sync(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two()));
    let sync_staged =
        dropped(|| staged::sync(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two()));
    assert_eq!(sync_bare, sync_staged);
    assert_eq!(sync_bare.len(), 8);

    let later_bare =
        dropped(|| complete(bare::later(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two())));
    let later_staged = dropped(|| {
        complete(staged::later(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two()))
    });
    assert_eq!(later_bare, later_staged);

    let unpolled_bare =
        dropped(|| drop(bare::later(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two())));
    let unpolled_staged =
        dropped(|| drop(staged::later(n("a"), n("_"), n("permit"), (n("b"), n("tuple")), two())));
    assert_eq!(unpolled_bare, unpolled_staged);

    let method_bare = dropped(|| {
        n("self").bare(n("other"));
    });
    let method_staged = dropped(|| {
        n("self").staged(n("other"));
    });
    assert_eq!(method_bare, method_staged);
}

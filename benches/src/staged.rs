//! The functions that are measured, as a user of stagetrace writes them, and the same without a stage.

use stagetrace::{Stages, TraceState, Traced, stage};
use std::hint::black_box;

/// The stages.
#[derive(Stages, Clone, Copy)]
pub(crate) enum Bench {
    Accept,
    Child,
    #[stage(level = 3)]
    Detail,
}

/// A request.
#[derive(Traced, Default)]
#[traced(name = "request")]
pub(crate) struct Request {
    #[traced(id)]
    pub(crate) id: u64,
    #[traced(attr = "n")]
    pub(crate) n: u64,
    #[traced(state)]
    pub(crate) trace: TraceState,
}

#[stage(Bench::Accept, request)]
#[inline(never)]
pub(crate) fn accept(request: &Request) {
    black_box(request.n);
}

#[stage(Bench::Child)]
#[inline(never)]
pub(crate) fn child(i: usize) {
    black_box(i);
}

#[stage(Bench::Child, request)]
#[inline(never)]
pub(crate) fn child_of(request: &Request, i: usize) {
    black_box((request.n, i));
}

#[stage(Bench::Child, attrs("user.id" = i, "retries" = i & 7, "score" = i as f64, "client" = client))]
#[inline(never)]
pub(crate) fn with_attributes(i: usize, client: &str) {
    black_box((i, client));
}

#[stage(Bench::Detail)]
#[inline(never)]
pub(crate) fn detail(i: usize) {
    black_box(i);
}

#[stage(Bench::Child)]
pub(crate) async fn ready(i: usize) {
    for _ in 0..3 {
        std::future::ready(()).await;
    }
    black_box(i);
}

#[stage(Bench::Child)]
pub(crate) async fn yielding(i: usize) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    black_box(i);
}

/// The same functions as they are without stages.
pub(crate) mod bare {
    use super::Request;
    use std::hint::black_box;

    #[inline(never)]
    pub(crate) fn child(i: usize) {
        black_box(i);
    }

    #[inline(never)]
    pub(crate) fn child_of(request: &Request, i: usize) {
        black_box((request.n, i));
    }

    #[inline(never)]
    pub(crate) fn with_attributes(i: usize, client: &str) {
        black_box((i, client));
    }

    pub(crate) async fn ready(i: usize) {
        for _ in 0..3 {
            std::future::ready(()).await;
        }
        black_box(i);
    }
}

//! The same work without spans: what the others are compared to where the work itself takes time.

use super::{Peer, Setup, attributes};
use std::hint::black_box;

pub(crate) struct Bare;

impl Peer for Bare {
    const RECORDS: bool = false;

    fn start(_: Setup) {}

    fn in_root(work: impl FnOnce()) {
        work();
    }

    #[inline(always)]
    fn child(i: usize) {
        child(i);
    }

    #[inline(always)]
    fn child_with_attributes(i: usize) {
        black_box(attributes(i));
    }

    #[inline(always)]
    fn child_around(work: impl FnOnce()) {
        work();
    }

    #[inline(always)]
    fn detail(i: usize) {
        child(i);
    }

    async fn ready(children: usize) {
        for i in 0..children {
            ready(i).await;
        }
    }

    async fn yielding(children: usize) {
        for i in 0..children {
            yielding(i).await;
        }
    }

    type Request = [u64; 4];

    fn begin() -> [u64; 4] {
        black_box([0; 4])
    }

    fn serve(request: [u64; 4], children: usize) {
        black_box(request);
        (0..children).for_each(child);
    }

    fn flush() {}

    fn exported() -> u64 {
        0
    }
}

fn child(i: usize) {
    black_box(i);
}

async fn ready(i: usize) {
    for _ in 0..3 {
        std::future::ready(()).await;
    }
    black_box(i);
}

async fn yielding(i: usize) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    black_box(i);
}

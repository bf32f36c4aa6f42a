//! A small body that says it is huge takes no memory for it.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use stagetrace_collector::{Collector, Protocol};
use support::{call, gzip, send, zstd};

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

struct Measuring;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

const LIMIT: usize = 1 << 20;

#[tokio::test]
async fn no_body_takes_much_more_memory_than_the_limit() {
    let collector =
        Collector::builder().max_grpc_bytes(LIMIT).max_http_bytes(LIMIT).start().await.unwrap();
    let plain = vec![0; 64 << 20];
    let bombs = [("gzip", gzip(&plain)), ("zstd", zstd(&plain))];
    drop(plain);
    // The largest length that a message can have, and none of its bytes.
    let promise = b"\0\xff\xff\xff\xff".to_vec();

    MOST.store(NOW.load(Relaxed), Relaxed);
    let before = NOW.load(Relaxed);
    for (name, bomb) in &bombs {
        for protocol in [Protocol::Grpc, Protocol::HttpJson] {
            send(&collector, protocol, name, bomb).await.unwrap();
        }
    }
    call(&collector, &[], promise).await.unwrap();
    let most = MOST.load(Relaxed) - before;
    assert_eq!(collector.stats().failed_requests, 5);
    assert!(most > LIMIT, "only {most} bytes: is the allocator not asked?");
    assert!(most < 5 * LIMIT, "{most} bytes");
}

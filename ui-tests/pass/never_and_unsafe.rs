//! `-> !`, `unsafe`, `extern`, and attributes that change how a function is compiled.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::missing_safety_doc, clippy::missing_panics_doc, clippy::future_not_send)]

use std::{
    future::Future,
    panic::Location,
    pin::pin,
    task::{Context, Waker},
};

use stagetrace::stage;

#[stage("never")]
fn diverges() -> ! {
    panic!("always")
}

#[stage("never")]
fn loops(n: &mut u32) -> ! {
    loop {
        *n += 1;
        assert!(*n < 3, "enough");
    }
}

#[stage("never")]
async fn diverges_async(_permit: String) -> ! {
    std::future::ready(()).await;
    panic!("always")
}

#[stage("never")]
#[track_caller]
fn diverges_for_its_caller() -> ! {
    panic!("always")
}

#[stage("unsafe")]
unsafe fn reads(x: *const u32) -> u32 {
    // SAFETY: the caller's.
    unsafe { *x }
}

#[stage("unsafe")]
async unsafe fn reads_async(x: *const u32) -> u32 {
    // SAFETY: the caller's.
    unsafe { *x }
}

#[stage("extern")]
extern "C" fn from_c(x: u32) -> u32 {
    x + 1
}

/// Exported.
#[stage("extern")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stagetrace_exported(x: *mut u32) {
    // SAFETY: the caller's.
    unsafe { *x += 1 }
}

#[stage("tracked", err)]
#[track_caller]
fn tracked(early: bool) -> Result<u32, String> {
    if early {
        return Ok(0);
    }
    Ok(Location::caller().line())
}

#[stage("tracked")]
#[cfg_attr(all(), track_caller)]
fn tracked_by_condition() -> u32 {
    Location::caller().line()
}

#[must_use]
#[cold]
#[stage("attributes")]
#[inline(never)]
#[doc = "Documented."]
pub fn with_attributes() -> u32 {
    1
}

#[test]
fn qualified_functions_do_what_the_bare_ones_do() {
    assert!(std::panic::catch_unwind(|| -> () { diverges() }).is_err());
    assert!(std::panic::catch_unwind(|| -> () { loops(&mut 0) }).is_err());
    assert!(std::panic::catch_unwind(|| -> () { diverges_for_its_caller() }).is_err());
    let poll_once = || {
        let mut future = pin!(diverges_async(String::new()));
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    assert!(std::panic::catch_unwind(poll_once).is_err());
    let mut x = 3;
    // SAFETY: both point to `x`.
    unsafe {
        assert_eq!(reads(&raw const x), 3);
        stagetrace_exported(&raw mut x);
        drop(reads_async(&raw const x));
    }
    assert_eq!(from_c(x), 5);
    assert_eq!(tracked(true), Ok(0));
    assert_eq!(tracked(false), Ok(line!()));
    assert_eq!(tracked_by_condition(), line!());
    assert_eq!(with_attributes(), 1);
}

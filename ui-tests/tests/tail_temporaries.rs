//! The body is of the user's edition: 2024 drops the temporaries of a tail expression first.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async)]
#![forbid(unsafe_code)]

use std::cell::RefCell;

use stagetrace::stage;

#[stage("tail")]
fn sync() -> usize {
    let c = RefCell::new(String::from("abc"));
    c.borrow().len()
}

#[stage("tail")]
async fn later() -> usize {
    let c = RefCell::new(String::from("abc"));
    c.borrow().len()
}

#[test]
fn temporaries_of_a_tail_are_dropped_as_in_the_bare_function() {
    assert_eq!(sync(), 3);
    drop(later());
}

//! Inner attributes of a body stay on the function.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async)]
#![forbid(unsafe_code)]

use stagetrace::stage;

#[stage("inner")]
fn sync() -> u32 {
    #![allow(unused_variables)]
    let unused = 1;
    2
}

#[stage("inner")]
async fn later() -> u32 {
    #![allow(unused_variables, clippy::let_underscore_untyped)]
    #![doc = "Documented from within."]
    let unused = 1;
    2
}

#[test]
fn inner_attributes_stay_on_the_function() {
    assert_eq!(sync(), 2);
    drop(later());
}

//! `Traced` is derived by `#[request]`.

use stagetrace::{Traced, request};

#[derive(Traced)]
#[request]
struct Request {
    id: String,
}

fn main() {}

//! `Traced` is derived by `#[request]`.

use stagetrace::{Traced, request};

#[request]
#[derive(Debug, Traced)]
struct Request {
    #[traced(id)]
    id: String,
}

fn main() {}

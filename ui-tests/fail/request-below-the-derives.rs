//! The derives see the struct without the field.

use stagetrace::request;

#[derive(Clone, Debug)]
#[request]
struct Request {
    id: String,
}

fn main() {}

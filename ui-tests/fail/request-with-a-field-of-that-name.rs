//! The field is there already.

use stagetrace::request;

#[request]
#[derive(Debug)]
struct Request {
    id: String,
    trace: Vec<u32>,
}

fn main() {}

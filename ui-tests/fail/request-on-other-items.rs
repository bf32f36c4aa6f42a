//! Only a struct with named fields can take another field.

use stagetrace::request;

#[request]
enum Request {
    One,
}

#[request]
struct Tuple(u32);

#[request]
struct Unit;

#[request]
fn function() {}

fn main() {}

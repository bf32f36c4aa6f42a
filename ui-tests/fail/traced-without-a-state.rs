//! No field for the trace.

use stagetrace::Traced;

#[derive(Traced)]
struct Request {
    #[traced(id)]
    id: String,
}

#[derive(Traced)]
struct Unit;

fn used(_request: &impl Traced) {}

fn uses(request: &Request) {
    used(request);
}

fn main() {}

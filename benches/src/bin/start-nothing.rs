//! A process that starts no library: what the others are compared to.

#[path = "../start_up/mod.rs"]
mod start_up;

fn main() {
    start_up::time(|| ());
}

//! A set with generics, and a variant with a field.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps<T> {
    One,
    Two(T),
}

fn main() {}

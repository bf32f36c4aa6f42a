//! Raw identifiers and keywords of later editions.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, non_camel_case_types)]
#![forbid(unsafe_code)]

use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages, Clone, Copy)]
pub enum r#Loop {
    /// A keyword.
    r#match,
    /// Another.
    r#Type,
}

/// A request.
#[derive(Traced, Default)]
pub struct r#Struct<r#T> {
    /// A keyword.
    #[traced(attr = "request.type")]
    pub r#type: r#T,
    /// The trace.
    #[traced(state)]
    pub r#trait: TraceState,
}

#[stage(r#Loop::r#match, r#in, attrs("x" = r#move))]
fn r#fn(r#in: &r#Struct<u32>, r#move: u32) -> u32 {
    r#in.r#type + r#move
}

#[stage(r#Loop::TYPE, r#in)]
async fn r#impl(r#in: &r#Struct<u32>, mut r#mut: u32) -> u32 {
    r#mut += 1;
    r#in.r#type + r#mut
}

#[test]
fn raw_names_are_exported_without_their_prefix() {
    assert_eq!(r#Loop::r#match.stage().name(), "match");
    assert_eq!(r#Loop::TYPE.name(), "type");
    let request = r#Struct::default();
    assert_eq!(r#fn(&request, 1), 1);
    drop(r#impl(&request, 1));
}

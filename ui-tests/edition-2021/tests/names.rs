//! A word that became a keyword in 2024 is a name in 2021.

#![allow(non_camel_case_types, keyword_idents_2024)]

use stagetrace::{stage, Stages, TraceState, Traced};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    gen,
}

/// A request.
#[derive(Traced, Default)]
#[traced(stages = Steps)]
pub struct Request {
    /// A field.
    #[traced(attr = "request.gen")]
    pub gen: u32,
    /// The trace.
    #[traced(state)]
    pub trace: TraceState,
}

#[stage(Steps::gen, gen, attrs("n" = gen.gen))]
fn gen(gen: &Request) -> u32 {
    gen.gen
}

#[stage(Steps::GEN, gen)]
async fn later(mut gen: Request) -> u32 {
    gen.gen += 1;
    gen.gen
}

#[test]
fn names_that_became_keywords_are_kept() {
    assert_eq!(Steps::gen.stage().name(), "gen");
    assert_eq!(gen(&Request::default()), 0);
    drop(later(Request::default()));
}

//! The macros of stagetrace: an enum declares stages, a struct a request, an attribute a staged
//! function.
//!
//! Not to be named by users: the crate `stagetrace` re-exports these macros, pins this crate to its
//! own version, and provides the private module that the generated code names.
//!
//! Each macro goes the same way: parse (`ast`, `options`) → check → expand. All mistakes of one
//! invocation are collected and reported together, beside the user's item, so that one mistake is
//! one error.

mod args;
mod errors;
mod hygiene;
mod kind;
mod names;
mod paths;
mod request;
mod stage;
mod stages;
mod traced;

#[cfg(test)]
mod golden;

use proc_macro::TokenStream;

#[doc = include_str!("docs/stages.md")]
#[proc_macro_derive(Stages, attributes(stage, stages))]
pub fn derive_stages(input: TokenStream) -> TokenStream {
    stages::derive(input.into()).into()
}

#[doc = include_str!("docs/traced.md")]
#[proc_macro_derive(Traced, attributes(traced))]
pub fn derive_traced(input: TokenStream) -> TokenStream {
    traced::derive(input.into()).into()
}

#[doc = include_str!("docs/stage.md")]
#[proc_macro_attribute]
pub fn stage(args: TokenStream, item: TokenStream) -> TokenStream {
    stage::attribute(args.into(), item.into()).into()
}

#[doc = include_str!("docs/request.md")]
#[proc_macro_attribute]
pub fn request(args: TokenStream, item: TokenStream) -> TokenStream {
    request::attribute(args.into(), item.into()).into()
}

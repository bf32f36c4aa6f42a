//! `#[stage]`: a function's executions become spans.

mod ast;
mod check;
mod expand;
mod options;
mod params;
mod pieces;
mod returns;

use proc_macro2::TokenStream;
use quote::quote;

use crate::errors::Errors;

pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let errors = Errors::new();
    let given = options::read(args, &errors);
    let function = ast::read(item.clone(), &errors);
    // In the bare function, a parameter may be unused that the attribute mentions.
    let allow = function.is_some().then(|| quote!(#[allow(unused_variables)]));
    let checked = function.and_then(|function| check::check(given, function, &errors));
    match checked {
        Some(stage) if errors.is_empty() => {
            let _ = errors.into_tokens();
            expand::expand(&stage)
        }
        _ => {
            let errors = errors.into_tokens();
            quote!(#errors #allow #item)
        }
    }
}

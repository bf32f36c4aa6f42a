//! `#[derive(Stages)]`: an enum becomes a closed set of stages.

mod ast;
mod check;
mod expand;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let errors = Errors::new();
    let expansion = match syn::parse2::<DeriveInput>(input) {
        Ok(item) => ast::read(&item, &errors)
            .map(|declared| expand::expand(&check::check(declared, &errors))),
        Err(error) => {
            errors.push_error(error);
            None
        }
    };
    let errors = errors.into_tokens();
    quote::quote!(#errors #expansion)
}

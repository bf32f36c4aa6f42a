//! `#[derive(Traced)]`: a struct becomes a request that carries its trace.

mod ast;
mod check;
mod expand;

use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) use self::ast::CONTAINER_KEYS;
use crate::errors::Errors;

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let errors = Errors::new();
    let expansion = match syn::parse2::<DeriveInput>(input) {
        Ok(item) if stands_above_request(&item, &errors) => TokenStream::new(),
        Ok(item) => {
            let declared = ast::read(&item, &errors);
            let request = check::check(declared, &errors);
            if errors.is_empty() {
                expand::expand(&item, &request)
            } else {
                expand::placeholder(&item, &request)
            }
        }
        Err(error) => {
            errors.push_error(error);
            TokenStream::new()
        }
    };
    let errors = errors.into_tokens();
    quote::quote!(#errors #expansion)
}

/// Whether the derive stands above `#[request]`, which derives `Traced` a second time.
fn stands_above_request(item: &DeriveInput, errors: &Errors) -> bool {
    let request = item.attrs.iter().find(|attr| {
        let last = attr.path().segments.last();
        last.is_some_and(|last| last.ident == "request")
    });
    if let Some(attr) = request {
        errors.push(
            attr.path(),
            "`#[request]` stands above the derives, and derives `Traced` itself: move it up, and \
             remove `Traced`",
        );
    }
    request.is_some()
}

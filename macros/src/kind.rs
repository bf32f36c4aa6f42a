//! The option `kind`: the OpenTelemetry span kind.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Ident, Path};

use crate::{args, errors::Errors};

const KINDS: [&str; 5] = ["internal", "server", "client", "producer", "consumer"];

/// The kind of a span, by the name of the runtime's variant.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    variant: &'static str,
}

impl Kind {
    /// Reads the word after `kind =`.
    pub(crate) fn read(value: &Expr, errors: &Errors) -> Option<Self> {
        let word = args::as_path(value).and_then(Path::get_ident).map(Ident::to_string);
        let variant = match word.as_deref() {
            Some("internal") => "Internal",
            Some("server") => "Server",
            Some("client") => "Client",
            Some("producer") => "Producer",
            Some("consumer") => "Consumer",
            other => {
                let near = other.and_then(|word| args::nearest(&word.to_lowercase(), &KINDS));
                let hint =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                errors.push(value, format!("a kind is {}{hint}", args::one_of(&KINDS)));
                return None;
            }
        };
        Some(Self { variant })
    }

    /// The variant of `SpanKind`, in the private module `private`.
    pub(crate) fn expand(kind: Option<Self>, private: &TokenStream) -> TokenStream {
        let variant = kind.map_or("Internal", |kind| kind.variant);
        let variant = Ident::new(variant, proc_macro2::Span::call_site());
        quote!(#private::SpanKind::#variant)
    }
}

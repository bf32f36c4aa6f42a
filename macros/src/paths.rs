//! How generated code names the runtime.

use proc_macro2::{Ident, Span, TokenStream};
use quote::format_ident;
use syn::Path;

use crate::hygiene::glue;

/// The runtime crate: `::stagetrace`, or what `crate = path` says.
#[derive(Clone, Default)]
pub(crate) struct Runtime {
    path: Option<Path>,
}

impl Runtime {
    pub(crate) fn new(path: Option<Path>) -> Self {
        Self { path }
    }

    /// What `crate = path` says.
    pub(crate) fn renamed(&self) -> Option<&Path> {
        self.path.as_ref()
    }

    /// The path of the module that generated code may name. Attributes on functions use it, since
    /// an import would be visible to the user's block.
    pub(crate) fn private(&self) -> TokenStream {
        let module = private_module();
        match &self.path {
            Some(path) => glue!(#path::#module),
            None => glue!(::stagetrace::#module),
        }
    }

    /// Binds the private module to `_st` inside of the `const _` block of a derive. An `extern
    /// crate` there would be the shortest path to the runtime, which the compiler would show to the
    /// user.
    pub(crate) fn import(&self) -> TokenStream {
        let private = self.private();
        glue!(use #private as _st;)
    }
}

/// The module's name carries the patch version, so that a runtime of another version fails loudly.
fn private_module() -> Ident {
    format_ident!("__private{}", env!("CARGO_PKG_VERSION_PATCH"), span = Span::mixed_site())
}

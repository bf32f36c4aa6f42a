//! Every mistake of one invocation, collected, so that the user sees all of them at once.

use std::{cell::RefCell, fmt::Display, thread};

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Collects the mistakes of one invocation.
///
/// Panics when it is dropped unread: a forgotten collector would turn mistakes into silence.
pub(crate) struct Errors {
    found: RefCell<Option<Vec<syn::Error>>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: RefCell::new(Some(Vec::new())) }
    }

    /// Adds a mistake; the compiler underlines `at`, so pass the smallest tokens that are wrong.
    pub(crate) fn push(&self, at: impl ToTokens, message: impl Display) {
        self.push_error(syn::Error::new_spanned(at, message));
    }

    /// Adds a mistake that a parser found.
    pub(crate) fn push_error(&self, error: syn::Error) {
        self.found
            .borrow_mut()
            .as_mut()
            .expect("mistakes are added before they are read")
            .push(error);
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.borrow().as_ref().is_none_or(Vec::is_empty)
    }

    /// The mistakes as `compile_error!` items; empty if there are none.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let found = self.found.take().unwrap_or_default();
        found.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        if !thread::panicking() && self.found.borrow().is_some() {
            panic!("mistakes were collected and never read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_reported() {
        let errors = Errors::new();
        errors.push(quote::quote!(a), "the first");
        errors.push(quote::quote!(b), "the second");
        assert!(!errors.is_empty());
        let tokens = errors.into_tokens().to_string();
        assert!(tokens.contains("the first") && tokens.contains("the second"));
    }

    #[test]
    #[should_panic(expected = "never read")]
    fn dropping_it_unread_panics() {
        drop(Errors::new());
    }
}

//! The spans of generated code.

/// `quote!` with hygienic locals: the user's tokens neither see them nor are seen.
///
/// Everything else resolves where the user is, and the code is of this crate's edition.
macro_rules! glue {
    ($($tokens:tt)*) => {
        ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*)
    };
}

pub(crate) use glue;

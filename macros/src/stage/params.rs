//! Parameters, moved into the body that is measured, so that they are dropped as in the bare
//! function.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{
    Attribute, FnArg, Ident, Pat, PatIdent, PatType, Signature, Token,
    ext::IdentExt,
    parse_quote,
    visit_mut::{self, VisitMut},
};

use crate::hygiene::glue;

/// Rewrites the parameters such that the body can take them over, and gives the statements by which
/// it does: each parameter in order, `_` and patterns through a name of ours.
///
/// A pattern that binds one of the names in `used` stays in the signature: the request's place and
/// the attributes are read before the body begins.
pub(super) fn rebind(sig: &mut Signature, used: &HashSet<String>) -> TokenStream {
    let mut statements = TokenStream::new();
    for (index, param) in sig.inputs.iter_mut().enumerate() {
        match param {
            FnArg::Receiver(receiver) => {
                let self_token = &receiver.self_token;
                statements.extend(glue!(let _ = &#self_token;));
            }
            FnArg::Typed(param) => statements.extend(rebind_typed(index, param, used)),
        }
    }
    statements
}

/// The names that the parameters bind, in order.
pub(super) fn names(sig: &Signature) -> Vec<String> {
    let mut names = Vec::new();
    for param in &sig.inputs {
        match param {
            FnArg::Receiver(_) => names.push("self".to_owned()),
            FnArg::Typed(param) => {
                let bound = Bindings::strip(&mut param.pat.clone());
                names.extend(bound.iter().map(|one| one.ident.unraw().to_string()));
            }
        }
    }
    names
}

/// All words in an expression.
pub(super) fn words(tokens: TokenStream, found: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.unraw().to_string());
            }
            TokenTree::Group(group) => words(group.stream(), found),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn rebind_typed(index: usize, param: &mut PatType, used: &HashSet<String>) -> TokenStream {
    let attrs = take_local_attrs(&mut param.attrs);
    if let Pat::Wild(_) = &*param.pat {
        let name = stand_in(index);
        *param.pat = parse_quote!(#name);
        return glue!(#attrs let #name = #name;);
    }
    let mut stripped = param.pat.clone();
    let bound = Bindings::strip(&mut stripped);
    let is_name =
        matches!(&*param.pat, Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none());
    if is_name || bound.iter().any(|one| used.contains(&one.ident.unraw().to_string())) {
        param.pat = stripped;
        return bound
            .iter()
            .map(|Binding { mutability, ident }| {
                let allow = allow_underscore(ident);
                // Who is named in the attribute is used, whatever the body does.
                let is_used = used.contains(&ident.unraw().to_string());
                let uses = is_used.then(|| glue!(#attrs #allow let _ = &#ident;));
                glue!(#attrs #allow let #mutability #ident = #ident; #uses)
            })
            .collect();
    }
    let name = stand_in(index);
    let pat = std::mem::replace(&mut *param.pat, parse_quote!(#name));
    glue!(#attrs let #name = #name; #attrs let #pat = #name;)
}

/// Clippy minds that a name with an underscore is used, here by us.
fn allow_underscore(name: &Ident) -> Option<TokenStream> {
    name.to_string().starts_with('_').then(
        || glue!(#[allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]),
    )
}

fn stand_in(index: usize) -> Ident {
    format_ident!("__arg_{index}", span = Span::mixed_site())
}

/// The attributes that the statement in the body needs: `cfg` as well as the parameter, lint levels
/// instead of it.
fn take_local_attrs(attrs: &mut Vec<Attribute>) -> TokenStream {
    let is = |attr: &Attribute, names: &[&str]| names.iter().any(|name| attr.path().is_ident(name));
    let lints = ["allow", "warn", "deny", "forbid", "expect"];
    let mut local = TokenStream::new();
    attrs.retain(|attr| {
        let lint = is(attr, &lints);
        if lint || is(attr, &["cfg", "cfg_attr"]) {
            attr.to_tokens(&mut local);
        }
        !lint
    });
    local
}

/// A name that a pattern binds.
struct Binding {
    mutability: Option<Token![mut]>,
    ident: Ident,
}

/// Finds the names that a pattern binds, and takes their `mut` away.
struct Bindings(Vec<Binding>);

impl Bindings {
    fn strip(pat: &mut Pat) -> Vec<Binding> {
        let mut bindings = Self(Vec::new());
        bindings.visit_pat_mut(pat);
        bindings.0
    }
}

impl VisitMut for Bindings {
    fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
        let mutability = match pat.by_ref {
            Some(_) => None,
            None => pat.mutability.take(),
        };
        self.0.push(Binding { mutability, ident: pat.ident.clone() });
        visit_mut::visit_pat_ident_mut(self, pat);
    }
}

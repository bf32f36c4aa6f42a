//! The instrumented function, and the bare one for builds in which tracing is off.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::ToTokens;
use syn::{Attribute, Meta, ReturnType, Signature, Token, parse_quote, punctuated::Punctuated};

use super::{check::Checked, params, pieces::Pieces, returns::Returns};
use crate::hygiene::glue;

/// Built-in attributes that mean the same on a function that returns the future of an `async fn`.
const TRANSPARENT: [&str; 15] = [
    "allow",
    "cfg",
    "cold",
    "deny",
    "deprecated",
    "doc",
    "expect",
    "export_name",
    "forbid",
    "inline",
    "link_section",
    "no_mangle",
    "target_feature",
    "unsafe",
    "warn",
];
/// Tools whose attributes change nothing.
const TOOLS: [&str; 3] = ["rustfmt", "clippy", "diagnostic"];

pub(super) fn expand(stage: &Checked) -> TokenStream {
    let private = stage.runtime.private();
    let pieces = Pieces::new(stage, &private);
    let on = instrumented(stage, &pieces);
    let off = bare(stage, &pieces);
    glue! {
        #private::on_off! {
            on { #on }
            off { #off }
        }
    }
}

/// The function as it is when tracing is on.
fn instrumented(stage: &Checked, pieces: &Pieces<'_>) -> TokenStream {
    let mut sig = stage.sig.clone();
    let body = if sig.asyncness.is_some() {
        if may_return_its_future(stage) {
            let future = in_async(stage, pieces, &mut sig);
            return_future(&mut sig);
            glue!(return #future;)
        } else {
            awaited(stage, &in_async(stage, pieces, &mut sig))
        }
    } else {
        match stage.returns {
            Returns::Future | Returns::BoxedFuture => in_prelude(stage, pieces, &mut sig),
            Returns::Value | Returns::Never if keeps_block_in_place(stage) => {
                in_place(stage, pieces)
            }
            Returns::Value | Returns::Never => in_closure(stage, pieces, &mut sig),
        }
    };
    let site = pieces.site();
    function(stage, &sig, &glue!(#site #body))
}

/// The function as the user wrote it; its arguments are checked and never evaluated.
fn bare(stage: &Checked, pieces: &Pieces<'_>) -> TokenStream {
    let (checks, block) = (pieces.checks(), pieces.block());
    let (checks_of_value, give_back) = (pieces.checks_of_value(), pieces.give_back());
    function(stage, &stage.sig, &glue!(#checks #block #checks_of_value #give_back))
}

fn function(stage: &Checked, sig: &Signature, body: &TokenStream) -> TokenStream {
    let Checked { attrs, vis, inner_attrs, block, .. } = stage;
    // With the user's braces, the item lies where the user wrote it, for lints about the whole of
    // it.
    let mut body = Group::new(Delimiter::Brace, glue!(#inner_attrs #body));
    body.set_span(block.span());
    glue!(#(#attrs)* #vis #sig #body)
}

/// A sync body: in a closure that is called at once, so that `return` and `?` are seen.
fn in_closure(stage: &Checked, pieces: &Pieces<'_>, sig: &mut Signature) -> TokenStream {
    let st = pieces.private();
    let rebind = params::rebind(sig, &used_before_the_body(stage, true));
    let (begin, late) = (pieces.begin(), pieces.late_values(pieces.inline_values()));
    let output = pieces.closure_output();
    let (block, give_back) = (pieces.block(), pieces.give_back_from_closure());
    let call = glue! {
        #st::call(move || #output {
            #rebind
            #block
            #give_back
        })
    };
    if stage.returns == Returns::Never {
        return glue! {
            let __guard = #begin;
            #late
            match #call {}
        };
    }
    let (typed, judge) = (pieces.typed_value(), pieces.judge(&pieces.reference()));
    let value = pieces.value();
    glue! {
        let __guard = #begin;
        #late
        let #typed = #call;
        __guard.end(|| #judge);
        return #value;
    }
}

/// A sync body whose caller's location is looked at: a closure would be the caller.
fn in_place(stage: &Checked, pieces: &Pieces<'_>) -> TokenStream {
    let (begin, late) = (pieces.begin(), pieces.late_values(pieces.inline_values()));
    let (block, give_back) = (pieces.block(), pieces.give_back());
    let end = (stage.returns != Returns::Never).then(|| {
        let judge = pieces.judge(&pieces.reference());
        glue! {
            #[allow(unreachable_code)]
            __guard.end(|| #judge);
        }
    });
    glue! {
        let __guard = #begin;
        #late
        #block
        #end
        #give_back
    }
}

/// The measured future of an `async fn`.
fn in_async(stage: &Checked, pieces: &Pieces<'_>, sig: &mut Signature) -> TokenStream {
    let rebind = params::rebind(sig, &used_before_the_body(stage, false));
    let (prepare, pin, values) = (pieces.prepare(), pieces.pin_output(), pieces.late_values(0));
    let (block, give_back) = (pieces.block(), pieces.give_back_from_closure());
    let judge = pieces.judge_closure();
    glue! {
        #prepare.run(
            async move {
                #pin
                #rebind
                #values
                #block
                #give_back
            },
            #judge,
        )
    }
}

fn awaited(stage: &Checked, future: &TokenStream) -> TokenStream {
    match stage.returns {
        Returns::Never => glue!(match #future.await {}),
        _ => glue!(return #future.await;),
    }
}

/// A function that makes a future: first its own statements are measured, then that future.
fn in_prelude(stage: &Checked, pieces: &Pieces<'_>, sig: &mut Signature) -> TokenStream {
    let rebind = params::rebind(sig, &used_before_the_body(stage, false));
    let (prepare, values) = (pieces.prepare(), pieces.late_values(0));
    let output = pieces.closure_output();
    let (block, give_back) = (pieces.block(), pieces.give_back_from_closure());
    let judge = pieces.judge_closure();
    let measured = glue!(__stage.run(__future, #judge));
    let measured = match stage.returns {
        Returns::BoxedFuture => glue!(::std::boxed::Box::pin(#measured)),
        _ => measured,
    };
    glue! {
        let mut __stage = #prepare.begun();
        let __future = __stage.prelude(move || #output {
            #rebind
            #values
            #block
            #give_back
        });
        return #measured;
    }
}

/// Words in the expressions that are evaluated before the parameters are moved into the body.
fn used_before_the_body(stage: &Checked, with_values: bool) -> HashSet<String> {
    let mut used = HashSet::new();
    params::words(stage.place.to_token_stream(), &mut used);
    if with_values {
        for (_, value) in &stage.values {
            params::words(value.to_token_stream(), &mut used);
        }
    }
    used
}

/// Turns `async fn f() -> T` into `fn f() -> impl Future<Output = T>`. The `impl` is of this
/// crate's edition, 2024, so it captures all that the future of an `async fn` does, in any edition.
fn return_future(sig: &mut Signature) {
    let output = match &sig.output {
        ReturnType::Default => glue!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    sig.asyncness = None;
    sig.output = parse_quote!(-> impl ::core::future::Future<Output = #output>);
}

/// Whether an `async fn` may become a function that returns its future. `!` has no name on stable,
/// and attributes that are not known to be transparent may want to see the `async`.
fn may_return_its_future(stage: &Checked) -> bool {
    stage.returns != Returns::Never && stage.attrs.iter().all(|attr| is_transparent(&attr.meta))
}

fn is_transparent(meta: &Meta) -> bool {
    let path = meta.path();
    let first = path.segments.first().map(|segment| segment.ident.to_string());
    match (first.as_deref(), path.segments.len()) {
        (Some("cfg_attr"), 1) => conditional(meta).iter().all(is_transparent),
        (Some(name), 1) => TRANSPARENT.contains(&name),
        (Some(tool), _) => TOOLS.contains(&tool),
        (None, _) => false,
    }
}

fn keeps_block_in_place(stage: &Checked) -> bool {
    stage.sig.variadic.is_some()
        || stage.attrs.iter().any(|attr: &Attribute| tracks_caller(&attr.meta))
}

fn tracks_caller(meta: &Meta) -> bool {
    meta.path().is_ident("track_caller")
        || meta.path().is_ident("cfg_attr") && conditional(meta).iter().any(tracks_caller)
}

/// The attributes behind the condition of `cfg_attr(condition, ..)`.
fn conditional(meta: &Meta) -> Vec<Meta> {
    let Meta::List(list) = meta else {
        return Vec::new();
    };
    let all = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    all.into_iter().flatten().skip(1).collect()
}

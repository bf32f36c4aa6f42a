//! Constants, statics and the registration of a stage set.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Visibility};

use super::check::{Set, Stage};

pub(super) fn expand(set: &Set) -> TokenStream {
    let import = set.runtime.import();
    let statics =
        set.stages.iter().enumerate().map(|(index, stage)| expand_static(set, index, stage));
    let inherent = expand_inherent(set);
    let registered = expand_registration(set);
    quote! {
        const _: () = {
            #import
            #(#statics)*
            #inherent
            #registered
        };
    }
}

/// The static in which a stage's facts stand. Other generated code names it, and never the
/// constant, which a variant of the same name would hide.
fn static_name(index: usize) -> Ident {
    format_ident!("STAGE_{index}", span = Span::call_site())
}

fn expand_static(set: &Set, index: usize, stage: &Stage) -> TokenStream {
    let (static_name, level, name) = (static_name(index), stage.level, &stage.name);
    let set_name = set_name(set);
    let within = match stage.within.map(handle) {
        Some(outer) => quote!(::core::option::Option::Some(#outer)),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        static #static_name: _st::StageInfo =
            _st::StageInfo::new(#set_name, #name, #level, #within).at({
                static SITE: _st::StageSite = _st::StageSite::new();
                &SITE
            });
    }
}

fn expand_inherent(set: &Set) -> TokenStream {
    let ident = &set.ident;
    let vis = respanned(&set.vis);
    let constants = set.stages.iter().enumerate().map(|(index, stage)| {
        let constant = stage.constant.as_ref()?;
        let (attrs, handle) = (&stage.attrs, handle(index));
        let paragraph =
            attrs.iter().any(|attr| attr.path().is_ident("doc")).then(|| quote!(#[doc = ""]));
        let line = description(set, stage);
        Some(quote! {
            #(#attrs)*
            #paragraph
            #[doc = #line]
            #vis const #constant: _st::Stage = #handle;
        })
    });
    let constants = constants.flatten();
    let (units, names): (Vec<&Ident>, Vec<&String>) = set
        .stages
        .iter()
        .filter(|stage| stage.is_unit)
        .map(|stage| (&stage.variant, &stage.name))
        .unzip();
    let count = units.len();
    let of_variant = expand_stage(set);
    quote! {
        #[automatically_derived]
        #[allow(dead_code, deprecated, unreachable_patterns)]
        impl #ident {
            #(#constants)*

            /// All stages of this set, in order of declaration.
            #vis const ALL: [Self; #count] = [#(Self::#units),*];

            /// The handle of this stage, which the recorder takes.
            #[must_use]
            #vis const fn stage(self) -> _st::Stage {
                #of_variant
            }

            /// The stage that is exported under `name`, if this set has it.
            #[must_use]
            #vis fn from_name(name: &::core::primitive::str) -> ::core::option::Option<Self> {
                match name {
                    #(#names => ::core::option::Option::Some(Self::#units),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    }
}

/// The body of `stage`. Variants with fields, which were reported, keep the rest compiling.
fn expand_stage(set: &Set) -> TokenStream {
    let arms = set.stages.iter().enumerate().map(|(index, Stage { variant, is_unit, .. })| {
        let (handle, fields) = (handle(index), (!is_unit).then(|| quote!({ .. })));
        quote!(Self::#variant #fields => #handle,)
    });
    if set.stages.iter().all(|stage| stage.is_unit) {
        quote!(match self { #(#arms)* })
    } else {
        quote! {
            let stage = match &self { #(#arms)* };
            ::core::mem::forget(self);
            stage
        }
    }
}

fn expand_registration(set: &Set) -> TokenStream {
    let (ident, set_name) = (&set.ident, set_name(set));
    let handles = (0..set.stages.len()).map(handle);
    quote! {
        #[automatically_derived]
        impl _st::StageSet for #ident {
            const NAME: &'static ::core::primitive::str = #set_name;
            const STAGES: &'static [_st::Stage] = &[#(#handles),*];
        }

        #[_st::linkme::distributed_slice(_st::STAGE_SETS)]
        #[linkme(crate = _st::linkme)]
        static STAGES: &'static [_st::Stage] = <#ident as _st::StageSet>::STAGES;
    }
}

fn handle(index: usize) -> TokenStream {
    let static_name = static_name(index);
    quote!(_st::Stage::new(&#static_name))
}

fn set_name(set: &Set) -> String {
    syn::ext::IdentExt::unraw(&set.ident).to_string()
}

/// What the constant's documentation says below the variant's own.
fn description(set: &Set, stage: &Stage) -> String {
    let within = match stage.within {
        Some(outer) => format!(", within [`{0}`](Self::{0})", set.stages[outer].variant),
        None => String::new(),
    };
    format!(" Stage `{}`, level {}{within}.", stage.name, stage.level)
}

/// Without the user's span, so that lints about the enum's visibility are not repeated.
fn respanned(vis: &Visibility) -> TokenStream {
    vis.to_token_stream()
        .into_iter()
        .map(|mut token| {
            token.set_span(Span::call_site());
            token
        })
        .collect()
}

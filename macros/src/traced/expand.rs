//! The impls of a request: what it records, where its trace is, and whose stages it accepts.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::{DeriveInput, Generics, Member, Type, WherePredicate, parse_quote, spanned::Spanned};

use super::{
    ast::{Delegate, Form},
    check::{Attribute, Body, Recorded, Request},
};
use crate::{hygiene::glue, kind::Kind};

/// Level of a request's root span.
const ROOT_LEVEL: u8 = 1;

pub(super) fn expand(item: &DeriveInput, request: &Request) -> TokenStream {
    let traced = match &request.body {
        Body::Struct(recorded) => expand_struct(item, request, recorded),
        Body::Enum(delegates) => expand_enum(item, request, delegates),
    };
    let carrier = expand_carrier(item, request);
    let accepts = expand_accepts(item, request);
    wrap(request, &glue!(#traced #carrier #accepts))
}

/// Impls that only keep the compiler from complaining a second time, after a mistake was reported.
pub(super) fn placeholder(item: &DeriveInput, request: &Request) -> TokenStream {
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let accepts = accepts_all(item, &[]);
    let impls = glue! {
        impl #impl_generics _st::Traced for #ident #type_generics #where_clause {
            fn site(&self) -> &'static _st::Site { ::core::unreachable!() }
            fn trace_state(&self) -> &_st::TraceState { ::core::unreachable!() }
            fn trace_state_mut(&mut self) -> &mut _st::TraceState { ::core::unreachable!() }
            fn record(&self, _: &mut _st::RequestRecorder<'_>) {}
        }
        impl #impl_generics _st::Carrier for #ident #type_generics #where_clause {
            type Request = Self;
            fn position(&self) -> _st::Position { ::core::unreachable!() }
        }
        #accepts
    };
    wrap(request, &impls)
}

fn wrap(request: &Request, impls: &TokenStream) -> TokenStream {
    let import = request.runtime.import();
    glue! {
        const _: () = {
            #import
            #impls
        };
    }
}

fn expand_struct(item: &DeriveInput, request: &Request, recorded: &Recorded) -> TokenStream {
    let Recorded { name, kind, id, attributes, state } = recorded;
    let ident = &item.ident;
    let generics = bounded(item, request);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (keys, count) = (attributes.iter().map(|attribute| &attribute.key), attributes.len());
    let kind = Kind::expand(*kind, &glue!(_st));
    let id = id.as_ref().map(|(member, ty)| {
        let (id, value) = (method("id", ty), field(member, ty));
        glue!({
            // A text or an integer goes without formatting; of other types the trait's method says nothing.
            use _st::OtherId as _;
            out.#id(#value, _st::PlainId(#value).known());
        })
    });
    let recorded = attributes.iter().enumerate().map(expand_attribute);
    let (shared, exclusive) = match state {
        Some((member, ty)) => (
            shared_state(member, ty),
            quote_spanned!(at(ty)=> _st::StateField::exclusive(&mut self.#member)),
        ),
        None => (TokenStream::new(), TokenStream::new()),
    };
    let out = if id.is_none() && attributes.is_empty() { glue!(_) } else { glue!(out) };
    glue! {
        // Each of the user's expressions stands in the expansion once.
        const __STAGETRACE_KEYS: [&::core::primitive::str; #count] = [#(#keys),*];

        #[automatically_derived]
        impl #impl_generics _st::Traced for #ident #type_generics #where_clause {
            fn site(&self) -> &'static _st::Site {
                static __STAGETRACE_INFO: _st::StageInfo =
                    _st::StageInfo::new("", #name, #ROOT_LEVEL, ::core::option::Option::None);
                static __STAGETRACE_SITE: _st::Site = _st::Site::new(
                    _st::Stage::new(&__STAGETRACE_INFO),
                    #kind,
                    &__STAGETRACE_KEYS,
                    "",
                    ::core::file!(),
                    ::core::line!(),
                );
                &__STAGETRACE_SITE
            }

            fn trace_state(&self) -> &_st::TraceState {
                #shared
            }

            fn trace_state_mut(&mut self) -> &mut _st::TraceState {
                #exclusive
            }

            fn record(&self, #out: &mut _st::RequestRecorder<'_>) {
                #id
                #(#recorded)*
            }
        }
    }
}

fn expand_attribute((index, attribute): (usize, &Attribute)) -> TokenStream {
    let Attribute { member, ty, form, .. } = attribute;
    let field = field(member, ty);
    let (name, value) = match form {
        Form::Plain => ("attribute", field),
        Form::Display => ("display", field),
        Form::Debug => ("debug", field),
        Form::Len => ("attribute", quote_spanned!(at(ty)=> &self.#member.len())),
        Form::With(path) => ("attribute", glue!(&#path(#field))),
    };
    let method = method(name, ty);
    glue!(out.#method(__STAGETRACE_KEYS[#index], #value);)
}

/// A reference to a field. The compiler names the field's type when it cannot be recorded.
fn field(member: &Member, ty: &Type) -> TokenStream {
    quote_spanned!(at(ty)=> &self.#member)
}

/// A reference to the trace state, whatever the field's type; the compiler complains of it once.
fn shared_state(member: &Member, ty: &Type) -> TokenStream {
    quote_spanned!(at(ty)=> _st::StateField::shared(&self.#member))
}

/// A method of the recorder, shown at the field's type too.
fn method(name: &str, ty: &Type) -> Ident {
    Ident::new(name, at(ty))
}

fn at(ty: &Type) -> Span {
    Span::mixed_site().located_at(ty.span())
}

fn expand_enum(item: &DeriveInput, request: &Request, delegates: &[Delegate]) -> TokenStream {
    let ident = &item.ident;
    let generics = bounded(item, request);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let delegate = |method: &str, more: &TokenStream| {
        let method = Ident::new(method, Span::call_site());
        let arms = delegates.iter().map(|Delegate { variant, member, ty }| {
            let call = quote_spanned!(at(ty)=> _st::Traced::#method(inner #more));
            glue!(Self::#variant { #member: inner } => #call,)
        });
        glue!(match self { #(#arms)* })
    };
    let none = TokenStream::new();
    let site = delegate("site", &none);
    let trace_state = delegate("trace_state", &none);
    let trace_state_mut = delegate("trace_state_mut", &none);
    let record = delegate("record", &glue!(, out));
    glue! {
        #[automatically_derived]
        impl #impl_generics _st::Traced for #ident #type_generics #where_clause {
            fn site(&self) -> &'static _st::Site {
                #site
            }

            fn trace_state(&self) -> &_st::TraceState {
                #trace_state
            }

            fn trace_state_mut(&mut self) -> &mut _st::TraceState {
                #trace_state_mut
            }

            fn record(&self, out: &mut _st::RequestRecorder<'_>) {
                #record
            }
        }
    }
}

fn expand_carrier(item: &DeriveInput, request: &Request) -> TokenStream {
    let ident = &item.ident;
    let (generics, position) = match &request.body {
        Body::Struct(recorded) => {
            let state = recorded.state.as_ref().map(|(member, ty)| shared_state(member, ty));
            (item.generics.clone(), glue!(#state))
        }
        Body::Enum(_) => (bounded(item, request), glue!(_st::Traced::trace_state(self))),
    };
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    glue! {
        #[automatically_derived]
        impl #impl_generics _st::Carrier for #ident #type_generics #where_clause {
            type Request = Self;

            fn position(&self) -> _st::Position {
                _st::Carrier::position(#position)
            }
        }
    }
}

fn expand_accepts(item: &DeriveInput, request: &Request) -> TokenStream {
    let Some(stages) = &request.stages else {
        let held = match &request.body {
            Body::Struct(_) => &[][..],
            Body::Enum(delegates) => delegates,
        };
        return accepts_all(item, held);
    };
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    glue! {
        #(
            #[automatically_derived]
            impl #impl_generics _st::Accepts<#stages> for #ident #type_generics #where_clause {}
        )*
        #[automatically_derived]
        impl #impl_generics _st::Accepts<_st::Stage> for #ident #type_generics #where_clause {}
    }
}

/// Every set that all `held` requests accept.
fn accepts_all(item: &DeriveInput, held: &[Delegate]) -> TokenStream {
    let ident = &item.ident;
    let set = Ident::new("__Set", Span::mixed_site());
    let mut generics = item.generics.clone();
    generics.params.push(parse_quote!(#set: ?::core::marker::Sized));
    if !held.is_empty() {
        let held = held.iter().map(|one| &one.ty);
        let predicates = &mut generics.make_where_clause().predicates;
        predicates
            .extend(held.map(|ty| -> WherePredicate { parse_quote!(#ty: _st::Accepts<#set>) }));
    }
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (_, type_generics, _) = item.generics.split_for_impl();
    glue! {
        #[automatically_derived]
        impl #impl_generics _st::Accepts<#set> for #ident #type_generics #where_clause {}
    }
}

/// The generics with what recording asks of them: of the recorded fields' types, and only of those
/// that mention a type parameter; or what `bound` says instead.
fn bounded(item: &DeriveInput, request: &Request) -> Generics {
    let mut generics = item.generics.clone();
    let predicates = match &request.bound {
        Some(predicates) => predicates.clone(),
        None => inferred(&item.generics, &request.body),
    };
    if !predicates.is_empty() {
        generics.make_where_clause().predicates.extend(predicates);
    }
    generics
}

fn inferred(generics: &Generics, body: &Body) -> Vec<WherePredicate> {
    let params: Vec<&Ident> = generics.type_params().map(|param| &param.ident).collect();
    let mut predicates = Vec::new();
    let mut require = |ty: &Type, bound: TokenStream| {
        if mentions(&ty.to_token_stream(), &params) {
            predicates.push(parse_quote!(#ty: #bound));
        }
    };
    match body {
        Body::Struct(recorded) => {
            if let Some((_, ty)) = &recorded.id {
                require(ty, glue!(::core::fmt::Display));
            }
            for Attribute { ty, form, .. } in &recorded.attributes {
                match form {
                    Form::Plain => require(ty, glue!(_st::Value)),
                    Form::Display => require(ty, glue!(::core::fmt::Display)),
                    Form::Debug => require(ty, glue!(::core::fmt::Debug)),
                    Form::Len | Form::With(_) => {}
                }
            }
        }
        Body::Enum(delegates) => {
            for Delegate { ty, .. } in delegates {
                require(ty, glue!(_st::Traced));
            }
        }
    }
    predicates
}

fn mentions(tokens: &TokenStream, params: &[&Ident]) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => params.contains(&&ident),
        TokenTree::Group(group) => mentions(&group.stream(), params),
        _ => false,
    })
}

//! `#[request]`: adds the field for the trace to a struct, and derives `Traced`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Expr, Field, Fields, Item, ItemStruct, Meta, Path, Token, punctuated::Punctuated,
};

use crate::{
    args::{self, Arg, Once},
    errors::Errors,
    paths::Runtime,
    traced::CONTAINER_KEYS,
};

/// The field that is added, and its name in serialised requests.
const FIELD: &str = "trace";
const KEY: &str = "_trace_state";

pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let errors = Errors::new();
    let options = Options::read(args, &errors);
    let expansion = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(item)) => expand(options, item, &errors),
        Ok(other) => {
            errors.push(keyword(&other), "`#[request]` goes on a struct with named fields");
            item
        }
        Err(error) => {
            errors.push_error(error);
            item
        }
    };
    let errors = errors.into_tokens();
    quote!(#errors #expansion)
}

struct Options {
    runtime: Runtime,
    /// Leave the key out of serialised requests while the trace is null.
    skip_null: Option<Ident>,
    /// Options of `#[traced(..)]`, handed on as they came.
    traced: Vec<(Ident, Expr)>,
}

impl Options {
    fn read(tokens: TokenStream, errors: &Errors) -> Self {
        let (mut path, mut skip_null, mut traced) = (Once::new(), Once::new(), Vec::new());
        for arg in args::parse(tokens, errors) {
            match arg {
                Arg::Word(key) if key == "skip_null" => skip_null.set(&key, key.clone(), errors),
                Arg::Pair { key, value } if key == "crate" => {
                    if let Some(value) = args::path(&key, &value, "facade::stagetrace", errors) {
                        path.set(&key, value, errors);
                    }
                }
                Arg::Pair { key, value } if CONTAINER_KEYS.contains(&&*key.to_string()) => {
                    traced.push((key, value));
                }
                Arg::Word(key) | Arg::List { key, .. } | Arg::Pair { key, .. } => {
                    refuse(&key, errors)
                }
                Arg::Value(value) => {
                    errors.push(value, "expected options, as in `#[request(name = \"generate\")]`");
                }
            }
        }
        Self { runtime: Runtime::new(path.into_inner()), skip_null: skip_null.into_inner(), traced }
    }
}

fn refuse(key: &Ident, errors: &Errors) {
    let name = key.to_string();
    if name == "skip_null" {
        errors.push(key, "`skip_null` takes no value: write `skip_null` alone");
    } else if CONTAINER_KEYS.contains(&name.as_str()) {
        errors.push(key, format!("write a value after `{key}`: `{key} = ..`"));
    } else {
        let known: Vec<&str> = CONTAINER_KEYS.iter().copied().chain(["skip_null"]).collect();
        args::unknown(key, &known, errors);
    }
}

fn expand(options: Options, mut item: ItemStruct, errors: &Errors) -> TokenStream {
    let serde = Serde::below(&item.attrs);
    check(&options, &item, &serde, errors);
    let Fields::Named(fields) = &mut item.fields else {
        return item.into_token_stream();
    };
    let vis = &item.vis;
    let taken =
        fields.named.iter().any(|field| field.ident.as_ref().is_some_and(|name| name == FIELD));
    if !taken {
        fields.named.push(trace_field(&options, vis, &serde));
    }
    if taken || !errors.is_empty() {
        // Without a derive that would repeat the complaint.
        return without_traced(item);
    }
    let private = options.runtime.private();
    let path = options.runtime.renamed().map(|path| quote!(crate = #path));
    let traced = options.traced.iter().map(|(key, value)| quote!(#key = #value));
    let traced: Vec<TokenStream> = traced.chain(path).collect();
    let traced = (!traced.is_empty()).then(|| quote!(#[traced(#(#traced),*)]));
    quote! {
        #[derive(#private::Traced)]
        #traced
        #item
    }
}

fn check(options: &Options, item: &ItemStruct, serde: &Serde, errors: &Errors) {
    match &item.fields {
        Fields::Named(fields) => {
            let taken = fields.named.iter().filter_map(|field| field.ident.as_ref());
            for name in taken.filter(|name| *name == FIELD) {
                errors.push(
                    name,
                    "`#[request]` adds a field `trace`: rename this one, or derive `Traced` and \
                     mark a field with `#[traced(state)]`",
                );
            }
        }
        Fields::Unnamed(fields) => {
            errors.push(fields, "`#[request]` goes on a struct with named fields")
        }
        Fields::Unit => {
            errors.push(&item.ident, "`#[request]` goes on a struct with named fields: write `{}`")
        }
    }
    for path in derives(&item.attrs).iter().filter(|path| is_traced(path)) {
        errors.push(path, "`#[request]` derives `Traced` itself: remove this one");
    }
    if let Some(key) = &options.skip_null
        && matches!(serde, Serde::No)
    {
        errors.push(
            key,
            "`skip_null` is for structs that derive `Serialize` below: derive it, or remove \
             `skip_null`",
        );
    }
    if matches!(serde, Serde::No)
        && let Some(attr) = serde_attribute(item)
    {
        errors.push(
            attr.path(),
            "no serde derive stands below `#[request]`: write `#[request]` above the derives",
        );
    }
}

fn trace_field(options: &Options, vis: &syn::Visibility, serde: &Serde) -> Field {
    let private = options.runtime.private();
    let skip = options.skip_null.as_ref().map(|_| {
        let is_null = format!("{}::TraceState::is_null", private.to_string().replace(' ', ""));
        quote!(, skip_serializing_if = #is_null)
    });
    let attribute = quote!(serde(default, rename = #KEY #skip));
    let serde = match serde {
        Serde::No => TokenStream::new(),
        Serde::Always => quote!(#[#attribute]),
        Serde::If(conditions) => quote!(#[cfg_attr(any(#(#conditions),*), #attribute)]),
    };
    let name = Ident::new(FIELD, proc_macro2::Span::call_site());
    let declared = quote! {
        /// The trace of this request.
        #[traced(state)]
        #serde
        #vis #name: #private::TraceState
    };
    let parser = Field::parse_named;
    syn::parse::Parser::parse2(parser, declared).unwrap_or_else(|error| {
        unreachable!("the generated field is well-formed: {error}");
    })
}

/// Whether a derive of serde stands below.
enum Serde {
    No,
    Always,
    /// Under these conditions of `cfg_attr`.
    If(Vec<Meta>),
}

impl Serde {
    fn below(attrs: &[Attribute]) -> Self {
        if attrs.iter().any(|attr| derives_serde(&attr.meta)) {
            return Self::Always;
        }
        let conditions: Vec<Meta> =
            attrs.iter().filter_map(|attr| condition_of_serde(&attr.meta)).collect();
        if conditions.is_empty() { Self::No } else { Self::If(conditions) }
    }
}

fn derives_serde(meta: &Meta) -> bool {
    derived(meta).iter().any(|path| {
        let last = path.segments.last();
        last.is_some_and(|last| last.ident == "Serialize" || last.ident == "Deserialize")
    })
}

fn condition_of_serde(meta: &Meta) -> Option<Meta> {
    let Meta::List(list) = meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let all = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let mut all = all.into_iter();
    let condition = all.next()?;
    all.any(|meta| derives_serde(&meta)).then_some(condition)
}

fn derives(attrs: &[Attribute]) -> Vec<Path> {
    attrs.iter().flat_map(|attr| derived(&attr.meta)).collect()
}

fn is_traced(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| last.ident == "Traced")
}

/// The paths in `derive(..)`; nothing for another attribute.
fn derived(meta: &Meta) -> Vec<Path> {
    let Meta::List(list) = meta else { return Vec::new() };
    if !list.path.is_ident("derive") {
        return Vec::new();
    }
    let paths = list.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
    paths.into_iter().flatten().collect()
}

fn serde_attribute(item: &ItemStruct) -> Option<&Attribute> {
    let of_fields = item.fields.iter().flat_map(|field| &field.attrs);
    item.attrs.iter().chain(of_fields).find(|attr| attr.path().is_ident("serde"))
}

fn without_traced(mut item: ItemStruct) -> TokenStream {
    if derives(&item.attrs).iter().any(is_traced) {
        return item.into_token_stream();
    }
    item.attrs.retain(|attr| !attr.path().is_ident("traced"));
    for field in &mut item.fields {
        field.attrs.retain(|attr| !attr.path().is_ident("traced"));
    }
    item.into_token_stream()
}

fn keyword(item: &Item) -> TokenStream {
    match item {
        Item::Enum(item) => item.enum_token.to_token_stream(),
        Item::Union(item) => item.union_token.to_token_stream(),
        Item::Fn(item) => item.sig.fn_token.to_token_stream(),
        item => item.to_token_stream(),
    }
}

//! Expansions as golden files, for review: `tests/golden/<case>.rs` expands to
//! `<case>.expanded.rs`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stagetrace-macros` writes the files anew; read them in the diff.

use std::{env, fs, path::Path};

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, File, ImplItem, Item, ItemImpl, Meta};

macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        $(
            #[test]
            fn $case() {
                check(stringify!($case));
            }
        )*

        #[test]
        fn every_golden_file_is_a_case() {
            let known = [$(stringify!($case)),*];
            for entry in fs::read_dir(folder()).expect("the folder of the golden files") {
                let name = entry.expect("a golden file").file_name();
                let name = name.to_string_lossy();
                let case = name.split('.').next().unwrap_or_default();
                assert!(known.contains(&case), "{name} belongs to no case");
            }
        }
    };
}

cases! {
    async_function,
    async_function_kept,
    attribute_values,
    boxed_future,
    future,
    method_of_trait,
    mistakes,
    never,
    parameters,
    request,
    request_of_serde,
    stage_set,
    sync_function,
    track_caller,
    traced_enum,
    traced_struct,
    without_a_set,
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

fn check(case: &str) {
    let source = fs::read_to_string(folder().join(format!("{case}.rs"))).expect("a case");
    let file = syn::parse_file(&source).expect("a case is well-formed");
    let golden = folder().join(format!("{case}.expanded.rs"));
    let expanded = expand_file(file);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &expanded).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        expanded == expected,
        "{} differs; if it should, write it anew with UPDATE_GOLDEN=1. It expands to:\n{expanded}",
        golden.display()
    );
}

fn expand_file(file: File) -> String {
    let items = file.items.into_iter().map(|item| match item {
        Item::Impl(item) => expand_impl(item),
        item => expand_item(item.to_token_stream(), attrs_of(&item)),
    });
    items.map(|expanded| expanded.pretty()).collect::<Vec<_>>().join("\n")
}

/// An expansion; the arm for builds in which tracing is off, where there is one.
struct Expanded {
    on: TokenStream,
    off: Option<TokenStream>,
}

impl Expanded {
    fn pretty(self) -> String {
        let on = pretty(self.on);
        match self.off.map(pretty) {
            Some(off) => format!("{on}\n// With `--cfg stagetrace_off`:\n\n{off}"),
            None => on,
        }
    }
}

fn pretty(tokens: TokenStream) -> String {
    let file = syn::parse2(tokens.clone());
    let file = file.unwrap_or_else(|error| panic!("{error} in the expansion:\n{tokens}"));
    prettyplease::unparse(&file)
}

fn expand_impl(mut item: ItemImpl) -> Expanded {
    let items = std::mem::take(&mut item.items);
    let (mut on, mut off) = (TokenStream::new(), TokenStream::new());
    for method in items {
        let attrs = match &method {
            ImplItem::Fn(method) => method.attrs.clone(),
            _ => Vec::new(),
        };
        let expanded = expand_item(method.to_token_stream(), attrs);
        off.extend(expanded.off.unwrap_or_else(|| expanded.on.clone()));
        on.extend(expanded.on);
    }
    let (generics, _, where_clause) = item.generics.split_for_impl();
    let of_trait = item.trait_.as_ref().map(|(path, of)| quote!(#path #of));
    let ty = &item.self_ty;
    let wrap = |body: TokenStream| quote!(impl #generics #of_trait #ty #where_clause { #body });
    Expanded { on: wrap(on), off: Some(wrap(off)) }
}

fn attrs_of(item: &Item) -> Vec<Attribute> {
    match item {
        Item::Fn(item) => item.attrs.clone(),
        Item::Struct(item) => item.attrs.clone(),
        Item::Enum(item) => item.attrs.clone(),
        _ => Vec::new(),
    }
}

/// Expands the first of our macros on an item, and shows the item only where the macro replaces it.
fn expand_item(item: TokenStream, attrs: Vec<Attribute>) -> Expanded {
    for attr in &attrs {
        let args = match &attr.meta {
            Meta::List(list) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        let name = attr.path().to_token_stream().to_string();
        let expand = match name.as_str() {
            "stage" => crate::stage::attribute,
            "request" => crate::request::attribute,
            "derive" if args.to_string() == "Stages" => {
                return derived(crate::stages::derive(item));
            }
            "derive" if args.to_string() == "Traced" => {
                return derived(crate::traced::derive(item));
            }
            _ => continue,
        };
        return arms(expand(args, without(item, attr)));
    }
    derived(item)
}

fn derived(on: TokenStream) -> Expanded {
    Expanded { on, off: None }
}

/// The item without the attribute that is being expanded.
fn without(item: TokenStream, attr: &Attribute) -> TokenStream {
    let (all, attr) = (item.to_string(), attr.to_token_stream().to_string());
    all.replacen(&attr, "", 1).parse().expect("an item without one of its attributes")
}

/// Takes `on_off! { on { .. } off { .. } }` apart.
fn arms(expansion: TokenStream) -> Expanded {
    let is_choice = expansion.to_string().contains("on_off !");
    let last = expansion.clone().into_iter().last();
    match last {
        Some(TokenTree::Group(choice)) if is_choice => {
            let arms = choice.stream().into_iter().filter_map(|token| match token {
                TokenTree::Group(arm) => Some(arm.stream()),
                _ => None,
            });
            let [on, off] = arms.collect::<Vec<_>>().try_into().expect("two arms");
            Expanded { on, off: Some(off) }
        }
        _ => derived(expansion),
    }
}

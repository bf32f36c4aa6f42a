//! The arguments of `#[stage(..)]`.

use proc_macro2::TokenStream;
use syn::{Expr, Ident, Token, ext::IdentExt};

use crate::{
    args::{self, Arg, Once},
    errors::Errors,
    kind::Kind,
    paths::Runtime,
};

/// Options that are a word alone.
pub(super) const WORDS: [&str; 6] = ["err", "no_err", "ret", "detached", "future", "stream"];
/// Options with a value or a list.
const KEYS: [&str; 6] = ["attrs", "name", "kind", "batch", "share", "crate"];

/// The arguments as they were written.
pub(super) struct Given {
    /// What stands alone, in order: the stage, and the place of the request.
    pub(super) positional: Vec<Expr>,
    pub(super) name: Option<(Ident, Expr)>,
    pub(super) attrs: Vec<(Key, Expr)>,
    pub(super) kind: Option<Kind>,
    pub(super) err: Option<Ident>,
    pub(super) no_err: Option<Ident>,
    pub(super) ret: Option<Ident>,
    pub(super) detached: Option<Ident>,
    pub(super) future: Option<Ident>,
    pub(super) runtime: Runtime,
}

/// An attribute's key: a string literal or the path of a constant.
pub(super) type Key = Expr;

pub(super) fn read(tokens: TokenStream, errors: &Errors) -> Given {
    let mut positional = Vec::new();
    let (mut name, mut attrs, mut kind, mut path) =
        (Once::new(), Once::new(), Once::new(), Once::new());
    let [mut err, mut no_err, mut ret, mut detached, mut future] = [const { Once::new() }; 5];
    for arg in args::parse(tokens, errors) {
        match arg {
            Arg::Word(word) => match word.to_string().as_str() {
                "err" => err.set(&word, word.clone(), errors),
                "no_err" => no_err.set(&word, word.clone(), errors),
                "ret" => ret.set(&word, word.clone(), errors),
                "detached" => detached.set(&word, word.clone(), errors),
                "future" => future.set(&word, word.clone(), errors),
                "stream" => not_yet(&word, errors),
                key if KEYS.contains(&key) => needs_value(&word, errors),
                _ => positional.push(word_as_expr(&word)),
            },
            Arg::Value(value) => positional.push(value),
            Arg::Pair { key, value } => match key.to_string().as_str() {
                "name" => name.set(&key, (key.clone(), value), errors),
                "kind" => {
                    if let Some(value) = Kind::read(&value, errors) {
                        kind.set(&key, value, errors);
                    }
                }
                "crate" => {
                    if let Some(value) = args::path(&key, &value, "facade::stagetrace", errors) {
                        path.set(&key, value, errors);
                    }
                }
                "batch" | "share" => not_yet(&key, errors),
                "attrs" => needs_value(&key, errors),
                _ => refuse(&key, errors),
            },
            Arg::List { key, tokens } => match key.to_string().as_str() {
                "attrs" => attrs.set(&key, read_attrs(tokens, errors), errors),
                "batch" | "share" => not_yet(&key, errors),
                "name" | "kind" | "crate" => needs_value(&key, errors),
                _ => refuse(&key, errors),
            },
        }
    }
    Given {
        positional,
        name: name.into_inner(),
        attrs: attrs.into_inner().unwrap_or_default(),
        kind: kind.into_inner(),
        err: err.into_inner(),
        no_err: no_err.into_inner(),
        ret: ret.into_inner(),
        detached: detached.into_inner(),
        future: future.into_inner(),
        runtime: Runtime::new(path.into_inner()),
    }
}

/// `KEY = expr, ..`, the keys being string literals or paths of constants.
fn read_attrs(tokens: TokenStream, errors: &Errors) -> Vec<(Key, Expr)> {
    args::separated(tokens, errors, |input| {
        let key: Expr = if input.peek(syn::Lit) {
            Expr::Lit(input.parse()?)
        } else {
            Expr::Path(input.parse()?)
        };
        if input.parse::<Option<Token![=]>>()?.is_none() {
            let usage = match args::as_path(&key).and_then(syn::Path::get_ident) {
                Some(word) => format!("`\"{word}\" = {word}`"),
                None => "`\"diffusion.steps\" = steps`".to_owned(),
            };
            errors.push(key, format!("an attribute has a key and a value: write {usage}"));
            return Ok(None);
        }
        let value = args::value_after(input, &key, errors)?;
        Ok(value.map(|value| (key, value)))
    })
}

fn refuse(key: &Ident, errors: &Errors) {
    if WORDS.contains(&&*key.to_string()) {
        errors.push(key, format!("`{key}` takes no value: write `{key}` alone"));
    } else {
        unknown(key, errors);
    }
}

fn needs_value(key: &Ident, errors: &Errors) {
    let usage = match key.to_string().as_str() {
        "attrs" => "attrs(\"key\" = value, ..)",
        "name" => "name = CONSTANT",
        "kind" => "kind = server",
        "batch" | "share" => return not_yet(key, errors),
        _ => "crate = path",
    };
    errors.push(key, format!("`{key}` is written `{usage}`"));
}

fn not_yet(key: &Ident, errors: &Errors) {
    let instead = match key.to_string().as_str() {
        "batch" => "write `#[stage(STAGE, request)]` on the function that serves one request",
        "share" => "leave it out: shares belong to `batch`, which is not available either",
        _ => "write `#[stage]` on the function that makes one item, or `span!` around the stream",
    };
    errors.push(key, format!("`{key}` is not available yet: {instead}"));
}

/// Reports a word that is no option.
pub(super) fn unknown(key: &Ident, errors: &Errors) {
    let known: Vec<&str> = KEYS.iter().chain(&WORDS).copied().collect();
    args::unknown(key, &known, errors);
}

fn word_as_expr(word: &Ident) -> Expr {
    let path = if word.unraw() == "self" {
        syn::Path::from(Ident::new("self", word.span()))
    } else {
        syn::Path::from(word.clone())
    };
    Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path })
}

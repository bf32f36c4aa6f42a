//! The tokens of an attribute, split into arguments; mistakes that any attribute can contain.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Expr, ExprLit, ExprPath, Ident, Lit, LitInt, LitStr, Meta, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    token,
};

use crate::errors::Errors;

/// One argument of an attribute.
pub(crate) enum Arg {
    /// An expression alone: `DiffStage::GpuForward`, `job.req`, `"decode"`.
    Value(Expr),
    /// A word alone: an option such as `err`, or a place such as `req`.
    Word(Ident),
    /// `key = value`.
    Pair { key: Ident, value: Expr },
    /// `key(..)`.
    List { key: Ident, tokens: TokenStream },
}

/// Splits the arguments of an attribute. What cannot be read is reported, and skipped up to its
/// comma.
pub(crate) fn parse(tokens: TokenStream, errors: &Errors) -> Vec<Arg> {
    separated(tokens, errors, |input| parse_arg(input, errors))
}

/// The arguments of all `#[name(..)]` among `attrs`.
pub(crate) fn of_attributes(attrs: &[Attribute], name: &str, errors: &Errors) -> Vec<Arg> {
    let mut args = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        match &attr.meta {
            Meta::List(list) => args.extend(parse(list.tokens.clone(), errors)),
            meta => errors.push(meta, format!("write the options in parentheses: `{name}(..)`")),
        }
    }
    args
}

/// Reads comma-separated things. What `read` refuses is reported, and skipped up to its comma.
pub(crate) fn separated<T>(
    tokens: TokenStream,
    errors: &Errors,
    read: impl Fn(ParseStream<'_>) -> syn::Result<Option<T>>,
) -> Vec<T> {
    let parser = |input: ParseStream<'_>| {
        let mut found = Vec::new();
        while !input.is_empty() {
            match read(input) {
                Ok(one) => found.extend(one),
                Err(error) => {
                    errors.push_error(error);
                    skip_to_comma(input)?;
                }
            }
            if !input.is_empty() && input.parse::<Option<Token![,]>>()?.is_none() {
                errors.push_error(input.error("expected `,`"));
                skip_to_comma(input)?;
                input.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(found)
    };
    parser.parse2(tokens).unwrap_or_else(|error| {
        errors.push_error(error);
        Vec::new()
    })
}

/// Reads an expression after `key =`; `None`, and a mistake on the key, if there is none.
pub(crate) fn value_after(
    input: ParseStream<'_>,
    key: &impl quote::ToTokens,
    errors: &Errors,
) -> syn::Result<Option<Expr>> {
    if input.is_empty() || input.peek(Token![,]) {
        errors.push(key, "a value is missing after `=`");
        return Ok(None);
    }
    input.parse().map(Some)
}

/// A setting that may be given once.
pub(crate) struct Once<T>(Option<T>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Keeps `value`, or reports that `key` was given before.
    pub(crate) fn set(&mut self, key: &Ident, value: T, errors: &Errors) {
        if self.0.is_some() {
            errors.push(key, format!("`{key}` is given twice: keep one"));
        } else {
            self.0 = Some(value);
        }
    }

    pub(crate) fn into_inner(self) -> Option<T> {
        self.0
    }
}

/// Reports an option that does not exist, naming the one that was probably meant, else all of them.
pub(crate) fn unknown(key: &Ident, known: &[&str], errors: &Errors) {
    let name = key.to_string();
    match nearest(&name, known) {
        Some(near) => errors.push(key, format!("unknown option `{name}`; did you mean `{near}`?")),
        None => errors.push(key, format!("unknown option `{name}`; expected {}", one_of(known))),
    }
}

/// The known word that `word` is probably a misspelling of.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|known| (distance(word, known), *known))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

/// The string literal that `key` takes.
pub(crate) fn string(key: &Ident, value: &Expr, errors: &Errors) -> Option<LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) => return Some(text.clone()),
        _ => errors.push(value, format!("`{key}` takes a string literal: `{key} = \"..\"`")),
    }
    None
}

/// The integer literal that `key` takes.
pub(crate) fn integer<'a>(key: &Ident, value: &'a Expr, errors: &Errors) -> Option<&'a LitInt> {
    match literal(value) {
        Some(Lit::Int(number)) => return Some(number),
        _ => errors.push(value, format!("`{key}` takes an integer literal: `{key} = 1`")),
    }
    None
}

/// The path that `key` takes.
pub(crate) fn path(key: &Ident, value: &Expr, example: &str, errors: &Errors) -> Option<Path> {
    match as_path(value) {
        Some(path) => return Some(path.clone()),
        None => errors.push(value, format!("`{key}` takes a path: `{key} = {example}`")),
    }
    None
}

/// The literal that an expression is.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match ungrouped(value) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

/// The path that an expression is.
pub(crate) fn as_path(value: &Expr) -> Option<&Path> {
    match ungrouped(value) {
        Expr::Path(ExprPath { qself: None, path, .. }) => Some(path),
        _ => None,
    }
}

/// The expression inside of the invisible groups that `macro_rules!` puts around its fragments.
pub(crate) fn ungrouped(mut value: &Expr) -> &Expr {
    while let Expr::Group(group) = value {
        value = &group.expr;
    }
    value
}

fn parse_arg(input: ParseStream<'_>, errors: &Errors) -> syn::Result<Option<Arg>> {
    if input.peek(Ident::peek_any) {
        let ahead = input.fork();
        let key = Ident::parse_any(&ahead)?;
        if ahead.peek(Token![=]) && !ahead.peek(Token![==]) && !ahead.peek(Token![=>]) {
            Ident::parse_any(input)?;
            input.parse::<Token![=]>()?;
            let value = value_after(input, &key, errors)?;
            return Ok(value.map(|value| Arg::Pair { key, value }));
        }
        if ahead.peek(token::Paren) {
            Ident::parse_any(input)?;
            let content;
            syn::parenthesized!(content in input);
            let tokens = content.parse()?;
            return Ok(Some(Arg::List { key, tokens }));
        }
        if ahead.is_empty() || ahead.peek(Token![,]) {
            Ident::parse_any(input)?;
            return Ok(Some(Arg::Word(key)));
        }
    }
    input.parse().map(|value| Some(Arg::Value(value)))
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Edits between two words: insert, delete, replace, or swap two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["attrs", "name", "no_err", "err", "ret"];
        assert_eq!(nearest("nmae", &known), Some("name"));
        assert_eq!(nearest("atrs", &known), Some("attrs"));
        assert_eq!(nearest("no_er", &known), Some("no_err"));
        assert_eq!(nearest("parent", &known), None);
    }

    #[test]
    fn a_mistake_does_not_hide_the_arguments_behind_it() {
        let errors = Errors::new();
        let args = parse(quote::quote!(a b, name = , err, + , c = 1), &errors);
        assert_eq!(args.len(), 3);
        assert!(matches!(&args[0], Arg::Value(_)));
        assert!(matches!(&args[1], Arg::Word(word) if word == "err"));
        assert!(matches!(&args[2], Arg::Pair { key, .. } if key == "c"));
        let reported = errors.into_tokens().to_string();
        assert_eq!(reported.matches("compile_error").count(), 3);
    }
}

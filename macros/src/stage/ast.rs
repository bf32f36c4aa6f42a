//! The function under the attribute: its signature parsed, its body kept as it came.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{
    Attribute, Signature, Token, Visibility,
    parse::{ParseStream, Parser},
    token,
};

use crate::errors::Errors;

/// A function as the user wrote it.
pub(super) struct Function {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
    pub(super) body: Body,
}

pub(super) enum Body {
    /// The block, braces included. Its statements are never parsed, and never put into other
    /// braces, which would change the edition by which they are compiled.
    Block {
        /// `#![..]` at the beginning, which are only allowed in a function's outermost block.
        inner_attrs: TokenStream,
        block: Group,
    },
    Missing(Token![;]),
}

/// Reads the function; reports what is none.
pub(super) fn read(item: TokenStream, errors: &Errors) -> Option<Function> {
    match parse_function.parse2(item) {
        Ok(function) => Some(function),
        Err(error) => {
            errors.push_error(error);
            None
        }
    }
}

fn parse_function(input: ParseStream<'_>) -> syn::Result<Function> {
    let attrs = input.call(Attribute::parse_outer)?;
    let vis = input.parse()?;
    if !begins_function(input) {
        let message =
            "`#[stage]` goes on a function; a set of stages is an enum with `#[derive(Stages)]`";
        return Err(input.error(message));
    }
    let sig = input.parse()?;
    let body =
        if input.peek(Token![;]) { Body::Missing(input.parse()?) } else { parse_block(input)? };
    Ok(Function { attrs, vis, sig, body })
}

fn begins_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    loop {
        if ahead.peek(Token![fn]) {
            return true;
        }
        let qualifier = ahead.peek(Token![const])
            || ahead.peek(Token![async])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern])
            || ahead.peek(syn::LitStr);
        if !qualifier || ahead.parse::<TokenTree>().is_err() {
            return false;
        }
    }
}

fn parse_block(input: ParseStream<'_>) -> syn::Result<Body> {
    let Some(block) = next_block(input)? else {
        return Err(input.error("expected the function's block, or `;`"));
    };
    let split = |content: ParseStream<'_>| {
        let inner = content.call(Attribute::parse_inner)?;
        let rest: TokenStream = content.parse()?;
        Ok((inner, rest))
    };
    let (inner, rest) = split.parse2(block.stream())?;
    let block = if inner.is_empty() {
        block
    } else {
        let mut without = Group::new(Delimiter::Brace, rest);
        without.set_span(block.span());
        without
    };
    Ok(Body::Block { inner_attrs: quote::quote!(#(#inner)*), block })
}

/// The group in braces that comes next, taken out of the invisible groups of `macro_rules!`.
fn next_block(input: ParseStream<'_>) -> syn::Result<Option<Group>> {
    if !input.peek(token::Brace) {
        return Ok(None);
    }
    let mut next: TokenTree = input.parse()?;
    loop {
        match next {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return Ok(Some(group));
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                match group.stream().into_iter().next() {
                    Some(inner) => next = inner,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        }
    }
}

//! Rules across attributes: one id, one state, one form for each attribute, no key twice.

use std::collections::HashMap;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, Lit, Member, Path, Type, WherePredicate};

use super::ast::{Container, Declared, Delegate, Field, Form, Shape};
use crate::{args, errors::Errors, kind::Kind, names, paths::Runtime};

/// A request that can be generated.
pub(super) struct Request {
    pub(super) runtime: Runtime,
    pub(super) stages: Option<Vec<Path>>,
    pub(super) bound: Option<Vec<WherePredicate>>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Struct(Box<Recorded>),
    Enum(Vec<Delegate>),
}

/// A struct's own name and fields.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) kind: Option<Kind>,
    pub(super) id: Option<(Member, Type)>,
    pub(super) attributes: Vec<Attribute>,
    /// `None` only after an error.
    pub(super) state: Option<(Member, Type)>,
}

/// A field that is recorded.
pub(super) struct Attribute {
    pub(super) key: Expr,
    pub(super) member: Member,
    pub(super) ty: Type,
    pub(super) form: Form,
}

pub(super) fn check(declared: Declared, errors: &Errors) -> Request {
    let Declared { ident, container, shape } = declared;
    check_stages(container.stages.as_deref(), errors);
    let body = match shape {
        Shape::Struct(fields) => check_struct(&ident, &container, &fields, errors),
        Shape::Enum(delegates) => check_enum(&ident, &container, delegates, errors),
        Shape::Unusable => Body::Enum(Vec::new()),
    };
    Request { runtime: container.runtime, stages: container.stages, bound: container.bound, body }
}

fn check_stages(stages: Option<&[Path]>, errors: &Errors) {
    let mut seen = Vec::new();
    for path in stages.unwrap_or_default() {
        let text = path.to_token_stream().to_string();
        if seen.contains(&text) {
            errors.push(path, format!("`{text}` is listed twice: keep one"));
        }
        seen.push(text);
    }
}

fn check_enum(
    ident: &Ident,
    container: &Container,
    delegates: Vec<Delegate>,
    errors: &Errors,
) -> Body {
    for key in container.keys.iter().filter(|key| *key == "name" || *key == "kind") {
        errors.push(
            key,
            format!(
                "`{key}` is not expected here; it belongs on the requests that the variants hold"
            ),
        );
    }
    if delegates.is_empty() && errors.is_empty() {
        errors.push(ident, "a traced enum needs variants, each of which holds a traced request");
    }
    Body::Enum(delegates)
}

fn check_struct(ident: &Ident, container: &Container, fields: &[Field], errors: &Errors) -> Body {
    if let Some(name) = &container.name
        && let Some(mistake) = names::span_mistake(&name.value())
    {
        errors.push(name, mistake);
    }
    let ids = fields.iter().filter_map(|field| Some((field.id.as_ref()?, field)));
    let id = only_one(ids, "the id", errors).map(|field| (field.member.clone(), field.ty.clone()));
    let attributes = fields.iter().filter_map(|field| check_attribute(field, errors)).collect();
    check_keys(fields, errors);
    let name = match &container.name {
        Some(name) => name.value(),
        None => names::exported(ident),
    };
    let state = check_state(ident, fields, errors);
    Body::Struct(Box::new(Recorded { name, kind: container.kind, id, attributes, state }))
}

/// The first of the marked fields; the others are mistakes.
fn only_one<'a>(
    mut marked: impl Iterator<Item = (&'a Ident, &'a Field)>,
    what: &str,
    errors: &Errors,
) -> Option<&'a Field> {
    let (_, first) = marked.next()?;
    for (mark, _) in marked {
        let first = first.member.to_token_stream();
        errors.push(mark, format!("`{first}` is {what} already: mark one field"));
    }
    Some(first)
}

fn check_state(ident: &Ident, fields: &[Field], errors: &Errors) -> Option<(Member, Type)> {
    let states = fields.iter().filter_map(|field| Some((field.state.as_ref()?, field)));
    if let Some(state) = only_one(states, "the trace state", errors) {
        let recorded = state.attr.as_ref().map(|(key, _)| key).or(state.id.as_ref());
        if let Some(key) = recorded {
            errors.push(key, "the trace state is not recorded itself: remove this");
        }
        return Some((state.member.clone(), state.ty.clone()));
    }
    match fields.iter().find(|field| is_trace_state(&field.ty)) {
        Some(field) => errors.push(
            &field.ty,
            "this field looks like the trace state: mark it with `#[traced(state)]`",
        ),
        None => errors.push(
            ident,
            "a request needs a field for its trace: add `#[traced(state)] trace: TraceState`, or \
             write `#[stagetrace::request]` above the derives, which adds it",
        ),
    }
    None
}

fn is_trace_state(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| last.ident == "TraceState")
        }
        _ => false,
    }
}

fn check_attribute(field: &Field, errors: &Errors) -> Option<Attribute> {
    for (option, _) in field.forms.iter().skip(1) {
        errors.push(option, "an attribute is recorded in one way: keep one");
    }
    let form = field.forms.first();
    let Some((_, key)) = &field.attr else {
        if let Some((option, _)) = form {
            errors.push(
                option,
                format!("`{option}` says how `attr` is recorded: write `attr = \"..\", {option}`"),
            );
        }
        return None;
    };
    Some(Attribute {
        key: key.clone(),
        member: field.member.clone(),
        ty: field.ty.clone(),
        form: form.map_or(Form::Plain, |(_, form)| form.clone()),
    })
}

fn check_keys(fields: &[Field], errors: &Errors) {
    let mut seen: HashMap<String, &Member> = HashMap::new();
    for field in fields {
        let Some((_, key)) = &field.attr else { continue };
        let text = match args::literal(key) {
            Some(Lit::Str(literal)) => {
                if let Some(mistake) = names::key_mistake(&literal.value()) {
                    errors.push(literal, mistake);
                }
                format!("\"{}\"", literal.value())
            }
            _ => key.to_token_stream().to_string(),
        };
        if let Some(first) = seen.get(&text) {
            let first = first.to_token_stream();
            errors.push(key, format!("the key {text} is that of `{first}` already: write another"));
        }
        seen.insert(text, &field.member);
    }
}

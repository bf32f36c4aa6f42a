//! What the user wrote: `#[traced(..)]` on the container and on its fields.

use proc_macro2::TokenStream;
use syn::{
    Attribute, Data, DeriveInput, Expr, Fields, Ident, Index, Lit, LitStr, Member, Path, Type,
    WherePredicate, parse::Parser, punctuated::Punctuated,
};

use crate::{
    args::{self, Arg, Once},
    errors::Errors,
    kind::Kind,
    paths::Runtime,
};

/// Options of the container.
pub(crate) const CONTAINER_KEYS: [&str; 5] = ["name", "stages", "kind", "bound", "crate"];
/// Options of a field.
const FIELD_KEYS: [&str; 7] = ["id", "state", "attr", "display", "debug", "len", "with"];

/// A request as it was written.
pub(super) struct Declared {
    pub(super) ident: Ident,
    pub(super) container: Container,
    pub(super) shape: Shape,
}

pub(super) struct Container {
    pub(super) runtime: Runtime,
    pub(super) name: Option<LitStr>,
    pub(super) stages: Option<Vec<Path>>,
    pub(super) kind: Option<Kind>,
    pub(super) bound: Option<Vec<WherePredicate>>,
    /// The keys that were given, for messages.
    pub(super) keys: Vec<Ident>,
}

pub(super) enum Shape {
    Struct(Vec<Field>),
    Enum(Vec<Delegate>),
    /// A union, which was reported.
    Unusable,
}

/// A field of a struct.
pub(super) struct Field {
    pub(super) member: Member,
    pub(super) ty: Type,
    pub(super) id: Option<Ident>,
    pub(super) state: Option<Ident>,
    pub(super) attr: Option<(Ident, Expr)>,
    /// How the attribute is recorded; `(option, form)` each, of which one may be given.
    pub(super) forms: Vec<(Ident, Form)>,
}

/// How a field becomes a value.
#[derive(Clone)]
pub(super) enum Form {
    Plain,
    Display,
    Debug,
    Len,
    With(Path),
}

/// A variant that holds a request.
pub(super) struct Delegate {
    pub(super) variant: Ident,
    pub(super) member: Member,
    pub(super) ty: Type,
}

pub(super) fn read(item: &DeriveInput, errors: &Errors) -> Declared {
    let container = read_container(&item.attrs, errors);
    let shape = match &item.data {
        Data::Struct(data) => Shape::Struct(read_fields(&data.fields, errors)),
        Data::Enum(data) => Shape::Enum(
            data.variants.iter().filter_map(|variant| read_delegate(variant, errors)).collect(),
        ),
        Data::Union(data) => {
            errors.push(
                data.union_token,
                "`Traced` is derived on a struct, or on an enum of requests: write `struct`",
            );
            Shape::Unusable
        }
    };
    Declared { ident: item.ident.clone(), container, shape }
}

fn read_container(attrs: &[Attribute], errors: &Errors) -> Container {
    let (mut path, mut name, mut stages) = (Once::new(), Once::new(), Once::new());
    let (mut kind, mut bound) = (Once::new(), Once::new());
    let mut keys = Vec::new();
    for arg in args::of_attributes(attrs, "traced", errors) {
        let (key, value) = match arg {
            Arg::Pair { key, value } => (key, value),
            Arg::Word(key) | Arg::List { key, .. } => {
                missing_value_or_unknown(&key, errors);
                continue;
            }
            Arg::Value(value) => {
                errors.push(value, format!("expected {}", args::one_of(&CONTAINER_KEYS)));
                continue;
            }
        };
        match key.to_string().as_str() {
            "crate" => {
                if let Some(value) = args::path(&key, &value, "facade::stagetrace", errors) {
                    path.set(&key, value, errors);
                }
            }
            "name" => {
                if let Some(text) = args::string(&key, &value, errors) {
                    name.set(&key, text, errors);
                }
            }
            "stages" => stages.set(&key, read_stages(&value, errors), errors),
            "kind" => {
                if let Some(value) = Kind::read(&value, errors) {
                    kind.set(&key, value, errors);
                }
            }
            "bound" => {
                if let Some(predicates) = read_bound(&key, &value, errors) {
                    bound.set(&key, predicates, errors);
                }
            }
            _ => {
                missing_value_or_unknown(&key, errors);
                continue;
            }
        }
        keys.push(key);
    }
    Container {
        runtime: Runtime::new(path.into_inner()),
        name: name.into_inner(),
        stages: stages.into_inner(),
        kind: kind.into_inner(),
        bound: bound.into_inner(),
        keys,
    }
}

fn missing_value_or_unknown(key: &Ident, errors: &Errors) {
    let name = key.to_string();
    if CONTAINER_KEYS.contains(&name.as_str()) {
        errors.push(key, format!("write a value after `{key}`: `{key} = ..`"));
    } else if FIELD_KEYS.contains(&name.as_str()) {
        errors.push(key, format!("`{key}` is not expected here; it belongs on a field"));
    } else {
        args::unknown(key, &CONTAINER_KEYS, errors);
    }
}

fn read_stages(value: &Expr, errors: &Errors) -> Vec<Path> {
    let listed: Vec<&Expr> = match args::ungrouped(value) {
        Expr::Array(array) => array.elems.iter().collect(),
        one => vec![one],
    };
    if listed.is_empty() {
        errors.push(value, "list at least one stage set, or leave `stages` out to accept all");
    }
    let paths = listed.into_iter().filter_map(|one| {
        let path = args::as_path(one);
        if path.is_none() {
            errors.push(
                one,
                "`stages` takes stage sets: `stages = DiffStage` or `stages = [Prefill, Decode]`",
            );
        }
        path.cloned()
    });
    paths.collect()
}

fn read_bound(key: &Ident, value: &Expr, errors: &Errors) -> Option<Vec<WherePredicate>> {
    let text = args::string(key, value, errors)?;
    let parser = Punctuated::<WherePredicate, syn::Token![,]>::parse_terminated;
    let tokens: TokenStream = match text.parse() {
        Ok(tokens) => tokens,
        Err(error) => {
            errors.push_error(error);
            return None;
        }
    };
    match parser.parse2(tokens) {
        Ok(predicates) => Some(predicates.into_iter().collect()),
        Err(error) => {
            errors.push(
                text,
                format!("`bound` takes where-predicates, as in `\"T: Display\"`: {error}"),
            );
            None
        }
    }
}

fn read_fields(fields: &Fields, errors: &Errors) -> Vec<Field> {
    fields.iter().enumerate().map(|(index, field)| read_field(index, field, errors)).collect()
}

fn member_of(index: usize, field: &syn::Field) -> Member {
    match &field.ident {
        Some(name) => Member::Named(name.clone()),
        None => Member::Unnamed(Index::from(index)),
    }
}

fn read_field(index: usize, field: &syn::Field, errors: &Errors) -> Field {
    let (mut id, mut state, mut attr) = (Once::new(), Once::new(), Once::new());
    let mut forms = Vec::new();
    for arg in args::of_attributes(&field.attrs, "traced", errors) {
        match arg {
            Arg::Word(key) if key == "id" => id.set(&key, key.clone(), errors),
            Arg::Word(key) if key == "state" => state.set(&key, key.clone(), errors),
            Arg::Word(key) if key == "display" => forms.push((key, Form::Display)),
            Arg::Word(key) if key == "debug" => forms.push((key, Form::Debug)),
            Arg::Word(key) if key == "len" => forms.push((key, Form::Len)),
            Arg::Pair { key, value } if key == "with" => {
                if let Some(path) = args::path(&key, &value, "shorten", errors) {
                    forms.push((key, Form::With(path)));
                }
            }
            Arg::Pair { key, value } if key == "attr" => {
                if is_key(&value, errors) {
                    attr.set(&key, (key.clone(), value), errors);
                }
            }
            Arg::Word(key) | Arg::Pair { key, .. } | Arg::List { key, .. } => {
                refuse_field_key(&key, errors);
            }
            Arg::Value(value) => {
                errors.push(value, format!("expected {}", args::one_of(&FIELD_KEYS)));
            }
        }
    }
    Field {
        member: member_of(index, field),
        ty: field.ty.clone(),
        id: id.into_inner(),
        state: state.into_inner(),
        attr: attr.into_inner(),
        forms,
    }
}

fn refuse_field_key(key: &Ident, errors: &Errors) {
    let name = key.to_string();
    match name.as_str() {
        "attr" => errors.push(key, "write the attribute's key: `attr = \"diffusion.steps\"`"),
        "with" => errors.push(key, "write the function's path: `with = path::to::function`"),
        "id" | "state" | "display" | "debug" | "len" => {
            errors.push(key, format!("`{key}` takes no value: write `{key}` alone"));
        }
        name if CONTAINER_KEYS.contains(&name) => {
            errors.push(key, format!("`{key}` is not expected here; it belongs on the struct"));
        }
        _ => args::unknown(key, &FIELD_KEYS, errors),
    }
}

/// Whether `value` can be an attribute's key: a string literal or the path of a constant.
fn is_key(value: &Expr, errors: &Errors) -> bool {
    let fine = match args::literal(value) {
        Some(literal) => matches!(literal, Lit::Str(_)),
        None => args::as_path(value).is_some(),
    };
    if !fine {
        errors.push(value, "a key is a string literal, or the path of a `&'static str` constant");
    }
    fine
}

fn read_delegate(variant: &syn::Variant, errors: &Errors) -> Option<Delegate> {
    for attr in variant.attrs.iter().chain(variant.fields.iter().flat_map(|field| &field.attrs)) {
        if attr.path().is_ident("traced") {
            errors
                .push(attr, "not expected here; it belongs on the request that the variant holds");
        }
    }
    let mut fields = variant.fields.iter().enumerate();
    match (fields.next(), fields.next()) {
        (Some((index, field)), None) => Some(Delegate {
            variant: variant.ident.clone(),
            member: member_of(index, field),
            ty: field.ty.clone(),
        }),
        _ => {
            errors.push(
                &variant.ident,
                "a variant of a traced enum holds exactly one field, which is a traced request",
            );
            None
        }
    }
}

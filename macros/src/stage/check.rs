//! Rules between the options and the function.

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{
    Attribute, Expr, GenericParam, Lit, Path, ReturnType, Signature, Visibility, ext::IdentExt,
};

use super::{
    ast::{Body, Function},
    options::{self, Given, Key, WORDS},
    params,
    returns::{self, Returns},
};
use crate::{args, errors::Errors, kind::Kind, names, paths::Runtime};

/// A staged function that can be generated.
pub(super) struct Checked {
    pub(super) runtime: Runtime,
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
    pub(super) inner_attrs: TokenStream,
    pub(super) block: Group,
    pub(super) returns: Returns,
    pub(super) stage: Named,
    pub(super) place: Option<Expr>,
    pub(super) values: Vec<(Key, Expr)>,
    pub(super) kind: Option<Kind>,
    pub(super) mode: Mode,
    pub(super) ret: bool,
    pub(super) detached: bool,
}

/// By what the spans are named.
pub(super) enum Named {
    /// A stage of a set, or a `Stage` constant.
    Stage(Path),
    /// A name without a set: a literal or a constant.
    Free(Expr),
}

/// How the returned value is judged.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Default,
    /// With the place of the option, where an error without text is shown.
    Err(Span),
    NoErr,
}

/// Checks everything, and gives the stage if the essential parts are there.
pub(super) fn check(given: Given, function: Function, errors: &Errors) -> Option<Checked> {
    let (stage, place) = stage_and_place(&given, &function.sig, errors);
    check_values(&given.attrs, &function.sig, errors);
    let mode = check_mode(&given, errors);
    if let (Some(detached), Some(_)) = (&given.detached, &place) {
        errors.push(
            detached,
            "a detached stage begins a trace of its own: remove `detached` or the request",
        );
    }
    let block = check_function(&function, errors);
    let returns = check_returns(&given, &function.sig, errors);
    let (inner_attrs, block) = block?;
    Some(Checked {
        runtime: given.runtime,
        attrs: function.attrs,
        vis: function.vis,
        sig: function.sig,
        inner_attrs,
        block,
        returns,
        stage: stage?,
        place,
        values: given.attrs,
        kind: given.kind,
        mode,
        ret: given.ret.is_some(),
        detached: given.detached.is_some(),
    })
}

fn stage_and_place(
    given: &Given,
    sig: &Signature,
    errors: &Errors,
) -> (Option<Named>, Option<Expr>) {
    let mut positional = given.positional.iter();
    let stage = match &given.name {
        Some((_, name)) if positional.clone().all(|one| is_place(one, sig)) => {
            check_name(name, sig, errors)
        }
        Some((key, _)) => {
            errors.push(
                key,
                "`name` is for functions without a stage: give the stage its name where it is \
                 declared",
            );
            positional.next().and_then(|stage| check_stage(stage, sig, errors))
        }
        None => match positional.next() {
            Some(stage) => check_stage(stage, sig, errors),
            // What was misspelt may have been it.
            None if !errors.is_empty() => None,
            None => {
                errors.push_error(syn::Error::new(
                    Span::call_site(),
                    "a stage is missing: write `#[stage(DiffStage::GpuForward)]`, or \
                     `#[stage(\"name\")]` without a stage set",
                ));
                None
            }
        },
    };
    let place = positional.next().cloned();
    if let Some(place) = &place {
        check_place(place, sig, errors);
    }
    for more in positional {
        match args::as_path(more).and_then(Path::get_ident) {
            Some(word) if !is_place(more, sig) => options::unknown(word, errors),
            _ => errors.push(more, "expected an option: a stage belongs to one request"),
        }
    }
    (stage, place)
}

/// Whether an expression begins with a parameter, as a request does and a stage cannot.
fn is_place(value: &Expr, sig: &Signature) -> bool {
    let root = root_of(value).map(|root| root.unraw().to_string());
    root.is_some_and(|root| params::names(sig).contains(&root))
}

fn check_stage(stage: &Expr, sig: &Signature, errors: &Errors) -> Option<Named> {
    if is_place(stage, sig) {
        errors
            .push(stage, "the stage comes first: write `#[stage(DiffStage::GpuForward, request)]`");
        return None;
    }
    if let Some(Lit::Str(_)) = args::literal(stage) {
        return check_name(stage, sig, errors);
    }
    let Some(path) = args::as_path(stage) else {
        errors.push(
            stage,
            "expected a stage, as in `DiffStage::GpuForward`, or a string literal that names the \
             span",
        );
        return None;
    };
    let constant = is_constant(path, sig, errors);
    constant.then(|| Named::Stage(path.clone()))
}

fn check_name(name: &Expr, sig: &Signature, errors: &Errors) -> Option<Named> {
    match args::literal(name) {
        Some(Lit::Str(text)) => {
            if let Some(mistake) = names::span_mistake(&text.value()) {
                errors.push(text, mistake);
            }
        }
        Some(_) => {
            errors.push(name, "a name is a string literal or the path of a `&'static str` constant")
        }
        None => match args::as_path(name) {
            Some(path) => {
                is_constant(path, sig, errors);
            }
            None => errors
                .push(name, "a name is a string literal or the path of a `&'static str` constant"),
        },
    }
    Some(Named::Free(name.clone()))
}

/// Whether a path can stand in a static, which sees neither `Self` nor the function's generics.
fn is_constant(path: &Path, sig: &Signature, errors: &Errors) -> bool {
    let Some(first) = path.segments.first().map(|segment| &segment.ident) else {
        return true;
    };
    if first == "Self" {
        errors.push(
            first,
            "`Self` cannot be named here, since stages and keys are constants: write the type",
        );
        return false;
    }
    let generic = sig.generics.params.iter().any(|param| match param {
        GenericParam::Type(param) => param.ident == *first,
        GenericParam::Const(param) => param.ident == *first,
        GenericParam::Lifetime(_) => false,
    });
    if generic {
        errors.push(
            first,
            format!(
                "stages and keys are constants, and cannot depend on the generic parameter \
                 `{first}`"
            ),
        );
    }
    !generic
}

fn check_place(place: &Expr, sig: &Signature, errors: &Errors) {
    if let Expr::Reference(reference) = args::ungrouped(place) {
        errors.push(
            reference.and_token,
            "write the place alone: the request is only looked at, never moved",
        );
        return;
    }
    let Some(root) = root_of(place) else {
        errors.push(
            place,
            "expected the place of the request, such as `req`, `self` or `job.req`; other \
             arguments are options",
        );
        return;
    };
    let name = root.unraw().to_string();
    let params = params::names(sig);
    let is_static = name.starts_with(char::is_uppercase);
    if params.contains(&name)
        || is_static
        || matches!(place, Expr::Path(path) if path.path.segments.len() > 1)
    {
        return;
    }
    let known: Vec<&str> = params.iter().map(String::as_str).chain(WORDS).collect();
    let message = match args::nearest(&name, &known) {
        Some(near) if WORDS.contains(&near) => {
            format!("no parameter `{name}`; did you mean the option `{near}`?")
        }
        Some(near) => format!("no parameter `{name}`; did you mean `{near}`?"),
        None if name == "self" => {
            "this function has no `self`: name the parameter that is the request".into()
        }
        None => format!("no parameter `{name}`: name the one that is the request, or leave it out"),
    };
    errors.push(root, message);
}

/// The variable at the beginning of a place; `None` if the expression is no place.
fn root_of(place: &Expr) -> Option<&Ident> {
    match args::ungrouped(place) {
        Expr::Path(path) => path.path.segments.first().map(|segment| &segment.ident),
        Expr::Field(field) => root_of(&field.base),
        Expr::Index(index) => root_of(&index.expr),
        Expr::Paren(paren) => root_of(&paren.expr),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => root_of(&unary.expr),
        _ => None,
    }
}

fn check_values(values: &[(Key, Expr)], sig: &Signature, errors: &Errors) {
    let mut seen = Vec::new();
    for (key, _) in values {
        match key {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => {
                    if let Some(mistake) = names::key_mistake(&text.value()) {
                        errors.push(text, mistake);
                    }
                }
                other => errors.push(
                    other,
                    "a key is a string literal or the path of a `&'static str` constant",
                ),
            },
            Expr::Path(path) => check_key_path(&path.path, sig, errors),
            other => errors
                .push(other, "a key is a string literal or the path of a `&'static str` constant"),
        }
        let text = key.to_token_stream().to_string();
        if seen.contains(&text) {
            errors.push(key, format!("the key {text} is given twice: keep one"));
        }
        seen.push(text);
    }
}

fn check_key_path(path: &Path, sig: &Signature, errors: &Errors) {
    match path.get_ident() {
        Some(word) if word.to_string().starts_with(char::is_lowercase) => errors
            .push(word, format!("a key is a string literal or a constant: write `\"{word}\"`")),
        _ => {
            is_constant(path, sig, errors);
        }
    }
}

fn check_mode(given: &Given, errors: &Errors) -> Mode {
    match (&given.err, &given.no_err) {
        (Some(_), Some(no_err)) => {
            errors.push(no_err, "`err` and `no_err` contradict each other: keep one");
            Mode::Default
        }
        (Some(err), None) => Mode::Err(err.span()),
        (None, Some(_)) => Mode::NoErr,
        (None, None) => Mode::Default,
    }
}

fn check_returns(given: &Given, sig: &Signature, errors: &Errors) -> Returns {
    let mut returns = returns::classify(&sig.output);
    if let Some(future) = &given.future {
        if sig.asyncness.is_some()
            || returns != Returns::Value
            || matches!(sig.output, ReturnType::Default)
        {
            errors.push(
                future,
                "`future` is for functions whose return type is an alias of a boxed future: \
                 remove it",
            );
        } else {
            returns = Returns::BoxedFuture;
        }
    }
    let nothing = matches!(sig.output, ReturnType::Default) || returns == Returns::Never;
    if let (Some(ret), true) = (&given.ret, nothing) {
        errors.push(ret, "this function returns no value: remove `ret`");
    }
    returns
}

fn check_function(function: &Function, errors: &Errors) -> Option<(TokenStream, Group)> {
    let sig = &function.sig;
    if let Some(token) = sig.constness {
        errors.push(
            token,
            "a `const fn` can run at compile time, where nothing is recorded: remove `const` or \
             `#[stage]`",
        );
    }
    if sig.ident == "main" && sig.inputs.is_empty() {
        errors.push(
            &sig.ident,
            "`main` begins before the recorder and ends after it: put `#[stage]` on a function \
             that it calls",
        );
    }
    for attr in &function.attrs {
        if is_stage(attr.path()) {
            errors.push(attr.path(), "this function has a `#[stage]` already: keep one");
        }
    }
    match &function.body {
        Body::Block { inner_attrs, block } => Some((inner_attrs.clone(), block.clone())),
        Body::Missing(semicolon) => {
            errors.push(
                semicolon,
                "`#[stage]` needs a body: put it on the implementation, or give a default",
            );
            None
        }
    }
}

/// `stage`, or `stage` of the crate; another macro's `stage` is none of ours.
fn is_stage(path: &Path) -> bool {
    let names: Vec<String> = path.segments.iter().map(|one| one.ident.to_string()).collect();
    matches!(names.as_slice(), [one] if one == "stage")
        || matches!(names.as_slice(), [.., krate, one] if krate == "stagetrace" && one == "stage")
}

//! What the user wrote: variants and their `#[stage(..)]`.

use syn::{
    Attribute, Data, DataEnum, DeriveInput, Expr, Fields, Ident, Lit, LitInt, LitStr, Meta,
    Variant, Visibility,
};

use crate::{
    args::{self, Arg, Once},
    errors::Errors,
    paths::Runtime,
};

/// Options of a variant.
const VARIANT_KEYS: [&str; 3] = ["level", "name", "within"];

/// An enum that declares stages.
pub(super) struct Declared {
    pub(super) runtime: Runtime,
    pub(super) vis: Visibility,
    pub(super) ident: Ident,
    pub(super) variants: Vec<DeclaredStage>,
}

/// A variant that declares a stage.
pub(super) struct DeclaredStage {
    pub(super) ident: Ident,
    /// Whether it is a unit variant, as it must be.
    pub(super) is_unit: bool,
    /// Its documentation and deprecation, for the generated constant.
    pub(super) attrs: Vec<Attribute>,
    pub(super) level: Option<LitInt>,
    pub(super) name: Option<LitStr>,
    pub(super) within: Option<Ident>,
}

/// Reads the enum; `None` if it is none that stages could be made of.
pub(super) fn read(item: &DeriveInput, errors: &Errors) -> Option<Declared> {
    let runtime = read_container(&item.attrs, errors);
    let variants = match &item.data {
        Data::Enum(DataEnum { variants, .. }) => variants,
        Data::Struct(data) => return not_an_enum(data.struct_token, errors),
        Data::Union(data) => return not_an_enum(data.union_token, errors),
    };
    if variants.is_empty() {
        errors.push(&item.ident, "a stage set needs at least one stage: add a variant");
    }
    let variants = variants.iter().map(|one| read_variant(one, errors)).collect();
    if !item.generics.params.is_empty() {
        errors.push(
            &item.generics,
            "a stage set has no generics, since its stages are constants: remove them",
        );
        return None;
    }
    Some(Declared { runtime, vis: item.vis.clone(), ident: item.ident.clone(), variants })
}

fn not_an_enum(keyword: impl quote::ToTokens, errors: &Errors) -> Option<Declared> {
    errors.push(
        keyword,
        "`Stages` is derived on an enum whose variants are the stages: write `enum`",
    );
    None
}

fn read_container(attrs: &[Attribute], errors: &Errors) -> Runtime {
    let mut path = Once::new();
    for arg in args::of_attributes(attrs, "stages", errors) {
        match arg {
            Arg::Pair { key, value } if key == "crate" => {
                if let Some(value) = args::path(&key, &value, "facade::stagetrace", errors) {
                    path.set(&key, value, errors);
                }
            }
            Arg::Pair { key, .. } | Arg::Word(key) | Arg::List { key, .. } => {
                misplaced_or_unknown(&key, &["crate"], "a variant", &VARIANT_KEYS, errors);
            }
            Arg::Value(value) => errors.push(value, "expected `crate = path`"),
        }
    }
    Runtime::new(path.into_inner())
}

fn read_variant(variant: &Variant, errors: &Errors) -> DeclaredStage {
    let is_unit = matches!(variant.fields, Fields::Unit);
    if !is_unit {
        errors.push(&variant.fields, "a stage is a constant and holds nothing: remove the fields");
    }
    let (mut level, mut name, mut within) = (Once::new(), Once::new(), Once::new());
    for arg in args::of_attributes(&variant.attrs, "stage", errors) {
        match arg {
            Arg::Pair { key, value } if key == "level" => {
                if let Some(number) = args::integer(&key, &value, errors) {
                    level.set(&key, number.clone(), errors);
                }
            }
            Arg::Pair { key, value } if key == "name" => {
                if let Some(text) = args::string(&key, &value, errors) {
                    name.set(&key, text, errors);
                }
            }
            Arg::Pair { key, value } if key == "within" => {
                if let Some(stage) = read_within(&value, errors) {
                    within.set(&key, stage, errors);
                }
            }
            Arg::Word(key) | Arg::List { key, .. } if VARIANT_KEYS.contains(&&*key.to_string()) => {
                errors.push(&key, format!("write a value after `{key}`: `{key} = ..`"));
            }
            Arg::Pair { key, .. } | Arg::Word(key) | Arg::List { key, .. } => {
                misplaced_or_unknown(&key, &VARIANT_KEYS, "the enum", &["crate"], errors);
            }
            Arg::Value(value) => errors.push(
                value,
                format!("expected {}, each with a value", args::one_of(&VARIANT_KEYS)),
            ),
        }
    }
    DeclaredStage {
        ident: variant.ident.clone(),
        is_unit,
        attrs: summary(&variant.attrs),
        level: level.into_inner(),
        name: name.into_inner(),
        within: within.into_inner(),
    }
}

fn read_within(value: &Expr, errors: &Errors) -> Option<Ident> {
    let stage = args::as_path(value).and_then(syn::Path::get_ident);
    if stage.is_none() {
        errors.push(
            value,
            "`within` takes the name of a variant of this enum: `within = GpuForward`",
        );
    }
    stage.cloned()
}

fn misplaced_or_unknown(key: &Ident, here: &[&str], place: &str, there: &[&str], errors: &Errors) {
    if there.contains(&&*key.to_string()) {
        let attribute = if place == "the enum" { "stages" } else { "stage" };
        errors.push(
            key,
            format!(
                "`{key}` is not expected here; it belongs on {place}: `#[{attribute}({key} = ..)]`"
            ),
        );
    } else {
        args::unknown(key, here, errors);
    }
}

/// Deprecation and the first paragraph of the documentation (whose examples must not run twice).
fn summary(attrs: &[Attribute]) -> Vec<Attribute> {
    let mut in_summary = true;
    attrs
        .iter()
        .filter(|attr| {
            if attr.path().is_ident("deprecated") {
                return true;
            }
            if let Meta::NameValue(doc) = &attr.meta
                && let Some(Lit::Str(line)) = args::literal(&doc.value)
            {
                in_summary &= !line.value().trim().is_empty();
            }
            attr.path().is_ident("doc") && in_summary
        })
        .cloned()
        .collect()
}

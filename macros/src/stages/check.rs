//! Rules across attributes: names, levels, and where a stage lies.

use std::collections::HashMap;

use proc_macro2::Ident;
use syn::{Attribute, LitInt, Visibility};

use super::ast::{Declared, DeclaredStage};
use crate::{args, errors::Errors, names, paths::Runtime};

/// The constant that lists all stages, whose name no stage's constant may take.
const ALL: &str = "ALL";
/// Level of a stage that says nothing.
const DEFAULT_LEVEL: u8 = 2;

/// A set of stages that can be generated; where the user was wrong, with the next best value.
pub(super) struct Set {
    pub(super) runtime: Runtime,
    pub(super) vis: Visibility,
    pub(super) ident: Ident,
    pub(super) stages: Vec<Stage>,
}

pub(super) struct Stage {
    pub(super) variant: Ident,
    pub(super) is_unit: bool,
    pub(super) attrs: Vec<Attribute>,
    pub(super) name: String,
    pub(super) level: u8,
    /// Index of the stage in which it lies.
    pub(super) within: Option<usize>,
    /// `None` if the variant is in upper case itself, or if the constant would clash.
    pub(super) constant: Option<Ident>,
}

pub(super) fn check(declared: Declared, errors: &Errors) -> Set {
    let variants = &declared.variants;
    let within = check_within(variants, errors);
    let unique_names = check_names(variants, errors);
    let constants = check_constants(variants, &unique_names, errors);
    let stages = variants
        .iter()
        .zip(within)
        .zip(constants)
        .map(|((one, within), constant)| Stage {
            variant: one.ident.clone(),
            is_unit: one.is_unit,
            attrs: one.attrs.clone(),
            name: name_of(one),
            level: one.level.as_ref().map_or(DEFAULT_LEVEL, |level| check_level(level, errors)),
            within,
            constant,
        })
        .collect();
    Set { runtime: declared.runtime, vis: declared.vis, ident: declared.ident, stages }
}

fn name_of(stage: &DeclaredStage) -> String {
    match &stage.name {
        Some(name) => name.value(),
        None => names::exported(&stage.ident),
    }
}

fn check_level(level: &LitInt, errors: &Errors) -> u8 {
    match level.base10_parse() {
        Ok(value @ 1..=3) => value,
        _ => {
            errors.push(level, "a level is 1 (important), 2 (normal, the default) or 3 (detail)");
            DEFAULT_LEVEL
        }
    }
}

/// Whether each name is the first of its kind; reports malformed and duplicate ones.
fn check_names(variants: &[DeclaredStage], errors: &Errors) -> Vec<bool> {
    let mut seen: HashMap<String, &Ident> = HashMap::new();
    variants
        .iter()
        .map(|variant| {
            let name = name_of(variant);
            let at: &dyn quote::ToTokens = match &variant.name {
                Some(literal) => literal,
                None => &variant.ident,
            };
            if let Some(mistake) = names::stage_mistake(&name) {
                errors.push(at, mistake);
            }
            let first = seen.get(&name).copied();
            if let Some(first) = first {
                errors.push(
                    at,
                    format!(
                        "the name `{name}` belongs to `{first}` already: write another one, as \
                         `#[stage(name = \"..\")]`"
                    ),
                );
            } else {
                seen.insert(name, &variant.ident);
            }
            first.is_none()
        })
        .collect()
}

/// The constants' names; a duplicate of a stage whose name was reported is left out in silence.
fn check_constants(
    variants: &[DeclaredStage],
    unique_names: &[bool],
    errors: &Errors,
) -> Vec<Option<Ident>> {
    let mut taken: HashMap<String, String> = HashMap::new();
    taken.insert(ALL.into(), "which lists all stages".into());
    for variant in variants {
        let name = variant.ident.to_string();
        if name == ALL {
            errors.push(
                &variant.ident,
                "`ALL` is the constant that lists all stages: rename the variant",
            );
        } else {
            let clash = format!("which is the variant `{name}`");
            taken.insert(name, clash);
        }
    }
    variants
        .iter()
        .zip(unique_names)
        .map(|(variant, unique)| {
            let name = names::constant(&variant.ident);
            if variant.ident == name || name.is_empty() {
                return None;
            }
            if let Some(clash) = taken.get(&name) {
                if *unique {
                    errors.push(
                        &variant.ident,
                        format!(
                            "this stage's constant would be `{name}`, {clash}: rename the variant"
                        ),
                    );
                }
                return None;
            }
            taken.insert(name.clone(), format!("as that of `{}`", variant.ident));
            Some(Ident::new(&name, variant.ident.span()))
        })
        .collect()
}

/// The index of the stage in which each lies; reports unknown ones and circles, and cuts the
/// latter.
fn check_within(variants: &[DeclaredStage], errors: &Errors) -> Vec<Option<usize>> {
    let mut within: Vec<Option<usize>> = variants
        .iter()
        .map(|variant| {
            let outer = variant.within.as_ref()?;
            let index = variants.iter().position(|one| one.ident == *outer);
            if index.is_none() {
                unknown_stage(outer, variants, errors);
            }
            index
        })
        .collect();
    for start in 0..variants.len() {
        if let Some(circle) = circle_from(start, &within) {
            let names: Vec<String> =
                circle.iter().map(|at| format!("`{}`", variants[*at].ident)).collect();
            let message = match names.as_slice() {
                [_, _] => "a stage cannot lie within itself: remove `within`".to_owned(),
                _ => format!("`within` goes in a circle: {}", names.join(" within ")),
            };
            errors.push(&variants[start].within, message);
            within[start] = None;
        }
    }
    within
}

/// The stages on the way from `start` back to itself, both ends included.
fn circle_from(start: usize, within: &[Option<usize>]) -> Option<Vec<usize>> {
    let mut way = vec![start];
    let mut at = start;
    for _ in 0..within.len() {
        at = within[at]?;
        way.push(at);
        if at == start {
            return Some(way);
        }
    }
    None
}

fn unknown_stage(name: &Ident, variants: &[DeclaredStage], errors: &Errors) {
    let known: Vec<String> = variants.iter().map(|one| one.ident.to_string()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let message = match args::nearest(&name.to_string(), &known) {
        Some(near) => format!("no stage `{name}` in this enum; did you mean `{near}`?"),
        None => format!("no stage `{name}` in this enum: write one of its variants"),
    };
    errors.push(name, message);
}

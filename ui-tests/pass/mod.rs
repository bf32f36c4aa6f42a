//! Every shape that must compile, and behave as without the macros.
//!
//! Compiled without a warning in editions 2021 and 2024, and looked at by clippy with its pedantic and
//! nursery lints.

pub mod async_functions;
pub mod async_trait;
pub mod attributes_and_outcomes;
pub mod conditional;
pub mod drop_order;
pub mod generics_and_bounds;
pub mod inner_attributes;
pub mod macro_rules;
pub mod methods_and_traits;
pub mod never_and_unsafe;
pub mod patterns;
pub mod raw_names;
pub mod renamed_crate;
pub mod request_attribute;
pub mod requests;
pub mod returned_futures;
pub mod shadowed_names;
pub mod stage_sets;
pub mod sync_functions;

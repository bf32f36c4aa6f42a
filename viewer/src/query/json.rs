//! How values stand in JSON: ids as what they are, 64-bit numbers as texts.

use serde_json::Value as Json;

use crate::store::{Ident, Store};

pub(super) fn ident(store: &Store, ident: Option<Ident>) -> Json {
    match ident {
        None => Json::Null,
        Some(Ident::Int(value)) => value.into(),
        Some(Ident::Text(name)) => store.text(name).into(),
    }
}

pub(super) fn number(value: impl ToString) -> String {
    value.to_string()
}

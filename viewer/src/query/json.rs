//! How values stand in JSON: ids as what they are as far as that can be, 64-bit numbers as texts.

use serde_json::Value as Json;

use crate::store::{Ident, Store};

/// The largest whole number up to which a script tells all of them apart.
const EXACT: u64 = (1 << 53) - 1;

/// An id for scripts, which would round a large number: that is a text.
pub(super) fn ident(store: &Store, ident: Option<Ident>) -> Json {
    let mut id = recorded(store, ident);
    keep_exact(&mut id);
    id
}

/// Makes a text of a number that a script would round.
pub(super) fn keep_exact(id: &mut Json) {
    if id.as_i64().is_some_and(|value| value.unsigned_abs() > EXACT) {
        *id = id.to_string().into();
    }
}

/// An id as it was recorded.
pub(super) fn recorded(store: &Store, ident: Option<Ident>) -> Json {
    match ident {
        None => Json::Null,
        Some(Ident::Int(value)) => value.into(),
        Some(Ident::Text(name)) => store.text(name).into(),
    }
}

pub(super) fn number(value: impl ToString) -> String {
    value.to_string()
}

//! Order and text of ids.

use std::cmp::Ordering;

use crate::store::{Ident, Store};

/// Numbers before texts, and texts that are numbers by what they mean: 10 comes after 9.
pub(crate) fn compare(store: &Store, one: Ident, other: Ident) -> Ordering {
    let key = |ident: Ident| match ident {
        Ident::Int(value) => (0, value, String::new()),
        Ident::Text(name) => {
            let text = store.text(name);
            match text.parse() {
                Ok(value) => (0, value, text),
                Err(_) => (1, 0, text),
            }
        }
    };
    key(one).cmp(&key(other))
}

/// As people write it.
pub(crate) fn shown(store: &Store, ident: Ident) -> String {
    match ident {
        Ident::Int(value) => value.to_string(),
        Ident::Text(name) => store.text(name),
    }
}

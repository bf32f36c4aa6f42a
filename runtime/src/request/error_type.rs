//! The value of `error.type`: a type's name, short and of low cardinality.

use std::any::type_name;

/// What stands where nothing is known.
const OTHER: &str = "_OTHER";

/// The name of `E` without path and generics, seen through references and smart pointers.
///
/// A type called just `Error` keeps the path that says whose it is (`serde_json::error::Error`).
/// Tuples, slices and `dyn Error` say nothing: `_OTHER`.
pub(crate) fn error_type<E: ?Sized>() -> &'static str {
    short(type_name::<E>())
}

fn short(name: &str) -> &str {
    let name = name.trim_start_matches('&');
    let name = name.strip_prefix("mut ").unwrap_or(name);
    let (path, generics) = match name.split_once('<') {
        Some((path, rest)) => (path, rest.strip_suffix('>').unwrap_or(rest)),
        None => (name, ""),
    };
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '#';
    if path.is_empty() || !path.chars().all(is_path) {
        return OTHER;
    }
    match last(path) {
        "Box" | "Rc" | "Arc" if !generics.is_empty() => short(generics),
        "Error" => whose(path),
        name => name,
    }
}

/// The path from the last module that is not called `error` itself.
fn whose(path: &str) -> &str {
    let mut start = path.len();
    for segment in path.rsplit("::") {
        start -= segment.len();
        if !matches!(segment, "Error" | "error" | "errors" | "err") {
            return &path[start..];
        }
        start = start.saturating_sub("::".len());
    }
    path
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::Arc;

    use super::*;

    struct Refused<T>(std::marker::PhantomData<T>);

    #[test]
    fn the_name_has_neither_path_nor_generics() {
        assert_eq!(error_type::<std::num::ParseIntError>(), "ParseIntError");
        assert_eq!(error_type::<Refused<Vec<std::num::ParseIntError>>>(), "Refused");
        assert_eq!(error_type::<String>(), "String");
        assert_eq!(error_type::<&'static str>(), "str");
    }

    #[test]
    fn pointers_are_seen_through() {
        assert_eq!(error_type::<Box<std::fmt::Error>>(), error_type::<std::fmt::Error>());
        assert_eq!(error_type::<&mut Arc<Refused<u8>>>(), "Refused");
    }

    #[test]
    fn a_type_called_error_says_whose_it_is() {
        assert_eq!(error_type::<std::fmt::Error>(), "fmt::Error");
        assert_eq!(error_type::<std::io::Error>(), "io::error::Error");
        assert_eq!(error_type::<serde_json::Error>(), "serde_json::error::Error");
        assert_eq!(short("error::Error"), "error::Error");
    }

    #[test]
    fn what_has_no_name_is_other() {
        assert_eq!(error_type::<()>(), OTHER);
        assert_eq!(error_type::<(u8, u8)>(), OTHER);
        assert_eq!(error_type::<[u8]>(), OTHER);
        assert_eq!(error_type::<dyn Error>(), OTHER);
        assert_eq!(error_type::<Box<dyn Error + Send + Sync>>(), OTHER);
        assert_eq!(error_type::<fn(u8) -> u8>(), OTHER);
    }
}

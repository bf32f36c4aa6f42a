//! Names of stages, spans and attributes: how they are derived, and which are well-formed.

use heck::{ToShoutySnakeCase, ToSnakeCase};
use syn::{Ident, ext::IdentExt};

/// Longest name of a stage or span, in bytes. Names become parts of attribute keys.
const MAX_NAME: usize = 64;
/// Longest attribute key, in bytes.
const MAX_KEY: usize = 128;

/// The exported name of a variant or struct: `KVCache` is `kv_cache`.
pub(crate) fn exported(ident: &Ident) -> String {
    ident.unraw().to_string().to_snake_case()
}

/// The name of the constant generated for a variant: `KVCache` is `KV_CACHE`.
pub(crate) fn constant(ident: &Ident) -> String {
    ident.unraw().to_string().to_shouty_snake_case()
}

/// What is wrong with the name of a stage in a set: `[a-z][a-z0-9_]*`, in segments joined by `.`.
pub(crate) fn stage_mistake(name: &str) -> Option<String> {
    let segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_lowercase())
            && segment.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if name.is_empty() {
        return Some("the name is empty: write one as in `\"gpu_forward\"`".into());
    }
    if !name.split('.').all(segment) {
        return Some(format!(
            "`{name}` is not a stage name: write lower-case letters, digits and `_`, beginning \
             with a letter, as in `gpu_forward`; `.` joins segments"
        ));
    }
    too_long(name, MAX_NAME)
}

/// What is wrong with the free name of a span or request.
pub(crate) fn span_mistake(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty: write what the span does, as in `\"decode\"`".into());
    }
    if name.trim() != name || name.chars().any(char::is_control) {
        return Some("write the name without control characters, leading or trailing space".into());
    }
    too_long(name, MAX_NAME)
}

/// What is wrong with an attribute key.
pub(crate) fn key_mistake(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some("the key is empty: write one as in `\"diffusion.steps\"`".into());
    }
    if key.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("write the key without spaces, as in `\"diffusion.steps\"`".into());
    }
    too_long(key, MAX_KEY)
}

fn too_long(name: &str, limit: usize) -> Option<String> {
    (name.len() > limit).then(|| {
        let length = name.len();
        format!("this name has {length} bytes: write one of at most {limit}")
    })
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    #[test]
    fn variants_become_snake_case() {
        let cases = [
            ("GpuForward", "gpu_forward", "GPU_FORWARD"),
            ("KVCache", "kv_cache", "KV_CACHE"),
            ("VAE", "vae", "VAE"),
            ("Step2", "step2", "STEP2"),
        ];
        for (variant, name, constant_name) in cases {
            let ident = Ident::new(variant, Span::call_site());
            assert_eq!(exported(&ident), name);
            assert_eq!(constant(&ident), constant_name);
        }
        assert_eq!(exported(&Ident::new_raw("Type", Span::call_site())), "type");
    }

    #[test]
    fn malformed_stage_names_are_refused() {
        for good in ["a", "gpu_forward", "vae.decode2"] {
            assert_eq!(stage_mistake(good), None, "{good}");
        }
        for bad in ["", "Gpu", "gpu forward", "2nd", "a..b", ".a", "a.", "_a", "étape"] {
            assert!(stage_mistake(bad).is_some(), "{bad}");
        }
        assert!(stage_mistake(&"a".repeat(65)).is_some());
    }

    #[test]
    fn free_names_and_keys_are_checked() {
        assert_eq!(span_mistake("POST /v1/chat"), None);
        assert!(span_mistake("").is_some());
        assert!(span_mistake(" padded").is_some());
        assert!(span_mistake("two\nlines").is_some());
        assert_eq!(key_mistake("gen_ai.request.model"), None);
        assert!(key_mistake("").is_some());
        assert!(key_mistake("a b").is_some());
    }
}

//! Keys of attributes that are not constant: each is allocated once.

use opentelemetry::Key;
use std::collections::HashSet;
use std::sync::Arc;

/// How many keys are remembered at most: whoever makes up keys at run time may make up any number.
const KEYS: usize = 1024;

/// Keys that are not constant.
#[derive(Debug, Default)]
pub(super) struct Keys(HashSet<Arc<str>>);

impl Keys {
    /// The key with this text.
    pub(super) fn key(&mut self, text: &str) -> Key {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known).into();
        }
        let key: Arc<str> = text.into();
        if self.0.len() < KEYS {
            self.0.insert(Arc::clone(&key));
        }
        key.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_allocated_once_and_made_up_keys_take_no_memory_for_ever() {
        let mut keys = Keys::default();
        let before = keys.key("a");
        assert_eq!(keys.key("a"), before);
        let known = keys.0.get("a").expect("it was remembered");
        assert_eq!(Arc::strong_count(known), 2, "the set's and the first key's");
        for made_up in 0..2 * KEYS {
            assert_eq!(keys.key(&made_up.to_string()).as_str(), made_up.to_string());
        }
        assert_eq!(keys.0.len(), KEYS);
    }
}

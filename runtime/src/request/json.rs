//! A JSON value that was read within a budget: what a carrier holds beside the known keys.
//!
//! It keeps the order of keys, unlike `serde_json::Value`, and reading it never takes more memory
//! than its budget says, whatever the sender wrote. Depth is bounded too, since the formats differ
//! in that.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Deepest nesting that is kept.
const MAX_DEPTH: u8 = 16;

/// What a value costs beside its text.
pub(crate) const VALUE_COST: usize = 8;

/// How `serde_json` presents a number when someone in the build asked for `arbitrary_precision`: as
/// a map with this one key.
pub(crate) const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// Any JSON value. Integers beyond 64 bits become floats, as in `serde_json`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Unsigned(u64),
    Negative(i64),
    /// Always finite.
    Float(f64),
    Text(Box<str>),
    Array(Vec<Json>),
    Object(Vec<(Box<str>, Json)>),
}

/// Reads a value of any type. `None` says that it was skipped: too large, too deep, or not JSON
/// (bytes, an infinite number).
pub(crate) struct JsonSeed<'a> {
    budget: &'a mut usize,
    depth: u8,
}

/// Reads the key of a map. `None` says that it was skipped: too long, or not a string.
pub(crate) struct KeySeed<'a> {
    pub(crate) budget: &'a mut usize,
}

impl<'a> JsonSeed<'a> {
    /// What is read is taken off the budget, in bytes.
    pub(crate) fn new(budget: &'a mut usize) -> Self {
        Self { budget, depth: 0 }
    }

    fn inner(&mut self) -> JsonSeed<'_> {
        JsonSeed { budget: self.budget, depth: self.depth + 1 }
    }

    fn scalar(self, value: Json) -> Option<Json> {
        take(self.budget, 0).then_some(value)
    }

    fn float(self, number: f64) -> Option<Json> {
        if number.is_finite() { self.scalar(Json::Float(number)) } else { None }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Negative(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(values) => serializer.collect_seq(values),
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = Option<Json>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // A format may skip deeper than it reads (serde_json does), and deeper than the stack would
        // take.
        if self.depth >= MAX_DEPTH || *self.budget == 0 {
            return IgnoredAny::deserialize(deserializer).map(|_| None);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
    type Value = Option<Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(self.scalar(Json::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.scalar(Json::Bool(value)))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.scalar(Json::Unsigned(number)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        let value = u64::try_from(number).map_or(Json::Negative(number), Json::Unsigned);
        Ok(self.scalar(value))
    }

    fn visit_u128<E: de::Error>(self, number: u128) -> Result<Self::Value, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => self.visit_f64(number as f64),
        }
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<Self::Value, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => self.visit_f64(number as f64),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(self.float(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(take(self.budget, text.len()).then(|| Json::Text(text.into())))
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(mut self, inner: D) -> Result<Self::Value, D::Error> {
        self.inner().deserialize(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        mut self,
        inner: D,
    ) -> Result<Self::Value, D::Error> {
        self.inner().deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut values = take(self.budget, 0).then(Vec::new);
        while let Some(value) = access.next_element_seed(self.inner())? {
            match (&mut values, value) {
                (Some(values), Some(value)) => values.push(value),
                _ => {
                    values = None;
                    *self.budget = 0;
                }
            }
        }
        Ok(values.map(Json::Array))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries = take(self.budget, 0).then(Vec::new);
        while let Some(key) = access.next_key_seed(KeySeed { budget: self.budget })? {
            let value = access.next_value_seed(self.inner())?;
            match (&mut entries, key, value) {
                (Some(entries), Some(key), Some(value)) => entries.push((key, value)),
                _ => {
                    entries = None;
                    *self.budget = 0;
                }
            }
        }
        Ok(match entries {
            Some(entries) => number_of(&entries).unwrap_or(Some(Json::Object(entries))),
            None => None,
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_enum(access).map(|_| None)
    }
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<Box<str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut budget = *self.budget;
        let key = JsonSeed::new(&mut budget).deserialize(deserializer)?;
        let Some(Json::Text(key)) = key else { return Ok(None) };
        *self.budget = budget;
        Ok(Some(key))
    }
}

/// Takes a value with this much text off the budget. A value that does not fit uses it up, so that
/// what follows is skipped as well.
fn take(budget: &mut usize, text: usize) -> bool {
    match budget.checked_sub(text.saturating_add(VALUE_COST)) {
        Some(rest) => {
            *budget = rest;
            true
        }
        None => {
            *budget = 0;
            false
        }
    }
}

/// If these entries are `serde_json`'s disguise of a number: that number, or `None` if it is not
/// finite.
fn number_of(entries: &[(Box<str>, Json)]) -> Option<Option<Json>> {
    let [(key, Json::Text(digits))] = entries else { return None };
    if **key != *NUMBER_TOKEN {
        return None;
    }
    if let Ok(number) = digits.parse() {
        return Some(Some(Json::Unsigned(number)));
    }
    if let Ok(number) = digits.parse() {
        return Some(Some(Json::Negative(number)));
    }
    let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
    Some(number.map(Json::Float))
}

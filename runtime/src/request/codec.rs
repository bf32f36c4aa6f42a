//! The serialised form of a carrier, in every serde format.
//!
//! Formats that people read hold an object, all others the same object as compact JSON in an
//! `Option<str>`, since not all of them can say what type comes next. serde's buffers (for
//! `flatten`, untagged and internally tagged enums) call themselves readable whatever they hold, so
//! every reader takes both.

use std::fmt;

use serde::de::{Deserialize, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use stagetrace_wire::context::{BAGGAGE, TRACEPARENT, TRACESTATE, TraceContext};

use super::json::{Json, JsonSeed, KeySeed, NUMBER_TOKEN, VALUE_COST};
use super::remote::{
    Draft, MAX_EXTRA, MAX_EXTRA_KEYS, MAX_LIST, MAX_STAGE, MAX_TRACEPARENT, RemoteRef, Traceparent,
};
use super::state::TraceState;

const LEVEL: &str = "level";
const STAGE: &str = "stage";

/// Longest JSON text that is looked at: more than the longest carrier with all of it escaped.
const MAX_TEXT: usize = 256 * 1024;

/// Longest key of an object that is looked at.
const MAX_KEY: usize = 256;

/// Writes a trace state without trace.
pub(crate) fn serialize_null<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

/// Writes a carrier. Fails only where the format does.
pub(crate) fn serialize_remote<S: Serializer>(
    remote: RemoteRef<'_>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return serializer.serialize_some(&Object(remote));
    }
    let text = serde_json::to_string(&Object(remote)).map_err(S::Error::custom)?;
    serializer.serialize_some(&text)
}

/// A carrier as an object.
struct Object<'a>(RemoteRef<'a>);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(remote) = self;
        let mut buffer = [0; TraceContext::TEXT_LEN];
        let traceparent = match remote.traceparent {
            Traceparent::Verbatim(text) => text,
            Traceparent::Of(context) => context.encode(&mut buffer),
        };
        let headers = [
            (TRACEPARENT, traceparent),
            (TRACESTATE, remote.tracestate),
            (BAGGAGE, remote.baggage),
        ];
        let headers = || headers.iter().filter(|(_, text)| !text.is_empty());
        let stage = Some(remote.stage).filter(|name| !name.is_empty());
        let len = headers().count()
            + usize::from(remote.level.is_some())
            + usize::from(stage.is_some())
            + remote.extra.len();

        let mut map = serializer.serialize_map(Some(len))?;
        for (key, text) in headers() {
            map.serialize_entry(key, text)?;
        }
        if let Some(level) = remote.level {
            map.serialize_entry(LEVEL, &level)?;
        }
        if let Some(stage) = stage {
            map.serialize_entry(STAGE, stage)?;
        }
        for (key, value) in remote.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TraceState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As an option: so a missing field is null even without `#[serde(default)]`.
        let draft = deserializer.deserialize_option(Carrier { is_text: false })?;
        Ok(draft.check().into())
    }
}

/// Reads a carrier in any form. Only what the format itself cannot read or skip is an error.
#[derive(Clone, Copy)]
struct Carrier {
    /// We are inside a JSON text, which may not hold a further one.
    is_text: bool,
}

impl<'de> Visitor<'de> for Carrier {
    type Value = Draft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace state: null, an object, or that object as JSON text")
    }

    fn visit_none<E>(self) -> Result<Draft, E> {
        Ok(Draft::default())
    }

    fn visit_unit<E>(self) -> Result<Draft, E> {
        Ok(Draft::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Draft, D::Error> {
        if inner.is_human_readable() {
            inner.deserialize_any(self)
        } else {
            inner.deserialize_str(self)
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Draft, D::Error> {
        self.visit_some(inner)
    }

    fn visit_str<E>(self, text: &str) -> Result<Draft, E> {
        if text.is_empty() {
            return Ok(Draft::default());
        }
        if self.is_text || text.len() > MAX_TEXT {
            return Ok(Draft::unreadable());
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let draft = json.deserialize_any(Self { is_text: true });
        Ok(match (draft, json.end()) {
            (Ok(draft), Ok(())) => draft,
            _ => Draft::unreadable(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Draft, A::Error> {
        let mut draft = Draft::default();
        let mut seen = 0;
        let mut rest = MAX_EXTRA;
        loop {
            let mut budget = MAX_KEY + VALUE_COST;
            match access.next_key_seed(KeySeed { budget: &mut budget })? {
                None => return Ok(draft),
                Some(None) => {
                    access.next_value::<IgnoredAny>()?;
                    draft.incomplete = true;
                }
                Some(Some(key)) if *key == *NUMBER_TOKEN => {
                    access.next_value::<IgnoredAny>()?;
                    draft.unreadable = true;
                }
                Some(Some(key)) => match Known::of(&key) {
                    Some(known) => {
                        draft.unreadable |= seen & known.bit() != 0;
                        seen |= known.bit();
                        known.read(&mut access, &mut draft)?;
                    }
                    None => read_extra(key, &mut rest, &mut access, &mut draft)?,
                },
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Draft, A::Error> {
        IgnoredAny.visit_seq(access).map(|_| Draft::unreadable())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Draft, A::Error> {
        IgnoredAny.visit_enum(access).map(|_| Draft::unreadable())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_i128<E>(self, _: i128) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_u128<E>(self, _: u128) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Draft, E> {
        Ok(Draft::unreadable())
    }
}

/// A key that means something here. Twice the same is as wrong as two `traceparent` headers.
#[derive(Clone, Copy)]
enum Known {
    Traceparent,
    Tracestate,
    Baggage,
    Level,
    Stage,
}

impl Known {
    fn of(key: &str) -> Option<Self> {
        Some(match key {
            TRACEPARENT => Self::Traceparent,
            TRACESTATE => Self::Tracestate,
            BAGGAGE => Self::Baggage,
            LEVEL => Self::Level,
            STAGE => Self::Stage,
            _ => return None,
        })
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    fn read<'de, A: MapAccess<'de>>(
        self,
        access: &mut A,
        draft: &mut Draft,
    ) -> Result<(), A::Error> {
        let (text, limit) = match self {
            Self::Traceparent => (&mut draft.traceparent, MAX_TRACEPARENT),
            Self::Tracestate => (&mut draft.tracestate, MAX_LIST),
            Self::Baggage => (&mut draft.baggage, MAX_LIST),
            Self::Stage => (&mut draft.stage, MAX_STAGE),
            Self::Level => return read_level(access, draft),
        };
        let mut budget = limit + VALUE_COST;
        match access.next_value_seed(JsonSeed::new(&mut budget))? {
            Some(Json::Null) => {}
            Some(Json::Text(value)) => *text = value,
            _ if matches!(self, Self::Traceparent) => draft.unreadable = true,
            _ => draft.incomplete = true,
        }
        Ok(())
    }
}

fn read_level<'de, A: MapAccess<'de>>(access: &mut A, draft: &mut Draft) -> Result<(), A::Error> {
    let mut budget = MAX_KEY;
    match access.next_value_seed(JsonSeed::new(&mut budget))? {
        Some(Json::Null) => {}
        Some(Json::Unsigned(level)) if i64::try_from(level).is_ok() => {
            draft.level = Some(level as i64);
        }
        _ => draft.incomplete = true,
    }
    Ok(())
}

/// Keeps an unknown key, if it fits into the rest. Of two alike the later one counts, as in a JSON
/// object.
fn read_extra<'de, A: MapAccess<'de>>(
    key: Box<str>,
    rest: &mut usize,
    access: &mut A,
    draft: &mut Draft,
) -> Result<(), A::Error> {
    let known = draft.extra.iter().position(|(other, _)| *other == key);
    let has_room = known.is_some() || draft.extra.len() < MAX_EXTRA_KEYS;
    let mut budget = if has_room { rest.saturating_sub(key.len()) } else { 0 };
    let value = access.next_value_seed(JsonSeed::new(&mut budget))?;
    let Some(value) = value else {
        draft.incomplete = true;
        return Ok(());
    };
    *rest = budget;
    match known {
        Some(at) => draft.extra[at].1 = value,
        None => draft.extra.push((key, value)),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! `baggage`: key-value pairs of the application that travel with a request.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::trim;

/// An ordered list of members. Kept as it goes on the wire, so that a relay passes on what it got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Baggage(String);

/// One member of [`Baggage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaggageMember<'a> {
    /// The key, which is case-sensitive.
    pub key: &'a str,
    /// The value, percent-decoded; octets that are no UTF-8 became U+FFFD.
    pub value: Cow<'a, str>,
    properties: &'a str,
}

/// Why a member cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaggageError {
    /// Not one or more of the characters of an HTTP token.
    #[error("a baggage key is a token: letters, digits and !#$%&'*+-.^_`|~")]
    Key,
    /// The list would grow beyond its limit.
    #[error("baggage is limited to {} bytes", Baggage::MAX_LEN)]
    Full,
}

/// All that may not stand in a value as it is, and the percent sign.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\').add(b'%');

impl Baggage {
    /// Most bytes of the list. What exceeds it is left out, whole members at a time.
    pub const MAX_LEN: usize = 8192;

    /// Reads the value of one header, without the members that are malformed or too many.
    pub fn parse(text: impl AsRef<[u8]>) -> Self {
        let mut baggage = Self::default();
        baggage.append_header(text.as_ref());
        baggage
    }

    /// Adds the members of a header, and returns how many were refused. Empty members do not count.
    pub(super) fn append_header(&mut self, text: &[u8]) -> usize {
        let members = text.split(|&byte| byte == b',').map(trim);
        members
            .filter(|member| !member.is_empty())
            .filter(|member| !self.append_member(member))
            .count()
    }

    /// Adds one member as it was received, without its blanks. Returns whether it was accepted.
    fn append_member(&mut self, member: &[u8]) -> bool {
        let before = self.0.len();
        let mut accepted = true;
        for (at, part) in member.split(|&byte| byte == b';').map(trim).enumerate() {
            let separator = match (at, before) {
                (0, 0) => "",
                (0, _) => ",",
                _ => ";",
            };
            accepted &= part.is_empty() && at > 0 || self.append_pair(part, separator, at > 0);
        }
        accepted &= self.0.len() <= Self::MAX_LEN;
        if !accepted {
            self.0.truncate(before);
        }
        accepted
    }

    /// Adds `key=value`; `key` alone too, if that is allowed.
    fn append_pair(&mut self, pair: &[u8], separator: &str, key_alone: bool) -> bool {
        let (key, value) = match pair.iter().position(|&byte| byte == b'=') {
            Some(equals) => (trim(&pair[..equals]), Some(trim(&pair[equals + 1..]))),
            None => (pair, None),
        };
        let well_formed =
            is_token(key) && value.map_or(key_alone, |value| value.iter().all(is_value_byte));
        let (Ok(key), Ok(value)) = (str::from_utf8(key), value.map(str::from_utf8).transpose())
        else {
            return false;
        };
        if well_formed {
            self.0.extend([separator, key]);
            self.0.extend(value.into_iter().flat_map(|value| ["=", value]));
        }
        well_formed
    }

    /// Sets a value, percent-encoded as needed; it then stands last, without properties.
    ///
    /// # Errors
    /// If the key is no token or the list is full; the list is then as it was.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BaggageError> {
        if !is_token(key.as_bytes()) {
            return Err(BaggageError::Key);
        }
        let mut changed = self.without(key);
        changed.push_str(if changed.is_empty() { "" } else { "," });
        changed.extend([key, "="]);
        changed.extend(utf8_percent_encode(value, ENCODED));
        if changed.len() > Self::MAX_LEN {
            return Err(BaggageError::Full);
        }
        self.0 = changed;
        Ok(())
    }

    /// Takes all members of a key out.
    pub fn remove(&mut self, key: &str) {
        self.0 = self.without(key);
    }

    /// The value of a key; of several the last.
    pub fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.iter().filter(|member| member.key == key).last().map(|member| member.value)
    }

    /// The members in order, duplicates included.
    pub fn iter(&self) -> impl Iterator<Item = BaggageMember<'_>> {
        self.0.split(',').filter_map(|member| {
            let (pair, properties) = member.split_once(';').unwrap_or((member, ""));
            let (key, value) = pair.split_once('=')?;
            Some(BaggageMember {
                key,
                value: percent_decode_str(value).decode_utf8_lossy(),
                properties,
            })
        })
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of the header to send.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn without(&self, key: &str) -> String {
        let others = self.0.split(',').filter(|member| {
            let other = member.split(['=', ';']).next();
            other != Some(key)
        });
        others.collect::<Vec<_>>().join(",")
    }
}

impl<'a> BaggageMember<'a> {
    /// The properties in order, each `key` or `key=value`, as received but for blanks.
    pub fn properties(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.properties.split(';').filter(|property| !property.is_empty())
    }
}

impl fmt::Display for Baggage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn is_token(key: &[u8]) -> bool {
    !key.is_empty()
        && key.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

fn is_value_byte(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(byte)
}

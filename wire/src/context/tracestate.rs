//! `tracestate`: the positions that other vendors keep in a trace.

use std::fmt;
use std::str::FromStr;

use super::trim;

/// An ordered list of up to 32 `key=value` members, the last changed first. Kept as it goes on the
/// wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceStateList(String);

/// Why a `tracestate` was refused. Members are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceStateError {
    /// More members than the standard allows.
    #[error("more than {} members", TraceStateList::MAX_MEMBERS)]
    TooMany,
    /// A member without `=`.
    #[error("member {member} has no `=`")]
    NoValue {
        /// Number of the member.
        member: usize,
    },
    /// Not 1 to 256 of `a-z 0-9 _ - * / @`, beginning with a letter or a digit.
    #[error("member {member} has a malformed key")]
    Key {
        /// Number of the member.
        member: usize,
    },
    /// Not 1 to 256 printable ASCII characters without `,` and `=`, or ending in a blank.
    #[error("member {member} has a malformed value")]
    Value {
        /// Number of the member.
        member: usize,
    },
    /// A key that an earlier member has.
    #[error("member {member} repeats a key")]
    Duplicate {
        /// Number of the member.
        member: usize,
    },
}

impl TraceStateList {
    /// Most members of a list.
    pub const MAX_MEMBERS: usize = 32;
    /// Most characters of a key, and of a value.
    pub const MAX_PART_LEN: usize = 256;

    /// Reads the value of one header. Empty members are skipped.
    ///
    /// # Errors
    /// The first thing wrong with the list, which must then be discarded whole.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, TraceStateError> {
        Self::default().with_header(text.as_ref())
    }

    /// This list with the members of a further header behind its own.
    pub(super) fn with_header(mut self, text: &[u8]) -> Result<Self, TraceStateError> {
        let mut count = self.iter().count();
        for member in text.split(|&byte| byte == b',').map(trim).filter(|member| !member.is_empty())
        {
            count += 1;
            let (key, value) = split_member(member, count)?;
            if self.get(key).is_some() {
                return Err(TraceStateError::Duplicate { member: count });
            }
            if count > Self::MAX_MEMBERS {
                return Err(TraceStateError::TooMany);
            }
            push(&mut self.0, key, value);
        }
        Ok(self)
    }

    /// Sets a member, which then stands first; the others keep their order. A 33rd gives way on the
    /// right.
    ///
    /// # Errors
    /// If key or value is malformed; the list is then as it was.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), TraceStateError> {
        check(key.as_bytes(), value.as_bytes(), 1)?;
        let mut text = String::with_capacity(self.0.len() + key.len() + value.len() + 2);
        push(&mut text, key, value);
        self.iter()
            .filter(|(other, _)| *other != key)
            .take(Self::MAX_MEMBERS - 1)
            .for_each(|(key, value)| push(&mut text, key, value));
        self.0 = text;
        Ok(())
    }

    /// Takes a member out. Does nothing if there is none of this key.
    pub fn remove(&mut self, key: &str) {
        self.keep(|_, other| other != key);
    }

    /// Fits the list into `limit` characters by leaving out whole members: first those longer than
    /// 128 characters, then any, each time the right-most.
    pub fn truncate(&mut self, limit: usize) {
        const LONG: usize = 128;
        while self.0.len() > limit {
            let lengths = || self.0.split(',').map(str::len).enumerate();
            let long = lengths().filter(|(_, len)| *len > LONG).last();
            let Some((victim, _)) = long.or(lengths().last()) else { return };
            self.keep(|at, _| at != victim);
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(other, value)| (other == key).then_some(value))
    }

    /// The members in order, as (key, value).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.0.split(',').filter_map(|member| member.split_once('='))
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of the header to send.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn keep(&mut self, keep: impl Fn(usize, &str) -> bool) {
        let mut text = String::with_capacity(self.0.len());
        for (at, (key, value)) in self.iter().enumerate() {
            if keep(at, key) {
                push(&mut text, key, value);
            }
        }
        self.0 = text;
    }
}

impl FromStr for TraceStateList {
    type Err = TraceStateError;

    fn from_str(text: &str) -> Result<Self, TraceStateError> {
        Self::parse(text)
    }
}

impl fmt::Display for TraceStateList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn push(text: &mut String, key: &str, value: &str) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(key);
    text.push('=');
    text.push_str(value);
}

fn split_member(text: &[u8], member: usize) -> Result<(&str, &str), TraceStateError> {
    let equals =
        text.iter().position(|&byte| byte == b'=').ok_or(TraceStateError::NoValue { member })?;
    let (key, value) = (&text[..equals], &text[equals + 1..]);
    check(key, value, member)?;
    let key = str::from_utf8(key).map_err(|_| TraceStateError::Key { member })?;
    let value = str::from_utf8(value).map_err(|_| TraceStateError::Value { member })?;
    Ok((key, value))
}

fn check(key: &[u8], value: &[u8], member: usize) -> Result<(), TraceStateError> {
    let word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let printable = |byte: &u8| matches!(byte, b' '..=b'~') && !b",=".contains(byte);
    let lengths = 1..=TraceStateList::MAX_PART_LEN;
    let key_fits = lengths.contains(&key.len())
        && key.first().is_some_and(word)
        && key.iter().all(|byte| word(byte) || b"_-*/@".contains(byte));
    let value_fits = lengths.contains(&value.len())
        && value.iter().all(printable)
        && value.last() != Some(&b' ');
    match (key_fits, value_fits) {
        (false, _) => Err(TraceStateError::Key { member }),
        (_, false) => Err(TraceStateError::Value { member }),
        _ => Ok(()),
    }
}

//! Identities: of traces, of spans, of runs.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

mod run;

pub use run::{RunId, RunIdError};

/// Identity of a trace: 128 bits, never all zero. Prints as 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(NonZeroU128);

/// Identity of a span within its trace: 64 bits, never all zero. Prints as 16 lower-case hex
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(NonZeroU64);

/// Why a text is no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Too short or too long.
    #[error("expected {expected} hex digits, found {found} bytes")]
    Length {
        /// Digits of such an identity.
        expected: usize,
        /// Bytes of the text.
        found: usize,
    },
    /// A character that is no hex digit.
    #[error("no hex digit at byte {at}")]
    Digit {
        /// Offset of the first such byte.
        at: usize,
    },
    /// All digits are zero.
    #[error("all zero")]
    Zero,
}

impl TraceId {
    /// Number of hex digits.
    pub const HEX_LEN: usize = 32;

    /// The identity of this number, whose most significant byte is printed first. `None` for zero.
    pub const fn from_u128(number: u128) -> Option<Self> {
        match NonZeroU128::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The identity of these bytes, as protobuf and the recording hold them. `None` if all are
    /// zero.
    pub const fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        Self::from_u128(u128::from_be_bytes(bytes))
    }

    /// Reads exactly 32 hex digits of either case.
    ///
    /// # Errors
    /// The first thing wrong with the text.
    pub fn from_hex(text: impl AsRef<[u8]>) -> Result<Self, IdError> {
        let number = parse_hex(text.as_ref(), Self::HEX_LEN)?;
        Self::from_u128(number).ok_or(IdError::Zero)
    }

    /// The identity as a number.
    pub const fn to_u128(self) -> u128 {
        self.0.get()
    }

    /// The identity as bytes, most significant first.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.to_u128().to_be_bytes()
    }

    /// The 32 lower-case hex digits, in ASCII.
    pub fn to_hex(self) -> [u8; Self::HEX_LEN] {
        hex_digits(self.to_bytes())
    }
}

impl SpanId {
    /// Number of hex digits.
    pub const HEX_LEN: usize = 16;

    /// The identity of this number, whose most significant byte is printed first. `None` for zero.
    pub const fn from_u64(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The identity of these bytes, as protobuf and the recording hold them. `None` if all are
    /// zero.
    pub const fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        Self::from_u64(u64::from_be_bytes(bytes))
    }

    /// Reads exactly 16 hex digits of either case.
    ///
    /// # Errors
    /// The first thing wrong with the text.
    pub fn from_hex(text: impl AsRef<[u8]>) -> Result<Self, IdError> {
        let number = parse_hex(text.as_ref(), Self::HEX_LEN)?;
        Self::from_u64(number as u64).ok_or(IdError::Zero)
    }

    /// The identity as a number.
    pub const fn to_u64(self) -> u64 {
        self.0.get()
    }

    /// The identity as bytes, most significant first.
    pub const fn to_bytes(self) -> [u8; 8] {
        self.to_u64().to_be_bytes()
    }

    /// The 16 lower-case hex digits, in ASCII.
    pub fn to_hex(self) -> [u8; Self::HEX_LEN] {
        hex_digits(self.to_bytes())
    }
}

impl FromStr for TraceId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::from_hex(text)
    }
}

impl FromStr for SpanId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::from_hex(text)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(ascii(&self.to_hex()))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(ascii(&self.to_hex()))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceId({self})")
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpanId({self})")
    }
}

/// The value of exactly `expected` hex digits of either case.
pub(crate) fn parse_hex(text: &[u8], expected: usize) -> Result<u128, IdError> {
    if text.len() != expected {
        return Err(IdError::Length { expected, found: text.len() });
    }
    let mut number = 0;
    for (at, &byte) in text.iter().enumerate() {
        let digit = char::from(byte).to_digit(16).ok_or(IdError::Digit { at })?;
        number = number << 4 | u128::from(digit);
    }
    Ok(number)
}

/// The two hex digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Two digits for each byte; `DIGITS` is twice `BYTES`.
fn hex_digits<const BYTES: usize, const DIGITS: usize>(bytes: [u8; BYTES]) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&PAIRS[usize::from(byte)]);
    }
    digits
}

/// Hex digits are ASCII, so this never falls back.
fn ascii(digits: &[u8]) -> &str {
    str::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! `traceparent`: the caller's trace, span and flags.

use std::fmt;
use std::str::FromStr;

use crate::id::{IdError, SpanId, TraceId, parse_hex};

/// The flags of a trace, a bit field. Unknown bits are read and kept for inspection, but never
/// sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TraceFlags(u8);

/// A span as another process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span within it, a parent for what the receiver begins.
    pub span_id: SpanId,
    /// The flags as received.
    pub flags: TraceFlags,
}

/// Why a `traceparent` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceparentError {
    /// More than one header.
    #[error("more than one traceparent header")]
    Repeated,
    /// Shorter than the four fields.
    #[error("{found} bytes are too short for a traceparent")]
    Short {
        /// Bytes of the value.
        found: usize,
    },
    /// Version `ff`, or no two lower-case hex digits.
    #[error("not a version: two lower-case hex digits, but not ff")]
    Version,
    /// A field does not end where it should.
    #[error("expected `-` at byte {at}")]
    Separator {
        /// Offset of the byte.
        at: usize,
    },
    /// The trace id is zero, or not lower-case hex.
    #[error("trace id: {0}")]
    TraceId(IdError),
    /// The parent id is zero, or not lower-case hex.
    #[error("parent id: {0}")]
    ParentId(IdError),
    /// The flags are not lower-case hex.
    #[error("flags: {0}")]
    Flags(IdError),
    /// More text than this version allows.
    #[error("unexpected text after the flags")]
    Trailing,
}

impl TraceFlags {
    /// The caller may have recorded the trace.
    pub const SAMPLED: TraceFlags = TraceFlags(0x01);
    /// The last 7 bytes of the trace id are random.
    pub const RANDOM: TraceFlags = TraceFlags(0x02);

    /// The flags of these bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// All bits as received.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The bits that may be sent: those whose meaning is known.
    pub const fn known(self) -> Self {
        Self(self.0 & (Self::SAMPLED.0 | Self::RANDOM.0))
    }

    /// Whether the caller may have recorded the trace.
    pub const fn is_sampled(self) -> bool {
        self.0 & Self::SAMPLED.0 != 0
    }

    /// Whether the last 7 bytes of the trace id are random.
    pub const fn is_random(self) -> bool {
        self.0 & Self::RANDOM.0 != 0
    }

    /// The same flags with the sampled bit as given.
    #[must_use]
    pub const fn with_sampled(self, sampled: bool) -> Self {
        Self(self.0 & !Self::SAMPLED.0 | sampled as u8)
    }
}

impl TraceContext {
    /// Bytes of a `traceparent` as we send it.
    pub const TEXT_LEN: usize = 55;

    /// Reads the value of a `traceparent` header, without blanks around it.
    ///
    /// Version 00 has exactly the four fields; of a future version the same four are read.
    ///
    /// # Errors
    /// The first thing wrong with the text.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, TraceparentError> {
        let text = text.as_ref();
        let (fields, rest) = text
            .split_first_chunk::<{ Self::TEXT_LEN }>()
            .ok_or(TraceparentError::Short { found: text.len() })?;
        let version = lower_hex(&fields[..2]).map_err(|_| TraceparentError::Version)?;
        if version == 0xff {
            return Err(TraceparentError::Version);
        }
        if let Some(&at) = [2, 35, 52].iter().find(|&&at| fields[at] != b'-') {
            return Err(TraceparentError::Separator { at });
        }
        let trace_id = lower_hex(&fields[3..35])
            .and_then(|number| TraceId::from_u128(number).ok_or(IdError::Zero))
            .map_err(TraceparentError::TraceId)?;
        let span_id = lower_hex(&fields[36..52])
            .and_then(|number| SpanId::from_u64(number as u64).ok_or(IdError::Zero))
            .map_err(TraceparentError::ParentId)?;
        let flags = lower_hex(&fields[53..]).map_err(TraceparentError::Flags)?;
        match (version, rest) {
            (_, []) => {}
            (1.., [b'-', ..]) => {}
            _ => return Err(TraceparentError::Trailing),
        }
        Ok(Self { trace_id, span_id, flags: TraceFlags(flags as u8) })
    }

    /// Writes the context as the value of a `traceparent` header: version 00, known flags only.
    pub fn encode(self, buffer: &mut [u8; Self::TEXT_LEN]) -> &str {
        let flags = self.flags.known().0;
        buffer[..3].copy_from_slice(b"00-");
        buffer[3..35].copy_from_slice(&self.trace_id.to_hex());
        buffer[35] = b'-';
        buffer[36..52].copy_from_slice(&self.span_id.to_hex());
        buffer[52..].copy_from_slice(&[b'-', b'0', b'0' + flags]);
        str::from_utf8(buffer).unwrap_or_default() // only ASCII was written
    }
}

impl FromStr for TraceContext {
    type Err = TraceparentError;

    fn from_str(text: &str) -> Result<Self, TraceparentError> {
        Self::parse(text)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.encode(&mut [0; Self::TEXT_LEN]))
    }
}

impl fmt::Debug for TraceFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceFlags({:02x})", self.0)
    }
}

fn lower_hex(digits: &[u8]) -> Result<u128, IdError> {
    match digits.iter().position(u8::is_ascii_uppercase) {
        Some(at) => Err(IdError::Digit { at }),
        None => parse_hex(digits, digits.len()),
    }
}

//! Scalars in all the spellings seen in the wild.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};

use crate::id::{IdError, SpanId, TraceId};
use crate::span::{SpanKind, StatusCode};

/// A scalar of protobuf, made of whatever JSON offers. `None` if it is of another type or out of
/// range.
pub(super) trait Scalar: Sized {
    fn from_text(text: &str) -> Option<Self>;

    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    fn from_integer(_: i128) -> Option<Self> {
        None
    }

    fn from_double(_: f64) -> Option<Self> {
        None
    }
}

/// An id as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IdText<T> {
    #[default]
    Absent,
    Hex(T),
    Base64(T),
    Malformed(IdError),
}

/// The two sorts of ids.
pub(super) trait Id: Sized {
    fn from_hex(text: &str) -> Result<Self, IdError>;
    /// `None` if the length is wrong or all are zero.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// Any base64 that OTLP senders use: either alphabet, padded or not.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD_ALPHABET: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    const URL_ALPHABET: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
    let engine = if text.contains(['-', '_']) { URL_ALPHABET } else { STANDARD_ALPHABET };
    engine.decode(text).ok()
}

impl Scalar for String {
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Scalar for Vec<u8> {
    fn from_text(text: &str) -> Option<Self> {
        decode_base64(text)
    }
}

impl Scalar for bool {
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl Scalar for f64 {
    /// `NaN`, `Infinity`, `+Inf` and the like, and numbers.
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_integer(value: i128) -> Option<Self> {
        Some(value as f64)
    }

    fn from_double(value: f64) -> Option<Self> {
        Some(value)
    }
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Scalar for $type {
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok().or_else(|| Self::from_double(text.parse().ok()?))
            }

            fn from_integer(value: i128) -> Option<Self> {
                value.try_into().ok()
            }

            /// `1e3` and `1.0` are integers too. The cast saturates, so what is out of range stays
            /// so.
            fn from_double(value: f64) -> Option<Self> {
                if value.fract() == 0.0 { Self::from_integer(value as i128) } else { None }
            }
        })*
    };
}

integers!(i64, u64, u32);

impl Scalar for SpanKind {
    fn from_text(text: &str) -> Option<Self> {
        const KINDS: [SpanKind; 5] = [
            SpanKind::Internal,
            SpanKind::Server,
            SpanKind::Client,
            SpanKind::Producer,
            SpanKind::Consumer,
        ];
        let of_name = by_name(text, "SPAN_KIND_", KINDS, SpanKind::name);
        Some(of_name.or(i64::from_text(text).map(Self::from_number)).unwrap_or_default())
    }

    fn from_integer(value: i128) -> Option<Self> {
        i64::from_integer(value).map(Self::from_number)
    }
}

impl Scalar for StatusCode {
    fn from_text(text: &str) -> Option<Self> {
        let of_name =
            by_name(text, "STATUS_CODE_", [StatusCode::Ok, StatusCode::Error], StatusCode::name);
        Some(of_name.or(i64::from_text(text).map(Self::from_number)).unwrap_or_default())
    }

    fn from_integer(value: i128) -> Option<Self> {
        i64::from_integer(value).map(Self::from_number)
    }
}

fn by_name<T: Copy, const N: usize>(
    text: &str,
    prefix: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let text = text.strip_prefix(prefix).unwrap_or(text);
    all.into_iter().find(|&value| name(value).eq_ignore_ascii_case(text))
}

impl<T: Id> Scalar for IdText<T> {
    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(IdText::Absent);
        }
        let error = match T::from_hex(text) {
            Ok(id) => return Some(IdText::Hex(id)),
            Err(error) => error,
        };
        let of_base64 = decode_base64(text).and_then(|bytes| T::from_bytes(&bytes));
        Some(of_base64.map_or(IdText::Malformed(error), IdText::Base64))
    }
}

impl Id for TraceId {
    fn from_hex(text: &str) -> Result<Self, IdError> {
        TraceId::from_hex(text)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        TraceId::from_bytes(bytes.try_into().ok()?)
    }
}

impl Id for SpanId {
    fn from_hex(text: &str) -> Result<Self, IdError> {
        SpanId::from_hex(text)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        SpanId::from_bytes(bytes.try_into().ok()?)
    }
}

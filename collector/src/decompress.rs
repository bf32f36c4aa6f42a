//! Bodies in their plain form, never larger than allowed.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use hyper::body::Bytes;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

pub(crate) enum DecompressError {
    /// It would be larger than allowed.
    TooLarge,
    /// It is torn, or not what it is said to be.
    Malformed(io::Error),
}

/// What is accepted, as headers name it.
pub(crate) const ACCEPTED: &str = "gzip, zstd, identity";

/// Largest window of zstd, as a power of two: 8 MiB, what RFC 9659 asks receivers for. A frame that
/// asks for more is refused before memory is taken.
const MAX_WINDOW_LOG: u32 = 23;

impl Compression {
    /// The compression of this name, if it is accepted.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "" | "identity" => Some(Self::None),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name, if there is any compression.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// The plain body. Takes no more memory than twice the limit, whatever the body says.
    pub(crate) fn decompress(self, body: Bytes, limit: usize) -> Result<Bytes, DecompressError> {
        match self {
            Self::None if body.len() > limit => Err(DecompressError::TooLarge),
            Self::None => Ok(body),
            Self::Gzip => read_within(MultiGzDecoder::new(&*body), limit),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(&*body)
                    .map_err(DecompressError::Malformed)?;
                decoder.window_log_max(MAX_WINDOW_LOG).map_err(DecompressError::Malformed)?;
                read_within(decoder, limit)
            }
        }
    }
}

fn read_within(decoder: impl Read, limit: usize) -> Result<Bytes, DecompressError> {
    let mut plain = Vec::new();
    let most = (limit as u64).saturating_add(1);
    decoder.take(most).read_to_end(&mut plain).map_err(DecompressError::Malformed)?;
    if plain.len() > limit { Err(DecompressError::TooLarge) } else { Ok(plain.into()) }
}

//! Compression of bodies, and how large they may be.

use crate::config::Compression;
use crate::export::supervised::{Cause, Failure};
use bytes::Bytes;

/// Largest request, before and after compression.
const REQUEST_MAX: usize = 64 << 20;

/// What is sent of a body.
pub(super) fn compressed(body: &[u8], compression: Compression) -> Result<Bytes, Failure> {
    within_limit(body)?;
    let compressed = match compression {
        #[cfg(feature = "gzip")]
        Compression::Gzip => gzip(body)?,
        #[cfg(feature = "zstd")]
        Compression::Zstd => zstd(body)?,
        // The configuration asks for nothing that is not built.
        _ => Bytes::copy_from_slice(body),
    };
    within_limit(&compressed)?;
    Ok(compressed)
}

/// Refuses what no server takes.
fn within_limit(body: &[u8]) -> Result<(), Failure> {
    if body.len() <= REQUEST_MAX {
        return Ok(());
    }
    let problem = format!("a request of {} bytes is more than OTLP allows", body.len());
    Err(Failure { cause: Cause::TooLarge, problem })
}

#[cfg(feature = "gzip")]
fn gzip(body: &[u8]) -> Result<Bytes, Failure> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.map(Bytes::from).map_err(|error| Failure::refused(error.to_string()))
}

#[cfg(feature = "zstd")]
fn zstd(body: &[u8]) -> Result<Bytes, Failure> {
    let written = zstd::bulk::compress(body, zstd::DEFAULT_COMPRESSION_LEVEL);
    written.map(Bytes::from).map_err(|error| Failure::refused(error.to_string()))
}

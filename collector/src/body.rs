//! The body of a request, whole and plain.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

use crate::decompress::{ACCEPTED, Compression, DecompressError};
use crate::encode::Failure;
use crate::reply::GrpcCode;
use crate::request::{Protocol, Request};

/// Reads a body, of which no more than `limit` bytes are kept, and decompresses it, to no more than
/// that. Notes in the request what is learnt on the way.
pub(crate) async fn read(
    body: Incoming,
    protocol: Protocol,
    headers: &HeaderMap,
    limit: usize,
    record: &mut Request,
) -> Result<Bytes, Failure> {
    let head = if protocol == Protocol::Grpc { GRPC_HEAD } else { 0 };
    let body = read_within(body, limit.saturating_add(head), &mut record.sent_bytes).await?;
    let body = body.ok_or_else(|| too_large(limit))?;
    let (body, compression) = match protocol {
        Protocol::Grpc => unframed(body, headers)?,
        Protocol::HttpProtobuf | Protocol::HttpJson => {
            (body, named_compression(headers.get(CONTENT_ENCODING))?)
        }
    };
    record.sent_bytes = body.len();
    record.compression = compression.name();
    let plain = compression.decompress(body, limit).map_err(|error| match error {
        DecompressError::TooLarge => too_large(limit),
        DecompressError::Malformed(error) => {
            invalid(format!("the body cannot be decompressed: {error}"))
        }
    })?;
    record.body_bytes = Some(plain.len());
    Ok(plain)
}

/// Reads a body that nobody wants: whoever is still sending may not look at an answer.
pub(crate) async fn ignore(body: Incoming, record: &mut Request) {
    // If it breaks off, so does the answer.
    let _ = read_within(body, 0, &mut record.sent_bytes).await;
}

/// The sender's fault.
#[cold]
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(GrpcCode::InvalidArgument, 400, message)
}

/// The whole body, if it is not too large. Its bytes are counted anyway.
async fn read_within(
    mut body: Incoming,
    limit: usize,
    read: &mut usize,
) -> Result<Option<Bytes>, Failure> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| invalid(format!("the body breaks off: {error}")))?;
        // Trailers say nothing of use.
        let Ok(data) = frame.into_data() else { continue };
        *read += data.len();
        if *read <= limit {
            whole.extend_from_slice(&data);
        } else if *read - limit > MAX_IGNORED {
            break;
        } else {
            whole = Vec::new();
        }
    }
    Ok((*read <= limit).then(|| whole.into()))
}

/// Bytes beyond a limit that are still read and thrown away: a sender whose connection is closed
/// while it sends does not see why. It is the largest request that OTLP senders make.
const MAX_IGNORED: usize = 64 << 20;

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const GRPC_HEAD: usize = 5;

/// The one message of a call.
fn unframed(body: Bytes, headers: &HeaderMap) -> Result<(Bytes, Compression), Failure> {
    let &[flag, a, b, c, d, ..] = &*body else {
        return Err(invalid("the call has no message"));
    };
    let message = body.slice(GRPC_HEAD..);
    if message.len() as u64 != u64::from(u32::from_be_bytes([a, b, c, d])) {
        return Err(invalid("the call is not one whole message"));
    }
    let compression = match flag {
        0 => Compression::None,
        1 => named_compression(headers.get("grpc-encoding"))?,
        _ => return Err(invalid("the flag of compression is neither 0 nor 1")),
    };
    if flag == 1 && compression == Compression::None {
        return Err(invalid("the message is compressed, but not said how"));
    }
    Ok((message, compression))
}

fn named_compression(header: Option<&HeaderValue>) -> Result<Compression, Failure> {
    let name = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let name = name.unwrap_or_default().trim().to_ascii_lowercase();
    Compression::named(&name).ok_or_else(|| {
        let message = format!("the body is compressed with {name:?}; accepted are {ACCEPTED}");
        Failure::new(GrpcCode::Unimplemented, 415, message)
    })
}

#[cold]
fn too_large(limit: usize) -> Failure {
    let message = format!("the request is larger than {limit} bytes");
    Failure::new(GrpcCode::ResourceExhausted, 413, message)
}

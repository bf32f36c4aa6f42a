//! OTLP as it is sent: over gRPC and over HTTP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use stagetrace_collector::{Collector, GrpcCode, Reply};

use super::inbox::Inbox;
use super::received::{Feeder, Received};

/// Why OTLP cannot be received.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot receive OTLP at {address}: {error}; name an address of this machine and a free port, such as 127.0.0.1:4317, or port 0 for any"
)]
pub struct ReceiveError {
    /// The address.
    pub address: String,
    /// Why.
    pub error: io::Error,
}

/// Longest request. Who is refused a longer one throws its spans away.
const MAX_REQUEST: usize = 20 << 20;
/// When a sender may try again whose spans found no room.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Receives at an address until what is returned is dropped.
pub(super) fn receive(address: &str) -> Result<(SocketAddr, Received), ReceiveError> {
    let inbox = Inbox::new();
    let collector = bind(address, &inbox)
        .map_err(|error| ReceiveError { address: address.to_owned(), error })?;
    let bound = collector.address();
    let name = format!("OTLP at {bound}");
    Ok((bound, Received::new(name, inbox, Feeder::Otlp(collector))))
}

/// Starts at the first of the addresses that the name stands for and that can be had.
fn bind(address: &str, inbox: &Inbox) -> io::Result<Collector> {
    let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in address.to_socket_addrs()? {
        let inbox = inbox.clone();
        let handler = move |spans| match inbox.offer(spans) {
            Ok(()) => Reply::success(),
            Err(refused) => Reply::grpc(GrpcCode::Unavailable)
                .message(refused.to_string())
                .retry_after(RETRY_AFTER),
        };
        result = Collector::builder()
            .address(address)
            .max_grpc_bytes(MAX_REQUEST)
            .max_http_bytes(MAX_REQUEST)
            .on_export(handler)
            .start_blocking();
        if result.is_ok() {
            break;
        }
    }
    result
}

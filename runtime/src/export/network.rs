//! OTLP over the network: the direct writer's bytes, sent by libraries that everybody uses.
//!
//! The exporter's own thread has a private runtime, which drives the connection while something is sent: no runtime of
//! the program's is needed, and none is held up. A batch is encoded once; all attempts share its bytes. While the server is
//! away they wait on disk.

mod answer;
mod beside;
mod body;
mod compress;
mod connect;
#[cfg(feature = "otlp-grpc")]
mod grpc;
mod halves;
#[cfg(feature = "otlp-http")]
mod http;
mod kept;
mod outage;
mod outbox;
mod recover;
mod retry;
mod sender;
mod tcp;
#[cfg(feature = "tls")]
mod tls;

use super::supervised::{Build, Encode, Outlet, Supervised, silence, start};
use crate::collect::{OpenSink, Opening};
use crate::complain;
use crate::config::{OutboxLimits, Protocol, Settings, Target};
use crate::error::InitError;
use body::{Body, JsonEncoder};
use connect::Connector;
use kept::Kept;
use outbox::Outbox;
pub(crate) use recover::send_what_waits;
use sender::Sender;
use stagetrace_wire::otlp::{json, protobuf};
use std::sync::Arc;

/// The name of the sink.
const NAME: &str = "otlp";

/// A sink for where the settings send spans to, if anywhere. What the environment got wrong becomes one of their warnings.
///
/// Where nothing is traced no client is made and no file read: a server without tracing needs no certificates.
pub(crate) fn over_network(settings: &mut Settings) -> Result<Option<OpenSink>, InitError> {
    let is_on = settings.enabled && !cfg!(stagetrace_off);
    let Some(target) = settings.target.take().filter(|_| is_on) else { return Ok(None) };
    match Connector::new(&target) {
        Ok(connector) => Ok(Some(opening(target, connector, settings.outbox))),
        Err(mistake) => {
            mistake.warn(&mut settings.warnings)?;
            Ok(None)
        }
    }
}

fn opening(target: Target, connector: Connector, limits: OutboxLimits) -> OpenSink {
    Box::new(move |opening| {
        warn_if_readable(&target);
        let (resource, scope) = (opening.resource, opening.scope);
        let way = Way { target, connector, limits };
        if way.target.protocol == Protocol::HttpJson {
            let head = Arc::new(json::ResourceHead::new(resource, scope));
            let encoder = JsonEncoder::new(Arc::clone(&head));
            Box::new(supervised(encoder, head, way, opening))
        } else {
            let head = Arc::new(protobuf::ResourceHead::new(resource, scope));
            let encoder = super::otlp::Encoder::new(Arc::clone(&head));
            Box::new(supervised(encoder, head, way, opening))
        }
    })
}

/// Where to send to, by what, and how much may wait for it.
struct Way {
    target: Target,
    connector: Connector,
    limits: OutboxLimits,
}

fn supervised<B: Body, E: Encode<Batch = B>>(
    encoder: E,
    head: Arc<B::Head>,
    way: Way,
    opening: &Opening<'_>,
) -> Supervised<E> {
    let Way { target, connector, limits } = way;
    let endpoint = target.endpoint.clone();
    let outbox = Outbox::new(opening.dir, opening.stem, B::ENCODING, endpoint.to_string(), limits);
    if opening.dir.is_none() && limits.max_bytes > 0 {
        let what =
            "there is no outbox without a run directory: what cannot be sent in time is lost";
        complain::warn(
            "no outbox",
            format_args!("{endpoint}: {what}; STAGETRACE_DIR names another"),
        );
    }
    let kept = outbox.map(|outbox| Kept::new(outbox, endpoint));
    let build: Build<B> = Box::new(move || {
        let outlet: Box<dyn Outlet<B>> = match target.protocol {
            #[cfg(feature = "otlp-grpc")]
            Protocol::Grpc => {
                Box::new(Sender::new(grpc::Grpc::new(&target, connector), head, &target, kept)?)
            }
            #[cfg(feature = "otlp-http")]
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                Box::new(Sender::new(http::Http::new(&target, connector), head, &target, kept)?)
            }
            #[cfg(not(all(feature = "otlp-grpc", feature = "otlp-http")))]
            other => return Err(format!("{other:?} is not in this build")),
        };
        Ok(outlet)
    });
    Supervised::new(NAME, encoder, opening.batching, |queue| start(build, queue))
}

/// Says so if others on the way can read the headers, which may hold a key.
fn warn_if_readable(target: &Target) {
    let endpoint = &target.endpoint;
    if !target.headers.is_empty() && !endpoint.is_https() && !endpoint.is_loopback() {
        let what = format_args!(
            "headers go to {endpoint} unencrypted, where others can read them: use https"
        );
        complain::warn("unencrypted headers", what);
    }
}

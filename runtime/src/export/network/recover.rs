//! Sending what dead processes left in their outboxes, without a recorder.

use super::body::Body;
use super::connect::Connector;
use super::kept::{Kept, Sent};
use super::outbox::Outbox;
use super::retry::Transport;
use super::sender::Sender;
use super::{NAME, silence};
use crate::config::{Protocol, Settings, Target};
use crate::error::InitError;
use crate::export::supervised::Queue;
use stagetrace_wire::otlp::protobuf;
use stagetrace_wire::span::{Resource, Scope};
use std::sync::Arc;
use std::time::Instant;

/// Sends what dead processes left below the output directory to where the settings send spans to, if anywhere.
pub(crate) fn send_what_waits(
    settings: &mut Settings,
    deadline: Instant,
) -> Result<Sent, InitError> {
    let Some(target) = settings.target.take() else {
        let why = "no endpoint: OTEL_EXPORTER_OTLP_ENDPOINT names one, unless OTEL_TRACES_EXPORTER=none or \
            OTEL_SDK_DISABLED=true switch it off";
        return Ok(Sent::nothing(settings, why));
    };
    let connector = match Connector::new(&target) {
        Ok(connector) => connector,
        Err(mistake) => {
            mistake.warn(&mut settings.warnings)?;
            let why = settings.warnings.last().map(ToString::to_string).unwrap_or_default();
            return Ok(Sent::nothing(settings, &why));
        }
    };
    let settings = settings.clone();
    let send = move || {
        silence::for_this_thread();
        let _muted = silence::muted();
        match target.protocol {
            #[cfg(feature = "otlp-grpc")]
            Protocol::Grpc => {
                let grpc = super::grpc::Grpc::new(&target, connector);
                let head = protobuf::ResourceHead::new;
                drain::<_, protobuf::Request>(grpc, head, &target, &settings, deadline)
            }
            #[cfg(feature = "otlp-http")]
            Protocol::HttpProtobuf => {
                let http = super::http::Http::new(&target, connector);
                let head = protobuf::ResourceHead::new;
                drain::<_, protobuf::Request>(http, head, &target, &settings, deadline)
            }
            #[cfg(feature = "otlp-http")]
            Protocol::HttpJson => {
                let http = super::http::Http::new(&target, connector);
                let head = stagetrace_wire::otlp::json::ResourceHead::new;
                drain::<_, super::body::JsonRequest>(http, head, &target, &settings, deadline)
            }
            #[cfg(not(all(feature = "otlp-grpc", feature = "otlp-http")))]
            other => Sent::failed(format!("{other:?} is not in this build")),
        }
    };
    // The caller may be inside of a runtime, which would not have another one on its thread.
    let thread = std::thread::Builder::new().name("stagetrace-out".into()).spawn(send);
    Ok(match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(sent)) => sent,
        Ok(Err(_)) => Sent::failed("sending what waits panicked".to_owned()),
        Err(error) => Sent::failed(format!("no thread to send what waits: {error}")),
    })
}

fn drain<T: Transport, B: Body>(
    transport: T,
    head: fn(&Resource, &Scope) -> B::Head,
    target: &Target,
    settings: &Settings,
    deadline: Instant,
) -> Sent {
    let dir = settings.output_dir.clone();
    let outbox = Outbox::of_the_dead(dir, B::ENCODING, settings.outbox);
    let kept = Kept::new(outbox, target.endpoint.clone());
    let head = Arc::new(head(&Resource::default(), &Scope::default()));
    let mut sender = match Sender::<T, B>::new(transport, head, target, Some(kept)) {
        Ok(sender) => sender,
        Err(problem) => return Sent::failed(problem),
    };
    let queue = Queue::new(NAME, settings.batching);
    sender.drain(&queue, deadline)
}

impl Sent {
    /// Everything waits on.
    fn nothing(settings: &Settings, why: &str) -> Sent {
        let others = Outbox::all_below(&settings.output_dir);
        let (dir, by) = (settings.output_dir.display(), others.protocols());
        let what = format!("{others}, below {dir}, to be sent by {by}: {why}");
        let problems = if others.spans > 0 { vec![what] } else { Vec::new() };
        Sent { arrived: 0, waiting: others.spans, problems }
    }

    fn failed(problem: String) -> Sent {
        Sent { problems: vec![problem], ..Sent::default() }
    }
}

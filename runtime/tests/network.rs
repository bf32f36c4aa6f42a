//! Spans over the network to a collector: in each form, past each of its failures, from each runtime.
#![cfg(all(feature = "otlp-grpc", feature = "otlp-http", not(stagetrace_off)))]

#[path = "network/deadlines.rs"]
mod deadlines;
#[path = "support/everything.rs"]
mod everything;
#[path = "network/failures.rs"]
mod failures;
#[path = "network/inherited.rs"]
mod inherited;
#[cfg(all(feature = "gzip", feature = "zstd"))]
#[path = "network/jaeger.rs"]
mod jaeger;
#[cfg(all(feature = "gzip", feature = "zstd"))]
#[path = "network/opentelemetry_collector.rs"]
mod opentelemetry_collector;
#[path = "network/outbox.rs"]
mod outbox;
#[cfg(all(feature = "gzip", feature = "zstd"))]
#[path = "network/peer.rs"]
mod peer;
#[path = "network/proxy.rs"]
mod proxy;
mod support;
#[cfg(feature = "tls")]
#[path = "network/tls.rs"]
mod tls;

use everything::everything;
use stagetrace::{Compression, InitError, Otlp, TraceConfig, TraceGuard, init};
use stagetrace_collector::{Collector, GrpcCode, Protocol, Reply};
use std::time::Duration;
use support::{LONG, config, flush, problems, scenarios, sink, step, steps, wait_until, written};

/// Starts tracing into this collector, with time enough to try again.
fn start(otlp: Otlp) -> TraceGuard {
    init(patient().otlp(otlp)).unwrap()
}

/// With limits that [`everything`] exceeds.
fn patient() -> TraceConfig {
    config().batching(|batching| batching.export_timeout = LONG).span_limits(|limits| {
        limits.attributes = 14;
        limits.events = 4;
        limits.links = 3;
        limits.attributes_per_event = 2;
    })
}

fn collector() -> Collector {
    Collector::start_blocking().unwrap()
}

/// Over HTTP, in batches of eight, with ten seconds for each.
fn http() -> (Collector, TraceGuard) {
    let collector = collector();
    let trace = start(Otlp::http(collector.endpoint()));
    (collector, trace)
}

fn grpc() -> (Collector, TraceGuard) {
    let collector = collector();
    let trace = start(Otlp::grpc(collector.endpoint()));
    (collector, trace)
}

/// The numbers of the steps that arrived.
fn numbers(collector: &Collector) -> Vec<i64> {
    let spans = collector.spans().named("step");
    spans.iter().filter_map(|span| span.attribute("number")?.as_i64()).collect()
}

/// Everything arrives as it stands in the file.
fn delivers(to: fn(String) -> Otlp, protocol: Protocol, compression: Compression) {
    let collector = collector();
    let otlp = to(collector.endpoint()).compression(compression).header("X-Team", "inference");
    let trace = start(otlp);
    everything();
    flush(LONG).unwrap();
    let (arrived, file) = (collector.spans(), written(&trace));
    assert_eq!((arrived.len(), file.len()), (12, 12), "{arrived}");
    for (arrived, file) in arrived.iter().zip(&file) {
        assert_eq!(arrived, file);
    }
    assert_eq!(sink("otlp").exported, 12);
    let crowded = arrived.one("crowded");
    let dropped = (crowded.dropped_attributes, crowded.dropped_events, crowded.dropped_links);
    assert_eq!((dropped, crowded.events[0].dropped_attributes), ((7, 16, 17), 1));

    let request = &collector.requests()[0];
    assert_eq!((request.protocol, &request.error), (Some(protocol), &None));
    let encoding = match compression {
        Compression::None => None,
        Compression::Gzip => Some("gzip"),
        Compression::Zstd => Some("zstd"),
    };
    assert_eq!(request.compression, encoding);
    if encoding.is_some() {
        assert!(request.body_bytes > Some(request.sent_bytes), "{request:?}");
    }
    assert_eq!(request.header("x-team"), Some("inference"));
    let agent = request.header("user-agent").unwrap();
    assert!(
        agent.starts_with("stagetrace/") && agent.contains(" OTel-OTLP-Exporter-Rust/"),
        "{agent}"
    );
    if protocol != Protocol::Grpc {
        assert_eq!(request.path, "/v1/traces");
    }
}

scenarios! {
    fn grpc_delivers_everything() {
        delivers(Otlp::grpc, Protocol::Grpc, Compression::None);
    }

    fn protobuf_over_http_delivers_everything() {
        delivers(Otlp::http, Protocol::HttpProtobuf, Compression::None);
    }

    fn json_over_http_delivers_everything() {
        delivers(Otlp::http_json, Protocol::HttpJson, Compression::None);
    }

    fn many_batches_of_plain_spans_arrive_in_order() {
        let collector = collector();
        let _trace = start(Otlp::http_json(collector.endpoint()));
        steps(0, 1000);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), (0..1000).collect::<Vec<_>>());
        assert!(collector.requests().iter().all(|request| (1..=8).contains(&request.spans)));
    }

    fn it_works_inside_a_runtime_that_has_one_thread() {
        let (collector, _trace) = grpc();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            step(0);
            tokio::task::yield_now().await;
            flush(LONG).unwrap();
        });
        assert_eq!(numbers(&collector), [0]);
    }

    fn it_works_when_started_and_dropped_inside_a_runtime_with_one_worker() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let collector = collector();
        let endpoint = collector.endpoint();
        let task = async move {
            let trace = start(Otlp::http(endpoint));
            step(0);
            flush(LONG).unwrap();
            step(1);
            drop(trace);
        };
        runtime.block_on(runtime.spawn(task)).unwrap();
        assert_eq!(numbers(&collector), [0, 1]);
    }

    fn the_environment_switches_it_on() {
        let collector = collector();
        let endpoint = collector.endpoint();
        let lookup = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("api-key=a%20b".to_owned()),
            "OTEL_BSP_SCHEDULE_DELAY" => Some("20".to_owned()),
            _ => None,
        };
        let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exporters");
        let config = TraceConfig::from_lookup(lookup).unwrap().output_dir(dir).outbox_max_bytes(0);
        let _trace = init(config).unwrap();
        step(0);
        wait_until(|| collector.spans().len() == 1);
        assert_eq!(collector.requests()[0].header("api-key"), Some("a b"));
        assert_eq!(stagetrace::status().warnings, []);
    }

    fn a_bad_endpoint_of_the_environment_warns_and_the_file_is_written() {
        let lookup = |name: &str| {
            (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then_some("localhost:4318/s3cret")
        };
        let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exporters");
        let trace = init(TraceConfig::from_lookup(lookup).unwrap().output_dir(dir).outbox_max_bytes(0)).unwrap();
        step(0);
        let stats = flush(LONG).unwrap();
        assert_eq!(stats.sinks.len(), 1, "there is only the file");
        assert_eq!(written(&trace).len(), 1);
        let status = stagetrace::status();
        assert!(status.complaints[0].starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: the endpoint "));
        assert!(!format!("{status:?}").contains("s3cret"), "{status:?}");
    }

    fn a_mistake_of_the_program_is_an_error_and_init_may_be_called_again() {
        let wrong = init(config().otlp(Otlp::http("localhost")));
        assert!(matches!(wrong, Err(InitError::Otlp(_))), "{wrong:?}");
        let collector = collector();
        let _trace = init(config().otlp(Otlp::http(collector.endpoint()))).unwrap();
        step(0);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), [0]);
    }

    fn no_secret_is_said_anywhere() {
        let collector = collector();
        collector.reply(Reply::status(401).message("s3cret").header("x-s3cret", "s3cret"));
        let url = format!("http://s3cret:s3cret@{}/v1/traces?key=s3cret", collector.address());
        let otlp = Otlp::new().traces_endpoint(url).header("authorization", "Bearer s3cret");
        let trace = start(otlp);
        step(0);
        let problems = problems(flush(LONG));
        let request = &collector.requests()[0];
        assert_eq!(request.header("authorization"), Some("Bearer s3cret"), "it is sent");
        let status = stagetrace::status();
        assert!(!status.complaints.is_empty());
        let all = format!("{status:?} {problems:?} {:?}", written(&trace));
        assert!(!all.contains("s3cret"), "{all}");
    }

    fn headers_that_go_unencrypted_to_another_machine_warn_once() {
        // Addresses of documentation: nobody is there.
        let otlp = Otlp::http("http://192.0.2.1:4318").header("api-key", "s3cret");
        let trace = start(otlp.timeout(Duration::from_millis(10)));
        let complaints = stagetrace::status().complaints;
        let [warning] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert!(warning.starts_with("headers go to http://192.0.2.1:4318/v1/traces unencrypted"), "{warning}");
        drop(trace);
    }

    fn headers_that_stay_on_this_machine_do_not() {
        let collector = collector();
        let _trace = start(Otlp::http(collector.endpoint()).header("api-key", "s3cret"));
        assert_eq!(stagetrace::status().complaints, Vec::<String>::new());
    }

    fn nothing_of_the_export_reaches_the_program_s_subscriber() {
        let (collector, _trace) = {
            tracing::subscriber::set_global_default(heard::Subscriber).unwrap();
            grpc()
        };
        collector.script([Reply::grpc(GrpcCode::Unavailable)]);
        steps(0, 3);
        flush(LONG).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(collector.spans().len(), 3, "nor is it recorded");
        let threads = heard::threads();
        assert!(!threads.is_empty(), "the collector speaks");
        assert!(!threads.iter().any(|name| name.starts_with("stagetrace-out")), "{threads:?}");
    }
}

/// A subscriber of the program's that hears everything.
mod heard {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata};

    static THREADS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    pub(crate) struct Subscriber;

    /// The threads that said something.
    pub(crate) fn threads() -> BTreeSet<String> {
        THREADS.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hear() {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        THREADS.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    impl tracing::Subscriber for Subscriber {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            hear();
            Id::from_u64(1)
        }

        fn event(&self, _: &Event<'_>) {
            hear();
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }
}

#[cfg(all(feature = "gzip", feature = "zstd"))]
mod compressed {
    use super::*;

    scenarios! {
        fn grpc_with_gzip() {
            delivers(Otlp::grpc, Protocol::Grpc, Compression::Gzip);
        }

        fn grpc_with_zstd() {
            delivers(Otlp::grpc, Protocol::Grpc, Compression::Zstd);
        }

        fn protobuf_over_http_with_gzip() {
            delivers(Otlp::http, Protocol::HttpProtobuf, Compression::Gzip);
        }

        fn json_over_http_with_zstd() {
            delivers(Otlp::http_json, Protocol::HttpJson, Compression::Zstd);
        }
    }
}

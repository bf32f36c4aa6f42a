//! The exporters of the OpenTelemetry SDK deliver, in every form, the same spans; and their retries
//! can be tested.

mod support;

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
    TraceId, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Array, Context, KeyValue, Value};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{
    Compression, Protocol as OtlpProtocol, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    InMemorySpanExporter, SdkTracerProvider, SpanData, SpanExporter as _,
};
use stagetrace_collector::{Collector, GrpcCode, Protocol, Reply, Spans, span};
use support::PROTOCOLS;

/// Spans with everything that the SDK records.
fn recorded() -> Vec<SpanData> {
    let memory = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(memory.clone()).build();
    let tracer = provider.tracer("exporters");
    let state = TraceState::from_key_value([("vendor", "opaque")]).unwrap();
    let remote =
        SpanContext::new(TraceId::from(7), SpanId::from(8), TraceFlags::SAMPLED, true, state);
    let mut parent = tracer
        .span_builder("request")
        .with_kind(SpanKind::Server)
        .with_links(vec![Link::new(remote.clone(), vec![KeyValue::new("why", "retry")], 0)])
        .start_with_context(&tracer, &Context::new().with_remote_span_context(remote));
    parent.set_attribute(KeyValue::new("text", "höher\n"));
    parent.set_attribute(KeyValue::new("int", i64::MIN));
    parent.set_attribute(KeyValue::new("double", -0.0));
    parent.set_attribute(KeyValue::new("bool", true));
    parent.set_attribute(KeyValue::new("list", Value::Array(Array::I64(vec![1, 2]))));
    parent.add_event("first token", vec![KeyValue::new("index", 0)]);
    parent.set_status(Status::error("out of memory"));
    let context = Context::new().with_span(parent);
    tracer.start_with_context("denoise", &context).end();
    context.span().end();
    memory.get_finished_spans().unwrap()
}

fn exporter(
    collector: &Collector,
    protocol: Protocol,
    compression: Option<Compression>,
) -> SpanExporter {
    let otlp_protocol = match protocol {
        Protocol::Grpc => {
            let builder = SpanExporter::builder().with_tonic().with_endpoint(collector.endpoint());
            let builder = match compression {
                Some(compression) => builder.with_compression(compression),
                None => builder,
            };
            return builder.build().unwrap();
        }
        Protocol::HttpProtobuf => OtlpProtocol::HttpBinary,
        Protocol::HttpJson => OtlpProtocol::HttpJson,
    };
    let builder = SpanExporter::builder()
        .with_http()
        .with_http_client(HyperClient::with_default_connector(Duration::from_secs(10), None))
        .with_protocol(otlp_protocol)
        .with_endpoint(collector.http_endpoint());
    let builder = match compression {
        Some(compression) => builder.with_compression(compression),
        None => builder,
    };
    builder.build().unwrap()
}

#[tokio::test]
async fn exporters_of_the_sdk_deliver_equal_spans_in_every_form() {
    let collector = Collector::start().await.unwrap();
    let recorded = recorded();
    for protocol in PROTOCOLS {
        for compression in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
            let mut exporter = exporter(&collector, protocol, compression);
            exporter
                .set_resource(&Resource::builder_empty().with_service_name("image-server").build());
            exporter.export(recorded.clone()).await.unwrap();

            let request = collector.requests().remove(0);
            assert_eq!(request.protocol, Some(protocol));
            let name = compression.map(|compression| compression.to_string());
            assert_eq!(request.compression, name.as_deref(), "{protocol:?}");
            assert!(request.header("user-agent").unwrap().contains("OTel-OTLP-Exporter-Rust/"));
            assert_same(&collector.clear(), &recorded);
        }
    }
}

/// What arrived says what was recorded.
fn assert_same(spans: &Spans, recorded: &[SpanData]) {
    spans.assert_tree(
        &["int", "bool"],
        "
        request int=-9223372036854775808 bool=true
          denoise
        ",
    );
    assert_eq!(spans.len(), recorded.len());
    for (span, recorded) in spans.iter().zip(recorded) {
        assert_eq!(span.trace_id.to_string(), recorded.span_context.trace_id().to_string());
        assert_eq!(span.span_id.to_string(), recorded.span_context.span_id().to_string());
        let parent = span.parent_span_id.map(|id| id.to_string());
        assert_eq!(parent, Some(recorded.parent_span_id.to_string()));
        assert_eq!(span.trace_state, recorded.span_context.trace_state().header());
        assert_eq!(span.start_unix_nano, unix_nano(recorded.start_time));
        assert_eq!(span.end_unix_nano, unix_nano(recorded.end_time));
        assert_eq!(span.attributes.len(), recorded.attributes.len());
        assert_eq!(span.resource.service_name(), Some("image-server"));
        assert_eq!(span.scope.name, "exporters");
    }

    let request = spans.one("request");
    assert_eq!((request.kind, request.flags), (span::SpanKind::Server, 0x301));
    assert_eq!(request.attribute("text"), Some(&"höher\n".into()));
    let double = request.attribute("double").and_then(span::Value::as_f64).unwrap();
    assert_eq!(double.to_bits(), (-0.0_f64).to_bits());
    let list = span::Value::Array(vec![1.into(), 2.into()]);
    assert_eq!(request.attribute("list"), Some(&list));
    let status = span::Status { code: span::StatusCode::Error, message: "out of memory".into() };
    assert_eq!(request.status, status);
    let [event] = &request.events[..] else { panic!("one event") };
    assert_eq!(
        (&*event.name, &event.attributes[..]),
        ("first token", &[("index".into(), 0.into())][..])
    );
    let [link] = &request.links[..] else { panic!("one link") };
    assert_eq!((link.trace_id.to_u128(), link.span_id.to_u64()), (7, 8));
    assert_eq!((&*link.trace_state, link.flags), ("vendor=opaque", 0x301));
    assert_eq!(link.attributes, [("why".into(), "retry".into())]);
}

fn unix_nano(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[tokio::test]
async fn an_exporter_waits_as_long_as_it_is_asked_to_and_delivers_once() {
    let collector = Collector::start().await.unwrap();
    let wait = Duration::from_secs(1);
    for protocol in PROTOCOLS {
        let busy = match protocol {
            Protocol::Grpc => Reply::grpc(GrpcCode::Unavailable),
            Protocol::HttpProtobuf | Protocol::HttpJson => Reply::status(503),
        };
        collector.script([busy.retry_after(wait)]);
        exporter(&collector, protocol, None).export(recorded()).await.unwrap();
        let requests = collector.requests();
        assert_eq!(requests.len(), 2, "{protocol:?}");
        let waited = requests[1].arrived - requests[0].arrived;
        assert!(waited >= wait, "{protocol:?} waited {waited:?}");
        assert_eq!(collector.clear().len(), 2);
    }
}

#[tokio::test]
async fn an_exporter_gives_up_what_is_not_worth_a_retry() {
    let collector = Collector::start().await.unwrap();
    collector.reply(Reply::grpc(GrpcCode::InvalidArgument).message("no"));
    for protocol in PROTOCOLS {
        let error = exporter(&collector, protocol, None).export(recorded()).await.unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_eq!(collector.requests().len(), 1, "{protocol:?}: {error}");
        collector.clear();
    }
}

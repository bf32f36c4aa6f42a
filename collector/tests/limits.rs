//! What is too large is refused, and takes no memory.

mod support;

use stagetrace_collector::Protocol::{Grpc, HttpProtobuf};
use stagetrace_collector::{Collector, Protocol};
use stagetrace_wire::span::{Span, Value};
use support::{Answer, PROTOCOLS, encoded, gzip, send, span, zstd};

const LIMIT: usize = 10_000;

async fn small() -> Collector {
    Collector::builder().max_grpc_bytes(LIMIT).max_http_bytes(LIMIT).start().await.unwrap()
}

/// A span whose request has exactly so many bytes.
fn request_of(protocol: Protocol, bytes: usize) -> Vec<u8> {
    let with_name = |len| encoded(protocol, &[span(1, &"x".repeat(len))]);
    let request = with_name(bytes - 200);
    let request = with_name(bytes - 200 + (bytes - request.len()));
    assert_eq!(request.len(), bytes);
    request
}

fn assert_too_large(answer: &Answer, protocol: Protocol) {
    if protocol == Grpc {
        assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("8")));
        let message = answer.header("grpc-message").unwrap();
        assert_eq!(message, "the request is larger than 10000 bytes");
    } else {
        assert_eq!(answer.status, 413, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_body_of_the_largest_size_is_taken_and_one_more_byte_is_refused() {
    let collector = small().await;
    for protocol in PROTOCOLS {
        send(&collector, protocol, "", &request_of(protocol, LIMIT)).await.unwrap();
        assert_eq!(collector.clear().len(), 1, "{protocol:?}");
        let answer =
            send(&collector, protocol, "", &request_of(protocol, LIMIT + 1)).await.unwrap();
        assert_too_large(&answer, protocol);
        assert!(collector.clear().is_empty());
    }
}

#[tokio::test]
async fn the_largest_limit_is_none() {
    let unlimited = Collector::builder().max_grpc_bytes(usize::MAX).max_http_bytes(usize::MAX);
    let collector = unlimited.start().await.unwrap();
    for protocol in PROTOCOLS {
        let body = request_of(protocol, LIMIT);
        for (name, body) in [("", body.clone()), ("gzip", gzip(&body)), ("zstd", zstd(&body))] {
            send(&collector, protocol, name, &body).await.unwrap();
            assert_eq!(collector.clear().len(), 1, "{protocol:?} {name}");
        }
    }
}

#[tokio::test]
async fn what_would_be_too_large_after_decompression_is_refused() {
    let collector = small().await;
    for protocol in PROTOCOLS {
        for (name, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd)] {
            let most = compress(&request_of(protocol, LIMIT));
            send(&collector, protocol, name, &most).await.unwrap();
            assert_eq!(collector.clear().len(), 1, "{protocol:?} with {name}");
            let bomb = compress(&vec![0; 8 << 20]);
            let answer = send(&collector, protocol, name, &bomb[..]).await.unwrap();
            assert_too_large(&answer, protocol);
            let requests = collector.requests();
            let refused = requests.last().unwrap();
            assert_eq!((refused.body_bytes, refused.spans), (None, 0));
            collector.clear();
        }
    }
}

#[tokio::test]
async fn a_sender_of_far_too_much_sees_why_it_is_refused() {
    let collector = small().await;
    for protocol in PROTOCOLS {
        let answer = send(&collector, protocol, "", &vec![b' '; 30 << 20]).await.unwrap();
        assert_too_large(&answer, protocol);
        assert!(collector.requests().last().unwrap().sent_bytes >= 30 << 20);
    }
}

#[tokio::test]
async fn the_default_limits_are_those_of_the_opentelemetry_collector() {
    let collector = Collector::start().await.unwrap();
    for (protocol, limit) in [(Grpc, 4 << 20), (HttpProtobuf, 20 << 20)] {
        send(&collector, protocol, "", &request_of(protocol, limit)).await.unwrap();
        send(&collector, protocol, "", &request_of(protocol, limit + 1)).await.unwrap();
        assert_eq!(collector.clear().len(), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn the_oldest_spans_give_way_and_are_counted() {
    const BOUND: usize = 100_000;
    let collector = Collector::builder().max_span_bytes(BOUND).start().await.unwrap();
    let number_of_spans = 300;
    for number in 1..=number_of_spans {
        let text = Value::from("x".repeat(900));
        let large = Span { attributes: vec![("text".into(), text)], ..span(number, "large") };
        send(&collector, HttpProtobuf, "", &encoded(HttpProtobuf, &[large])).await.unwrap();
        assert!(collector.spans().len() * 900 < BOUND);
    }
    let (spans, stats) = (collector.spans(), collector.stats());
    assert!(spans.len() * 2000 > BOUND, "only {} spans were kept", spans.len());
    assert_eq!((stats.spans, stats.rejected_spans), (number_of_spans, 0));
    assert_eq!(stats.dropped_spans + spans.len() as u64, number_of_spans);
    assert_eq!(spans.last().unwrap().span_id.to_u64(), number_of_spans);
}

#[tokio::test]
async fn the_oldest_requests_give_way() {
    let collector = Collector::start().await.unwrap();
    let sends: Vec<_> = (0..8)
        .map(|_| async {
            for _ in 0..600 {
                send(&collector, HttpProtobuf, "", b"").await.unwrap();
            }
        })
        .collect();
    support::join_all(sends).await;
    assert_eq!(collector.stats().requests, 4800);
    assert!((3072..=4096).contains(&collector.requests().len()));
}

#[tokio::test]
async fn requests_with_large_headers_give_way_too() {
    let collector = Collector::builder().max_span_bytes(1 << 20).start().await.unwrap();
    let large = "x".repeat(10_000);
    for _ in 0..100 {
        let headers = [("content-type", "application/json"), ("large", &large)];
        support::post(&collector, "/v1/traces", &headers, Vec::new()).await.unwrap();
        assert!(!collector.requests().is_empty());
    }
    assert_eq!(collector.stats().requests, 100);
    assert!((15..=26).contains(&collector.requests().len()));
}

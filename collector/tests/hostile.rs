//! Nothing that a sender sends makes the collector panic, and every answer says what is wrong.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use proptest::prelude::*;
use stagetrace_collector::Protocol::{Grpc, HttpJson, HttpProtobuf};
use stagetrace_collector::{Collector, Protocol};
use support::{Answer, LONG, PROTOCOLS, call, encoded, framed, gzip, post, send, span, zstd};

/// Whether the collector still does its work.
async fn assert_alive(collector: &Collector) {
    collector.clear();
    let body = encoded(HttpProtobuf, &[span(1, "alive")]);
    assert_eq!(send(collector, HttpProtobuf, "", &body).await.unwrap().status, 200);
    collector.spans().one("alive");
}

/// `400`, or what gRPC has for it.
fn is_invalid(answer: &Answer, protocol: Protocol) -> bool {
    match protocol {
        Grpc => answer.header("grpc-status") == Some("3"),
        HttpProtobuf | HttpJson => answer.status == 400,
    }
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused_as_invalid() {
    let collector = Collector::start().await.unwrap();
    let whole = gzip(&encoded(HttpProtobuf, &[span(1, "a")]));
    let deep = [b"{\"a\":".repeat(100_000), b"[".repeat(100_000)].concat();
    let bodies: [(&str, &[u8]); 12] = [
        ("", b"garbage"),
        ("", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        // A length of 2^62.
        ("", b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x40"),
        ("", b"[]"),
        ("", b"{\"resourceSpans\":7}"),
        ("", &deep),
        ("", b"\x0a\x02\x12"),
        ("gzip", b""),
        ("gzip", b"not gzip"),
        ("gzip", &whole[..whole.len() - 9]),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        // A frame whose window is 2 GiB.
        ("zstd", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"),
    ];
    for protocol in PROTOCOLS {
        for (compression, body) in bodies {
            let answer = send(&collector, protocol, compression, body).await.unwrap();
            let shown = &body[..body.len().min(40)];
            assert!(
                is_invalid(&answer, protocol),
                "{protocol:?}, {compression}, {shown:?}: {answer:?}"
            );
            let requests = collector.requests();
            assert!(requests.last().unwrap().error.is_some());
        }
    }
    assert_eq!(collector.stats().failed_requests, 36);
    assert_alive(&collector).await;
}

#[tokio::test]
async fn calls_that_are_not_one_whole_message_are_refused_as_invalid() {
    let collector = Collector::start().await.unwrap();
    let good = framed(0, &encoded(Grpc, &[span(1, "a")]));
    let bodies = [
        Vec::new(),
        vec![0; 4],
        b"\0\xff\xff\xff\xff".to_vec(),
        b"\0\xff\xff\xff\xffabc".to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], &good].concat(),
        framed(2, b""),
        // Compressed, but not said how.
        framed(1, &gzip(b"")),
    ];
    for body in bodies {
        let answer = call(&collector, &[], body.clone()).await.unwrap();
        assert!(is_invalid(&answer, Grpc), "{body:?}: {answer:?}");
    }
    // What is said about it is short enough for a header, whatever it speaks of.
    let long = "x".repeat(5000);
    let unknown = call(&collector, &[("grpc-encoding", &long)], framed(1, b"")).await.unwrap();
    assert_eq!(unknown.header("grpc-status"), Some("12"));
    assert!(unknown.header("grpc-message").unwrap().len() < 4096);
    // A compression is named, but this message has none.
    let plain = call(&collector, &[("grpc-encoding", "gzip")], good).await.unwrap();
    assert_eq!(plain.header("grpc-status"), Some("0"));
}

#[tokio::test]
async fn an_unknown_compression_is_refused_with_those_that_are_known() {
    let collector = Collector::start().await.unwrap();
    for protocol in PROTOCOLS {
        let answer = send(&collector, protocol, "br", b"").await.unwrap();
        if protocol == Grpc {
            assert_eq!(answer.header("grpc-status"), Some("12"));
            assert_eq!(answer.header("grpc-accept-encoding"), Some("gzip, zstd, identity"));
        } else {
            assert_eq!(answer.status, 415);
            assert_eq!(answer.header("accept-encoding"), Some("gzip, zstd, identity"));
        }
        let requests = collector.requests();
        let error = requests.last().unwrap().error.as_deref().unwrap();
        assert!(error.contains("\"br\""), "{error}");
    }
}

#[tokio::test]
async fn another_path_method_or_content_type_is_refused_and_recorded() {
    let collector = Collector::start().await.unwrap();
    let json = [("content-type", "application/json")];
    // A sender that appends the path to the whole URL.
    let twice = post(&collector, "/v1/traces/v1/traces", &json, Vec::new()).await.unwrap();
    assert_eq!(twice.status, 404);
    let metrics = post(&collector, "/v1/metrics", &json, Vec::new()).await.unwrap();
    assert_eq!(metrics.status, 404);
    for content_type in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let headers = [("content-type", content_type)];
        let answer = post(&collector, "/v1/traces", &headers, vec![b'x'; 1 << 20]).await.unwrap();
        assert_eq!(answer.status, 415, "{content_type}");
    }
    let grpc = [("content-type", "application/grpc")];
    let other_service = post(&collector, "/other.Service/Call", &grpc, Vec::new()).await.unwrap();
    assert_eq!((other_service.status, other_service.header("grpc-status")), (200, Some("12")));
    let with_charset = [("content-type", "Application/JSON; charset=utf-8")];
    let accepted = post(&collector, "/v1/traces?x=1", &with_charset, Vec::new()).await.unwrap();
    assert_eq!(accepted.status, 200);

    let requests = collector.requests();
    assert_eq!(requests.len(), 7);
    assert_eq!(requests.iter().filter(|request| request.protocol.is_none()).count(), 6);
    assert_eq!(requests[0].path, "/v1/traces/v1/traces");
    assert_eq!(requests[2].sent_bytes, 1 << 20);
    assert_eq!(requests[6].path, "/v1/traces");
    let error = collector.wait_for(|spans| !spans.is_empty(), Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("neither application/x-protobuf nor application/json"));
}

/// What the collector answers to bytes that no client would send.
fn raw(collector: &Collector, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(collector.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // It may close the connection before it has read all.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_http_do_no_harm() {
    let collector = Collector::start().await.unwrap();
    let endless = [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(100_000)].concat();
    for bytes in [
        b"" as &[u8],
        b"\0",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff",
        &endless,
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
    ] {
        raw(&collector, bytes);
    }
    let wrong_method =
        raw(&collector, b"GET /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(wrong_method.starts_with("HTTP/1.1 405 "), "{wrong_method}");
    assert!(wrong_method.contains("\r\nallow: POST\r\n"), "{wrong_method}");
    // A sender that dies within its body.
    raw(&collector, b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{");
    assert_alive(&collector).await;
}

/// One collector and one runtime for many cases.
struct Fixture {
    runtime: tokio::runtime::Runtime,
    collector: Collector,
}

impl Fixture {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, collector: Collector::start_blocking().unwrap() }
    }

    fn send(&self, protocol: Protocol, compression: &str, body: &[u8]) -> Answer {
        self.runtime.block_on(send(&self.collector, protocol, compression, body)).unwrap()
    }
}

thread_local! {
    static FIXTURE: Fixture = Fixture::new();
}

/// The answer tells what became of the spans, and so many are there.
fn check(
    fixture: &Fixture,
    protocol: Protocol,
    compression: &str,
    body: &[u8],
) -> Result<(), TestCaseError> {
    let answer = fixture.send(protocol, compression, body);
    let is_success = match protocol {
        Grpc => answer.header("grpc-status") == Some("0"),
        HttpProtobuf | HttpJson => answer.status == 200,
    };
    prop_assert!(is_success || is_invalid(&answer, protocol), "{:?}", answer);
    let request = fixture.collector.requests().pop().unwrap();
    let spans = fixture.collector.clear();
    prop_assert_eq!(spans.len(), request.spans);
    prop_assert!(is_success || request.error.is_some());
    // Whatever the spans are, they can be shown.
    prop_assert_eq!(spans.tree(&[]).lines().count(), spans.len());
    Ok(())
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(PROTOCOLS.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bodies_get_a_clear_answer(
        protocol in protocol(),
        compression in prop::sample::select(vec!["", "gzip", "zstd"]),
        body: Vec<u8>,
    ) {
        FIXTURE.with(|fixture| check(fixture, protocol, compression, &body))?;
    }

    #[test]
    fn changed_requests_get_a_clear_answer(
        protocol in protocol(),
        compression in prop::sample::select(vec!["", "gzip", "zstd"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        changes_plain: bool,
    ) {
        let spans: Vec<_> = (1..9).map(|number| span(number, "some name")).collect();
        let mut body = encoded(protocol, &spans);
        let change = |bytes: &mut Vec<u8>| {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        };
        if changes_plain {
            change(&mut body);
        }
        body = match compression {
            "gzip" => gzip(&body),
            "zstd" => zstd(&body),
            _ => body,
        };
        if !changes_plain {
            change(&mut body);
        }
        FIXTURE.with(|fixture| check(fixture, protocol, compression, &body))?;
    }
}

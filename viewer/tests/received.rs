//! Spans that are sent: through an inbox, and by OTLP.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};
use stagetrace_viewer::{Inbox, Refused, Samples, Sources, StepChoice, Store};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines, write_lines};
use stagetrace_wire::otlp::protobuf::write_request;
use stagetrace_wire::span::{Span, Value};

mod support;

use support::{View, cases};

const LONG: Duration = Duration::from_secs(30);

fn span(trace: u128, id: u64) -> Span {
    let ids = (TraceId::from_u128(trace).unwrap(), SpanId::from_u64(id).unwrap());
    Span { start_unix_nano: 5, end_unix_nano: 9, ..Span::new(ids.0, ids.1) }
}

/// A span of about so many bytes of memory.
fn large(trace: u128, bytes: usize) -> Span {
    let attributes = vec![("text".to_owned(), Value::Str("x".repeat(bytes)))];
    Span { attributes, ..span(trace, 1) }
}

fn empty() -> View {
    View { sources: Sources::default(), store: Store::default(), samples: Samples::default() }
}

/// Status, head and body of the answer to a request over HTTP/1.
fn post(to: SocketAddr, content_type: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

/// The status of a call of gRPC, where it is said before the body.
fn call(to: SocketAddr, message: &[u8]) -> Option<String> {
    let body = [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TokioIo::new(tokio::net::TcpStream::connect(to).await.unwrap());
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let path = "opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let request = hyper::Request::post(format!("http://{to}/{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Whole(Some(body.into())))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.headers().get("grpc-status").map(|status| status.to_str().unwrap().to_owned())
    })
}

struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[test]
fn spans_of_many_threads_arrive_whole_and_once() {
    let mut view = empty();
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let inbox = view.sources.inbox("test");
            thread::spawn(move || {
                for at in 0..500 {
                    inbox
                        .send(
                            vec![span(sender + 1, 2 * at + 1), span(sender + 1, 2 * at + 2)],
                            LONG,
                        )
                        .unwrap();
                }
            })
        })
        .collect();
    while !senders.iter().all(thread::JoinHandle::is_finished) {
        view.poll();
    }
    view.poll();
    let stats = view.store.stats();
    assert_eq!((stats.traces, stats.spans, stats.duplicates, stats.refused), (4, 4000, 0, 0));
    let reports = view.report().inboxes;
    assert_eq!(reports.iter().map(|one| one.spans).collect::<Vec<_>>(), [1000; 4]);
}

#[test]
fn sources_are_read_on_any_thread() {
    let mut view = empty();
    view.sources.receive_otlp(["127.0.0.1:0"]).unwrap();
    view.sources.inbox("test").offer(vec![span(1, 1)]).unwrap();
    let read = thread::spawn(move || {
        view.poll();
        view.store.stats().spans
    });
    assert_eq!(read.join().unwrap(), 1);
}

#[test]
fn a_full_inbox_gives_spans_back_and_takes_them_after_a_look() {
    let mut view = empty();
    let inbox = view.sources.inbox("test");
    let mut taken = 0;
    let refused = loop {
        match inbox.offer(vec![large(taken + 1, 10 << 20)]) {
            Ok(()) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(taken as usize, Inbox::MAX_BYTES / (10 << 20));
    let Refused::Full(spans) = refused else { panic!("{refused}") };
    assert_eq!(view.report().inboxes[0].deferred_spans, 1);
    view.poll();
    inbox.offer(spans).unwrap();
    // One that is larger than all room is taken when it is alone.
    let huge = vec![large(99, Inbox::MAX_BYTES + 1)];
    let Err(Refused::Full(huge)) = inbox.offer(huge) else { panic!("it is not alone") };
    view.poll();
    inbox.offer(huge).unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans as u128, taken + 2);
}

#[test]
fn who_waits_for_room_is_woken_by_a_look_and_by_the_end() {
    let mut view = empty();
    let inbox = view.sources.inbox("test");
    let fill = |inbox: &Inbox, trace| inbox.offer(vec![large(trace, Inbox::MAX_BYTES)]).unwrap();
    fill(&inbox, 1);
    let other = inbox.clone();
    let waiting = thread::spawn(move || other.send(vec![span(2, 1)], LONG));
    let began = Instant::now();
    while !waiting.is_finished() {
        assert!(began.elapsed() < LONG);
        view.poll();
    }
    waiting.join().unwrap().unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans, 2);

    fill(&inbox, 3);
    let other = inbox.clone();
    let waiting = thread::spawn(move || other.send(vec![span(4, 1)], LONG));
    thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    drop(view);
    assert!(matches!(waiting.join().unwrap(), Err(Refused::Closed(spans)) if spans.len() == 1));
    assert!(began.elapsed() < LONG / 2);
    assert!(matches!(inbox.offer(Vec::new()), Err(Refused::Closed(_))));
}

#[test]
fn otlp_is_received_in_all_its_forms_and_is_what_a_file_of_it_is() {
    let file = cases("xtuner/agent/traces.jsonl");
    let expected = View::of(&[&file]);
    let contents = read_lines(&std::fs::read(&file).unwrap(), &ReadOptions::default());
    let parts: Vec<&[Span]> = contents.spans.chunks(contents.spans.len().div_ceil(3)).collect();
    let mut view = empty();
    let addresses = ["127.0.0.1:0", "localhost:0"];
    let [grpc, http] = view.sources.receive_otlp(addresses).unwrap()[..] else { panic!() };
    assert_eq!(call(grpc, &write_request(parts[0])), None, "it is said after the body");
    assert_eq!(post(http, "application/x-protobuf", &write_request(parts[1])).0, 200);
    for line in write_lines(parts[2]).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert_eq!(post(http, "application/json", line).0, 200);
    }
    view.poll();
    assert_eq!(view.spans(), expected.spans());
    assert_eq!(
        view.json(1 << 60)["statuses"],
        expected.json(1 << 60)["statuses"],
        "and the samples are the same"
    );
    let reports = view.report().inboxes;
    assert_eq!(reports[0].name, format!("OTLP at {grpc}"));
    assert_eq!((reports[0].requests, reports[0].failed_requests), (1, 0));
    assert_eq!(reports[0].spans + reports[1].spans, contents.spans.len() as u64);
}

#[test]
fn senders_are_told_to_come_again_when_there_is_no_room() {
    let mut view = empty();
    let [address] = view.sources.receive_otlp(["127.0.0.1:0"]).unwrap()[..] else { panic!() };
    let mut sent = 0;
    let message = loop {
        let message = write_request(&[large(sent + 1, 15 << 20)]);
        let (status, answer) = post(address, "application/x-protobuf", &message);
        if status != 200 {
            assert_eq!(status, 503);
            assert!(answer.to_ascii_lowercase().contains("retry-after: 1\r\n"), "{answer}");
            break message;
        }
        sent += 1;
    };
    assert_eq!(call(address, &write_request(&[large(77, 3 << 20)])), None, "a smaller one fits");
    assert_eq!(call(address, &write_request(&[large(78, 3 << 20)])).as_deref(), Some("14"));
    view.poll();
    assert_eq!(post(address, "application/x-protobuf", &message).0, 200);
    view.poll();
    let report = view.report().inboxes.remove(0);
    assert_eq!((report.deferred_spans, report.refused_spans), (2, 0));
    assert_eq!(view.store.stats().spans as u128, sent + 2);
}

#[test]
fn spans_without_valid_ids_and_requests_that_cannot_be_read_are_counted() {
    let mut view = empty();
    let [address] = view.sources.receive_otlp(["127.0.0.1:0"]).unwrap()[..] else { panic!() };
    let line = support::line(1, 1, 0, "x", [5, 9]);
    let invalid = line.replace(&format!("{:032x}", 1), &"0".repeat(32));
    assert_eq!(post(address, "application/json", line.as_bytes()).0, 200);
    assert_eq!(post(address, "application/json", invalid.as_bytes()).0, 200);
    assert_eq!(post(address, "application/json", b"garbage").0, 400);
    view.poll();
    let report = view.report().inboxes.remove(0);
    assert_eq!((report.spans, report.refused_spans), (1, 1));
    assert_eq!((report.requests, report.failed_requests), (3, 2));
    assert_eq!(view.json(10)["losses"]["refused_spans"], 1);
}

#[test]
fn a_span_that_is_announced_is_open_until_it_comes() {
    let mut view = empty();
    let inbox = view.sources.inbox("test");
    inbox.offer(vec![span(1, 1)]).unwrap();
    view.poll();
    assert!(!view.summary(100, StepChoice::All).live_source);
    let pending = Value::Str(format!("{:016x}", 7));
    let announced =
        Span { attributes: vec![("stagetrace.pending".to_owned(), pending)], ..span(2, 8) };
    inbox.offer(vec![announced]).unwrap();
    view.poll();
    let summary = view.summary(100, StepChoice::All);
    assert!(summary.live_source);
    assert_eq!((summary.samples, summary.open_samples.len()), (2, 1));
    inbox.offer(vec![span(2, 7)]).unwrap();
    view.poll();
    let summary = view.summary(100, StepChoice::All);
    assert_eq!((summary.samples, summary.open_samples.len()), (2, 0));
}

#[test]
fn what_was_sent_keeps_its_details_when_there_is_no_room_and_the_rest_is_counted() {
    let mut view = empty();
    view.store = Store::new(4 << 20);
    let inbox = view.sources.inbox("test");
    for trace in 1..=2_000 {
        inbox.send(vec![large(trace, 10_000)], LONG).unwrap();
        view.poll();
    }
    let stats = view.store.stats();
    assert_eq!(stats.spans as u64 + stats.refused, 2_000);
    assert!(stats.refused > 1_000 && stats.bytes < 5 << 20, "{stats:?}");
    assert_eq!(view.json(10)["losses"]["beyond_memory"], stats.refused);
    for trace in view.store.traces() {
        view.sources.restore(&mut view.store, trace);
        let span = view.store.spans_of(trace).next().unwrap();
        assert_eq!(view.store.span(span).attributes.len(), 1);
    }
}

#[test]
fn an_address_that_cannot_be_had_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut sources = Sources::default();
    for address in [&*taken, "no port", "127.0.0.1", "127.0.0.1:70000"] {
        let error = sources.receive_otlp([address]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot receive OTLP at {address}: ")), "{error}");
        assert!(error.ends_with("such as 127.0.0.1:4317, or port 0 for any"), "{error}");
    }
    assert!(sources.report().inboxes.is_empty());
}

#[test]
fn an_address_is_free_again_when_the_sources_are_gone_and_may_be_named_twice() {
    let mut sources = Sources::default();
    let [one, other] = sources.receive_otlp(["127.0.0.1:0"; 2]).unwrap()[..] else { panic!() };
    assert_eq!((one, sources.report().inboxes.len()), (other, 1));
    drop(sources);
    let mut sources = Sources::default();
    assert_eq!(sources.receive_otlp([one.to_string()]).unwrap(), [one]);
}

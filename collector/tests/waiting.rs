//! Waiting for spans, choosing among them, and what is printed if they do not come.

mod support;

use std::time::{Duration, Instant};

use stagetrace_collector::Protocol::{Grpc, HttpJson, HttpProtobuf};
use stagetrace_collector::{Collector, Spans};
use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::{Span, Value};
use support::{LONG, PROTOCOLS, encoded, send, span};

fn child_of(parent: u64, span: Span) -> Span {
    Span { parent_span_id: stagetrace_wire::id::SpanId::from_u64(parent), ..span }
}

fn with(key: &str, value: Value, span: Span) -> Span {
    Span { attributes: vec![(key.to_owned(), value)], ..span }
}

/// A request that was judged twice, and another trace.
fn rollout() -> Vec<Span> {
    let other = TraceId::from_u128(2).unwrap();
    vec![
        child_of(1, with("score", Value::F64(0.5), span(3, "judge"))),
        child_of(3, span(4, "model")),
        with("rollout.id", "r-7".into(), span(1, "request")),
        child_of(1, with("score", Value::F64(0.25), span(2, "judge"))),
        Span { trace_id: other, ..span(5, "request") },
    ]
}

async fn deliver(collector: &Collector, spans: &[Span]) {
    send(collector, HttpProtobuf, "", &encoded(HttpProtobuf, spans)).await.unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_the_spans_are_there() {
    let collector = Collector::start().await.unwrap();
    let (spans, ()) = tokio::join!(collector.wait_for(|spans| spans.len() == 2, LONG), async {
        deliver(&collector, &[span(1, "first")]).await;
        deliver(&collector, &[span(2, "second")]).await;
    },);
    assert_eq!(spans.unwrap().tree(&[]), "first\nsecond\n");
    // They still are.
    assert_eq!(
        collector.wait_for(|spans| spans.len() == 2, Duration::ZERO).await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_wait_in_vain_ends_in_time_and_prints_what_was_there() {
    let collector = Collector::start().await.unwrap();
    deliver(&collector, &rollout()).await;
    let start = Instant::now();
    let wait = Duration::from_millis(200);
    let timeout =
        collector.wait_for(|spans| !spans.named("reward").is_empty(), wait).await.unwrap_err();
    assert!(start.elapsed() >= wait);
    let expected = "\
not within 200ms; 5 spans of 1 requests are there
request
  judge
  judge
    model
request
";
    assert_eq!(timeout.to_string(), expected);
    assert_eq!(format!("{timeout:?}"), expected, "as `unwrap` prints it");
    assert_eq!(timeout.spans().len(), 5);
}

#[tokio::test]
async fn a_wait_in_vain_prints_why_spans_are_missing() {
    let collector = Collector::start().await.unwrap();
    collector.script([stagetrace_collector::Reply::status(503)]);
    deliver(&collector, &rollout()).await;
    for body in ["1", "2", "3", "4"] {
        send(&collector, HttpJson, "", format!("[{body}").as_bytes()).await.unwrap();
    }
    support::post(&collector, "/v1/trace", &[], Vec::new()).await.unwrap();
    let timeout = collector.wait_for_requests(|_| false, Duration::ZERO).await.unwrap_err();
    assert_eq!(
        timeout.to_string(),
        "\
not within 0ns; 0 spans of 6 requests are there
5 were rejected and 0 dropped since the start
a request to \"/v1/traces\" has an error: line 1: no JSON object
a request to \"/v1/traces\" has an error: line 1: no JSON object
a request to \"/v1/trace\" has an error: there is no \"/v1/trace\"; spans are sent to /v1/traces, or over gRPC
"
    );
}

#[test]
fn a_test_that_is_not_async_waits_too() {
    let collector = Collector::start_blocking().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| collector.wait_for_blocking(|spans| !spans.is_empty(), LONG));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(deliver(&collector, &[span(1, "late")]));
        waiting.join().unwrap().unwrap().one("late");
    });
    let wait = Duration::from_millis(100);
    let timeout = collector.wait_for_blocking(|spans| spans.len() == 2, wait).unwrap_err();
    assert_eq!(timeout.to_string(), "not within 100ms; 1 spans of 1 requests are there\nlate\n");
    let requests = collector.wait_for_requests_blocking(|requests| requests.len() == 1, LONG);
    assert_eq!(requests.unwrap()[0].spans, 1);
}

#[tokio::test]
async fn a_blocked_test_is_still_served() {
    let collector = Collector::start().await.unwrap();
    // The only thread of this runtime blocks; the sender has its own.
    let address = collector.endpoint();
    let sender = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address["http://".len()..]).unwrap();
        let body = encoded(HttpProtobuf, &[span(1, "served")]);
        write!(
            stream,
            "POST /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
            body.len(),
        )
        .unwrap();
        stream.write_all(&body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    collector.wait_for_blocking(|spans| spans.len() == 1, LONG).unwrap();
    assert!(sender.join().unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn waits_need_no_runtime() {
    use std::future::Future as _;
    use std::task::{Context, Poll, Waker};

    let collector = Collector::start_blocking().unwrap();
    let mut wait = Box::pin(collector.wait_for(|_| false, Duration::from_millis(50)));
    let start = Instant::now();
    let timeout = loop {
        // No executor at all: ask again and again.
        match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => break result.unwrap_err(),
            Poll::Pending => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(start.elapsed() < LONG, "it never ends");
    };
    assert!(timeout.spans().is_empty());
    assert!(collector.wait_for_blocking(|spans| spans.is_empty(), Duration::MAX).is_ok());
}

#[tokio::test]
async fn a_condition_may_ask_the_collector() {
    let collector = Collector::start().await.unwrap();
    let asks = |_: &Spans| collector.spans().is_empty() && collector.stats().requests == 0;
    collector.wait_for(asks, LONG).await.unwrap();
    collector.wait_for_blocking(asks, LONG).unwrap();
}

#[tokio::test]
async fn requests_are_shown_as_they_came() {
    let collector = Collector::start().await.unwrap();
    let before = Instant::now();
    let body = encoded(HttpProtobuf, &rollout());
    let headers = [
        ("content-type", "application/x-protobuf"),
        ("User-Agent", "test/1"),
        ("authorization", "Bearer hunter2"),
    ];
    support::post(&collector, "/v1/traces", &headers, body.clone()).await.unwrap();
    let requests = collector.wait_for_requests(|requests| requests.len() == 1, LONG).await.unwrap();
    let request = &requests[0];
    assert!(before <= request.arrived && request.arrived <= Instant::now());
    assert_eq!((&*request.path, request.protocol), ("/v1/traces", Some(HttpProtobuf)));
    assert_eq!((request.spans, request.body_bytes), (5, Some(body.len())));
    assert_eq!(request.header("USER-AGENT"), Some("test/1"));
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(request.header("cookie"), None);
    let printed = format!("{request:?} {collector:?}");
    assert!(printed.contains("authorization") && !printed.contains("hunter2"), "{printed}");
}

#[tokio::test]
async fn spans_are_chosen_by_name_trace_and_attribute() {
    let collector = Collector::start().await.unwrap();
    deliver(&collector, &rollout()).await;
    let spans = collector.spans();
    assert_eq!(spans.named("judge").len(), 2);
    let of_trace = spans.in_trace(TraceId::from_u128(1).unwrap());
    assert_eq!(of_trace.len(), 4);
    assert_eq!(of_trace.one("request").attribute("rollout.id"), Some(&"r-7".into()));
    assert_eq!(spans.with_attribute("rollout.id", "r-7").len(), 1);
    assert_eq!(spans.with_attribute("score", 0.25)[0].span_id.to_u64(), 2);
    assert!(spans.with_attribute("rollout.id", "r-8").is_empty());
    assert_eq!(spans.filter(|span| span.parent_span_id.is_none()).len(), 2);
    assert_eq!(spans.named("judge").in_trace(TraceId::from_u128(2).unwrap()).len(), 0);
    let names: Vec<String> = spans.into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["judge", "model", "request", "judge", "request"], "in order of arrival");
}

#[tokio::test]
async fn a_trace_is_compared_as_an_indented_tree() {
    let collector = Collector::start().await.unwrap();
    deliver(&collector, &rollout()).await;
    let spans = collector.spans().in_trace(TraceId::from_u128(1).unwrap());
    spans.assert_tree(
        &["rollout.id", "score"],
        "
        request rollout.id=r-7
          judge score=0.25
          judge score=0.5
            model
        ",
    );
    spans.assert_all("started after 1970", |span| span.start_unix_nano > 0);
}

fn failure(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(check).expect_err("it fails");
    panic.downcast_ref::<String>().expect("a formatted message").clone()
}

#[test]
fn assertions_that_fail_print_the_tree() {
    let spans: Spans = rollout().into_iter().collect();
    let tree = "request\n  judge\n  judge\n    model\nrequest\n";
    let of = |check: &dyn Fn()| failure(std::panic::AssertUnwindSafe(check));
    assert_eq!(
        of(&|| drop(spans.one("judge"))),
        format!("2 spans are named \"judge\" among these:\n{tree}")
    );
    assert_eq!(
        of(&|| spans.assert_tree(&[], "request")),
        format!("expected this tree:\nrequest\n\nbut these spans arrived:\n{tree}")
    );
    assert_eq!(
        of(&|| spans.assert_all("ended", Span::has_ended)),
        format!("5 of these spans are not ended:\n{tree}")
    );
}

#[tokio::test]
async fn what_is_cleared_is_given_back_once() {
    let collector = Collector::start().await.unwrap();
    deliver(&collector, &rollout()).await;
    let before = collector.spans();
    assert_eq!(collector.clear(), before);
    assert!(collector.spans().is_empty() && collector.requests().is_empty());
    assert_eq!((collector.stats().spans, collector.stats().requests), (5, 1));
    deliver(&collector, &[span(9, "next")]).await;
    assert_eq!(collector.clear().tree(&[]), "next\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_senders_at_once_lose_nothing() {
    let collector = Collector::start().await.unwrap();
    let sends: Vec<_> = (0..50_u64)
        .map(|sender| {
            let collector = &collector;
            async move {
                let protocol = PROTOCOLS[sender as usize % 3];
                for batch in 0..10 {
                    let first = 1 + 100 * (10 * sender + batch);
                    let spans: Vec<_> =
                        (first..first + 100).map(|number| span(number, "s")).collect();
                    let body = support::gzip(&encoded(protocol, &spans));
                    let answer = send(collector, protocol, "gzip", &body).await.unwrap();
                    assert_eq!(answer.status, 200);
                    if protocol == Grpc {
                        assert_eq!(answer.header("grpc-status"), Some("0"));
                    }
                }
            }
        })
        .collect();
    support::join_all(sends).await;
    let mut numbers: Vec<u64> =
        collector.spans().iter().map(|span| span.span_id.to_u64()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=50_000));
    assert_eq!(collector.stats().requests, 500);
}

#[tokio::test]
async fn a_dropped_collector_is_gone_with_its_connections() {
    let collector = Collector::start().await.unwrap();
    let address = collector.address();
    collector.reply(stagetrace_collector::Reply::hang());
    let body = encoded(HttpProtobuf, &rollout());
    tokio::select! {
        answer = send(&collector, HttpProtobuf, "", &body) => panic!("it answers: {answer:?}"),
        came = collector.wait_for_requests(|all| all.len() == 1, LONG) => drop(came.unwrap()),
    }
    let idle = tokio::net::TcpStream::connect(address).await.unwrap();
    let start = Instant::now();
    drop(collector);
    assert!(start.elapsed() < Duration::from_secs(10), "the stop took {:?}", start.elapsed());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    tokio::time::timeout(LONG, idle.readable()).await.expect("it is closed").unwrap();
    assert!(matches!(idle.try_read(&mut [0; 9]), Ok(0) | Err(_)));
}

#[tokio::test]
async fn an_address_can_be_chosen_and_is_refused_if_it_is_taken() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let first = match Collector::builder().address(address.parse().unwrap()).start().await {
            Err(error) if address.starts_with('[') => {
                return println!("not checked: this machine has no IPv6: {error}");
            }
            first => first.unwrap(),
        };
        let host = address.trim_end_matches('0');
        assert_eq!(first.endpoint(), format!("http://{host}{}", first.address().port()));
        let second = Collector::builder().address(first.address()).start().await;
        assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        deliver(&first, &[span(1, "a")]).await;
        first.spans().one("a");
    }
}

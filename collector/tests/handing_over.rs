//! A collector that hands spans over, and keeps nothing.

mod support;

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use stagetrace_collector::Protocol::Grpc;
use stagetrace_collector::{Collector, Reply};
use stagetrace_wire::span::Span;
use support::{PROTOCOLS, encoded, post, send, span};

fn handing_over(reply: fn() -> Reply) -> (Collector, Receiver<Vec<Span>>) {
    let (send, receive) = channel();
    let handler = move |spans| {
        send.send(spans).unwrap();
        reply()
    };
    (Collector::builder().on_export(handler).start_blocking().unwrap(), receive)
}

#[tokio::test]
async fn each_request_is_handed_over_and_counted_and_nothing_is_kept() {
    let (collector, handed) = handing_over(Reply::success);
    let spans = [span(1, "first"), span(2, "second")];
    for protocol in PROTOCOLS {
        let answer = send(&collector, protocol, "", &encoded(protocol, &spans)).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(handed.try_recv().unwrap(), spans);
        assert!(handed.try_recv().is_err(), "once");
    }
    assert!(collector.spans().is_empty() && collector.requests().is_empty());
    let stats = collector.stats();
    assert_eq!((stats.requests, stats.spans, stats.rejected_spans), (3, 6, 0));
}

#[tokio::test]
async fn what_the_function_returns_is_the_answer() {
    let busy = || Reply::status(503).retry_after(Duration::from_secs(2));
    let (collector, handed) = handing_over(busy);
    collector.reply(Reply::status(404));
    for protocol in PROTOCOLS {
        let spans = [span(1, "first"), span(2, "second")];
        let answer = send(&collector, protocol, "", &encoded(protocol, &spans)).await.unwrap();
        assert_eq!(answer.status, 503, "{protocol:?}");
        assert_eq!(answer.header("retry-after"), Some("2"));
        assert_eq!(handed.try_recv().unwrap().len(), 2);
    }
    let stats = collector.stats();
    assert_eq!((stats.requests, stats.spans, stats.rejected_spans), (3, 0, 6));

    let (collector, _handed) = handing_over(|| Reply::partial_success(1).message("no room"));
    let spans = [span(1, "first"), span(2, "second")];
    let answer = send(&collector, Grpc, "", &encoded(Grpc, &spans)).await.unwrap();
    assert!(answer.body.ends_with(b"no room"));
    let stats = collector.stats();
    assert_eq!((stats.spans, stats.rejected_spans), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_without_asking() {
    let (collector, handed) = handing_over(Reply::success);
    for protocol in PROTOCOLS {
        let answer = send(&collector, protocol, "", b"garbage").await.unwrap();
        let is_refused = match protocol {
            Grpc => answer.header("grpc-status") == Some("3"),
            _ => answer.status == 400,
        };
        assert!(is_refused, "{protocol:?}: {answer:?}");
    }
    assert_eq!(post(&collector, "/v1/metrics", &[], Vec::new()).await.unwrap().status, 404);
    assert!(handed.try_recv().is_err());
    assert!(collector.requests().is_empty());
    assert_eq!((collector.stats().requests, collector.stats().failed_requests), (4, 4));
}

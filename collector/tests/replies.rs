//! Each scripted answer arrives as it was written.

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stagetrace_collector::Protocol::{Grpc, HttpJson, HttpProtobuf};
use stagetrace_collector::{Collector, GrpcCode, Protocol, Reply};
use support::{Answer, LONG, PROTOCOLS, encoded, framed, post, send, span};
use tokio::time::timeout;

/// Sends two spans.
async fn deliver(collector: &Collector, protocol: Protocol) -> Result<Answer, hyper::Error> {
    let spans = [span(1, "first"), span(2, "second")];
    send(collector, protocol, "", &encoded(protocol, &spans)).await
}

async fn answer(collector: &Collector, protocol: Protocol, reply: Reply) -> Answer {
    collector.script([reply]);
    deliver(collector, protocol).await.unwrap()
}

#[tokio::test]
async fn success_is_an_empty_message_in_the_form_of_the_request() {
    let collector = Collector::start().await.unwrap();
    let forms: [(Protocol, &str, &[u8]); 3] = [
        (Grpc, "application/grpc", b"\0\0\0\0\0"),
        (HttpProtobuf, "application/x-protobuf", b""),
        (HttpJson, "application/json", b"{}"),
    ];
    for (protocol, content_type, body) in forms {
        let answer = deliver(&collector, protocol).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (200, body));
        assert_eq!(answer.header("content-type"), Some(content_type));
        assert_eq!(answer.header("grpc-status"), (protocol == Grpc).then_some("0"));
    }
}

#[tokio::test]
async fn a_status_of_http_comes_with_its_wait_and_its_message() {
    let collector = Collector::start().await.unwrap();
    for status in [400, 404, 429, 500, 502, 503, 504] {
        let reply =
            || Reply::status(status).retry_after(Duration::from_millis(1500)).message("not now");
        let to_json = answer(&collector, HttpJson, reply()).await;
        assert_eq!((to_json.status, to_json.header("retry-after")), (status, Some("2")));
        let body: Json = serde_json::from_slice(&to_json.body).unwrap();
        assert_eq!(body["message"], "not now");
        let to_protobuf = answer(&collector, HttpProtobuf, reply()).await;
        assert_eq!(to_protobuf.status, status);
        assert_eq!(to_protobuf.header("content-type"), Some("application/x-protobuf"));
        assert!(to_protobuf.body.windows(9).any(|part| part == b"\x12\x07not now"));
        // A proxy does not speak gRPC.
        let to_grpc = answer(&collector, Grpc, reply()).await;
        assert_eq!((to_grpc.status, to_grpc.header("grpc-status")), (status, None));
    }
    assert!(collector.spans().is_empty());
    assert_eq!(collector.stats().rejected_spans, 42);
}

#[tokio::test]
async fn a_code_of_grpc_comes_with_its_wait_and_its_message() {
    use base64::Engine as _;

    let collector = Collector::start().await.unwrap();
    let wait = Duration::from_millis(1500);
    let reply =
        || Reply::grpc(GrpcCode::Unavailable).retry_after(wait).message("not now: 100 % busy");
    let over_grpc = answer(&collector, Grpc, reply()).await;
    assert_eq!((over_grpc.status, over_grpc.header("grpc-status")), (200, Some("14")));
    assert_eq!(over_grpc.header("grpc-message"), Some("not now: 100 %25 busy"));
    let details = over_grpc.header("grpc-status-details-bin").unwrap();
    let details = base64::engine::general_purpose::STANDARD_NO_PAD.decode(details).unwrap();
    // `Any { value: RetryInfo { retry_delay: Duration { seconds: 1, nanos: 500_000_000 } } }`
    assert!(details.ends_with(b"\x12\x0a\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"), "{details:x?}");
    assert!(details.starts_with(b"\x08\x0e\x12\x13not now"));

    let over_http = answer(&collector, HttpJson, reply()).await;
    assert_eq!((over_http.status, over_http.header("retry-after")), (503, Some("2")));
    let body: Json = serde_json::from_slice(&over_http.body).unwrap();
    assert_eq!(body, json!({"code": 14, "message": "not now: 100 % busy"}));
}

#[tokio::test]
async fn each_code_of_grpc_becomes_the_status_that_gateways_make_of_it() {
    use GrpcCode::*;

    let collector = Collector::start().await.unwrap();
    let codes = [
        (Ok, 200),
        (Cancelled, 499),
        (Unknown, 500),
        (InvalidArgument, 400),
        (DeadlineExceeded, 504),
        (NotFound, 404),
        (AlreadyExists, 409),
        (PermissionDenied, 403),
        (ResourceExhausted, 429),
        (FailedPrecondition, 400),
        (Aborted, 409),
        (OutOfRange, 400),
        (Unimplemented, 501),
        (Internal, 500),
        (Unavailable, 503),
        (DataLoss, 500),
        (Unauthenticated, 401),
    ];
    for (number, (code, status)) in codes.into_iter().enumerate() {
        let over_grpc = answer(&collector, Grpc, Reply::grpc(code)).await;
        assert_eq!(over_grpc.header("grpc-status"), Some(&*number.to_string()), "{code:?}");
        assert_eq!(
            answer(&collector, HttpJson, Reply::grpc(code)).await.status,
            status,
            "{code:?}"
        );
    }
    // What is answered with success is kept.
    assert_eq!(collector.spans().len(), 4);
}

#[tokio::test]
async fn a_partial_success_keeps_all_but_the_last_spans() {
    let collector = Collector::start().await.unwrap();
    let reply = || Reply::partial_success(1).message("one too many");
    let to_json = answer(&collector, HttpJson, reply()).await;
    let partial = json!({"rejectedSpans": "1", "errorMessage": "one too many"});
    let body: Json = serde_json::from_slice(&to_json.body).unwrap();
    assert_eq!((to_json.status, body), (200, json!({"partialSuccess": partial})));
    assert_eq!(collector.clear().tree(&[]), "first\n");

    let message = b"\x0a\x10\x08\x01\x12\x0cone too many";
    assert_eq!(answer(&collector, HttpProtobuf, reply()).await.body, message);
    let over_grpc = answer(&collector, Grpc, reply()).await;
    assert_eq!(over_grpc.body, framed(0, message));
    assert_eq!(over_grpc.header("grpc-status"), Some("0"));
    assert_eq!(collector.stats().rejected_spans, 3);

    // Nothing is rejected, but there is something to say.
    let warned = answer(&collector, HttpJson, Reply::success().message("soon full")).await;
    let body: Json = serde_json::from_slice(&warned.body).unwrap();
    let partial = json!({"rejectedSpans": "0", "errorMessage": "soon full"});
    assert_eq!(body, json!({"partialSuccess": partial}));
}

#[tokio::test]
async fn an_answer_is_late_by_its_delay_and_the_spans_are_there_before() {
    let collector = Collector::start().await.unwrap();
    for protocol in PROTOCOLS {
        collector.script([Reply::success().delay(Duration::from_millis(300))]);
        let start = Instant::now();
        let (answer, spans) = tokio::join!(
            deliver(&collector, protocol),
            collector.wait_for(|spans| spans.len() == 2, LONG),
        );
        assert_eq!(answer.unwrap().status, 200);
        assert!(start.elapsed() >= Duration::from_millis(300));
        assert_eq!(spans.unwrap().len(), 2);
        collector.clear();
    }
}

#[tokio::test]
async fn a_hanging_collector_reads_and_never_answers() {
    let collector = Collector::start().await.unwrap();
    for (round, protocol) in PROTOCOLS.into_iter().enumerate() {
        collector.script([Reply::hang()]);
        let mut sending = std::pin::pin!(deliver(&collector, protocol));
        tokio::select! {
            answer = &mut sending => panic!("{protocol:?}: {answer:?}"),
            came = collector.wait_for_requests(|all| all.len() > 2 * round, LONG) => drop(came.unwrap()),
        }
        let hanging = timeout(Duration::from_millis(200), sending).await;
        assert!(hanging.is_err(), "{protocol:?}: {hanging:?}");
        // It hangs for this one only.
        assert_eq!(deliver(&collector, protocol).await.unwrap().status, 200);
    }
    assert_eq!(collector.stats().requests, 6);
}

#[tokio::test]
async fn a_closed_connection_is_an_error_and_not_a_hang() {
    let collector = Collector::start().await.unwrap();
    for protocol in PROTOCOLS {
        for reply in [Reply::close(), Reply::close_mid_body()] {
            collector.script([reply]);
            let closed = timeout(LONG, deliver(&collector, protocol)).await;
            assert!(closed.expect("it does not hang").is_err(), "{protocol:?}");
        }
    }
    assert!(collector.spans().is_empty());
    assert_eq!(collector.stats().requests, 6);
}

#[tokio::test]
async fn garbage_is_a_success_that_is_no_message() {
    let collector = Collector::start().await.unwrap();
    let to_json = answer(&collector, HttpJson, Reply::garbage()).await;
    assert_eq!(to_json.status, 200);
    assert!(serde_json::from_slice::<Json>(&to_json.body).is_err());
    let over_grpc = answer(&collector, Grpc, Reply::garbage()).await;
    assert!(stagetrace_wire::otlp::protobuf::read_request(&over_grpc.body[5..]).is_err());
}

#[tokio::test]
async fn spans_may_be_kept_though_the_answer_is_lost() {
    let collector = Collector::start().await.unwrap();
    collector.script([Reply::close().keep_spans(), Reply::status(503).keep_spans()]);
    assert!(deliver(&collector, HttpProtobuf).await.is_err());
    assert_eq!(deliver(&collector, HttpProtobuf).await.unwrap().status, 503);
    assert_eq!(collector.spans().len(), 4);
}

#[tokio::test]
async fn a_header_of_the_answer_can_be_anything() {
    let collector = Collector::start().await.unwrap();
    let date = "Wed, 21 Oct 2065 07:28:00 GMT";
    let reply = Reply::status(429).retry_after(LONG).header("Retry-After", date);
    assert_eq!(answer(&collector, HttpJson, reply).await.header("retry-after"), Some(date));
}

#[tokio::test]
async fn a_script_is_played_once_and_then_the_standing_reply_holds() {
    let collector = Collector::start().await.unwrap();
    let statuses = async |number: usize| {
        let mut statuses = Vec::new();
        for _ in 0..number {
            statuses.push(deliver(&collector, HttpProtobuf).await.unwrap().status);
        }
        statuses
    };
    collector.script([Reply::status(503), Reply::success()]);
    collector.script([Reply::status(429)]);
    assert_eq!(statuses(5).await, [503, 200, 429, 200, 200]);
    collector.reply(Reply::status(500));
    collector.script([Reply::success()]);
    assert_eq!(statuses(3).await, [200, 500, 500]);
    collector.script([Reply::status(404)]);
    collector.reply(Reply::success());
    assert_eq!(statuses(2).await, [200, 200]);
}

#[tokio::test]
async fn what_is_no_request_takes_no_reply_from_the_script() {
    let collector = Collector::start().await.unwrap();
    collector.script([Reply::status(503)]);
    assert_eq!(post(&collector, "/", &[], Vec::new()).await.unwrap().status, 404);
    assert_eq!(deliver(&collector, HttpProtobuf).await.unwrap().status, 503);
}

#[tokio::test]
async fn a_collector_that_is_down_refuses_connections_until_it_is_up_again() {
    let collector = Collector::start().await.unwrap();
    let address = collector.address();
    let open = tokio::net::TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        collector.refuse_connections().unwrap();
        collector.refuse_connections().unwrap();
        let refused = tokio::net::TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

        collector.accept_connections().unwrap();
        collector.accept_connections().unwrap();
        assert_eq!(deliver(&collector, Grpc).await.unwrap().status, 200);
    }
    let readable = timeout(LONG, open.readable()).await.expect("it is closed");
    let ended = readable.and_then(|()| open.try_read(&mut [0; 9]));
    assert!(matches!(ended, Ok(0) | Err(_)), "connections from before are closed: {ended:?}");
    assert_eq!(collector.spans().len(), 4);
}

#[test]
#[should_panic(expected = "100 ends no exchange over HTTP")]
fn a_status_that_ends_nothing_is_refused() {
    let _ = Reply::status(100);
}

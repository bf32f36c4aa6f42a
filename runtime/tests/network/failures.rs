//! What servers do to exporters: refuse, ask for time, answer nonsense, hang, go away.

use crate::support::{self, LONG, flush, problems, scenarios, sink, step, steps, written};
use crate::{collector, grpc, http, numbers, start};
use stagetrace::{FlushError, Otlp, TraceGuard};
use stagetrace_collector::{Collector, GrpcCode, Reply, Request};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

scenarios! {
    fn http_tries_again_what_may_be_tried_again() {
        let (collector, _trace) = http();
        for (number, reply) in [429, 502, 503, 504].map(Reply::status).into_iter().enumerate() {
            collector.script([reply]);
            step(number);
            flush(LONG).unwrap();
            assert_eq!(numbers(&collector).len(), number + 1);
            assert_eq!(collector.requests().len(), 2 * (number + 1));
        }
        // A connection that breaks is no answer.
        collector.script([Reply::close(), Reply::close()]);
        step(4);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), [0, 1, 2, 3, 4]);
        assert_eq!((sink("otlp").exported, sink("otlp").failed), (5, 0));
    }

    fn http_never_tries_again_what_is_refused() {
        let (collector, _trace) = http();
        let statuses = [301, 400, 401, 403, 404, 405, 408, 415, 422, 500, 501, 505];
        for (number, status) in statuses.into_iter().enumerate() {
            collector.script([Reply::status(status).message("s3cret")]);
            step(number);
            let problems = problems(flush(LONG));
            let expected = format!("lost 1 spans (rejected 1); `export`: HTTP status {status}");
            assert!(problems[0].1.starts_with(&expected) && !problems[0].1.contains("s3cret"), "{problems:?}");
            let url = format!(" from {}/v1/traces", collector.endpoint());
            assert!(problems[0].1.contains(&url), "{problems:?}");
            let remedy = "v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT";
            assert_eq!(problems[0].1.contains(remedy), [404, 405, 501].contains(&status), "{problems:?}");
            assert_eq!(collector.requests().len(), number + 1, "{status} is final");
        }
        assert_eq!(sink("otlp").failed_by, [("rejected", statuses.len() as u64)]);
    }

    fn grpc_tries_again_what_may_be_tried_again() {
        let (collector, _trace) = grpc();
        let second = Duration::from_secs(1);
        let replies = [
            Reply::grpc(GrpcCode::Unavailable),
            Reply::grpc(GrpcCode::Cancelled),
            Reply::grpc(GrpcCode::DataLoss),
            Reply::close(),
            Reply::status(502),
            Reply::grpc(GrpcCode::ResourceExhausted).retry_after(second),
        ];
        let count = replies.len();
        for (number, reply) in replies.into_iter().enumerate() {
            collector.script([reply]);
            step(number);
            flush(LONG).unwrap();
            assert_eq!(collector.requests().len(), 2 * (number + 1));
        }
        assert_eq!(numbers(&collector), (0..count as i64).collect::<Vec<_>>());
        let requests = collector.requests();
        assert!(waits(&requests[2 * count - 2..])[0] >= second, "what the server asks for is waited");
    }

    fn grpc_never_tries_again_what_is_refused() {
        let (collector, _trace) = grpc();
        let codes = [
            GrpcCode::Unknown,
            GrpcCode::InvalidArgument,
            GrpcCode::PermissionDenied,
            GrpcCode::ResourceExhausted,
            GrpcCode::Unimplemented,
            GrpcCode::Internal,
            GrpcCode::Unauthenticated,
        ];
        for (number, code) in codes.into_iter().enumerate() {
            collector.script([Reply::grpc(code).message("s3cret")]);
            step(number);
            let problems = problems(flush(LONG));
            let expected = format!("lost 1 spans (rejected 1); `export`: gRPC status {code:?}: ");
            assert!(problems[0].1.starts_with(&expected) && !problems[0].1.contains("s3cret"), "{problems:?}");
            let from = format!(", from {}", collector.endpoint());
            assert!(problems[0].1.contains(&from), "{problems:?}");
            let is_unknown = code == GrpcCode::Unimplemented;
            assert_eq!(problems[0].1.contains("That is mostly 4317"), is_unknown, "{problems:?}");
            assert_eq!(collector.requests().len(), number + 1, "{code:?} is final");
        }
        // A port for HTTP that speaks HTTP/2, too.
        collector.script([Reply::status(404)]);
        step(0);
        let problems = problems(flush(LONG));
        assert!(problems[0].1.contains("That is mostly 4317"), "{problems:?}");
    }

    fn grpc_to_a_port_for_http_is_told_of_the_other_port() {
        let _trace = start(Otlp::grpc(over_http1_only()).timeout(Duration::from_secs(1)));
        step(0);
        let problems = problems(flush(LONG));
        assert!(problems[0].1.contains("is this a port for HTTP? gRPC is mostly on 4317"), "{problems:?}");
    }

    fn http_to_a_port_for_grpc_is_told_of_the_other_port() {
        // The first frame of HTTP/2.
        let (endpoint, _) = answering("\0\0\0\x04\0\0\0\0\0");
        let _trace = start(Otlp::http(endpoint).timeout(Duration::from_secs(1)));
        step(0);
        let problems = problems(flush(LONG));
        assert!(problems[0].1.contains("is this a port for gRPC? HTTP is mostly on 4318"), "{problems:?}");
    }

    fn an_attempt_that_failed_shows_at_once_until_the_batch_arrives() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let _trace = start(Otlp::http(collector.endpoint()).timeout(LONG));
        assert_eq!(sink("otlp").failing, None);
        step(0);
        let problem = problems(flush(Duration::from_millis(300))).remove(0).1;
        let expected = "not done at the deadline, 1 spans are not exported yet: ";
        assert!(problem.starts_with(expected) && problem.contains("onnection refused"), "{problem}");
        let otlp = sink("otlp");
        assert!(otlp.failing.is_some() && otlp.failing_since.is_some(), "{otlp:?}");
        assert_eq!((otlp.queued, otlp.failed), (1, 0));
        collector.accept_connections().unwrap();
        flush(LONG).unwrap();
        let otlp = sink("otlp");
        assert_eq!((otlp.failing, otlp.failing_since, otlp.exported), (None, None, 1));
    }

    fn retry_after_is_obeyed_as_seconds_and_as_a_date() {
        let (collector, _trace) = http();
        let in_two_seconds = std::time::SystemTime::now() + Duration::from_secs(3);
        collector.script([
            Reply::status(503).retry_after(Duration::from_secs(1)),
            Reply::status(429).header("retry-after", &httpdate::fmt_http_date(in_two_seconds)),
        ]);
        step(0);
        flush(LONG).unwrap();
        let waits = waits(&collector.requests());
        assert!(waits[0] >= Duration::from_secs(1), "{waits:?}");
        assert!(std::time::SystemTime::now() >= in_two_seconds - Duration::from_secs(1));
        assert_eq!((waits.len(), numbers(&collector)), (2, vec![0]));
    }

    fn a_proxy_that_asks_for_time_is_given_it_over_grpc_too() {
        let (collector, _trace) = grpc();
        let second = Duration::from_secs(1);
        for (number, status) in [429, 503].into_iter().enumerate() {
            collector.script([Reply::status(status).retry_after(second)]);
            step(number);
            flush(LONG).unwrap();
            let waited = waits(&collector.requests()[2 * number..])[0];
            assert!(waited >= second, "{status}: {waited:?}");
        }
        assert_eq!(numbers(&collector), [0, 1]);
    }

    fn what_the_server_rejects_of_a_batch_is_counted_with_its_words() {
        let (collector, _trace) = grpc();
        collector.script([Reply::partial_success(3).message("\u{1b}[31mtoo old\n")]);
        steps(0, 8);
        let problems = problems(flush(LONG));
        let said = "the server rejected 3 spans: \\u{1b}[31mtoo old\\n";
        let words = format!("`export`: {}/: {said}", collector.endpoint());
        assert_eq!(problems[0].1, format!("lost 3 spans (rejected 3); {words}"));
        let status = sink("otlp");
        assert_eq!((status.exported, status.failed), (5, 3));
        assert_eq!(status.failing.as_deref(), Some(&*words));
        assert_eq!(numbers(&collector).len(), 5);
        step(8);
        flush(LONG).unwrap();
        assert_eq!(sink("otlp").failing, None, "it is well again");
    }

    fn a_warning_of_the_server_s_is_said_once() {
        let (collector, _trace) = http();
        collector.reply(Reply::partial_success(0).message("use \u{1b}[1mversion 2"));
        for number in 0..2 {
            step(number);
            flush(LONG).unwrap();
        }
        let complaints = stagetrace::status().complaints;
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].ends_with(": the server took all spans: use \\u{1b}[1mversion 2"), "{complaints:?}");
        assert_eq!(numbers(&collector), [0, 1]);
    }

    fn an_answer_that_cannot_be_read_says_that_it_has_arrived() {
        let (collector, _trace) = http();
        collector.script([Reply::garbage().keep_spans()]);
        for number in 0..2 {
            step(number);
            flush(LONG).unwrap();
        }
        assert_eq!(numbers(&collector), [0, 1], "nothing came twice");
        assert_eq!(sink("otlp").exported, 2);
    }

    fn an_answer_that_is_too_large_says_that_it_has_arrived() {
        let (collector, _trace) = grpc();
        collector.script([Reply::partial_success(0).message("x".repeat(5 << 20))]);
        steps(0, 8);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), (0..8).collect::<Vec<_>>(), "nothing came twice");
        assert_eq!((sink("otlp").exported, collector.requests().len()), (8, 1));
    }

    fn an_answer_that_breaks_off_says_that_it_has_arrived() {
        let (endpoint, requests) = answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{");
        let _trace = start(Otlp::http_json(endpoint));
        step(0);
        flush(LONG).unwrap();
        assert_eq!((sink("otlp").exported, requests.load(Ordering::SeqCst)), (1, 1));
    }

    fn what_is_no_http_is_no_answer() {
        let (endpoint, requests) = answering("SSH-2.0-OpenSSH_9.9\r\n");
        let _trace = start(Otlp::http(endpoint).timeout(Duration::from_secs(1)));
        step(0);
        let problems = problems(flush(LONG));
        assert!(problems[0].1.starts_with("lost 1 spans (unavailable 1); "), "{problems:?}");
        assert!(requests.load(Ordering::SeqCst) > 1, "it was tried again");
    }

    fn what_a_server_says_when_it_goes_away_is_not_repeated() {
        let endpoint = going_away(b"\x1b[31ms3cret");
        let _trace = start(Otlp::grpc(endpoint).timeout(Duration::from_secs(1)));
        step(0);
        let problems = problems(flush(LONG));
        assert!(problems[0].1.contains("excessive load"), "the reason is named: {problems:?}");
        assert!(!problems[0].1.contains("s3cret"), "{problems:?}");
    }

    fn one_span_that_is_too_large_is_lost_alone_over_http() {
        let collector = Collector::builder().max_http_bytes(6 << 10).start_blocking().unwrap();
        let trace = start(Otlp::http(collector.endpoint()));
        one_of_seventeen_is_too_large(&collector, &trace);
    }

    fn one_span_that_is_too_large_is_lost_alone_in_json() {
        let collector = Collector::builder().max_http_bytes(6 << 10).start_blocking().unwrap();
        let trace = start(Otlp::http_json(collector.endpoint()));
        one_of_seventeen_is_too_large(&collector, &trace);
    }

    fn one_span_that_is_too_large_is_lost_alone_over_grpc() {
        let collector = Collector::builder().max_grpc_bytes(6 << 10).start_blocking().unwrap();
        let trace = start(Otlp::grpc(collector.endpoint()));
        one_of_seventeen_is_too_large(&collector, &trace);
    }

    fn a_text_of_megabytes_is_cut_and_costs_no_span() {
        let (collector, trace) = grpc();
        steps(0, 100);
        let span = stagetrace::span!("large");
        span.set_attribute("prompt", "x".repeat(11 << 20));
        drop(span);
        steps(100, 99);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), (0..199).collect::<Vec<_>>());
        let large = collector.spans().one("large");
        let prompt = large.attribute("prompt").and_then(|value| value.as_str());
        assert!(prompt.is_some_and(|text| (1000..4 << 20).contains(&text.len())), "{large:?}");
        assert_eq!(written(&trace).len(), 200);
    }

    fn a_server_that_refuses_connections_costs_no_more_than_the_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let timeout = Duration::from_millis(500);
        let trace = start(Otlp::grpc(endpoint).timeout(timeout));
        steps(0, 8);
        let begin = Instant::now();
        let problems = problems(flush(LONG));
        assert!(problems[0].1.starts_with("lost 8 spans (unavailable 8); `export`: "), "{problems:?}");
        assert!(problems[0].1.contains("onnection refused"), "the cause is named: {problems:?}");
        assert!(begin.elapsed() < LONG / 2);
        assert_eq!(written(&trace).len(), 8, "the file has them");
    }

    fn a_connection_that_is_closed_between_batches_costs_no_attempt() {
        let (collector, _trace) = http();
        again_after_a_restart(&collector);
    }

    fn a_connection_that_is_closed_between_calls_costs_no_attempt() {
        let (collector, _trace) = grpc();
        again_after_a_restart(&collector);
    }

    fn a_server_that_hangs_is_cut_off_and_may_come_back() {
        for_one_that_hangs(Otlp::http);
    }

    fn a_server_that_hangs_is_cut_off_over_grpc_too() {
        for_one_that_hangs(Otlp::grpc);
    }

    fn a_shutdown_keeps_its_deadline_though_the_server_hangs() {
        let (collector, trace) = http();
        collector.reply(Reply::hang());
        steps(0, 8);
        collector.wait_for_requests_blocking(|requests| !requests.is_empty(), LONG).unwrap();
        let within = Duration::from_millis(200);
        let shut_down = support::in_time(within, || trace.shutdown(within));
        let Err(FlushError::Sinks(errors)) = shut_down else { panic!("it hangs") };
        assert_eq!(errors[0].sink, "otlp");
    }
}

/// How long after each request the next one came.
fn waits(requests: &[Request]) -> Vec<Duration> {
    requests.windows(2).map(|pair| pair[1].arrived.duration_since(pair[0].arrived)).collect()
}

fn one_of_seventeen_is_too_large(collector: &Collector, trace: &TraceGuard) {
    for number in 0..17_usize {
        let span = stagetrace::span!("sized", "number" = number);
        span.set_attribute("prompt", "x".repeat(if number == 4 { 20_000 } else { 900 }));
    }
    let problems = problems(flush(LONG));
    assert!(problems[0].1.starts_with("lost 1 spans (too_large 1); `export`: "), "{problems:?}");
    assert!(problems[0].1.contains(&format!("from {}", collector.endpoint())), "{problems:?}");
    let spans = collector.spans();
    let arrived: Vec<i64> =
        spans.iter().filter_map(|span| span.attribute("number")?.as_i64()).collect();
    assert_eq!(arrived, (0..17).filter(|number| *number != 4).collect::<Vec<_>>());
    assert_eq!((sink("otlp").exported, sink("otlp").failed), (16, 1));
    assert_eq!(written(trace).len(), 17);
}

fn again_after_a_restart(collector: &Collector) {
    let mut fastest = LONG;
    for number in 0..8 {
        let begin = Instant::now();
        step(number);
        flush(LONG).unwrap();
        if number > 0 {
            fastest = fastest.min(begin.elapsed());
        }
        collector.refuse_connections().unwrap();
        collector.accept_connections().unwrap();
    }
    // The shortest wait before another attempt.
    assert!(fastest < Duration::from_millis(100), "each lost an attempt: {fastest:?}");
    assert_eq!(numbers(collector), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(collector.requests().len(), 8);
    assert_eq!(sink("otlp").exported, 8);
}

fn for_one_that_hangs(to: fn(String) -> Otlp) {
    let collector = collector();
    let trace = start(to(collector.endpoint()).timeout(Duration::from_secs(2)));
    collector.script([Reply::hang()]);
    steps(0, 8);
    let problems = problems(flush(LONG));
    assert_eq!(problems[0].1, "lost 8 spans (timeout 8); `export`: no answer within 2s");
    step(8);
    flush(LONG).unwrap();
    assert_eq!(numbers(&collector), [8]);
    assert_eq!(written(&trace).len(), 9);
}

/// A server that gives each connection this answer and closes it. Gives its URL, and how many came.
pub(crate) fn answering(answer: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&stream);
            counter.fetch_add(1, Ordering::SeqCst);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (endpoint, count)
}

/// A server that knows nothing of HTTP/2, and says so. Gives its URL.
fn over_http1_only() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&stream);
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
            // Until the other end has read that and goes.
            while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        }
    });
    endpoint
}

/// A server over HTTP/2 that ends each connection because of excessive load, with this as debug data. Gives its URL.
fn going_away(debug: &'static [u8]) -> String {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // With the last stream that it took, none, and the reason.
    let length = 8 + debug.len() as u8;
    let go_away = [0, 0, length, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.write_all(&SETTINGS).unwrap();
            // The request has come when there is nothing more for a while.
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
            stream.write_all(&[&go_away[..], debug].concat()).unwrap();
        }
    });
    endpoint
}

/// Reads a request, so that closing the connection does not throw the answer away.
fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines() {
        let line = line.unwrap().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

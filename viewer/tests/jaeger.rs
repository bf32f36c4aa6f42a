//! A Jaeger that is asked for its traces: a real one where there is one, and one that answers as it is
//! told to.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use stagetrace_viewer::{InboxReport, JaegerQuery, Samples, Sources, Store};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::protobuf::write_request;
use stagetrace_wire::span::{Resource, Span, Value};

#[path = "../../runtime/tests/network/peer.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod peer;
mod support;

use peer::Peer;
use support::{View, cases, wait_until};

/// Answers to `GET` as it is told to, and counts.
struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    most_at_once: Arc<AtomicUsize>,
}

type Answer = (u16, &'static str, Vec<u8>);

impl Server {
    fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            log: Arc::default(),
            most_at_once: Arc::default(),
        };
        let (log, most, answer) =
            (server.log.clone(), server.most_at_once.clone(), Arc::new(answer));
        let now = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, most, answer, now) =
                    (log.clone(), most.clone(), answer.clone(), now.clone());
                thread::spawn(move || serve(stream.unwrap(), &log, &most, &now, &*answer));
            }
        });
        server
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<String>>,
    most: &AtomicUsize,
    now: &AtomicUsize,
    answer: &dyn Fn(&str) -> Answer,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let Some(path) = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) else {
            continue;
        };
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        log.lock().unwrap().push(path.to_owned());
        let (status, headers, body) = answer(path);
        now.fetch_sub(1, Ordering::SeqCst);
        let head =
            format!("HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// What Jaeger 1 answers that has these traces.
fn jaeger_1(path: &str, traces: &[Json]) -> Answer {
    let parameter = |name: &str| {
        let rest = path.split(['?', '&']).find_map(|part| part.strip_prefix(&format!("{name}=")));
        rest.map(str::to_owned)
    };
    let number = |name| parameter(name).unwrap().parse::<u64>().unwrap();
    let data: Vec<Json> = if path == "/api/services" {
        vec!["jaeger-query".into(), "rollout".into()]
    } else if path.starts_with("/api/traces?") {
        assert_eq!(parameter("service").as_deref(), Some("rollout"));
        let window = number("start")..=number("end");
        let is_in = |span: &Json| window.contains(&span["startTime"].as_u64().unwrap());
        let has_span = |trace: &&Json| trace["spans"].as_array().unwrap().iter().any(is_in);
        traces.iter().filter(has_span).take(number("limit") as usize).cloned().collect()
    } else if let Some(id) = path.strip_prefix("/api/traces/") {
        let id = id.split('?').next().unwrap();
        traces.iter().filter(|trace| trace["traceID"] == id).cloned().collect()
    } else {
        return (404, "", b"404 page not found\n".to_vec());
    };
    (200, "", json!({"data": data, "errors": null}).to_string().into_bytes())
}

fn recorded() -> Vec<Json> {
    let text = fs::read(cases("xtuner/jaeger/traces.json")).unwrap();
    let answer: Json = serde_json::from_slice(&text).unwrap();
    answer["data"].as_array().unwrap().clone()
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Asks for all times, and quickly again.
fn query(server: SocketAddr) -> JaegerQuery {
    let query = JaegerQuery::new(format!("http://{server}/"));
    JaegerQuery { lookback: now(), interval: Duration::from_millis(100), ..query }
}

fn view(query: JaegerQuery) -> View {
    let mut sources = Sources::default();
    sources.jaeger(query).unwrap();
    View { sources, store: Store::default(), samples: Samples::default() }
}

fn report(view: &View) -> InboxReport {
    view.report().inboxes.remove(0)
}

#[test]
fn every_trace_is_read_however_few_are_given_at_once() {
    let expected = View::of(&[cases("xtuner/jaeger/traces.json")]);
    let traces = recorded();
    assert!(traces.len() > 5, "{}", traces.len());
    for limit in [4, 24, 200] {
        let traces = traces.clone();
        let server = Server::start(move |path| {
            thread::sleep(Duration::from_millis(1));
            jaeger_1(path, &traces)
        });
        let mut view = view(JaegerQuery { limit, ..query(server.address) });
        let spans = expected.store.stats().spans;
        wait_until(|| {
            view.poll();
            view.store.stats().spans == spans
        });
        assert_eq!(view.spans(), expected.spans(), "limit {limit}");
        // What is asked for again is no duplicate.
        let asked = server.log().len();
        wait_until(|| server.log().len() > asked + 5);
        view.poll();
        assert_eq!(view.store.stats().duplicates, 0);
        let report = report(&view);
        assert_eq!((report.failed_requests, &report.error), (0, &None), "{report:?}");
        assert_eq!(report.name, format!("Jaeger at http://{}/", server.address));
        assert_eq!(server.most_at_once.load(Ordering::SeqCst), 1, "one at a time");
        assert_eq!(server.log()[..2], ["/api/v3/services", "/api/services"]);
    }
}

#[test]
fn more_traces_at_one_time_than_are_given_are_counted() {
    let trace = |id: u64| {
        let span = json!({
            "traceID": format!("{id:016x}"), "spanID": format!("{id:016x}"), "operationName": "x",
            "startTime": 1_000_000_000_000_u64, "duration": 5, "processID": "p",
        });
        json!({
            "traceID": format!("{id:016x}"), "spans": [span],
            "processes": {"p": {"serviceName": "rollout"}},
        })
    };
    let traces: Vec<Json> = (1..=9).map(trace).collect();
    let server = Server::start(move |path| jaeger_1(path, &traces));
    let query = JaegerQuery { limit: 4, service: Some("rollout".into()), ..query(server.address) };
    let mut view = view(JaegerQuery { interval: Duration::from_secs(3600), ..query });
    wait_until(|| {
        view.poll();
        report(&view).incomplete_windows > 0
    });
    assert!((4..9).contains(&view.store.stats().spans));
    wait_until(|| report(&view).error.is_some());
    let error = report(&view).error.unwrap();
    assert!(error.ends_with("so traces are missing; ask for more at once"), "{error}");
}

#[test]
fn what_fails_is_said_and_asked_for_again() {
    let failures: [(Answer, &str); 4] = [
        ((500, "", b"{\"errors\":[{\"msg\":\"storage is down\"}]}".to_vec()), "storage is down"),
        ((503, "retry-after: 1\r\n", Vec::new()), "it answered with status 503"),
        ((200, "", b"<html>".to_vec()), "its answer cannot be read"),
        ((429, "", Vec::new()), "it answered with status 429"),
    ];
    for (failure, message) in failures {
        let traces = recorded();
        let left = AtomicUsize::new(2);
        let server = Server::start(move |path| {
            let is_search = path.starts_with("/api/traces?");
            let takes = |left: usize| left.checked_sub(1);
            match is_search && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, takes).is_ok()
            {
                true => failure.clone(),
                false => jaeger_1(path, &traces),
            }
        });
        let mut view = view(query(server.address));
        wait_until(|| report(&view).error.is_some_and(|error| error.contains(message)));
        assert_eq!(view.report().unread().count(), 1);
        wait_until(|| {
            view.poll();
            view.store.stats().spans > 0
        });
        wait_until(|| report(&view).error.is_none());
        assert_eq!(report(&view).failed_requests, 2);
    }
}

#[test]
fn what_fails_again_and_again_is_asked_for_in_halves() {
    let expected = View::of(&[cases("xtuner/jaeger/traces.json")]).store.stats().spans;
    let traces = recorded();
    let widest = u64::try_from(now().as_micros()).unwrap() / 3 * 2;
    let server = Server::start(move |path| {
        let number = |name: &str| {
            path.split(name)
                .nth(1)
                .map(|rest| rest.split('&').next().unwrap().parse::<u64>().unwrap())
        };
        match (number("start="), number("end=")) {
            (Some(start), Some(end)) if end - start > widest => (500, "", b"too much".to_vec()),
            _ => jaeger_1(path, &traces),
        }
    });
    let mut view = view(query(server.address));
    wait_until(|| {
        view.poll();
        view.store.stats().spans == expected
    });
    assert_eq!(report(&view).failed_requests, 4);
}

#[test]
fn a_jaeger_that_looks_for_fewer_traces_at_once_is_asked_for_fewer() {
    let traces = recorded();
    let server = Server::start(move |path| {
        let limit = path.split("limit=").nth(1).and_then(|rest| rest.split('&').next());
        match limit.map(|limit| limit.parse::<u32>().unwrap()) {
            Some(51..) => {
                (500, "", b"search depth must be greater than 0 and less than max traces".to_vec())
            }
            _ => jaeger_1(path, &traces),
        }
    });
    let mut view = view(query(server.address));
    wait_until(|| {
        view.poll();
        view.store.stats().spans > 0
    });
    assert_eq!(report(&view).failed_requests, 0);
}

#[test]
fn what_is_slow_or_too_long_is_asked_for_in_halves() {
    let expected = View::of(&[cases("xtuner/jaeger/traces.json")]).store.stats().spans;
    let traces = recorded();
    let longest = traces.iter().map(|trace| trace.to_string().len()).max().unwrap();
    let few = traces.clone();
    let server = Server::start(move |path| jaeger_1(path, &few));
    let mut small = view(JaegerQuery { max_answer_bytes: longest + 100, ..query(server.address) });
    wait_until(|| {
        small.poll();
        small.store.stats().spans == expected
    });

    let is_first = AtomicUsize::new(0);
    let server = Server::start(move |path| {
        let is_search = path.starts_with("/api/traces?");
        if is_search && is_first.fetch_add(1, Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_secs(2));
        }
        jaeger_1(path, &traces)
    });
    let timeout = Duration::from_millis(500);
    let mut slow = view(JaegerQuery { timeout, ..query(server.address) });
    wait_until(|| {
        slow.poll();
        slow.store.stats().spans == expected
    });
    assert_eq!(report(&slow).failed_requests, 1);
    let searches: Vec<_> =
        server.log().into_iter().filter(|path| path.starts_with("/api/traces?")).collect();
    let start = |path: &String| path.split('&').nth(1).unwrap().to_owned();
    assert_ne!(start(&searches[0]), start(&searches[1]), "the newer half comes first");
}

#[test]
fn a_trace_without_its_root_is_asked_for_until_that_comes() {
    let mut traces = recorded();
    let is_root = |span: &Json| span["references"].as_array().is_none_or(Vec::is_empty);
    let spans = traces[0]["spans"].as_array_mut().unwrap();
    let root = spans.remove(spans.iter().position(is_root).unwrap());
    let id = traces[0]["traceID"].as_str().unwrap().to_owned();
    let is_there = Arc::new(AtomicUsize::new(0));
    let seen = is_there.clone();
    let server = Server::start(move |path| {
        let mut traces = traces.clone();
        if seen.load(Ordering::SeqCst) == 1 {
            traces[0]["spans"].as_array_mut().unwrap().push(root.clone());
        }
        jaeger_1(path, &traces)
    });
    let expected = View::of(&[cases("xtuner/jaeger/traces.json")]);
    let all = expected.store.stats().spans;
    // Nothing that old is in the overlap.
    let mut view = view(JaegerQuery { overlap: Duration::ZERO, ..query(server.address) });
    wait_until(|| {
        view.poll();
        view.store.stats().spans == all - 1
    });
    is_there.store(1, Ordering::SeqCst);
    wait_until(|| {
        view.poll();
        view.store.stats().spans == all
    });
    assert_eq!(view.spans(), expected.spans());
    let asks = |server: &Server| {
        server.log().iter().filter(|path| path.contains(&format!("/api/traces/{id}"))).count()
    };
    assert!(asks(&server) > 0);
    let (before, rounds) = (asks(&server), server.log().len());
    wait_until(|| server.log().len() > rounds + 4);
    assert!(asks(&server) <= before + 1, "it is whole");
}

#[test]
fn a_span_that_took_longer_than_the_overlap_is_found() {
    let long = Duration::from_secs(10);
    let start = u64::try_from((now() - long).as_micros()).unwrap();
    let span = json!({
        "traceID": "1", "spanID": "1", "operationName": "x", "startTime": start,
        "duration": 10_000_000, "processID": "p",
    });
    let trace =
        json!({"traceID": "1", "spans": [span], "processes": {"p": {"serviceName": "rollout"}}});
    let has_ended = Arc::new(AtomicUsize::new(0));
    let ended = has_ended.clone();
    let server = Server::start(move |path| {
        let is_there = ended.load(Ordering::SeqCst) == 1;
        jaeger_1(path, if is_there { std::slice::from_ref(&trace) } else { &[] })
    });
    let overlap = Duration::from_secs(1);
    let mut view = view(JaegerQuery { overlap, ..query(server.address) });
    let searches = |path: &&String| path.starts_with("/api/traces?");
    wait_until(|| server.log().iter().filter(searches).count() >= 2);
    has_ended.store(1, Ordering::SeqCst);
    wait_until(|| {
        view.poll();
        view.store.stats().spans == 1
    });
}

#[test]
fn nobody_is_asked_any_more_when_the_sources_are_gone() {
    let traces = recorded();
    let server = Server::start(move |path| jaeger_1(path, &traces));
    let view = view(query(server.address));
    wait_until(|| server.log().len() > 3);
    drop(view);
    thread::sleep(Duration::from_millis(300));
    let asked = server.log().len();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(server.log().len(), asked);
}

#[test]
fn what_is_no_jaeger_is_named_with_what_to_do() {
    let mut sources = Sources::default();
    for url in ["localhost:16686", "ftp://x", "http://", "http:///x", "http://x/?a"] {
        let error = sources.jaeger(JaegerQuery::new(url)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot ask a Jaeger at `{url}`: ")), "{error}");
        assert!(error.ends_with("name its query port, such as http://localhost:16686"), "{error}");
    }
    let server = Server::start(|_| (200, "content-type: text/html\r\n", b"<html>".to_vec()));
    let other = view(query(server.address));
    wait_until(|| report(&other).error.is_some());
    let error = report(&other).error.unwrap();
    assert_eq!(error, "it does not answer as a Jaeger does; name its query port");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = view(query(nobody));
    wait_until(|| report(&other).error.is_some());
}

/// A running Jaeger that takes OTLP over HTTP, and answers queries.
fn jaeger_2(test: &str) -> Option<Peer<3>> {
    Peer::start("jaeger/jaeger", test, |_, [http, query, query_grpc]| {
        format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{http}'}}}}}}}}
exporters: {{jaeger_storage_exporter: {{trace_storage: memory}}}}
extensions:
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 100}}}}}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: '{query}'}}
    grpc: {{endpoint: '{query_grpc}'}}
service:
  extensions: [jaeger_storage, jaeger_query]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}}}
"
        )
    })
}

fn export(to: SocketAddr, spans: &[Span]) {
    let headers = "content-type: application/x-protobuf\r\n";
    let message = write_request(spans);
    // The connection takes the body as it is: `exchange` writes bytes.
    peer::exchange(to, "POST /v1/traces", headers, &message);
}

#[test]
fn a_real_jaeger_gives_back_what_was_sent_to_it() {
    let Some(jaeger) = jaeger_2("viewer") else { return };
    let [otlp, query_at, _] = jaeger.addresses;
    let now = u64::try_from(now().as_nanos()).unwrap();
    let resource = |service: &str| {
        let attributes = vec![("service.name".to_owned(), Value::Str(service.to_owned()))];
        Arc::new(Resource { attributes, ..Resource::default() })
    };
    // 60 traces of two spans in a second, of two services.
    let span = |trace: u128, id: u64, service: &str| Span {
        name: format!("span {id}"),
        start_unix_nano: now - trace as u64 * 10_000_000 - id,
        end_unix_nano: now,
        parent_span_id: (id > 1).then(|| SpanId::from_u64(1).unwrap()),
        resource: resource(service),
        attributes: vec![("steps".to_owned(), Value::I64(20))],
        ..Span::new(TraceId::from_u128(trace).unwrap(), SpanId::from_u64(id).unwrap())
    };
    let mut spans: Vec<Span> =
        (1..=60).flat_map(|trace| [span(trace, 1, "one"), span(trace, 2, "two")]).collect();
    export(otlp, &spans);
    let all = JaegerQuery::new(format!("http://{query_at}"));
    let all = JaegerQuery { limit: 7, interval: Duration::from_millis(100), ..all };
    let mut view = view(all.clone());
    wait_until(|| {
        view.poll();
        view.store.stats().spans == spans.len()
    });
    // What comes later is found as well, by the next rounds.
    let late = [span(3, 3, "one"), span(61, 1, "two")];
    export(otlp, &late);
    spans.extend(late);
    wait_until(|| {
        view.poll();
        view.store.stats().spans == spans.len()
    });
    let mut expected: Vec<String> = spans.iter().map(|span| format!("{span:?}")).collect();
    expected.sort();
    assert_eq!(view.spans(), expected);
    let said = report(&view);
    assert_eq!((said.failed_requests, said.incomplete_windows), (0, 0), "{said:?}");

    // Its older form: times in microseconds are all that is lost.
    let older = Server::start(move |path| match path.starts_with("/api/v3") {
        true => (404, "", Vec::new()),
        false => (200, "", peer::exchange(query_at, &format!("GET {path}"), "", b"").into()),
    });
    let older = JaegerQuery { url: format!("http://{}", older.address), ..all };
    let mut view = self::view(older);
    wait_until(|| {
        view.poll();
        view.store.stats().spans == spans.len()
    });
    for span in &mut spans {
        let end = span.start_unix_nano / 1000 * 1000
            + (span.end_unix_nano - span.start_unix_nano) / 1000 * 1000;
        (span.start_unix_nano, span.end_unix_nano) = (span.start_unix_nano / 1000 * 1000, end);
        span.flags = 0;
    }
    let mut expected: Vec<String> = spans.iter().map(|span| format!("{span:?}")).collect();
    expected.sort();
    assert_eq!(view.spans(), expected);
}

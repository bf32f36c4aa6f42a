//! The page that Prometheus scrapes.
#![cfg(all(feature = "prometheus", not(stagetrace_off)))]
#![expect(dead_code, reason = "of the support not everything is used")]

mod support;

use stagetrace::metrics::{Page, Prometheus};
use stagetrace::{Judged, Outcome, TraceState, Traced, init_with, stage};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use support::{LONG, config, flush, scenarios};

#[derive(Traced)]
#[traced(name = "generate")]
struct Generate {
    #[traced(id)]
    id: u32,
    #[traced(attr = "gen_ai.operation.name")]
    operation: &'static str,
    #[traced(attr = "gen_ai.request.model")]
    model: &'static str,
    #[traced(state)]
    trace: TraceState,
}

#[stage("decode", _request)]
fn decode(_request: &Generate, fails: bool) -> Result<(), std::fmt::Error> {
    if fails { Err(std::fmt::Error) } else { Ok(()) }
}

/// A request that succeeds, one that fails and one that stays open.
fn requests() -> Generate {
    let (operation, model) = ("chat", "a \"quoted\" \\ model\nof two lines");
    let begun = |id| {
        let mut request = Generate { id, operation, model, trace: TraceState::default() };
        request.begin(None);
        request
    };
    let good = begun(1);
    let _ = decode(&good, false);
    good.finish(Outcome::Ok);
    let bad = begun(2);
    let _ = decode(&bad, true);
    bad.finish(Judged::error("overloaded"));
    begun(3)
}

/// The text but for what differs from run to run: how long things took, and what the process is.
fn without_measurements(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("target_info{"));
    let lines = lines.map(|line| {
        let is_measured = line.contains("_seconds_bucket{") || line.contains("_seconds_sum{");
        match line.rsplit_once(' ') {
            Some((series, _)) if is_measured && !line.contains("le=\"+Inf\"") => {
                format!("{series} #\n")
            }
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// What the page answers to a request: head and body.
fn ask(page: SocketAddr, request: &str) -> (String, String) {
    let mut client = TcpStream::connect(page).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("the head has an end");
    (head.to_owned(), body.to_owned())
}

fn page(prometheus: &Prometheus) -> Page {
    prometheus.serve("127.0.0.1:0").unwrap()
}

scenarios! {
    fn the_text_is_what_prometheus_reads() {
        let prometheus = Prometheus::new();
        assert_eq!(prometheus.render(), "", "nothing has begun");
        let trace = init_with(config(), [prometheus.exporter()]).unwrap();
        let open = requests();
        flush(LONG).unwrap();
        let text = prometheus.render();
        let target = text.lines().find(|line| line.starts_with("target_info{")).unwrap();
        assert!(target.contains("service_name=\"exporter-test\""), "{target}");
        assert!(target.contains("stagetrace_run_id=\""), "{target}");
        assert_eq!(without_measurements(&text), include_str!("golden/metrics.prom"));
        drop((open, trace));
    }

    fn of_two_exporters_one_counts() {
        let prometheus = Prometheus::new();
        let exporters = [prometheus.exporter(), prometheus.exporter()];
        let trace = init_with(config(), exporters).unwrap();
        let open = requests();
        flush(LONG).unwrap();
        let counts = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.contains("_count{"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(counts(&prometheus.render()), counts(include_str!("golden/metrics.prom")));
        drop((open, trace));
    }

    fn the_page_is_served_until_it_is_dropped() {
        let prometheus = Prometheus::new();
        let trace = init_with(config(), [prometheus.exporter()]).unwrap();
        let open = requests();
        flush(LONG).unwrap();
        let page = page(&prometheus);
        let at = page.address();
        let (head, body) = ask(at, "GET /metrics HTTP/1.1\r\nhost: here\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        assert_eq!(without_measurements(&body), include_str!("golden/metrics.prom"));

        let (head, body) = ask(at, "HEAD /metrics?x=1 HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{head}");
        let (head, _) = ask(at, "GET / HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        let (head, _) = ask(at, "POST /metrics HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 405 "), "{head}");

        drop(page);
        assert!(TcpStream::connect(at).is_err());
        drop((open, trace));
    }

    fn who_asks_nonsense_or_nothing_keeps_nobody_else_from_the_page() {
        let prometheus = Prometheus::new();
        let trace = init_with(config(), [prometheus.exporter()]).unwrap();
        let page = page(&prometheus);
        let start = Instant::now();
        let silent = TcpStream::connect(page.address()).unwrap();
        let mut endless = TcpStream::connect(page.address()).unwrap();
        let _ = endless.write_all(&vec![b'x'; 64 << 10]);
        drop(TcpStream::connect(page.address()).unwrap());
        let (head, _) = ask(page.address(), "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(start.elapsed() < LONG, "took {:?}", start.elapsed());
        drop((silent, page, trace));
    }
}

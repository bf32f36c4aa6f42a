//! The server as a browser meets it, by real requests over loopback.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod support;

use support::serve::Viewer;

const LIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/xtuner/live");

#[test]
fn the_first_page_has_the_numbers_of_the_summary() {
    let viewer = Viewer::start(&[LIVE]);
    let answer = viewer.ask("/api/overview?step=21");
    let expected = fs::read_to_string(format!("{LIVE}/expected.json")).expect("the case is there");
    let expected: serde_json::Value = serde_json::from_str(&expected).expect("it is JSON");
    assert_eq!(answer["summary"]["samples"], expected["by_step"]["21"]["samples"]);
    let all = viewer.ask("/api/overview");
    assert_eq!(all["summary"]["statuses"], expected["all"]["statuses"]);
    assert_eq!(all["summary"]["stages"][0]["p99_ns"], expected["all"]["stages"][0]["p99_ns"]);
}

#[test]
fn a_step_that_is_not_there_is_refused_with_those_that_are() {
    let viewer = Viewer::start(&[LIVE]);
    viewer.ask("/api/state");
    let answer = viewer.get("/api/overview?step=99");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("there are 2, from 21 to 22"), "{answer}");
}

#[test]
fn a_page_of_another_name_is_not_answered() {
    let viewer = Viewer::start(&[LIVE]);
    for host in ["evil.example", "evil.example:18080", "10.0.0.1", ""] {
        let answer = viewer.request(&["GET / HTTP/1.1", &format!("Host: {host}")]);
        let answer = answer.expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 421"), "{host}: {answer}");
    }
    assert!(viewer.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn beyond_this_machine_a_token_is_needed_and_leaves_the_address() {
    let viewer = Viewer::start(&["--host", "0.0.0.0", LIVE]);
    let (_, token) = viewer.url.split_once("?token=").expect("the address has a token");
    assert_eq!(token.len(), 32);
    assert!(viewer.get("/").starts_with("HTTP/1.1 401"));
    assert!(viewer.get("/api/state").starts_with("HTTP/1.1 401"));
    assert!(viewer.get("/?token=00000000000000000000000000000000").starts_with("HTTP/1.1 401"));
    let entered = viewer.get(&format!("/?token={token}"));
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("it sets a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let host = format!("Host: {}", viewer.address());
    let pair = cookie.split(';').next().expect("there is a first part");
    let known = viewer.request(&["GET / HTTP/1.1", &host, &format!("Cookie: a=b; {pair}")]);
    assert!(known.expect("it answers").starts_with("HTTP/1.1 200"));
    let bearer = format!("Authorization: Bearer {token}");
    let known = viewer.request(&["GET /api/state HTTP/1.1", &host, &bearer]);
    assert!(known.expect("it answers").starts_with("HTTP/1.1 200"));
}

#[test]
fn every_answer_forbids_foreign_scripts_and_frames() {
    let viewer = Viewer::start(&[LIVE]);
    for path in ["/", "/pages/js/main.js", "/api/state", "/nowhere"] {
        let answer = viewer.get(path);
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{path}: {answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{path}: {answer}");
        assert!(!answer.contains("access-control-allow-origin"), "{path}: {answer}");
    }
}

#[test]
fn what_is_appended_is_told_by_an_event_and_seen_by_the_next_question() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    let text = fs::read_to_string(format!("{LIVE}/traces.jsonl")).expect("the case is there");
    let half = text.match_indices('\n').nth(90).map_or(0, |(at, _)| at + 1);
    fs::write(&path, &text[..half]).expect("it is written");
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let before = viewer.ask("/api/state");
    let mut stream = TcpStream::connect(viewer.address()).expect("it connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is set");
    let host = viewer.address();
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is sent");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut next =
        || lines.find_map(|line| line.strip_prefix("data: ")?.trim().parse::<u64>().ok());
    assert_eq!(next(), before["version"].as_u64(), "the version is told at once");
    let mut file = fs::File::options().append(true).open(&path).expect("it is there");
    let begun = Instant::now();
    file.write_all(&text.as_bytes()[half..]).expect("it is appended");
    assert!(next() > before["version"].as_u64());
    println!("known after {:?}", begun.elapsed());
    let after = viewer.ask("/api/state");
    assert!(after["spans"].as_u64() > before["spans"].as_u64(), "{before} {after}");
}

#[test]
fn only_the_services_and_runs_that_are_named_are_kept() {
    let line = |service: &str, run: &str, span: u64| {
        let text = |key: &str, value: &str| {
            format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
        };
        let resource = [text("service.name", service), text("run.id", run)].join(",");
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{{"spans":[{{"traceId":"{span:032x}","spanId":"{span:016x}","name":"a","startTimeUnixNano":"1","endTimeUnixNano":"2"}}]}}]}}]}}"#
        )
    };
    let lines = [line("front", "one", 1), line("back", "one", 2), line("back", "two", 3)];
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("a.jsonl");
    fs::write(&path, lines.join("\n")).expect("it is written");
    let path = path.to_str().expect("it is UTF-8");
    let spans = |options: &[&str]| {
        let viewer = Viewer::start(&[options, &[path]].concat());
        viewer.ask("/api/state")["spans"].as_u64()
    };
    assert_eq!(spans(&[]), Some(3));
    assert_eq!(spans(&["--service", "back"]), Some(2));
    assert_eq!(spans(&["--service", "back", "--service", "front"]), Some(3));
    assert_eq!(spans(&["--service", "back", "--run-id", "two"]), Some(1));
    assert_eq!(spans(&["--run-id", "three"]), Some(0));
}

#[test]
fn spans_that_are_sent_by_otlp_are_shown() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .args(["serve", "--port", "0", "--otlp-http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the viewer starts");
    let (mut url, mut said) = (String::new(), String::new());
    let (out, error) = (process.stdout.take(), process.stderr.take());
    BufReader::new(error.expect("it is piped")).read_line(&mut said).expect("it says where");
    BufReader::new(out.expect("it is piped")).read_line(&mut url).expect("it prints its address");
    let viewer = Viewer { process, url: url.trim().to_owned() };
    let (_, receiver) = said.trim().rsplit_once("http://").expect("it names an address");
    let line = fs::read_to_string(format!("{LIVE}/traces.jsonl")).expect("the case is there");
    let line = line.lines().next().expect("there is a line");
    let mut stream = TcpStream::connect(receiver).expect("it connects");
    let head = format!("Host: {receiver}\r\nContent-Type: application/json\r\nConnection: close");
    write!(
        stream,
        "POST /v1/traces HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{line}",
        line.len()
    )
    .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let begun = Instant::now();
    let mut spans = 0;
    while spans == 0 && begun.elapsed() < Duration::from_secs(20) {
        spans = viewer.ask("/api/state")["spans"].as_u64().unwrap_or(0);
    }
    assert_eq!(spans, line.matches("\"spanId\"").count() as u64);
}

#[test]
fn without_a_source_it_says_what_to_name() {
    let output = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer")).arg("serve").output();
    let output = output.expect("the viewer starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("name a run's directory"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_named_with_the_remedy() {
    let viewer = Viewer::start(&[LIVE]);
    let (_, port) = viewer.address().rsplit_once(':').expect("there is a port");
    let output = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .args(["serve", "--port", port, LIVE])
        .output()
        .expect("the viewer starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(port) && said.contains("--port 0"), "{said}");
}

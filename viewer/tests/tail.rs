//! `tail` tells what happens while it happens, and ends when it is told to.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

mod support;

use support::{append, cases, line};

struct Tail {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Tail {
    fn of(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
            .arg("tail")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line, without its time of day.
    fn next(&mut self) -> String {
        let line = self.lines.next().expect("it goes on").unwrap();
        match line.split_once("  ") {
            Some((clock, rest)) if clock.len() == 8 => rest.to_owned(),
            _ => line,
        }
    }

    fn interrupt(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }
}

const START: u64 = 1_700_000_000_000_000_000;

/// A request whose root has this end; 0 if it is open.
fn request(trace: u128, seconds: u64, rest: &str) -> String {
    let end = if seconds == 0 { 0 } else { START + seconds * 1_000_000_000 };
    line(trace, 1, 0, "generate", [START, end]).replace(r#""name""#, &format!(r#"{rest}"name""#))
}

#[test]
fn a_line_is_told_for_each_sample_that_ends_fails_or_is_stuck_and_ctrl_c_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let before: String = (1..=3).map(|trace| request(trace, 1, "")).collect();
    fs::write(&path, before).unwrap();
    let now = (START + 65_000_000_000).to_string();
    let mut tail = Tail::of(&["--now", &now, path.to_str().unwrap()]);
    assert_eq!(tail.next(), "3 samples: completed 3");

    append(&path, request(4, 2, ""));
    assert_eq!(tail.next(), format!("completed  2.00 s  trace {:032x}", 4));

    let error = r#""attributes":[{"key":"error.type","value":{"stringValue":"Oh\u001b[2J"}}],"status":{"code":2},"#;
    append(&path, request(5, 3, error));
    let failed = format!("failed     3.00 s  trace {:032x}  in generate  Oh\\u{{1b}}[2J", 5);
    assert_eq!(tail.next(), failed);

    append(&path, request(6, 0, ""));
    assert_eq!(tail.next(), format!("stuck      65.0 s  trace {:032x}  in generate", 6));
    append(&path, request(6, 64, ""));
    assert_eq!(tail.next(), format!("completed  64.0 s  trace {:032x}", 6));

    tail.interrupt();
    assert_eq!(tail.next(), "6 samples: completed 5, failed 1");
    assert!(tail.lines.next().is_none());
    assert!(tail.child.wait().unwrap().success());
}

#[test]
fn it_ends_after_the_seconds_that_are_given() {
    let run = cases("xtuner").join("live");
    let mut tail = Tail::of(&["--for", "1", run.to_str().unwrap()]);
    let first = tail.next();
    assert!(first.contains(" samples: "), "{first}");
    let last = tail.lines.by_ref().map_while(Result::ok).last();
    assert_eq!(last.as_deref(), Some(&*first));
    assert!(tail.child.wait().unwrap().success());
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, request(1, 1, "")).unwrap();
    let mut tail = Tail::of(&["--for", "60", path.to_str().unwrap()]);
    assert_eq!(tail.next(), "1 samples: completed 1");
    let Tail { mut child, lines } = tail;
    drop(lines);
    append(&path, request(2, 1, ""));
    assert!(child.wait().unwrap().success());
}

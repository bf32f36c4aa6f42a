//! What a reader tells of a recording, as text.

use super::EPOCH;
use stagetrace_wire::recording::read::{RecordedSpan, Recording, Snapshot};
use stagetrace_wire::span::Value;
use std::fmt::Write;

/// Everything that a snapshot tells, a line for each thing.
pub(crate) fn listing(recording: &Recording) -> String {
    let snapshot = recording.snapshot();
    let mut out = String::new();
    let identity = recording.identity();
    let _ = writeln!(out, "state {:?}, {:?}", recording.state(), recording.acknowledged());
    let run = identity.run_id.as_ref().map_or("", |run| run.as_str());
    let _ = writeln!(out, "run {run} process {} stem {}", identity.process_id, identity.stem);
    let _ = writeln!(out, "pid {} boot {}", identity.pid, identity.boot_id);
    for (key, value) in &identity.resource.attributes {
        let _ = writeln!(out, "resource {key} = {value:?}");
    }
    for (cause, count) in recording.losses() {
        let _ = writeln!(out, "lost {cause} {count}");
    }
    for stage in &snapshot.table.stages {
        let _ = writeln!(out, "{}::{} {} {:?}", stage.set, stage.name, stage.level, stage.within);
    }
    for (number, site) in &snapshot.table.sites {
        let place = format!("{}:{}", site.file, site.line);
        let _ = writeln!(out, "site {number} {} {:?} at {place}", site.stage.name, site.keys);
    }
    for span in &snapshot.spans {
        list_span(&mut out, &snapshot, span);
    }
    let _ = writeln!(out, "at {} {:?}", since_epoch(snapshot.at), snapshot.damage);
    out
}

fn list_span(out: &mut String, snapshot: &Snapshot, span: &RecordedSpan) {
    let (trace, id) = span.identity();
    let parent = span.parent().map_or("-".to_owned(), |parent| parent.to_string());
    let times = match span.end() {
        Some(end) => format!("{}..{}", since_epoch(span.begin()), since_epoch(end)),
        None => format!("{}.. open for {}", since_epoch(span.begin()), snapshot.age(span)),
    };
    let _ = writeln!(out, "span {} {trace} {id} under {parent} {times}", span.name());
    let marks = [
        ("root", span.is_root()),
        ("exported", span.is_exported()),
        ("uncertain", span.is_uncertain()),
    ];
    let marks: Vec<&str> = marks.iter().filter(|mark| mark.1).map(|mark| mark.0).collect();
    let _ = writeln!(
        out,
        "  {} {:#x} {:?} {:?} {marks:?} missing {} request {:?}",
        span.kind().name(),
        span.flags(),
        span.outcome(),
        span.status(),
        span.missing_details(),
        snapshot.request_id(span)
    );
    for (key, value) in span.attributes() {
        let _ = writeln!(out, "  {key} = {:?}", Value::from(value));
    }
    for event in span.events() {
        let _ = writeln!(out, "  event {} at {}", event.name, since_epoch(event.time));
        for (key, value) in event.attributes() {
            let _ = writeln!(out, "    {key} = {:?}", Value::from(value));
        }
    }
    for link in span.links() {
        let _ = writeln!(out, "  link {} {} {}", link.trace_id, link.span_id, link.flags);
        for (key, value) in link.attributes() {
            let _ = writeln!(out, "    {key} = {:?}", Value::from(value));
        }
    }
}

fn since_epoch(unix: u64) -> i64 {
    unix.wrapping_sub(EPOCH) as i64
}

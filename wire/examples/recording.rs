//! Looks into a recording, of a process that lives or of one that died:
//!
//! ```text
//! recording FILE [--json]
//! recording recover FILE [RUN_DIR] [--remove]
//! ```

use serde_json::{Map, Value as Json, json};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::read::{RecordedSpan, Recording, Snapshot, State};
use stagetrace_wire::recording::recover::{Recovered, Remove, recover};
use stagetrace_wire::span::{StatusCode, Value};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: recording FILE [--json]
       recording recover FILE [RUN_DIR] [--remove]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    let text = match (&*words, &*options) {
        ([] | [_, ..], ["--help"]) => Ok(format!("{USAGE}\n")),
        (["recover", file], []) => recovered(file, None, Remove::No),
        (["recover", file], ["--remove"]) => recovered(file, None, Remove::Yes),
        (["recover", file, dir], []) => recovered(file, Some(dir), Remove::No),
        (["recover", file, dir], ["--remove"]) => recovered(file, Some(dir), Remove::Yes),
        ([file], []) => Recording::open(file).map(|r| as_text(&r)).map_err(Into::into),
        ([file], ["--json"]) => Recording::open(file).map(|r| as_json(&r)).map_err(Into::into),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match text {
        Ok(text) => {
            // Whoever reads may have seen enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", shown(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn recovered(file: &str, dir: Option<&str>, remove: Remove) -> Result<String, Box<dyn Error>> {
    let of_link = || Path::new(file).parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.map(Path::new).or_else(of_link).unwrap_or(Path::new("."));
    let Recovered { file, ended, open, known, unsampled, removed, damage } =
        recover(file, dir, remove)?;
    let mut text = format!("{ended} ended and {open} open spans recovered, {known} were known\n");
    if unsampled > 0 {
        let _ = writeln!(text, "{unsampled} of traces that are not sampled were left out");
    }
    if let Some(file) = file {
        let _ = writeln!(text, "in {}", shown(&file.display().to_string()));
    }
    if !damage.is_none() {
        let _ = writeln!(text, "not readable: {damage:?}");
    }
    if removed {
        text.push_str("the recording is removed\n");
    }
    Ok(text)
}

/// State, identity, losses; then what is open; then what has ended, as a tree.
fn as_text(recording: &Recording) -> String {
    let snapshot = recording.snapshot();
    let identity = recording.identity();
    let state = match (recording.state(), recording.is_alive()) {
        (State::Closed, _) => "closed",
        (State::Running, Some(true)) => "its process lives",
        (State::Running, Some(false)) => "its process died",
        (State::Running, None) => "running, if its process lives",
    };
    let mut text = format!("{}: {state}\n", shown(&identity.stem));
    let run = identity.run_id.as_ref().map_or("?", |run| run.as_str());
    let service = identity.resource.service_name().unwrap_or("?");
    let _ = writeln!(text, "run {run}, service {}, pid {}", shown(service), identity.pid);
    let acknowledged = recording.acknowledged();
    let (length, rotation) = (acknowledged.length, acknowledged.rotation);
    let _ = writeln!(text, "jsonl: {length} bytes safe, put aside {rotation} times");
    for (cause, count) in recording.losses().into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(text, "lost: {count} by {cause}");
    }
    if !snapshot.damage.is_none() {
        let _ = writeln!(text, "not readable: {:?}", snapshot.damage);
    }
    let open: Vec<&RecordedSpan> = snapshot.open().collect();
    let _ = writeln!(text, "\n{} open", open.len());
    tree(&mut text, &open, |span| {
        format!("{}, for {}", titled(&snapshot, span), duration(snapshot.age(span)))
    });
    let ended: Vec<&RecordedSpan> = snapshot.ended().collect();
    let _ = writeln!(text, "\n{} ended", ended.len());
    tree(&mut text, &ended, |span| {
        let took = span.end().unwrap_or(0).saturating_sub(span.begin());
        let mut line = format!("{}, {}", titled(&snapshot, span), duration(took));
        if let (StatusCode::Error, message) = span.status() {
            let separator = if message.is_empty() { "" } else { ": " };
            let outcome = span.outcome().unwrap_or("error");
            let _ = write!(line, ", {outcome}{separator}{}", shown(message));
        }
        line
    });
    text
}

/// Name, and the request's id.
fn titled(snapshot: &Snapshot, span: &RecordedSpan) -> String {
    let name = shown(&span.name());
    match snapshot.request_id(span) {
        Some(request) => format!("{name} [{}]", shown(request)),
        None => name,
    }
}

/// Writes a line for each span, below its parent if that is among them.
fn tree(text: &mut String, spans: &[&RecordedSpan], line: impl Fn(&RecordedSpan) -> String) {
    let mut children: HashMap<(TraceId, SpanId), Vec<&RecordedSpan>> = HashMap::new();
    let known: HashSet<_> = spans.iter().map(|span| span.identity()).collect();
    let mut roots = Vec::new();
    for span in spans.iter().copied() {
        match span.parent().map(|parent| (span.identity().0, parent)) {
            Some(parent) if known.contains(&parent) => {
                children.entry(parent).or_default().push(span);
            }
            _ => roots.push(span),
        }
    }
    // In a damaged file parents may form a ring; its spans are below none of the roots.
    let mut written = HashSet::new();
    for root in roots.into_iter().chain(spans.iter().copied()) {
        let mut stack = vec![(root, 1)];
        while let Some((span, depth)) = stack.pop() {
            if !written.insert(span.identity()) {
                continue;
            }
            let _ = writeln!(text, "{:indent$}{}", "", line(span), indent = 2 * depth.min(40));
            let below = children.get(&span.identity()).into_iter().flatten().rev();
            stack.extend(below.map(|child| (*child, depth + 1)));
        }
    }
}

fn as_json(recording: &Recording) -> String {
    let snapshot = recording.snapshot();
    let identity = recording.identity();
    let acknowledged = recording.acknowledged();
    let losses: Map<String, Json> =
        recording.losses().into_iter().map(|(cause, n)| (cause.to_owned(), n.into())).collect();
    let spans: Vec<Json> = snapshot.spans.iter().map(|span| span_json(&snapshot, span)).collect();
    let whole = json!({
        "state": match recording.state() { State::Running => "running", State::Closed => "closed" },
        "alive": recording.is_alive(),
        "run_id": identity.run_id.as_ref().map(|run| run.as_str()),
        "process_id": identity.process_id,
        "stem": identity.stem,
        "pid": identity.pid,
        "run_dir": identity.run_dir.as_deref(),
        "resource": attributes(&identity.resource.attributes),
        "acknowledged": {"rotation": acknowledged.rotation, "length": acknowledged.length},
        "losses": losses,
        "readable": snapshot.damage.is_none(),
        "at": snapshot.at,
        "spans": spans,
    });
    format!("{whole}\n")
}

fn span_json(snapshot: &Snapshot, span: &RecordedSpan) -> Json {
    let (trace, id) = span.identity();
    let all: Vec<_> =
        span.attributes().into_iter().map(|(key, v)| (key.to_owned(), v.into())).collect();
    json!({
        "name": span.name(),
        "trace_id": trace.to_string(),
        "span_id": id.to_string(),
        "parent_span_id": span.parent().map(|parent| parent.to_string()),
        "begin": span.begin(),
        "end": span.end(),
        "age": span.is_open().then(|| snapshot.age(span)),
        "request_id": snapshot.request_id(span),
        "outcome": span.outcome(),
        "exported": span.is_exported(),
        "uncertain": span.is_uncertain(),
        "attributes": attributes(&all),
    })
}

fn attributes(all: &[(String, Value)]) -> Map<String, Json> {
    all.iter().map(|(key, value)| (key.clone(), value_json(value))).collect()
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Str(text) => json!(text),
        Value::Bool(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::Bytes(bytes) => json!(bytes),
        Value::Array(values) => values.iter().map(value_json).collect(),
        Value::Map(entries) => attributes(entries).into(),
        Value::Empty => Json::Null,
    }
}

/// Text from a file, so that it can neither steer the terminal nor pass for other lines.
fn shown(text: &str) -> String {
    let breaks = |c| matches!(c, '\u{2028}' | '\u{2029}');
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() || breaks(c) || turns(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e3 => format!("{ns} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

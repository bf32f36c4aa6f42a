//! JSON of Chrome's trace viewer, in its object form.
//!
//! The format is described in "Trace Event Format" by the Chromium project. Each lane is a thread of
//! its own with complete events (`X`), which nest by their times; so spans that overlap are not drawn
//! as if one contained the other. Times are microseconds with three decimals from the first begin on:
//! readers keep them as doubles, which could not tell nanoseconds apart in times since 1970.

use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stagetrace_wire::span::Value;

use super::Chosen;
use super::plan::{Plan, instant, told};
use crate::rules::Slice;

pub(super) fn write(chosen: &mut Chosen<'_>, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        r#"{{"displayTimeUnit":"ns","otherData":{{"begin_unix_nano":"{}"}},"traceEvents":["#,
        plan.begin
    )?;
    let mut events = Events { out, is_first: true };
    for (rank, process) in plan.lanes.processes.iter().enumerate() {
        let (pid, name) = (process.pid, text(&process.name));
        events.begin("M", "process_name", pid, 0)?;
        write!(events.out, r#","args":{{"name":{name}}}}}"#)?;
        events.begin("M", "process_sort_index", pid, 0)?;
        write!(events.out, r#","args":{{"sort_index":{rank}}}}}"#)?;
    }
    for (rank, lane) in plan.lanes.lanes.iter().enumerate() {
        let (pid, tid) = (plan.lanes.processes[lane.process].pid, rank + 1);
        events.begin("M", "thread_name", pid, tid)?;
        write!(events.out, r#","args":{{"name":{}}}}}"#, text(&lane.name))?;
        events.begin("M", "thread_sort_index", pid, tid)?;
        write!(events.out, r#","args":{{"sort_index":{rank}}}}}"#)?;
    }
    for slice in &plan.lanes.slices {
        events.slice(chosen, plan, slice)?;
    }
    writeln!(events.out, "\n]}}")
}

/// The events of a file.
struct Events<'o> {
    out: &'o mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn slice(&mut self, chosen: &mut Chosen<'_>, plan: &Plan, slice: &Slice) -> io::Result<()> {
        let mut span = chosen.span(slice.span);
        let told = told(chosen, slice.span, &mut span);
        let lane = &plan.lanes.lanes[slice.lane as usize];
        let (pid, tid) = (plan.lanes.processes[lane.process].pid, slice.lane as usize + 1);
        let (begin, name) = (micros(plan, slice.begin), text(&span.name));
        let category = text(&chosen.store.text(chosen.store.record(slice.span).stage));
        self.begin_named("X", &name, pid, tid)?;
        let duration = slice.end - slice.begin;
        write!(
            self.out,
            r#","cat":{category},"ts":{begin},"dur":{}.{:03},"args":"#,
            duration / 1000,
            duration % 1000
        )?;
        members(self.out, &told)?;
        self.out.write_all(b"}")?;
        for event in &span.events {
            self.begin_named("i", &text(&event.name), pid, tid)?;
            let at = micros(plan, instant(slice, event));
            write!(self.out, r#","cat":{category},"s":"t","ts":{at},"args":"#)?;
            members(self.out, &event.attributes)?;
            self.out.write_all(b"}")?;
        }
        for arrow in plan.arrows(slice.span) {
            let what = if arrow.is_link { "link" } else { "parent" };
            self.begin(if arrow.is_begin { "s" } else { "f" }, what, pid, tid)?;
            let binding = if arrow.is_begin { "" } else { r#","bp":"e""# };
            write!(self.out, r#","cat":"{what}","id":{},"ts":{begin}{binding}}}"#, arrow.number)?;
        }
        Ok(())
    }

    /// Begins an event whose name needs no escapes.
    fn begin(&mut self, phase: &str, name: &str, pid: u32, tid: usize) -> io::Result<()> {
        self.begin_named(phase, &format!("\"{name}\""), pid, tid)
    }

    fn begin_named(&mut self, phase: &str, name: &str, pid: u32, tid: usize) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        write!(self.out, r#"{separator}{{"ph":"{phase}","name":{name},"pid":{pid},"tid":{tid}"#)
    }
}

/// Microseconds since the first begin.
fn micros(plan: &Plan, at: u64) -> String {
    let (sign, nanos) = match at.checked_sub(plan.begin) {
        Some(nanos) => ("", nanos),
        // An event before its span.
        None => ("-", plan.begin - at),
    };
    format!("{sign}{}.{:03}", nanos / 1000, nanos % 1000)
}

/// A text of JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn members(out: &mut dyn Write, attributes: &[(String, Value)]) -> io::Result<()> {
    out.write_all(b"{")?;
    for (at, (key, member)) in attributes.iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        write!(out, "{separator}{}:", text(key))?;
        value(out, member)?;
    }
    out.write_all(b"}")
}

/// Integers beyond 2^53, which readers would round, are texts.
fn value(out: &mut dyn Write, of: &Value) -> io::Result<()> {
    const EXACT: u64 = 1 << 53;
    match of {
        Value::Empty => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::I64(value) if value.unsigned_abs() <= EXACT => write!(out, "{value}"),
        Value::I64(value) => write!(out, "\"{value}\""),
        Value::F64(value) if value.is_finite() => {
            write!(out, "{}", serde_json::Value::from(*value))
        }
        Value::F64(value) => write!(out, "\"{value}\""),
        Value::Str(value) => write!(out, "{}", text(value)),
        Value::Bytes(bytes) => write!(out, "\"{}\"", BASE64_STANDARD.encode(bytes)),
        Value::Array(values) => {
            out.write_all(b"[")?;
            for (at, element) in values.iter().enumerate() {
                out.write_all(if at == 0 { b"" } else { b"," })?;
                value(out, element)?;
            }
            out.write_all(b"]")
        }
        Value::Map(attributes) => members(out, attributes),
    }
}

//! Exporters that put what they are given into a file, each in its own bad way, and what such a file holds.

use stagetrace::Exporter;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{Event, Span, Value};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How long a slow one takes for a batch.
const SLOW: Duration = Duration::from_millis(20);

/// An exporter that appends each batch to a file, with its length in front, in one write.
///
/// `how`: `slow`; `fails` (refuses every second batch), `refuses` (all of them); `hangs` (in its third batch, for ever).
///
/// # Panics
/// If the file cannot be opened, or there is no such way.
pub fn exporter(path: &Path, how: &str) -> Exporter {
    let mut file = File::options().append(true).create(true).open(path).expect("it can be made");
    let (how, mut batches) = (how.to_owned(), 0_u32);
    Exporter::otlp("delivered", move |request: &[u8]| {
        batches += 1;
        match &*how {
            "slow" => std::thread::sleep(SLOW),
            "fails" if batches.is_multiple_of(2) => return Err("no route to host".to_owned()),
            "refuses" => return Err("no route to host".to_owned()),
            "hangs" if batches == 3 => loop {
                std::thread::park();
            },
            "fails" | "hangs" | "well" => {}
            _ => panic!("no such way: {how}"),
        }
        let length = (request.len() as u32).to_le_bytes();
        file.write_all(&[&length, request].concat()).map_err(|error| error.to_string())
    })
}

/// The spans in such a file, but for the reports of losses. A last batch that was torn off does not count.
pub fn spans(path: &Path) -> Vec<Span> {
    let bytes = fs::read(path).unwrap_or_default();
    let mut rest = &bytes[..];
    let mut spans = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let Some(request) = after.get(..u32::from_le_bytes(*length) as usize) else { break };
        for of_resource in parts(request, 1) {
            for of_scope in parts(of_resource, 2) {
                spans.extend(parts(of_scope, 2).map(span));
            }
        }
        rest = &after[request.len()..];
    }
    spans.retain(|span| span.name != "stagetrace.loss");
    spans
}

/// A field's content, a number or a length's bytes.
enum Content<'a> {
    Number(u64),
    Part(&'a [u8]),
}

/// The fields of a message in protobuf, each with its number.
///
/// # Panics
/// If it is none.
fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Content<'_>)> {
    std::iter::from_fn(move || {
        if message.is_empty() {
            return None;
        }
        let key = varint(&mut message);
        let content = match key & 7 {
            0 => Content::Number(varint(&mut message)),
            1 => Content::Number(u64::from_le_bytes(taken(&mut message, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut message) as usize;
                Content::Part(taken(&mut message, length))
            }
            5 => Content::Part(taken(&mut message, 4)),
            other => panic!("no wire type of protobuf: {other}"),
        };
        Some((key >> 3, content))
    })
}

fn taken<'a>(message: &mut &'a [u8], length: usize) -> &'a [u8] {
    message.split_off(..length).expect("the message is whole")
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = taken(message, 1)[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The content of every field of this number that has a length.
fn parts(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).filter_map(move |field| match field {
        (found, Content::Part(part)) if found == number => Some(part),
        _ => None,
    })
}

/// Of a span what tells which it is.
fn span(message: &[u8]) -> Span {
    let part = |number| parts(message, number).next().unwrap_or_default();
    let trace_id = TraceId::from_bytes(part(1).try_into().expect("16 bytes"));
    let span_id = SpanId::from_bytes(part(2).try_into().expect("8 bytes"));
    let ids = trace_id.zip(span_id).expect("ids are never 0");
    Span {
        name: text(part(5)),
        attributes: parts(message, 9).map(attribute).collect(),
        events: parts(message, 11).map(event).collect(),
        ..Span::new(ids.0, ids.1)
    }
}

fn event(message: &[u8]) -> Event {
    let attributes = parts(message, 3).map(attribute).collect();
    let name = parts(message, 2).next().map(text).unwrap_or_default();
    Event { time_unix_nano: 0, name, attributes, dropped_attributes: 0 }
}

fn attribute(message: &[u8]) -> (String, Value) {
    let key = parts(message, 1).next().map(text).unwrap_or_default();
    let value = parts(message, 2).flat_map(fields).next();
    let value = match value {
        Some((1, Content::Part(bytes))) => Value::Str(text(bytes)),
        Some((3, Content::Number(number))) => Value::I64(number as i64),
        _ => Value::Empty,
    };
    (key, value)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("texts are UTF-8")
}

//! Exporters that put what they are given into a file, each in its own bad way, and what such a file holds.

use stagetrace::Exporter;
use stagetrace_wire::otlp::protobuf::read_request;
use stagetrace_wire::span::Span;
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
        let contents = read_request(request).expect("a request is whole");
        assert_eq!(contents.report.refused_spans, 0, "ids are never 0");
        spans.extend(contents.spans);
        rest = &after[request.len()..];
    }
    spans.retain(|span| span.name != "stagetrace.loss");
    spans
}

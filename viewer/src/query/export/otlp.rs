//! OTLP/JSON lines, as every collector reads them, and we do.

use std::io::{self, Write};

use stagetrace_wire::otlp::json::write_lines;
use stagetrace_wire::recording::recover::key;
use stagetrace_wire::span::Value;

use super::Chosen;
use crate::store::{SpanNumber, Store, TraceNumber};

/// Spans that are written at a time.
const BATCH: usize = 512;

/// Writes traces one after another. Spans that are open have no end; those that were open when their
/// process died have the last sign of it, and say so, as recovered ones do.
pub(super) fn write(
    chosen: &mut Chosen<'_>,
    traces: &[TraceNumber],
    is_chosen: impl Fn(&Store, SpanNumber) -> bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for &trace in traces {
        let store = &chosen.store;
        let mut spans: Vec<_> =
            store.spans_of(trace).filter(|span| is_chosen(store, *span)).collect();
        // Spans of one process stand together, so that it is named once.
        spans.sort_by_key(|span| (store.record(*span).origin, *span));
        let records = spans.iter().map(|span| store.record(*span));
        let last_sign = records.map(|record| record.end.max(record.start)).max().unwrap_or(0);
        for batch in spans.chunks(BATCH) {
            let mut written = Vec::with_capacity(batch.len());
            for &number in batch {
                let mut span = chosen.span(number);
                let record = chosen.store.record(number);
                if record.is_open() && record.is_lost {
                    span.end_unix_nano = record.end.max(last_sign);
                    if span.attribute(key::OPEN).is_none() {
                        span.attributes.push((key::OPEN.to_owned(), Value::Bool(true)));
                    }
                }
                written.push(span);
            }
            out.write_all(&write_lines(&written))?;
        }
    }
    Ok(())
}

//! OTLP/JSON: lines and documents, whole and in pieces; what is read is written, and read alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stagetrace_wire::otlp::json::{
    LineReader, ReadOptions, read, read_document, read_lines, write_spans,
};
use stagetrace_wire::span::deduplicate;

fuzz_target!(|input: &[u8]| {
    let options = ReadOptions::default();
    let _ = read(input, &options);
    let _ = read_document(input, &ReadOptions { strict: true, ..options });
    let whole = read_lines(input, &options);
    // In two pieces, cut where the input says.
    let at = input.first().map_or(0, |byte| usize::from(*byte) * input.len() / 256);
    let mut reader = LineReader::new(options);
    let mut spans = Vec::new();
    reader.feed(&input[..at], &mut spans);
    reader.feed(&input[at..], &mut spans);
    let report = reader.finish(&mut spans);
    assert_eq!(report, whole.report);
    // Of spans that the input repeats, the whole has one.
    assert_eq!(deduplicate(&mut spans) as u64, whole.duplicates);
    assert_eq!(spans.len(), whole.spans.len());
    for span in &spans {
        let one = std::slice::from_ref(span);
        let lines = write_spans(&span.resource, &span.scope, one);
        let again = read_lines(&lines, &options);
        assert_eq!(again.report.refused.len(), 0);
        assert_eq!(format!("{one:?}"), format!("{:?}", again.spans));
    }
});

//! Spans of one place in the source as copies of one that is encoded already, as in protobuf.

use super::members::{AttributeHead, AttributeKey, KeyHead};
use super::span::List;
use super::value::AttributeValue;
use super::{LineWriter, SpanHead, write_start};
use crate::id::{SpanId, TraceId};
use crate::otlp::Execution;
use crate::recording::value;
use crate::span::StatusCode;

/// The spans of one place in the source that have no events, links and status, encoded once.
#[derive(Clone, Debug)]
pub struct SpanTemplate {
    title: SpanHead,
    always: Vec<AttributeHead>,
    /// A span up to its attributes.
    head: Vec<u8>,
    /// The rest of it, without further attributes and behind some.
    tail: Vec<u8>,
    tail_behind: Vec<u8>,
    /// Where its time of begin stands.
    begin: usize,
}

/// The attributes of a span that is made from a template.
#[derive(Debug)]
pub struct TemplateAttributes<'l>(List<'l>);

/// What stands before what differs, up to the flags.
const TRACE: &[u8] = br#"{"traceId":""#;
const SPAN: &[u8] = br#"","spanId":""#;
const PARENT: &[u8] = br#"","parentSpanId":""#;
const FLAGS: &[u8] = br#"","flags":"#;
const END: &[u8] = br#"","endTimeUnixNano":""#;

const TRACE_AT: usize = TRACE.len();
const SPAN_AT: usize = TRACE_AT + TraceId::HEX_LEN + SPAN.len();
const PARENT_AT: usize = SPAN_AT + SpanId::HEX_LEN + PARENT.len();
const FLAGS_AT: usize = PARENT_AT + SpanId::HEX_LEN + FLAGS.len();
/// Bytes of what has the same place in all templates.
const FIRST: usize = FLAGS_AT + 3;
/// Digits of a time, from 2001 to 2286 and beyond.
const TIME: usize = 19;
/// Bytes of both times.
const TIMES: usize = 2 * TIME + END.len();

impl SpanTemplate {
    /// Encodes a span with this name and kind, whose last attributes are these.
    pub fn new(title: SpanHead, always: Vec<AttributeHead>) -> Self {
        let one = Execution {
            trace_id: TraceId::from_u128(1).expect("not zero"),
            span_id: SpanId::from_u64(1).expect("not zero"),
            parent_span_id: SpanId::from_u64(1).expect("not zero"),
            flags: 100,
            start_unix_nano: TIMES_FROM,
            end_unix_nano: TIMES_FROM,
        };
        let mut head = Vec::new();
        write_start(&mut head, &one.start(&title));
        let begin = head.len() - 1 - TIMES;
        let tail_of = |is_open: bool| {
            let mut tail = Vec::new();
            let mut list = List { out: &mut tail, open: is_open };
            always.iter().for_each(|attribute| list.encoded(attribute));
            list.close("", 0);
            tail.push(b'}');
            tail
        };
        let (tail, tail_behind) = (tail_of(false), tail_of(true));
        Self { title, always, head, tail, tail_behind, begin }
    }

    #[inline]
    fn fill(&self, span: &mut [u8], it: Execution) {
        let fits = "a copy of the template has all of its fields";
        let first: &mut [u8; FIRST] = span.first_chunk_mut().expect(fits);
        first[TRACE_AT..][..TraceId::HEX_LEN].copy_from_slice(&it.trace_id.to_hex());
        first[SPAN_AT..][..SpanId::HEX_LEN].copy_from_slice(&it.span_id.to_hex());
        first[PARENT_AT..][..SpanId::HEX_LEN].copy_from_slice(&it.parent_span_id.to_hex());
        first[FLAGS_AT..].copy_from_slice(&THREE_DIGITS[it.flags as usize]);
        let times: &mut [u8; TIMES] = span[self.begin..].first_chunk_mut().expect(fits);
        times[..TIME].copy_from_slice(&time_digits(it.start_unix_nano));
        times[TIME + END.len()..].copy_from_slice(&time_digits(it.end_unix_nano));
    }
}

impl LineWriter<'_> {
    /// Adds a span to whose attributes `more` adds others, before those of its template.
    #[inline]
    pub fn push_with(
        &mut self,
        template: &SpanTemplate,
        it: Execution,
        more: impl FnOnce(&mut TemplateAttributes<'_>),
    ) {
        if !it.has_usual_digits() {
            return self.push_anyhow(template, it, more);
        }
        self.separate();
        let out = &mut *self.out;
        let at = out.len();
        out.extend_from_slice(&template.head);
        template.fill(&mut out[at..], it);
        let mut attributes = TemplateAttributes(List { out, open: false });
        more(&mut attributes);
        let List { out, open } = attributes.0;
        out.extend_from_slice(if open { &template.tail_behind } else { &template.tail });
        self.progress.end = out.len();
        self.progress.spans += 1;
    }

    /// The same for what has other numbers of digits.
    #[cold]
    fn push_anyhow(
        &mut self,
        template: &SpanTemplate,
        it: Execution,
        more: impl FnOnce(&mut TemplateAttributes<'_>),
    ) {
        let mut span = self.span(&it.start(&template.title)).with_list(|list| {
            let mut attributes = TemplateAttributes(list);
            more(&mut attributes);
            attributes.0
        });
        for attribute in &template.always {
            span.encoded(attribute);
        }
        span.finish(StatusCode::Unset, "");
    }
}

impl TemplateAttributes<'_> {
    /// Adds an attribute.
    #[inline]
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) {
        self.0.attribute(key, value);
    }

    /// Adds attributes as they stand behind a record's slot: see
    /// [`value::inline`](crate::recording::value::inline).
    pub fn recorded(&mut self, keys: &[KeyHead], count: u8, words: &[u64]) {
        for (at, value) in value::inline(count, words) {
            if let Some(key) = keys.get(at) {
                self.attribute(key, value);
            }
        }
    }
}

impl Execution {
    /// Whether flags and times have as many digits as in the template.
    #[inline]
    fn has_usual_digits(&self) -> bool {
        let is_usual = |time: u64| (TIMES_FROM..TIMES_TO).contains(&time);
        is_usual(self.start_unix_nano)
            && is_usual(self.end_unix_nano)
            && (100..1000).contains(&self.flags)
    }
}

/// Times of so many digits.
const TIMES_FROM: u64 = 1_000_000_000_000_000_000;
const TIMES_TO: u64 = 10_000_000_000_000_000_000;

/// The digits of all numbers below 1000, zeros in front.
static THREE_DIGITS: [[u8; 3]; 1000] = {
    let mut table = [[b'0'; 3]; 1000];
    let mut number = 0;
    while number < 1000 {
        let digits = [number / 100, number / 10 % 10, number % 10];
        table[number] = [b'0' + digits[0] as u8, b'0' + digits[1] as u8, b'0' + digits[2] as u8];
        number += 1;
    }
    table
};

/// The digits of a time that has [`TIME`] of them.
#[inline]
fn time_digits(time: u64) -> [u8; TIME] {
    const EIGHT: u64 = 100_000_000;
    let mut digits = [0; TIME];
    let (rest, last) = (time / EIGHT, time % EIGHT);
    let (first, middle) = (rest / EIGHT, rest % EIGHT);
    digits[..3].copy_from_slice(&THREE_DIGITS[first as usize]);
    digits[3..11].copy_from_slice(&eight_digits(middle));
    digits[11..].copy_from_slice(&eight_digits(last));
    digits
}

/// The digits of a number below 10^8, zeros in front. The number is halved, in parallel, into fours, twos and ones, each
/// in a part of the word that is twice as wide as it needs.
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    // Divides by 10 000, 100 and 10 in each part: exact for what stands there.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - 10 * tens) << 8);
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_of_a_number_are_divided_exactly() {
        for number in (0..10_000).flat_map(|part| [part, part * 10_000, part * 10_001]) {
            assert_eq!(eight_digits(number), *format!("{number:08}").as_bytes(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn a_time_has_the_digits_that_it_is_printed_with(time in TIMES_FROM..TIMES_TO) {
            let printed = time.to_string();
            prop_assert_eq!(&time_digits(time), printed.as_bytes());
        }
    }
}

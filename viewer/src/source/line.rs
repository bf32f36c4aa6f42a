//! One line, or one document: what it is, and what is in it.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use stagetrace_wire::otlp::json::{ReadOptions, read_document};

use super::scan::{Buffers, scan};
use super::{jaeger, live};
use crate::store::{Encoder, Standing};

/// Longest line or document, in bytes.
pub(super) const MAX_LINE: usize = 64 << 20;

/// What a line holds beside spans that were encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Spans that were left out, for want of valid ids.
    pub(super) refused: u64,
    /// It is a record of a live file, which announces spans.
    pub(super) is_live: bool,
    /// It is of a form that the viewer knows.
    pub(super) is_known: bool,
}

/// The forms of a line, by the members of its object.
#[derive(Clone, Copy, Default)]
struct Form {
    otlp: bool,
    jaeger: bool,
    live: bool,
    is_empty: bool,
}

/// Reads a line. An error says what is wrong with it, and then nothing of it is in the batch.
pub(super) fn read(
    line: &[u8],
    encoder: &mut Encoder<'_>,
    buffers: &mut Buffers,
) -> Result<Held, String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(Held::default());
    }
    let known = Held { is_known: true, ..Held::default() };
    if line.len() > MAX_LINE {
        return Err(too_long());
    }
    if let Ok(text) = str::from_utf8(line)
        && scan(text, encoder, buffers).is_some()
    {
        return Ok(known);
    }
    let is_live = |line: &[u8]| line.starts_with(br#"{"event""#);
    let form = if is_live(line) { Form { live: true, ..Form::default() } } else { form(line)? };
    if form.live {
        live::read(line, encoder)?;
        return Ok(Held { is_live: true, ..known });
    }
    if form.jaeger {
        return Ok(Held { refused: jaeger::read(line, encoder)?, ..known });
    }
    let options = ReadOptions { strict: false, max_bytes: MAX_LINE };
    let contents = read_document(line, &options).map_err(|damaged| damaged.damage.to_string())?;
    for span in &contents.spans {
        encoder.span(span, Standing::WrittenEnd);
    }
    let is_known = form.otlp || form.is_empty;
    Ok(Held { refused: contents.report.refused_spans, is_known, ..known })
}

#[cold]
pub(super) fn too_long() -> String {
    format!("longer than {} MiB", MAX_LINE >> 20)
}

/// Whether a text is JSON from beginning to end.
pub(super) fn is_whole(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn form(line: &[u8]) -> Result<Form, String> {
    if !line.starts_with(b"{") {
        return Err("no JSON object".into());
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let form = json.deserialize_map(FormVisitor).and_then(|form| json.end().map(|()| form));
    form.map_err(|error| error.to_string().replace(" at line 1 column", " at column"))
}

struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Form, A::Error> {
        let mut form = Form { is_empty: true, ..Form::default() };
        while let Some(key) = map.next_key::<String>()? {
            form.is_empty = false;
            match &*key {
                "resourceSpans" | "resource_spans" => form.otlp = true,
                "data" | "spans" => form.jaeger = true,
                "event" => form.live = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        // Who says two things at once means the first.
        form.jaeger &= !form.otlp;
        form.live &= !form.otlp && !form.jaeger;
        Ok(form)
    }
}

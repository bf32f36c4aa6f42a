//! The standard metrics of model servers, for requests that say what they are: those with `gen_ai.operation.name`.

use super::instruments::Instruments;
use super::seconds;
use crate::collect::{ERROR_TYPE, SpanView};
use crate::stage::SpanKind;
use opentelemetry::KeyValue;
use stagetrace_wire::recording::value::ValueRef;

/// Texts of requests that become attributes of the metrics.
const TEXTS: &[&str] = &[
    OPERATION,
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
];
const OPERATION: &str = "gen_ai.operation.name";
const PORT: &str = "server.port";
/// From which values are computed.
const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

/// Records a root, if it is that of a model server's request.
pub(super) fn record(
    instruments: &Instruments,
    root: &SpanView<'_>,
    attributes: &mut Vec<KeyValue>,
) {
    // A client's request is measured by its server.
    if root.site.kind() == SpanKind::Client {
        return;
    }
    attributes.clear();
    let (mut first_token, mut tokens) = (None, None);
    root.attributes(|key, value| {
        let Some(key) = root.text(key) else { return };
        match value {
            ValueRef::Str(text) => {
                if let Some(key) = TEXTS.iter().find(|known| **known == key) {
                    attributes.push(KeyValue::new(*key, text.to_owned()));
                }
            }
            ValueRef::I64(port) if key == PORT => attributes.push(KeyValue::new(PORT, port)),
            ValueRef::I64(count) if key == OUTPUT_TOKENS => tokens = Some(count),
            ValueRef::F64(seconds) if key == FIRST_CHUNK => first_token = Some(seconds),
            _ => {}
        }
    });
    if !attributes.iter().any(|attribute| attribute.key.as_str() == OPERATION) {
        return;
    }
    let duration = seconds(root.begin, root.end);
    let is_success = root.error_type().is_none();
    let first_token = first_token.filter(|first| is_success && (0.0..=duration).contains(first));
    if let Some(first) = first_token {
        instruments.gen_ai_first_token.record(first, attributes);
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 1) {
            instruments
                .gen_ai_per_token
                .record((duration - first) / (tokens - 1) as f64, attributes);
        }
    }
    attributes.extend(root.error_type().map(|kind| KeyValue::new(ERROR_TYPE, kind.to_owned())));
    instruments.gen_ai_request_duration.record(duration, attributes);
}

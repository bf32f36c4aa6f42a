//! What a recording and the exported spans say of their process and of this library.

use crate::run::Place;
use serde_json::json;
use stagetrace_wire::recording::layout::header;
use stagetrace_wire::span::{Resource, Scope, Value};

/// What a recording says of its process, as JSON.
pub(super) fn identity(place: &Place, resource: &Resource) -> String {
    let attributes: serde_json::Map<_, _> =
        resource.attributes.iter().map(|(key, value)| (key.clone(), plain(value))).collect();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // Fits always: with what the process says of itself if there is room, with no more than what finds its files else.
    let all = json!({
        "run_id": place.run_id.as_str(),
        "process_id": place.process_id,
        "stem": place.stem,
        "run_dir": place.dir.as_ref().and_then(|dir| dir.to_str()),
        "boot_id": boot.trim(),
        "resource": &attributes,
        "schema_url": resource.schema_url,
        "scope": { "name": scope().name, "version": scope().version },
    });
    let mut text = all.to_string();
    if text.len() > header::IDENTITY_MAX {
        let mut least = all;
        let name = attributes.get("service.name").and_then(|name| name.as_str());
        let name: String = name.unwrap_or_default().chars().take(256).collect();
        least["resource"] = json!({ "service.name": name });
        text = least.to_string();
    }
    text
}

fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Str(text) => json!(text),
        Value::Bool(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::Array(values) => values.iter().map(plain).collect(),
        _ => serde_json::Value::Null,
    }
}

/// The library as the scope of its spans.
pub(super) fn scope() -> Scope {
    Scope {
        name: "stagetrace".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Scope::default()
    }
}

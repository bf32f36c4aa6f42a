//! Who wrote a recording: the JSON object in its header.

use super::view::View;
use crate::id::RunId;
use crate::recording::layout::header;
use crate::span::{Resource, Scope, Value};
use serde_json::Value as Json;
use std::path::PathBuf;
use std::sync::Arc;

/// Who wrote a recording. What could not be read is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The run that the process is part of.
    pub run_id: Option<RunId>,
    /// `<pid>-<8 hex>`: the process within its run.
    pub process_id: String,
    /// The process's number at the operating system.
    pub pid: u32,
    /// What the names of the process's files begin with.
    pub stem: String,
    /// The run's directory, as the process saw it.
    pub run_dir: Option<PathBuf>,
    /// The boot of the machine, which says whether its monotonic clock is ours. Empty if unknown.
    pub boot_id: String,
    /// The process, as it describes itself to OpenTelemetry.
    pub resource: Arc<Resource>,
    /// The library that recorded.
    pub scope: Arc<Scope>,
}

impl Identity {
    pub(super) fn read(words: View<'_>) -> Identity {
        let len = words.load_first(header::IDENTITY_LEN).min(header::IDENTITY_MAX as u64);
        let text = words.bytes(header::IDENTITY / 8, len as usize);
        let json = serde_json::from_slice(&text).unwrap_or(Json::Null);
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let attributes = json["resource"].as_object().into_iter().flatten();
        Identity {
            run_id: RunId::try_from(text("run_id")).ok(),
            process_id: text("process_id"),
            pid: u32::try_from(words.load(header::PID)).unwrap_or(0),
            stem: text("stem"),
            run_dir: json["run_dir"].as_str().map(PathBuf::from),
            boot_id: text("boot_id"),
            resource: Arc::new(Resource {
                attributes: attributes.map(|(key, json)| (key.clone(), value(json))).collect(),
                schema_url: text("schema_url"),
                ..Resource::default()
            }),
            scope: Arc::new(Scope {
                name: json["scope"]["name"].as_str().unwrap_or("stagetrace").to_owned(),
                version: json["scope"]["version"].as_str().unwrap_or_default().to_owned(),
                ..Scope::default()
            }),
        }
    }

    /// Whether this machine has not been started anew since. False where that cannot be known.
    pub(super) fn is_of_this_boot(&self) -> bool {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        !boot.trim().is_empty() && boot.trim() == self.boot_id
    }
}

fn value(json: &Json) -> Value {
    match json {
        Json::String(text) => Value::Str(text.clone()),
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::I64(integer),
            None => number.as_f64().map_or(Value::Empty, Value::F64),
        },
        Json::Array(values) => Value::Array(values.iter().map(value).collect()),
        Json::Null | Json::Object(_) => Value::Empty,
    }
}

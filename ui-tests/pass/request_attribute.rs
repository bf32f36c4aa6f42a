//! What `#[request]` adds, with serde and without.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use stagetrace::{Stages, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// Without serde.
#[stagetrace::request(name = "plain", stages = Steps)]
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// Its id.
    #[traced(id)]
    pub id: u32,
}

/// With serde.
#[stagetrace::request]
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct Sent<T> {
    /// Its id.
    #[traced(id)]
    pub id: String,
    /// Recorded.
    #[traced(attr = "the.value")]
    pub value: T,
}

/// Without the key while there is no trace.
#[stagetrace::request(skip_null, kind = consumer)]
#[derive(Serialize, Default, Clone)]
struct Skipped {
    id: u32,
}

/// With serde under a condition.
#[stagetrace::request()]
#[cfg_attr(all(), derive(Serialize), derive(Deserialize))]
#[cfg_attr(any(), derive(Missing))]
#[derive(Default)]
pub(crate) struct Conditional {}

#[stage(Steps::Only, request)]
fn plain(request: &Plain) -> u32 {
    request.id
}

#[stage("free", request)]
async fn sent(request: Sent<u32>) -> String {
    request.id
}

#[test]
fn the_trace_is_added_and_serialised() {
    let request = Plain::default();
    assert_eq!(plain(&request), 0);
    assert!(request.trace.is_null());
    let text = serde_json::to_string(&Sent::<u32>::default()).expect("serialises");
    assert_eq!(text, r#"{"ID":"","VALUE":0,"_trace_state":null}"#);
    let read: Sent<u32> = serde_json::from_str(r#"{"ID":"a","VALUE":1}"#).expect("deserialises");
    assert_eq!((read.id.as_str(), read.value), ("a", 1));
    drop(sent(read));
    let text = serde_json::to_string(&Skipped::default()).expect("serialises");
    assert_eq!(text, r#"{"id":0}"#);
    let text = serde_json::to_string(&Conditional::default()).expect("serialises");
    assert_eq!(text, r#"{"_trace_state":null}"#);
    let _: Conditional = serde_json::from_str("{}").expect("deserialises");
}

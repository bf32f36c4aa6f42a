//! Trace states that come with requests: nothing fails, and what goes on is what came.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use stagetrace::TraceState;

#[derive(Serialize, Deserialize)]
struct Request {
    id: u32,
    #[serde(default)]
    trace: TraceState,
}

#[derive(Serialize, Deserialize)]
struct Flat {
    #[serde(flatten)]
    request: Request,
}

fuzz_target!(|input: &[u8]| {
    if let Ok(state) = serde_json::from_slice::<TraceState>(input) {
        let text = serde_json::to_string(&state).expect("JSON can hold it");
        let again: TraceState = serde_json::from_str(&text).expect("written by us");
        assert_eq!(text, serde_json::to_string(&again).expect("JSON can hold it"));
        let packed = postcard::to_stdvec(&state).expect("postcard can hold it");
        let unpacked: TraceState = postcard::from_bytes(&packed).expect("written by us");
        assert_eq!(text, serde_json::to_string(&unpacked).expect("JSON can hold it"));
    }
    let _ = serde_json::from_slice::<Request>(input).map(|request| serde_json::to_vec(&request));
    let _ = serde_json::from_slice::<Flat>(input).map(|request| serde_json::to_vec(&request));
    let _ = postcard::from_bytes::<Request>(input).map(|request| postcard::to_stdvec(&request));
    let _ = rmp_serde::from_slice::<Request>(input).map(|request| rmp_serde::to_vec(&request));
    // As headers: the input is their values.
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let names = ["traceparent", "tracestate", "baggage"];
    let headers = names.iter().filter_map(|name| Some((*name, parts.next()?)));
    let state = TraceState::from_headers(headers);
    let _ = serde_json::to_string(&state).expect("JSON can hold it");
});

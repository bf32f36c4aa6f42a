//! What waits in outboxes of dead processes and is not taken over.

use super::segment::{Encoding, Segment};
use std::collections::BTreeSet;
use std::fmt;

/// Spans that wait for another endpoint, or in another encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Others {
    pub(in super::super) spans: u64,
    files: usize,
    encodings: Vec<Encoding>,
    endpoints: BTreeSet<String>,
}

impl Others {
    pub(super) fn add(&mut self, segment: &Segment) {
        let spans: u64 = segment.entries().map(|entry| u64::from(entry.spans)).sum();
        if spans == 0 {
            return;
        }
        self.spans += spans;
        self.files += 1;
        let (encoding, endpoint) = (segment.label.encoding, &segment.label.endpoint);
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        if !self.endpoints.contains(endpoint) {
            self.endpoints.insert(endpoint.clone());
        }
    }

    /// The protocols that send them, as the environment names them.
    pub(in super::super) fn protocols(&self) -> &'static str {
        match self.encodings[..] {
            [Encoding::Json] => "http/json",
            [Encoding::Protobuf] => "http/protobuf or grpc",
            _ => "http/json, and then http/protobuf or grpc",
        }
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<&str> = self.endpoints.iter().map(String::as_str).collect();
        let Others { spans, files, .. } = self;
        write!(f, "{spans} spans in {files} files wait for {}", endpoints.join(" and "))
    }
}

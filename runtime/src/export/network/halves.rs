//! Halving a request that is encoded already: where its server finds it too large.

use prost::Message;
use serde_json::Value;

/// A request in protobuf, as far as it is taken apart.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(bytes = "vec", optional, tag = "1")]
    resource: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<OfScope>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(bytes = "vec", optional, tag = "1")]
    scope: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    spans: Vec<Vec<u8>>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

/// The halves of a request with one resource and one scope, as ours are, and how many spans each has. `None` if it has only
/// one, or cannot be read.
pub(super) fn of_protobuf(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]> {
    let mut first = Request::decode(body).ok()?;
    let spans = |request: &mut Request| match request.resources.as_mut_slice() {
        [OfResource { scopes, .. }] => match scopes.as_mut_slice() {
            [OfScope { spans, .. }] if spans.len() > 1 => Some(std::mem::take(spans)),
            _ => None,
        },
        _ => None,
    };
    let mut of_first = spans(&mut first)?;
    let of_second = of_first.split_off(of_first.len() / 2);
    Some([of_first, of_second].map(|spans| {
        let count = spans.len() as u64;
        first.resources[0].scopes[0].spans = spans;
        (first.encode_to_vec(), count)
    }))
}

/// The same of one in JSON.
pub(super) fn of_json(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let spans = request.pointer_mut("/resourceSpans/0/scopeSpans/0/spans")?.as_array_mut()?;
    if spans.len() < 2 {
        return None;
    }
    let mut first = std::mem::take(spans);
    let second = first.split_off(first.len() / 2);
    let mut with = |spans: Vec<Value>| {
        let count = spans.len() as u64;
        *request.pointer_mut("/resourceSpans/0/scopeSpans/0/spans")? = Value::Array(spans);
        Some((serde_json::to_vec(&request).ok()?, count))
    };
    Some([with(first)?, with(second)?])
}

//! Trace context between processes: W3C Trace Context (Level 2) and Baggage, as headers.
//!
//! One strict codec for everyone: what a sender got wrong is refused with its reason, never
//! guessed, and what is passed on is always well-formed.
//!
//! ```
//! use stagetrace_wire::context::{extract, inject};
//!
//! let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
//! let found = extract([("TraceParent", caller), ("tracestate", "rojo=1"), ("baggage", "a=x%20y")]);
//! assert_eq!(found.baggage.get("a").as_deref(), Some("x y"));
//!
//! let mut headers = Vec::new();
//! inject(found.context.unwrap(), &found.trace_state, &found.baggage, |name, value| {
//!     headers.push((name, value.to_owned()));
//! });
//! assert_eq!(headers[0], ("traceparent", caller.to_owned()));
//! ```

mod baggage;
mod traceparent;
mod tracestate;
mod wishes;

pub use baggage::{Baggage, BaggageError, BaggageMember};
pub use traceparent::{TraceContext, TraceFlags, TraceparentError};
pub use tracestate::{TraceStateError, TraceStateList};
pub use wishes::Wishes;

/// Name of the header that holds a [`TraceContext`].
pub const TRACEPARENT: &str = "traceparent";
/// Name of the header that holds a [`TraceStateList`].
pub const TRACESTATE: &str = "tracestate";
/// Name of the header that holds [`Baggage`].
pub const BAGGAGE: &str = "baggage";

/// What came with a request: the readable part, and what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The caller's span. `None` when absent or refused: begin a new trace.
    pub context: Option<TraceContext>,
    /// Other vendors' positions, in order. Empty when absent or refused, and always without a
    /// context.
    pub trace_state: TraceStateList,
    /// The caller's baggage, which does not depend on a context.
    pub baggage: Baggage,
    /// Why a `traceparent` was refused.
    pub traceparent_error: Option<TraceparentError>,
    /// Why a `tracestate` was refused.
    pub tracestate_error: Option<TraceStateError>,
    /// Members of the baggage that were malformed or too many.
    pub baggage_refused: usize,
}

/// Reads trace context and baggage from headers, whose names match in any case; other headers are
/// skipped.
///
/// Several `tracestate` or `baggage` headers are one list, in order. Several `traceparent` headers
/// are refused.
pub fn extract<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Extracted
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    let mut found = Extracted::default();
    let mut traceparent: Option<Result<TraceContext, TraceparentError>> = None;
    let mut trace_state = Ok(TraceStateList::default());
    for (name, value) in headers {
        let (name, value) = (name.as_ref(), trim(value.as_ref()));
        if name.eq_ignore_ascii_case(TRACEPARENT) {
            traceparent = Some(match traceparent {
                None => TraceContext::parse(value),
                Some(_) => Err(TraceparentError::Repeated),
            });
        } else if name.eq_ignore_ascii_case(TRACESTATE) {
            trace_state = trace_state.and_then(|list| list.with_header(value));
        } else if name.eq_ignore_ascii_case(BAGGAGE) {
            found.baggage_refused += found.baggage.append_header(value);
        }
    }
    match traceparent {
        None => {}
        Some(Err(error)) => found.traceparent_error = Some(error),
        Some(Ok(context)) => {
            found.context = Some(context);
            match trace_state {
                Ok(list) => found.trace_state = list,
                Err(error) => found.tracestate_error = Some(error),
            }
        }
    }
    found
}

/// Hands the headers of an outgoing request to `set`, as (name, value). Empty lists are not sent.
///
/// Allocates nothing. `context` names the span that becomes the receiver's parent.
pub fn inject(
    context: TraceContext,
    trace_state: &TraceStateList,
    baggage: &Baggage,
    mut set: impl FnMut(&'static str, &str),
) {
    set(TRACEPARENT, context.encode(&mut [0; TraceContext::TEXT_LEN]));
    if !trace_state.is_empty() {
        set(TRACESTATE, trace_state.as_str());
    }
    if !baggage.is_empty() {
        set(BAGGAGE, baggage.as_str());
    }
}

/// Without the optional whitespace (blanks and tabs) that lists allow around their members.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests;

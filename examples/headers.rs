//! Requests from elsewhere: one that comes with headers, what goes on in its trace, and one that begins under it.
//!
//! `cargo run -p stagetrace --example headers`. Servers of hyper and axum have the header maps of the crate `http`.

use http::{HeaderMap, HeaderValue};
use stagetrace::{Carrier, Outcome, TraceConfig, TraceState, Traced};

#[derive(Traced)]
#[traced(name = "generate")]
struct Generate {
    #[traced(state)]
    trace: TraceState,
}

#[derive(Traced)]
#[traced(name = "judge")]
struct Judge {
    #[traced(state)]
    trace: TraceState,
}

// As it comes: `traceparent`, `tracestate` and `baggage` are read, in any case. In its field they are passed on even
// where nothing is recorded.
fn begin(headers: &HeaderMap) -> Generate {
    let mut request = Generate { trace: TraceState::from_headers(headers) };
    request.begin(None);
    request
}

// To the next server, which goes on in the same trace.
fn outgoing(request: &Generate) -> HeaderMap {
    let mut headers = HeaderMap::new();
    request.position().inject(|name, value| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    });
    headers
}

// A request of its own, under another: `position` is of the trait `Carrier`.
fn judge(answer_to: &Generate) {
    let mut request = Judge { trace: TraceState::null() };
    request.begin(answer_to.position());
    request.finish(Outcome::Ok);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _trace = stagetrace::init(TraceConfig::from_env()?.service_name("headers"))?;
    let mut headers = HeaderMap::new();
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    headers.insert("traceparent", HeaderValue::from_static(traceparent));
    let request = begin(&headers);
    judge(&request);
    let outgoing = outgoing(&request);
    println!("came with {traceparent}");
    println!("goes with {}", outgoing["traceparent"].to_str()?);
    request.finish(Outcome::Ok);
    Ok(())
}

//! Spans to an OpenTelemetry backend: `cargo run --example otlp --features otlp-grpc`, with one listening on port 4317.
//!
//! Where there is none, it says so, and the spans are in the file all the same.

use stagetrace::{Otlp, TraceConfig, init, stage, status};
use std::time::Duration;

#[stage("greet")]
fn greet(name: &str) -> String {
    format!("hello, {name}")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let otlp = Otlp::grpc("http://localhost:4317").timeout(Duration::from_secs(1));
    let trace = init(TraceConfig::from_env()?.service_name("hello").otlp(otlp))?;
    println!("{}", greet("collector"));

    if let Err(problem) = stagetrace::flush(Duration::from_secs(5)) {
        println!("not everything has left: {problem}");
    }
    for sink in status().stats.iter().flat_map(|stats| &stats.sinks) {
        println!("{}: {} exported, {} lost", sink.name, sink.exported, sink.failed);
    }
    drop(trace);
    Ok(())
}

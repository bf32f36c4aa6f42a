//! Metrics from spans: the page that Prometheus scrapes, after a few requests.
//!
//! `cargo run -p stagetrace --example metrics --features prometheus`

use stagetrace::metrics::Prometheus;
use stagetrace::{Outcome, TraceConfig, TraceState, Traced, init_with, stage};
use std::time::Duration;

#[derive(Traced)]
#[traced(name = "chat")]
struct Chat {
    #[traced(attr = "gen_ai.operation.name")]
    operation: &'static str,
    #[traced(attr = "gen_ai.request.model")]
    model: &'static str,
    #[traced(attr = "gen_ai.response.time_to_first_chunk")]
    first_chunk: Option<f64>,
    #[traced(attr = "gen_ai.usage.output_tokens")]
    tokens: u32,
    #[traced(state)]
    trace: TraceState,
}

#[stage("prefill", _request)]
fn prefill(_request: &Chat) {
    std::thread::sleep(Duration::from_millis(15));
}

#[stage("decode", request)]
fn decode(request: &mut Chat) {
    std::thread::sleep(Duration::from_millis(30));
    request.tokens += 1;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prometheus = Prometheus::new();
    let config = TraceConfig::from_env()?.service_name("metrics");
    let _trace = init_with(config, [prometheus.exporter()])?;
    let page = prometheus.serve("127.0.0.1:0")?;
    for _ in 0..5 {
        let (operation, model) = ("chat", "tiny");
        let mut request =
            Chat { operation, model, first_chunk: None, tokens: 0, trace: TraceState::default() };
        request.begin(None);
        prefill(&request);
        request.first_chunk = Some(0.015);
        (0..3).for_each(|_| decode(&mut request));
        request.finish(Outcome::Ok);
    }
    stagetrace::flush(Duration::from_secs(5))?;
    println!("# http://{}/metrics says:", page.address());
    print!("{}", prometheus.render());
    Ok(())
}

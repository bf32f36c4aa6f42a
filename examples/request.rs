//! A request with stages: its trace belongs to it, and its root says where the time went.
//!
//! `cargo run -p stagetrace --example request`, then look into `traces/`.

use stagetrace::{Outcome, Stages, TraceConfig, TraceState, Traced, stage};

#[derive(Stages, Clone, Copy)]
enum HelloStage {
    #[stage(level = 1)]
    Greet,
    #[stage(within = Greet)]
    Compose,
}

#[derive(Traced)]
#[traced(name = "hello", stages = HelloStage)]
struct Hello {
    #[traced(attr = "hello.name")]
    name: String,
    #[traced(state)]
    trace: TraceState,
}

#[stage(HelloStage::Greet, request)]
fn greet(request: &Hello) {
    println!("{}", compose(request));
}

#[stage(HelloStage::Compose, request)]
fn compose(request: &Hello) -> String {
    format!("Hello, {}!", request.name)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = stagetrace::init(TraceConfig::from_env()?.service_name("hello"))?;
    let mut request = Hello { name: "world".to_owned(), trace: TraceState::default() };
    request.begin(None);
    greet(&request);
    request.finish(Outcome::Ok);
    if let Some(dir) = trace.run_dir() {
        println!("traced into {}", dir.display());
    }
    Ok(())
}

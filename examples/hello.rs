//! Trace one function to a file.
//!
//! `cargo run -p stagetrace --example hello`, then look into `traces/`.

use stagetrace::{TraceConfig, stage};

#[stage("greet")]
fn greet(name: &str) -> String {
    format!("Hello, {name}!")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _trace = stagetrace::init(TraceConfig::from_env()?.service_name("hello"))?;
    println!("{}", greet("world"));
    Ok(())
}

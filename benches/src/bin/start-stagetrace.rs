//! A process that starts stagetrace.

#[path = "../start_up/mod.rs"]
mod start_up;

fn main() {
    let directory = std::env::var_os("BENCHES_DIRECTORY").unwrap_or_else(|| "traces".into());
    let config = stagetrace::TraceConfig::new().service_name("benches").output_dir(directory);
    start_up::time(|| stagetrace::init(config).expect("the configuration is right"));
}

//! What a span costs, here and elsewhere.
//!
//! - `cargo run --release -p benches -- rivals` measures the same work through stagetrace, fastrace, the OpenTelemetry
//!   SDK and `tracing` with `tracing-opentelemetry`, and prints tables. `--json FILE` and `--svg FILE` write them,
//!   `--docs` writes those of `docs/`, `--case NAME` and `--quick` do less.
//! - `cargo run --release -p benches -- instructions` counts instructions and allocations per span and fails if a limit
//!   of `limits.txt` is passed. It needs valgrind.
//! - `cargo run --release -p benches -- away` measures what a server that takes no spans costs the application.
//!
//! With `--profile lto` instead of `--release` they do so with link-time optimisation. See `docs/performance.md`.

mod away;
mod instructions;
mod machine;
mod measure;
mod peers;
mod rivals;
mod staged;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["instructions"] => instructions::check(),
        ["case", name, which, times] => instructions::run_child(name, which, times),
        ["away"] => away::compare(),
        ["away-one", endpoint] => away::run_one(endpoint),
        ["rivals", ref options @ ..] => rivals::compare(options),
        ["one", case, peer, size] => rivals::run_one(case, peer, size),
        _ => {
            eprintln!("usage: benches instructions | away | {}", rivals::USAGE);
            ExitCode::from(2)
        }
    }
}

//! What a span costs: nanoseconds, as multiples of F, and instructions.
//!
//! F is the cost of two clock reads and a 16-byte store, measured in the same process: absolute nanoseconds move by a
//! third within an hour on shared machines, their ratio does not.
//!
//! - `cargo run --release -p benches` prints the table.
//! - `cargo run --release -p benches -- instructions` counts instructions per span with callgrind (valgrind must be
//!   installed).
//!
//! Each case is a burst of 20 000 spans on one thread, timed there, then a flush; the median and the minimum of 30
//! bursts are printed. The collector runs on another core meanwhile, as in production.

mod cases;
mod instructions;

use cases::CASES;
use std::time::Instant;

const SPANS: usize = 20_000;
const BURSTS: usize = 30;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => table(),
        ["instructions"] => instructions::count_all(),
        ["case", name, spans] => instructions::run_one(name, spans),
        _ => {
            eprintln!("usage: benches [instructions]");
            std::process::exit(2);
        }
    }
}

fn table() {
    let trace = cases::init();
    let floor = measure(cases::floor);
    println!("{:<24} {:>10} {:>10} {:>8}", "case", "min ns", "median ns", "F");
    println!("{:<24} {:>10.1} {:>10.1} {:>8.2}", "two clock reads (F)", floor.0, floor.1, 1.0);
    for case in CASES {
        let (min, median) = measure(case.run);
        println!("{:<24} {min:>10.1} {median:>10.1} {:>8.2}", case.name, median / floor.1);
    }
    let stats = trace.shutdown(std::time::Duration::from_secs(10));
    let dropped = stats.as_ref().map(stagetrace::Stats::dropped_spans);
    println!("dropped: {dropped:?}");
}

/// Nanoseconds per span: minimum and median of the bursts.
fn measure(run: fn(usize)) -> (f64, f64) {
    let mut all: Vec<f64> = (0..BURSTS + 5)
        .map(|_| {
            let start = Instant::now();
            run(SPANS);
            let taken = start.elapsed();
            // Between bursts the collector catches up, so that no burst measures dropping.
            let _ = stagetrace::flush(std::time::Duration::from_secs(10));
            taken.as_nanos() as f64 / SPANS as f64
        })
        .skip(5)
        .collect();
    all.sort_by(f64::total_cmp);
    (all[0], all[all.len() / 2])
}

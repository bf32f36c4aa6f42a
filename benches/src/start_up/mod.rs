//! Times the start of a library, for programs that do nothing else. Included by each of them.

use std::time::Instant;

#[path = "../measure/clock.rs"]
#[allow(dead_code, reason = "only one of the clocks is needed here")]
mod clock;

/// Prints in nanoseconds: CPU time before `main`, time that `start` takes, CPU time until a moment later.
pub(crate) fn time<T>(start: impl FnOnce() -> T) {
    let before_main = clock::process_cpu();
    let begin = Instant::now();
    let started = start();
    let taken = begin.elapsed();
    // What it started in the background comes to rest.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let cpu = clock::process_cpu() - before_main;
    println!("{} {} {}", before_main.as_nanos(), taken.as_nanos(), cpu.as_nanos());
    drop(started);
}

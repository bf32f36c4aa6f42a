//! Starting, and waits that end.

use stagetrace::{Exporter, Stats, TraceConfig, TraceGuard};
use std::time::{Duration, Instant};

/// Starts tracing as the environment says.
pub fn start() -> TraceGuard {
    start_with(|config| config)
}

/// Starts tracing as the environment and `change` say.
///
/// # Panics
/// If that makes no sense.
pub fn start_with(change: impl FnOnce(TraceConfig) -> TraceConfig) -> TraceGuard {
    let config = TraceConfig::from_env().expect("the environment is never an error");
    stagetrace::init(change(config.service_name("test"))).expect("the configuration makes sense")
}

/// Starts tracing as the environment says, without a .jsonl, to this exporter alone.
///
/// # Panics
/// If what the environment says makes no sense.
pub fn start_exporting(exporter: Exporter) -> TraceGuard {
    let config = TraceConfig::from_env().expect("the environment is never an error");
    let config = config.service_name("test").jsonl(false);
    stagetrace::init_with(config, [exporter]).expect("the configuration makes sense")
}

/// Has everything that ended leave the process, and gives the counters at that moment.
///
/// # Panics
/// If it does not within 20 s.
pub fn flushed() -> Stats {
    stagetrace::flush(Duration::from_secs(20)).expect("the file can be written")
}

/// The counters, from a collector that may have to wait for its turn on a busy machine.
///
/// # Panics
/// If it does not answer within 20 s.
pub fn counters() -> Stats {
    let mut stats = None;
    until(Duration::from_secs(20), || {
        stats = stagetrace::stats();
        stats.is_some()
    });
    stats.expect("the collector lives")
}

/// Waits until the condition holds. Whether it does, within that time.
pub fn until(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the condition holds, at first without a call, so that what follows follows at once; not
/// for long, since whoever is waited for may need this processor.
pub fn spin_until(condition: impl Fn() -> bool) {
    for spins in 0_u32.. {
        if condition() {
            return;
        }
        if spins < 10_000 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Bytes of memory that the process has, as the operating system counts them.
///
/// # Panics
/// Where there is no `/proc`.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number is the resident pages") * 4096
}

/// Processor time of this process so far.
///
/// # Panics
/// Where there is no `/proc`.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has /proc");
    let (_, fields) = stat.rsplit_once(") ").expect("the name ends");
    let fields: Vec<_> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("it is a number");
    // Hundredths of a second, in user and in system mode.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

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

/// Bytes of memory that the process has, as the operating system counts them.
///
/// # Panics
/// Where there is no `/proc`.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number is the resident pages") * 4096
}

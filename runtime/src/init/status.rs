//! How tracing stands, for people and for pages that show it.

use super::{Running, level, running, started, stats};
use crate::clock::ClockSource;
use crate::complain;
use crate::stats::Stats;

/// How tracing stands.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Whether it was started and not stopped.
    pub running: bool,
    /// The level of later requests.
    pub level: u8,
    /// The run's id.
    pub run_id: Option<String>,
    /// The run's directory, if it could be made.
    pub run_dir: Option<std::path::PathBuf>,
    /// The mapped recording, if there is one that nobody has removed.
    pub recording: Option<std::path::PathBuf>,
    /// What was said on standard error, or would have been at another log level: what the environment does not allow,
    /// each with its place and what became of it. An outage of an endpoint that is over says so.
    pub complaints: Vec<String>,
    /// What time stamps are read from, and why that.
    pub clock: Option<ClockSource>,
    /// What the environment got wrong.
    pub warnings: Vec<crate::config::ConfigWarning>,
    /// Where the viewer beside this process is, once it has said so and as long as it lives.
    pub viewer: Option<String>,
    /// The counters, those of each sink included.
    pub stats: Option<Stats>,
}

/// How tracing stands: where it writes, what it warned of, how the sinks are.
pub fn status() -> Status {
    let Some(started) = started() else { return Status::default() };
    let place = started.running.as_ref().map(|running| &running.place);
    Status {
        running: running().is_some(),
        level: level(),
        run_id: place.map(|place| place.run_id.as_str().to_owned()),
        run_dir: place.and_then(|place| place.dir.clone()),
        recording: started.running.as_ref().and_then(Running::recording),
        complaints: complain::said(),
        clock: started.running.as_ref().map(|running| running.clock.clone()),
        warnings: started.settings.warnings.clone(),
        viewer: running().and_then(|running| running.viewer.as_ref()?.url()),
        stats: stats(),
    }
}

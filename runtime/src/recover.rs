//! Bringing home what dead processes left, without starting to trace.

use crate::adopt::{self, Adopted};
use crate::complain;
use crate::config::TraceConfig;
use crate::error::InitError;
use std::time::Duration;

/// What [`recover`] brought home, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Recordings of dead processes from which spans were written to `<name>.recovered.jsonl`.
    pub recordings: usize,
    /// Ended spans that were written there.
    pub ended: usize,
    /// Open spans that were written there.
    pub open: usize,
    /// Spans that waited in outboxes and have arrived.
    pub sent: u64,
    /// Spans that wait there still, whatever for. Without the features `otlp-grpc` and `otlp-http` they are not looked for.
    pub waiting: u64,
    /// What could not be done, and why.
    pub problems: Vec<String>,
}

/// Brings home what dead processes of this user left. What only their recordings hold goes to `<name>.recovered.jsonl` in
/// their run's directory: of all recordings below the configuration's output directory, and of all in shared memory,
/// wherever their run lies. If the configuration sends spans over the network, what waits in
/// [outboxes](TraceConfig::outbox_max_bytes) below its output directory is sent there, wherever it was to go. Outboxes in an
/// encoding that its protocol cannot send stay: [`Recovery::problems`] says which protocol can.
///
/// [`init`](crate::init) does the same in the background, but of outboxes it takes those of its own run and those of the same
/// endpoint. This is for those who start no other process: a job's last step, a timer. Recordings and outboxes of living
/// processes are left alone. The call blocks for as long as that takes, and sends for no longer than `within`; what it cannot
/// send stays.
///
/// ```no_run
/// # fn main() -> Result<(), stagetrace::InitError> {
/// let config = stagetrace::TraceConfig::from_env()?;
/// let recovery = stagetrace::recover(config, std::time::Duration::from_secs(30))?;
/// println!("{} spans arrived, {} wait", recovery.sent, recovery.waiting);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// For a setting that makes no sense. Whatever else goes wrong is in [`Recovery::problems`].
pub fn recover(config: TraceConfig, within: Duration) -> Result<Recovery, InitError> {
    #[cfg_attr(not(feature = "_network"), expect(unused_mut, reason = "nothing is sent"))]
    let mut settings = config.settings()?;
    #[cfg(feature = "_network")]
    let sends = settings.target.is_some();
    #[cfg(not(feature = "_network"))]
    let sends = false;
    let Adopted { recordings, ended, open, problems } =
        adopt::adopt_below(&settings.output_dir, sends);
    #[cfg_attr(not(feature = "_network"), expect(unused_mut, reason = "nothing is sent"))]
    let mut recovery = Recovery { recordings, ended, open, problems, ..Recovery::default() };
    #[cfg(feature = "_network")]
    {
        let sent = crate::export::send_what_waits(&mut settings, crate::init::deadline(within))?;
        (recovery.sent, recovery.waiting) = (sent.arrived, sent.waiting);
        recovery.problems.extend(sent.problems);
    }
    #[cfg(not(feature = "_network"))]
    let _ = within;
    for warning in &settings.warnings {
        complain::warn(&warning.variable, warning);
    }
    Ok(recovery)
}

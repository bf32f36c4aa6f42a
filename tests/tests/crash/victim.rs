//! Starting a victim, and what it acknowledged.

use crate::dead::Dead;
use stagetrace_tests::ledger::Ledger;
use stagetrace_tests::{command, until};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// A running victim.
pub(crate) struct Victim {
    pub(crate) child: Child,
    pub(crate) ledger: Ledger,
    dir: TempDir,
    said: JoinHandle<Vec<u8>>,
}

/// How a victim is to work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work<'a> {
    /// How many work at once; with `-brief`, each as one short thread after the other.
    pub(crate) workers: &'a str,
    /// How it ends, and after how many rounds that were recorded whole.
    pub(crate) end: (&'a str, u32),
    pub(crate) memory: &'a str,
    /// Bytes at which the .jsonl is put aside, `0` for never.
    pub(crate) put_aside_at: &'a str,
}

impl Default for Work<'_> {
    fn default() -> Self {
        Work { workers: "2", end: ("wait", 0), memory: "1MiB", put_aside_at: "0" }
    }
}

impl Victim {
    /// Starts one that nobody traces.
    pub(crate) fn start(work: Work<'_>) -> Victim {
        Victim::start_with(work, |_| {}).expect("the program can be started")
    }

    /// Starts one, its command changed.
    pub(crate) fn start_with(
        work: Work<'_>,
        change: impl FnOnce(&mut Command),
    ) -> std::io::Result<Victim> {
        let dir = tempfile::tempdir()?;
        let ledger = Ledger::create(&dir.path().join("ledger"))?;
        let mut command = victim(work, dir.path(), &dir.path().join("ledger"));
        command.stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn()?;
        let mut pipe = child.stdout.take().expect("it is piped");
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = pipe.read_to_end(&mut said);
            said
        });
        Ok(Victim { child, ledger, dir, said })
    }

    /// Waits until so many rounds were recorded whole.
    pub(crate) fn wait_for(&self, rounds: u32) {
        let done = until(Duration::from_secs(120), || self.ledger.recorded() >= rounds);
        assert!(done, "{} of {rounds} rounds", self.ledger.recorded());
    }

    /// Where its recording is, once it is there.
    pub(crate) fn recording(&self) -> Option<PathBuf> {
        stagetrace_tests::ended::file_of_run(&self.dir.path().join("traces"), "recording")
    }

    /// Kills it.
    pub(crate) fn kill(mut self) -> Dead {
        self.child.kill().expect("it can be killed");
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Dead {
        let status = self.child.wait().expect("it can be waited for");
        self.ended(status)
    }

    /// What it left, after somebody else has waited for its end.
    pub(crate) fn ended(self, status: ExitStatus) -> Dead {
        let said = self.said.join().expect("the pipe was read");
        Dead { status, dir: self.dir, ledger: self.ledger, said }
    }
}

/// The command of a victim that traces below `dir` and keeps this ledger.
pub(crate) fn victim(work: Work<'_>, dir: &Path, ledger: &Path) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_victim"), &dir.join("traces"));
    let (end, after) = work.end;
    command.args([work.workers, end, &after.to_string()]).env("VICTIM_LEDGER", ledger);
    command.env("STAGETRACE_MEMORY_LIMIT", work.memory);
    command.env("STAGETRACE_JSONL_MAX_BYTES", work.put_aside_at);
    command
}

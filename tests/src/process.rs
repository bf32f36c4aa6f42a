//! A test's body in a process of its own: the test binary is started again, for that one test.

use crate::Spans;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio, exit};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the test whose body the process is to run.
const MARK: &str = "TEST_ALONE";
/// Longest that a process of a test may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A body that is to run in a process of its own.
#[must_use = "nothing runs before `run` or `try_run`"]
pub struct Alone<F> {
    body: F,
    env: Vec<(OsString, OsString)>,
    wrapper: Vec<OsString>,
    patience: Duration,
}

/// What a process left.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What it said on standard error.
    pub stderr: String,
    /// What it said on standard output.
    pub stdout: String,
    dir: TempDir,
}

/// Has `body`, the closure of a test, run in a process of its own, with a trace directory that is
/// removed later. The environment knows the directory: `TraceConfig::from_env` finds it.
///
/// The test itself goes on after the process has ended, with what it left. Of several calls in one
/// test, every process runs the body of the first.
pub fn alone<F: FnOnce()>(body: F) -> Alone<F> {
    Alone { body, env: Vec::new(), wrapper: Vec::new(), patience: PATIENCE }
}

impl<F: FnOnce()> Alone<F> {
    /// Sets a variable of the process's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Has a shell run `setup`, which has the trace directory as `$1`, in the process before the
    /// test.
    pub fn after_shell(mut self, setup: &str) -> Self {
        let script = format!("{setup}\nshift; exec \"$@\"");
        self.wrapper = ["sh", "-eu", "-c", &script, "sh"].map(OsString::from).into();
        self
    }

    /// Lets it take so long, and not three minutes at most.
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the process fails or takes too long.
    pub fn run(self) -> Ran {
        let ran = self.try_run();
        assert!(ran.status.success(), "{}\n{}{}", ran.status, ran.stdout, ran.stderr);
        ran
    }

    /// Runs it, however it ends.
    ///
    /// # Panics
    /// If the process takes too long.
    pub fn try_run(self) -> Ran {
        let name = test_name(&self.body);
        if std::env::var_os(MARK).is_some_and(|mark| mark == name) {
            let done = catch_unwind(AssertUnwindSafe(self.body));
            exit(if done.is_ok() { 0 } else { 101 });
        }
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let program = std::env::current_exe().expect("the test knows its own file");
        let mut command = match self.wrapper.split_first() {
            None => command(&program, dir.path()),
            Some((shell, args)) => {
                let mut command = command(shell, dir.path());
                command.args(args).arg(dir.path()).arg(&program);
                command
            }
        };
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(MARK, name);
        command.envs(self.env).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the test binary can be started");
        let (status, stdout, stderr) = finish_within(child, self.patience);
        let ran = stdout.contains("running 1 test") || !status.success();
        assert!(ran, "the body must be a closure of the test itself, not of {name}");
        Ran { status, stdout, stderr, dir }
    }
}

impl Ran {
    /// The directory below which it traced.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The spans that it left in .jsonl files.
    ///
    /// # Panics
    /// If one of the files is damaged.
    pub fn spans(&self) -> Spans {
        Spans::of_dir(self.dir())
    }

    /// The lines on standard error that stagetrace wrote.
    pub fn complaints(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("stagetrace: ")).collect()
    }
}

/// A command that traces below `dir`, with nothing else of ours or OpenTelemetry's in its
/// environment.
pub fn command(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("OTEL_") || text.starts_with("STAGETRACE_") {
            command.env_remove(name);
        }
    }
    // Not in /dev/shm, so that what a killed process leaves goes with the directory.
    command.env("STAGETRACE_DIR", dir).env("STAGETRACE_MAPPING", "run-dir");
    // What other processes left in shared memory, and who finds it, is no matter of the tests.
    command.env("OTEL_LOG_LEVEL", "warn").stdin(Stdio::null());
    command
}

/// Waits for a process and reads all it says; one that takes too long is killed.
///
/// # Panics
/// If it takes too long.
pub fn finish(child: Child) -> (ExitStatus, String, String) {
    finish_within(child, PATIENCE)
}

fn finish_within(mut child: Child, patience: Duration) -> (ExitStatus, String, String) {
    let output = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    let deadline = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("not done in {patience:?}: {}", errors.join().unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status, output.join().unwrap_or_default(), errors.join().unwrap_or_default())
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The name by which the test binary knows the test whose closure this is.
fn test_name<F>(_: &F) -> &'static str {
    let name = std::any::type_name::<F>();
    let name = name.split("::{{closure}}").next().unwrap_or(name);
    name.split_once("::").map_or(name, |(_, name)| name)
}

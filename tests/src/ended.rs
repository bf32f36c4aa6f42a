//! Processes of the program `exits` that end, one way or another, and what they leave.

use crate::{Spans, command, finish, until};
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};
use stagetrace_wire::span::{Span, Value};
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it said on standard output.
    pub stdout: String,
    /// What it said on standard error.
    pub stderr: String,
    /// Where it traced.
    pub dir: TempDir,
}

/// A process that waits, with a request that is open.
#[derive(Debug)]
pub struct Waiting {
    child: Child,
    stdout: String,
    dir: TempDir,
}

/// Runs `program` to its end, which comes as `how` says.
pub fn ended(program: &str, how: &str) -> Ended {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (status, stdout, stderr) = finish(started(program, how, dir.path(), &[]));
    Ended { status, stdout, stderr, dir }
}

/// Starts `program`, and comes back once it says that a request is open.
pub fn waiting(program: &str, env: &[(&str, &str)]) -> Waiting {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let mut child = started(program, "wait", dir.path(), env);
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut stdout = String::new();
    while said.read_line(&mut stdout).is_ok_and(|read| read > 0) && !stdout.ends_with("open\n") {}
    Waiting { child, stdout, dir }
}

/// Starts `program` at level 3, which is to end as `how` says.
pub fn started(program: &str, how: &str, dir: &Path, env: &[(&str, &str)]) -> Child {
    let mut command = command(program, dir);
    command.arg(how).env("STAGETRACE_LEVEL", "3").envs(env.iter().copied());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

impl Waiting {
    /// Where it traces.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Sends it a signal, of which it ends.
    pub fn end(self, signal: &str) -> Ended {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()), "kill works");
        let (status, _, stderr) = finish(self.child);
        Ended { status, stdout: self.stdout, stderr, dir: self.dir }
    }
}

impl Ended {
    /// The directory of its run.
    pub fn run_dir(&self) -> PathBuf {
        run_dir(self.dir.path())
    }

    /// Its recording.
    pub fn recording(&self) -> PathBuf {
        file(&self.run_dir(), "recording").expect("a recording is left")
    }

    /// Brings back what the files do not have yet, and reads all.
    pub fn recovered(&self) -> (Recovered, Spans) {
        let mut recovered = Err(RecoverError::InUse);
        // A process that another test is just starting may hold the lock until it is itself.
        until(Duration::from_secs(5), || {
            recovered = recover(self.recording(), self.run_dir(), Remove::No);
            !matches!(recovered, Err(RecoverError::InUse))
        });
        let recovered = recovered.expect("a dead process's recording can be read");
        assert!(recovered.damage.is_none(), "{:?}", recovered.damage);
        (recovered, Spans::of_killed(self.dir.path()))
    }

    /// The requests of which it said that they are finished.
    pub fn finished(&self) -> Vec<&str> {
        let lines = self.stdout.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.filter_map(|line| line.strip_prefix("finished ")).collect()
    }
}

/// The directory of the one run below `dir`.
pub fn run_dir(dir: &Path) -> PathBuf {
    let run = fs::read_dir(dir).ok().and_then(|mut runs| runs.next());
    run.expect("one run").expect("it can be read").path()
}

/// The file with this extension in a directory.
pub fn file(dir: &Path, extension: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(dir).ok()?.filter_map(|file| Some(file.ok()?.path()));
    files.find(|file| file.extension().is_some_and(|found| found == extension))
}

/// The same in the one run below `dir`, if that is there already.
pub fn file_of_run(dir: &Path, extension: &str) -> Option<PathBuf> {
    file(&fs::read_dir(dir).ok()?.next()?.ok()?.path(), extension)
}

/// The whole tree of the request that was open.
///
/// # Panics
/// If there is none.
pub fn open_request(spans: &Spans, keys: &[&str]) -> String {
    let is_root =
        |span: &&Span| span.attribute("stagetrace.request.id") == Some(&Value::from("open"));
    let trace = spans.iter().find(is_root).expect("the open request").trace_id;
    let of_trace: Vec<_> = spans.iter().filter(|s| s.trace_id == trace).cloned().collect();
    Spans::from(of_trace).tree(keys)
}

const FINISHED_TREE: &str = "\
generate
  scheduler_dispatch
    gpu_forward
      denoise_step
      denoise_step
    decode
";

/// That the spans hold each of these requests whole.
///
/// # Panics
/// If one is missing or has other spans.
pub fn assert_finished_requests(spans: &Spans, ids: &[&str]) {
    let mut left: HashSet<_> = ids.iter().copied().collect();
    for root in spans.all("generate") {
        let id = root.attribute("stagetrace.request.id").and_then(Value::as_str).unwrap();
        if left.remove(id) {
            let of_trace = spans.iter().filter(|span| span.trace_id == root.trace_id);
            let of_trace = Spans::from(of_trace.cloned().collect::<Vec<_>>());
            assert_eq!(of_trace.tree(&[]), FINISHED_TREE, "{id}");
            assert_eq!(root.attribute("stagetrace.open"), None);
        }
    }
    assert!(left.is_empty(), "lost: {left:?}");
}

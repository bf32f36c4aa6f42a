//! The viewer beside a run: a program of its own that is found, started, told of, and ended with tracing.
//!
//! It is a child process that reads the run's files as anybody may. A thread waits for what it prints and for its end,
//! so that `init` waits for nothing. Descriptors are those of that thread alone where the system allows it: the viewer
//! inherits none of the program's. Its standard input is a pipe that closes with this process, however that ends, and
//! it ends when the pipe does.

use crate::complain;
use crate::files::{self, separate_descriptors};
use crate::signals;
use std::env::{self, consts::EXE_SUFFIX};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long it may take until it says where it is. It says so before it reads anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long its threads may take to end after it was ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes of a line of its output that are read.
const LINE: u64 = 4096;

/// The viewer of this run, as long as this process lets it live.
#[derive(Debug)]
pub(crate) struct Viewer {
    shared: Arc<Mutex<Shared>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    child: Option<Child>,
    url: Option<String>,
    is_stopped: bool,
}

/// A program, and how people start it.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    shown: String,
}

impl Viewer {
    /// Has a viewer started that serves a run's directory at a port of this machine, 0 for a free one. Only the first
    /// process of a run starts one.
    pub(crate) fn start(run_dir: PathBuf, port: u16) -> Option<Viewer> {
        let shared = Arc::<Mutex<Shared>>::default();
        let for_thread = Arc::clone(&shared);
        let work = move || {
            signals::block();
            separate_descriptors();
            accompany(&run_dir, port, &for_thread);
        };
        let thread = thread::Builder::new().name("stagetrace-view".into()).spawn(work);
        match thread {
            Ok(thread) => Some(Viewer { shared, thread: Mutex::new(Some(thread)) }),
            Err(error) => {
                complain::warn("viewer", format_args!("cannot start the viewer's thread: {error}"));
                None
            }
        }
    }

    /// Where it is, once it has said so and as long as it lives.
    pub(crate) fn url(&self) -> Option<String> {
        lock(&self.shared).url.clone()
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        lock(&self.shared).stop();
        let thread = lock(&self.thread).take();
        // So that no trace of it is left in the run's directory.
        within(FAREWELL, || thread.as_ref().is_none_or(JoinHandle::is_finished));
    }
}

impl Shared {
    fn stop(&mut self) {
        self.is_stopped = true;
        self.end();
    }

    /// Kills it, if it still runs, and leaves no zombie. It has nothing to lose.
    fn end(&mut self) {
        self.url = None;
        let Some(mut child) = self.child.take() else { return };
        // Somebody else may have waited for it; then its number may be another's.
        if matches!(child.try_wait(), Ok(None)) {
            kill(&mut child);
            // One that reads from a disk that is gone may take its time.
            within(FAREWELL, || !matches!(child.try_wait(), Ok(None)));
        }
    }
}

/// Waits until something is so, but no longer than that.
fn within(patience: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() && begun.elapsed() < patience {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Kills it with what it may have started.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        if kill_process_group(Pid::from_child(child), Signal::KILL).is_ok() {
            return;
        }
    }
    let _ = child.kill();
}

/// Starts the viewer, says where it is, and waits for its end.
fn accompany(run_dir: &Path, port: u16, shared: &Mutex<Shared>) {
    let marker = run_dir.join(".viewer");
    let Some(_first) = claim(&marker) else { return };
    let program = find();
    let name = program.as_ref().map_or("stagetrace-viewer", |program| &program.shown);
    let again = format!("{name} serve {}", shown(run_dir));
    match program {
        None => {
            let what = "the viewer, stagetrace-viewer, is neither beside this program nor on PATH";
            let remedy = "cargo install stagetrace-viewer";
            complain::warn("viewer", format_args!("{what}; get it by `{remedy}`, then: {again}"));
        }
        Some(Program { path, .. }) => match spawn(&path, run_dir, port, shared) {
            Ok(Some(output)) => attend(&output, &again, shared),
            Ok(None) => {}
            Err(error) => {
                let program = path.display();
                complain::warn(
                    "viewer",
                    format_args!("cannot start {program}: {error}; start it by: {again}"),
                );
            }
        },
    }
    let _ = fs::remove_file(marker);
}

/// Makes this process the one of its run that has the viewer. Given up with the file, or with the process.
fn claim(marker: &Path) -> Option<File> {
    match files::create(marker) {
        Ok(file) => claimed(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            claimed(File::options().write(true).open(marker).ok()?)
        }
        Err(_) => None,
    }
}

fn claimed(file: File) -> Option<File> {
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => None,
        // A second viewer, on a file system without locks, does no harm.
        _ => Some(file),
    }
}

/// What the viewer prints, and the pipe that it lives on.
struct Output {
    lines: Receiver<String>,
    _lifeline: Option<std::process::ChildStdin>,
}

/// Starts it; `None` if tracing was stopped meanwhile.
fn spawn(
    program: &Path,
    run_dir: &Path,
    port: u16,
    shared: &Mutex<Shared>,
) -> io::Result<Option<Output>> {
    // A thread with descriptors of its own has neither standard input nor output. Pipes must not take their numbers.
    #[cfg(unix)]
    let _reserved = [File::open("/dev/null")?, File::open("/dev/null")?];
    let (output, input) = io::pipe()?;
    let mut command = Command::new(program);
    command.arg("serve").arg(run_dir).args(["--port", &port.to_string(), "--with-parent"]);
    command.stdin(Stdio::piped()).stdout(input.try_clone()?).stderr(input);
    // Ctrl-C is for the program, which may want to finish its work.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut shared = lock(shared);
    if shared.is_stopped {
        return Ok(None);
    }
    let mut child = command.spawn()?;
    // It holds the ends of the pipe that are the child's.
    drop(command);
    let lifeline = child.stdin.take();
    shared.child = Some(child);
    drop(shared);
    let (sender, lines) = mpsc::channel();
    let reader = thread::Builder::new().name("stagetrace-view".into());
    reader.spawn(move || read(BufReader::new(output), &sender))?;
    Ok(Some(Output { lines, _lifeline: lifeline }))
}

/// Passes its first line on, and throws the others away until there are no more.
fn read(mut output: impl BufRead, lines: &Sender<String>) {
    signals::block();
    let mut line = Vec::new();
    if output.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let _ = lines.send(String::from_utf8_lossy(&line).trim().to_owned());
    }
    let _ = io::copy(&mut output, &mut io::sink());
}

/// Says where the viewer is, or why it is not there; then waits for its end.
fn attend(output: &Output, again: &str, shared: &Mutex<Shared>) {
    let problem = match output.lines.recv_timeout(PATIENCE) {
        Ok(url) if is_url(&url) => {
            let mut shared = lock(shared);
            if shared.is_stopped {
                return;
            }
            complain::info(format_args!("viewer at {url} (again later: {again})"));
            shared.url = Some(url);
            drop(shared);
            // Nothing more is sent: this waits for the end.
            let _ = output.lines.recv();
            "it has ended".to_owned()
        }
        Ok(line) => format!("it says: {line}"),
        Err(RecvTimeoutError::Timeout) => format!("it does not say where in {PATIENCE:?}"),
        Err(RecvTimeoutError::Disconnected) => "it ended at once".to_owned(),
    };
    let mut shared = lock(shared);
    shared.end();
    if !shared.is_stopped {
        complain::warn(
            "viewer",
            format_args!("the viewer does not serve: {problem}; start it by: {again}"),
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_url(line: &str) -> bool {
    line.starts_with("http://") && line.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Finds the viewer beside this program, else on `PATH`.
fn find() -> Option<Program> {
    let name = format!("stagetrace-viewer{EXE_SUFFIX}");
    let own = env::current_exe().ok();
    let dir = own.as_deref().and_then(Path::parent);
    // Where cargo puts tests and examples, the programs lie above.
    let is_inner = |dir: &&Path| ["deps", "examples"].iter().any(|inner| dir.ends_with(inner));
    let above = dir.filter(is_inner).and_then(Path::parent);
    let beside = dir.into_iter().chain(above).map(|dir| dir.join(&name)).find(is_program);
    if let Some(path) = beside {
        let shown = shown(&path);
        return Some(Program { path, shown });
    }
    let dirs = env::var_os("PATH")?;
    let on_path = env::split_paths(&dirs).filter(|dir| dir.is_absolute());
    let path = on_path.map(|dir| dir.join(&name)).find(is_program)?;
    Some(Program { path, shown: "stagetrace-viewer".to_owned() })
}

fn is_program(path: &PathBuf) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        path.is_file()
    }
}

/// A path as a shell takes it, from the working directory if it lies there.
fn shown(path: &Path) -> String {
    let here = env::current_dir().ok();
    let inner = here.and_then(|here| path.strip_prefix(here).ok());
    let text = match inner {
        // Without a slash a shell would look for it on `PATH`.
        Some(inner) if inner.components().count() == 1 => format!("./{}", inner.display()),
        Some(inner) => inner.display().to_string(),
        None => path.display().to_string(),
    };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_shell_takes_it() {
        assert_eq!(shown(Path::new("/runs/a-1.b")), "/runs/a-1.b");
        assert_eq!(shown(Path::new("/my runs/it's")), r"'/my runs/it'\''s'");
        let here = env::current_dir().expect("there is one");
        assert_eq!(shown(&here.join("traces/x")), "traces/x");
        assert_eq!(shown(&here.join("viewer")), "./viewer");
    }

    #[test]
    fn only_an_address_is_taken_for_one() {
        assert!(is_url("http://127.0.0.1:43211/"));
        for line in ["", "usage: x", "http://a b", "http://\u{1b}[2J", "https://127.0.0.1/"] {
            assert!(!is_url(line), "{line:?}");
        }
    }
}

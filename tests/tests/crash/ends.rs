//! Other ends than by a kill: by a signal of its own making, by a panic of a program that aborts, for
//! want of memory; each while all threads are busy.

use crate::dead::recycled;
use crate::victim::{Victim, Work};
use stagetrace_tests::command;
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::recording::recover::Remove;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many rounds are more than the least memory holds, so that chunks have gone round.
const ROUNDS: u32 = 3500;

fn busy(end: &str) -> Work<'_> {
    Work { workers: "3-brief", end: (end, ROUNDS), ..Work::default() }
}

/// Ends by this signal, as the command is changed, and leaves all that is right.
fn ends_by(signal: i32, end: &str, change: impl FnOnce(&mut Command)) {
    let quiet = |command: &mut Command| {
        // What it says of its end is no matter.
        command.stderr(std::process::Stdio::null());
        change(command);
    };
    let victim = Victim::start_with(busy(end), quiet).expect("the program can be started");
    let dead = victim.end();
    assert_eq!(dead.status.signal(), Some(signal), "{}", dead.status);
    let recording = dead.recording().expect("it is left");
    assert!(recycled(&recording).0 > 0, "chunks have gone round");
    // The spans that its threads were in may be among those for which there was no room.
    let losses = Recording::open(&recording).expect("it can be read").losses();
    let is_full = losses.iter().any(|(_, count)| *count > 0);
    let found = dead.recovered(Remove::Yes);
    assert!(found.acknowledged > ROUNDS as usize, "{found:?}");
    assert!(found.recovered.open > 0 || is_full, "{found:?}");
}

#[test]
fn a_segmentation_fault_loses_nothing() {
    ends_by(libc::SIGSEGV, "segv", |_| {});
}

#[test]
fn an_abort_of_a_busy_process_loses_nothing() {
    ends_by(libc::SIGABRT, "abort", |_| {});
}

#[test]
fn a_panic_of_a_program_that_aborts_on_panic_loses_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let program = victim_that_aborts(dir.path());
    ends_by(libc::SIGABRT, "panic", |command| {
        let mut aborts = Command::new(&program);
        aborts.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => aborts.env(name, value),
                None => aborts.env_remove(name),
            };
        }
        aborts.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        *command = aborts;
    });
}

/// The victim, compiled with `panic = "abort"`. The libraries stay as they are, as the standard library
/// always does, so that this takes a second.
fn victim_that_aborts(dir: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("the test knows its own file");
    let libraries = this.parent().expect("it lies in a directory");
    let mut candidates: Vec<_> = fs::read_dir(libraries)
        .expect("it can be read")
        .map(|file| file.expect("it can be read").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libstagetrace_tests-") && name.ends_with(".rlib")
        })
        .collect();
    // Of those that were built with other features the newest belongs to this test.
    candidates.sort_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok());
    let program = dir.join("victim");
    let mut said = String::new();
    for library in candidates.into_iter().rev() {
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.current_dir(env!("CARGO_MANIFEST_DIR")).arg("src/bin/victim.rs");
        rustc.args(["--edition", "2024", "-Cpanic=abort", "-o"]).arg(&program);
        let mut external = std::ffi::OsString::from("stagetrace_tests=");
        external.push(&library);
        rustc.arg("--extern").arg(external);
        let mut dependencies = std::ffi::OsString::from("dependency=");
        dependencies.push(libraries);
        rustc.arg("-L").arg(dependencies);
        let output = rustc.output().expect("the compiler that built this test is there");
        if output.status.success() {
            return program;
        }
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    panic!("the victim cannot be compiled: {said}");
}

#[test]
fn an_allocation_that_fails_loses_nothing() {
    ends_by(libc::SIGABRT, "memory", |command| {
        let limit = || {
            let bytes = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
            // SAFETY: the limit is ours.
            match unsafe { libc::setrlimit(libc::RLIMIT_AS, &bytes) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between `fork` and `exec` it makes one system call and nothing else.
        unsafe { command.pre_exec(limit) };
    });
}

#[test]
fn the_kernels_kill_for_want_of_memory_loses_nothing() {
    let group = match MemoryGroup::new(96 << 20) {
        Ok(group) => group,
        Err(why) => {
            return println!("no memory cgroup can be made here ({why}): SIGKILL stands in for it");
        }
    };
    let procs = group.0.join("cgroup.procs");
    ends_by(libc::SIGKILL, "memory", |command| {
        // The shell joins the group, and becomes the victim.
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(&procs);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        *command = shell;
    });
}

/// A control group with a limit on memory, removed in the end.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> Result<MemoryGroup, String> {
        let name = format!("stagetrace-test-{}", std::process::id());
        // Version 1 has a hierarchy of its own for memory.
        let places =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let mut why = String::new();
        for (hierarchy, limit) in places {
            let group = Path::new(hierarchy).join(&name);
            if let Err(error) = fs::create_dir(&group) {
                why = format!("{}: {error}", group.display());
                continue;
            }
            let group = MemoryGroup(group);
            let limited = fs::write(group.0.join(limit), bytes.to_string());
            // Memory that is swapped out would not count.
            let _ = fs::write(group.0.join("memory.swap.max"), "0");
            let _ = fs::write(group.0.join("memory.memsw.limit_in_bytes"), bytes.to_string());
            match limited {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{limit}: {error}"),
            }
        }
        Err(why)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_listing_of_a_killed_process_says_what_was_open_for_whom_and_for_how_long() {
    let mut command = command(env!("CARGO_BIN_EXE_exits"), Path::new("unused"));
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    command.arg("abort").env("STAGETRACE_DIR", dir.path());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    assert_eq!(command.status().expect("it can be started").signal(), Some(libc::SIGABRT));
    let recording = stagetrace_tests::ended::file_of_run(dir.path(), "recording").expect("left");
    let listing = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recording"));
        let output = command.arg(&recording).args(arguments).output().expect("it can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it writes text")
    };
    let text = listing(&[]);
    assert!(text.lines().next().is_some_and(|line| line.ends_with(": its process died")), "{text}");
    let open: Vec<_> = text
        .lines()
        .skip_while(|line| *line != "3 open")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_once(", for ").expect("each has an age"))
        .collect();
    let stages: Vec<_> = open.iter().map(|(stage, _)| *stage).collect();
    let expected =
        ["  generate [open]", "    scheduler_dispatch [open]", "      background [open]"];
    assert_eq!(stages, expected, "{text}");
    let json: serde_json::Value = serde_json::from_str(&listing(&["--json"])).expect("JSON");
    let spans = json["spans"].as_array().expect("a list");
    let open: Vec<_> = spans.iter().filter(|span| span["end"].is_null()).collect();
    assert_eq!(open.len(), 3);
    for span in open {
        let age = json["at"].as_u64().zip(span["begin"].as_u64()).map(|(at, begin)| at - begin);
        assert_eq!((span["age"].as_u64(), span["request_id"].as_str()), (age, Some("open")));
    }
}

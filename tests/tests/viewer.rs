//! The viewer beside a run: started by the first process, told of, and never left behind.

use stagetrace_tests::{alone, command, finish, start_with, until};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with programs, and one for traces.
struct Site {
    dir: TempDir,
}

impl Site {
    /// There is no viewer on `PATH`.
    fn without_viewer() -> Site {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::create_dir(dir.path().join("traces")).unwrap();
        // Not beside the viewer that cargo may have built.
        fs::copy(env!("CARGO_BIN_EXE_serve"), dir.path().join("serve")).unwrap();
        Site { dir }
    }

    fn with_viewer() -> Site {
        let site = Site::without_viewer();
        symlink(env!("CARGO_BIN_EXE_viewer"), site.viewer()).unwrap();
        site
    }

    /// A shell script in its place.
    fn with_script(script: &str) -> Site {
        let site = Site::without_viewer();
        fs::write(site.viewer(), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(site.viewer(), Permissions::from_mode(0o755)).unwrap();
        site
    }

    fn viewer(&self) -> PathBuf {
        self.dir.path().join("bin/stagetrace-viewer")
    }

    fn traces(&self) -> PathBuf {
        self.dir.path().join("traces")
    }

    /// A program that is traced for so many milliseconds.
    fn program(&self, milliseconds: u32) -> Command {
        let mut command = command(self.dir.path().join("serve"), &self.traces());
        let path = format!("{}:/usr/bin:/bin", self.dir.path().join("bin").display());
        command.args(["1", &milliseconds.to_string()]).current_dir(self.dir.path());
        command.env("PATH", path).env("STAGETRACE_VIEWER", "1").env("OTEL_LOG_LEVEL", "info");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// What it says in that time.
    fn said(&self, milliseconds: u32) -> String {
        let (status, _, said) = finish(self.program(milliseconds).spawn().unwrap());
        assert!(status.success(), "{status}\n{said}");
        said
    }
}

/// Where a program says that its viewer is.
fn url_of(program: &mut Child) -> String {
    let mut line = String::new();
    let mut lines = BufReader::new(program.stderr.take().unwrap());
    lines.read_line(&mut line).unwrap();
    // What it says later must find somebody who reads.
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    let url = line.strip_prefix("stagetrace: viewer at ").and_then(|rest| rest.split(' ').next());
    url.unwrap_or_else(|| panic!("{line}")).to_owned()
}

fn get(url: &str, path: &str) -> Option<String> {
    let address = url.strip_prefix("http://")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn is_gone(url: &str) -> bool {
    until(PATIENCE, || get(url, "/").is_none())
}

/// The processes whose command line has this path.
fn processes_with(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(path)).collect()
}

#[test]
fn the_viewer_shows_the_run_while_it_goes_on_and_ends_with_it() {
    let site = Site::with_viewer();
    let mut program = site.program(3_000).spawn().unwrap();
    let url = url_of(&mut program);
    let shows_the_run =
        || get(&url, "/api/state").is_some_and(|answer| answer.contains("\"live\":true"));
    assert!(until(PATIENCE, shows_the_run), "{:?}", get(&url, "/api/state"));
    assert!(get(&url, "/").is_some_and(|page| page.contains("<title>stagetrace</title>")));
    assert!(finish(program).0.success());
    assert!(get(&url, "/").is_none(), "it is gone when the program is");
    let run = fs::read_dir(site.traces()).unwrap().next().unwrap().unwrap().path();
    assert!(!run.join(".viewer").exists(), "nothing of it is left");
}

#[test]
fn the_status_has_its_address_as_long_as_it_lives() {
    let site = Site::with_viewer();
    let path = site.dir.path().join("bin");
    let ran = alone(|| {
        let trace = start_with(|config| config.viewer_enabled(true));
        let found = until(PATIENCE, || stagetrace::status().viewer.is_some());
        assert!(found, "{:?}", stagetrace::status());
        let url = stagetrace::status().viewer.expect("it was there");
        assert!(get(&url, "/api/state").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
        trace.shutdown(PATIENCE).expect("nothing is in the way");
        assert_eq!(stagetrace::status().viewer, None);
        assert!(get(&url, "/").is_none());
    });
    ran.env("PATH", path).run();
}

#[test]
fn a_program_that_is_killed_takes_its_viewer_along() {
    let site = Site::with_viewer();
    let mut program = site.program(60_000).spawn().unwrap();
    let url = url_of(&mut program);
    assert!(get(&url, "/").is_some());
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(is_gone(&url));
}

#[test]
fn one_process_of_a_run_has_the_viewer() {
    let site = Site::with_viewer();
    let run = |milliseconds| {
        let mut program = site.program(milliseconds);
        program.env("STAGETRACE_RUN_ID", "run");
        program
    };
    let mut first = run(60_000).spawn().unwrap();
    let url = url_of(&mut first);
    let (status, _, said) = finish(run(300).spawn().unwrap());
    assert!(status.success() && !said.contains("viewer"), "{said}");
    assert!(get(&url, "/").is_some(), "the second process leaves the first one's viewer alone");
    // When the first is gone, the next has one of its own.
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(is_gone(&url));
    let mut third = run(60_000).spawn().unwrap();
    assert!(get(&url_of(&mut third), "/").is_some());
    third.kill().unwrap();
    third.wait().unwrap();
}

#[test]
fn without_a_viewer_a_line_says_how_to_get_it() {
    let site = Site::without_viewer();
    let said = site.said(300);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("cargo install stagetrace-viewer"), "{said}");
    assert!(said.contains("stagetrace-viewer serve traces/20"), "{said}");
}

#[test]
fn a_viewer_that_says_something_else_is_ended_and_quoted_in_one_line() {
    let site = Site::with_script("printf 'cannot \\033[2J listen\\nmore\\n' >&2; sleep 1000");
    let said = site.said(500);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains(r"the viewer does not serve: it says: cannot \u{1b}[2J listen;"),
        "{said}"
    );
    assert_eq!(processes_with(site.dir.path()), [""; 0]);
}

#[test]
fn a_viewer_that_writes_without_end_or_ends_at_once_costs_nothing() {
    let site = Site::with_script("exec cat /dev/zero");
    let begun = Instant::now();
    let said = site.said(500);
    assert!(said.contains("the viewer does not serve: it says: "), "{said}");
    assert!(said.len() < 64 << 10, "{}", said.len());
    assert_eq!(processes_with(site.dir.path()), [""; 0]);
    let said = Site::with_script("exit 3").said(500);
    assert!(said.contains("it ended at once"), "{said}");
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_viewer_that_hangs_keeps_nobody_waiting_and_is_not_left_behind() {
    let site = Site::with_script("sleep 1000");
    let begun = Instant::now();
    let said = site.said(300);
    assert_eq!(said, "", "nothing is known of it yet");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(processes_with(site.dir.path()), [""; 0]);
}

#[test]
fn the_viewer_inherits_nothing_of_the_program() {
    let seen = "ls -l /proc/$$/fd > $2/../../seen; echo pid $PPID $$ >> $2/../../seen; sleep 1000";
    let site = Site::with_script(&format!("echo http://127.0.0.1:9/; {seen}"));
    // A descriptor that every child would inherit.
    let mut program = Command::new("sh");
    let path = format!("{}:/usr/bin:/bin", site.dir.path().join("bin").display());
    program.args(["-c", "exec 7< /etc/passwd; exec ./serve 1 2000"]).current_dir(site.dir.path());
    program.env("PATH", path).env("STAGETRACE_VIEWER", "1").env("STAGETRACE_DIR", site.traces());
    program.env("STAGETRACE_MAPPING", "run-dir").stderr(Stdio::piped()).stdout(Stdio::null());
    let program = program.spawn().unwrap();
    let (status, _, said) = finish(program);
    assert!(
        status.success() && said.contains("viewer at http://127.0.0.1:9/ (again later: "),
        "{said}"
    );
    let seen = fs::read_to_string(site.dir.path().join("seen")).unwrap();
    assert!(seen.contains("pid "), "{seen}");
    let files: Vec<&str> =
        seen.lines().filter_map(|line| line.split_once(" -> ")).map(|pair| pair.1).collect();
    let own = |file: &&&str| {
        !file.contains("pipe:")
            && !file.ends_with("/seen")
            && !file.ends_with("/bin/stagetrace-viewer")
    };
    let foreign: Vec<_> = files.iter().filter(own).collect();
    assert!(files.len() >= 3 && foreign.is_empty(), "{seen}");
}

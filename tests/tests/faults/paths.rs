//! A newcomer's mistakes with directories and names, what others planted there, and equal process numbers.

use crate::support::*;
use stagetrace::TraceGuard;
use stagetrace_tests::rights::{NOBODY, become_user, in_namespaces, may_change_user};
use stagetrace_tests::{Ran, Spans, alone, flushed, start, until};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// The job goes on without files, and its spans are counted.
fn assert_goes_on_without_files(trace: &TraceGuard) {
    assert_eq!(trace.run_dir(), None);
    job();
    let status = stagetrace::status();
    assert!(status.running && status.run_dir.is_none() && status.recording.is_none());
    assert_eq!(status.complaints.len(), 1, "{:?}", status.complaints);
    let stats = flushed();
    assert_sums(&stats);
    assert_eq!((stats.begun, stats.open, stats.dropped_spans()), (JOB, 0, 0));
}

fn assert_said(ran: &Ran, error: &str) {
    assert_one_complaint(
        ran,
        &["warning: cannot use ", error, "tracing goes on without files", "STAGETRACE_DIR names"],
    );
}

#[test]
fn a_trace_directory_that_cannot_be_one_is_said_once_with_the_remedy() {
    let there = tempfile::tempdir().unwrap();
    let [file, pipe, nowhere] = ["file", "pipe", "nowhere"].map(|name| there.path().join(name));
    fs::write(&file, "").unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("/nowhere/at/all", &nowhere).unwrap();
    for (dir, error) in [
        (file.into_os_string(), "Not a directory"),
        (pipe.into_os_string(), "Not a directory"),
        (nowhere.into_os_string(), "File exists"),
        ("/dev/null".into(), "Not a directory"),
        ("x".repeat(300).into(), "File name too long"),
        ("/x".repeat(3000).into(), "File name too long"),
        ("/proc/self/\x1b[31m\nred".into(), "/proc/self/\\u{1b}[31m\\nred"),
    ] {
        let ran = alone(|| assert_goes_on_without_files(&start()))
            .env("STAGETRACE_DIR", dir)
            .after_shell("cd $1")
            .run();
        assert_said(&ran, error);
    }
}

#[test]
fn what_is_planted_in_the_place_of_a_runs_directory_is_left_alone() {
    for (plant, error) in [
        (r#"mkfifo "$1/r""#, "File exists"),
        (r#": >"$1/r""#, "File exists"),
        (r#"ln -s /nowhere/at/all "$1/r""#, "File exists"),
    ] {
        let ran = alone(|| assert_goes_on_without_files(&start()))
            .env("STAGETRACE_RUN_ID", "r")
            .after_shell(plant)
            .run();
        assert_said(&ran, error);
        assert_eq!(names(ran.dir()), ["r"]);
    }
}

#[test]
fn a_directory_without_rights_is_said_once_and_that_of_another_user_too() {
    if !may_change_user() {
        return;
    }
    for run in ["", "r"] {
        let ran = alone(|| {
            if !run.is_empty() || std::env::var_os("STAGETRACE_RUN_ID").is_some() {
                fs::create_dir(trace_dir().join("r")).unwrap();
            }
            fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o755)).unwrap();
            become_user(NOBODY);
            assert_goes_on_without_files(&start());
        })
        .env("STAGETRACE_RUN_ID", run)
        .run();
        assert_said(&ran, "Permission denied");
    }
}

#[test]
fn an_empty_variable_means_the_directory_traces_where_the_program_started() {
    let ran = alone(|| {
        let _trace = start();
        job();
    })
    .env("STAGETRACE_DIR", "")
    .after_shell("cd $1")
    .run();
    assert_eq!(ours(&ran.dir().join("traces")), JOB);
    assert_complaints(&ran, &[]);
}

#[test]
fn a_directory_whose_name_is_no_text_serves_as_any_other() {
    for mapping in ["auto", "shm", "run-dir", "memory"] {
        let name = OsString::from_vec(b"/tmp/stagetrace-\xff\xfe-traces".to_vec());
        let mut name = name;
        name.push(std::process::id().to_string());
        let ran = alone(|| {
            let trace = start();
            job();
            let lies_in_run =
                stagetrace::status().recording.is_none_or(|it| it.starts_with(run_dir()));
            assert!(lies_in_run, "a recording elsewhere could not say where its run is");
            assert_all_written(JOB);
            trace.shutdown(SOON).unwrap();
            assert_eq!(ours(&trace_dir()), JOB);
        })
        .env("STAGETRACE_DIR", &name)
        .env("STAGETRACE_MAPPING", mapping)
        .run();
        fs::remove_dir_all(&name).unwrap();
        assert_complaints(&ran, &[]);
    }
}

#[test]
fn a_service_may_be_called_anything() {
    for (service, file) in [
        ("../../etc/passwd".to_owned(), ".._.._etc_passwd-".to_owned()),
        ("a b\n\x1b[31mü".to_owned(), "a_b___31m_-".to_owned()),
        ("x".repeat(5000), format!("{}-", "x".repeat(64))),
        (".".to_owned(), ".-".to_owned()),
    ] {
        let ran = alone(|| {
            let name = std::env::var("OTEL_SERVICE_NAME").unwrap();
            let config = stagetrace::TraceConfig::from_env().unwrap().service_name(name);
            let _trace = stagetrace::init(config).unwrap();
            job();
        })
        .env("OTEL_SERVICE_NAME", &service)
        .run();
        let run = fs::read_dir(ran.dir()).unwrap().next().unwrap().unwrap().path();
        let names = names(&run);
        assert!(names.iter().all(|name| name.starts_with(&file)), "{names:?}");
        assert!(ran.spans().iter().all(|span| span.resource.service_name() == Some(&service)));
    }
}

#[test]
fn no_home_and_no_path_and_nothing_else_in_the_environment_is_enough() {
    let keep = "STAGETRACE_DIR STAGETRACE_MAPPING TEST_ALONE";
    let setup = format!(
        r#"shift; for name in {keep}; do set -- "$name=$(printenv $name)" "$@"; done; exec env -i "$@""#
    );
    let ran = alone(|| {
        assert!(std::env::var_os("HOME").is_none());
        let _trace = start();
        job();
    })
    .after_shell(&setup)
    .run();
    assert_eq!(ran.spans().len() as u64, JOB);
}

#[test]
fn a_program_without_umask_or_with_the_strictest_has_files_for_itself_alone() {
    if !may_change_user() {
        return;
    }
    for umask in ["0", "0777"] {
        let ran = alone(|| {
            let umask = u32::from_str_radix(&std::env::var("UMASK").unwrap(), 8).unwrap();
            fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
            become_user(NOBODY);
            // SAFETY: a plain call.
            unsafe { libc::umask(umask) };
            let trace = start();
            job();
            assert_all_written(JOB);
            let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
            let run = mode(&run_dir());
            assert!(run & 0o700 == 0o700 && run & 0o002 == 0, "{run:o}");
            assert_eq!(mode(&own_file("jsonl")), 0o600);
            assert_eq!(mode(&stagetrace::status().recording.unwrap()), 0o600);
            trace.shutdown(SOON).unwrap();
            assert_eq!(mode(&own_file("recording")), 0o600);
            assert_eq!(ours(&trace_dir()), JOB);
        })
        .env("UMASK", umask)
        .run();
        assert_complaints(&ran, &[]);
    }
}

/// Waits until so many processes have come this far.
fn meet(place: &str, count: usize) {
    let place = trace_dir().parent().unwrap().join(place);
    fs::create_dir_all(&place).unwrap();
    let mut bytes = [0; 8];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
    fs::write(place.join(format!("{:x}", u64::from_ne_bytes(bytes))), "").unwrap();
    assert!(until(SOON, || names(&place).len() >= count), "the others did not come");
}

#[test]
fn processes_of_one_number_share_a_run_and_shared_memory() {
    // Three containers, each with the same numbers for its processes: 1 for the first, 2 for its child.
    let again = r#"unshare -pf --kill-child "$@""#;
    let child = r#"unshare -pf --kill-child sh -c '"$@"; exit $?' sh "$@""#;
    let setup = format!(
        r#"mount -t tmpfs tmpfs /dev/shm; mkdir "$1/runs"; export STAGETRACE_DIR="$1/runs"; shift
        {again} & a=$!; {again} & b=$!; {child} & c=$!; {child} & d=$!
        for one in $a $b $c $d; do wait $one; done; exit"#
    );
    let Some(setup) = in_namespaces("-m", "mount", &setup) else { return };
    if in_namespaces("-pf", "make process numbers", "").is_none() {
        return;
    }
    let ran = alone(|| {
        let trace = start();
        let recording = stagetrace::status().recording.unwrap();
        // The first process of a container takes its shared memory along when it ends.
        assert_eq!(recording.starts_with("/dev/shm"), std::process::id() != 1);
        meet("started", 4);
        // Nobody thinks that another is dead because its number is somebody else's, or nobody's.
        job();
        assert!(recording.exists());
        meet("recorded", 4);
        trace.shutdown(SOON).unwrap();
    })
    .env("STAGETRACE_RUN_ID", "r")
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    let run = ran.dir().join("runs/r");
    let lines: Vec<_> = names(&run).into_iter().filter(|name| name.ends_with(".jsonl")).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines.iter().filter(|name| name.starts_with("test-1-")).count(), 2, "{lines:?}");
    assert_eq!(lines.iter().filter(|name| name.starts_with("test-2-")).count(), 2, "{lines:?}");
    assert_eq!(Spans::of_dir(&run).len() as u64, 4 * JOB);
    assert_complaints(&ran, &[]);
}

//! What the environment does not allow: it is said once, counted, and the job goes on.

use stagetrace::{InitError, Mapping, Sampler, TraceConfig, TraceGuard};
use stagetrace_tests::pipeline::serve;
use stagetrace_tests::rights::with_mounts;
use stagetrace_tests::{Ran, Spans, alone, flushed, resident_bytes, start, start_with, until};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The trace directory of this process.
fn trace_dir() -> PathBuf {
    std::env::var_os("STAGETRACE_DIR").expect("the test's process has one").into()
}

/// A job that is traced.
fn job() {
    for request in 0..50 {
        serve(&request.to_string(), 1);
    }
}

fn assert_one_complaint(ran: &Ran, about: &str) {
    let complaints = ran.complaints();
    assert_eq!(complaints.len(), 1, "{}", ran.stderr);
    assert!(complaints[0].starts_with("stagetrace: warning: "), "{complaints:?}");
    assert!(complaints[0].contains(about), "{complaints:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

/// The complaints but for those that say that memory became full meanwhile, of which each may come once.
fn other_complaints(ran: &Ran) -> Vec<&str> {
    let complaints = ran.complaints();
    let (losses, others): (Vec<_>, Vec<_>) =
        complaints.into_iter().partition(|line| line.contains(" are dropped: "));
    assert!(losses.len() <= 2, "{}", ran.stderr);
    others
}

/// The job goes on without files, and its spans are counted.
fn assert_goes_on_without_files(trace: &TraceGuard) {
    assert_eq!(trace.run_dir(), None);
    job();
    let status = stagetrace::status();
    assert!(status.running && status.run_dir.is_none() && status.recording.is_none());
    let stats = flushed();
    assert_eq!((stats.begun, stats.open, stats.dropped_spans()), (50 * 4, 0, 0));
    assert_eq!(stats.sinks, []);
}

#[test]
fn a_trace_directory_below_a_file_warns_once_and_the_job_goes_on() {
    let dir = tempfile::NamedTempFile::new().unwrap();
    let ran =
        alone(|| assert_goes_on_without_files(&start())).env("STAGETRACE_DIR", dir.path()).run();
    assert_one_complaint(&ran, "tracing goes on without files");
}

#[test]
fn a_trace_directory_that_cannot_be_made_warns_once_and_the_job_goes_on() {
    let ran = alone(|| assert_goes_on_without_files(&start()))
        .env("STAGETRACE_DIR", "/proc/no/traces")
        .run();
    assert_one_complaint(&ran, "/proc/no/traces");
}

#[test]
fn a_read_only_trace_directory_warns_once_and_the_job_goes_on() {
    let Some(setup) = with_mounts(r#"mount -t tmpfs -o ro tmpfs "$1""#) else { return };
    let ran = alone(|| assert_goes_on_without_files(&start())).after_shell(&setup).run();
    assert_one_complaint(&ran, "tracing goes on without files");
}

/// Records much, and says whether some of what could not be written was given up.
fn gave_up() -> bool {
    // More than one, since each look waits for the collector.
    (0..10).for_each(|_| job());
    stagetrace::stats().is_some_and(|stats| stats.sinks[0].failed > 0)
}

/// Records a little, and says whether it waits because it cannot be written. What was recorded before was given up.
fn cannot_write() -> bool {
    job();
    let stats = stagetrace::status().stats;
    stats.is_some_and(|stats| stats.sinks[0].failing.is_some() && stats.sinks[0].queued > 0)
}

/// Records more than the disk takes, then, when there is room again, something that arrives.
fn assert_survives_a_full_disk(make_room: impl FnOnce()) {
    // Little memory, so that the recording cannot keep for long what cannot be written.
    let trace = start_with(|config| config.mapping(Mapping::Memory).memory_limit(2 << 20));
    let full = until(Duration::from_secs(50), gave_up);
    assert!(full, "the disk never was full: {:?}", stagetrace::stats());
    assert!(until(Duration::from_secs(20), cannot_write), "there is room without end");
    let error = stagetrace::flush(Duration::from_secs(10)).expect_err("a flush says so");
    assert!(error.to_string().contains("cannot write"), "{error}");
    make_room();
    serve("late", 1);
    let stats = trace.shutdown(Duration::from_secs(10)).expect("there is room again");
    let sink = &stats.sinks[0];
    assert_eq!(sink.handed, sink.exported + sink.failed);
    assert_eq!(sink.failing, None);
    // Half-written lines are gone, whole ones are there, and the late request is among them.
    let spans = Spans::of_dir(&trace_dir());
    let lost = spans.iter().filter(|span| span.name == "stagetrace.loss").count();
    assert_eq!(spans.len() as u64, sink.exported, "{lost} of them say what is lost");
    let late = |span: &&stagetrace_wire::span::Span| {
        span.attribute("stagetrace.request.id") == Some(&"late".into())
    };
    assert_eq!(spans.iter().filter(late).count(), 1);
}

#[test]
fn a_full_disk_warns_once_and_counts_and_later_spans_arrive_when_there_is_room_again() {
    let setup = r#"
        mount -t tmpfs -o size=32m tmpfs "$1"
        dd if=/dev/zero of="$1/filler" bs=1024 count=32544 2>/dev/null"#;
    let Some(setup) = with_mounts(setup) else { return };
    let ran = alone(|| {
        // Afterwards there is room for all that the recording kept meanwhile, which takes several times as much in lines.
        let filler = trace_dir().join("filler");
        assert_survives_a_full_disk(|| fs::remove_file(filler).unwrap());
    })
    .after_shell(&setup)
    .run();
    let complaints = other_complaints(&ran);
    assert_eq!(complaints.len(), 1, "{}", ran.stderr);
    assert!(complaints[0].contains("No space left on device"), "{complaints:?}");
}

#[test]
fn a_file_that_may_not_grow_warns_once_and_counts() {
    let ran = alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory).memory_limit(2 << 20));
        job();
        flushed();
        let full = until(Duration::from_secs(50), gave_up);
        assert!(full, "the file never was full");
        assert!(until(Duration::from_secs(20), cannot_write), "there is room without end");
        let error = trace.shutdown(Duration::from_secs(10)).expect_err("it says so");
        assert!(error.to_string().contains("File too large"), "{error}");
    })
    .after_shell("trap '' XFSZ; ulimit -f 300")
    .run();
    let spans = ran.spans();
    assert!(!spans.is_empty());
    assert_eq!(other_complaints(&ran).len(), 1, "{}", ran.stderr);
}

#[test]
fn a_disk_without_room_for_a_recording_is_no_reason_not_to_record() {
    let setup = r#"
        mount -t tmpfs -o size=1m tmpfs "$1"
        dd if=/dev/zero of="$1/filler" bs=4096 count=254 2>/dev/null || true"#;
    let Some(setup) = with_mounts(setup) else { return };
    let ran = alone(|| {
        let trace = start();
        job();
        fs::remove_file(trace_dir().join("filler")).unwrap();
        let stats = trace.shutdown(Duration::from_secs(10)).expect("there is room again");
        assert_eq!((stats.begun, stats.dropped_spans()), (50 * 4, 0));
        assert_eq!(Spans::of_dir(&trace_dir()).len(), 50 * 4);
    })
    .after_shell(&setup)
    .run();
    assert!(ran.complaints().len() <= 2, "{}", ran.stderr);
    assert!(
        ran.stderr.lines().all(|line| line.starts_with("stagetrace: warning: ")),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_room_in_shared_memory_the_recording_lies_in_the_run() {
    for (mount, mapping, complaints) in [
        ("mount -t tmpfs -o size=64k tmpfs /dev/shm", "auto", 0),
        ("mount -t tmpfs -o ro tmpfs /dev/shm", "auto", 0),
        ("mount -t tmpfs -o ro tmpfs /dev/shm", "shm", 1),
    ] {
        let Some(setup) = with_mounts(mount) else { return };
        let ran = alone(|| {
            let trace = start();
            let recording = stagetrace::status().recording.expect("it is mapped");
            assert_eq!(recording.parent(), trace.run_dir());
            job();
            let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
            assert_eq!((stats.begun, stats.dropped_spans()), (50 * 4, 0));
        })
        .env("STAGETRACE_MAPPING", mapping)
        .after_shell(&setup)
        .run();
        assert_eq!(ran.complaints().len(), complaints, "{mount}, {mapping}: {}", ran.stderr);
        assert_eq!(ran.spans().len(), 50 * 4);
    }
}

#[test]
fn a_small_shared_memory_is_not_filled_up() {
    let Some(setup) = with_mounts("mount -t tmpfs -o size=16m tmpfs /dev/shm") else { return };
    alone(|| {
        let trace = start();
        for _ in 0..200_000 {
            drop(stagetrace::span!("burst"));
        }
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert!(stats.memory <= 4 << 20, "a quarter of 16 MiB, not {} bytes", stats.memory);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
}

#[test]
fn a_second_init_fails_and_changes_nothing() {
    let spans = alone(|| {
        let trace = start();
        let second = stagetrace::init(TraceConfig::new().service_name("second"));
        assert_eq!(second.unwrap_err(), InitError::AlreadyInitialised);
        job();
        drop(trace);
        let third = stagetrace::init(TraceConfig::new());
        assert_eq!(third.unwrap_err(), InitError::AlreadyInitialised);
        job();
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 50 * 4);
    assert!(spans.iter().all(|span| span.resource.service_name() == Some("test")));
}

#[test]
fn a_setting_that_makes_no_sense_fails_and_starts_nothing() {
    let ran = alone(|| {
        let config = || TraceConfig::from_env().unwrap();
        let refused = [
            stagetrace::init(config().level(4)),
            stagetrace::init(config().memory_limit(5)),
            stagetrace::init(config().run_id("a/b")),
            stagetrace::init(config().output_dir("")),
            stagetrace::init(config().sampler(Sampler::Ratio(2.0))),
            stagetrace::init(config().resource_attribute("", 1_i64)),
        ];
        for refused in refused {
            let message = refused.expect_err("it makes no sense").to_string();
            assert!(!message.contains('\n') && !message.ends_with('.'), "{message}");
        }
        assert!(!stagetrace::status().running);
        job();
        let _trace = start();
        job();
    })
    .run();
    assert_eq!(ran.spans().len(), 50 * 4);
    assert_eq!(ran.stderr, "");
}

#[test]
fn each_variable_that_cannot_be_used_is_one_line_and_the_rest_holds() {
    let ran = alone(|| {
        let _trace = start();
        job();
        assert_eq!(stagetrace::status().warnings.len(), 6);
    })
    .env("STAGETRACE_LEVEL", "lots")
    .env("STAGETRACE_LEVLE", "3")
    .env("OTEL_TRACES_SAMPLER", "sometimes\n\x1b[31m")
    .env("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "authorization=secret")
    // Two members of one variable are two lines.
    .env("OTEL_RESOURCE_ATTRIBUTES", "one,a=1,two")
    .run();
    assert_eq!(ran.complaints().len(), 6, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 6, "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret") && !ran.stderr.contains('\x1b'), "{}", ran.stderr);
    assert_eq!(ran.spans().len(), 50 * 4);
}

#[test]
fn it_is_silent_if_told_so() {
    let ran = alone(|| assert_goes_on_without_files(&start()))
        .env("STAGETRACE_DIR", "/proc/no/traces")
        .env("STAGETRACE_LEVEL", "lots")
        .env("OTEL_LOG_LEVEL", "off")
        .run();
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_relative_directory_is_that_of_the_start() {
    let ran = alone(|| {
        std::env::set_current_dir(trace_dir()).unwrap();
        let _trace = start_with(|config| config.output_dir("below"));
        std::env::set_current_dir("/").unwrap();
        job();
    })
    .run();
    assert_eq!(Spans::of_dir(&ran.dir().join("below")).len(), 50 * 4);
}

#[test]
fn a_run_directory_that_is_removed_under_way_does_not_hurt_the_job() {
    alone(|| {
        let trace = start();
        job();
        flushed();
        fs::remove_dir_all(trace.run_dir().unwrap()).unwrap();
        let before = resident_bytes();
        for _ in 0..100 {
            job();
            std::thread::sleep(Duration::from_millis(5));
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 16 << 20, "{grown} bytes");
        assert_eq!(flushed().dropped_spans(), 0);
        // Whether it is an error that nobody can read the file is not said here.
        let _ = trace.shutdown(Duration::from_secs(10));
    })
    .run();
}

#[test]
fn a_child_process_inherits_none_of_the_files() {
    alone(|| {
        let _trace = start();
        job();
        let files = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
        let files = String::from_utf8(files.stdout).unwrap();
        assert!(files.contains("/proc") && !files.contains("test-"), "{files}");
    })
    .run();
}

#[test]
fn the_file_is_put_aside_when_it_is_large() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.jsonl_max_bytes(64 * 1024));
        for _ in 0..20 {
            job();
            flushed();
        }
    })
    .run();
    assert_eq!(ran.spans().len(), 20 * 50 * 4);
    let run = fs::read_dir(ran.dir()).unwrap().next().unwrap().unwrap().path();
    let mut names: Vec<_> = fs::read_dir(run)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    names.sort();
    assert!(names.len() > 3, "{names:?}");
    let stem = names.last().unwrap().strip_suffix(".jsonl").unwrap().to_owned();
    assert_eq!(names[0], format!("{stem}.1.jsonl"), "{names:?}");
}

//! What the program does to itself after the start: descriptors closed, another root or user, limits, signals.

use crate::support::*;
use stagetrace_tests::rights::{NOBODY, become_user, may_change_user, with_mounts};
use stagetrace_tests::{alone, flushed, start, start_with};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicU32, Ordering};

/// Closes every descriptor but the standard ones, as a daemon does, and opens a file of the program's own for each
/// number.
fn close_and_reuse_all() -> Vec<File> {
    // SAFETY: closes what others use, which is what this test is about.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
    let strangers: Vec<_> = (0..20)
        .map(|number| {
            let path = trace_dir().join(format!("stranger-{number}"));
            fs::write(&path, "precious").unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        })
        .collect();
    assert_eq!(strangers[0].as_raw_fd(), 3);
    strangers
}

/// Nothing was written to them, nor were they closed.
fn assert_untouched(strangers: &[File]) {
    for (number, stranger) in strangers.iter().enumerate() {
        let file = stranger.metadata().expect("it is open");
        let path = trace_dir().join(format!("stranger-{number}"));
        assert_eq!((file.len(), file.ino()), (8, fs::metadata(&path).unwrap().ino()));
        assert_eq!(fs::read(path).unwrap(), b"precious");
    }
}

#[test]
fn a_daemon_that_closes_our_descriptors_keeps_its_trace_and_its_files() {
    for mapping in ["auto", "run-dir", "memory"] {
        let ran = alone(|| {
            let trace = start();
            job();
            assert_all_written(JOB);
            let strangers = close_and_reuse_all();
            job();
            assert_all_written(2 * JOB);
            assert_untouched(&strangers);
            // The recording can still grow, and is known to be ours.
            assert_grows_beyond(flushed().memory);
            assert_sums(&flushed());
            assert_untouched(&strangers);
            let stats = trace.shutdown(SOON).unwrap();
            assert_untouched(&strangers);
            assert_eq!(ours(&trace_dir()), stats.handed);
        })
        .env("STAGETRACE_MAPPING", mapping)
        .run();
        assert_one_complaint(&ran, &["closed the descriptor of", ".jsonl", "opened again"]);
    }
}

#[test]
fn a_daemon_that_closes_all_while_dead_processes_are_brought_back_disturbs_nobody() {
    let setup = format!(
        r#"mount -t tmpfs tmpfs /dev/shm; ulimit -c 0
        for dead in 1 2 3 4 5 6 7 8 9 10; do "{}" abort >/dev/null 2>&1 || true; done"#,
        env!("CARGO_BIN_EXE_exits")
    );
    let Some(setup) = with_mounts(&setup) else { return };
    let ran = alone(|| {
        let trace = start();
        let strangers = close_and_reuse_all();
        job();
        trace.shutdown(SOON).unwrap();
        assert_untouched(&strangers);
        assert_eq!(names("/dev/shm/stagetrace-0".as_ref()), Vec::<String>::new());
    })
    .env("STAGETRACE_MAPPING", "shm")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["closed the descriptor of", ".jsonl", "opened again"]);
    let spans = stagetrace_tests::Spans::of_killed(ran.dir());
    assert!(spans.len() as u64 >= 10 * JOB + JOB, "{}", spans.len());
}

#[test]
fn a_fork_after_our_descriptors_were_closed_closes_none_of_the_programs() {
    alone(|| {
        let _trace = start();
        let strangers = close_and_reuse_all();
        // SAFETY: the child looks at its descriptors and exits.
        match unsafe { libc::fork() } {
            0 => {
                let open = strangers.iter().all(|file| file.metadata().is_ok());
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!open)) };
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for the child made above.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0, "the child has lost a file");
            }
        }
        assert_untouched(&strangers);
    })
    .run();
}

#[test]
fn another_root_and_another_working_directory_after_the_start_change_nothing_in_what_arrives() {
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        let trace = start_with(|config| config.jsonl_max_bytes(50_000));
        let below = trace_dir().join("root");
        fs::create_dir(&below).unwrap();
        std::os::unix::fs::chroot(&below).unwrap();
        std::env::set_current_dir("/").unwrap();
        for round in 1..4 {
            job();
            assert_all_written(round * JOB);
        }
        trace.shutdown(SOON).unwrap();
        assert_eq!(names("/".as_ref()), Vec::<String>::new(), "we litter the new root");
    })
    .run();
    assert_eq!(ours(ran.dir()), 3 * JOB);
    let complaints = ran.complaints();
    assert!(complaints[0].contains("cannot put") && complaints.len() <= 2, "{complaints:?}");
}

#[test]
fn a_server_that_gives_up_its_rights_after_the_start_goes_on_recording() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm") else { return };
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        let trace = start();
        become_user(NOBODY);
        job();
        assert_all_written(JOB);
        assert_grows_beyond(flushed().memory);
        let stats = trace.shutdown(SOON).unwrap();
        assert_sums(&stats);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert!(ours(ran.dir()) > JOB);
    // Where it may not write any more it cannot tidy up: the next start does.
    assert_one_complaint(&ran, &["cannot close the recording", "Permission denied"]);
}

/// As many descriptors as the process may still open, but so many.
fn use_up_descriptors(but: usize) -> Vec<File> {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: a plain call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let mut files: Vec<_> = std::iter::from_fn(|| File::open("/").ok()).collect();
    files.truncate(files.len() - but);
    files
}

#[test]
fn without_descriptors_at_the_start_it_is_said_and_the_job_goes_on() {
    for left in 0..6 {
        let ran = alone(|| {
            let left = std::env::var("LEFT").unwrap().parse().unwrap();
            let files = use_up_descriptors(left);
            let trace = start();
            drop(files);
            job();
            let stats = trace.shutdown(SOON).unwrap();
            assert_sums(&stats);
            assert_eq!((stats.begun, stats.handed), (JOB, JOB));
        })
        .env("LEFT", left.to_string())
        .run();
        let complaints = ran.complaints();
        let is_of_it = |line: &&str| line.contains("Too many open files");
        assert!(complaints.iter().all(is_of_it), "{complaints:?}");
        let files = ran.spans().len() as u64;
        assert!(files == JOB || !complaints.is_empty() && files == 0, "{left}: {complaints:?}");
    }
}

#[test]
fn the_next_file_needs_no_descriptor_more_than_the_last_had() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.jsonl_max_bytes(10_000));
        let path = own_file("jsonl");
        let _files = use_up_descriptors(0);
        for round in 1..4 {
            job();
            assert_all_written(round * JOB);
        }
        fs::remove_file(path).unwrap();
        job();
        assert_all_written(4 * JOB);
    })
    .run();
    assert!(ran.spans().len() as u64 >= 2 * JOB);
    assert_one_complaint(&ran, &["somebody removed", ".jsonl"]);
}

#[test]
fn without_a_descriptor_to_open_the_file_again_the_spans_wait_for_one() {
    let ran = alone(|| {
        let _trace = start();
        job();
        assert_all_written(JOB);
        let strangers = close_and_reuse_all();
        let files = use_up_descriptors(0);
        job();
        assert_sink_fails(true);
        drop(files);
        job();
        assert_all_written(3 * JOB);
        assert_untouched(&strangers);
        assert_eq!(ours(&trace_dir()), 3 * JOB);
    })
    .run();
    assert_complaints(
        &ran,
        &[&["closed the descriptor of", ".jsonl"], &["cannot write", "Too many open files"]],
    );
}

#[test]
fn without_a_thread_nothing_is_traced_and_nothing_is_left() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm; chmod 1777 /dev/shm") else {
        return;
    };
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
        let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
        // SAFETY: a plain call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &limit) }, 0);
        // Nobody else is this user.
        become_user(61_234);
        let trace = start();
        job();
        let status = stagetrace::status();
        assert!(!status.running && status.recording.is_none());
        assert!(trace.shutdown(SOON).is_err());
        assert_eq!(names("/dev/shm/stagetrace-61234".as_ref()), Vec::<String>::new());
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["error: cannot start the collector", "nothing is traced"]);
    assert_eq!(ran.spans().len(), 0);
}

#[test]
fn without_address_space_for_all_of_it_a_smaller_recording_serves() {
    // Nobody else's recordings to bring back, for which there may be no room either.
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm") else { return };
    let ran = alone(|| {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        let used: u64 = statm.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096;
        let most = used + (24 << 20);
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a plain call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        let _trace = start();
        assert!(stagetrace::status().running);
        job();
        assert_all_written(JOB);
    })
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["cannot map the recording in", "Cannot allocate memory"]);
    assert_eq!(ran.spans().len() as u64, JOB);
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn the_programs_signals_do_not_come_to_our_thread_and_its_crashes_do() {
    alone(|| {
        let _trace = start();
        flushed();
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_ours = |task: &std::path::PathBuf| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "stagetrace\n")
        };
        let collector = tasks.into_iter().find(is_ours).expect("it runs");
        let status = fs::read_to_string(collector.join("status")).unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        let blocked = u64::from_str_radix(blocked, 16).unwrap();
        let is_blocked = |signal: i32| blocked >> (signal - 1) & 1 == 1;
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGALRM, libc::SIGXFSZ] {
            assert!(is_blocked(signal), "{signal}");
        }
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGPROF] {
            assert!(!is_blocked(signal), "{signal}");
        }
        // Those of the program itself come as before.
        // SAFETY: the handler only counts.
        unsafe {
            libc::signal(libc::SIGUSR1, count as *const () as libc::sighandler_t);
            libc::kill(libc::getpid(), libc::SIGUSR1);
        }
        assert!(stagetrace_tests::until(SOON, || HANDLED.load(Ordering::Relaxed) == 1));
    })
    .run();
}

#[test]
fn a_standard_error_that_nobody_reads_holds_up_nobody() {
    alone(|| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        // SAFETY: the pipe takes the place of standard error; both live to the end.
        unsafe {
            assert_eq!(libc::dup2(writer.as_raw_fd(), 2), 2);
            assert_eq!(libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK), 0);
            while writer.write(&[b'x'; 4096]).is_ok() {}
            assert_eq!(libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, 0), 0);
        }
        let trace = start();
        assert_eq!(trace.run_dir(), None);
        job();
        assert_eq!(flushed().handed, JOB);
        let complaints = stagetrace::status().complaints;
        assert!(complaints[0].starts_with("cannot use /proc/no"), "{complaints:?}");
        drop(reader);
    })
    .env("STAGETRACE_DIR", "/proc/no")
    .run();
}

//! Disks: full, full again, over a quota or a limit, and broken.

use crate::support::*;
use stagetrace::{Mapping, TraceGuard};
use stagetrace_tests::rights::{NOBODY, become_user, ext4, may_change_user, with_mounts};
use stagetrace_tests::{Ran, Spans, alone, counters, flushed, start, start_with};
use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A disk that fills up in the middle of a line and is freed, again and again, loses nothing that there is memory for.
fn assert_survives_a_disk_that_fills(_trace: &TraceGuard) {
    let filler = trace_dir().join("filler");
    let mut begun = 0;
    for left in [0, 1, 4095, 5000, 20_000] {
        fill(&filler, left);
        while counters().sinks[0].failing.is_none() {
            job();
            begun += JOB;
        }
        job();
        let failing = counters().sinks.remove(0).failing.expect("there is no room yet");
        assert!(failing.contains("No space left on device"), "{failing}");
        stagetrace::flush(Duration::from_millis(10)).expect_err("a flush says so");
        fs::remove_file(&filler).unwrap();
        job();
        begun += 2 * JOB;
        assert_all_written(begun);
        assert_eq!(ours(&trace_dir()), begun, "with {left} bytes left");
    }
}

fn assert_survived(ran: &Ran) {
    assert_one_complaint(ran, &["cannot write", ".jsonl", "No space left on device"]);
}

#[test]
fn a_full_file_system_in_memory_that_is_freed_again_and_again_loses_nothing() {
    let Some(setup) = with_mounts(r#"mount -t tmpfs -o size=8m tmpfs "$1""#) else { return };
    let ran = alone(|| assert_survives_a_disk_that_fills(&start()))
        .env("STAGETRACE_MAPPING", "memory")
        .after_shell(&setup)
        .run();
    assert_survived(&ran);
}

#[test]
fn a_full_disk_that_is_freed_again_and_again_loses_nothing() {
    let Some(disk) = ext4(8, "", "rw") else { return };
    let Some(setup) = with_mounts(&disk) else { return };
    let ran = alone(|| assert_survives_a_disk_that_fills(&start()))
        .env("STAGETRACE_MAPPING", "memory")
        .after_shell(&setup)
        .run();
    assert_survived(&ran);
}

#[test]
fn what_is_not_written_when_the_disk_stays_full_is_brought_back_by_the_next_process() {
    let setup = format!(
        r#"mount -t tmpfs -o size=1m tmpfs "$1"; mount -t tmpfs tmpfs /dev/shm
        dir=$1; shift; "$@"; rm "$dir/filler"; "{}" 1 1000; cp -r "$dir" /tmp/kept.$$
        umount "$dir"; cp -r /tmp/kept.$$/. "$dir"; rm -r /tmp/kept.$$; ls -R /dev/shm; exit"#,
        env!("CARGO_BIN_EXE_serve")
    );
    let Some(setup) = with_mounts(&setup) else { return };
    let ran = alone(|| {
        let trace = start();
        fill(&trace_dir().join("filler"), 5000);
        for _ in 0..5 {
            job();
        }
        let error = trace.shutdown(SOON).expect_err("the disk is full");
        assert!(error.to_string().contains("No space left on device"), "{error}");
        assert!(stagetrace::status().recording.is_some());
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    let spans = Spans::of_killed(ran.dir());
    assert_eq!(spans.len() as u64, 5 * JOB + 4);
    assert!(spans.iter().all(|span| span.attribute("stagetrace.open").is_none()));
    assert_survived(&ran);
    assert!(!ran.stdout.contains(".recording"), "left in shared memory: {}", ran.stdout);
}

#[test]
fn a_recording_on_a_disk_that_fills_up_stays_as_large_as_it_is_and_grows_later() {
    let Some(setup) = with_mounts(r#"mount -t tmpfs -o size=40m tmpfs "$1""#) else { return };
    let ran = alone(|| {
        let _trace = start_with(|config| config.jsonl(false));
        let filler = trace_dir().join("filler");
        // With what the collector keeps ahead of need.
        let before = flushed().memory;
        assert!(before < 10 << 20, "{before} are all that it may have");
        fill(&filler, 0);
        drop(press(10));
        let stats = flushed();
        assert_sums(&stats);
        assert_eq!(stats.memory, before, "{stats:?}");
        fs::remove_file(&filler).unwrap();
        assert_grows_beyond(before);
    })
    .after_shell(&setup)
    .run();
    assert_one_complaint_beside_losses(&ran, &["cannot grow", "left to others"]);
}

/// Gives `user` so many MiB on the disk that is mounted at `dir`.
fn set_quota(dir: &Path, user: u32, mib: u64) {
    const LIMITS: u32 = 1;
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let is_there = |line: &&str| line.split(' ').nth(1) == dir.to_str();
    let disk = mounts.lines().find(is_there).unwrap().split(' ').next().unwrap();
    // SAFETY: the structure is plain numbers.
    let mut quota: libc::dqblk = unsafe { std::mem::zeroed() };
    // In units of 1 KiB.
    let blocks = mib * 1024;
    (quota.dqb_bhardlimit, quota.dqb_bsoftlimit, quota.dqb_valid) = (blocks, blocks, LIMITS);
    let (disk, command) =
        (CString::new(disk).unwrap(), libc::QCMD(libc::Q_SETQUOTA, libc::USRQUOTA));
    // SAFETY: the text and the structure live through the call.
    let set =
        unsafe { libc::quotactl(command, disk.as_ptr(), user as i32, (&raw mut quota).cast()) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn over_a_users_quota_is_as_on_a_full_disk() {
    let Some(disk) = ext4(16, "-O quota", "usrquota") else { return };
    let Some(setup) = with_mounts(&disk) else { return };
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        set_quota(&trace_dir(), NOBODY, 1);
        fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
        become_user(NOBODY);
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        let mut begun = 0;
        while counters().sinks[0].failing.is_none() {
            job();
            begun += JOB;
        }
        // The oldest file goes, and there is room again.
        fs::remove_file(own_file("jsonl")).unwrap();
        let gone = counters().sinks[0].exported;
        job();
        let stats = trace.shutdown(SOON).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.handed, stats.sinks[0].failed), (begun + JOB, 0));
        assert!(ours(&trace_dir()) >= begun + JOB - gone);
    })
    .after_shell(&setup)
    .run();
    assert_complaints(&ran, &[&["cannot write", "Disk quota exceeded"], &["removed", ".jsonl"]]);
}

#[test]
fn a_recording_that_reaches_a_users_quota_stays_as_large_as_it_is() {
    let Some(disk) = ext4(64, "-O quota", "usrquota") else { return };
    let Some(setup) = with_mounts(&disk) else { return };
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        set_quota(&trace_dir(), NOBODY, 3);
        fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
        become_user(NOBODY);
        let _trace = start();
        assert!(stagetrace::status().recording.is_some());
        drop(press(4));
        let stats = flushed();
        assert_sums(&stats);
        assert!((1 << 20..=3 << 20).contains(&stats.memory), "{stats:?}");
        assert!(stats.dropped_spans() > 0, "{stats:?}");
    })
    .env("STAGETRACE_JSONL", "false")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["cannot grow", "Disk quota exceeded"]);
}

/// Takes the disk away from under its files, as a cable does: every write fails from then on.
fn break_disk(dir: &Path) {
    const EXT4_IOC_SHUTDOWN: libc::c_ulong = 0x8004_587d;
    const WITHOUT_LOG: u32 = 2;
    let dir = File::open(dir).unwrap();
    // SAFETY: the call reads one number, which lives through it.
    let done = unsafe { libc::ioctl(dir.as_raw_fd(), EXT4_IOC_SHUTDOWN as _, &WITHOUT_LOG) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_disk_that_breaks_is_said_once_and_the_job_goes_on() {
    let Some(disk) = ext4(8, "", "rw") else { return };
    let Some(setup) = with_mounts(&format!("{disk}; mount -t tmpfs tmpfs /dev/shm")) else {
        return;
    };
    let ran = alone(|| {
        let trace = start();
        job();
        assert_all_written(JOB);
        break_disk(&trace_dir());
        job();
        assert_sink_fails(true);
        let failing = counters().sinks.remove(0).failing;
        assert!(failing.is_some_and(|failing| failing.contains("Input/output error")));
        for _ in 0..10 {
            job();
        }
        let stats = counters();
        assert_sums(&stats);
        assert_eq!((stats.begun, stats.dropped_spans()), (12 * JOB, 0));
        let error = trace.shutdown(SOON).expect_err("nothing can be written");
        assert!(error.to_string().contains("Input/output error"), "{error}");
        // Nothing is lost yet: the recording has it.
        let recording = stagetrace::status().recording.expect("it stays");
        let recording = stagetrace_wire::recording::read::Recording::open(recording).unwrap();
        let ended = recording.snapshot().ended().filter(|span| !span.is_exported()).count();
        assert_eq!(ended as u64, 11 * JOB);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["cannot write", ".jsonl", "Input/output error"]);
}

fn set_longest_file(bytes: u64) {
    // SAFETY: the structure is plain numbers, filled by the call.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        limit.rlim_cur = bytes;
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[test]
fn a_limit_on_the_length_of_files_never_ends_the_process() {
    // By default the signal that tells of the limit ends the process.
    for (mapping, longest) in [("run-dir", 3 << 20), ("run-dir", 200_000), ("memory", 200_000)] {
        let ran = alone(|| {
            let longest = std::env::var("LONGEST").unwrap().parse().unwrap();
            set_longest_file(longest);
            let trace = start();
            let is_mapped = stagetrace::status().recording.is_some();
            assert_eq!(is_mapped, longest >= 1 << 20);
            let mut begun = 0;
            while counters().sinks[0].failing.is_none() {
                job();
                begun += JOB;
            }
            assert!(!is_mapped || counters().memory <= longest, "{:?}", counters());
            set_longest_file(libc::RLIM_INFINITY);
            job();
            assert_all_written(begun + JOB);
            set_longest_file(20_000);
            job();
            assert_sink_fails(true);
            drop(trace);
        })
        .env("STAGETRACE_MAPPING", mapping)
        .env("LONGEST", longest.to_string())
        .run();
        let too_large: &[&str] = &["cannot write", ".jsonl", "File too large"];
        let end: &[&str] = &["error", "File too large"];
        match (mapping, longest) {
            ("run-dir", 200_000) => {
                assert_complaints(&ran, &[&["cannot map the recording in"], too_large, end]);
            }
            _ => assert_complaints(&ran, &[too_large, end]),
        }
    }
}

//! Shared memory: absent, small, shared with others, planted, and what others do to a recording in it.

use crate::support::*;
use stagetrace_tests::rights::{NOBODY, become_user, may_change_user, with_mounts};
use stagetrace_tests::{Spans, alone, counters, flushed, start, until};
use stagetrace_wire::recording::layout::BLOCK;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// So many short spans as fast as they go.
fn burst(spans: u64) {
    for _ in 0..spans {
        drop(stagetrace::span!("burst"));
    }
}

/// Somebody else's file in shared memory, mapped and touched page by page, as most programs use it: where there is no
/// room a page ends the process with SIGBUS.
struct Neighbour {
    path: PathBuf,
    pages: *mut u8,
    len: usize,
}

impl Neighbour {
    fn new(len: u64) -> Neighbour {
        let path = PathBuf::from("/dev/shm/neighbour");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        let (len, access) = (len as usize, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping, which lives as long as the process.
        let pages = unsafe {
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(pages, libc::MAP_FAILED);
        Neighbour { path, pages: pages.cast(), len }
    }

    /// Touches everything between these places.
    fn touch(&self, from: u64, to: u64) {
        assert!(to as usize <= self.len);
        for at in (from..to).step_by(4096) {
            // SAFETY: within the mapping, which nobody else uses.
            unsafe { self.pages.add(at as usize).write_volatile(1) };
        }
    }

    fn leave(self) {
        fs::remove_file(&self.path).unwrap();
        // SAFETY: the mapping made in `new`, used no more.
        assert_eq!(unsafe { libc::munmap(self.pages.cast(), self.len) }, 0);
    }
}

fn recording() -> PathBuf {
    stagetrace::status().recording.expect("it is mapped")
}

fn lies_in_shared_memory() -> bool {
    recording().starts_with("/dev/shm")
}

/// Where this process's recordings lie in shared memory.
fn own_dir() -> PathBuf {
    // SAFETY: asks only.
    PathBuf::from(format!("/dev/shm/stagetrace-{}", unsafe { libc::geteuid() }))
}

#[test]
fn where_there_is_no_shared_memory_the_recording_lies_in_the_run_and_none_is_made() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3") else {
        return;
    };
    let ran = alone(|| {
        assert!(!Path::new("/dev/shm").exists());
        let trace = start();
        assert_eq!(recording().parent(), trace.run_dir());
        job();
        assert_all_written(JOB);
        assert!(!Path::new("/dev/shm").exists(), "we made a directory that is no shared memory");
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_complaints(&ran, &[]);
    assert_eq!(ran.spans().len() as u64, JOB);
}

#[test]
fn a_neighbour_in_64_mib_of_shared_memory_has_its_share_while_we_grow() {
    let Some(setup) = with_mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm") else { return };
    let ran = alone(|| {
        let _trace = start();
        assert!(lies_in_shared_memory());
        let neighbour = Neighbour::new(60 * MIB);
        std::thread::scope(|meanwhile| {
            meanwhile.spawn(|| drop(press(20)));
            neighbour.touch(0, 42 * MIB);
        });
        let before = flushed();
        assert_sums(&before);
        assert!((4 * MIB..=16 * MIB).contains(&before.memory), "{}", before.memory);
        let taken = fs::metadata(recording()).unwrap().blocks() * 512;
        assert!(taken <= 16 * MIB, "{taken}");

        // Nearly all is the neighbour's now. What we have serves; more is not taken.
        neighbour.touch(42 * MIB, 58 * MIB - before.memory);
        drop(press(20));
        let squeezed = flushed();
        assert_sums(&squeezed);
        assert_eq!(squeezed.memory, before.memory);
        assert!(squeezed.dropped_spans() > 0, "{squeezed:?}");
        neighbour.touch(58 * MIB - before.memory, 60 * MIB - before.memory);

        // When it has gone we go on growing.
        neighbour.leave();
        assert_grows_beyond(before.memory);
        assert_sums(&flushed());
    })
    .env("STAGETRACE_MAPPING", "auto")
    .env("STAGETRACE_JSONL", "false")
    .after_shell(&setup)
    .run();
    assert_one_complaint_beside_losses(&ran, &["cannot grow", "left to others"]);
}

/// First faults that this thread has taken so far.
fn own_faults() -> i64 {
    // SAFETY: the structure is plain numbers, filled by the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage.ru_minflt
    }
}

#[test]
fn every_page_that_is_written_was_promised_and_touched_before() {
    let Some(setup) = with_mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm") else { return };
    alone(|| {
        let _trace = start();
        burst(1000);
        for _ in 0..20 {
            // This thread has its first chunks already; 20 000 spans are 312 pages more.
            let before = own_faults();
            burst(20_000);
            let faults = own_faults() - before;
            assert!(faults < 20, "{faults} first touches");
            // In this order, since the recording may grow in between.
            let usable = counters().memory;
            let file = File::open(recording()).unwrap();
            // SAFETY: a plain call with a descriptor that is open.
            let hole = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_HOLE) } as u64;
            assert!(hole >= usable && usable.is_multiple_of(BLOCK as u64), "{hole} < {usable}");
        }
    })
    .env("STAGETRACE_MAPPING", "auto")
    .env("STAGETRACE_JSONL", "false")
    .after_shell(&setup)
    .run();
}

#[test]
fn shared_memory_that_is_made_smaller_takes_nothing_from_us() {
    let Some(setup) = with_mounts("mount -t tmpfs -o size=64m tmpfs /dev/shm") else { return };
    let ran = alone(|| {
        let _trace = start();
        let resize = |mib: u64| {
            let size = format!("remount,size={mib}m");
            Command::new("mount").args(["-o", &size, "/dev/shm"]).output().unwrap().status.success()
        };
        assert_grows_beyond(2 * MIB);
        let have = flushed().memory / MIB;
        assert!(!resize(1), "the system refuses to take what is in use");
        assert!(resize(have + 1));
        drop(press(4));
        let stats = flushed();
        assert_sums(&stats);
        assert_eq!(stats.memory / MIB, have);
        assert!(resize(64));
        assert_grows_beyond((have + 1) * MIB);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .env("STAGETRACE_JSONL", "false")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["cannot grow", "left to others"]);
}

#[test]
fn a_recording_that_is_removed_under_way_is_said_once_and_nothing_is_lost() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm") else { return };
    let ran = alone(|| {
        let trace = start();
        job();
        assert!(lies_in_shared_memory());
        fs::remove_dir_all(own_dir()).unwrap();
        assert!(until(SOON, || !stagetrace::status().complaints.is_empty()));
        assert_eq!(stagetrace::status().recording, None);
        job();
        burst(20_000);
        let stats = trace.shutdown(SOON).expect("the lines are all that is needed");
        assert_sums(&stats);
        assert_eq!(ours(&trace_dir()), stats.handed);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_one_complaint(&ran, &["removed the recording", "a kill loses"]);
}

#[test]
fn whoever_cuts_the_recording_ends_its_writer_with_a_signal_and_what_was_written_stays() {
    let ran = alone(|| {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a plain call: no core file of this death.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) }, 0);
        let _trace = start();
        job();
        flushed();
        File::options().write(true).open(recording()).unwrap().set_len(0).unwrap();
        until(SOON, || {
            job();
            false
        });
    })
    .try_run();
    assert_eq!(ran.status.signal(), Some(libc::SIGBUS), "{}", ran.stderr);
    assert!(ours_of_killed(&ran) >= JOB);
}

fn ours_of_killed(ran: &stagetrace_tests::Ran) -> u64 {
    Spans::of_killed(ran.dir()).len() as u64
}

#[test]
fn what_others_planted_in_shared_memory_is_not_used() {
    let plants = [
        ("a link", r#"mkdir /victim; ln -s /victim "$own""#),
        ("a link to nowhere", r#"ln -s /nowhere "$own""#),
        ("a file", r#": >"$own""#),
        ("a pipe", r#"mkfifo "$own""#),
        ("a directory of another user", r#"mkdir -m 700 "$own"; chown 65534 "$own""#),
        ("a directory that all may read", r#"mkdir -m 755 "$own""#),
        ("the run of another user", r#"mkdir -m 700 "$own" "$own/r"; chown 65534 "$own/r""#),
        ("a link for the run", r#"mkdir -m 700 "$own"; mkdir /victim; ln -s /victim "$own/r""#),
    ];
    let mut setups = plants.map(|(_, plant)| {
        with_mounts(&format!(
            "mount -t tmpfs tmpfs /mnt; mkdir /mnt/victim; mount -t tmpfs tmpfs /dev/shm
             own=/dev/shm/stagetrace-$(id -u); {}",
            plant.replace("mkdir /victim; ", "").replace("/victim", "/mnt/victim")
        ))
    });
    if setups.iter().any(Option::is_none) {
        return;
    }
    for ((what, _), setup) in plants.iter().zip(&mut setups) {
        let ran = alone(|| {
            let trace = start();
            assert_eq!(recording().parent(), trace.run_dir());
            assert_eq!(names(Path::new("/mnt/victim")), Vec::<String>::new());
            job();
            assert_all_written(JOB);
        })
        .env("STAGETRACE_RUN_ID", "r")
        .env("STAGETRACE_MAPPING", "shm")
        .after_shell(&setup.take().unwrap())
        .run();
        assert_eq!(ran.spans().len() as u64, JOB, "{what}");
        assert_one_complaint(&ran, &["cannot map the recording in shared memory"]);
    }
}

#[test]
fn each_user_has_shared_memory_of_its_own_that_the_others_cannot_look_into() {
    let mount = "mount -t tmpfs -o noexec,nosuid,nodev tmpfs /dev/shm";
    let Some(setup) = with_mounts(&format!("{mount}; chmod 1777 /dev/shm")) else { return };
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        fs::create_dir("/dev/shm/stagetrace-0").unwrap();
        fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
        become_user(NOBODY);
        let _trace = start();
        assert!(recording().starts_with(own_dir()));
        for (path, mode) in [(own_dir(), 0o700), (recording(), 0o600), (own_file("jsonl"), 0o600)] {
            let file = fs::metadata(&path).unwrap();
            assert_eq!((file.mode() & 0o777, file.uid()), (mode, NOBODY), "{}", path.display());
        }
        job();
        assert_all_written(JOB);
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_complaints(&ran, &[]);
}

#[test]
fn a_clean_end_leaves_nothing_in_shared_memory_even_if_the_run_was_thrown_away() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm") else { return };
    let ran = alone(|| {
        let trace = start();
        assert!(lies_in_shared_memory());
        job();
        assert_all_written(JOB);
        fs::remove_dir_all(trace.run_dir().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        trace.shutdown(SOON).unwrap();
        assert_eq!(names(&own_dir()), Vec::<String>::new());
        assert_eq!(names(&trace_dir()), Vec::<String>::new(), "nothing was left to say");
    })
    .env("STAGETRACE_MAPPING", "auto")
    .after_shell(&setup)
    .run();
    assert_complaints(&ran, &[]);
}

//! Kills at chosen places of the writer: inside a line, between a line and its mark, while it
//! recycles, grows, puts its file aside, starts and stops.

use crate::dead::{Dead, recycled};
use crate::traced::{Stop, Traced, victim};
use crate::victim::{Victim, Work, victim as command_of};
use memmap2::{MmapOptions, MmapRaw};
use stagetrace_tests::ended::file;
use stagetrace_tests::ledger::Ledger;
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk, header};
use stagetrace_wire::recording::recover::Remove;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The collector's thread.
const COLLECTOR: &str = "stagetrace";

/// The main thread, called like the program: it starts the recorder and stops it.
const MAIN: &str = "victim";

/// Kills a victim at the place to which `find` leads; `None` if nobody may be traced here.
fn killed_at(work: Work<'_>, find: impl FnOnce(&Victim, &mut Traced)) -> Option<Dead> {
    killed_in(COLLECTOR, work, find)
}

/// The same, at a place of another thread.
fn killed_in(
    thread: &'static str,
    work: Work<'_>,
    find: impl FnOnce(&Victim, &mut Traced),
) -> Option<Dead> {
    let (victim, mut traced) = victim(work, thread)?;
    find(&victim, &mut traced);
    let status = traced.kill();
    Some(victim.ended(status))
}

/// Goes on to the n-th stop of which `is_wanted` says so.
fn nth(traced: &mut Traced, n: u32, is_wanted: impl Fn(&Stop) -> bool) -> Stop {
    let mut left = n;
    let stop = traced.run_to(|stop| {
        left -= u32::from(is_wanted(stop));
        left == 0
    });
    stop.expect("it works on until it is killed")
}

#[test]
fn a_kill_inside_the_write_of_a_line_tears_only_that_line() {
    for (n, part) in [(1, 1), (1, 500), (2, 999), (4, 250), (6, 700)] {
        let dead = killed_at(Work::default(), |_, traced| {
            let stop = nth(traced, n, |stop| stop.is_before("write", ".jsonl"));
            let bytes = (stop.call.bytes * part / 1000).max(1);
            traced.shorten(&stop, bytes);
            let stop = traced.finish_call(&stop).expect("it lives");
            assert_eq!(stop.result, Some(bytes as i64));
        });
        let Some(dead) = dead else { return };
        let found = dead.recovered(Remove::No);
        assert!(found.is_torn && found.acknowledged > 0, "{found:?}");
    }
}

#[test]
fn a_kill_between_a_line_and_its_mark_doubles_nothing() {
    for n in [1, 2, 5] {
        let mut lines = 0;
        let dead = killed_at(Work::default(), |_, traced| {
            nth(traced, n, |stop| stop.is_after("write", ".jsonl"));
            lines = n;
        });
        let Some(dead) = dead else { return };
        let found = dead.recovered(Remove::Yes);
        assert!(found.written > 0 && found.recovered.known > 0 && !found.is_torn, "{found:?}");
    }
}

#[test]
fn a_kill_among_the_marks_doubles_nothing() {
    for steps in [10, 300, 5_000] {
        let dead = killed_at(Work::default(), |_, traced| {
            let stop = nth(traced, 2, |stop| stop.is_after("write", ".jsonl"));
            (0..steps).for_each(|_| assert!(traced.step(&stop)));
        });
        let Some(dead) = dead else { return };
        assert!(dead.recovered(Remove::No).written > 0);
    }
}

#[test]
fn a_kill_during_recycling_loses_nothing() {
    let work = Work { workers: "1-brief", ..Work::default() };
    for after in [1, 3] {
        let dead = killed_at(work, |victim, traced| {
            // Of those that are seen to go on, so many are let pass.
            let mut left = after;
            for _ in 0..200 {
                let stop = nth(traced, 1, |stop| stop.is_after("write", ".jsonl"));
                let path = victim.recording().expect("it was made before the lines");
                let pages = small_chunks(&path);
                let mut was_odd = false;
                for _ in 0..20_000 {
                    assert!(traced.step(&stop));
                    let is_odd = is_any_recycled(&pages);
                    left -= i32::from(is_odd && !was_odd);
                    was_odd = is_odd;
                    if left == 0 {
                        return;
                    }
                }
                traced.let_go(&stop);
            }
            panic!("nothing was recycled");
        });
        let Some(dead) = dead else { return };
        let (_, going_on) = recycled(&dead.recording().expect("it is left"));
        assert_eq!(going_on, 1, "a chunk was being recycled");
        assert!(dead.recovered(Remove::No).written > 0);
    }
}

/// The memory of the first blocks of records, mapped, since it is looked at between instructions.
fn small_chunks(recording: &Path) -> MmapRaw {
    let file = File::options().read(true).write(true).open(recording).expect("it can be opened");
    let first = MmapOptions::new().offset(BLOCK as u64).len(4 * BLOCK).map_raw(&file);
    first.expect("there are so many blocks")
}

/// Whether the sequence number of one of these chunks is odd.
fn is_any_recycled(pages: &MmapRaw) -> bool {
    (0..pages.len() / SMALL_CHUNK).any(|page| {
        let word = |at: usize| {
            let word = pages.as_mut_ptr().wrapping_add(page * SMALL_CHUNK + at * 8);
            // SAFETY: it lies within the mapping, aligned, and is changed by atomic stores only.
            unsafe { AtomicU64::from_ptr(word.cast()) }.load(Ordering::Acquire)
        };
        word(chunk::KIND) == u64::from(chunk::RECORDS) | (SMALL_CHUNK as u64) << 32
            && word(chunk::SEQUENCE) % 2 == 1
    })
}

#[test]
fn a_kill_during_growth_loses_nothing() {
    let work = Work { memory: "8MiB", workers: "3", ..Work::default() };
    for (n, is_done, steps) in [(1, false, 0), (2, true, 0), (1, true, 700), (2, true, 9_000)] {
        let mut blocks = 0;
        let dead = killed_at(work, |victim, traced| {
            let stop = nth(traced, n, |stop| match is_done {
                false => stop.is_before("fallocate", ".recording"),
                true => stop.is_after("fallocate", ".recording"),
            });
            (0..steps).for_each(|_| assert!(traced.step(&stop)));
            let path = victim.recording().expect("it is there");
            let mut word = [0; 8];
            let file = File::open(path).expect("it can be read");
            file.read_exact_at(&mut word, header::BLOCKS as u64 * 8).expect("it has a header");
            blocks = u64::from_ne_bytes(word);
        });
        let Some(dead) = dead else { return };
        assert!(blocks >= 16 * u64::from(n), "{blocks}");
        dead.recovered(Remove::Yes);
    }
}

#[test]
fn a_kill_while_the_file_is_put_aside_loses_nothing() {
    let work = Work { put_aside_at: "30000", ..Work::default() };
    let places: [fn(&Stop) -> bool; 4] = [
        |stop| stop.is_before("rename", ".jsonl"),
        |stop| stop.is_after("rename", ".jsonl"),
        |stop| stop.is_before("open", ".jsonl"),
        |stop| stop.is_after("open", ".jsonl"),
    ];
    for place in places {
        let dead = killed_at(work, |_, traced| {
            nth(traced, 2, place);
        });
        let Some(dead) = dead else { return };
        assert!(dead.recovered(Remove::No).written > 0);
    }
}

#[test]
fn a_kill_at_any_call_of_the_start_and_of_a_clean_end_loses_nothing() {
    let work = Work { workers: "1", end: ("shutdown", 150), ..Work::default() };
    for calls in 1.. {
        assert!(calls < 100, "it does not come to its end");
        let mut stop = None;
        let dead = killed_in(MAIN, work, |_, traced| {
            let (mut left, mut last) = (calls, None);
            stop = traced.run_to(|stop| {
                if stop.result.is_some() {
                    // Of several of one kind, as the pages of a file that is written, the first.
                    left -= i32::from(last.replace(stop.call.clone()) != Some(stop.call.clone()));
                }
                left == 0
            });
        });
        let Some(dead) = dead else { return };
        if stop.is_none() {
            assert!(dead.status.success() && calls > 10, "{} after {calls} calls", dead.status);
            break;
        }
        let Some(run) = dead.run_dir() else { continue };
        dead.found_so_far(&run);
        adopt(&dead);
        dead.found(&run);
        let litter = |file: &OsString| {
            let name = file.to_string_lossy();
            name.ends_with(".closing") || name.ends_with(".part")
        };
        let names = fs::read_dir(&run).expect("it can be read");
        let names: Vec<_> = names.map(|file| file.expect("it can be read").file_name()).collect();
        assert!(!names.iter().any(litter), "{names:?} after {stop:?}");
        // A closed one stays, and one that is empty may be that of a process that has just begun.
        let left = file(&run, "recording").and_then(|path| fs::metadata(path).ok());
        assert!(left.is_none_or(|left| left.len() < 1 << 20), "{names:?} after {stop:?}");
    }
}

/// Starts another process below the same directory, which ends when it has adopted what it finds.
fn adopt(dead: &Dead) {
    let ledger = dead.dir.path().join("later");
    Ledger::create(&ledger).expect("it can be made");
    let later = Work { workers: "1", end: ("shutdown", 10), ..Work::default() };
    let mut later = command_of(later, dead.dir.path(), &ledger);
    let status = later.stdout(Stdio::null()).status().expect("it can be started");
    assert!(status.success(), "{status}");
}

#[test]
fn an_empty_recording_goes_when_nobody_can_be_about_to_write_it() {
    let victim = Victim::start(Work::default());
    victim.wait_for(10);
    let dead = victim.kill();
    let run = dead.run_dir().expect("it had begun");
    let (old, new) = (run.join("old.recording"), run.join("new.recording"));
    let long_ago = SystemTime::now() - Duration::from_secs(120);
    File::create(&old).and_then(|file| file.set_modified(long_ago)).expect("it can be made");
    File::create(&new).expect("it can be made");
    adopt(&dead);
    assert!(!old.exists() && new.exists());
}

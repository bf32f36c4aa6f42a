//! Without a .jsonl: exporters that are slow or fail, and what becomes of what they do not take.

use crate::support::{SOON, assert_sums, fill, job, own_file, trace_dir};
use stagetrace::{event, span};
use stagetrace_tests::ended::file;
use stagetrace_tests::rights::with_mounts;
use stagetrace_tests::{Ran, Spans, alone, counters, delivered, flushed, start_exporting, until};
use stagetrace_wire::recording::read::{Recording, State};
use stagetrace_wire::recording::recover::{Recovered, Remove, recover};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LEAST: (&str, &str) = ("STAGETRACE_MEMORY_LIMIT", "1MiB");

/// The run's directory, beside which lies what was delivered.
fn run_of(ran: &Ran) -> PathBuf {
    let entries = fs::read_dir(ran.dir()).expect("it can be read");
    let mut paths = entries.map(|entry| entry.expect("it can be read").path());
    paths.find(|path| path.is_dir()).expect("one run")
}

fn recovered(ran: &Ran) -> Recovered {
    let run = run_of(ran);
    let recording = file(&run, "recording").expect("it is left");
    recover(recording, &run, Remove::Yes).expect("it can be recovered")
}

/// How many spans were delivered below a directory.
fn delivered_below(dir: &Path) -> u64 {
    delivered::spans(&dir.join("delivered")).len() as u64
}

#[test]
fn what_made_room_for_a_slow_exporter_goes_when_it_has_come_after() {
    let ran = alone(|| {
        let slow = delivered::exporter(&trace_dir().join("delivered"), "slow");
        let trace = start_exporting(slow);
        let spooled = until(SOON, || {
            job();
            counters().spool.bytes > 0
        });
        assert!(spooled, "{:?}", counters());
        assert_eq!(fs::metadata(own_file("spool")).unwrap().len() % 4096, 0);
        let stats = flushed();
        assert_sums(&stats);
        assert!(until(SOON, || counters().spool.bytes == 0), "all of it is out: {:?}", counters());
        job();
        let stats = trace.shutdown(SOON).unwrap();
        assert_eq!((stats.spool.given_up, stats.spool.failures), (0, 0));
        println!("\nrecorded {}", stats.handed);
    })
    .env(LEAST.0, LEAST.1)
    .env("OTEL_BSP_SCHEDULE_DELAY", "20")
    .run();
    let run = run_of(&ran);
    assert_eq!(file(&run, "spool"), None, "nothing is left");
    let recording = Recording::open(file(&run, "recording").unwrap()).unwrap();
    assert_eq!((recording.state(), recording.snapshot().spans.len()), (State::Closed, 0));
    let recorded = ran.stdout.lines().find_map(|line| line.strip_prefix("recorded ")).unwrap();
    assert_eq!(delivered_below(ran.dir()), recorded.parse::<u64>().unwrap());
}

#[test]
fn what_an_exporter_loses_is_recovered_after_a_clean_end() {
    let ran = alone(|| {
        let fails = delivered::exporter(&trace_dir().join("delivered"), "fails");
        let trace = start_exporting(fails);
        let spooled = until(SOON, || {
            job();
            counters().spool.bytes > 0
        });
        assert!(spooled, "{:?}", counters());
        trace.shutdown(SOON).expect_err("spans were lost");
        println!("\nsaid {:?}", stagetrace::status().complaints);
    })
    .env("OTEL_BSP_SCHEDULE_DELAY", "20")
    .run();
    let run = run_of(&ran);
    assert!(file(&run, "spool").is_some());
    let delivered = delivered::spans(&ran.dir().join("delivered"));
    recovered(&ran);
    assert_eq!((file(&run, "spool"), file(&run, "recording")), (None, None));
    let spans = Spans::of_killed(&run);
    assert!(spans.len() > 200, "{}", spans.len());
    let all = delivered.iter().chain(spans.iter());
    let of_requests = |name: &str| {
        let of_name = all.clone().filter(|span| span.name == name);
        of_name.map(|span| span.identity()).collect::<std::collections::HashSet<_>>().len()
    };
    let requests = of_requests("generate");
    assert!(requests > 0 && requests.is_multiple_of(50), "{requests}");
    assert_eq!((of_requests("gpu_forward"), of_requests("decode")), (requests, requests));
}

#[test]
fn what_came_to_a_span_before_it_ended_waits_for_the_exporter_with_it() {
    let ran = alone(|| {
        let hangs = delivered::exporter(&trace_dir().join("delivered"), "hangs");
        let trace = start_exporting(hangs);
        let talk = span!("talk");
        talk.in_scope(|| event!("said"));
        // Fills the chunk with the event; all that ended in it is exported.
        job();
        flushed();
        job();
        flushed();
        drop(talk);
        stagetrace::flush(Duration::from_millis(300)).expect_err("the exporter hangs");
        let spooled = until(SOON, || {
            job();
            counters().spool.bytes > 0
        });
        assert!(spooled, "{:?}", counters());
        // As if killed.
        std::mem::forget(trace);
    })
    .env(LEAST.0, LEAST.1)
    .run();
    recovered(&ran);
    let spans = Spans::of_killed(&run_of(&ran));
    let talk = spans.one("talk");
    assert_eq!(talk.events.len(), 1, "{talk:?}");
    assert_eq!(talk.attribute("stagetrace.missing_details"), None);
}

#[test]
fn the_spool_is_bounded_and_what_does_not_fit_is_counted() {
    const MOST: u64 = 64 << 20;
    let ran = alone(|| {
        let refuses = delivered::exporter(&trace_dir().join("delivered"), "refuses");
        let trace = start_exporting(refuses);
        let text = "x".repeat(900);
        let full = until(3 * SOON, || {
            (0..400).for_each(|_| drop(span!("large", "text" = &*text)));
            counters().spool.given_up > 0
        });
        let stats = counters();
        assert!(full && (MOST - 65536..=MOST).contains(&stats.spool.bytes), "{stats:?}");
        let length = fs::metadata(own_file("spool")).unwrap().len();
        assert!((stats.spool.bytes..=MOST).contains(&length), "{length}, {stats:?}");
        assert_sums(&stats);
        // Room is made all the same.
        let before = counters().handed;
        let goes_on = until(SOON, || {
            job();
            counters().handed > before + 10_000
        });
        assert!(goes_on, "{:?}", counters());
        trace.shutdown(SOON).expect_err("spans were lost");
    })
    .env(LEAST.0, LEAST.1)
    .env("OTEL_BSP_SCHEDULE_DELAY", "20")
    .within(6 * SOON)
    .run();
    let complaints = ran.complaints();
    let about_it: Vec<_> = complaints.iter().filter(|line| line.contains(".spool")).collect();
    assert!(about_it.len() == 1 && about_it[0].contains("is full"), "{}", ran.stderr);
    let recovered = recovered(&ran);
    assert!(recovered.ended > 40_000 && recovered.damage.is_none(), "{recovered:?}");
}

#[test]
fn a_full_disk_has_what_an_exporter_lost_wait_in_the_recording() {
    let Some(setup) = with_mounts(&format!(
        r#"mount -t tmpfs -o size=2m tmpfs "$1"; mount -t tmpfs tmpfs /dev/shm
        dir=$1; shift; "$@"; "{}" 1 1000; cp -r "$dir" /tmp/kept.$$
        umount "$dir"; cp -r /tmp/kept.$$/. "$dir"; rm -r /tmp/kept.$$; ls -R /dev/shm; exit"#,
        env!("CARGO_BIN_EXE_serve")
    )) else {
        return;
    };
    let ran = alone(|| {
        let filler = trace_dir().join("filler");
        let refuses = delivered::exporter(&trace_dir().join("delivered"), "refuses");
        let trace = start_exporting(refuses);
        fill(&filler, 9000);
        let open = span!("open");
        let fails = until(SOON, || {
            if counters().handed < 3000 {
                job();
            }
            counters().spool.failing.is_some()
        });
        let stats = counters();
        assert!(fails && stats.spool.failures > 0, "{stats:?}");
        assert!(stats.spool.failing.as_ref().unwrap().contains("No space left on device"));
        assert_eq!((stats.spool.given_up, stats.dropped_spans()), (0, 0), "it waits");
        fs::remove_file(&filler).unwrap();
        let goes_on =
            until(SOON, || counters().spool.failing.is_none() && counters().spool.bytes > 9000);
        assert!(goes_on, "{:?}", counters());
        job();
        let stats = counters();
        println!("\nrecorded {}", stats.begun);
        // As if killed.
        std::mem::forget((trace, open));
    })
    .env(LEAST.0, LEAST.1)
    .env("STAGETRACE_MAPPING", "auto")
    .env("OTEL_BSP_SCHEDULE_DELAY", "20")
    .after_shell(&setup)
    .run();
    let recorded = ran.stdout.lines().find_map(|line| line.strip_prefix("recorded ")).unwrap();
    let spans = Spans::of_killed(ran.dir());
    // With those of the process that brought them back, which has a .jsonl.
    assert_eq!(spans.len() as u64, recorded.parse::<u64>().unwrap() + 4);
    let is_open = |span: &&stagetrace_wire::span::Span| span.name == "open";
    assert_eq!(spans.iter().filter(is_open).count(), 1);
    assert!(!ran.stdout.contains(".recording"), "left in shared memory: {}", ran.stdout);
    let lost = ["No space left on device", ".spool"];
    let (ours, others): (Vec<_>, Vec<_>) =
        ran.complaints().into_iter().partition(|line| line.contains(lost[1]));
    assert!(ours.len() == 1 && ours[0].contains(lost[0]), "{}", ran.stderr);
    assert!(others.len() == 1 && others[0].contains("loses spans"), "{}", ran.stderr);
}

//! Kills of a process that has no .jsonl but an exporter that is slow, fails or hangs, while chunks go round: each span
//! that had ended was delivered or is recovered, from the recording or the spool.

use crate::dead::{Dead, check_details, is_open, recycled};
use crate::victim::{Victim, Work};
use stagetrace_tests::delivered;
use stagetrace_tests::ended::file;
use stagetrace_tests::rounds::Label;
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::recording::recover::{Remove, recover};
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Stdio;

/// A victim with such an exporter, in the least memory.
fn start(how: &str, end: (&'static str, u32)) -> Victim {
    let work = Work { workers: "3-brief", end, ..Work::default() };
    let with_exporter = |command: &mut std::process::Command| {
        let ledger = command.get_envs().find(|(name, _)| *name == "VICTIM_LEDGER");
        let ledger = PathBuf::from(ledger.and_then(|(_, path)| path).expect("it has one"));
        command.env("VICTIM_EXPORTER", how);
        command.env("VICTIM_DELIVERED", ledger.with_file_name("delivered"));
        // One that hangs is given up while the victim works.
        command.env("OTEL_BSP_EXPORT_TIMEOUT", "150").env("OTEL_BSP_SCHEDULE_DELAY", "20");
        command.stderr(Stdio::null());
    };
    Victim::start_with(work, with_exporter).expect("the program can be started")
}

fn killed(how: &str, rounds: u32) -> Dead {
    let victim = start(how, ("wait", 0));
    victim.wait_for(rounds);
    victim.kill()
}

/// What of the acknowledged spans was delivered; all of them were, or are in the files of the run as ended, with their
/// details unless there was no room for some.
fn delivered_of(dead: &Dead, lost_details: bool) -> HashSet<Label> {
    let spans = delivered::spans(&dead.dir.path().join("delivered"));
    let label = |span| Label::of(span, false).unwrap_or_else(|problem| panic!("{problem}"));
    let delivered: HashSet<_> = spans.iter().map(label).collect();
    assert_eq!(delivered.len(), spans.len(), "nothing is delivered twice");
    let found = dead.found_so_far(&dead.run_dir().expect("it had begun"));
    let has_ended = |label| found.spans.get(label).is_some_and(|span| !is_open(span));
    let acknowledged = dead.acknowledged();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|label| !delivered.contains(label) && !has_ended(label))
        .collect();
    let (some, all) = (&lost[..lost.len().min(5)], acknowledged.len());
    if !lost_details {
        found.spans.iter().for_each(|(label, span)| check_details(*label, span));
    }
    assert!(lost.is_empty(), "{} of {all} are lost: {some:?} ..", lost.len());
    assert!(all > 1000, "{all} spans are acknowledged");
    delivered
}

#[test]
fn a_kill_loses_nothing_that_an_exporter_has_not_delivered() {
    for how in ["slow", "fails", "refuses", "hangs"] {
        let (mut spooled, mut delivered) = (0, 0);
        for rounds in [500, 3000, 6000, 9000] {
            let dead = killed(how, rounds);
            let (run, recording) = (dead.run_dir().expect("one"), dead.recording().expect("one"));
            assert!(rounds < 4000 || recycled(&recording).0 > 0, "chunks have gone round");
            let losses = Recording::open(&recording).expect("it can be read").losses();
            let lost_details = losses.iter().any(|(cause, n)| *cause == "detail_full" && *n > 0);
            let spool = file(&run, "spool");
            spooled += u32::from(spool.is_some());
            let recovered = recover(&recording, &run, Remove::Yes).expect("it can be recovered");
            assert!(recovered.damage.is_none() && recovered.removed, "{recovered:?}");
            let spool = spool.is_some_and(|spool| spool.exists());
            assert!(!spool && !recording.exists(), "what was recovered goes");
            delivered += delivered_of(&dead, lost_details).len();
        }
        assert_eq!(delivered == 0, how == "refuses", "{how}");
        assert!(spooled > 1, "{how}: {spooled} of 4 had to make room");
    }
}

#[test]
fn a_kill_loses_nothing_of_a_trace_that_waits_for_its_end() {
    for rounds in [500, 3000, 6000] {
        let work = Work { workers: "3-brief", end: ("wait", 0), ..Work::default() };
        let samples = |command: &mut std::process::Command| {
            command.env("VICTIM_SAMPLES", "1").stderr(Stdio::null());
        };
        let victim = Victim::start_with(work, samples).expect("the program can be started");
        victim.wait_for(rounds);
        let dead = victim.kill();
        let (run, recording) = (dead.run_dir().expect("one"), dead.recording().expect("one"));
        let recovered = recover(&recording, &run, Remove::Yes).expect("it can be recovered");
        assert!(recovered.damage.is_none() && recovered.removed, "{recovered:?}");
        let found = dead.found_so_far(&run);
        let acknowledged = dead.acknowledged();
        let has_ended = |label| found.spans.get(label).is_some_and(|span| !is_open(span));
        let lost = acknowledged.iter().filter(|label| !has_ended(label)).count();
        assert!(acknowledged.len() > 500, "{}", acknowledged.len());
        assert_eq!(lost, 0, "of {} after {rounds} rounds", acknowledged.len());
    }
}

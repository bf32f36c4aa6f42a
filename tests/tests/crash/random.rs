//! Kills at random instants, while another process reads.

use crate::dead::{Dead, Found, is_open, recycled};
use crate::victim::{Victim, Work};
use stagetrace_tests::rounds::Label;
use stagetrace_tests::until;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::recording::recover::Remove;
use stagetrace_wire::span::Span;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often, unless `STAGETRACE_KILLS` says otherwise.
const KILLS: u32 = 200;

/// Random numbers that a seed repeats.
struct Random(u64);

impl Random {
    /// One below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn a_kill_at_any_instant_loses_nothing_tears_nothing_and_doubles_nothing() {
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed = number("STAGETRACE_KILLS_SEED").unwrap_or_else(now);
    let kills = number("STAGETRACE_KILLS").map_or(KILLS, |kills| kills as u32);
    println!("STAGETRACE_KILLS={kills} STAGETRACE_KILLS_SEED={seed}");
    let mut random = Random(seed);
    let (mut acknowledged, mut open, mut torn, mut busy, mut looks) = (0, 0, 0, 0, 0);
    for kill in 0..kills {
        let work = Work {
            workers: random.one_of(&["1", "2", "5", "1-brief", "2-brief", "4-brief"]),
            memory: random.one_of(&["1MiB", "1MiB", "3MiB"]),
            put_aside_at: random.one_of(&["0", "100000"]),
            ..Work::default()
        };
        let most = random.one_of(&[400, 400, 400, 3000]);
        let rounds = random.below(most) as u32;
        let pause = Duration::from_micros(random.below(2000));
        let remove = random.one_of(&[Remove::Yes, Remove::No]);
        let victim = Victim::start(work);
        let (dead, seen) = if kill % 4 == 0 {
            watched(victim, rounds, pause)
        } else {
            victim.wait_for(rounds);
            pass(pause);
            (victim.kill(), Seen::default())
        };
        let recycled = dead.recording().map_or(0, |path| recycled(&path).0);
        let found = dead.recovered(remove);
        seen.compare(&found);
        looks += seen.looks;
        acknowledged += found.acknowledged;
        open += found.recovered.open;
        torn += u32::from(found.is_torn);
        busy += u32::from(recycled > 0);
    }
    println!(
        "{kills} kills: {acknowledged} acknowledged spans, {open} open, {torn} torn lines, {busy} \
         with recycled chunks, {looks} looks of another process"
    );
    // A fifth of them, where the collector finds a processor; some in any case.
    assert!(busy * 40 > kills, "chunks were recycled before {busy} of {kills} kills only");
    assert!(open as u32 > kills / 2 && looks > kills / 2);
}

/// Waits without giving up the processor.
fn pass(pause: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// What a reader in another process than the victim saw.
#[derive(Default)]
struct Seen {
    looks: u32,
    spans: HashMap<(TraceId, SpanId), (Label, Option<Times>)>,
}

/// Begin and end of a span that has ended, unless they are only estimated.
#[derive(Debug, PartialEq)]
struct Times(Option<(u64, u64)>);

/// Looks at a victim at full speed until it is killed.
fn watched(victim: Victim, rounds: u32, pause: Duration) -> (Dead, Seen) {
    let path = victim.recording();
    let found = path.is_some() || until(Duration::from_secs(30), || victim.recording().is_some());
    assert!(found, "a recording is made");
    let path = victim.recording().expect("it was there");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = Seen::default();
            let mut recording = None;
            while !over.load(Ordering::Relaxed) {
                match &recording {
                    // Its header may not be there yet.
                    None => recording = Recording::open(&path).ok(),
                    Some(recording) => seen.look(recording),
                }
            }
            seen
        });
        victim.wait_for(rounds);
        pass(pause);
        let dead = victim.kill();
        over.store(true, Ordering::Relaxed);
        (dead, reader.join().expect("all that was seen is whole"))
    })
}

impl Seen {
    fn look(&mut self, recording: &Recording) {
        let snapshot = recording.snapshot();
        let damage = snapshot.damage;
        let broken = (damage.heads, damage.chunks, damage.records, damage.entries);
        assert_eq!(broken, (0, 0, 0, 0), "{damage:?}");
        for span in &snapshot.spans {
            let whole = span.to_span(recording.identity());
            let label = Label::of(&whole, span.is_open()).unwrap_or_else(|why| panic!("{why}"));
            let times =
                span.end().map(|end| Times((!span.is_uncertain()).then_some((span.begin(), end))));
            match self.spans.insert(span.identity(), (label, times)) {
                None => {}
                Some((before, ended)) => {
                    assert_eq!(before, label, "a slot was taken for another");
                    assert!(span.end().is_some() || ended.is_none(), "{label:?} is open again");
                }
            }
        }
        self.looks += 1;
    }

    /// That all that was seen is there at last, as it was seen.
    fn compare(&self, found: &Found) {
        let by_id: HashMap<_, (Label, &Span)> =
            found.spans.iter().map(|(label, span)| (span.identity(), (*label, span))).collect();
        for (id, (label, times)) in &self.spans {
            let Some((found, span)) = by_id.get(id) else {
                panic!("{label:?} was seen and is lost")
            };
            assert_eq!(found, label);
            if let Some(Times(times)) = times {
                assert!(!is_open(span), "{label:?} was seen to have ended");
                let now = (span.start_unix_nano, span.end_unix_nano);
                assert!(times.is_none_or(|times| times == now), "{label:?}: {times:?}, {now:?}");
            }
        }
    }
}

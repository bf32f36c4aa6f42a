use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * SECOND;

/// Clocks of a machine whose counter runs at 2.1 GHz and drifts by 30 millionths.
fn at(second: f64) -> Reading {
    let ns = (second * 1e9) as u64;
    Reading {
        ticks: (ns as f64 * 2.1 * 1.000_03) as u64 + 1_000,
        monotonic: ns + 5,
        realtime: EPOCH + ns,
        error: 20,
    }
}

fn rate(now: Reading) -> u64 {
    now.rate_since(at(0.0)).unwrap()
}

/// The timeline of a writer that read its clocks then.
fn log(seconds: &[f64]) -> Timeline {
    let first = Anchor::first(at(0.0), at(0.001));
    let mut timeline = Timeline::new([first]);
    for &second in seconds {
        let now = at(second);
        let next = timeline.last().unwrap().next(rate(now), now);
        assert!(timeline.push(next));
    }
    timeline
}

#[test]
fn a_tick_has_one_time_whatever_is_learned_later() {
    let early = log(&[0.01, 0.1]);
    let late = log(&[0.01, 0.1, 1.0, 2.0]);
    for ms in 0..150 {
        let ticks = at(f64::from(ms) / 1e3).ticks;
        if ticks < at(0.1).ticks {
            assert_eq!(early.unix(ticks), late.unix(ticks), "at {ms} ms");
        }
    }
}

#[test]
fn the_line_stays_near_the_clock() {
    let timeline = log(&[0.01, 0.1, 1.0, 2.0]);
    let reading = at(2.5);
    assert!(timeline.unix(reading.ticks).abs_diff(reading.realtime) < 2_000);
}

#[test]
fn the_line_bends_by_no_more_than_a_sixteenth() {
    let anchor = Anchor::first(at(0.0), at(1.0));
    for (ahead, bent) in [(-2.0, 17.0 / 16.0), (2.0, 15.0 / 16.0), (0.01, 0.99)] {
        let mut now = at(10.0);
        now.ticks = at(10.0 + ahead).ticks;
        let next = anchor.next(anchor.rate, now);
        let ratio = next.rate as f64 / anchor.rate as f64;
        assert!((ratio - bent).abs() < 1e-4, "{ahead} s ahead: bent by {ratio}");
    }
}

#[test]
fn a_backward_step_of_the_wall_clock_is_not_followed_a_forward_jump_is() {
    let mut timeline = log(&[0.01, 0.1]);
    let mut back = at(1.0);
    back.realtime -= 5 * SECOND;
    timeline.push(timeline.last().unwrap().next(rate(back), back));
    assert!(timeline.unix(at(1.5).ticks).abs_diff(at(1.5).realtime) < 2_000);
    let mut forward = at(2.0);
    forward.realtime += 5 * SECOND;
    timeline.push(timeline.last().unwrap().next(rate(forward), forward));
    let after = timeline.unix(at(2.5).ticks);
    assert!(after.abs_diff(at(2.5).realtime + 5 * SECOND) < 2_000);
}

#[test]
fn after_a_suspend_through_which_the_counter_ran_time_is_right_at_once() {
    let before = Anchor::first(at(0.0), at(1.0));
    // Eight hours pass, of which the monotonic clock saw nothing.
    let slept = 8.0 * 3600.0;
    let mut now = at(2.0 + slept);
    now.monotonic = at(2.0).monotonic;
    let after = before.after_jump(before.rate, now);
    assert_eq!(after.monotonic, now.monotonic);
    assert!(after.unix(now.ticks).abs_diff(now.realtime) < 10_000, "nobody counts the sleep twice");
    assert!(after.unix(now.ticks) >= before.unix(now.ticks), "it does not fall");
}

#[test]
fn a_counter_that_begins_anew_below_all_ticks_gets_lines_of_its_own() {
    let mut timeline = log(&[0.01, 0.1, 1.0]);
    let old: Vec<u64> = (0..20).map(|tenth| at(f64::from(tenth) / 10.0 + 0.001).ticks).collect();
    let times: Vec<u64> = old.iter().map(|ticks| timeline.unix(*ticks)).collect();
    let shift = at(0.001).ticks - 500;
    for second in [0.0, 1.0, 2.0] {
        let mut now = at(3.0 + second);
        now.ticks = 100 + (second * 20.0) as u64;
        let last = *timeline.last().unwrap();
        let next = if second == 0.0 {
            last.after_reset(last.rate, now)
        } else {
            last.after_jump(last.rate, now)
        };
        assert!(timeline.push(next), "at {second} s");
        assert!(timeline.unix(now.ticks).abs_diff(now.realtime) < 2_000, "at {second} s");
    }
    assert!(timeline.unix(50) < timeline.unix(100) && timeline.unix(100) < timeline.unix(110));
    assert_eq!(old.iter().map(|ticks| timeline.unix(*ticks)).collect::<Vec<_>>(), times);
    // The ticks of the first epoch have their times: no line begins among them.
    let last = *timeline.last().unwrap();
    assert!(!timeline.push(Anchor { ticks: shift + 501, monotonic: last.monotonic + 1, ..last }));
}

#[test]
fn forgotten_anchors_move_no_time_of_later_ticks() {
    let whole = log(&[0.01, 0.1, 1.0, 2.0, 3.0]);
    let mut short = whole.clone();
    short.forget(3);
    assert_eq!((short.len(), whole.len()), (3, 6));
    for tenth in 10..40 {
        let ticks = at(f64::from(tenth) / 10.0).ticks;
        assert_eq!(short.unix(ticks), whole.unix(ticks), "at {tenth} tenths");
    }
    short.forget(usize::MAX);
    assert_eq!(short.len(), 1, "the newest stays");
}

/// Clocks that take this long to read, in nanoseconds, one after the other.
fn take(costs: &[u64]) -> (Reading, u64) {
    let now = std::cell::Cell::new(1_000 * SECOND);
    let reads = std::cell::Cell::new(0);
    let read = || {
        let cost = costs.get(reads.get() as usize).copied().unwrap_or(30);
        reads.set(reads.get() + 1);
        now.set(now.get() + cost);
        now.get()
    };
    let reading = Reading::take(Some(|| 3 * read()), read, || EPOCH + read());
    (reading, reads.get())
}

#[test]
fn a_reading_that_lost_the_processor_between_two_clocks_is_not_kept() {
    let off = |reading: Reading| (reading.ticks / 3).abs_diff(reading.monotonic);
    let (calm, reads) = take(&[]);
    assert_eq!((off(calm), calm.error, reads), (0, 30, 15));
    // Wherever in the first two rounds it lost the processor for 5 ms, the third is kept.
    for lost in 0..10 {
        let mut costs = [30; 10];
        costs[lost] = 5_000_000;
        let (reading, _) = take(&costs);
        assert_eq!((off(reading), reading.error), (0, 30), "before read {lost}");
        assert_eq!(reading.realtime - EPOCH, reading.monotonic, "before read {lost}");
    }
    // Where every round is bad, more are tried, and the error says how bad the best is.
    let (reading, reads) = take(&[40_000; 400]);
    assert_eq!((reading.error, reads), (40_000, 60));
    assert!(off(reading) <= reading.error);
}

#[test]
fn ticks_that_are_nanoseconds_have_no_error_and_a_rate_of_one() {
    let now = std::cell::Cell::new(7);
    let read = || {
        now.set(now.get() + 1_000_000);
        now.get()
    };
    let take = || Reading::take(None::<fn() -> u64>, read, || EPOCH + read());
    let (first, second) = (take(), take());
    assert_eq!((first.ticks, first.error), (first.monotonic, 0));
    assert_eq!(second.rate_since(first), Some(1 << 32));
    let anchor = Anchor::first(first, second);
    assert_eq!(anchor.monotonic(12_345_678_901), 12_345_678_901);
}

proptest! {
    #[test]
    fn the_line_never_falls_whatever_the_clocks_say(
        steps in prop::collection::vec((1u64..1 << 40, 0u64..1 << 40, -1i64 << 42..1 << 42, any::<bool>()), 1..20),
        offset in 0u64..1 << 40,
    ) {
        let mut now = Reading { ticks: 1 << 41, monotonic: 1 << 41, realtime: EPOCH, error: 20 };
        let mut timeline = Timeline::new([Anchor::first(now, now)]);
        for (ticks, ns, wall, jumps) in steps {
            let before = now;
            now.ticks += ticks;
            now.monotonic += ns;
            now.realtime = (now.realtime + ns).wrapping_add_signed(wall);
            let last = *timeline.last().unwrap();
            let rate = now.rate_since(before).unwrap_or(last.rate);
            let probes = [0, 1, ticks / 2, ticks - 1].map(|ticks| before.ticks + ticks);
            let given = probes.map(|ticks| timeline.unix(ticks));
            let next = if jumps { last.after_jump(rate, now) } else { last.next(rate, now) };
            prop_assume!(timeline.push(next));
            prop_assert_eq!(given, probes.map(|ticks| timeline.unix(ticks)), "is revised");
            prop_assert!(last.unix(now.ticks) <= timeline.unix(now.ticks), "falls at the anchor");
            let later = [now.ticks, now.ticks + 1, now.ticks + offset].map(|ticks| timeline.unix(ticks));
            prop_assert!(later.is_sorted(), "falls after the anchor: {:?}", later);
            if !jumps {
                let step = next.monotonic - last.monotonic(now.ticks);
                prop_assert_eq!(step, 0, "has a step");
            }
        }
    }
}

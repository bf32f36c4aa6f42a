//! The collector's own code on clocks that do what clocks do, and read by the reader of recordings.

use super::*;
use crate::chunk::Space;
use crate::clock::ClockSource;
use proptest::prelude::*;
use stagetrace_wire::recording::layout::{BLOCK, chunk, slot};
use stagetrace_wire::recording::read::Recording;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const EPOCH: u64 = 1_700_000_000 * SECOND;
const HOUR: u64 = 3_600 * SECOND;
/// Ticks in a second.
const FREQUENCY: u64 = 2_100_000_000;

/// A machine's clocks, and what is done to them.
#[derive(Debug)]
struct Machine {
    /// Nanoseconds that passed in the world.
    now: Cell<u64>,
    /// What they are less, or more, than the world.
    monotonic: Cell<i64>,
    realtime: Cell<i64>,
    /// Ticks at an instant of the world, and ticks in a second since.
    counter: Cell<(u64, u64, u64)>,
    /// Nanoseconds that the next readings take.
    delays: RefCell<VecDeque<u64>>,
}

#[derive(Clone, Debug)]
struct Fake(Rc<Machine>);

impl Fake {
    /// A machine that has been up for a day.
    fn new() -> Fake {
        Fake(Rc::new(Machine {
            now: Cell::new(24 * HOUR),
            monotonic: Cell::new(0),
            realtime: Cell::new(EPOCH as i64),
            counter: Cell::new((24 * HOUR, 24 * 3_600 * FREQUENCY, FREQUENCY)),
            delays: RefCell::default(),
        }))
    }

    fn pass(&self, ns: u64) {
        self.0.now.set(self.0.now.get() + ns);
    }

    fn tick(&self) -> u64 {
        let (since, ticks, frequency) = self.0.counter.get();
        ticks
            + (u128::from(self.0.now.get() - since) * u128::from(frequency) / 1_000_000_000) as u64
    }

    fn set_counter(&self, ticks: u64, frequency: u64) {
        self.0.counter.set((self.0.now.get(), ticks, frequency));
    }

    fn frequency(&self) -> u64 {
        self.0.counter.get().2
    }

    fn mono(&self) -> u64 {
        self.0.now.get().wrapping_add_signed(self.0.monotonic.get())
    }

    fn unix(&self) -> u64 {
        self.0.now.get().wrapping_add_signed(self.0.realtime.get())
    }

    /// Somebody sets the wall clock.
    fn set_wall(&self, by: i64) {
        self.0.realtime.set(self.0.realtime.get() + by);
    }

    /// The machine sleeps; the monotonic clock does not count that, the counter runs on.
    fn sleep(&self, ns: u64) {
        self.pass(ns);
        self.0.monotonic.set(self.0.monotonic.get() - ns as i64);
    }

    /// Reading a clock takes time, more if the reader loses the processor.
    fn read(&self, clock: impl FnOnce(&Fake) -> u64) -> u64 {
        let delay = self.0.delays.borrow_mut().pop_front().unwrap_or(12);
        self.pass(delay);
        let value = clock(self);
        self.pass(12);
        value
    }
}

impl Clocks for Fake {
    fn ticks(&self) -> u64 {
        self.read(Fake::tick)
    }
    fn ticks_are_ns(&self) -> bool {
        false
    }
    fn monotonic(&self) -> u64 {
        self.read(Fake::mono)
    }
    fn realtime(&self) -> u64 {
        self.read(Fake::unix)
    }
}

/// Ticks that a span could have, and what was said of them at once.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ticks: u64,
    said: u64,
    /// By the wall clock.
    unix: u64,
}

/// A process whose collector looks after its anchors.
struct Run {
    machine: Fake,
    anchors: Anchors<Fake>,
    pool: &'static Pool,
    samples: Vec<Sample>,
    changes: Vec<Change>,
}

impl Run {
    fn new() -> Run {
        let machine = Fake::new();
        let pool = Pool::new(Space::in_memory(2).unwrap(), Clock::Counter, "{}").unwrap();
        let pool: &'static Pool = Box::leak(Box::new(pool));
        let origin = machine.read_all();
        machine.pass(2 * MS);
        let anchors = Anchors::new(machine.clone(), pool, origin, machine.read_all());
        Run { machine, anchors, pool, samples: Vec::new(), changes: Vec::new() }
    }

    /// Lets time pass in steps, at each of which a span begins and the collector then takes its turn.
    fn pass(&mut self, ns: u64, step: u64) -> &mut Run {
        let end = self.machine.0.now.get() + ns;
        while self.machine.0.now.get() < end {
            self.machine.pass(step);
            self.turn();
        }
        self
    }

    fn turn(&mut self) {
        let (ticks, unix) = (self.machine.tick(), self.machine.unix());
        self.machine.pass(40);
        self.anchors.refresh();
        self.changes.extend(self.anchors.take_change());
        let said = self.anchors.timeline().unix(ticks);
        self.samples.push(Sample { ticks, said, unix });
    }

    /// How far what was said of the last sample is from the wall clock.
    fn ahead(&self) -> i64 {
        let last = self.samples.last().unwrap();
        last.said.wrapping_sub(last.unix) as i64
    }

    /// A second by the machine's counter, as a span of that length would show it.
    fn second(&self) -> u64 {
        let now = self.machine.tick();
        let timeline = self.anchors.timeline();
        timeline.unix(now) - timeline.unix(now - self.machine.frequency())
    }

    /// What always holds: times are in the order of the ticks, none was revised, and a reader of the recording agrees.
    fn check(&self) {
        let timeline = self.anchors.timeline();
        for sample in &self.samples {
            assert_eq!(timeline.unix(sample.ticks), sample.said, "revised: {sample:?}");
        }
        assert!(self.samples.is_sorted_by_key(|sample| sample.said), "a time falls");
        self.check_reader();
    }

    /// What a reader of the recording says of some of the samples.
    fn check_reader(&self) {
        let some = self.samples.iter().step_by(self.samples.len() / 500 + 1);
        let some: Vec<Sample> = some.copied().collect();
        let mut words: Vec<u64> =
            (0..BLOCK / 8).map(|at| self.pool.header(at).load(Ordering::Relaxed)).collect();
        words[header::BLOCKS] = 2;
        words.extend([0; BLOCK / 8]);
        let block = &mut words[BLOCK / 8..];
        block[chunk::KIND] = u64::from(chunk::RECORDS) | (BLOCK as u64) << 32;
        block[chunk::TAIL] = (chunk::HEAD + some.len() * 64) as u64;
        for (number, sample) in some.iter().enumerate() {
            let record = &mut block[chunk::HEAD / 8 + number * 8..][..8];
            record[slot::BEGIN] = sample.ticks;
            record[slot::SPAN] = number as u64 + 1;
            record[slot::TRACE] = 1;
            record[slot::META] = 1 | 8 << 32;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let snapshot = Recording::from_bytes(&bytes).unwrap().snapshot();
        assert_eq!(snapshot.spans.len(), some.len());
        for span in &snapshot.spans {
            let sample = some[span.identity().1.to_u64() as usize - 1];
            assert!(!span.is_uncertain(), "{sample:?}");
            assert_eq!(span.begin(), sample.said, "the reader disagrees on {sample:?}");
        }
    }
}

impl Fake {
    fn read_all(&self) -> Reading {
        Clocks::read(self)
    }
}

/// In whole milliseconds.
fn rounded(ns: i64) -> i64 {
    (ns + MS as i64 / 2).div_euclid(MS as i64)
}

#[test]
fn on_calm_clocks_times_are_within_the_stated_error_for_days() {
    let mut run = Run::new();
    run.pass(2 * SECOND, 5 * MS);
    for day in 0..3 {
        for minute in 0..24 * 60 {
            // The oscillator follows the temperature of the room, a millionth up and down in the day.
            let away = (f64::from(minute) / (24.0 * 60.0) * std::f64::consts::TAU).sin() * 1e-6;
            let frequency = (FREQUENCY as f64 * (1.0 + away)) as u64;
            run.machine.set_counter(run.machine.tick(), frequency);
            run.pass(60 * SECOND, 1_001 * MS);
            let error = run.anchors.stats().error;
            let ahead = run.ahead().unsigned_abs();
            assert!(ahead <= error, "day {day}, minute {minute}: {ahead} of {error} ns");
            assert!(error < 200_000, "{error} ns");
        }
    }
    let anchors = run.anchors.timeline().len();
    assert!(anchors < 1_000, "{anchors} anchors in three days do not last");
    assert!(run.changes.is_empty(), "{:?}", run.changes);
    run.check();
}

#[test]
fn nanoseconds_of_the_monotonic_clock_are_their_own_time() {
    let machine = Clock::Monotonic;
    let pool: &'static Pool =
        Box::leak(Box::new(Pool::new(Space::in_memory(1).unwrap(), machine, "{}").unwrap()));
    let origin = machine.read();
    let anchors = Anchors::new(machine, pool, origin, machine.read());
    let line = *anchors.timeline().last().unwrap();
    for ticks in [origin.ticks, origin.ticks + 1, origin.ticks + HOUR] {
        assert_eq!(line.monotonic(ticks), ticks);
    }
}

#[test]
fn a_wall_clock_that_jumps_forward_is_followed_from_then_on() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    let before = run.samples.len();
    run.machine.set_wall(5 * SECOND as i64);
    run.pass(3 * SECOND, 20 * MS);
    let stepped = run.samples[before..].iter().position(|s| s.said.abs_diff(s.unix) < MS).unwrap();
    assert!(stepped <= 51, "it was seen within a second: {stepped}");
    assert_eq!(run.changes.len(), 1);
    assert_eq!(rounded(run.changes[0].forward as i64), 5_000);
    let stats = run.anchors.stats();
    assert_eq!((stats.wall_forward, stats.wall_backward, stats.counter_jumps), (1, 0, 0));
    run.check();
}

#[test]
fn small_steps_of_the_wall_clock_are_followed_once_they_add_up_to_a_second() {
    let mut run = Run::new();
    run.pass(2 * SECOND, 50 * MS);
    for (step, ahead) in [(400, -400), (400, -800), (400, 0)] {
        run.machine.set_wall(step * MS as i64);
        run.pass(2 * SECOND, 50 * MS);
        assert_eq!(rounded(run.ahead()), ahead);
    }
    assert_eq!(run.changes.len(), 1);
    assert_eq!(rounded(run.changes[0].forward as i64), 1_200);
    run.check();
}

#[test]
fn a_wall_clock_that_is_set_back_is_not_followed_and_is_reported() {
    let mut run = Run::new();
    run.pass(3 * SECOND, 50 * MS);
    run.machine.set_wall(-(HOUR as i64));
    run.pass(3 * SECOND, 50 * MS);
    assert_eq!(run.changes.len(), 1);
    let Change { backward, forward, .. } = run.changes[0];
    assert_eq!((rounded(backward as i64), forward), (3_600_000, 0));
    assert_eq!(rounded(run.anchors.stats().ahead), 3_600_000);
    // Set right again, it is where the times are: nothing to follow, nothing to report.
    run.machine.set_wall(HOUR as i64);
    run.pass(3 * SECOND, 50 * MS);
    assert!(run.ahead().unsigned_abs() < MS);
    assert_eq!(run.changes.len(), 1);
    // And back again is news.
    run.machine.set_wall(-(HOUR as i64));
    run.pass(3 * SECOND, 50 * MS);
    let stats = run.anchors.stats();
    assert_eq!((stats.wall_forward, stats.wall_backward), (0, 2));
    run.check();
}

#[test]
fn a_sleep_through_which_the_counter_ran_is_not_counted_twice() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    run.machine.sleep(8 * HOUR);
    run.pass(3 * SECOND, 20 * MS);
    let worst = run.samples.iter().map(|s| s.said.abs_diff(s.unix)).max().unwrap();
    assert!(worst < MS, "{worst} ns away from the wall clock");
    assert!(run.second().abs_diff(SECOND) < 100, "a second takes {} ns", run.second());
    assert_eq!(run.changes.len(), 1);
    let Change { forward, counter, between, .. } = run.changes[0];
    assert_eq!(rounded(forward as i64), 8 * 3_600_000);
    assert_eq!(rounded(counter), 8 * 3_600_000);
    assert!(between.1 - between.0 >= 8 * HOUR, "the report spans the sleep");
    // What is written afterwards in nanoseconds of the monotonic clock lies beside it.
    let ticks = run.machine.tick();
    let timeline = run.anchors.timeline();
    let beside = timeline.unix_of_monotonic(run.machine.mono());
    assert!(timeline.unix(ticks).abs_diff(beside) < MS);
    run.check();
}

#[test]
fn a_sleep_after_which_the_counter_begins_at_zero_goes_on_with_lines_of_its_own() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    for sleep in [HOUR, 2 * HOUR] {
        run.machine.sleep(sleep);
        run.machine.set_counter(1_000, FREQUENCY);
        run.pass(20 * SECOND, 20 * MS);
        if sleep == HOUR {
            let worst = run.samples.iter().map(|s| s.said.abs_diff(s.unix)).max().unwrap();
            assert!(worst < MS, "{worst} ns away from the wall clock");
            assert_eq!(run.anchors.stats().counter_jumps, 1);
            run.check();
            // Up for longer than it was before, in which the second zero would fall.
            run.machine.set_counter(run.machine.tick() + 30 * FREQUENCY, FREQUENCY);
            run.pass(5 * SECOND, 20 * MS);
        }
    }
    // The second time its ticks are those of the first, which have their times.
    assert!(run.anchors.stats().counter_jumps >= 3);
    let timeline = run.anchors.timeline();
    assert!(run.samples.iter().all(|sample| timeline.unix(sample.ticks) == sample.said));
    run.check_reader();
}

#[test]
fn a_sleep_of_all_clocks_is_a_jump_of_the_wall_clock() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    let ticks = run.machine.tick();
    run.machine.sleep(HOUR);
    run.machine.set_counter(ticks, FREQUENCY);
    run.pass(3 * SECOND, 20 * MS);
    assert!(run.ahead().unsigned_abs() < MS);
    let stats = run.anchors.stats();
    assert_eq!((stats.wall_forward, stats.counter_jumps), (1, 0));
    run.check();
}

#[test]
fn after_a_counter_that_jumps_forward_durations_are_right_and_times_stay_ahead() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    run.machine.set_counter(run.machine.tick() + 600 * FREQUENCY, FREQUENCY);
    run.pass(4 * SECOND, 20 * MS);
    assert_eq!(rounded(run.ahead()), 600_000, "time does not fall");
    assert_eq!(rounded(run.anchors.stats().ahead), 600_000);
    assert!(run.second().abs_diff(SECOND) < 1_000, "a second takes {} ns", run.second());
    assert_eq!(run.changes.len(), 1);
    assert_eq!(rounded(run.changes[0].counter), 600_000);
    run.check();
}

#[test]
fn after_a_counter_that_jumps_back_times_are_too_early_until_it_has_caught_up() {
    let mut run = Run::new();
    run.pass(5 * SECOND, 20 * MS);
    let jumped = run.samples.len();
    run.machine.set_counter(run.machine.tick() - 2 * FREQUENCY, FREQUENCY);
    run.pass(SECOND, 20 * MS);
    assert_eq!(rounded(run.ahead()), -2_000, "its ticks have the times that they had");
    run.pass(3 * SECOND, 20 * MS);
    assert!(run.ahead().unsigned_abs() < MS, "{} ns", run.ahead());
    assert!(run.second().abs_diff(SECOND) < 1_000);
    assert_eq!(run.changes.len(), 1, "{:?}", run.changes);
    assert_eq!(rounded(run.changes[0].counter), -2_000);
    let timeline = run.anchors.timeline();
    assert!(run.samples.iter().all(|sample| timeline.unix(sample.ticks) == sample.said));
    assert!(run.samples[jumped..].is_sorted_by_key(|sample| sample.said));
    run.check_reader();
}

#[test]
fn on_a_machine_with_another_frequency_durations_are_right_after_a_second() {
    for frequency in [FREQUENCY * 6 / 5, FREQUENCY * 4 / 5] {
        let mut run = Run::new();
        run.pass(5 * SECOND, 20 * MS);
        run.machine.set_counter(run.machine.tick(), frequency);
        run.pass(3 * SECOND, 20 * MS);
        let second = run.second();
        assert!(second.abs_diff(SECOND) < 10_000, "a second takes {second} ns");
        assert!(run.ahead().abs() < 300 * MS as i64, "{} ns ahead", run.ahead());
        assert!(run.anchors.stats().counter_jumps >= 1);
        run.check();
    }
}

#[test]
fn a_clock_that_the_kernel_corrects_as_fast_as_it_may_is_followed_without_a_word() {
    let mut run = Run::new();
    run.pass(3 * SECOND, 20 * MS);
    for second in 0..120 {
        // 500 millionths for a minute, then back.
        let faster = if second < 60 { 500 } else { -500 };
        run.machine.set_counter(
            run.machine.tick(),
            FREQUENCY.wrapping_add_signed(FREQUENCY as i64 / 1_000_000 * faster),
        );
        run.pass(SECOND, 20 * MS);
        assert!(run.ahead().unsigned_abs() < 3 * MS, "{} ns after {second} s", run.ahead());
    }
    assert!(run.changes.is_empty(), "{:?}", run.changes);
    run.check();
}

#[test]
fn a_collector_that_loses_the_processor_between_two_clocks_bends_nothing() {
    let mut run = Run::new();
    run.pass(3 * SECOND, 20 * MS);
    let anchors = run.anchors.timeline().len();
    for lost in 0..200 {
        let mut delays = VecDeque::from([12; 12]);
        delays[lost % 12] = 40 * MS;
        *run.machine.0.delays.borrow_mut() = delays;
        run.pass(SECOND / 4, SECOND / 4);
    }
    assert!(run.ahead().unsigned_abs() < 10_000, "{} ns", run.ahead());
    assert!(run.changes.is_empty());
    let more = run.anchors.timeline().len() - anchors;
    assert!(more <= 4, "{more} anchors were needed for nothing");
    // Not even where every single reading takes a millisecond.
    *run.machine.0.delays.borrow_mut() = VecDeque::from(vec![MS; 2_000]);
    run.pass(10 * SECOND, SECOND / 2);
    assert!(run.changes.is_empty());
    assert!(run.second().abs_diff(SECOND) < 10_000, "a second takes {} ns", run.second());
    run.check();
}

#[test]
fn a_collector_that_first_looks_after_seconds_leaves_no_time_uncertain() {
    let mut run = Run::new();
    run.pass(2 * SECOND, 2 * SECOND);
    assert!(run.anchors.timeline().len() >= 2, "{:?}", run.anchors.timeline());
    run.check();
}

#[test]
fn a_collector_that_was_stopped_for_an_hour_finds_no_jump_where_none_was() {
    let mut run = Run::new();
    run.pass(40 * SECOND, 20 * MS);
    run.machine.set_counter(run.machine.tick(), FREQUENCY + FREQUENCY / 20_000);
    run.machine.pass(HOUR);
    run.pass(5 * SECOND, 20 * MS);
    assert!(run.changes.is_empty(), "50 millionths in an hour are drift: {:?}", run.changes);
    run.check();
}

#[test]
fn the_clock_of_this_machine_is_followed_within_the_stated_error() {
    let source = ClockSource::of_this_machine();
    let clock = Clock::of(&source);
    let pool: &'static Pool =
        Box::leak(Box::new(Pool::new(Space::in_memory(1).unwrap(), clock, "{}").unwrap()));
    let origin = clock.read();
    let mut anchors = Anchors::new(clock, pool, origin, clock.read());
    let mut checked = 0;
    for _ in 0..150 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        anchors.refresh();
        let now = clock.read();
        let line = *anchors.timeline().last().unwrap();
        // Beyond a second after the anchor nothing is stated: this thread was not let run.
        if now.monotonic - anchors.next.min(now.monotonic) < 10 * MS {
            let (miss, bound) = (line.miss(now), line.error + now.error);
            assert!(miss <= 10 * bound, "{source}: {miss} ns from the clock, {bound} stated");
            checked += 1;
        }
    }
    assert!(checked > 0, "this machine was too busy to look once");
    assert_eq!(anchors.stats().counter_jumps, 0);
}

/// What can be done to clocks without a tick coming twice.
#[derive(Clone, Copy, Debug)]
enum Event {
    Pass { ns: u64, step: u64 },
    SetWall(i64),
    Sleep(u64),
    Jump(u64),
    Frequency(u64),
    Lose(usize, u64),
}

fn event() -> impl Strategy<Value = Event> {
    let second = SECOND as i64;
    prop_oneof![
        4 => (MS..5 * SECOND, MS..SECOND).prop_map(|(ns, step)| Event::Pass { ns, step }),
        1 => (-4_000 * second..4_000 * second).prop_map(Event::SetWall),
        1 => (-2 * second..2 * second).prop_map(Event::SetWall),
        1 => (MS..20_000 * SECOND).prop_map(Event::Sleep),
        1 => (0..1_000 * FREQUENCY).prop_map(Event::Jump),
        1 => (FREQUENCY / 2..FREQUENCY * 2).prop_map(Event::Frequency),
        1 => (0usize..40, 0..100 * MS).prop_map(|(at, ns)| Event::Lose(at, ns)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_happens_times_never_fall_are_never_revised_and_every_reader_agrees(
        events in prop::collection::vec(event(), 1..25),
    ) {
        let mut run = Run::new();
        for event in events {
            let machine = run.machine.clone();
            match event {
                Event::Pass { ns, step } => drop(run.pass(ns, step.max(ns / 100))),
                Event::SetWall(by) => machine.set_wall(by),
                Event::Sleep(ns) => machine.sleep(ns),
                Event::Jump(ticks) => machine.set_counter(machine.tick() + ticks, machine.frequency()),
                Event::Frequency(frequency) => machine.set_counter(machine.tick(), frequency),
                Event::Lose(at, ns) => {
                    let mut delays = VecDeque::from(vec![12; 40]);
                    delays[at] = ns;
                    *machine.0.delays.borrow_mut() = delays;
                }
            }
            run.turn();
        }
        run.pass(5 * SECOND, 50 * MS);
        prop_assert!(run.second().abs_diff(SECOND) < SECOND / 10, "a second takes {} ns", run.second());
        run.check();
    }
}

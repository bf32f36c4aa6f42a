//! The clock against simulated devices whose truth is known.

use proptest::prelude::*;

use super::{GpuClock, InvalidStamps, RawStamps};

const SECOND: u64 = 1_000_000_000;

/// A GPU whose counter follows the host's clock at a rate of its own.
#[derive(Clone, Copy, Debug)]
struct Device {
    period: f32,
    bits: u32,
    /// Relative error of its oscillator.
    drift: f64,
    /// Its counter's value when the host's clock stood at [`BOOT`].
    start: u64,
}

/// Where the host's clock stands when a simulation begins: a week after its boot.
const BOOT: u64 = 7 * 86_400 * SECOND;

impl Device {
    fn tick(&self, host_ns: u64) -> u64 {
        let elapsed = (host_ns - BOOT) as f64 * (1.0 + self.drift);
        let ticks = (elapsed / f64::from(self.period)) as u64;
        self.start.wrapping_add(ticks) & (u64::MAX >> (64 - self.bits))
    }

    fn clock(&self) -> GpuClock {
        GpuClock::new(self.period).with_valid_bits(self.bits)
    }
}

/// One submission: nanoseconds of idling before it, from submit to the first pass, of each pass with
/// the gap after it, and from the last pass to done.
#[derive(Clone, Debug)]
struct Work {
    idle: u64,
    before: u64,
    passes: Vec<(u64, u64)>,
    after: u64,
}

/// What happened, in the host's time.
struct Happened {
    submit: u64,
    passes: Vec<[u64; 2]>,
    done: u64,
}

impl Work {
    fn happen(&self, now: &mut u64) -> Happened {
        *now += self.idle;
        let submit = *now;
        *now += self.before;
        let mut passes = Vec::new();
        for &(length, gap) in &self.passes {
            passes.push([*now, *now + length]);
            *now += length + gap;
        }
        *now += self.after;
        Happened { submit, passes, done: *now }
    }
}

impl Happened {
    fn stamps(&self, device: &Device) -> Vec<[u64; 2]> {
        self.passes.iter().map(|pass| pass.map(|host| device.tick(host).max(1))).collect()
    }
}

fn device() -> impl Strategy<Value = Device> {
    let period = prop_oneof![Just(1.0_f32), Just(52.083), Just(0.96), Just(10.0)];
    (period, prop_oneof![Just(36_u32), Just(64)], -30e-6..30e-6, any::<u64>()).prop_map(
        |(period, bits, drift, start)| {
            let start = start >> (64 - bits);
            Device { period, bits, drift, start }
        },
    )
}

fn work() -> impl Strategy<Value = Work> {
    let pass = (0..50_000_000_u64, 0..100_000_u64);
    let passes = prop::collection::vec(pass, 1..8);
    (0..10 * SECOND, 0..500_000_u64, passes, 1_000..2_000_000_u64)
        .prop_map(|(idle, before, passes, after)| Work { idle, before, passes, after })
}

proptest! {
    #[test]
    fn the_true_error_stays_below_the_stated_one_through_drift_and_wraps(
        device in device(),
        works in prop::collection::vec(work(), 1..40),
    ) {
        let (mut clock, mut now) = (device.clock(), BOOT);
        for work in works {
            let truth = work.happen(&mut now);
            let (submit_ns, done_ns) = (truth.submit, truth.done);
            let stamps = truth.stamps(&device);
            let mapped = clock.map(&RawStamps { passes: &stamps, submit_ns, done_ns }).unwrap();
            for (mapped_pass, pass) in mapped.passes.iter().zip(&truth.passes) {
                let errors = [mapped_pass.begin_ns.abs_diff(pass[0]), mapped_pass.end_ns.abs_diff(pass[1])];
                prop_assert!(errors.iter().all(|&error| error <= mapped.uncertainty_ns), "{errors:?}");
            }
            prop_assert!(mapped.uncertainty_ns <= (done_ns - submit_ns) / 2 + 1_100);
        }
        prop_assert_eq!(clock.resets(), 0);
    }

    #[test]
    fn passes_keep_their_order_and_stay_within_their_submission(
        device in device(),
        works in prop::collection::vec(work(), 1..20),
    ) {
        let (mut clock, mut now) = (device.clock(), BOOT);
        for work in works {
            let truth = work.happen(&mut now);
            let (submit_ns, done_ns) = (truth.submit, truth.done);
            let stamps = truth.stamps(&device);
            let mapped = clock.map(&RawStamps { passes: &stamps, submit_ns, done_ns }).unwrap();
            let times: Vec<u64> = [submit_ns]
                .into_iter()
                .chain(mapped.passes.iter().flat_map(|pass| [pass.begin_ns, pass.end_ns]))
                .chain([done_ns])
                .collect();
            prop_assert!(times.is_sorted(), "{times:?}");
        }
    }

    #[test]
    fn no_stamps_whatever_make_it_panic_or_leave_the_submission(
        passes in prop::collection::vec(any::<[u64; 2]>(), 0..5),
        period in any::<f32>(),
        bits in any::<u32>(),
        times in any::<[(u64, u64); 3]>(),
    ) {
        let mut clock = GpuClock::new(period).with_valid_bits(bits);
        for (submit_ns, done_ns) in times {
            if let Ok(mapped) = clock.map(&RawStamps { passes: &passes, submit_ns, done_ns }) {
                for pass in mapped.passes {
                    prop_assert!(submit_ns <= pass.begin_ns && pass.begin_ns <= pass.end_ns);
                    prop_assert!(pass.end_ns <= done_ns);
                }
            }
        }
    }
}

/// The device of the examples below: a tick a nanosecond, one second behind the host.
const PLAIN: Device = Device { period: 1.0, bits: 64, drift: 0.0, start: 5 };

fn map(clock: &mut GpuClock, passes: &[[u64; 2]], submit_ns: u64, done_ns: u64) -> Outcome {
    let mapped = clock.map(&RawStamps { passes, submit_ns, done_ns })?;
    Ok(mapped.passes.iter().map(|pass| [pass.begin_ns, pass.end_ns]).collect())
}

type Outcome = Result<Vec<[u64; 2]>, InvalidStamps>;

#[test]
fn a_pass_lies_in_the_middle_of_what_its_submission_allows() {
    let mut clock = GpuClock::new(1.0);
    let mapped = map(&mut clock, &[[500, 600]], 10_000, 10_300);
    assert_eq!(mapped, Ok(vec![[10_100, 10_200]]));
}

#[test]
fn a_tight_submission_makes_a_later_loose_one_certain() {
    let mut clock = PLAIN.clock();
    let tight = Work { idle: 0, before: 10, passes: vec![(100, 0)], after: 10 };
    let loose = Work { idle: 1_000, before: 90_000, passes: vec![(100, 0)], after: 10 };
    let mut now = BOOT;
    for work in [tight, loose] {
        let truth = work.happen(&mut now);
        let stamps = truth.stamps(&PLAIN);
        let stamps = RawStamps { passes: &stamps, submit_ns: truth.submit, done_ns: truth.done };
        assert!(clock.map(&stamps).unwrap().uncertainty_ns < 20);
    }
}

#[test]
fn a_stamp_of_zero_is_missing() {
    let mut clock = GpuClock::new(1.0);
    let outcome = map(&mut clock, &[[5, 6], [7, 0]], 0, 100);
    assert_eq!(outcome, Err(InvalidStamps::Missing { pass: 1 }));
    let outcome = map(&mut clock, &[[0, 0]], 0, 100);
    assert_eq!(outcome, Err(InvalidStamps::Missing { pass: 0 }));
}

#[test]
fn a_pass_that_ends_before_it_begins_is_invalid_and_never_huge_or_clamped() {
    let mut clock = GpuClock::new(1.0);
    let outcome = map(&mut clock, &[[5, 9], [10, 9]], 0, 100);
    assert_eq!(outcome, Err(InvalidStamps::Reversed { pass: 1 }));
}

#[test]
fn passes_that_took_longer_than_the_host_waited_are_invalid() {
    let mut clock = GpuClock::new(1.0);
    let outcome = map(&mut clock, &[[1_000, 3_000]], 0, 1_000);
    assert_eq!(outcome, Err(InvalidStamps::TooLong));
    let outcome = map(&mut clock, &[[1_000, 1_001]], 1_000, 999);
    assert_eq!(outcome, Err(InvalidStamps::TooLong));
}

#[test]
fn a_device_that_tells_no_period_gets_no_times() {
    for period in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let outcome = map(&mut GpuClock::new(period), &[[5, 6]], 0, 100);
        assert_eq!(outcome, Err(InvalidStamps::Period));
    }
}

#[test]
fn invalid_stamps_teach_nothing() {
    let mut clock = GpuClock::new(1.0);
    map(&mut clock, &[[1_000, 1_100]], 50_000, 50_110).unwrap();
    for passes in [[0, 0], [900, 800], [1_000_000, 9_000_000]] {
        map(&mut clock, &[passes], 60_000, 60_100).unwrap_err();
    }
    let mapped = map(&mut clock, &[[2_000, 2_100]], 51_000, 59_000).unwrap();
    assert_eq!(mapped, vec![[51_005, 51_105]]);
    assert_eq!(clock.resets(), 0);
}

#[test]
fn a_step_of_the_device_s_clock_is_a_reset_and_then_as_good_as_new() {
    let mut clock = GpuClock::new(1.0);
    map(&mut clock, &[[1_000, 1_100]], 50_000, 50_120).unwrap();
    let mapped = map(&mut clock, &[[11_850_000_000, 11_850_000_100]], 60_000, 60_120);
    assert_eq!(mapped, Ok(vec![[60_010, 60_110]]));
    assert_eq!(clock.resets(), 1);
}

#[test]
fn a_counter_that_wraps_between_two_stamps_goes_on_if_its_bits_are_known() {
    let wrap = 1_u64 << 36;
    let passes = [[wrap - 100, 50], [60, 70]];
    let mut clock = GpuClock::new(1.0).with_valid_bits(36);
    assert_eq!(map(&mut clock, &passes, 0, 170), Ok(vec![[0, 150], [160, 170]]));
    let outcome = map(&mut GpuClock::new(1.0), &passes, 0, 170);
    assert_eq!(outcome, Err(InvalidStamps::Reversed { pass: 0 }));
}

#[test]
fn a_missed_wrap_is_a_reset() {
    let device = Device { bits: 36, ..PLAIN };
    let mut clock = device.clock();
    let work = Work { idle: 600 * SECOND, before: 1_000, passes: vec![(500, 0)], after: 1_000 };
    let mut now = BOOT;
    for resets in 0..3 {
        let truth = work.happen(&mut now);
        let stamps = truth.stamps(&device);
        let mapped = map(&mut clock, &stamps, truth.submit, truth.done).unwrap();
        assert!(mapped[0][0].abs_diff(truth.passes[0][0]) <= 1_100);
        assert_eq!(clock.resets(), resets);
    }
}

#[test]
fn two_devices_have_clocks_of_their_own() {
    let devices = [PLAIN, Device { period: 52.083, start: 1 << 40, drift: 20e-6, ..PLAIN }];
    let mut clocks = devices.map(|device| device.clock());
    let work = Work { idle: SECOND, before: 900, passes: vec![(70_000, 0)], after: 900 };
    let mut now = BOOT;
    for _ in 0..10 {
        let truth = work.happen(&mut now);
        for (device, clock) in devices.iter().zip(&mut clocks) {
            let stamps = truth.stamps(device);
            let mapped = map(clock, &stamps, truth.submit, truth.done).unwrap();
            assert!(mapped[0][0].abs_diff(truth.passes[0][0]) < 1_000);
        }
    }
    assert_eq!(clocks.map(|clock| clock.resets()), [0, 0]);
}

#[test]
fn no_passes_are_no_times() {
    assert_eq!(map(&mut GpuClock::new(1.0), &[], 10, 20), Ok(vec![]));
}

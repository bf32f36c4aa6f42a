//! How long single spans take, and what is lost flat out: cases that are not bursts.

use super::Size;
use super::sample::Samples;
use crate::measure::{TickRate, floor, peak_memory, process_cpu, ticks};
use crate::peers::Peer;
use std::time::{Duration, Instant};

/// Children below each root.
const CHILDREN: usize = 100;
/// Spans after which all has to leave, so that no queue runs over.
const PIECE: usize = 50_000;

/// Spans about 0.5 µs apart, each timed by itself.
pub(super) fn measure<P: Peer>(size: Size) -> Samples {
    let rate = TickRate::start();
    let mut samples = Samples { floor: vec![floor()], ..Samples::default() };
    let mut taken: Vec<u64> = Vec::with_capacity(size.tail + CHILDREN);
    while taken.len() < size.tail {
        P::in_root(|| {
            for i in 0..CHILDREN {
                let begin = ticks();
                P::child(i);
                taken.push(ticks() - begin);
                (0..25).for_each(|_| std::hint::spin_loop());
            }
        });
        if taken.len().is_multiple_of(PIECE) {
            P::flush();
        }
    }
    let ns_per_tick = rate.ns_per_tick();
    taken.sort_unstable();
    let at = |part: f64| {
        let place = (taken.len() as f64 * part) as usize;
        taken[place.min(taken.len() - 1)] as f64 * ns_per_tick
    };
    samples.note("p50_ns", at(0.5));
    samples.note("p99_ns", at(0.99));
    samples.note("p99.9_ns", at(0.999));
    samples.note("p99.99_ns", at(0.9999));
    samples.note("max_ns", at(1.0));
    P::flush();
    let spans = taken.len() + taken.len() / CHILDREN;
    samples.note("exported", P::exported() as f64 / spans as f64);
    samples
}

/// As many spans as go in some time.
pub(super) fn flood<P: Peer>(size: Size) -> Samples {
    let mut samples = Samples { floor: vec![floor()], ..Samples::default() };
    let (start, cpu) = (Instant::now(), process_cpu());
    let mut spans = 0;
    while start.elapsed() < size.flood {
        for _ in 0..100 {
            P::in_root(|| (0..CHILDREN).for_each(P::child));
            spans += CHILDREN + 1;
        }
    }
    let hot = start.elapsed();
    P::flush();
    // What leaves later by itself counts as well.
    std::thread::sleep(Duration::from_millis(100));
    P::flush();
    let exported = P::exported() as f64;
    samples.hot.push(hot.as_nanos() as f64 / spans as f64);
    samples.total.push((process_cpu() - cpu).as_nanos() as f64 / exported.max(1.0));
    samples.note("exported", exported / spans as f64);
    if let Some(peak) = peak_memory() {
        samples.note("peak_mib", peak);
    }
    samples
}

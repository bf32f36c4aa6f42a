//! How busy processes were over time: shares of buckets, from spans in any order.

use hashbrown::HashMap;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::json::number;
use crate::store::Name;

/// Buckets of a window.
pub(super) const BUCKETS: usize = 120;
/// Parts of a bucket in which a process is either busy or not.
const PARTS: usize = 32;
const SLOTS: usize = BUCKETS * PARTS;

/// The time that is looked at, in buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    from: u64,
    /// Nanoseconds of a bucket, a whole number of parts.
    bucket: u64,
}

/// How much was done in each bucket of a window.
pub(super) struct Work {
    /// Nanoseconds of work in each bucket that a span covers a part of.
    part: Vec<f64>,
    /// Changes of the rate of work, from bucket to bucket, of spans that cover whole ones.
    rate: Vec<f64>,
    sum: f64,
}

/// How busy one process was.
struct Busy {
    /// Changes of how many spans cover a whole slot.
    covers: Vec<i32>,
    /// Share of each slot that spans cover in part.
    part: Vec<f32>,
    work: Work,
}

/// How busy processes were.
pub(super) struct Usage {
    window: Window,
    /// By process; only those that are told of.
    busy: Vec<Option<Busy>>,
    stages: HashMap<Name, Work>,
}

impl Window {
    /// `None` if it is empty.
    pub(super) fn new(from: u64, until: u64) -> Option<Self> {
        let slot = (until.checked_sub(from)? / SLOTS as u64).saturating_add(1);
        Some(Self { from, bucket: slot.checked_mul(PARTS as u64)? })
    }

    fn slot(&self) -> f64 {
        (self.bucket / PARTS as u64) as f64
    }

    /// A time within the window, in slots.
    fn place(&self, at: u64) -> f64 {
        at.saturating_sub(self.from) as f64 / self.slot()
    }

    /// Begin and end within the window, in slots; `None` if all of it lies elsewhere.
    fn clip(&self, (start, end): (u64, u64)) -> Option<(f64, f64)> {
        if start == 0 || end < self.from {
            return None;
        }
        let (first, last) = (self.place(start), self.place(end.max(start)).min(SLOTS as f64));
        (first < SLOTS as f64).then_some((first, last))
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Window", 3)?;
        object.serialize_field("from_unix_nano", &number(self.from))?;
        object.serialize_field("bucket_ns", &number(self.bucket))?;
        object.serialize_field("buckets", &BUCKETS)?;
        object.end()
    }
}

impl Work {
    pub(super) fn new(buckets: usize) -> Self {
        Self { part: vec![0.0; buckets], rate: vec![0.0; buckets + 1], sum: 0.0 }
    }

    /// Adds work that was spread evenly over a time, which is in buckets.
    pub(super) fn add(&mut self, (first, last): (f64, f64), rate: f64) {
        self.sum += rate * (last - first);
        let (from, until) = (first as usize, (last as usize).min(self.part.len() - 1));
        if from == until {
            self.part[from] += rate * (last - first);
            return;
        }
        self.part[from] += rate * (from as f64 + 1.0 - first);
        self.part[until] += rate * (last - until as f64);
        self.rate[from + 1] += rate;
        self.rate[until] -= rate;
    }

    /// How many were at work at once, in each bucket.
    pub(super) fn at_once(&self) -> Vec<f32> {
        let mut rate = 0.0;
        let each = self.part.iter().zip(&self.rate).map(|(part, change)| {
            rate += change;
            // What additions and subtractions leave of nothing is nothing.
            ((part + rate).max(0.0) * 1000.0).round() as f32 / 1000.0
        });
        each.collect()
    }
}

impl Busy {
    fn new() -> Self {
        Self { covers: vec![0; SLOTS + 1], part: vec![0.0; SLOTS], work: Work::new(BUCKETS) }
    }

    fn cover(&mut self, (first, last): (f64, f64), share: f64) {
        let (from, until) = (first as usize, (last as usize).min(SLOTS - 1));
        if from == until {
            self.part[from] += ((last - first) * share) as f32;
            return;
        }
        self.part[from] += (from as f64 + 1.0 - first) as f32;
        self.part[until] += (last - until as f64) as f32;
        self.covers[from + 1] += 1;
        self.covers[until] -= 1;
    }

    /// Share of each bucket in hundredths, and of the whole.
    fn shares(&self) -> (Vec<u8>, f64) {
        let mut cover = 0;
        let slots: Vec<f32> = self
            .covers
            .iter()
            .zip(&self.part)
            .map(|(change, part)| {
                cover += change;
                if cover > 0 { 1.0 } else { part.min(1.0) }
            })
            .collect();
        let share = |slots: &[f32]| f64::from(slots.iter().sum::<f32>()) / slots.len() as f64;
        let buckets = slots.chunks(PARTS).map(|bucket| (share(bucket) * 100.0).round() as u8);
        (buckets.collect(), (share(&slots) * 10_000.0).round() / 10_000.0)
    }
}

impl Usage {
    /// Nothing was done yet. Only these processes are told of, by their numbers.
    pub(super) fn new(window: Window, told: impl Iterator<Item = usize>, processes: usize) -> Self {
        let mut busy = Vec::new();
        busy.resize_with(processes, || None);
        for place in told {
            busy[place] = Some(Busy::new());
        }
        Self { window, busy, stages: HashMap::new() }
    }

    /// Adds a span: from when to when it was open, and nanoseconds of work that it did itself.
    pub(super) fn add(&mut self, process: usize, stage: Option<Name>, open: (u64, u64), work: u64) {
        let Some(clipped) = self.window.clip(open) else { return };
        if let Some(busy) = &mut self.busy[process] {
            // A short span leaves its own work only, so that what it calls does not count twice.
            let duration = open.1.saturating_sub(open.0);
            let share = if duration == 0 { 0.0 } else { work as f64 / duration as f64 };
            busy.cover(clipped, share);
        }
        if work > 0 {
            self.add_clipped(process, stage, clipped, open, work);
        }
    }

    /// Adds only the work.
    pub(super) fn add_work(
        &mut self,
        process: usize,
        stage: Option<Name>,
        open: (u64, u64),
        work: u64,
    ) {
        if let Some(clipped) = self.window.clip(open) {
            self.add_clipped(process, stage, clipped, open, work);
        }
    }

    fn add_clipped(
        &mut self,
        process: usize,
        stage: Option<Name>,
        clipped: (f64, f64),
        open: (u64, u64),
        work: u64,
    ) {
        let buckets = (clipped.0 / PARTS as f64, clipped.1 / PARTS as f64);
        let rate = work as f64 / open.1.saturating_sub(open.0).max(1) as f64;
        if let Some(busy) = &mut self.busy[process] {
            busy.work.add(buckets, rate);
        }
        if let Some(stage) = stage {
            self.stages.entry(stage).or_insert_with(|| Work::new(BUCKETS)).add(buckets, rate);
        }
    }

    /// The most used stages, the most used first.
    pub(super) fn stages(&self, most: usize) -> Vec<(Name, Vec<f32>)> {
        let mut all: Vec<_> = self.stages.iter().filter(|(_, work)| work.sum > 0.0).collect();
        all.sort_by(|one, other| {
            other.1.sum.total_cmp(&one.1.sum).then_with(|| one.0.cmp(other.0))
        });
        all.into_iter().take(most).map(|(name, work)| (*name, work.at_once())).collect()
    }

    /// Of a process: its share of each bucket in hundredths, how many were at work at once, its share of the whole.
    pub(super) fn of(&self, process: usize) -> (Vec<u8>, Vec<f32>, Option<f64>) {
        let Some(busy) = &self.busy[process] else { return Default::default() };
        let (shares, whole) = busy.shares();
        (shares, busy.work.at_once(), Some(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of so many nanoseconds in a slot.
    fn window(slot: u64) -> Window {
        Window::new(1000, 1000 + slot * SLOTS as u64 - 1).expect("it is not empty")
    }

    #[test]
    fn what_covers_half_of_the_window_makes_half_of_it_busy() {
        let mut usage = Usage::new(window(10), [0].into_iter(), 1);
        let half = 1000 + 5 * SLOTS as u64;
        usage.add(0, None, (1000, half), 0);
        let (busy, _, whole) = usage.of(0);
        assert_eq!(whole, Some(0.5));
        assert!(busy[..BUCKETS / 2].iter().all(|share| *share == 100), "{busy:?}");
        assert!(busy[BUCKETS / 2..].iter().all(|share| *share == 0), "{busy:?}");
    }

    #[test]
    fn nested_and_parallel_spans_are_busy_once_and_at_work_each() {
        let mut usage = Usage::new(window(10), [0].into_iter(), 1);
        let end = 1000 + 10 * SLOTS as u64;
        // A root that only waits for two that run side by side.
        usage.add(0, None, (1000, end), 0);
        usage.add(0, None, (1000, end), end - 1000);
        usage.add(0, None, (1000, end), end - 1000);
        let (busy, at_once, whole) = usage.of(0);
        assert_eq!(whole, Some(1.0));
        assert!(busy.iter().all(|share| *share == 100));
        assert!(at_once.iter().all(|count| *count == 2.0), "{at_once:?}");
    }

    #[test]
    fn what_lies_outside_does_not_count_and_what_reaches_in_counts_as_far() {
        let mut usage = Usage::new(window(10), [0].into_iter(), 1);
        let bucket = 10 * PARTS as u64;
        usage.add(0, None, (1, 999), 998);
        usage.add(0, None, (1000 + 10 * SLOTS as u64, u64::MAX), 5);
        usage.add(0, None, (0, 5000), 5000);
        usage.add(0, None, (500, 1000 + bucket), 500 + bucket);
        let (busy, at_once, _) = usage.of(0);
        assert_eq!((busy[0], busy[1]), (100, 0));
        assert_eq!((at_once[0], at_once[1]), (1.0, 0.0));
    }

    #[test]
    fn spans_shorter_than_a_slot_add_up() {
        let mut usage = Usage::new(window(1000), [0].into_iter(), 1);
        for at in 0..SLOTS as u64 {
            let start = 1000 + at * 1000 + 100;
            // Half of the slot, and a child that takes most of that.
            usage.add(0, None, (start, start + 500), 100);
            usage.add(0, None, (start, start + 400), 400);
        }
        let (busy, at_once, whole) = usage.of(0);
        assert_eq!(whole, Some(0.5));
        assert!(busy.iter().all(|share| *share == 50) && at_once.iter().all(|count| *count == 0.5));
    }

    #[test]
    fn hostile_times_are_no_window_or_a_long_one() {
        assert!(Window::new(10, 9).is_none());
        assert!(Window::new(10, 10).is_some());
        let window = Window::new(0, u64::MAX);
        let mut usage = Usage::new(window.expect("it is one"), [0].into_iter(), 1);
        usage.add(0, None, (1, u64::MAX), u64::MAX);
        usage.add(0, None, (u64::MAX, 1), 0);
        assert!(usage.of(0).0.iter().all(|share| *share == 100));
    }
}

//! How many samples were in which stage, over time.

use hashbrown::HashMap;
use serde::Serialize;

use super::course::{Part, add_parts, extent};
use super::json::number;
use crate::rules::{Sample, Samples};
use crate::store::{Name, Store};

/// Parts of time.
const BUCKETS: usize = 160;
/// Most stages that are told apart.
const STAGES: usize = 12;

/// How many samples were in which of the stages right below their roots, on average in each of many
/// parts of time that are equally long.
#[derive(Debug, Serialize)]
pub(crate) struct Flow {
    from_unix_nano: String,
    bucket_ns: String,
    /// Samples that had begun and not ended.
    samples: Vec<f64>,
    /// Those with the most time first.
    stages: Vec<Series>,
}

#[derive(Debug, Serialize)]
struct Series {
    /// `null` for all others.
    stage: Option<String>,
    samples: Vec<f64>,
}

impl Flow {
    /// `chosen` are samples with their places among those of their traces.
    pub(super) fn new(
        store: &Store,
        samples: &Samples,
        chosen: &[(Sample, usize)],
        now: u64,
    ) -> Option<Self> {
        let extents = chosen.iter().filter_map(|(sample, _)| extent(store, sample, now));
        let extents: Vec<_> = extents.collect();
        let from = extents.iter().map(|(start, _)| *start).min()?;
        let until = extents.iter().map(|(_, end)| *end).max()?;
        let width = ((until - from) / BUCKETS as u64).saturating_add(1);
        let time = Time { from, width };
        let mut all = Cover::default();
        extents.iter().for_each(|(start, end)| all.add(time, *start, *end));
        let mut by_stage: HashMap<Name, Cover> = HashMap::new();
        let mut parts = Vec::new();
        for (sample, place) in chosen {
            parts.clear();
            add_parts(store, samples, sample, *place, now, &mut parts);
            each_once(&parts, |stage, start, end| {
                by_stage.entry(stage).or_default().add(time, start, end);
            });
        }
        let mut stages: Vec<_> = by_stage
            .into_iter()
            .map(|(stage, cover)| (Some(store.text(stage)), cover.into_counts()))
            .collect();
        let whole = |counts: &[f64]| counts.iter().sum::<f64>();
        stages.sort_by(|(one_stage, one), (other_stage, other)| {
            whole(other).total_cmp(&whole(one)).then_with(|| one_stage.cmp(other_stage))
        });
        if stages.len() > STAGES {
            let mut others = vec![0.0; BUCKETS];
            for (_, counts) in stages.drain(STAGES - 1..) {
                others.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            stages.push((None, others));
        }
        let series = stages.into_iter().map(|(stage, samples)| Series {
            stage,
            samples: samples.into_iter().map(rounded).collect(),
        });
        Some(Self {
            from_unix_nano: number(from),
            bucket_ns: number(width),
            samples: all.into_counts().into_iter().map(rounded).collect(),
            stages: series.collect(),
        })
    }
}

/// Calls with stage, begin and end of each part, cut where a sample is in the same stage several times
/// at once.
fn each_once(parts: &[Part], mut call: impl FnMut(Name, u64, u64)) {
    let mut until: Vec<(Name, u64)> = Vec::new();
    for part in parts {
        let known = until.iter().position(|(stage, _)| *stage == part.stage);
        let covered = known.map_or(0, |at| until[at].1);
        let start = part.start.max(covered);
        if start < part.end {
            call(part.stage, start, part.end);
        }
        match known {
            Some(at) => until[at].1 = covered.max(part.end),
            None => until.push((part.stage, part.end)),
        }
    }
}

fn rounded(count: f64) -> f64 {
    (count * 100.0).round() / 100.0
}

#[derive(Clone, Copy)]
struct Time {
    from: u64,
    width: u64,
}

/// Counts how many there are in each bucket, in constant time for each.
struct Cover {
    parts: [f64; BUCKETS],
    changes: [f64; BUCKETS + 1],
}

impl Default for Cover {
    fn default() -> Self {
        Self { parts: [0.0; BUCKETS], changes: [0.0; BUCKETS + 1] }
    }
}

impl Cover {
    fn add(&mut self, time: Time, start: u64, end: u64) {
        let place = |at: u64| {
            let place = at.saturating_sub(time.from) as f64 / time.width as f64;
            place.clamp(0.0, BUCKETS as f64)
        };
        let (start, end) = (place(start), place(end));
        let (first, last) = (start as usize, end as usize);
        if first >= BUCKETS {
            return;
        }
        if first == last {
            self.parts[first] += end - start;
            return;
        }
        self.parts[first] += first as f64 + 1.0 - start;
        self.changes[first + 1] += 1.0;
        self.changes[last] -= 1.0;
        if let Some(part) = self.parts.get_mut(last) {
            *part += end - last as f64;
        }
    }

    fn into_counts(self) -> Vec<f64> {
        let mut running = 0.0;
        let counts = self.parts.iter().zip(self.changes).map(|(part, change)| {
            running += change;
            running + part
        });
        counts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_counts_the_part_of_its_time_that_is_covered() {
        let time = Time { from: 1000, width: 10 };
        let mut cover = Cover::default();
        cover.add(time, 1005, 1025);
        cover.add(time, 1021, 1024);
        cover.add(time, 0, 1010);
        let counts: Vec<_> = cover.into_counts().into_iter().map(rounded).collect();
        assert_eq!(counts[..4], [1.5, 1.0, 0.8, 0.0]);
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_counted_twice(
            spans in prop::collection::vec((0_u64..1600, 0_u64..1600), 0..20),
        ) {
            let time = Time { from: 0, width: 10 };
            let mut cover = Cover::default();
            let mut whole = 0;
            for (one, other) in spans {
                cover.add(time, one.min(other), one.max(other));
                whole += one.abs_diff(other);
            }
            let counted: f64 = cover.into_counts().iter().sum::<f64>() * 10.0;
            prop_assert!((counted - whole as f64).abs() < 1e-6);
        }
    }
}

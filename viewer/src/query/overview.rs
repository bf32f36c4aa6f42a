//! The first page: the summary without its long lists, distributions, and how it went over time.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use super::json::{keep_exact, number};
use super::rows::{SelfTime, Summary};
use super::samples::Row;
use super::stages::StageRow;
use super::summary::{SummaryOptions, UnknownStep, choose};
use crate::rules::{SampleRow, Samples, Status, Totals};
use crate::source::SourceReport;
use crate::store::Store;

/// Most rows of each list; the page of samples has all.
const ROWS: usize = 50;
/// Most stages by the time of their own, and most of those with the most frequent errors.
const STAGES: usize = 50;
const ERRORS: usize = 30;
/// Most of the slowest samples.
const SLOWEST: usize = 12;
/// Bars of the chart over time.
const BARS: usize = 80;

/// The first page.
#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    summary: Summary,
    /// How many there are, of which the summary lists the first.
    open_samples: usize,
    stuck: usize,
    lost: usize,
    occupied_stages: usize,
    ended_stages: usize,
    /// Nanoseconds of all stages.
    self_ns: String,
    distributions: Vec<Distribution>,
    timeline: Option<Timeline>,
    slowest: Vec<Row>,
}

/// How the durations of a stage's ended spans spread: a bar for each half of a power of two.
#[derive(Debug, Serialize)]
struct Distribution {
    stage: String,
    /// Nanoseconds at which the first bar begins; each next one begins √2 times later.
    from_ns: f64,
    bars: Vec<u32>,
}

/// Ended samples over time, in bars of equal width.
#[derive(Debug, Serialize)]
struct Timeline {
    from_unix_nano: String,
    bar_ns: String,
    bars: Vec<Bar>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Bar {
    /// Samples that began in it.
    begun: u32,
    /// Samples that ended in it.
    ended: u32,
    /// Those of them that failed.
    failed: u32,
    /// Nanoseconds that half of them did not exceed; `null` if none ended.
    p50_ns: Option<String>,
    /// Nanoseconds that 99 of 100 did not exceed.
    p99_ns: Option<String>,
}

impl Overview {
    /// # Errors
    /// If no sample is of the step.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        sources: &SourceReport,
        options: &SummaryOptions,
    ) -> Result<Self, UnknownStep> {
        let step = choose(store, samples.steps(), &options.step)?;
        let mut summary = Summary::new(store, samples, sources, options)?;
        let counts = [summary.open_samples.len(), summary.stuck.len(), summary.lost.len()];
        summary.open_samples.truncate(ROWS);
        summary.stuck.truncate(ROWS);
        summary.lost.truncate(ROWS);
        let [open_samples, stuck, lost] = counts;
        let [occupied_stages, ended_stages] = [summary.occupancy.len(), summary.stages.len()];
        let self_ns = shorten(&mut summary);
        keep_ids_exact(&mut summary);
        let mut distributions = distributions(store, &samples.totals(store, step));
        let kept: HashSet<_> = summary.stages.iter().map(|row| row.stage.clone()).collect();
        distributions.retain(|one| kept.contains(&one.stage));
        let chosen = || -> Box<dyn Iterator<Item = SampleRow<'_>> + '_> {
            match step {
                None => Box::new(samples.rows()),
                Some(step) => Box::new(samples.rows_of_step(step)),
            }
        };
        Ok(Self {
            distributions,
            timeline: timeline(chosen()),
            slowest: slowest(store, samples, options.now, chosen()),
            summary,
            open_samples,
            stuck,
            lost,
            occupied_stages,
            ended_stages,
            self_ns,
        })
    }
}

fn keep_ids_exact(summary: &mut Summary) {
    let samples = summary.open_samples.iter_mut();
    let open = samples.flat_map(|row| [&mut row.rollout_id, &mut row.group_id, &mut row.step]);
    let stuck = summary.stuck.iter_mut();
    let stuck = stuck.flat_map(|row| [&mut row.rollout_id, &mut row.group_id, &mut row.step]);
    let lost = summary.lost.iter_mut();
    let lost = lost.flat_map(|row| [&mut row.rollout_id, &mut row.group_id, &mut row.step]);
    let oldest = summary.occupancy.iter_mut().map(|row| &mut row.oldest_rollout_id);
    let steps = [&mut summary.step, &mut summary.latest_step];
    let steps = summary.available_steps.iter_mut().chain(steps);
    open.chain(stuck).chain(lost).chain(oldest).chain(steps).for_each(keep_exact);
}

/// Leaves what the page shows of stages: those in which the most samples are, those that took the most
/// time, and those where the most frequent errors arose. Says how many nanoseconds all took.
fn shorten(summary: &mut Summary) -> String {
    if summary.occupancy.len() > STAGES {
        summary.occupancy.sort_by_key(|row| Reverse(row.samples));
        summary.occupancy.truncate(STAGES);
    }
    let nanoseconds = |row: &SelfTime| row.self_ns.parse::<u128>().unwrap_or(0);
    let all: u128 = summary.self_times.iter().map(nanoseconds).sum();
    let own: HashMap<_, _> =
        summary.self_times.iter().map(|row| (row.stage.as_str(), nanoseconds(row))).collect();
    let stages = std::mem::take(&mut summary.stages).into_iter();
    let mut stages: Vec<_> = stages.map(StageRow::shortened).collect();
    stages.sort_by_key(|row| Reverse(own.get(row.stage.as_str()).copied()));
    let counts = stages.iter().flat_map(|row| row.errors.iter().map(|error| error.samples));
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let least = counts.get(ERRORS - 1).copied().unwrap_or(0);
    let mut room = ERRORS.saturating_sub(counts.iter().filter(|count| **count > least).count());
    for row in &mut stages {
        row.errors.retain(|error| {
            let is_last = error.samples == least && room > 0;
            room -= usize::from(is_last);
            error.samples > least || is_last
        });
    }
    let mut place = 0..;
    stages.retain(|row| place.next() < Some(STAGES) || !row.errors.is_empty());
    stages.sort_by(|one, other| one.stage.cmp(&other.stage));
    summary.stages = stages;
    all.to_string()
}

fn distributions(store: &Store, totals: &Totals) -> Vec<Distribution> {
    let all = totals.stages.iter().filter_map(|(stage, totals)| {
        let mut below = 0;
        let bars = (0..128).map(|bar| {
            let all = totals.durations.up_to(last_of_bar(bar));
            (all - std::mem::replace(&mut below, all)) as u32
        });
        let bars: Vec<u32> = bars.collect();
        let first = bars.iter().position(|count| *count > 0)?;
        let last = bars.iter().rposition(|count| *count > 0)?;
        Some(Distribution {
            stage: store.text(*stage),
            from_ns: (first as f64 / 2.0).exp2(),
            bars: bars[first..=last].to_vec(),
        })
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| one.stage.cmp(&other.stage));
    all
}

/// The greatest number below √2 to the power of the next bar.
fn last_of_bar(bar: u32) -> u64 {
    match 1_u128.checked_shl(bar + 1).filter(|square| *square > 0) {
        Some(square) => (square - 1).isqrt() as u64,
        None => u64::MAX,
    }
}

fn timeline<'a>(samples: impl Iterator<Item = SampleRow<'a>>) -> Option<Timeline> {
    let times = samples.filter_map(|sample| {
        let start = sample.start().filter(|start| *start > 0)?;
        let end = sample.duration().map(|duration| (start.saturating_add(duration), duration));
        Some((start, end, sample.status() == Status::Failed))
    });
    let times: Vec<_> = times.collect();
    let from = times.iter().map(|(start, ..)| *start).min()?;
    let last = |(start, end, _): &(u64, Option<(u64, u64)>, bool)| end.map_or(*start, |end| end.0);
    let until = times.iter().map(last).max()?;
    let width = ((until - from) / BARS as u64 + 1).max(1);
    let mut bars = vec![Bar::default(); BARS];
    let mut durations = vec![Vec::new(); BARS];
    let place = |at: u64| (((at - from) / width) as usize).min(BARS - 1);
    for (start, end, is_failed) in times {
        bars[place(start)].begun += 1;
        if let Some((end, duration)) = end {
            let at = place(end);
            bars[at].ended += 1;
            bars[at].failed += u32::from(is_failed);
            durations[at].push(duration);
        }
    }
    for (bar, durations) in bars.iter_mut().zip(&mut durations) {
        let mut percentile = |hundredths: usize| {
            let rank = (durations.len() * hundredths).div_ceil(100).checked_sub(1)?;
            Some(number(*durations.select_nth_unstable(rank).1))
        };
        (bar.p50_ns, bar.p99_ns) = (percentile(50), percentile(99));
    }
    Some(Timeline { from_unix_nano: number(from), bar_ns: number(width), bars })
}

fn slowest<'a>(
    store: &Store,
    samples: &Samples,
    now: u64,
    chosen: impl Iterator<Item = SampleRow<'a>>,
) -> Vec<Row> {
    let mut chosen: Vec<_> = chosen.filter(|sample| sample.duration().is_some()).collect();
    let key = |sample: &SampleRow<'_>| (Reverse(sample.duration()), sample.trace());
    if chosen.len() > SLOWEST {
        chosen.select_nth_unstable_by_key(SLOWEST, key);
        chosen.truncate(SLOWEST);
    }
    chosen.sort_by_key(key);
    chosen.into_iter().map(|row| Row::new(store, samples, &row.sample(store), now)).collect()
}

#[cfg(test)]
mod tests {
    use super::last_of_bar;

    #[test]
    fn a_bar_is_half_a_power_of_two_wide() {
        let lasts = [1, 1, 2, 3, 5, 7, 11, 15, 22, 31];
        assert!((0..10).map(last_of_bar).eq(lasts));
        assert_eq!((last_of_bar(126), last_of_bar(127)), (13_043_817_825_332_782_212, u64::MAX));
    }
}

//! The first page: the summary without its long lists, distributions, and how it went over time.

use std::cmp::Reverse;

use hashbrown::HashMap;
use serde::Serialize;

use super::json::number;
use super::rows::Summary;
use super::samples::Row;
use super::summary::{SummaryOptions, UnknownStep, choose, steps};
use crate::rules::{Sample, Samples, Status};
use crate::source::SourceReport;
use crate::store::{Ident, Name, SpanNumber, Store};

/// Most rows of each list; the page of samples has all.
const ROWS: usize = 50;
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
        let step = choose(store, &steps(store, samples), &options.step)?;
        let mut summary = Summary::new(store, samples, sources, options)?;
        let counts = [summary.open_samples.len(), summary.stuck.len(), summary.lost.len()];
        summary.open_samples.truncate(ROWS);
        summary.stuck.truncate(ROWS);
        summary.lost.truncate(ROWS);
        let is_chosen = |sample: &Sample| step.is_none() || sample.step == step;
        let [open_samples, stuck, lost] = counts;
        Ok(Self {
            distributions: distributions(store, samples, step),
            timeline: timeline(samples.iter().filter(|sample| is_chosen(sample))),
            slowest: slowest(store, samples, options.now, is_chosen),
            summary,
            open_samples,
            stuck,
            lost,
        })
    }
}

fn distributions(store: &Store, samples: &Samples, step: Option<Ident>) -> Vec<Distribution> {
    let mut by_stage: HashMap<Name, [u32; 128]> = HashMap::new();
    for number in (0..store.stats().spans as u32).map(SpanNumber) {
        let record = store.record(number);
        let is_chosen = |sample: &Sample| step.is_none() || sample.step == step;
        if record.is_finished() && samples.of_span(store, number).is_some_and(is_chosen) {
            let bars = by_stage.entry(record.stage).or_insert([0; 128]);
            bars[half_power(record.duration())] += 1;
        }
    }
    let all = by_stage.into_iter().filter_map(|(stage, bars)| {
        let first = bars.iter().position(|count| *count > 0)?;
        let last = bars.iter().rposition(|count| *count > 0)?;
        Some(Distribution {
            stage: store.text(stage),
            from_ns: (first as f64 / 2.0).exp2(),
            bars: bars[first..=last].to_vec(),
        })
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| one.stage.cmp(&other.stage));
    all
}

/// The greatest k for which √2 to the power of k does not exceed a number; 0 for 0.
pub(super) fn half_power(value: u64) -> usize {
    match value.checked_ilog2() {
        None => 0,
        // The square of what is above the whole power is compared, so that nothing is rounded.
        Some(whole) => {
            let square = u128::from(value) * u128::from(value);
            2 * whole as usize + usize::from(square >= 1 << (2 * whole + 1))
        }
    }
}

fn timeline<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Timeline> {
    let times = samples.filter_map(|sample| {
        let start = sample.start.filter(|start| *start > 0)?;
        let end = sample.duration.map(|duration| (start.saturating_add(duration), duration));
        Some((start, end, sample.status == Status::Failed))
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
        durations.sort_unstable();
        let rank = |hundredths: usize| (durations.len() * hundredths).div_ceil(100).checked_sub(1);
        let percentile = |hundredths: usize| Some(number(durations[rank(hundredths)?]));
        (bar.p50_ns, bar.p99_ns) = (percentile(50), percentile(99));
    }
    Some(Timeline { from_unix_nano: number(from), bar_ns: number(width), bars })
}

fn slowest(
    store: &Store,
    samples: &Samples,
    now: u64,
    is_chosen: impl Fn(&Sample) -> bool,
) -> Vec<Row> {
    let chosen = samples.iter().filter(|sample| is_chosen(sample) && sample.duration.is_some());
    let mut chosen: Vec<&Sample> = chosen.collect();
    let key = |sample: &&Sample| Reverse((sample.duration, Reverse(sample.trace)));
    if chosen.len() > SLOWEST {
        chosen.select_nth_unstable_by_key(SLOWEST, key);
        chosen.truncate(SLOWEST);
    }
    chosen.sort_by_key(key);
    chosen.into_iter().map(|sample| Row::new(store, samples, sample, now)).collect()
}

#[cfg(test)]
mod tests {
    use super::half_power;

    #[test]
    fn a_bar_is_half_a_power_of_two_wide() {
        let cases =
            [(0, 0), (1, 0), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (8, 6), (11, 6), (12, 7)];
        for (value, expected) in cases {
            assert_eq!(half_power(value), expected, "{value}");
        }
        assert_eq!(half_power(u64::MAX), 127);
    }
}

//! The table of stages, computed from the trace file.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What took how long, by stage.
#[derive(Debug, Default)]
pub struct Report {
    /// Durations in nanoseconds.
    stages: BTreeMap<String, Vec<u64>>,
}

impl Report {
    pub fn add(&mut self, stage: &str, duration_ns: u64) {
        match self.stages.get_mut(stage) {
            Some(durations) => durations.push(duration_ns),
            None => drop(self.stages.insert(stage.into(), vec![duration_ns])),
        }
    }

    /// One line a stage, those that took longest in total first.
    pub fn table(mut self) -> String {
        let mut rows: Vec<Row> = self.stages.iter_mut().map(Row::of).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        let width = rows.iter().map(|row| row.stage.len()).max().unwrap_or(0).max("stage".len());
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:width$} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "stage", "count", "total", "mean", "p50", "p95", "max"
        );
        for row in rows {
            let _ = write!(text, "{:width$} {:>6}", row.stage, row.count);
            for ns in [row.total, row.mean, row.p50, row.p95, row.max] {
                let _ = write!(text, " {:>10}", duration(ns));
            }
            text.push('\n');
        }
        text
    }
}

struct Row<'a> {
    stage: &'a str,
    count: usize,
    total: u64,
    mean: u64,
    p50: u64,
    p95: u64,
    max: u64,
}

impl<'a> Row<'a> {
    /// `durations` is never empty.
    fn of((stage, durations): (&'a String, &mut Vec<u64>)) -> Self {
        durations.sort_unstable();
        let count = durations.len();
        let total = durations.iter().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
        // The least duration that so many per cent do not exceed.
        let percentile = |percent: usize| durations[(count * percent).div_ceil(100).max(1) - 1];
        Row {
            stage,
            count,
            total,
            mean: total / count as u64,
            p50: percentile(50),
            p95: percentile(95),
            max: durations[count - 1],
        }
    }
}

/// In the unit that leaves few digits before the point.
fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e10 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_line_a_stage_and_the_longest_first() {
        let mut report = Report::default();
        for ms in 1..=100 {
            report.add("denoise_step", ms * 1_000_000);
        }
        report.add("queue_wait", 12_000_000_000);
        report.add("decode", 2_500);
        assert_eq!(
            report.table(),
            "stage         count      total       mean        p50        p95        max\n\
             queue_wait        1    12.00 s    12.00 s    12.00 s    12.00 s    12.00 s\n\
             denoise_step    100 5050.00 ms   50.50 ms   50.00 ms   95.00 ms  100.00 ms\n\
             decode            1     2.5 µs     2.5 µs     2.5 µs     2.5 µs     2.5 µs\n"
        );
    }

    #[test]
    fn nothing_recorded_is_a_table_without_lines() {
        assert_eq!(Report::default().table().lines().count(), 1);
    }
}

//! `summary [--json] PATH…`

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::table::Table;
use super::{Failure, Input, Stuck, print};
use crate::query::{StepChoice, Summary, SummaryOptions, duration, printable};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    stuck: Stuck,
    /// Prints JSON, as docs/viewer.md specifies it.
    #[arg(long)]
    json: bool,
    /// Sums up one step of training only: its id, `latest`, or `all`.
    #[arg(long, value_name = "N|latest|all", default_value = "all")]
    step: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loaded = arguments.input.load()?;
    let step = StepChoice::parse(&arguments.step);
    let options = SummaryOptions { step, now: loaded.now, stuck: arguments.stuck.rule() };
    let summary = Summary::new(&loaded.store, &loaded.samples, &loaded.report, &options)?;
    if arguments.json {
        let mut json = serde_json::to_string_pretty(&summary).unwrap_or_default();
        json.push('\n');
        return print(&json);
    }
    print(&text(&summary))
}

/// For people. Writing to a text does not fail.
fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let statuses = summary.statuses.iter().map(|(status, count)| format!("{status} {count}"));
    let statuses: Vec<_> = statuses.collect();
    let _ = writeln!(
        text,
        "{} samples in {} groups, {}: {}",
        summary.samples,
        summary.groups,
        match &summary.step {
            all if all == "all" => format!("{} steps", summary.steps),
            step => printable(&format!("step {}", plain(step))),
        },
        printable(&statuses.join(", "))
    );
    let _ = writeln!(text, "{} finished spans", summary.finished_spans);
    if summary.reward.count > 0 {
        let mean = summary.reward.sum / summary.reward.count as f64;
        let (count, passed) = (summary.reward.count, summary.reward.passed);
        let _ = writeln!(text, "reward: mean {mean:.3} of {count}, {passed} passed");
    }
    section(&mut text, "stages", &stages(summary));
    section(&mut text, "in a stage now", &occupancy(summary));
    section(&mut text, "stuck", &stuck(summary, ROWS));
    section(&mut text, "lost with their process", &lost(summary));
    section(&mut text, "errors, by the stage where they arose", &errors(summary));
    notes(&mut text, summary);
    text
}

pub(super) fn section(text: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let _ = write!(text, "\n{title}\n{}", table.text());
    }
}

fn stages(summary: &Summary) -> Table {
    let mut table =
        Table::new(&["stage", "spans", "total", "self", "p50", "p90", "p99", "max", "errors"]);
    for (row, own) in summary.stages.iter().zip(&summary.self_times) {
        table.row([
            row.stage.clone(),
            row.span_count.to_string(),
            time(&row.sum_ns),
            time(&own.self_ns),
            time(&row.p50_ns),
            time(&row.p90_ns),
            time(&row.p99_ns),
            time(&row.max_ns),
            row.error_samples.to_string(),
        ]);
    }
    table
}

pub(super) fn occupancy(summary: &Summary) -> Table {
    let mut table = Table::new(&["stage", "samples", "groups", "oldest", "which"]);
    for row in &summary.occupancy {
        table.row([
            row.stage.clone(),
            row.samples.to_string(),
            row.groups.to_string(),
            time(&row.oldest_age_ns),
            plain(&row.oldest_rollout_id),
        ]);
    }
    table
}

/// Most rows of what may be long; the JSON has all.
const ROWS: usize = 20;

pub(super) fn stuck(summary: &Summary, rows: usize) -> Table {
    let mut table = Table::new(&["stage", "open for", "limit", "step", "sample", "trace"]);
    for row in summary.stuck.iter().take(rows) {
        table.row([
            row.stage.clone(),
            time(&row.age_ns),
            time(&row.threshold_ns),
            plain(&row.step),
            plain(&row.rollout_id),
            row.trace_id.clone(),
        ]);
    }
    if let Some(more) = summary.stuck.len().checked_sub(rows).filter(|more| *more > 0) {
        table.row([format!("… and {more} more")]);
    }
    table
}

fn lost(summary: &Summary) -> Table {
    let mut table = Table::new(&["stage", "step", "sample", "trace"]);
    for row in summary.lost.iter().take(ROWS) {
        table.row([
            row.stage.clone().unwrap_or_else(|| "unknown".to_owned()),
            plain(&row.step),
            plain(&row.rollout_id),
            row.trace_id.clone(),
        ]);
    }
    if let Some(more) = summary.lost.len().checked_sub(ROWS).filter(|more| *more > 0) {
        table.row([format!("… and {more} more")]);
    }
    table
}

fn errors(summary: &Summary) -> Table {
    let mut table = Table::new(&["stage", "samples", "error"]);
    for row in &summary.stages {
        for error in row.errors.iter().take(ROWS) {
            let parts = [error.kind.clone(), error.message.clone()];
            let what: Vec<_> = parts.into_iter().flatten().collect();
            table.row([row.stage.clone(), error.samples.to_string(), what.join(": ")]);
        }
    }
    table
}

fn notes(text: &mut String, summary: &Summary) {
    let losses = &summary.losses;
    let counts = [
        (summary.left_open_spans as u64, "spans are open though their sample has ended"),
        (summary.result_not_exported as u64, "samples ended and their root never came"),
        (losses.damaged_lines, "lines could not be read"),
        (losses.refused_spans, "spans have no valid ids"),
        (losses.recorder_spans, "spans found no room in their recorder"),
        (losses.recorder_details, "events, links or late attributes found no room there"),
        (losses.beyond_memory, "spans did not fit into the viewer's memory limit"),
        (losses.unassigned_spans, "spans belong to no sample"),
    ];
    let notes: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    if !notes.is_empty() {
        text.push('\n');
    }
    for (count, what) in notes {
        let _ = writeln!(text, "note: {count} {what}");
    }
    for (name, error) in &summary.unread {
        let _ = writeln!(text, "note: cannot read {}", printable(&format!("{name}: {error}")));
    }
    if !summary.live_source && !summary.open_samples.is_empty() {
        let open = summary.open_samples.len();
        let _ = writeln!(
            text,
            "note: {open} samples have not ended; no source says what they are in (a recording or live.jsonl would)"
        );
    }
}

pub(super) fn time(ns: &str) -> String {
    ns.parse().map_or_else(|_| ns.to_owned(), duration)
}

pub(super) fn plain(value: &Json) -> String {
    match value {
        Json::Null => "–".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

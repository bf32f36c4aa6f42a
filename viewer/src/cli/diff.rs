//! `diff RUN_A RUN_B [--json]`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::summary::{section, time};
use super::table::Table;
use super::{Failure, Input, print};
use crate::query::{
    ComparedRun, ComparedStage, Comparison, RunMeasures, StageMeasures, Verdict, printable,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run that was before: its directory, or a file.
    run_a: PathBuf,
    /// The run that is compared with it.
    run_b: PathBuf,
    /// Prints JSON, as docs/viewer.md specifies it.
    #[arg(long)]
    json: bool,
    /// Keeps no more than about these MiB of spans of a run at a time.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    memory_limit: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // One after the other, so that only one store is in memory.
    let measures = |path: &Path| {
        let (paths, memory_limit) = (vec![path.to_owned()], arguments.memory_limit);
        let loaded = Input { paths, now: None, memory_limit }.load()?;
        loaded.tell_losses();
        Ok::<_, Failure>(RunMeasures::new(&loaded.store, &loaded.samples))
    };
    let (a, b) = (measures(&arguments.run_a)?, measures(&arguments.run_b)?);
    let comparison = Comparison::new(&a, &b);
    if arguments.json {
        let mut json = serde_json::to_string_pretty(&comparison).unwrap_or_default();
        json.push('\n');
        return print(&json);
    }
    print(&text(&comparison))
}

/// For people. Writing to a text does not fail.
fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (name, run) in [("A", &comparison.a), ("B", &comparison.b)] {
        let who: Vec<_> = run.services.iter().chain(&run.run_ids).map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{name}: {} samples, {} finished spans  {}",
            run.samples,
            run.finished_spans,
            printable(&who.join(", "))
        );
    }
    section(&mut text, "statuses", &statuses(comparison));
    section(&mut text, "stages, A → B", &stages(comparison));
    section(&mut text, "errors, by the stage where they arose", &errors(comparison));
    text
}

fn statuses(comparison: &Comparison) -> Table {
    let Comparison { a, b, .. } = comparison;
    let words: BTreeSet<_> = a.statuses.keys().chain(b.statuses.keys()).collect();
    let mut table = Table::new(&["status", "A", "B"]);
    for word in words {
        let of = |run: &ComparedRun| {
            let count = run.statuses.get(word).copied().unwrap_or(0);
            let part = 100.0 * count as f64 / run.samples.max(1) as f64;
            format!("{count} ({part:.1} %)")
        };
        table.row([word.clone(), of(a), of(b)]);
    }
    table
}

fn stages(comparison: &Comparison) -> Table {
    let head =
        ["stage", "verdict", "p50", "change", "95 % interval", "p", "p90", "p99", "mean", "spans"];
    let mut table = Table::new(&head);
    for stage in &comparison.stages {
        let of = |measure: &dyn Fn(&StageMeasures) -> String| {
            let side = |side: &Option<_>| side.as_ref().map_or("–".to_owned(), measure);
            format!("{} → {}", side(&stage.a), side(&stage.b))
        };
        let difference = stage.difference_ns.as_deref().map_or("–".to_owned(), signed);
        let interval = stage.interval_ns.as_ref();
        let interval = interval.map(|[low, high]| format!("{} to {}", signed(low), signed(high)));
        table.row([
            stage.stage.clone(),
            verdict(stage.verdict).to_owned(),
            of(&|side| time(&side.p50_ns)),
            difference + &percent(stage),
            interval.unwrap_or("–".to_owned()),
            stage.p_value.map_or("–".to_owned(), probability),
            of(&|side| time(&side.p90_ns)),
            of(&|side| time(&side.p99_ns)),
            of(&|side| time(&side.mean_ns)),
            of(&|side| side.span_count.to_string()),
        ]);
    }
    table
}

/// Most errors of a stage; the JSON has all.
const ROWS: usize = 20;

fn errors(comparison: &Comparison) -> Table {
    let mut table = Table::new(&["stage", "A", "B", "error"]);
    for stage in &comparison.stages {
        for error in stage.errors.iter().take(ROWS) {
            let what = [error.kind.clone(), error.message.clone()];
            let what: Vec<_> = what.into_iter().flatten().collect();
            let (a, b) = (error.a.to_string(), error.b.to_string());
            table.row([stage.stage.clone(), a, b, what.join(": ")]);
        }
    }
    table
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Same => "same",
        Verdict::TooFew => "too few",
        Verdict::OnlyInA => "only in A",
        Verdict::OnlyInB => "only in B",
    }
}

/// By what part of the first median the second one differs.
fn percent(stage: &ComparedStage) -> String {
    let median = stage.a.as_ref().and_then(|side| side.p50_ns.parse().ok()).unwrap_or(0.0);
    let difference = stage.difference_ns.as_ref().and_then(|text| text.parse::<f64>().ok());
    match difference {
        Some(difference) if median > 0.0 => {
            let sign = if difference < 0.0 { "−" } else { "+" };
            format!(" ({sign}{:.1} %)", 100.0 * difference.abs() / median)
        }
        _ => String::new(),
    }
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Nanoseconds with their sign.
fn signed(ns: &str) -> String {
    match ns.strip_prefix('-') {
        Some(ns) => format!("−{}", time(ns)),
        None => format!("+{}", time(ns)),
    }
}

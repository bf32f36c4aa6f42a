//! The result as tables in Markdown, aligned so that they are read in a terminal as well.

use super::case::{BARE, Case, LEAN, PEERS, TRACING};
use super::row::{Report, Row};
use std::fmt::Write;

/// The peers that have a column in most tables.
const COLUMNS: &[&str] = &["stagetrace", "fastrace", "opentelemetry", TRACING];

/// All tables.
pub(crate) fn tables(report: &Report) -> String {
    let mut text = String::new();
    let mut add = |title: &str, table: String| _ = write!(text, "{title}\n\n{table}\n");
    add(
        &format!(
            "On the caller's thread: nanoseconds, median (minimum), and multiples of F = {:.1} ns",
            report.f_ns
        ),
        matrix(report, HOT, COLUMNS, hot),
    );
    add(
        "CPU time of the whole process until the span has left, nanoseconds, median (minimum)",
        matrix(report, TOTAL, COLUMNS, total),
    );
    add(
        "Allocations: on the caller's thread / in all",
        matrix(report, ALLOCATIONS, COLUMNS, allocations),
    );
    add(
        "The work itself, without tracing, and `tracing-opentelemetry` with all switched off that can be",
        matrix(report, HOT, &[BARE, LEAN], hot),
    );
    add("One span, 0.5 µs after the last: nanoseconds", list(report, Case::Tail, TAIL));
    add("One thread flat out, default settings", list(report, Case::Flood, FLOOD));
    add("The same, to OTLP bytes", list(report, Case::FloodOtlp, FLOOD));
    add("Start of a process, milliseconds", list(report, Case::Start, START));
    let lost = report.rows.iter().filter(|row| !is_flat_out(row.case));
    let lost = lost.filter(|row| row.figure("exported").is_some_and(|part| part != 1.0));
    for row in lost {
        let part = row.figure("exported").unwrap_or_default() * 100.0;
        let _ = writeln!(text, "Of {} of {} only {part:.1} % was exported.", row.case, row.peer);
    }
    for row in report.rows.iter().filter(|row| row.peer == "stagetrace") {
        if let Some(reason) = &row.skipped {
            let _ = writeln!(text, "skipped: {}: {reason}", row.case);
        }
    }
    text
}

/// The few lines that say most, for a reader in a hurry.
pub(crate) fn summary(report: &Report) -> String {
    let mut lines = vec![vec![format!("F = {:.1} ns", report.f_ns)]];
    lines[0].extend(COLUMNS.iter().map(|peer| peer.to_string()));
    for &(title, case, figure) in SUMMARY {
        let cells = COLUMNS.iter().map(|peer| {
            let value = report.row(case, peer).and_then(|row| row.figure(figure));
            value.map_or("–".to_owned(), |value| match value {
                less if less < 100.0 => format!("{less:.1} ns"),
                more => format!("{more:.0} ns"),
            })
        });
        lines.push([title.to_owned()].into_iter().chain(cells).collect());
    }
    aligned(lines)
}

/// What it says, in which case, by which figure.
const SUMMARY: &[(&str, Case, &str)] = &[
    ("span", Case::Span(100), "hot_ns"),
    ("span with 4 attributes", Case::Attributes, "hot_ns"),
    ("what a span adds to 300 ns of work", Case::Work, "hot_ns"),
    ("not sampled", Case::NotSampled, "hot_ns"),
    ("async function, 3 awaits", Case::AsyncReady, "hot_ns"),
    ("request of 12 spans across a channel", Case::Channel, "hot_ns"),
    (
        "CPU of the process, span to OTLP bytes",
        Case::Otlp { has_attributes: false },
        "total_cpu_ns",
    ),
    ("99.9 % of spans take at most", Case::Tail, "p99.9_ns"),
];

/// Whether losses are what the case is about.
pub(crate) fn is_flat_out(case: Case) -> bool {
    matches!(case, Case::Flood | Case::FloodOtlp)
}

const HOT: &[Case] = &[
    Case::Span(10),
    Case::Span(100),
    Case::Span(1000),
    Case::Consecutive(10),
    Case::Consecutive(100),
    Case::Attributes,
    Case::Work,
    Case::Off,
    Case::NotSampled,
    Case::AboveLevel,
    Case::AsyncReady,
    Case::AsyncYield,
    Case::Channel,
    Case::Threads(2),
    Case::Threads(4),
];

const TOTAL: &[Case] = &[
    Case::Span(100),
    Case::Attributes,
    Case::SpanData { has_attributes: false },
    Case::SpanData { has_attributes: true },
    Case::Otlp { has_attributes: false },
    Case::Otlp { has_attributes: true },
];

const ALLOCATIONS: &[Case] = TOTAL;

/// Column, figure, what it is divided by, digits after the point.
type Column = (&'static str, &'static str, f64, usize);

const TAIL: &[Column] = &[
    ("p50", "p50_ns", 1.0, 0),
    ("p99", "p99_ns", 1.0, 0),
    ("p99.9", "p99.9_ns", 1.0, 0),
    ("p99.99", "p99.99_ns", 1.0, 0),
    ("greatest", "max_ns", 1.0, 0),
];

const FLOOD: &[Column] = &[
    ("ns per span", "hot_ns", 1.0, 1),
    ("exported, %", "exported", 0.01, 1),
    ("CPU ns per exported span", "total_cpu_ns", 1.0, 0),
    ("peak memory, MiB", "peak_mib", 1.0, 0),
];

const START: &[Column] = &[
    ("CPU before `main`", "before_main_cpu_ns", 1e6, 2),
    ("start", "init_ns", 1e6, 2),
    ("CPU of the start and 200 ms after it", "init_cpu_ns", 1e6, 2),
];

fn hot(row: &Row) -> Option<String> {
    let (median, least) = (row.figure("hot_ns")?, row.figure("hot_min_ns")?);
    let digits = if median < 1000.0 { 1 } else { 0 };
    let f = row.figure("hot_f")?;
    Some(format!("{median:.digits$} ({least:.digits$}), {f:.2} F"))
}

fn total(row: &Row) -> Option<String> {
    let (median, least) = (row.figure("total_cpu_ns")?, row.figure("total_cpu_min_ns")?);
    Some(format!("{median:.0} ({least:.0})"))
}

fn allocations(row: &Row) -> Option<String> {
    Some(format!("{:.2} / {:.2}", row.figure("allocs")?, row.figure("allocs_total")?))
}

/// A line for each case, a column for each peer.
fn matrix(
    report: &Report,
    cases: &[Case],
    peers: &[&str],
    cell: fn(&Row) -> Option<String>,
) -> String {
    let mut lines = vec![vec!["".to_owned()]];
    lines[0].extend(peers.iter().map(|peer| peer.to_string()));
    for &case in cases {
        let cells = peers.iter().map(|peer| {
            let row = report.row(case, peer)?;
            if row.skipped.is_some() { Some("skipped".to_owned()) } else { cell(row) }
        });
        let cells: Vec<Option<String>> = cells.collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".to_owned()));
            lines.push([case.title()].into_iter().chain(cells).collect());
        }
    }
    aligned(lines)
}

/// A line for each peer, a column for each figure.
fn list(report: &Report, case: Case, columns: &[Column]) -> String {
    let mut lines = vec![vec!["".to_owned()]];
    lines[0].extend(columns.iter().map(|(title, ..)| title.to_string()));
    for peer in PEERS {
        let Some(row) = report.row(case, peer) else { continue };
        let cells = columns.iter().map(|&(_, figure, divisor, digits)| {
            let figure = row.figure(figure).map(|figure| format!("{:.digits$}", figure / divisor));
            figure.unwrap_or("–".to_owned())
        });
        lines.push([peer.to_string()].into_iter().chain(cells).collect());
    }
    aligned(lines)
}

/// Lines of cells as a table, the first as its head.
fn aligned(lines: Vec<Vec<String>>) -> String {
    let length = |cell: &String| cell.chars().count();
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|at| lines.iter().map(|cells| length(&cells[at])).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for (i, cells) in lines.iter().enumerate() {
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if i == 0 {
            widths.iter().for_each(|width| _ = write!(text, "|{}", "-".repeat(width + 2)));
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::sample::Samples;

    #[test]
    fn a_table_has_a_line_for_each_case_and_says_what_was_skipped_and_lost() {
        let case = Case::Span(100);
        let mut samples = Samples {
            floor: vec![20.0, 20.0, 20.0],
            hot: vec![25.0, 30.0, 24.0],
            total: vec![80.0],
            ..Samples::default()
        };
        samples.note("exported", 0.5);
        let reason = "4 threads need 4 cores, and there are 2".to_owned();
        let rows = vec![
            Row::new(case, "stagetrace", &samples),
            Row::skipped(Case::Threads(4), "stagetrace", reason),
        ];
        let text = tables(&Report { f_ns: 20.0, rows });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("multiples of F = 20.0 ns"), "{text}");
        let span = lines.iter().find(|line| line.contains("100 below a root")).expect("the case");
        assert!(span.contains("| 25.0 (24.0), 1.25 F |"), "{span}");
        assert!(text.contains("Of span/100 of stagetrace only 50.0 % was exported."), "{text}");
        assert!(text.contains("skipped: threads/4: 4 threads need 4 cores"), "{text}");
    }
}

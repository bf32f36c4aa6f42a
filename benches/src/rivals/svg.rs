//! The result as a picture: bars, one panel for each question, each to a scale of its own.

use super::case::{Case, TRACING};
use super::row::Report;
use std::fmt::Write;

/// What the picture shows: a title, a case, a figure, and its unit.
const PANELS: &[(&str, Case, &str, &str)] = &[
    ("One span, on the caller's thread", Case::Span(100), "hot_ns", "ns"),
    ("The same with 4 typed attributes", Case::Attributes, "hot_ns", "ns"),
    ("A request of 12 spans across a channel", Case::Channel, "hot_ns", "ns"),
    (
        "CPU of the whole process, span to OTLP bytes",
        Case::Otlp { has_attributes: false },
        "total_cpu_ns",
        "ns",
    ),
];

const PEERS: &[(&str, &str)] = &[
    ("stagetrace", "stagetrace"),
    ("fastrace", "fastrace"),
    ("opentelemetry", "OpenTelemetry SDK"),
    (TRACING, "tracing-opentelemetry"),
];

const WIDTH: f64 = 760.0;
/// Where bars begin, and how long the longest is.
const LEFT: f64 = 178.0;
const LONGEST: f64 = 400.0;
const LINE: f64 = 22.0;
const PANEL: f64 = 34.0 + 4.0 * LINE + 14.0;

/// The picture. Its colours are legible on white and on black; where the viewer says which, they fit it better.
pub(crate) fn picture(report: &Report, caption: &str) -> String {
    let panels: Vec<_> = PANELS.iter().filter(|panel| has_bars(report, panel)).collect();
    let height = 20.0 + panels.len() as f64 * PANEL + 24.0;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="What a span costs: stagetrace beside others">
<style>
text {{ font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #7a828b; }}
.title {{ font-weight: 600; font-size: 14px; }}
.name {{ text-anchor: end; }}
.small {{ font-size: 11px; }}
.ours {{ fill: #2f81f7; }}
.theirs {{ fill: #9aa4af; }}
.us {{ font-weight: 600; fill: #2f81f7; }}
@media (prefers-color-scheme: light) {{ text {{ fill: #1f2328; }} .small {{ fill: #59636e; }} .us {{ fill: #0969da; }} .ours {{ fill: #0969da; }} .theirs {{ fill: #afb8c1; }} }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3; }} .small {{ fill: #9198a1; }} .us {{ fill: #58a6ff; }} .ours {{ fill: #58a6ff; }} .theirs {{ fill: #6e7681; }} }}
</style>
"##
    );
    for (i, panel) in panels.iter().enumerate() {
        draw(&mut svg, report, panel, 20.0 + i as f64 * PANEL);
    }
    let _ = writeln!(
        svg,
        r#"<text class="small" x="16" y="{:.0}">{}</text>"#,
        height - 12.0,
        escaped(caption)
    );
    svg.push_str("</svg>\n");
    svg
}

type Panel = (&'static str, Case, &'static str, &'static str);

fn has_bars(report: &Report, &&(_, case, figure, _): &&Panel) -> bool {
    PEERS.iter().any(|(peer, _)| value(report, case, figure, peer).is_some())
}

fn value(report: &Report, case: Case, figure: &str, peer: &str) -> Option<f64> {
    report.row(case, peer)?.figure(figure)
}

fn draw(svg: &mut String, report: &Report, &(title, case, figure, unit): &Panel, top: f64) {
    let bars = PEERS.iter().filter_map(|&(peer, name)| {
        value(report, case, figure, peer).map(|value| (peer, name, value))
    });
    let bars: Vec<_> = bars.collect();
    let greatest = bars.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let _ = writeln!(
        svg,
        r#"<text class="title" x="16" y="{:.0}">{}</text>"#,
        top + 14.0,
        escaped(title)
    );
    for (i, (peer, name, value)) in bars.into_iter().enumerate() {
        let y = top + 26.0 + i as f64 * LINE;
        let ours = peer == "stagetrace";
        let (bar, name_class) = if ours { ("ours", "name us") } else { ("theirs", "name") };
        let width = (value / greatest * LONGEST).max(2.0);
        let digits = if value < 100.0 { 1 } else { 0 };
        let in_f = match figure {
            "hot_ns" => report.row(case, peer).and_then(|row| row.figure("hot_f")),
            _ => None,
        };
        let in_f = in_f.unwrap_or(value / report.f_ns);
        let f_digits = if in_f < 100.0 { 1 } else { 0 };
        let label = format!("{value:.digits$} {unit}  ·  {in_f:.f_digits$} F");
        let label_class = if ours { "us" } else { "" };
        let baseline = y + 13.0;
        let _ = writeln!(
            svg,
            r#"<text class="{name_class}" x="{:.0}" y="{baseline:.0}">{name}</text><rect class="{bar}" x="{LEFT:.0}" y="{:.0}" width="{width:.1}" height="14" rx="2"/><text class="{label_class}" x="{:.1}" y="{baseline:.0}">{label}</text>"#,
            LEFT - 10.0,
            y + 2.0,
            LEFT + width + 8.0,
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

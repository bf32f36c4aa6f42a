//! What was read, and of what: the frame of every page.

use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use super::summary::resource_texts;
use crate::rules::{Samples, StuckRule};
use crate::source::SourceReport;
use crate::store::Store;

/// The frame of every page.
#[derive(Debug, Serialize)]
pub(crate) struct State {
    /// Rises with each change.
    version: u64,
    now_unix_nano: String,
    services: Vec<String>,
    run_ids: Vec<String>,
    steps: Vec<Json>,
    latest_step: Json,
    /// Whether a source knows open spans.
    live: bool,
    samples: usize,
    spans: usize,
    traces: usize,
    /// Bytes of memory, about.
    memory_bytes: usize,
    sources: Vec<Source>,
    stuck: Stuck,
}

#[derive(Debug, Serialize)]
struct Source {
    name: String,
    kind: &'static str,
    /// Whether the process of a recording lives.
    alive: Option<bool>,
    bytes: u64,
    /// Lines of a file, spans that were sent.
    lines: u64,
    /// Lines of a file, requests.
    damaged_lines: u64,
    /// Number of the line and what is wrong with it, at most ten.
    damage: Vec<(u64, String)>,
    open_spans: usize,
    lost_spans: u64,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Stuck {
    factor: f64,
    floor_ns: String,
    least_closed: usize,
}

impl State {
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        report: &SourceReport,
        version: u64,
        now: u64,
        stuck: StuckRule,
    ) -> Self {
        let steps = samples.steps();
        let stats = store.stats();
        Self {
            version,
            now_unix_nano: number(now),
            services: resource_texts(store, &["service.name"]),
            run_ids: resource_texts(store, &["stagetrace.run.id", "run.id"]),
            steps: steps.iter().map(|step| ident(store, Some(*step))).collect(),
            latest_step: ident(store, steps.last().copied()),
            live: report.has_live(),
            samples: samples.len(),
            spans: stats.spans,
            traces: stats.traces,
            memory_bytes: stats.bytes,
            sources: sources(report),
            stuck: Stuck {
                factor: stuck.factor,
                floor_ns: number(stuck.floor_ns),
                least_closed: stuck.least_closed,
            },
        }
    }
}

fn sources(report: &SourceReport) -> Vec<Source> {
    const MOST: usize = 10;
    let files = report.files.iter().map(|file| Source {
        name: file.name.clone(),
        kind: "file",
        alive: None,
        bytes: file.bytes,
        lines: file.lines,
        damaged_lines: file.damaged_lines + u64::from(file.torn_line.is_some()),
        damage: file.damaged.iter().take(MOST).cloned().collect(),
        open_spans: 0,
        lost_spans: file.refused_spans,
        error: file.error.clone(),
    });
    let recordings = report.recordings.iter().map(|one| Source {
        name: one.name.clone(),
        kind: "recording",
        alive: one.is_alive,
        bytes: 0,
        lines: 0,
        damaged_lines: 0,
        damage: Vec::new(),
        open_spans: one.open_spans,
        lost_spans: one.lost_spans,
        error: one.error.clone(),
    });
    let inboxes = report.inboxes.iter().map(|inbox| Source {
        name: inbox.name.clone(),
        kind: "inbox",
        alive: None,
        bytes: 0,
        lines: inbox.spans,
        damaged_lines: inbox.failed_requests,
        damage: Vec::new(),
        open_spans: 0,
        lost_spans: inbox.refused_spans,
        error: inbox.error.clone(),
    });
    files.chain(recordings).chain(inboxes).collect()
}

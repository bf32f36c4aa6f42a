//! Who recorded: processes, whether they live, and how busy they were over time.

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value as Json;

use super::json::number;
use super::usage::{Usage, Window};
use crate::rules::Samples;
use crate::source::{RecordingReport, SourceReport};
use crate::store::{Origin, Record, SpanNumber, Store, TraceNumber};

/// Most processes of which the use over time is told.
const MOST_USED: usize = 200;
/// Most processes that are listed.
const MOST: usize = 2000;
/// Most stages of the chart over time.
const STAGES: usize = 12;

/// The process of spans that do not say whose they are.
const NOBODY: &str = "not named";

/// What to tell of.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessesOptions {
    /// Nanoseconds since 1970 between which use is told; the whole if not given.
    pub(crate) from: Option<u64>,
    pub(crate) until: Option<u64>,
    /// The process whose stages are told over time; all if not given.
    pub(crate) process: Option<String>,
    pub(crate) now: u64,
}

/// Processes, and how busy they were.
#[derive(Debug, Serialize)]
pub(crate) struct Processes {
    now_unix_nano: String,
    /// How many there are, of which those with the most spans are listed.
    count: usize,
    processes: Vec<Process>,
    /// The whole time of which spans tell.
    begin_unix_nano: Option<String>,
    end_unix_nano: Option<String>,
    window: Option<Window>,
    /// By stage, the most used first: how many spans were at work in it at once, in each bucket.
    stages: Vec<StageUse>,
}

#[derive(Debug, Serialize)]
struct StageUse {
    stage: String,
    at_once: Vec<f32>,
}

/// A process as its spans and its recording tell of it.
#[derive(Debug, Default, Serialize)]
struct Process {
    /// Names it in addresses of pages.
    id: String,
    /// For people: service, host, label or number.
    name: String,
    service: Option<String>,
    host: Option<String>,
    pid: Json,
    label: Option<String>,
    run: Option<String>,
    sdk: Option<String>,
    /// Whether it lives, as its recording tells; `null` without one.
    is_alive: Option<bool>,
    /// Its recording tells that it ended without closing it.
    is_dead: bool,
    spans: u64,
    /// Samples and requests that began in it.
    samples: u64,
    errors: u64,
    first_unix_nano: Option<String>,
    last_unix_nano: Option<String>,
    open: u64,
    /// Spans that were open when it died.
    lost: u64,
    oldest_open: Option<OpenSpan>,
    /// Spans and details that found no room in its recorder.
    lost_spans: u64,
    lost_details: u64,
    /// Share of each bucket in which one of its spans was open, in hundredths.
    busy: Vec<u8>,
    /// How many of its spans were at work at once, in each bucket.
    at_once: Vec<f32>,
    /// Share of the whole window.
    busy_share: Option<f64>,
}

#[derive(Debug, Serialize)]
struct OpenSpan {
    trace_id: String,
    span_id: String,
    stage: String,
    age_ns: String,
}

/// What is counted while spans are walked through.
#[derive(Default)]
struct Seen {
    spans: u64,
    samples: u64,
    errors: u64,
    open: u64,
    lost: u64,
    first: Option<u64>,
    last: u64,
    oldest: Option<(u64, SpanNumber)>,
}

impl Processes {
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        report: &SourceReport,
        options: &ProcessesOptions,
    ) -> Self {
        let (mut processes, owners) = by_origin(&store.origins());
        let seen = count(store, samples, &owners, processes.len());
        for (process, seen) in processes.iter_mut().zip(&seen) {
            process.tell(store, seen, options.now);
        }
        let begin = seen.iter().filter_map(|seen| seen.first).min();
        let is_open = seen.iter().any(|seen| seen.open > 0);
        let last = seen.iter().map(|seen| seen.last).max();
        let end = last.map(|last| if is_open { last.max(options.now) } else { last });
        let spread = begin.zip(end).and_then(|(begin, end)| {
            Window::new(options.from.unwrap_or(begin), options.until.unwrap_or(end))
        });
        let mut stages = Vec::new();
        if let Some(window) = spread {
            let order = most_used(&processes);
            let chosen = options.process.as_ref();
            let is_chosen: Vec<bool> =
                processes.iter().map(|process| chosen.is_none_or(|id| *id == process.id)).collect();
            let mut usage = Usage::new(window, order.iter().copied(), processes.len());
            for number in (0..store.stats().spans as u32).map(SpanNumber) {
                let record = store.record(number);
                let process = owners.of(&record);
                let end = match record.is_open() {
                    // Of a process that died it is not known when.
                    true if record.is_lost => seen[process].last,
                    true => options.now,
                    false => record.end,
                };
                let work = match record.is_finished() {
                    true => samples.self_ns(number),
                    false => 0,
                };
                let stage = is_chosen[process].then_some(record.stage);
                usage.add(process, stage, (record.start, end), work);
            }
            for (span, stage) in samples.open(None).filter_map(|sample| sample.current()) {
                let record = store.record(span);
                let process = owners.of(&record);
                let stage = is_chosen[process].then_some(stage);
                let age = options.now.saturating_sub(record.start);
                usage.add_work(process, stage, (record.start, options.now), age);
            }
            stages = usage
                .stages(STAGES)
                .into_iter()
                .map(|(name, at_once)| StageUse { stage: store.text(name), at_once })
                .collect();
            for place in order {
                let process = &mut processes[place];
                (process.busy, process.at_once, process.busy_share) = usage.of(place);
            }
        }
        processes.retain(|process| process.id != NOBODY || process.spans > 0);
        add_recordings(&mut processes, &report.recordings);
        processes
            .sort_by(|one, other| other.spans.cmp(&one.spans).then_with(|| one.id.cmp(&other.id)));
        let count = processes.len();
        processes.truncate(MOST);
        Self {
            now_unix_nano: number(options.now),
            count,
            processes,
            begin_unix_nano: begin.map(number),
            end_unix_nano: end.map(number),
            window: spread,
            stages,
        }
    }
}

/// Whose spans are.
pub(super) struct Owners {
    /// The process of each origin.
    places: Vec<usize>,
    /// Stands for those that do not say whose they are.
    nobody: usize,
}

impl Owners {
    pub(super) fn of(&self, record: &Record) -> usize {
        self.places.get(record.origin as usize).copied().unwrap_or(self.nobody)
    }
}

/// The processes that origins tell of, a process having several libraries, and one for spans that do not say whose they are.
fn by_origin(origins: &[Origin]) -> (Vec<Process>, Owners) {
    let mut processes = Vec::new();
    let mut known = HashMap::new();
    let places = origins.iter().map(|origin| {
        let process = Process::of(origin);
        *known.entry(process.id.clone()).or_insert_with(|| {
            processes.push(process);
            processes.len() - 1
        })
    });
    let places = places.collect();
    let nobody = processes.len();
    processes.push(Process { id: NOBODY.to_owned(), ..Process::default() });
    name(&mut processes);
    (processes, Owners { places, nobody })
}

fn count(store: &Store, samples: &Samples, owners: &Owners, processes: usize) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    all.resize_with(processes, Seen::default);
    for number in (0..store.stats().spans as u32).map(SpanNumber) {
        let record = store.record(number);
        let seen = &mut all[owners.of(&record)];
        seen.spans += 1;
        seen.errors += u64::from(record.is_failed);
        if record.is_open() {
            match record.is_lost {
                true => seen.lost += 1,
                false => {
                    seen.open += 1;
                    let older = seen.oldest.is_none_or(|(since, _)| record.start < since);
                    if older && record.start > 0 {
                        seen.oldest = Some((record.start, number));
                    }
                }
            }
        }
        // 0 stands for a time that is not known.
        if record.start > 0 {
            seen.first = Some(seen.first.map_or(record.start, |first| first.min(record.start)));
            let end = if record.is_finished() { record.end } else { record.start };
            seen.last = seen.last.max(end);
        }
    }
    for root in samples.rows().filter_map(|sample| sample.root()) {
        all[owners.of(&store.record(root))].samples += 1;
    }
    all
}

/// Processes with the most spans, as many as are told of over time.
fn most_used(processes: &[Process]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..processes.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(processes[*place].spans));
    order.truncate(MOST_USED);
    order
}

fn add_recordings(processes: &mut Vec<Process>, recordings: &[RecordingReport]) {
    let recordings = recordings.iter().filter(|one| !one.process_id.is_empty());
    let known = processes.len();
    for one in recordings {
        let found = processes.iter().position(|process| process.id == one.process_id);
        let place = found.unwrap_or_else(|| {
            processes.push(Process {
                id: one.process_id.clone(),
                service: Some(one.service.clone()).filter(|name| !name.is_empty()),
                pid: one.pid.into(),
                run: one.run_id.clone(),
                ..Process::default()
            });
            name(&mut processes[known..]);
            processes.len() - 1
        });
        let process = &mut processes[place];
        process.is_alive = one.is_alive;
        process.is_dead = one.is_alive == Some(false) && !one.is_closed;
        process.lost_spans += one.lost_spans;
        process.lost_details += one.lost_details;
    }
}

impl Process {
    fn of(origin: &Origin) -> Self {
        let text = |key: &str| origin.resource.attribute(key)?.as_str().map(str::to_owned);
        let service = text("service.name");
        let host = text("host.name");
        let pid = origin.resource.attribute("process.pid").and_then(|pid| pid.as_i64());
        let instance = text("stagetrace.process.id").or_else(|| text("service.instance.id"));
        let id = instance.unwrap_or_else(|| {
            let parts = [service.clone(), host.clone(), pid.map(|pid| pid.to_string())];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        Self {
            id,
            service,
            host,
            pid: pid.into(),
            label: text("stagetrace.process.label"),
            run: text("stagetrace.run.id").or_else(|| text("run.id")),
            sdk: text("telemetry.sdk.name")
                .zip(text("telemetry.sdk.language"))
                .map(|(name, language)| format!("{name} ({language})")),
            ..Self::default()
        }
    }

    fn tell(&mut self, store: &Store, seen: &Seen, now: u64) {
        (self.spans, self.samples, self.errors) = (seen.spans, seen.samples, seen.errors);
        (self.open, self.lost) = (seen.open, seen.lost);
        self.first_unix_nano = seen.first.map(number);
        self.last_unix_nano = seen.first.map(|_| number(seen.last));
        self.oldest_open = seen.oldest.map(|(since, span)| {
            let record = store.record(span);
            OpenSpan {
                trace_id: store.trace_id(TraceNumber(record.trace)).to_string(),
                span_id: record.id.to_string(),
                stage: store.text(record.stage),
                age_ns: number(now.saturating_sub(since)),
            }
        });
    }
}

/// Id and name for people of each process, and whose spans are.
pub(super) fn names(origins: &[Origin]) -> (Vec<(String, String)>, Owners) {
    let (processes, owners) = by_origin(origins);
    (processes.into_iter().map(|process| (process.id, process.name)).collect(), owners)
}

/// Names processes for people, so that no two have the same name.
fn name(processes: &mut [Process]) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for process in processes.iter_mut() {
        let pid = process.pid.as_i64().map(|pid| format!("pid {pid}"));
        let who = process.label.clone().or(pid);
        let parts = [process.service.clone(), process.host.clone(), who];
        process.name = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if process.name.is_empty() {
            process.name.clone_from(&process.id);
        }
        *times.entry(process.name.clone()).or_default() += 1;
    }
    for process in processes.iter_mut().filter(|process| times[&process.name] > 1) {
        let skipped = process.id.chars().count().saturating_sub(8);
        let end: String = process.id.chars().skip(skipped).collect();
        process.name = format!("{} · {end}", process.name);
    }
}

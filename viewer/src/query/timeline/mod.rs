//! One trace as it is drawn, and the sample of it that is looked at.

use std::hash::{DefaultHasher, Hasher as _};

use hashbrown::HashMap;
use serde::Serialize;
use stagetrace_wire::id::SpanId;
use stagetrace_wire::span::SpanKind;

use super::json::number;
use super::samples::Row;
use crate::rules::{
    Sample, SampleRow, Samples, Segment, StuckRule, critical_path, shown, skew, waits,
};
use crate::store::{Ident, Store, TraceNumber};

mod batches;
mod breakdown;
mod columns;
mod lanes;
mod order;
mod usual;

use batches::{Batch, batches};
use breakdown::{LATENCIES, Latency, Told, Waits, is_first_token, union};
use columns::{Columns, Texts, covered};
use lanes::{Finder, KEYS, Lane, Process};
use order::{Drawn, in_order};
use usual::{Stage, stages};

/// Most samples of the trace, and attempts, that are told.
const MOST_ROWS: usize = 500;
/// Most spans that are drawn.
const MOST_SPANS: usize = 1_000_000;
/// Most events, links and the like that are drawn.
const MOST_MARKS: usize = 20_000;

/// Which sample is looked at, and how.
#[derive(Debug)]
pub(crate) struct TimelineOptions<'a> {
    /// The rollout, or what the request calls itself; `None` for the first of the trace.
    pub(crate) sample: Option<&'a str>,
    /// The `stamp` of an answer that is known.
    pub(crate) known: Option<&'a str>,
    pub(crate) now: u64,
    pub(crate) stuck: StuckRule,
}

/// The trace has no such sample.
#[derive(Debug, thiserror::Error)]
#[error("trace {trace} has no sample {sample:?}; {there}")]
pub(crate) struct UnknownSample {
    trace: String,
    sample: String,
    there: String,
}

/// What is answered.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// Nothing but the time has changed since the answer that is known.
    Known {
        stamp: String,
        now_unix_nano: String,
    },
    New(Box<Timeline>),
}

/// A trace as it is drawn. Instants are nanoseconds from `base_unix_nano`.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline {
    /// Differs whenever the trace does.
    stamp: String,
    trace_id: String,
    now_unix_nano: String,
    base_unix_nano: String,
    /// The sample that is looked at; `null` if the trace has none.
    row: Option<Row>,
    /// Which of the trace's it is.
    sample: Option<usize>,
    /// All samples of the trace, if there are several.
    samples: Vec<Row>,
    /// All attempts at what the sample is for, in order, if there are several.
    attempts: Vec<Row>,
    root: Option<u32>,
    /// The span that it is in.
    current: Option<u32>,
    /// The span in which what went wrong arose.
    error: Option<u32>,
    texts: Vec<String>,
    processes: Vec<Process>,
    lanes: Vec<Lane>,
    spans: Columns,
    /// Spans beyond the most that are drawn.
    left_out: usize,
    stages: Vec<Stage>,
    waits: Option<Waits>,
    latencies: Vec<Latency>,
    critical: Path,
    /// Span, by how much it began before its parent and ended after it, in another process.
    skews: Vec<(u32, u64, u64)>,
    /// Span, instant, name.
    events: Vec<(u32, i64, String)>,
    /// From span to span within the trace.
    links: Vec<(u32, u32)>,
    batches: Vec<Batch>,
}

/// The critical path, whose pieces follow each other without gaps.
#[derive(Debug, Default, Serialize)]
struct Path {
    /// Where it begins.
    from: i64,
    /// The span of each piece, as how many places it stands behind that of the piece before.
    steps: Vec<i32>,
    lengths: Vec<u64>,
}

impl Answer {
    /// # Errors
    /// If the trace has no such sample.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        trace: TraceNumber,
        options: &TimelineOptions<'_>,
    ) -> Result<Self, UnknownSample> {
        let chosen = choose(store, samples, trace, options.sample)?;
        let stamp = stamp(store, trace);
        if options.known == Some(&stamp) {
            return Ok(Self::Known { stamp, now_unix_nano: number(options.now) });
        }
        let timeline = Timeline::new(store, samples, trace, chosen, stamp, options);
        Ok(Self::New(Box::new(timeline)))
    }
}

impl Timeline {
    fn new(
        store: &Store,
        samples: &Samples,
        trace: TraceNumber,
        chosen: Option<usize>,
        stamp: String,
        options: &TimelineOptions<'_>,
    ) -> Self {
        let now = options.now;
        let of_trace: Vec<Sample> = samples.of_trace(store, trace).collect();
        let sample = chosen.and_then(|chosen| of_trace.get(chosen));
        let (base, mut spans) = in_order(store, trace, now);
        let left_out = spans.len().saturating_sub(MOST_SPANS);
        // Parents come first, so that none is cut off from its children.
        spans.truncate(MOST_SPANS);
        let place = |number| spans.iter().position(|span| Some(span.number) == number);
        let place = |number| place(number).map(|place| place as u32);
        let root = place(sample.and_then(|sample| sample.root));
        let is_chosen = |span: &Drawn| samples.place(span.number) == chosen;
        let mut texts = Texts::default();
        let details = Details::read(store, &spans, base, root, is_chosen);
        let lanes = details.finder.finish(&spans);
        let covered = covered(&spans);
        let columns = Columns::new(store, samples, &spans, &covered, base, &lanes, &mut texts);
        let stages = stages(store, samples, &spans, &covered, is_chosen, options.stuck, &mut texts);
        let waiting = |part: &'static str, is_it: &dyn Fn(&str) -> bool| {
            let within = root.map_or((0, u64::MAX), |root| spans[root as usize].times());
            let named = texts.named(is_it);
            let chosen = spans.iter().filter(|span| is_chosen(span));
            let chosen = chosen.filter(|span| named.contains(&span.record.stage));
            (part, union(chosen.map(Drawn::times), within))
        };
        let by_stages = [
            waiting("queue", &|stage| waits(stage)),
            waiting("prefill", &|stage| stage.contains("prefill") && !waits(stage)),
            waiting("decode", &|stage| stage.contains("decode") && !waits(stage)),
        ];
        let times: Vec<_> = spans.iter().map(Drawn::times).collect();
        let parents: Vec<_> = spans.iter().map(|span| span.parent).collect();
        let row = |sample: &Sample| Row::new(store, samples, sample, now);
        let critical = root.map(|root| Path::new(&critical_path(&times, &parents, root), base));
        Self {
            stamp,
            trace_id: store.trace_id(trace).to_string(),
            now_unix_nano: number(now),
            base_unix_nano: number(base),
            row: sample.map(&row),
            sample: chosen,
            samples: match &*of_trace {
                [] | [_] => Vec::new(),
                several => several.iter().take(MOST_ROWS).map(&row).collect(),
            },
            attempts: attempts(store, samples, sample, now),
            root,
            current: place(sample.and_then(|sample| Some(sample.current?.span))),
            error: place(sample.and_then(|sample| sample.error)),
            waits: root.map(|root| {
                let waiting = by_stages[0].1;
                Waits::new(&spans[root as usize], covered[root as usize], waiting)
            }),
            latencies: details.told.finish(details.first_token, &by_stages),
            critical: critical.unwrap_or_default(),
            skews: skews(&spans, &lanes.process),
            events: details.events,
            links: details.links,
            batches: batches(store, trace, now),
            stages,
            spans: columns,
            left_out,
            texts: texts.texts,
            processes: lanes.processes,
            lanes: lanes.lanes,
        }
    }
}

impl Path {
    fn new(pieces: &[Segment], base: u64) -> Self {
        let mut last = 0;
        let steps = pieces.iter().map(|piece| {
            let step = piece.span.wrapping_sub(std::mem::replace(&mut last, piece.span));
            step as i32
        });
        Self {
            steps: steps.collect(),
            from: pieces.first().map_or(0, |first| first.from.wrapping_sub(base) as i64),
            lengths: pieces.iter().map(|piece| piece.to - piece.from).collect(),
        }
    }
}

/// What the details of all spans say.
struct Details {
    finder: Finder,
    told: Told,
    /// Nanoseconds from the root's begin.
    first_token: Option<u64>,
    events: Vec<(u32, i64, String)>,
    links: Vec<(u32, u32)>,
}

impl Details {
    fn read(
        store: &Store,
        spans: &[Drawn],
        base: u64,
        root: Option<u32>,
        is_chosen: impl Fn(&Drawn) -> bool,
    ) -> Self {
        let keys = KEYS.into_iter().chain(LATENCIES.into_iter().map(|(key, ..)| key));
        let keys: Vec<_> = keys.map(|key| store.find_name(key)).collect();
        let mut all = Self {
            finder: Finder::new(store),
            told: Told::default(),
            first_token: None,
            events: Vec::new(),
            links: Vec::new(),
        };
        let mut places: HashMap<SpanId, u32> = HashMap::new();
        for (at, span) in spans.iter().enumerate() {
            let glance = store.glance(span.number, &keys);
            all.finder.add(span, &glance);
            let is_chosen = is_chosen(span);
            for (key, value) in glance.attributes.iter().filter(|_| is_chosen) {
                if let Some(latency) = key.checked_sub(KEYS.len()) {
                    all.told.add(latency, value);
                }
            }
            for event in glance.events {
                if is_chosen && all.first_token.is_none() && is_first_token(&event.name) {
                    let begin = root.map_or(span.start, |root| spans[root as usize].start);
                    all.first_token = Some(event.time_unix_nano.saturating_sub(begin));
                }
                if all.events.len() < MOST_MARKS {
                    let name = event.name.chars().take(200).collect();
                    let at_ns = event.time_unix_nano.wrapping_sub(base) as i64;
                    all.events.push((at as u32, at_ns, name));
                }
            }
            for link in glance.links {
                if places.is_empty() {
                    let numbered = spans.iter().enumerate();
                    places.extend(numbered.map(|(at, span)| (span.record.id, at as u32)));
                }
                let is_here = link.trace_id == store.trace_id(TraceNumber(span.record.trace));
                match places.get(&link.span_id).filter(|_| is_here) {
                    Some(to) if all.links.len() < MOST_MARKS => all.links.push((at as u32, *to)),
                    Some(_) => {}
                    None => all.finder.links_away(),
                }
            }
        }
        all
    }
}

/// Which of the samples of a trace is meant.
fn choose(
    store: &Store,
    samples: &Samples,
    trace: TraceNumber,
    asked: Option<&str>,
) -> Result<Option<usize>, UnknownSample> {
    let names = || samples.rows_of(trace).map(|row| Some(shown(store, id(store, row)?)));
    let Some(asked) = asked else { return Ok(names().next().map(|_| 0)) };
    let found = names().position(|name| name.as_deref() == Some(asked));
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = names().flatten().take(5).collect();
        UnknownSample {
            trace: store.trace_id(trace).to_string(),
            sample: asked.chars().take(200).collect(),
            there: match names.is_empty() {
                true => "leave it away".to_owned(),
                false => format!("it has {}", names.join(", ")),
            },
        }
    })
}

/// The rollout, or what the request calls itself.
fn id(store: &Store, row: SampleRow<'_>) -> Option<Ident> {
    let request = || {
        let root = store.record(row.root()?);
        store.label(&root).request().map(Ident::Text)
    };
    row.rollout(store).or_else(request)
}

/// All attempts at what a sample is for, in order, if there are several.
fn attempts(store: &Store, samples: &Samples, sample: Option<&Sample>, now: u64) -> Vec<Row> {
    let id_of = |sample: &Sample| sample.rollout.or(sample.request.map(Ident::Text));
    let Some((sample, wanted)) = sample.and_then(|sample| Some((sample, id_of(sample)?))) else {
        return Vec::new();
    };
    let is_attempt =
        |row: &SampleRow<'_>| id(store, *row) == Some(wanted) && row.step(store) == sample.step;
    let mut all: Vec<SampleRow<'_>> = samples.rows().filter(is_attempt).collect();
    if all.len() < 2 {
        return Vec::new();
    }
    all.sort_by_key(|row| (row.start(), row.trace()));
    let all = all.into_iter().take(MOST_ROWS).map(|row| row.sample(store));
    all.map(|sample| Row::new(store, samples, &sample, now)).collect()
}

/// Spans whose clock does not agree with that of their parent, in another process.
fn skews(spans: &[Drawn], process: &[u32]) -> Vec<(u32, u64, u64)> {
    let all = spans.iter().enumerate().filter_map(|(at, span)| {
        let parent = span.parent? as usize;
        if process[at] == process[parent]
            || span.record.start == 0
            || spans[parent].record.start == 0
        {
            return None;
        }
        let is_message = matches!(span.record.kind, SpanKind::Producer | SpanKind::Consumer);
        let is_open = span.record.is_open() || spans[parent].record.is_open();
        let found = skew(spans[parent].times(), span.times(), is_message || is_open)?;
        Some((at as u32, found.early_ns, found.late_ns))
    });
    all.take(MOST_MARKS).collect()
}

/// Differs whenever what is known of a trace does.
fn stamp(store: &Store, trace: TraceNumber) -> String {
    let mut hasher = DefaultHasher::new();
    for number in store.spans_of(trace) {
        let record = store.record(number);
        hasher.write_u64(record.end);
        hasher.write_u8(record.standing as u8 + 16 * u8::from(record.is_lost));
    }
    format!("{:016x}", hasher.finish())
}

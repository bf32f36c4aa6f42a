//! What ran where and when: a lane for each process, worker or GPU, merged where it is too dense to be seen.

use std::cmp::Reverse;

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value as Json;

use self::workers::Workers;
use super::json::{ident, number};
use super::processes::{Owners, names};
use super::usage::Work;
use crate::rules::Samples;
use crate::store::{Ident, Name, Record, SpanNumber, Store, TraceNumber};

mod workers;

/// Most lanes.
const LANES: usize = 64;
/// Most spans that are drawn one by one.
const BOXES: usize = 4000;
/// Most rows of one lane, of all that are shown; and the least that one may have.
const ROWS: (usize, usize, usize) = (24, 80, 8);
/// Most spans whose attributes are looked at.
const LOOKED_AT: usize = 300_000;
/// A lane only waits if its own work is less than this part of the time of its spans.
const WAITING: u64 = 200;
/// What has a lane of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneOf {
    Process,
    /// A process's workers, threads and GPUs, as far as spans name them.
    #[default]
    Worker,
    Stage,
}

#[derive(Clone, Debug)]
pub(crate) struct LanesOptions {
    /// Nanoseconds since 1970.
    pub(crate) from: Option<u64>,
    pub(crate) until: Option<u64>,
    /// Dots in which lanes are drawn.
    pub(crate) width: usize,
    pub(crate) by: LaneOf,
    /// Only of this process.
    pub(crate) process: Option<String>,
    pub(crate) now: u64,
}

/// What ran where and when.
#[derive(Debug, Serialize)]
pub(crate) struct Lanes {
    now_unix_nano: String,
    /// The whole time of which spans tell.
    begin_unix_nano: String,
    end_unix_nano: String,
    from_unix_nano: String,
    until_unix_nano: String,
    /// What numbers of stages below mean.
    stages: Vec<String>,
    lanes: Vec<Lane>,
    /// Lanes beyond those that are told of.
    more: usize,
    /// There are too many spans to look at their workers: lanes are those of processes.
    is_coarse: bool,
}

#[derive(Debug, Default, Serialize)]
struct Lane {
    process: String,
    name: String,
    /// How many of its spans lie in the window.
    spans: usize,
    rows: usize,
    boxes: Vec<Box>,
    /// Where there are too many, or too many at once: begin and length in dots, the stage in which most was done, and hundredths of how
    /// many were at work at once.
    columns: Vec<[u32; 4]>,
    /// The greatest of these hundredths.
    most: u32,
    /// Its spans only waited for others: all that were open count as at work.
    is_waiting: bool,
}

/// A span that is drawn by itself.
#[derive(Debug, Serialize)]
struct Box {
    row: usize,
    /// Nanoseconds after the begin of the window.
    at: f64,
    ns: f64,
    stage: usize,
    name: String,
    trace: String,
    span: String,
    sample: Json,
    is_open: bool,
    is_failed: bool,
}

/// A span of the window.
#[derive(Clone, Copy)]
struct Inside {
    span: SpanNumber,
    start: u64,
    end: u64,
}

impl Lanes {
    /// `None` if there is no span, or the window is empty.
    pub(crate) fn new(store: &Store, samples: &Samples, options: &LanesOptions) -> Option<Self> {
        let (processes, owners) = names(&store.origins());
        let chosen = options.process.as_ref();
        let is_chosen: Vec<bool> =
            processes.iter().map(|(id, _)| chosen.is_none_or(|chosen| chosen == id)).collect();
        let all = || {
            let numbers = (0..store.stats().spans as u32).map(SpanNumber);
            let spans = numbers.map(|number| (number, store.record(number)));
            spans.filter(|(_, record)| record.start > 0 && is_chosen[owners.of(record)])
        };
        let end_of = |record: &Record| match record.is_open() {
            true if record.is_lost => record.start,
            true => options.now.max(record.start),
            false => record.end.max(record.start),
        };
        let whole = all().fold(None, |whole: Option<(u64, u64)>, (_, record)| {
            let (start, end) = (record.start, end_of(&record));
            let (begin, last) = whole.unwrap_or((start, end));
            Some((begin.min(start), last.max(end)))
        });
        let (begin, end) = whole?;
        let (from, until) = (options.from.unwrap_or(begin), options.until.unwrap_or(end));
        let window = until.checked_sub(from)?.max(1);
        let mut inside = Vec::new();
        for (span, record) in all() {
            let (start, end) = (record.start, end_of(&record));
            if start <= until && end >= from {
                inside.push(Inside { span, start, end });
            }
        }
        let workers = Workers::new(store);
        let by = match options.by {
            LaneOf::Worker if inside.len() > LOOKED_AT || !workers.are_known() => LaneOf::Process,
            by => by,
        };
        let is_coarse = by != options.by && workers.are_known();
        let mut sorted = sort(store, by, &inside, &processes, &owners);
        let more = sorted.len().saturating_sub(LANES);
        sorted.truncate(LANES);
        let mut drawer = Drawer {
            store,
            samples,
            from,
            window,
            width: options.width,
            stages: HashMap::new(),
            names: Vec::new(),
        };
        let fair = (BOXES / sorted.len().max(1)).max(BOXES / 8);
        let (most, shared, least) = ROWS;
        let rows = (shared / sorted.len().max(1)).clamp(least, most);
        let mut room = BOXES;
        let lanes = sorted.into_iter().map(|(process, name, inside)| {
            let mut lane = Lane { process, name, spans: inside.len(), ..Lane::default() };
            if inside.len() <= fair.min(room) && drawer.boxes(&mut lane, &inside, rows) {
                room -= inside.len();
            } else {
                drawer.columns(&mut lane, &inside);
            }
            lane
        });
        let lanes = lanes.collect();
        Some(Self {
            now_unix_nano: number(options.now),
            begin_unix_nano: number(begin),
            end_unix_nano: number(end),
            from_unix_nano: number(from),
            until_unix_nano: number(until),
            stages: drawer.names,
            lanes,
            more,
            is_coarse,
        })
    }
}

/// Process, name, and spans of each lane, in the order in which they are shown.
fn sort(
    store: &Store,
    by: LaneOf,
    inside: &[Inside],
    processes: &[(String, String)],
    owners: &Owners,
) -> Vec<(String, String, Vec<Inside>)> {
    let mut lanes: HashMap<(usize, String), Vec<Inside>> = HashMap::new();
    let workers = Workers::new(store);
    let mut by_number: HashMap<(usize, Name), Vec<Inside>> = HashMap::new();
    for one in inside {
        let record = store.record(one.span);
        let process = owners.of(&record);
        match by {
            LaneOf::Worker => {
                let worker = workers.of(one.span).unwrap_or_default();
                lanes.entry((process, worker)).or_default().push(*one);
            }
            LaneOf::Process => by_number.entry((process, Name(0))).or_default().push(*one),
            LaneOf::Stage => by_number.entry((0, record.stage)).or_default().push(*one),
        }
    }
    for ((process, name), inside) in by_number {
        lanes.insert((process, store.text(name)), inside);
    }
    let mut sorted: Vec<_> = lanes.into_iter().collect();
    // What is busiest is seen first; below that, parts of a process stand together.
    let mut of_process = vec![0_usize; processes.len()];
    for ((process, _), inside) in &sorted {
        of_process[*process] += inside.len();
    }
    sorted.sort_by(|((one, name), _), ((other, other_name), _)| {
        let key = |place: usize| (Reverse(of_process[place]), place);
        key(*one).cmp(&key(*other)).then_with(|| natural(name).cmp(&natural(other_name)))
    });
    let lane = |((process, name), inside): ((usize, String), Vec<Inside>)| {
        let (id, process_name) = processes[process].clone();
        match by {
            LaneOf::Stage => (String::new(), name, inside),
            _ if name.is_empty() => (id, process_name, inside),
            _ => (id, format!("{name} · {process_name}"), inside),
        }
    };
    sorted.into_iter().map(lane).collect()
}

/// Numbers in names in their order.
fn natural(name: &str) -> (String, u64) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (text, digits) = name.split_at(name.len() - digits);
    (text.to_owned(), digits.parse().unwrap_or(0))
}

/// Draws lanes.
struct Drawer<'s> {
    store: &'s Store,
    samples: &'s Samples,
    from: u64,
    window: u64,
    width: usize,
    stages: HashMap<Name, usize>,
    names: Vec<String>,
}

impl Drawer<'_> {
    fn stage(&mut self, stage: Name) -> usize {
        *self.stages.entry(stage).or_insert_with(|| {
            self.names.push(self.store.text(stage));
            self.names.len() - 1
        })
    }

    /// Each span by itself, those that enclose others above them; false if so many rows are too few.
    fn boxes(&mut self, lane: &mut Lane, inside: &[Inside], rows: usize) -> bool {
        let mut inside = inside.to_vec();
        inside.sort_by_key(|one| (one.start, Reverse(one.end), one.span));
        let mut ends: Vec<u64> = Vec::new();
        let mut places = Vec::new();
        for one in &inside {
            // One that lasts no time takes room all the same.
            let end = one.end.max(one.start.saturating_add(self.window / self.width as u64));
            let free = ends.iter().position(|end| *end <= one.start);
            let row = free.unwrap_or(ends.len());
            if row == rows {
                return false;
            }
            if row == ends.len() {
                ends.push(0);
            }
            ends[row] = end;
            places.push(row);
        }
        for (one, row) in inside.into_iter().zip(places) {
            let record = self.store.record(one.span);
            let sample = self.samples.of_span(self.store, one.span);
            let id = sample.and_then(|sample| sample.rollout.or(sample.request.map(Ident::Text)));
            lane.boxes.push(Box {
                row,
                at: one.start.wrapping_sub(self.from) as i64 as f64,
                ns: (one.end - one.start) as f64,
                stage: self.stage(record.stage),
                name: self.store.text(record.name),
                trace: self.store.trace_id(TraceNumber(record.trace)).to_string(),
                span: record.id.to_string(),
                sample: ident(self.store, id),
                is_open: record.is_open(),
                is_failed: record.is_failed,
            });
        }
        lane.rows = ends.len();
        true
    }

    /// In each dot the stage in which most was done.
    fn columns(&mut self, lane: &mut Lane, inside: &[Inside]) {
        let own = |one: &Inside| match self.store.record(one.span).is_finished() {
            true => self.samples.self_ns(one.span),
            false => self.open_work(*one),
        };
        let sum =
            |part: &dyn Fn(&Inside) -> u64| inside.iter().map(part).fold(0, u64::saturating_add);
        lane.is_waiting = sum(&own) < sum(&|one| one.end - one.start) / WAITING;
        let mut by_stage: HashMap<Name, Work> = HashMap::new();
        let dots = self.width as f64 / self.window as f64;
        for one in inside {
            let record = self.store.record(one.span);
            let duration = one.end - one.start;
            let work = if lane.is_waiting { duration } else { own(one) };
            let clip =
                |at: u64| (at.saturating_sub(self.from) as f64 * dots).min(self.width as f64);
            let (first, last) = (clip(one.start), clip(one.end));
            if work > 0 && first < self.width as f64 {
                let stage = by_stage.entry(record.stage);
                let rate = work as f64 / duration.max(1) as f64;
                stage.or_insert_with(|| Work::new(self.width)).add((first, last), rate);
            }
        }
        let mut best = vec![(0_f32, 0_f32, 0_usize); self.width];
        let mut by_stage: Vec<_> = by_stage.into_iter().collect();
        by_stage.sort_by_key(|(stage, _)| *stage);
        for (stage, work) in by_stage {
            let stage = self.stage(stage);
            for (dot, value) in best.iter_mut().zip(work.at_once()) {
                dot.0 += value;
                if value > dot.1 {
                    (dot.1, dot.2) = (value, stage);
                }
            }
        }
        for (at, (all, _, stage)) in best.into_iter().enumerate() {
            let value = (all * 100.0).round() as u32;
            lane.most = lane.most.max(value);
            match lane.columns.last_mut() {
                _ if value == 0 => {}
                Some([begin, length, last, same])
                    if *begin + *length == at as u32 && *last == stage as u32 && *same == value =>
                {
                    *length += 1;
                }
                _ => lane.columns.push([at as u32, 1, stage as u32, value]),
            }
        }
        lane.rows = 3;
    }

    /// An open span is at work if its sample is in it.
    fn open_work(&self, one: Inside) -> u64 {
        let sample = self.samples.row_of_span(self.store, one.span);
        let current = sample.and_then(|sample| sample.current());
        match current.is_some_and(|(span, _)| span == one.span) {
            true => one.end - one.start,
            false => 0,
        }
    }
}

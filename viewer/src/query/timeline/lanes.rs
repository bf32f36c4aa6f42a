//! Lanes: each thread of each process, and each GPU, as far as they are known.

use hashbrown::HashMap;
use serde::Serialize;
use stagetrace_wire::span::{Resource, Value};

use super::columns::mark;
use super::order::Drawn;
use crate::rules::Rows;
use crate::store::{Glance, Origin, Store};

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Process {
    service: Option<String>,
    host: Option<String>,
    pid: Option<String>,
    instance: Option<String>,
}

/// A lane.
#[derive(Debug, Serialize)]
pub(super) struct Lane {
    process: u32,
    /// The thread or device; `null` if it is not known.
    name: Option<String>,
    is_gpu: bool,
    rows: usize,
}

/// Where each span is drawn.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) processes: Vec<Process>,
    pub(super) lanes: Vec<Lane>,
    pub(super) process: Vec<u32>,
    pub(super) lane: Vec<u32>,
    pub(super) row: Vec<u32>,
    /// Marks of spans that are known by their details.
    pub(super) marks: Vec<u32>,
}

/// The attributes by which lanes are told apart: where [`Lanes::add`] is given these.
pub(super) const KEYS: [&str; 7] = [
    "thread.name",
    "thread_label",
    "thread.id",
    "gpu.timestamps",
    "gpu.adapter",
    "gpu.queue",
    "gpu.stream",
];
const DEVICE: std::ops::Range<usize> = 5..7;

/// What tells a lane from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    process: u32,
    name: Option<String>,
    is_gpu: bool,
}

/// Finds the lanes of spans that are given one by one.
pub(super) struct Finder {
    origins: Vec<Origin>,
    by_origin: HashMap<u32, u32>,
    processes: HashMap<Process, u32>,
    keys: HashMap<Key, u32>,
    /// By place: the device on which the children of a span ran.
    devices: HashMap<u32, String>,
    found: Lanes,
}

impl Finder {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            origins: store.origins(),
            by_origin: HashMap::new(),
            processes: HashMap::new(),
            keys: HashMap::new(),
            devices: HashMap::new(),
            found: Lanes::default(),
        }
    }

    /// Adds the next span. `glance` are its attributes by [`KEYS`].
    pub(super) fn add(&mut self, span: &Drawn, glance: &Glance) {
        let text = |at: usize| {
            let value = glance.attributes.iter().find(|(key, _)| *key == at);
            value.and_then(|(_, value)| shown(value))
        };
        let parent = span.parent.map(|parent| parent as usize);
        let process = match (self.process_of(span.record.origin), parent) {
            (Some(process), _) => process,
            // Live files do not say who recorded.
            (None, Some(parent)) => self.found.process[parent],
            (None, None) => self.process(Process::default()),
        };
        let above = parent.filter(|parent| self.found.process[*parent] == process);
        let above = above.map(|parent| self.found.lane[parent]);
        let device = span.parent.and_then(|parent| self.devices.get(&parent).cloned());
        let device = DEVICE.clone().find_map(text).or(device);
        let thread =
            || text(0).or_else(|| text(1)).or_else(|| Some(format!("thread {}", text(2)?)));
        let (name, is_gpu) = match device {
            Some(device) => (Some(device), true),
            None => (thread(), false),
        };
        let lane = match (name, above) {
            (None, Some(above)) => above,
            (name, _) => self.lane(Key { process, name, is_gpu }),
        };
        if text(3).as_deref() == Some("ok") {
            let device = text(4).unwrap_or_else(|| "GPU".to_owned());
            self.devices.insert(self.found.lane.len() as u32, device);
        }
        let is_gpu = self.found.lanes[lane as usize].is_gpu;
        self.found.process.push(process);
        self.found.lane.push(lane);
        self.found.marks.push(if is_gpu { mark::GPU } else { 0 });
    }

    /// Marks the span that was added last: it links to another trace.
    pub(super) fn links_away(&mut self) {
        if let Some(marks) = self.found.marks.last_mut() {
            *marks |= mark::LINKS_AWAY;
        }
    }

    /// The lanes, and the spans in their rows.
    pub(super) fn finish(mut self, spans: &[Drawn]) -> Lanes {
        let mut by_begin: Vec<u32> = (0..spans.len() as u32).collect();
        // Stable, so that a parent that begins with its child comes first.
        by_begin.sort_by_key(|at| spans[*at as usize].start);
        let found = &mut self.found;
        let mut rows: Vec<Rows> = found.lanes.iter().map(|_| Rows::default()).collect();
        found.row = vec![0; spans.len()];
        for at in by_begin {
            let (span, lane) = (&spans[at as usize], found.lane[at as usize]);
            let parent = span.parent.map(|parent| parent as usize);
            let parent = parent.filter(|parent| found.lane[*parent] == lane);
            let parent = parent.map(|parent| found.row[parent]);
            let row = rows[lane as usize].place(span.start, span.end, parent);
            found.row[at as usize] = row;
        }
        for (lane, rows) in found.lanes.iter_mut().zip(&rows) {
            lane.rows = rows.count();
        }
        self.found
    }

    fn process_of(&mut self, origin: u32) -> Option<u32> {
        if let Some(process) = self.by_origin.get(&origin) {
            return Some(*process);
        }
        let process = Process::of(&self.origins.get(origin as usize)?.resource);
        let number = self.process(process);
        self.by_origin.insert(origin, number);
        Some(number)
    }

    fn process(&mut self, process: Process) -> u32 {
        let Self { processes, found, .. } = self;
        *processes.entry(process).or_insert_with_key(|process| {
            found.processes.push(process.clone());
            found.processes.len() as u32 - 1
        })
    }

    fn lane(&mut self, key: Key) -> u32 {
        let Self { keys, found, .. } = self;
        *keys.entry(key).or_insert_with_key(|Key { process, name, is_gpu }| {
            let (process, name, is_gpu) = (*process, name.clone(), *is_gpu);
            found.lanes.push(Lane { process, name, is_gpu, rows: 0 });
            found.lanes.len() as u32 - 1
        })
    }
}

impl Process {
    fn of(resource: &Resource) -> Self {
        let text = |key: &str| resource.attribute(key).and_then(shown);
        Self {
            service: text("service.name"),
            host: text("host.name"),
            pid: text("process.pid"),
            instance: text("service.instance.id"),
        }
    }
}

/// A value as a short text.
fn shown(value: &Value) -> Option<String> {
    const LONGEST: usize = 200;
    match value {
        Value::Str(text) if !text.is_empty() => Some(text.chars().take(LONGEST).collect()),
        Value::I64(value) => Some(value.to_string()),
        _ => None,
    }
}

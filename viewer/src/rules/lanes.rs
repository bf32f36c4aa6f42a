//! Which process, and which lane within it, a span is drawn in.
//!
//! A lane is a row of slices that follow each other or lie within each other, as a drawing of nested
//! boxes needs it. Spans that overlap otherwise, as asynchronous ones do, never share one.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use hashbrown::{HashMap, HashSet};
use stagetrace_wire::span::{Resource, Value};

use super::tree::Tree;
use crate::store::{SpanNumber, Store, TraceNumber};

/// Spans in lanes of processes.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) processes: Vec<Process>,
    /// Those of one process and thread stand together.
    pub(crate) lanes: Vec<Lane>,
    /// In order of their begin, and what contains before what is contained.
    pub(crate) slices: Vec<Slice>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Service, label or instance, and number.
    pub(crate) name: String,
    /// Its number at the operating system, or one that no process has if that is unknown or another
    /// machine's process has it as well.
    pub(crate) pid: u32,
}

/// A row of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The place of its process.
    pub(crate) process: usize,
    pub(crate) name: String,
}

/// A span in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) span: SpanNumber,
    /// The place of its lane.
    pub(crate) lane: u32,
    /// In nanoseconds since 1970.
    pub(crate) begin: u64,
    /// In nanoseconds since 1970, not before the begin; of an open span now, or the last sign of it.
    pub(crate) end: u64,
}

/// Collects spans, trace by trace, so that no more than the details of one trace must be in memory.
#[derive(Debug, Default)]
pub(crate) struct LaneBuilder {
    processes: Vec<Process>,
    process_places: HashMap<Vec<String>, usize>,
    pids: HashSet<u32>,
    /// The process of each origin that was met.
    of_origin: HashMap<u32, usize>,
    groups: Vec<Group>,
    group_places: HashMap<(usize, What), usize>,
    members: Vec<Member>,
}

/// What a lane is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum What {
    /// A thread, by its number and name.
    Thread(Option<i64>, String),
    /// Work that is bound to no thread that is known.
    Tasks,
    /// A processor beside the host's, by its name.
    Gpu(String),
}

#[derive(Debug)]
struct Group {
    process: usize,
    what: What,
}

#[derive(Debug)]
struct Member {
    span: SpanNumber,
    parent: Option<SpanNumber>,
    depth: u32,
    group: u32,
    begin: u64,
    end: u64,
}

/// Numbers from here on are no processes of Linux.
const MADE_UP: u32 = 1 << 22;

impl LaneBuilder {
    /// Adds the spans of a trace that are chosen, whose details should be there. Takes time in
    /// proportion to the trace.
    pub(crate) fn add(
        &mut self,
        store: &Store,
        trace: TraceNumber,
        now: u64,
        is_chosen: impl Fn(SpanNumber) -> bool,
    ) {
        let tree = Tree::new(store, trace);
        let known = tree.nodes.iter().map(|node| node.record.end.max(node.record.start));
        let last_sign = known.max().unwrap_or(0);
        let mut has_children = vec![false; tree.nodes.len()];
        for parent in tree.nodes.iter().filter_map(|node| node.parent) {
            has_children[parent] = true;
        }
        let mut gpus: HashMap<usize, Option<String>> = HashMap::new();
        for (node, has_children) in tree.nodes.iter().zip(has_children) {
            if !is_chosen(node.number) {
                continue;
            }
            let record = node.record;
            let end = match (record.is_open(), record.is_lost) {
                (true, true) => record.end.max(last_sign),
                (true, false) => now,
                _ => record.end,
            };
            let [id, name, function] =
                store.values(node.number, ["thread.id", "thread.name", "code.function.name"]);
            let mut what = what(id, name);
            // Passes of a GPU are leaves below the span that submitted them, which no function made.
            if let (Some(parent), What::Tasks, None, false) =
                (node.parent, &what, function, has_children)
            {
                let gpu = gpus
                    .entry(parent)
                    .or_insert_with(|| gpu_below(store, tree.nodes[parent].number));
                what = gpu.clone().map_or(what, What::Gpu);
            }
            let group = self.group(store, record.origin, what);
            self.members.push(Member {
                span: node.number,
                parent: node.parent.map(|parent| tree.nodes[parent].number),
                depth: node.depth,
                group,
                begin: record.start,
                end: end.max(record.start),
            });
        }
    }

    /// Deals out the lanes, in n log n.
    pub(crate) fn build(mut self) -> Lanes {
        self.members.sort_unstable_by_key(|member| {
            (member.begin, Reverse(member.end), member.depth, member.span)
        });
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by_key(|&at| (self.groups[at].process, &self.groups[at].what));
        let mut rows: Vec<Rows> = self.groups.iter().map(|_| Rows::default()).collect();
        let mut row_of = HashMap::with_capacity(self.members.len());
        let mut placed = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let parent = member.parent.and_then(|parent| row_of.get(&parent).copied());
            let parent = parent.filter(|(group, _)| *group == member.group);
            let of_group = &mut rows[member.group as usize];
            let is_thread = matches!(self.groups[member.group as usize].what, What::Thread(..));
            let row = of_group.place(member, parent.map(|(_, row)| row), is_thread);
            row_of.insert(member.span, (member.group, row));
            placed.push(row);
        }
        let mut lanes = Vec::new();
        let mut first_of = vec![0; self.groups.len()];
        for group in order {
            let Group { process, what } = &self.groups[group];
            first_of[group] = lanes.len();
            lanes.extend((0..rows[group].rows.len()).map(|row| {
                let name =
                    if row == 0 { what.name() } else { format!("{} · {}", what.name(), row + 1) };
                Lane { process: *process, name }
            }));
        }
        let slices = self.members.iter().zip(placed).map(|(member, row)| Slice {
            span: member.span,
            lane: (first_of[member.group as usize] + row) as u32,
            begin: member.begin,
            end: member.end,
        });
        Lanes { slices: slices.collect(), processes: self.processes, lanes }
    }

    fn group(&mut self, store: &Store, origin: u32, what: What) -> u32 {
        let process = match self.of_origin.get(&origin) {
            Some(process) => *process,
            None => {
                let process = self.process(&store.origin(origin).resource);
                self.of_origin.insert(origin, process);
                process
            }
        };
        let groups = &mut self.groups;
        let place = self.group_places.entry((process, what)).or_insert_with_key(|(_, what)| {
            groups.push(Group { process, what: what.clone() });
            groups.len() - 1
        });
        *place as u32
    }

    /// The process that a resource describes: one service and instance, or process of a host.
    fn process(&mut self, resource: &Resource) -> usize {
        let text = |key: &str| match resource.attribute(key) {
            Some(Value::Str(text)) => text.clone(),
            Some(Value::I64(number)) => number.to_string(),
            _ => String::new(),
        };
        const KEYS: [&str; 4] = ["service.name", "service.instance.id", "host.name", "process.pid"];
        let key: Vec<String> = KEYS.iter().map(|key| text(key)).collect();
        if let Some(place) = self.process_places.get(&key) {
            return *place;
        }
        let own = key[3].parse().ok().filter(|pid| (1..MADE_UP).contains(pid));
        let own = own.filter(|pid| self.pids.insert(*pid));
        let pid = own.unwrap_or(MADE_UP + self.processes.len() as u32);
        let label = match text("stagetrace.process.label") {
            label if label.is_empty() => key[1].clone(),
            label => label,
        };
        let service = if key[0].is_empty() { "unknown service".to_owned() } else { key[0].clone() };
        let parts = [service, label, key[2].clone()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.processes.push(Process { name: parts.join(" · "), pid });
        self.process_places.insert(key, self.processes.len() - 1);
        self.processes.len() - 1
    }
}

/// The lanes of a group while they are dealt out.
#[derive(Debug, Default)]
struct Rows {
    /// Ends of the slices of each that contain each other, the outermost first.
    rows: Vec<Vec<(u64, SpanNumber)>>,
    /// Rows by the end of their outermost slice.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    idle: BTreeSet<usize>,
}

impl Rows {
    /// Finds a row for the next member: that of its parent, if it lies within it there; on a thread
    /// the first one, if it lies within whatever runs there; else one where nothing runs.
    fn place(&mut self, member: &Member, parent: Option<usize>, is_thread: bool) -> usize {
        while let Some(Reverse((end, row))) = self.busy.peek().copied() {
            if end > member.begin {
                break;
            }
            self.busy.pop();
            self.rows[row].clear();
            self.idle.insert(row);
        }
        if let Some(row) = parent
            && self.has_room_within(row, member, member.parent)
        {
            self.rows[row].push((member.end, member.span));
            return row;
        }
        if is_thread && !self.rows.is_empty() && self.has_room_within(0, member, None) {
            self.rows[0].push((member.end, member.span));
            return 0;
        }
        let row = self.idle.pop_first().unwrap_or_else(|| {
            self.rows.push(Vec::new());
            self.rows.len() - 1
        });
        self.rows[row].push((member.end, member.span));
        self.busy.push(Reverse((member.end, row)));
        row
    }

    /// Whether a member lies within what runs in a row when it begins: within this span, if one is
    /// given.
    fn has_room_within(&mut self, row: usize, member: &Member, within: Option<SpanNumber>) -> bool {
        let running = &mut self.rows[row];
        while running.last().is_some_and(|(end, _)| *end <= member.begin) && running.len() > 1 {
            running.pop();
        }
        running.last().is_some_and(|(end, span)| {
            *end > member.begin && member.end <= *end && within.is_none_or(|within| within == *span)
        })
    }
}

impl What {
    fn name(&self) -> String {
        match self {
            Self::Thread(None, name) => name.clone(),
            Self::Thread(Some(id), name) if name.is_empty() => format!("thread {id}"),
            Self::Thread(Some(id), name) => format!("{name} ({id})"),
            Self::Tasks => "tasks".to_owned(),
            Self::Gpu(name) if name.is_empty() => "GPU".to_owned(),
            Self::Gpu(name) => format!("GPU {name}"),
        }
    }
}

fn what(id: Option<Value>, name: Option<Value>) -> What {
    let id = match id {
        Some(Value::I64(id)) => Some(id),
        Some(Value::Str(text)) => text.parse().ok(),
        _ => None,
    };
    match (id, name) {
        (id, Some(Value::Str(name))) if id.is_some() || !name.is_empty() => What::Thread(id, name),
        (Some(id), _) => What::Thread(Some(id), String::new()),
        _ => What::Tasks,
    }
}

/// The name of the GPU whose passes are the children of a span, if they are; it may be empty.
fn gpu_below(store: &Store, span: SpanNumber) -> Option<String> {
    let [stamps, adapter] = store.values(span, ["gpu.timestamps", "gpu.adapter"]);
    let has_stamps = stamps.as_ref().and_then(Value::as_str) == Some("ok");
    let adapter = adapter.as_ref().and_then(Value::as_str).unwrap_or_default();
    has_stamps.then(|| adapter.to_owned())
}

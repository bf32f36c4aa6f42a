//! Perfetto's trace: packets of protobuf, one behind another.
//!
//! Numbers of fields are those of `protos/perfetto/trace/` in github.com/google/perfetto, version
//! 59.1: `trace.proto`, `trace_packet.proto`, `clock_snapshot.proto`, `track_event/track_event.proto`,
//! `track_event/track_descriptor.proto`, `track_event/process_descriptor.proto` and
//! `track_event/debug_annotation.proto`. Readers sort packets by their times and keep the order of
//! those with the same, so each lane stands in the order in which its slices begin and end.

use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stagetrace_wire::span::Value;

use super::Chosen;
use super::plan::{Plan, instant, told};
use super::protobuf::Message;
use crate::rules::Slice;

mod field {
    pub(super) const TRACE_PACKET: u32 = 1;

    pub(super) mod packet {
        pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
        pub(crate) const TIMESTAMP: u32 = 8;
        pub(crate) const SEQUENCE_ID: u32 = 10;
        pub(crate) const TRACK_EVENT: u32 = 11;
        pub(crate) const SEQUENCE_FLAGS: u32 = 13;
        pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    }

    pub(super) mod clock_snapshot {
        pub(crate) const CLOCKS: u32 = 1;
        pub(crate) const CLOCK_ID: u32 = 1;
        pub(crate) const TIMESTAMP: u32 = 2;
    }

    pub(super) mod track {
        pub(crate) const UUID: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const PROCESS: u32 = 3;
        pub(crate) const PARENT_UUID: u32 = 5;
        pub(crate) const CHILD_ORDERING: u32 = 11;
        pub(crate) const SIBLING_ORDER_RANK: u32 = 12;
        pub(crate) const SIBLING_MERGE_BEHAVIOR: u32 = 15;
    }

    pub(super) mod process {
        pub(crate) const PID: u32 = 1;
        pub(crate) const NAME: u32 = 6;
    }

    pub(super) mod event {
        pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
        pub(crate) const TYPE: u32 = 9;
        pub(crate) const TRACK_UUID: u32 = 11;
        pub(crate) const CATEGORIES: u32 = 22;
        pub(crate) const NAME: u32 = 23;
        pub(crate) const FLOW_IDS: u32 = 47;
    }

    pub(super) mod annotation {
        pub(crate) const BOOL: u32 = 2;
        pub(crate) const INT: u32 = 4;
        pub(crate) const DOUBLE: u32 = 5;
        pub(crate) const STRING: u32 = 6;
        pub(crate) const NAME: u32 = 10;
        pub(crate) const DICT_ENTRIES: u32 = 11;
        pub(crate) const ARRAY_VALUES: u32 = 12;
    }
}
use field::{annotation, clock_snapshot, event, packet, process, track};

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
enum Type {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// `BuiltinClock`: that of the machine, and that of all packets here.
const CLOCKS: [u64; 2] = [1, 6];
/// `ChildTracksOrdering.EXPLICIT`: by their ranks.
const BY_RANK: u64 = 3;
/// `SIBLING_MERGE_BEHAVIOR_NONE`: tracks of the same name are different ones.
const NEVER_MERGED: u64 = 2;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before it counts.
const CLEARED: u64 = 1;

pub(super) fn write(chosen: &mut Chosen<'_>, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let mut packets = Packets { out };
    packets.heads(plan)?;
    let mut running: Vec<Vec<u64>> = vec![Vec::new(); plan.lanes.lanes.len()];
    for slice in &plan.lanes.slices {
        let of_lane = &mut running[slice.lane as usize];
        while let Some(end) = of_lane.pop_if(|end| *end <= slice.begin) {
            packets.end(plan, slice.lane, end)?;
        }
        packets.begin(chosen, plan, slice)?;
        of_lane.push(slice.end);
    }
    for (lane, of_lane) in running.into_iter().enumerate() {
        for end in of_lane.into_iter().rev() {
            packets.end(plan, lane as u32, end)?;
        }
    }
    Ok(())
}

struct Packets<'o> {
    out: &'o mut dyn Write,
}

impl Packets<'_> {
    /// Says what time it is, and which tracks there are.
    fn heads(&mut self, plan: &Plan) -> io::Result<()> {
        self.packet(plan.begin, |inner| {
            inner.number(packet::SEQUENCE_FLAGS, CLEARED);
            inner.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for clock in CLOCKS {
                    snapshot.message(clock_snapshot::CLOCKS, |inner| {
                        inner.number(clock_snapshot::CLOCK_ID, clock);
                        inner.number(clock_snapshot::TIMESTAMP, plan.begin);
                    });
                }
            });
        })?;
        for (place, of_one) in plan.lanes.processes.iter().enumerate() {
            self.packet(plan.begin, |inner| {
                inner.message(packet::TRACK_DESCRIPTOR, |inner| {
                    inner.number(track::UUID, process_uuid(place));
                    inner.message(track::PROCESS, |inner| {
                        inner.number(process::PID, of_one.pid.into());
                        inner.text(process::NAME, &of_one.name);
                    });
                    inner.number(track::CHILD_ORDERING, BY_RANK);
                });
            })?;
        }
        for (place, lane) in plan.lanes.lanes.iter().enumerate() {
            self.packet(plan.begin, |inner| {
                inner.message(packet::TRACK_DESCRIPTOR, |inner| {
                    inner.number(track::UUID, lane_uuid(plan, place as u32));
                    inner.text(track::NAME, &lane.name);
                    inner.number(track::PARENT_UUID, process_uuid(lane.process));
                    inner.number(track::SIBLING_ORDER_RANK, place as u64);
                    inner.number(track::SIBLING_MERGE_BEHAVIOR, NEVER_MERGED);
                });
            })?;
        }
        Ok(())
    }

    fn begin(&mut self, chosen: &mut Chosen<'_>, plan: &Plan, slice: &Slice) -> io::Result<()> {
        let mut span = chosen.span(slice.span);
        let told = told(chosen, slice.span, &mut span);
        let stage = chosen.store.text(chosen.store.record(slice.span).stage);
        self.event(plan, slice.lane, slice.begin, Type::SliceBegin, |inner| {
            inner.text(event::CATEGORIES, &stage);
            inner.text(event::NAME, &span.name);
            for arrow in plan.arrows(slice.span) {
                inner.fixed64(event::FLOW_IDS, arrow.number);
            }
            annotations(inner, event::DEBUG_ANNOTATIONS, &told);
        })?;
        for of_one in &span.events {
            let at = instant(slice, of_one);
            self.event(plan, slice.lane, at, Type::Instant, |inner| {
                inner.text(event::CATEGORIES, &stage);
                inner.text(event::NAME, &of_one.name);
                annotations(inner, event::DEBUG_ANNOTATIONS, &of_one.attributes);
            })?;
        }
        Ok(())
    }

    fn end(&mut self, plan: &Plan, lane: u32, at: u64) -> io::Result<()> {
        self.event(plan, lane, at, Type::SliceEnd, |_| {})
    }

    fn event(
        &mut self,
        plan: &Plan,
        lane: u32,
        at: u64,
        of_type: Type,
        write: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.packet(at, |inner| {
            inner.message(packet::TRACK_EVENT, |inner| {
                inner.number(event::TYPE, of_type as u64);
                inner.number(event::TRACK_UUID, lane_uuid(plan, lane));
                write(inner);
            });
        })
    }

    fn packet(&mut self, at: u64, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut trace = Message::default();
        trace.message(field::TRACE_PACKET, |inner| {
            inner.number(packet::TIMESTAMP, at);
            inner.number(packet::SEQUENCE_ID, 1);
            write(inner);
        });
        self.out.write_all(&trace.0)
    }
}

/// 0 is a track that is always there.
fn process_uuid(place: usize) -> u64 {
    place as u64 + 1
}

fn lane_uuid(plan: &Plan, place: u32) -> u64 {
    process_uuid(plan.lanes.processes.len()) + u64::from(place)
}

fn annotations(into: &mut Message, field: u32, attributes: &[(String, Value)]) {
    for (key, value) in attributes {
        into.message(field, |inner| {
            inner.text(annotation::NAME, key);
            annotate(inner, value);
        });
    }
}

fn annotate(into: &mut Message, value: &Value) {
    match value {
        Value::Empty => {}
        Value::Bool(value) => drop(into.number(annotation::BOOL, u64::from(*value))),
        Value::I64(value) => drop(into.number(annotation::INT, *value as u64)),
        Value::F64(value) => drop(into.fixed64(annotation::DOUBLE, value.to_bits())),
        Value::Str(text) => drop(into.text(annotation::STRING, text)),
        Value::Bytes(bytes) => {
            into.text(annotation::STRING, &BASE64_STANDARD.encode(bytes));
        }
        Value::Array(values) => {
            for value in values {
                into.message(annotation::ARRAY_VALUES, |inner| annotate(inner, value));
            }
        }
        Value::Map(members) => annotations(into, annotation::DICT_ENTRIES, members),
    }
}

//! What the sinks were handed and have not let go, where none of them is a file: step by step, in order.

use super::details::Pin;
use super::handed::Handed;
use super::sink::Standing;
use super::spool::{Refused, Spool};
use crate::stats::SpoolStats;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a spool that cannot be written is tried again before a chunk is given up for want of room.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much room the pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Enough.
    Enough,
    /// What waits holds half of it.
    Half,
    /// Little is free.
    Short,
}

/// Steps that the sinks have, and the spool for those whose room is needed.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) spool: Spool,
    steps: VecDeque<Step>,
    /// Memory for further ones.
    spare: Vec<Step>,
    /// What each sink had lost when the last step was handed to it.
    lost: Vec<u64>,
    /// Steps that all sinks have let go, and how many had been handed out when a chunk was last spooled.
    gone: u64,
    spooled_at: u64,
    /// How often spans that are not out yet want details in chunks that were spooled.
    pub(super) wanted: i64,
    /// Whether a sink has ever lost a span of a step.
    has_losses: bool,
    /// Details of spans of the step that is being handed out.
    pub(super) pins: Vec<Pin>,
    /// Slab slots with spans that a sink has lost.
    pub(super) lost_slots: Vec<u32>,
    /// Spans that had to make room and are in no file.
    given_up: u64,
}

/// What was handed out between two looks at the sinks.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) runs: Vec<Run>,
    pub(super) slots: Vec<u32>,
    pub(super) pins: Vec<Pin>,
    /// Of each sink: how many spans had come to it with this step, and how many it had lost before.
    sinks: Vec<(u64, u64)>,
}

/// Spans in a row from one use of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) page: u32,
    pub(super) epoch: u32,
    pub(super) spans: u32,
}

impl Held {
    /// Nothing held yet.
    pub(crate) fn new(spool: Spool) -> Held {
        Held {
            spool,
            steps: VecDeque::new(),
            spare: Vec::new(),
            lost: Vec::new(),
            gone: 0,
            spooled_at: 0,
            wanted: 0,
            has_losses: false,
            pins: Vec::new(),
            lost_slots: Vec::new(),
            given_up: 0,
        }
    }

    /// Takes over what was handed out since the last look. `epoch` tells the use of a page's chunk.
    pub(super) fn take(
        &mut self,
        handed: &mut Handed,
        epoch: impl Fn(u32) -> u32,
        sinks: &[Standing],
    ) {
        self.lost.resize(sinks.len(), 0);
        if !(handed.runs.is_empty() && handed.slots.is_empty() && self.pins.is_empty()) {
            let mut step = self.spare.pop().unwrap_or_default();
            let runs = handed.runs.drain(..);
            step.runs.extend(runs.map(|(page, spans)| Run { page, epoch: epoch(page), spans }));
            step.slots.append(&mut handed.slots);
            step.pins.append(&mut self.pins);
            // What a sink lost since the last look may be of this step.
            let before = self.lost.iter().copied();
            step.sinks.extend(sinks.iter().map(|sink| sink.taken).zip(before));
            self.steps.push_back(step);
        }
        self.lost.clear();
        self.lost.extend(sinks.iter().map(|sink| sink.lost));
    }

    /// The next step that every sink has let go, and whether one of them has lost spans meanwhile: of this step, as far as
    /// is known.
    pub(super) fn next_gone(&mut self, sinks: &[Standing]) -> Option<(Step, bool)> {
        let step = self.steps.front()?;
        let mut of_sinks = sinks.iter().zip(&step.sinks);
        if of_sinks.clone().any(|(sink, (taken, _))| sink.gone < *taken) {
            return None;
        }
        let is_lost = of_sinks.any(|(sink, (_, before))| sink.lost > *before);
        self.has_losses |= is_lost;
        self.gone += 1;
        self.steps.pop_front().map(|step| (step, is_lost))
    }

    /// Takes the memory of a step back.
    pub(super) fn give_back(&mut self, mut step: Step) {
        step.runs.clear();
        step.slots.clear();
        step.pins.clear();
        step.sinks.clear();
        if self.spare.len() < 16 {
            self.spare.push(step);
        }
    }

    /// Puts a chunk with so many spans in the spool. Whether its room may be used anew: it is there or, for want of room,
    /// given up.
    pub(super) fn spool(
        &mut self,
        words: impl ExactSizeIterator<Item = u64>,
        spans: u32,
        room: Room,
    ) -> bool {
        match self.spool.append(words) {
            Ok(()) => {
                self.spooled_at = self.gone + self.steps.len() as u64;
                true
            }
            Err(refused) => {
                let gives_up = match refused {
                    Refused::Full => room != Room::Enough,
                    Refused::Failing(since) => room == Room::Short && since >= PATIENCE,
                };
                self.given_up += if gives_up { u64::from(spans) } else { 0 };
                gives_up
            }
        }
    }

    /// Empties the spool once all that it holds has left all sinks. What one has lost stays in it for good.
    pub(super) fn tidy(&mut self) {
        let is_out = self.gone >= self.spooled_at && self.wanted == 0 && !self.has_losses;
        if is_out && !self.spool.is_empty() {
            self.spool.clear();
        }
    }

    /// Whether all that was handed out is out.
    pub(super) fn is_out(&self) -> bool {
        self.steps.is_empty() && !self.has_losses
    }

    /// How the spool stands.
    pub(super) fn stats(&self) -> SpoolStats {
        SpoolStats { given_up: self.given_up, ..self.spool.stats() }
    }
}

//! How long each request spent in each stage, as this process recorded it.

use super::view::StageTime;
use crate::record::live;
use crate::stage::Stage;
use std::collections::HashMap;

/// Sweeps after which what came after its root is forgotten.
const OLD: u64 = 64;

/// The breakdowns of requests whose roots have not been exported, by root and trace. A root's number is used anew as soon
/// as its request is gone, in the same trace perhaps: its generation tells them apart.
#[derive(Debug, Default)]
pub(crate) struct Breakdowns {
    of_roots: HashMap<(u64, [u64; 2]), OfRoot>,
}

#[derive(Debug, Default)]
struct OfRoot {
    touched: u64,
    times: Vec<StageTime>,
}

impl Breakdowns {
    /// Adds one execution of a stage. Inclusive times; parallel executions add up.
    pub(crate) fn add(&mut self, root: u64, trace: [u64; 2], stage: Stage, ns: u64, sweep: u64) {
        let of_root = self.of_roots.entry((root, trace)).or_default();
        of_root.touched = sweep;
        match of_root.times.iter_mut().find(|time| time.stage == stage) {
            Some(time) => {
                time.count += 1;
                time.ns = time.ns.saturating_add(ns);
            }
            None => of_root.times.push(StageTime { stage, count: 1, ns }),
        }
    }

    /// The breakdown of a root that is exported, in the order in which its stages ended first.
    pub(crate) fn take(&mut self, root: u64, trace: [u64; 2]) -> Vec<StageTime> {
        self.of_roots.remove(&(root, trace)).map_or_else(Vec::new, |of_root| of_root.times)
    }

    /// Forgets what came after its root, whose request is gone or has finished long ago.
    pub(crate) fn forget_dead(&mut self, sweep: u64) {
        self.of_roots.retain(|(root, trace), of_root| {
            let is_open = || {
                live::of_root(*root).is_some_and(|block| {
                    let position = block.position();
                    let is_same = position.trace == *trace && position.state.root() == *root;
                    is_same && block.slot().is_some()
                })
            };
            of_root.touched + OLD > sweep || is_open()
        });
    }
}

//! How long each request spent in each stage, as this process recorded it.

use super::hash::IdMap;
use super::view::{StageKeys, StageTime};
use crate::record::live;
use crate::stage::Stage;
use std::sync::Arc;

/// Sweeps after which what came after its root is forgotten.
const OLD: u64 = 64;
/// Lists that are kept for further roots.
const SPARE: usize = 256;

/// The breakdowns of requests whose roots have not been exported, by root and trace. A root's number is used anew as soon
/// as its request is gone, in the same trace perhaps: its generation tells them apart.
#[derive(Debug, Default)]
pub(crate) struct Breakdowns {
    of_roots: IdMap<Key, OfRoot>,
    /// The one that was added to last, which is not in the map: spans of one request come in rows.
    last: Option<(Key, OfRoot)>,
    keys: Vec<(Stage, Arc<StageKeys>)>,
    spare: Vec<Vec<StageTime>>,
}

/// A root, and the halves of its trace.
type Key = (u64, u64, u64);

#[derive(Debug, Default)]
struct OfRoot {
    touched: u64,
    times: Vec<StageTime>,
}

impl Breakdowns {
    /// Adds one execution of a stage. Inclusive times; parallel executions add up.
    #[inline]
    pub(crate) fn add(&mut self, root: u64, trace: [u64; 2], stage: Stage, ns: u64, sweep: u64) {
        let key = (root, trace[0], trace[1]);
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            self.change_to(key);
        }
        let Some((_, of_root)) = &mut self.last else { return };
        of_root.touched = sweep;
        match of_root.times.iter_mut().find(|time| time.stage == stage) {
            Some(time) => {
                time.count += 1;
                time.ns = time.ns.saturating_add(ns);
            }
            None => {
                let keys = keys_of(&mut self.keys, stage);
                of_root.times.push(StageTime { stage, keys, count: 1, ns });
            }
        }
    }

    #[inline(never)]
    fn change_to(&mut self, key: Key) {
        self.put_back();
        let of_root = self.of_roots.remove(&key).unwrap_or_else(|| {
            let times = self.spare.pop().unwrap_or_default();
            OfRoot { touched: 0, times }
        });
        self.last = Some((key, of_root));
    }

    fn put_back(&mut self) {
        if let Some((key, of_root)) = self.last.take() {
            self.of_roots.insert(key, of_root);
        }
    }

    /// The breakdown of a root that is exported, in the order in which its stages ended first.
    pub(crate) fn take(&mut self, root: u64, trace: [u64; 2]) -> Vec<StageTime> {
        let key = (root, trace[0], trace[1]);
        let of_root = match self.last.take_if(|(last, _)| *last == key) {
            Some((_, of_root)) => Some(of_root),
            None => self.of_roots.remove(&key),
        };
        of_root.map_or_else(Vec::new, |of_root| of_root.times)
    }

    /// Gives back a list, for its memory.
    pub(crate) fn give_back(&mut self, mut times: Vec<StageTime>) {
        if times.capacity() > 0 && self.spare.len() < SPARE {
            times.clear();
            self.spare.push(times);
        }
    }

    /// Forgets what came after its root, whose request is gone or has finished long ago.
    pub(crate) fn forget_dead(&mut self, sweep: u64) {
        self.put_back();
        self.of_roots.retain(|(root, upper, lower), of_root| {
            let is_open = || {
                live::of_root(*root).is_some_and(|block| {
                    let position = block.position();
                    let trace = [*upper, *lower];
                    let is_same = position.trace == trace && position.state.root() == *root;
                    is_same && block.slot().is_some()
                })
            };
            of_root.touched + OLD > sweep || is_open()
        });
    }
}

/// The keys under which a stage stands in breakdowns; made once.
fn keys_of(known: &mut Vec<(Stage, Arc<StageKeys>)>, stage: Stage) -> Arc<StageKeys> {
    if let Some((_, keys)) = known.iter().find(|(other, _)| *other == stage) {
        return Arc::clone(keys);
    }
    let keys = Arc::new(StageKeys::new(stage));
    known.push((stage, Arc::clone(&keys)));
    keys
}

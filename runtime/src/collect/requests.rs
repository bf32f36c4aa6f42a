//! Requests in flight: the roots that lie open in the slabs.

use crate::chunk::{Pool, generation};
use crate::record::register;
use stagetrace_wire::recording::layout::{chunk, slab, slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many requests are open, by name. Any thread may ask; it looks at every slot, some hundred nanoseconds a block.
pub(crate) fn open_requests(pool: &Pool) -> Vec<(&'static str, u64)> {
    let mut found: Vec<(&'static str, u64)> = Vec::new();
    for block in 1..pool.blocks() {
        if pool.block(block)[chunk::KIND].load(Ordering::Acquire) as u32 != chunk::SLAB {
            continue;
        }
        for number in Pool::slots_of(block) {
            let Some(name) = open_root(pool.slot(number)) else { continue };
            match found.iter_mut().find(|(other, _)| *other == name) {
                Some((_, count)) => *count += 1,
                None => found.push((name, 1)),
            }
        }
    }
    found
}

/// The name of the request whose root is open in a slot.
fn open_root(words: &[AtomicU64]) -> Option<&'static str> {
    let before = words[slab::GENERATION].load(Ordering::Acquire);
    let meta = words[slot::META].load(Ordering::Acquire);
    let is_root = (meta >> 56) as u8 & slot::ROOT != 0;
    let is_same = || words[slab::GENERATION].load(Ordering::Acquire) == before;
    if !is_root || !generation::is_open(words) || !is_same() {
        return None;
    }
    register::site(meta as u32).map(|site| site.stage().name())
}

//! Side records: what comes to a span after its begin, or did not fit inline.
//!
//! An event, a link, late attributes and an error's text are rare beside spans and of any size, so they are records of
//! their own, in the chunk of the thread that reports them. The span's slot counts them: whoever exports the span
//! waits until that many were seen.

use super::Position;
use super::local::Local;
use super::recorder;
use super::value::{Value, encode_at};
use super::write::SlotRef;
use crate::chunk::DropCause;
use crate::request::Judged;
use stagetrace_wire::recording::layout::{side, slot};
use stagetrace_wire::span::flags;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest text that is kept whole, in bytes; a longer one is cut, and its length noted beside it.
pub(crate) const MAX_TEXT: usize = 32 * 1024;
/// Before the key of a cut text: its length in bytes before the cut.
pub(crate) const CUT: &str = "stagetrace.cut.";

/// A key and a value.
pub(crate) type Attribute<'a> = (&'a str, &'a dyn Value);

/// Whose a detail is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) trace: [u64; 2],
    pub(crate) span: u64,
    pub(crate) slot: SlotRef,
}

impl Owner {
    /// The span of a slot.
    pub(crate) fn of(slot: SlotRef) -> Owner {
        let word = |at| slot.word(at).load(Ordering::Relaxed);
        Owner { trace: [word(slot::TRACE), word(slot::TRACE + 1)], span: word(slot::SPAN), slot }
    }

    /// The current span of a thread, `None` if there is none that is recorded here.
    pub(crate) fn current(local: &Local) -> Option<Owner> {
        let Position { trace, span, state } = local.position();
        // SAFETY: the slot is only known while whoever made it current keeps the span.
        let slot = unsafe { SlotRef::new(local.known_slot()) };
        // What is said about a span of another process could never be exported with it.
        (state.level() > 0 && span != 0 && !state.is_remote()).then_some(Owner {
            trace,
            span,
            slot,
        })
    }
}

/// Adds attributes to a span. Whether they were recorded.
pub(crate) fn attributes(local: &Local, owner: Owner, attributes: &[Attribute<'_>]) -> bool {
    write(local, owner, side::ATTRIBUTES, &[], &[], Some(attributes))
}

/// Adds an event to a span.
pub(crate) fn event(local: &Local, owner: Owner, name: &str, attributes: &[Attribute<'_>]) -> bool {
    write(local, owner, side::EVENT, &[], &[name], Some(attributes))
}

/// Adds a link to a span.
pub(crate) fn link(
    local: &Local,
    owner: Owner,
    to: Position,
    attributes: &[Attribute<'_>],
) -> bool {
    let remote = if to.state.is_remote() { flags::IS_REMOTE } else { 0 };
    let flags = u32::from(to.state.flags()) | flags::HAS_IS_REMOTE | remote;
    let words = [to.trace[0], to.trace[1], to.span, u64::from(flags)];
    write(local, owner, side::LINK, &words, &[], Some(attributes))
}

/// Adds the `tracestate` that a root's request brought.
pub(crate) fn trace_state(local: &Local, root: Owner, text: &str) -> bool {
    write(local, root, side::TRACE_STATE, &[], &[text], None)
}

/// Adds the error of a span that failed.
pub(crate) fn failure(local: &Local, owner: Owner, judged: &Judged) -> bool {
    let texts = [judged.error_type().unwrap_or("_OTHER"), judged.message().unwrap_or_default()];
    write(local, owner, side::FAILURE, &[], &texts, None)
}

#[inline(never)]
fn write(
    local: &Local,
    owner: Owner,
    kind: u64,
    words: &[u64],
    texts: &[&str],
    attributes: Option<&[Attribute<'_>]>,
) -> bool {
    if owner.span == 0 {
        // In the child of a fork, a slot of its parent's.
        recorder::count(&recorder::NO_SPAN);
        return false;
    }
    let texts_words: usize = texts.iter().map(|text| cut(text).words()).sum();
    let attributes_words =
        attributes.map_or(0, |list| 1 + list.iter().map(|a| attribute_words(*a)).sum::<usize>());
    let payload = words.len() + texts_words + attributes_words;
    let size = (slot::WORDS + payload).next_multiple_of(slot::WORDS);
    if size > slot::MAX_WORDS {
        if let Some(pool) = local.pool() {
            pool.count_dropped(DropCause::DetailTooLarge);
        }
        return false;
    }
    local
        .with_room(size, DropCause::DetailFull, |writer| {
            let at = writer.reserve(size)?.start();
            // A forgotten guard may have left the slot of a span that is no more.
            let is_its = !owner.slot.is_none()
                && owner.slot.word(slot::SPAN).load(Ordering::Relaxed) == owner.span;
            if is_its {
                owner.slot.add_side();
            }
            // SAFETY: `size` words are reserved at `at` and not published; the slot takes eight, the payload the rest,
            // and each part writes as many words as were counted for it.
            unsafe {
                store_head(at, owner, kind, size, local.ticks());
                let mut out = at.add(slot::WORDS).cast_mut().cast::<u64>();
                for word in words {
                    out.write(*word);
                    out = out.add(1);
                }
                for text in texts {
                    out = encode_at(cut(text), out);
                }
                if let Some(list) = attributes {
                    out.write(list.iter().map(|a| count(*a)).sum());
                    out = out.add(1);
                    for attribute in list {
                        out = put_attribute(*attribute, out);
                    }
                }
                let _ = out;
            }
            writer.publish();
            Some(())
        })
        .is_some()
}

/// # Safety
/// `at` has eight unpublished words.
unsafe fn store_head(at: *const AtomicU64, owner: Owner, kind: u64, size: usize, ticks: u64) {
    // SAFETY: the caller's promise.
    let store =
        |word: usize, value: u64| unsafe { (*at.add(word)).store(value, Ordering::Relaxed) };
    store(slot::BEGIN, ticks);
    store(slot::END, kind);
    store(slot::SPAN, owner.span);
    store(slot::PARENT, 0);
    store(slot::TRACE, owner.trace[0]);
    store(slot::TRACE + 1, owner.trace[1]);
    store(slot::META, (size as u64) << 32 | u64::from(slot::SIDE) << 56);
    store(slot::LIFE, 0);
}

/// The attribute's text without what is too much.
fn cut(text: &str) -> &str {
    crate::request::cut(text, MAX_TEXT)
}

/// The text to cut, and the length to note, if the value is too long a text.
fn too_long(value: &dyn Value) -> Option<&str> {
    value.text().filter(|text| text.len() > MAX_TEXT)
}

fn count((_, value): Attribute<'_>) -> u64 {
    match value.tag() {
        None => 0,
        Some(_) => 1 + u64::from(too_long(value).is_some()),
    }
}

fn attribute_words((key, value): Attribute<'_>) -> usize {
    match (value.tag(), too_long(value)) {
        (None, _) => 0,
        (Some(_), None) => key.words() + 1 + value.words(),
        (Some(_), Some(text)) => {
            let noted = 1 + (CUT.len() + key.len()).div_ceil(8) + 1 + 1;
            key.words() + 1 + cut(text).words() + noted
        }
    }
}

/// Writes key, tag and value; gives where the next one goes.
///
/// # Safety
/// `out` has as many words of the caller's own as [`attribute_words`] says.
unsafe fn put_attribute((key, value): Attribute<'_>, mut out: *mut u64) -> *mut u64 {
    let Some(tag) = value.tag() else { return out };
    // SAFETY: the parts are those that `attribute_words` counts.
    unsafe {
        out = encode_at(key, out);
        out.write(tag as u64);
        out = out.add(1);
        match too_long(value) {
            None => encode_at(value, out),
            Some(text) => {
                out = encode_at(cut(text), out);
                out = encode_at(&*format!("{CUT}{key}"), out);
                out.write(super::value::INTEGER);
                encode_at(&(text.len() as i64), out.add(1))
            }
        }
    }
}

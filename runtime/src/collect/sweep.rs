//! The walk over all chunks and slabs: what has ended since the last one, and which chunks are done with.
//!
//! A chunk's records are looked at in order, once; those still open are looked at again until they end. An ended span
//! is exported at once, but for two kinds that wait: a request's root, one full sweep, so that the stages that ended
//! before it are in its breakdown; and a span with side records, until they were seen.

use super::breakdown::Breakdowns;
use super::details::{Details, Pin, Taken};
use super::ended::Ended;
use super::handed::{Handed, IN_SLAB, Place};
use super::held::Held;
use super::line::Line;
use super::run::{Context, Gathered};
use super::view::{Record, SpanView};
use crate::chunk::{Hand, Pool, Progress, Seen, generation};
use crate::config::SpanLimits;
use crate::record::register;
use crate::stage::Site;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk, slab, slot};
use stagetrace_wire::recording::time::Timeline;
use std::sync::atomic::{AtomicU64, Ordering};

mod hold;
mod recycle;

/// Sweeps that a span waits for its side records at most.
const PATIENCE: u64 = 4;
/// Copies of spans whose memory is kept for further ones.
const SPARE: usize = 1024;

/// What the collector knows of the recorder's memory.
#[derive(Debug)]
pub(crate) struct Sweep {
    pool: &'static Pool,
    limits: SpanLimits,
    chunks: Vec<Chunk>,
    sites: Vec<&'static Site>,
    details: Details,
    breakdowns: Breakdowns,
    waiting: Vec<Waiting>,
    /// Memory for further ones.
    spare: Vec<Vec<u64>>,
    /// How many sweeps there were.
    count: u64,
    /// Where the spans handed out since the last [`Sweep::acknowledge`] came from.
    handed: Handed,
    /// Where spans came from that nobody exports: thrown away, or measured and that is all. Until the end of the walk.
    done: Handed,
    /// What sinks have of the spans handed out before, where chunks wait for them.
    held: Option<Box<Held>>,
    /// Whether spans that are safe are marked in the recording.
    marks: bool,
    /// Spans discarded by a call.
    pub(crate) discarded: u64,
    scratch: Vec<u64>,
    gathered: Gathered,
    /// Slab slots on their way back to the shelf.
    freed: Hand,
}

/// Whether a record in a chunk is what a span left that has moved to the slab.
fn goes_on_in_slab(record: &[AtomicU64]) -> bool {
    record[slot::LIFE].load(Ordering::Relaxed) & slot::TAKEN != 0
}

/// What is known of one chunk.
#[derive(Clone, Debug, Default)]
struct Chunk {
    progress: Progress,
    /// Spans that have ended and are not yet safe.
    unsafe_spans: u32,
    /// So many of them are held or were lost by a sink, where chunks wait for sinks.
    handed: u32,
    /// Whether a sink has lost spans of it, or those whose details it has.
    is_lost: bool,
    /// Spans not yet exported of which it holds details. A difference while the chunk is looked at.
    wanted: i32,
    /// How often it was recycled: what is wanted of an earlier use is not of this one.
    epoch: u32,
}

impl Chunk {
    /// Nothing seen yet of its use after so many.
    fn of(epoch: u32) -> Chunk {
        Chunk { epoch, ..Chunk::default() }
    }
}

/// A span that waits, copied out.
#[derive(Debug)]
struct Waiting {
    words: Vec<u64>,
    place: Place,
    since: u64,
}

impl Sweep {
    /// Nothing seen yet.
    pub(crate) fn new(pool: &'static Pool, limits: SpanLimits) -> Sweep {
        Sweep {
            pool,
            limits,
            chunks: Vec::new(),
            sites: Vec::new(),
            details: Details::new(limits),
            breakdowns: Breakdowns::default(),
            waiting: Vec::new(),
            spare: Vec::new(),
            count: 0,
            handed: Handed::default(),
            done: Handed::default(),
            held: None,
            marks: true,
            discarded: 0,
            scratch: Vec::new(),
            gathered: Gathered::new(&limits),
            freed: Hand::new(),
        }
    }

    /// How much one span may hold.
    pub(super) fn limits(&self) -> &SpanLimits {
        &self.limits
    }

    /// Has spans that are safe marked in the recording, or not.
    pub(crate) fn mark_if(&mut self, marks: bool) {
        self.marks = marks;
    }

    /// Whether spans that are safe are marked in the recording.
    pub(super) fn marks(&self) -> bool {
        self.marks
    }

    /// Walks once, and hands every span that is ready to `export`. Gives how many records were new.
    pub(crate) fn walk(&mut self, timeline: &Timeline, export: &mut dyn FnMut(Ended<'_>)) -> usize {
        self.count += 1;
        let mut out = Out { line: Line::new(timeline), export };
        let mut news = 0;
        let blocks = self.pool.blocks();
        self.chunks.resize(blocks * PAGES, Chunk::default());
        for (page, words) in chunks_of(self.pool, blocks) {
            news += self.look(page, words, &mut out);
        }
        self.hand_out(&mut out);
        self.take_ended_in_place(&mut out);
        self.release_waiting(&mut out);
        self.forget_done();
        if self.count.is_multiple_of(256) {
            self.breakdowns.forget_dead(self.count);
            let pins = self.details.forget_old(self.count);
            self.let_go(&pins, true);
        }
        news
    }

    /// Looks at what is new in a chunk, and at what was open.
    fn look(&mut self, page: usize, words: &[AtomicU64], out: &mut Out<'_>) -> usize {
        let epoch = self.chunks[page].epoch;
        let mut known = std::mem::replace(&mut self.chunks[page], Chunk::of(epoch));
        let place = |offset: usize| Place { page: page as u32, offset: offset as u32 };
        let news = known.progress.look(words, |seen, offset, record| match seen {
            Seen::Ended if self.gather(record, place(offset), out) => known.unsafe_spans += 1,
            Seen::Ended if goes_on_in_slab(record) => {}
            Seen::Ended => {
                known.unsafe_spans += 1;
                self.hand_out(out);
                self.take(record, place(offset), out);
            }
            Seen::Side => {
                let size = (record[slot::META].load(Ordering::Relaxed) >> 32) as u16 as usize;
                let pin = Pin { page: page as u32, epoch: known.epoch };
                if self.details.add(record, size, pin, self.count) {
                    known.wanted += 1;
                }
            }
        });
        // What was let go meanwhile was counted in the place that was put aside.
        known.wanted += self.chunks[page].wanted;
        debug_assert!(known.wanted >= 0, "more is let go than was wanted");
        self.chunks[page] = known;
        news
    }

    /// Takes an ended span if it is plain, for later. Whether it did.
    #[inline]
    fn gather(&mut self, record: &[AtomicU64], place: Place, out: &mut Out<'_>) -> bool {
        let Some((slot, _)) = record.split_first_chunk::<{ slot::WORDS }>() else { return false };
        let word = |at: usize| slot[at].load(Ordering::Relaxed);
        let meta = word(slot::META);
        let behind = record.get(slot::WORDS..usize::from((meta >> 32) as u16));
        let (true, Some(behind)) = (self.gathered.admits(slot), behind) else { return false };
        // Details may also have come without the span's knowing.
        if self.details.seen(word(slot::SPAN)) > 0 {
            return false;
        }
        let life = word(slot::LIFE);
        if !self.gathered.has_room(behind.len()) || !self.gathered.goes_with(life) {
            self.hand_out(out);
            if !self.gathered.has_room(behind.len()) {
                return false;
            }
        }
        let times = out.line.of_ticks(word(slot::BEGIN), word(slot::END));
        let root = life & slot::ROOT_MASK;
        if root != 0
            && let Some(site) = self.site(meta as u32)
        {
            let trace = [word(slot::TRACE), word(slot::TRACE + 1)];
            self.breakdowns.add(root, trace, site.stage(), times.1 - times.0, self.count);
        }
        self.gathered.add(slot, times, behind);
        self.is_handed_out(life, place);
        true
    }

    /// Exports the plain spans that were gathered.
    fn hand_out(&mut self, out: &mut Out<'_>) {
        if !self.gathered.is_empty() {
            // So that the sites of all of them are known.
            let _ = self.site(self.gathered.highest_site());
            let run = self.gathered.take(Context {
                sites: &self.sites,
                limits: &self.limits,
                timeline: out.line.timeline,
            });
            (out.export)(Ended::Plain(run));
        }
    }

    /// Takes an ended span out of its record.
    fn take(&mut self, record: &[AtomicU64], place: Place, out: &mut Out<'_>) {
        let size = (record[slot::META].load(Ordering::Relaxed) >> 32) as u16 as usize;
        let mut words = std::mem::take(&mut self.scratch);
        words.clear();
        words.extend(record[..size.min(record.len())].iter().map(|w| w.load(Ordering::Relaxed)));
        self.ended_span(&words, place, out);
        self.scratch = words;
    }

    #[inline]
    fn ended_span(&mut self, words: &[u64], place: Place, out: &mut Out<'_>) {
        let record = Record(words);
        if record.word(slot::LIFE) & slot::DISCARDED != 0 {
            self.discarded += 1;
            let taken = self.details.take(record.word(slot::SPAN));
            self.let_go(&taken.pins, false);
            return self.done.add(place, false);
        }
        let is_root = record.flag(slot::ROOT);
        let times = out.line.times(&record);
        if record.root() != 0
            && !is_root
            && let Some(site) = self.site(record.site())
        {
            let (begin, end) = times;
            let (stage, sweep) = (site.stage(), self.count);
            self.breakdowns.add(record.root(), record.trace(), stage, end - begin, sweep);
        }
        // A count that stopped says only that there are many.
        let sides = record.sides();
        let waits = sides > 0
            && (sides > self.details.seen(record.word(slot::SPAN))
                || u64::from(sides) == slot::MAX_SIDES);
        if is_root || waits {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.extend_from_slice(words);
            self.waiting.push(Waiting { words: copy, place, since: self.count });
        } else {
            self.export(words, times, place, out);
        }
    }

    /// Exports what has waited long enough: since the walk before, so that this whole walk lies between.
    fn release_waiting(&mut self, out: &mut Out<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain_mut(|span| {
            let record = Record(&span.words);
            let complete = record.sides() <= self.details.seen(record.word(slot::SPAN));
            let waits =
                span.since >= self.count || (!complete && span.since + PATIENCE > self.count);
            if !waits {
                let times = out.line.times(&record);
                self.export(&span.words, times, span.place, out);
                let mut words = std::mem::take(&mut span.words);
                words.clear();
                if self.spare.len() < SPARE {
                    self.spare.push(words);
                }
            }
            waits
        });
        waiting.append(&mut self.waiting);
        self.waiting = waiting;
    }

    #[inline]
    fn export(&mut self, words: &[u64], times: (u64, u64), place: Place, out: &mut Out<'_>) {
        let record = Record(words);
        let [upper, lower] = record.trace();
        let ids = TraceId::from_u128(u128::from(upper) << 64 | u128::from(lower))
            .zip(SpanId::from_u64(record.word(slot::SPAN)));
        // Details may also have come without the span's knowing.
        let taken = match self.details.is_empty() {
            true => Taken::default(),
            false => self.details.take(record.word(slot::SPAN)),
        };
        self.let_go(&taken.pins, record.is_sampled());
        let breakdown = match record.flag(slot::ROOT) {
            true => self.breakdowns.take(record.root(), record.trace()),
            false => Vec::new(),
        };
        let (Some((trace_id, span_id)), Some(site)) = (ids, self.site(record.site())) else {
            debug_assert!(false, "a span without ids or site");
            return;
        };
        let (begin, end) = times;
        (out.export)(Ended::One(&SpanView {
            trace_id,
            span_id,
            parent: SpanId::from_u64(record.word(slot::PARENT)),
            number: record.site(),
            site,
            begin,
            end,
            record,
            details: &taken.details,
            dropped_events: taken.dropped_events,
            dropped_links: taken.dropped_links,
            breakdown: &breakdown,
            limits: &self.limits,
            timeline: out.line.timeline,
        }));
        self.breakdowns.give_back(breakdown);
        self.is_handed_out(record.word(slot::LIFE), place);
    }

    /// A span with this word LIFE was handed to the sinks.
    #[inline]
    fn is_handed_out(&mut self, life: u64, place: Place) {
        match life & slot::UNSAMPLED {
            0 => self.handed.add(place, self.marks),
            _ => self.done.add(place, false),
        }
    }

    /// Exports spans that ended in their slab slots, which stay taken until they are safe.
    fn take_ended_in_place(&mut self, out: &mut Out<'_>) {
        if self.pool.take_ended_in_place() == 0 {
            return;
        }
        for number in self.slab_slots() {
            let words = self.pool.slot(number);
            if generation::take_ended(words) {
                let word = |at: usize| words[at].load(Ordering::Relaxed);
                let size = ((word(slot::META) >> 32) as u16 as usize).clamp(8, slab::WORDS - 1);
                let copy: Vec<u64> =
                    (0..slot::WORDS).chain(slab::ATTRIBUTES..size + 1).map(word).collect();
                let place = Place { page: IN_SLAB, offset: number };
                self.ended_span(&copy, place, out);
            }
        }
    }

    fn slab_slots(&self) -> Vec<u32> {
        let is_slab = |block: &usize| {
            let kind = self.pool.block(*block)[chunk::KIND].load(Ordering::Acquire);
            kind as u32 == chunk::SLAB
        };
        let blocks = (1..self.pool.blocks()).filter(is_slab);
        blocks.flat_map(Pool::slots_of).collect()
    }

    /// Spans that have ended and wait in the collector.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Spans that are open: in chunks as of the last walk, in slabs now.
    pub(crate) fn open(&self) -> u64 {
        let in_chunks: usize = self.chunks.iter().map(|chunk| chunk.progress.open()).sum();
        let is_open = |number: &u32| generation::is_open(self.pool.slot(*number));
        (in_chunks + self.slab_slots().iter().filter(|number| is_open(number)).count()) as u64
    }

    /// Details of spans that were never seen to end, thrown away.
    pub(crate) fn orphaned_details(&self) -> u64 {
        self.details.orphaned
    }

    #[inline]
    fn site(&mut self, number: u32) -> Option<&'static Site> {
        let at = (number as usize).checked_sub(1)?;
        match self.sites.get(at) {
            Some(site) => Some(site),
            None => self.new_site(at),
        }
    }

    #[cold]
    fn new_site(&mut self, at: usize) -> Option<&'static Site> {
        self.sites.extend(register::sites_after(self.sites.len()));
        self.sites.get(at).copied()
    }
}

const PAGES: usize = BLOCK / SMALL_CHUNK;

/// The chunks of records in so many blocks, the header's included, each with its page.
fn chunks_of(
    pool: &'static Pool,
    blocks: usize,
) -> impl Iterator<Item = (usize, &'static [AtomicU64])> {
    let of_block = move |block: usize| {
        let words = pool.block(block);
        let kind = words[chunk::KIND].load(Ordering::Acquire);
        let size = (kind >> 32) as usize;
        let is_records = kind as u32 == chunk::RECORDS;
        let chunks = is_records.then(|| words.chunks(size / 8)).into_iter().flatten();
        let page = move |at: usize| block * PAGES + at * (size / SMALL_CHUNK);
        chunks.enumerate().map(move |(at, words)| (page(at), words))
    };
    (1..blocks).flat_map(of_block)
}

struct Out<'a> {
    line: Line<'a>,
    export: &'a mut dyn FnMut(Ended<'_>),
}

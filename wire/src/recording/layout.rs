//! Offsets and codes of the recording, version 1. Nothing here reads or writes.
//!
//! A recording is a sequence of 64 KiB [`BLOCK`]s of native-endian 64-bit words, all accessed atomically. The first
//! holds the header: identity, clock anchors, counters. Every other one holds what its kind says: chunks (the
//! records of one thread, in order), slab slots (spans that live long: request roots, async spans) or the stage
//! table. `docs/recording.md` is the specification in prose.

/// First word of a recording: `STAGETR` and the format's version as a letter. Its byte order tells the file's.
pub const MAGIC: u64 = u64::from_be_bytes(*b"STAGETR1");

/// Bytes of a block, the unit in which a recording grows.
pub const BLOCK: usize = 64 * 1024;

/// Bytes of a small chunk, the first that a thread gets; sixteen share a block.
pub const SMALL_CHUNK: usize = 4 * 1024;

/// Blocks that may follow the header: root indices have 24 bits, offsets of chunks 32.
pub const MAX_BLOCKS: usize = 32 * 1024;

/// Words of the header block, by index.
pub mod header {
    /// [`super::MAGIC`], written last.
    pub const MAGIC: usize = 0;
    /// What a tick is: [`CLOCK_MONOTONIC`] or [`CLOCK_TSC`].
    pub const CLOCK: usize = 1;
    /// Process id of the writer.
    pub const PID: usize = 2;
    /// [`RUNNING`] or [`CLOSED`].
    pub const STATE: usize = 3;
    /// Number of blocks that hold something, the header's included.
    pub const BLOCKS: usize = 4;
    /// Bytes of the identity text.
    pub const IDENTITY_LEN: usize = 5;
    /// How much of the .jsonl is whole: rotation number in the upper 16 bits, length in bytes below.
    pub const ACKNOWLEDGED: usize = 8;
    /// Ticks when the writer last looked after its spans; 0 if unknown.
    pub const SEEN: usize = 9;
    /// Anchors ever written; the last [`ANCHORS`] of them are in the ring.
    pub const ANCHOR_COUNT: usize = 16;
    /// Losses so far, one word per cause in the order of the runtime's `DropCause`.
    pub const DROPPED: usize = 24;

    /// First byte of the identity: a JSON object, see `docs/recording.md`.
    pub const IDENTITY: usize = 512;
    /// Most bytes of the identity.
    pub const IDENTITY_MAX: usize = 16 * 1024 - IDENTITY;
    /// First byte of the ring of anchors.
    pub const ANCHOR_RING: usize = 16 * 1024;
    /// Bytes of an anchor: ticks, monotonic ns, nanoseconds per tick (32.32), realtime minus monotonic ns, error in ns, 0.
    pub const ANCHOR: usize = 48;
    /// Anchors in the ring.
    pub const ANCHORS: usize = (super::BLOCK - ANCHOR_RING) / ANCHOR;

    /// Ticks are nanoseconds of the monotonic clock.
    pub const CLOCK_MONOTONIC: u64 = 0;
    /// Ticks are those of the x86-64 time stamp counter.
    pub const CLOCK_TSC: u64 = 1;
    /// A writer has it open, or died with it open.
    pub const RUNNING: u64 = 1;
    /// The writer closed it: nothing in it is missing elsewhere.
    pub const CLOSED: u64 = 2;
}

/// Words of the head of a chunk, a slab block or a table block, by index.
pub mod chunk {
    /// What the block holds (low 32 bits) and the bytes of this chunk (high 32 bits).
    pub const KIND: usize = 0;
    /// Sequence number: odd while the chunk is being made ready for its next owner, which every reader checks.
    pub const SEQUENCE: usize = 1;
    /// Bytes written and published, counted from the chunk's start.
    pub const TAIL: usize = 2;
    /// [`FREE`], [`OWNED`] or [`FULL`].
    pub const STATE: usize = 3;
    /// Operating system's id of the owning thread.
    pub const THREAD: usize = 4;
    /// Link of the free list.
    pub const NEXT: usize = 5;
    /// Up to here (bytes) the collector has acknowledged every span. On a cache line of the collector's own.
    pub const ACKNOWLEDGED: usize = 8;

    /// Bytes of the head; records follow.
    pub const HEAD: usize = 128;

    /// Kinds: nothing yet.
    pub const UNUSED: u32 = 0;
    /// Records of threads.
    pub const RECORDS: u32 = 1;
    /// Slots of long-lived spans.
    pub const SLAB: u32 = 2;
    /// Entries of the stage table.
    pub const TABLE: u32 = 3;

    /// States: nobody writes, nothing is held.
    pub const FREE: u64 = 0;
    /// A thread writes here.
    pub const OWNED: u64 = 1;
    /// No more records come; spans in it may still end.
    pub const FULL: u64 = 2;
}

/// Words of a record, by index. A record is one or more 64-byte lines; the first eight words are its slot.
pub mod slot {
    /// Time of begin in ticks, never 0 in a span.
    pub const BEGIN: usize = 0;
    /// Time of end in ticks, 0 while open. In a side record: its [`super::side`] kind.
    pub const END: usize = 1;
    /// Span id.
    pub const SPAN: usize = 2;
    /// Parent's span id, 0 for none.
    pub const PARENT: usize = 3;
    /// Upper and lower half of the trace id.
    pub const TRACE: usize = 4;
    /// Site (32 bits), words of the record (16), attributes inline (8), flags (8), from the low end.
    pub const META: usize = 6;
    /// Root's number (24 bits), what is known of the trace (8), side records (13), outcome (3), root's generation (13),
    /// marks (3), from the low end.
    pub const LIFE: usize = 7;

    /// Words of a slot.
    pub const WORDS: usize = 8;
    /// Words of a record at most: it fits in a block.
    pub const MAX_WORDS: usize = (super::BLOCK - super::chunk::HEAD) / 8;

    /// Flag: a side record, not a span.
    pub const SIDE: u8 = 1;
    /// Flag: the root of a request; the first inline attribute is the request's id.
    pub const ROOT: u8 = 2;
    /// Flag: times are nanoseconds of the monotonic clock, not ticks.
    pub const NANOSECONDS: u8 = 4;
    /// Flag: the stage did not lie within the stage it declares.
    pub const MISPLACED: u8 = 16;

    /// Bits of the root's index in [`LIFE`].
    pub const ROOT_BITS: u32 = 24;
    /// Shift of the root's generation in [`LIFE`], which tells users of one number apart.
    pub const ROOT_GENERATION_SHIFT: u32 = 48;
    /// The greatest generation; 0 follows.
    pub const ROOT_GENERATIONS: u64 = 0x1FFF;
    /// The root in [`LIFE`]: number and generation.
    pub const ROOT_MASK: u64 = ((1 << ROOT_BITS) - 1) | (ROOT_GENERATIONS << ROOT_GENERATION_SHIFT);
    /// In [`LIFE`]: the W3C flags `sampled` and `random`.
    pub const TRACE_FLAGS_SHIFT: u32 = 24;
    /// In [`LIFE`]: there is a trace.
    pub const ACTIVE: u64 = 1 << 26;
    /// In [`LIFE`]: the trace is not sampled. The span was recorded to be measured, and nobody exports it.
    pub const UNSAMPLED: u64 = 1 << 27;
    /// In [`LIFE`]: somebody wishes that the trace is exported, whatever samplers say.
    pub const FORCED: u64 = 1 << 28;
    /// Shift of three minus the trace's level in [`LIFE`], of two bits.
    pub const LEVEL_SHIFT: u32 = 29;
    /// In [`LIFE`]: the parent is a span of another process.
    pub const REMOTE: u64 = 1 << 31;
    /// Shift of the count of side records in [`LIFE`].
    pub const SIDES_SHIFT: u32 = 32;
    /// The greatest count of side records; there may be more.
    pub const MAX_SIDES: u64 = 0x1FFF;
    /// Shift of the outcome in [`LIFE`].
    pub const OUTCOME_SHIFT: u32 = 45;
    /// Mark in [`LIFE`]: exported; whoever reads the recording later leaves the span out.
    pub const EXPORTED: u64 = 1 << 63;
    /// Mark in [`LIFE`]: discarded by its owner; nobody exports it.
    pub const DISCARDED: u64 = 1 << 62;
    /// Mark in [`LIFE`]. Of a slab slot: ended in place, and taken by the collector, who will give the slot back. Of a
    /// record in a chunk: the span goes on in a slab slot, and the record is only what it left.
    pub const TAKEN: u64 = 1 << 61;

    /// The count of side records in a word [`LIFE`].
    pub const fn sides(life: u64) -> u64 {
        life >> SIDES_SHIFT & MAX_SIDES
    }

    /// The outcome in a word [`LIFE`].
    pub const fn outcome(life: u64) -> u8 {
        (life >> OUTCOME_SHIFT) as u8 & 7
    }

    /// The W3C flags in a word [`LIFE`].
    pub const fn trace_flags(life: u64) -> u8 {
        (life >> TRACE_FLAGS_SHIFT) as u8 & 3
    }

    /// The W3C flags of a span with this word [`LIFE`] as it is exported: sampled, or nobody would export it.
    pub const fn exported_flags(life: u64) -> u8 {
        trace_flags(life) | (life & UNSAMPLED == 0) as u8
    }
}

/// Words of a slab slot beyond the eight of [`slot`].
pub mod slab {
    /// Generation: odd while the slot is being written or free.
    pub const GENERATION: usize = 8;
    /// First word of the attributes: tags, then values.
    pub const ATTRIBUTES: usize = 9;
    /// Words of a slab slot.
    pub const WORDS: usize = 24;
    /// Slots in a block.
    pub const SLOTS: usize = (super::BLOCK - super::chunk::HEAD) / (WORDS * 8);
}

/// Kinds of side records: what comes to a span after its begin, or did not fit inline.
pub mod side {
    /// Attributes: their count, then key, tag and value of each.
    pub const ATTRIBUTES: u64 = 1;
    /// An event: name, count, attributes.
    pub const EVENT: u64 = 2;
    /// A link: trace id (two words), span id, OTLP flags, count, attributes.
    pub const LINK: u64 = 3;
    /// A failure: `error.type`, message (empty if none was asked for).
    pub const FAILURE: u64 = 4;
    /// The W3C `tracestate` that a request brought, of its root: a text.
    pub const TRACE_STATE: u64 = 5;
}

/// Codes of the outcome of a span.
pub mod outcome {
    /// Open, or ended normally.
    pub const UNSET: u8 = 0;
    /// A request's root that was finished normally.
    pub const OK: u8 = 1;
    /// Its request went to another owner.
    pub const HANDED_OVER: u8 = 2;
    /// The last handle of its request was dropped before `finish`.
    pub const DROPPED: u8 = 3;
    /// Its future was dropped before it was ready.
    pub const CANCELLED: u8 = 4;
    /// Returned an error.
    pub const ERROR: u8 = 5;
    /// Ended by unwinding.
    pub const PANIC: u8 = 6;
}

const _: () = assert!(header::DROPPED * 8 + 128 <= header::IDENTITY);
const _: () = assert!(slab::SLOTS * slab::WORDS * 8 + chunk::HEAD <= BLOCK);
const _: () = assert!(MAX_BLOCKS * slab::SLOTS < 1 << slot::ROOT_BITS);

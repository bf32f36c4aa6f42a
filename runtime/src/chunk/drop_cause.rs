//! Why something is lost on the caller's side.

/// Why something was lost before it reached the collector. The order is that of the words in a recording's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum DropCause {
    /// A span: no chunk was free.
    PoolFull = 0,
    /// A request or an async span: no slab slot was free.
    SlabFull = 1,
    /// The name of a stage in the recording: its stage table had no room. The spans themselves are kept.
    TableFull = 2,
    /// An event, a link or late attributes: no chunk was free.
    DetailFull = 3,
    /// An event, a link or late attributes: larger than a chunk.
    DetailTooLarge = 4,
}

impl DropCause {
    /// Every cause.
    pub const ALL: [DropCause; 5] = [
        DropCause::PoolFull,
        DropCause::SlabFull,
        DropCause::TableFull,
        DropCause::DetailFull,
        DropCause::DetailTooLarge,
    ];

    /// The cause's name in exported losses: `stagetrace.dropped.<name>`.
    pub const fn name(self) -> &'static str {
        match self {
            DropCause::PoolFull => "pool_full",
            DropCause::SlabFull => "slab_full",
            DropCause::TableFull => "table_full",
            DropCause::DetailFull => "detail_full",
            DropCause::DetailTooLarge => "detail_too_large",
        }
    }

    /// Whether what was lost is a span, and not something of a span.
    pub const fn is_span(self) -> bool {
        matches!(self, DropCause::PoolFull | DropCause::SlabFull)
    }
}

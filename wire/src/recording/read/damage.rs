//! What could not be read.

/// What of a recording could not be read, and was left out. All 0 for a sound one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Blocks and chunks whose heads make no sense.
    pub heads: u64,
    /// Chunks whose records make no sense from some point on.
    pub chunks: u64,
    /// Records and slots that are neither spans nor belong to one.
    pub records: u64,
    /// Entries of the stage table.
    pub entries: u64,
    /// Chunks and slots that changed each time they were read. What was in them is safe elsewhere,
    /// or began after the reader did.
    pub busy: u64,
}

impl Damage {
    /// Whether all was read.
    pub fn is_none(&self) -> bool {
        *self == Damage::default()
    }
}

//! Where the spans came from that were handed to the sinks and are not safe yet.

/// A record's place: page of the chunk, and offset in bytes; or [`IN_SLAB`] and the number of a slab slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) page: u32,
    pub(super) offset: u32,
}

pub(super) const IN_SLAB: u32 = u32::MAX;

/// Spans that were handed out since the last time that all was safe.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Pages of chunks, and how many spans in a row came from there.
    pub(super) runs: Vec<(u32, u32)>,
    /// Slab slots.
    pub(super) slots: Vec<u32>,
    /// Records in chunks; only if they are to be marked.
    pub(super) marks: Vec<Place>,
}

impl Handed {
    /// A span was handed out. With `mark`, its record will be marked when it is safe.
    #[inline]
    pub(super) fn add(&mut self, place: Place, mark: bool) {
        if place.page == IN_SLAB {
            return self.slots.push(place.offset);
        }
        match self.runs.last_mut() {
            Some((page, spans)) if *page == place.page => *spans += 1,
            _ => self.runs.push((place.page, 1)),
        }
        if mark {
            self.marks.push(place);
        }
    }
}

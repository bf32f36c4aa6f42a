//! The log of anchors.

use super::Anchor;

/// The log of anchors, oldest first.
///
/// Ticks grow from one anchor to the next, but for a counter that began anew: an anchor below all ticks that were there
/// begins another *epoch*, whose ticks are those below the epoch before.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    anchors: Vec<Anchor>,
    /// Where the epochs after the first begin.
    epochs: Vec<usize>,
}

impl Timeline {
    /// A timeline of these anchors, which must be in order of their time; those that are not are left out.
    pub fn new(anchors: impl IntoIterator<Item = Anchor>) -> Timeline {
        let mut timeline = Timeline::default();
        for anchor in anchors {
            timeline.push(anchor);
        }
        timeline
    }

    /// Adds an anchor. One whose ticks or time have a line already is ignored, which the answer says.
    pub fn push(&mut self, anchor: Anchor) -> bool {
        if let Some(last) = self.anchors.last() {
            if anchor.monotonic < last.monotonic {
                return false;
            }
            let is_free = self.ceiling().is_none_or(|ceiling| anchor.ticks < ceiling);
            if self.begins_epoch(anchor.ticks) {
                self.epochs.push(self.anchors.len());
            } else if anchor.ticks <= last.ticks || !is_free {
                return false;
            }
        }
        self.anchors.push(anchor);
        true
    }

    /// Whether an anchor of these ticks would begin another epoch.
    pub fn begins_epoch(&self, ticks: u64) -> bool {
        self.anchors.get(self.epoch_start()).is_some_and(|first| ticks < first.ticks)
    }

    /// Forgets this many of the oldest anchors. Times of their ticks are then those of the oldest line that is left.
    pub fn forget(&mut self, count: usize) {
        let count = count.min(self.anchors.len().saturating_sub(1));
        self.anchors.drain(..count);
        self.epochs.retain_mut(|start| {
            let stays = *start > count;
            *start = start.saturating_sub(count);
            stays
        });
    }

    /// How many anchors there are.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// The newest anchor.
    pub fn last(&self) -> Option<&Anchor> {
        self.anchors.last()
    }

    /// The oldest anchor.
    pub fn first(&self) -> Option<&Anchor> {
        self.anchors.first()
    }

    /// Unix nanoseconds of `ticks`. 0 without any anchor.
    pub fn unix(&self, ticks: u64) -> u64 {
        self.at_ticks(ticks).map_or(0, |anchor| anchor.unix(ticks))
    }

    /// Unix nanoseconds of an instant of the monotonic clock. 0 without any anchor.
    pub fn unix_of_monotonic(&self, ns: u64) -> u64 {
        let anchor = last_reached(&self.anchors, |anchor| anchor.monotonic <= ns);
        anchor.map_or(0, |anchor| ns.saturating_add_signed(anchor.wall))
    }

    /// The anchor whose line holds at `ticks`: the last that was reached, in the oldest epoch that has reached them; the
    /// first of the newest epoch if none has.
    pub fn at_ticks(&self, ticks: u64) -> Option<&Anchor> {
        let mut start = 0;
        for &end in &self.epochs {
            if self.anchors[start].ticks <= ticks {
                return last_reached(&self.anchors[start..end], |anchor| anchor.ticks <= ticks);
            }
            start = end;
        }
        last_reached(&self.anchors[start..], |anchor| anchor.ticks <= ticks)
    }

    /// Where the newest epoch begins.
    fn epoch_start(&self) -> usize {
        self.epochs.last().copied().unwrap_or(0)
    }

    /// The ticks from which on older epochs have lines; `None` if the first epoch is the only one.
    pub fn ceiling(&self) -> Option<u64> {
        let before = self.epochs.len().checked_sub(1)?;
        let start = before.checked_sub(1).map_or(0, |epoch| self.epochs[epoch]);
        Some(self.anchors[start].ticks)
    }
}

/// The last anchor for which `reached` holds; the first if there is none.
fn last_reached(anchors: &[Anchor], reached: impl Fn(&Anchor) -> bool) -> Option<&Anchor> {
    match anchors.last() {
        Some(last) if reached(last) => Some(last),
        _ => anchors.get(anchors.partition_point(reached).saturating_sub(1)),
    }
}

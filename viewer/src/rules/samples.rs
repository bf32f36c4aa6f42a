//! All samples of a store, kept up to date trace by trace.

use super::sample::Sample;
use super::tree::{Tree, self_time};
use crate::store::{SpanNumber, Store, TraceNumber};

/// Every sample and request of a store, and whose each span is. Only traces that have changed are
/// looked at again.
#[derive(Debug, Default)]
pub struct Samples {
    /// By trace.
    samples: Vec<Vec<Sample>>,
    /// By span.
    spans: Vec<Place>,
}

/// What is known of a span by looking at its trace.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The place of its sample among those of its trace, or `u32::MAX`.
    sample: u32,
    self_ns: u64,
}

const NOWHERE: Place = Place { sample: u32::MAX, self_ns: 0 };

impl Samples {
    /// Looks at the traces that have changed since this was last called. Who else asks the store for
    /// them takes them from here.
    pub fn refresh(&mut self, store: &mut Store) {
        let changed = store.take_changed();
        self.samples.resize_with(store.traces().len(), Vec::new);
        self.spans.resize(store.stats().spans, NOWHERE);
        for trace in changed {
            self.look_at(store, trace);
        }
    }

    /// Every sample.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().flatten()
    }

    /// The samples of a trace.
    pub fn of_trace(&self, trace: TraceNumber) -> &[Sample] {
        self.samples.get(trace.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The sample that a span is of; `None` if it is of none, or of one of several.
    pub fn of_span(&self, store: &Store, span: SpanNumber) -> Option<&Sample> {
        let place = self.spans.get(span.0 as usize)?;
        let of_trace = self.samples.get(store.record(span).trace as usize)?;
        of_trace.get(place.sample as usize)
    }

    /// The place of the sample that a span is of among those of its trace.
    pub(crate) fn place_of(&self, span: SpanNumber) -> Option<u32> {
        let place = self.spans.get(span.0 as usize)?.sample;
        (place != NOWHERE.sample).then_some(place)
    }

    /// Nanoseconds of an ended span in which none of its ended children ran.
    pub fn self_ns(&self, span: SpanNumber) -> u64 {
        self.spans.get(span.0 as usize).map_or(0, |place| place.self_ns)
    }

    fn look_at(&mut self, store: &Store, trace: TraceNumber) {
        let tree = Tree::new(store, trace);
        let (samples, owners) = Sample::of_tree(store, trace, &tree);
        self.samples[trace.0 as usize] = samples;
        let children = tree.children();
        for ((node, owner), children) in tree.nodes.iter().zip(owners).zip(children) {
            let children = children.iter().map(|&child| tree.nodes[child].record);
            let children = children.filter(|child| child.is_finished());
            let self_ns = match node.record.is_finished() {
                true => self_time(
                    (node.record.start, node.record.end),
                    children.map(|child| (child.start, child.end)),
                ),
                false => 0,
            };
            let sample = owner.unwrap_or(u32::MAX);
            self.spans[node.number.0 as usize] = Place { sample, self_ns };
        }
    }
}

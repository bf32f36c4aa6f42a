//! The spans of one trace with their parents, whoever made them up.

use hashbrown::HashMap;

use stagetrace_wire::id::SpanId;

use crate::store::{Ident, Record, SpanNumber, Store, TraceNumber};

/// A trace.
pub(crate) struct Tree<'s> {
    pub(crate) nodes: Vec<Node<'s>>,
    /// The rollouts that spans name, as owners refer to them.
    pub(super) rollouts: Vec<Ident>,
}

/// A span in its trace.
pub(crate) struct Node<'s> {
    pub(crate) number: SpanNumber,
    pub(crate) record: &'s Record,
    /// The place of the parent, if it is there.
    pub(crate) parent: Option<usize>,
    /// How many spans there are from the top to this one, as far as they are known.
    pub(crate) depth: u32,
    /// Whose the span is: a place in [`Tree::rollouts`].
    pub(super) owner: Option<usize>,
}

impl<'s> Tree<'s> {
    /// Takes time in proportion to the spans, whatever their parents are: a span that is its own
    /// ancestor has no parent.
    pub(crate) fn new(store: &'s Store, trace: TraceNumber) -> Self {
        let numbers = store.spans_of(trace);
        let nodes = numbers.map(|number| Node {
            number,
            record: store.record(number),
            parent: None,
            depth: 0,
            owner: None,
        });
        let mut tree = Tree { nodes: nodes.collect(), rollouts: Vec::new() };
        tree.find_parents();
        tree.rank(store);
        tree
    }

    /// The children of each node, in order of their begin.
    pub(crate) fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(at);
            }
        }
        for of_one in &mut children {
            of_one.sort_by_key(|&at| (self.nodes[at].record.start, self.nodes[at].record.id));
        }
        children
    }

    /// For each node the nanoseconds in which none of its ended children ran, if it has ended.
    pub(super) fn self_times(&self) -> impl Iterator<Item = u64> {
        self.nodes.iter().zip(self.children()).map(|(node, children)| {
            let children = children.iter().map(|&child| self.nodes[child].record);
            let children = children.filter(|child| child.is_finished());
            match node.record.is_finished() {
                true => self_time(
                    (node.record.start, node.record.end),
                    children.map(|child| (child.start, child.end)),
                ),
                false => 0,
            }
        })
    }

    fn find_parents(&mut self) {
        const FEW: usize = 16;
        let ids: Vec<SpanId> = self.nodes.iter().map(|node| node.record.id).collect();
        let by_id: HashMap<SpanId, usize> = match ids.len() {
            0..=FEW => HashMap::new(),
            _ => ids.iter().enumerate().map(|(at, id)| (*id, at)).collect(),
        };
        for node in &mut self.nodes {
            node.parent = node.record.parent.and_then(|parent| match by_id.is_empty() {
                true => ids.iter().position(|id| *id == parent),
                false => by_id.get(&parent).copied(),
            });
        }
    }

    /// Finds depths and owners, from the top down.
    fn rank(&mut self, store: &Store) {
        let mut places = HashMap::new();
        let mut way = Vec::new();
        for at in 0..self.nodes.len() {
            // Up to the first that is known, or the top. The greatest depth marks those on the way.
            let mut next = Some(at).filter(|&at| self.nodes[at].depth == 0);
            while let Some(here) = next {
                self.nodes[here].depth = u32::MAX;
                way.push(here);
                next = self.nodes[here].parent;
                match next.map(|next| self.nodes[next].depth) {
                    Some(0) => {}
                    Some(u32::MAX) => {
                        // On the way already: a cycle.
                        self.nodes[here].parent = None;
                        break;
                    }
                    _ => break,
                }
            }
            while let Some(here) = way.pop() {
                let above = self.nodes[here].parent.map(|parent| &self.nodes[parent]);
                let (depth, owner) = above.map_or((0, None), |above| (above.depth, above.owner));
                let node = &mut self.nodes[here];
                node.depth = depth.saturating_add(1).max(node.record.depth.into());
                let rollout = store.label(node.record).rollout();
                let own = || {
                    let rollout = rollout?;
                    let rollouts = &mut self.rollouts;
                    Some(*places.entry(rollout).or_insert_with(|| {
                        rollouts.push(rollout);
                        rollouts.len() - 1
                    }))
                };
                node.owner = owner.or_else(own);
            }
        }
        if self.rollouts.len() == 1 {
            self.nodes.iter_mut().for_each(|node| node.owner = Some(0));
        }
    }
}

/// Nanoseconds of a span in which none of its children ran, given the children in order of their
/// begin.
fn self_time((begin, end): (u64, u64), children: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (mut covered, mut until) = (0, begin);
    for (from, to) in children {
        let (from, to) = (from.max(until), to.min(end));
        if from < to {
            covered += to - from;
            until = to;
        }
    }
    end.saturating_sub(begin).saturating_sub(covered)
}

#[cfg(test)]
mod tests {
    use super::self_time;

    #[test]
    fn self_time_counts_parallel_children_once_and_only_while_the_parent_ran() {
        let cases: [(&[(u64, u64)], u64); 8] = [
            (&[], 100),
            (&[(110, 120), (130, 140)], 80),
            (&[(110, 150), (120, 130)], 60),
            (&[(110, 150), (140, 160)], 50),
            (&[(110, 150), (110, 150)], 60),
            (&[(0, 120), (190, 900)], 70),
            (&[(0, 50), (300, 400)], 100),
            (&[(150, 110)], 100),
        ];
        for (children, expected) in cases {
            assert_eq!(self_time((100, 200), children.iter().copied()), expected, "{children:?}");
        }
        assert_eq!(self_time((200, 100), [(120, 150)].into_iter()), 0);
    }
}

//! Parents that are not told, but can be known.

use hashbrown::HashMap;

use super::tree::Tree;
use crate::store::{Name, Store};

/// For each node of a tree the place of its parent, as far as a live file lets it be known: that names no
/// parent, but all names from the root down. The parent is the span of the name before the last that
/// began last, and had not ended.
pub(crate) fn guessed_parents(store: &Store, tree: &Tree) -> Vec<Option<u32>> {
    let mut guessed = vec![None; tree.nodes.len()];
    let is_orphan = |at: &usize| {
        let node = &tree.nodes[*at];
        node.record.parent.is_none() && node.record.depth > 1
    };
    let orphans: Vec<usize> = (0..tree.nodes.len()).filter(is_orphan).collect();
    if orphans.is_empty() {
        return guessed;
    }
    let mut by_name: HashMap<(Name, u32), Vec<(u64, u32)>> = HashMap::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let key = (node.record.name, node.depth);
        by_name.entry(key).or_default().push((node.record.start, at as u32));
    }
    by_name.values_mut().for_each(|spans| spans.sort_unstable());
    for at in orphans {
        let node = &tree.nodes[at];
        let path = store.path(node.number);
        let Some(name) = path.len().checked_sub(2).map(|above| path[above]) else { continue };
        let Some(candidates) = by_name.get(&(name, node.depth - 1)) else { continue };
        let begun = candidates.partition_point(|(start, _)| *start <= node.record.start);
        let runs = |(_, at): &&(u64, u32)| {
            let record = tree.nodes[*at as usize].record;
            record.is_open() || record.end >= node.record.start
        };
        // Of very many that have all ended the parent is not searched for.
        let parent = candidates[..begun].iter().rev().take(256).find(runs);
        guessed[at] = parent.map(|(_, parent)| *parent);
    }
    guessed
}

//! Spans as text for people and for comparison.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use super::{Span, Value};
use crate::id::{SpanId, TraceId};

/// Spans as an indented tree, one a line: the name, then `key=value` of each attribute asked for,
/// in that order, if it is there.
///
/// Children stand in the order in which they began. A span whose parent is not among them stands at
/// the margin. Control characters are escaped. Takes time in proportion to the spans.
pub fn tree(spans: &[Span], attributes: &[&str]) -> String {
    let mut tree = Tree {
        children: HashMap::new(),
        seen: vec![false; spans.len()],
        text: String::new(),
        spans,
        attributes,
    };
    let present: HashSet<_> = spans.iter().map(Span::identity).collect();
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|&at| spans[at].start_unix_nano);
    let mut roots = Vec::new();
    for &at in &order {
        let parent = spans[at].parent_span_id.map(|id| (spans[at].trace_id, id));
        match parent.filter(|parent| present.contains(parent)) {
            Some(parent) => tree.children.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    // Spans that are their own ancestors have no root: the first of them stands for it.
    for at in roots.into_iter().chain(order) {
        tree.branch(at);
    }
    tree.text
}

struct Tree<'a> {
    spans: &'a [Span],
    attributes: &'a [&'a str],
    children: HashMap<(TraceId, SpanId), Vec<usize>>,
    seen: Vec<bool>,
    text: String,
}

impl Tree<'_> {
    /// Writes a span and those below it. Not by recursion: a sender may nest them as deeply as it
    /// likes.
    fn branch(&mut self, root: usize) {
        let mut open = vec![(root, 0)];
        while let Some((at, depth)) = open.pop() {
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            // Writing to a `String` does not fail.
            let _ = self.line(&self.spans[at], depth);
            // Of spans with the same identity the first has the children.
            let children = self.children.remove(&self.spans[at].identity());
            open.extend(children.into_iter().flatten().rev().map(|child| (child, depth + 1)));
        }
    }

    fn line(&mut self, span: &Span, depth: usize) -> fmt::Result {
        // Deeper ones would make the text grow with the square of the depth.
        write!(self.text, "{:1$}{2}", "", 2 * depth.min(64), Printable(&span.name))?;
        for key in self.attributes {
            if let Some(value) = span.attribute(key) {
                write!(self.text, " {key}={}", Shown(value))?;
            }
        }
        self.text.push('\n');
        Ok(())
    }
}

struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Str(text) => Printable(text).fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::I64(value) => value.fmt(f),
            Value::F64(value) => value.fmt(f),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A text that stays on its line and does nothing to a terminal.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_debug())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

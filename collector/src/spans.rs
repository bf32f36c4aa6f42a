//! Spans that arrived, and selections of them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::{Span, Value, tree};

/// Spans in the order in which they arrived: a slice of [`Span`], cheap to clone.
///
/// What a sender sent twice is there twice; [`deduplicate`](stagetrace_wire::span::deduplicate)
/// keeps one of each.
#[derive(Clone, Default, PartialEq)]
pub struct Spans(pub(crate) Arc<Vec<Span>>);

impl Spans {
    /// The spans of this name.
    pub fn named(&self, name: &str) -> Spans {
        self.filter(|span| span.name == name)
    }

    /// The spans of this trace.
    pub fn in_trace(&self, trace: TraceId) -> Spans {
        self.filter(|span| span.trace_id == trace)
    }

    /// The spans that have this attribute themselves, with this value.
    pub fn with_attribute(&self, key: &str, value: impl Into<Value>) -> Spans {
        let value = value.into();
        self.filter(|span| span.attribute(key) == Some(&value))
    }

    /// The spans for which the condition holds.
    pub fn filter(&self, mut condition: impl FnMut(&Span) -> bool) -> Spans {
        self.iter().filter(|span| condition(span)).cloned().collect()
    }

    /// The spans as an indented tree, one a line: the name, then `key=value` of each attribute asked
    /// for, in that order, if it is there. Children stand in the order in which they began; a span
    /// whose parent is not among them stands at the margin.
    pub fn tree(&self, attributes: &[&str]) -> String {
        tree(self, attributes)
    }

    /// The only span of this name.
    ///
    /// # Panics
    /// With the tree, if there is none or more than one.
    #[track_caller]
    pub fn one(&self, name: &str) -> Span {
        match &self.named(name)[..] {
            [span] => span.clone(),
            found => panic!("{} spans are named {name:?} among these:\n{self}", found.len()),
        }
    }

    /// Compares the tree with what is expected, without regard to the common indentation of its
    /// lines and to blank lines around it.
    ///
    /// # Panics
    /// With both, if they differ.
    #[track_caller]
    pub fn assert_tree(&self, attributes: &[&str], expected: &str) {
        let (tree, expected) = (self.tree(attributes), unindented(expected));
        assert!(
            tree == expected,
            "expected this tree:\n{expected}\nbut these spans arrived:\n{tree}"
        );
    }

    /// Asserts that a condition holds for each span: `spans.assert_all("ended", Span::has_ended)`.
    ///
    /// # Panics
    /// With the tree, if it does not hold for one.
    #[track_caller]
    pub fn assert_all(&self, what: &str, mut condition: impl FnMut(&Span) -> bool) {
        let wrong = self.iter().filter(|span| !condition(span)).count();
        assert!(wrong == 0, "{wrong} of these spans are not {what}:\n{self}");
    }
}

/// The tree without attributes.
impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tree(&[]))
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Deref for Spans {
    type Target = [Span];

    fn deref(&self) -> &[Span] {
        &self.0
    }
}

impl FromIterator<Span> for Spans {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        Self(Arc::new(spans.into_iter().collect()))
    }
}

impl From<Spans> for Vec<Span> {
    fn from(spans: Spans) -> Self {
        Arc::unwrap_or_clone(spans.0)
    }
}

impl IntoIterator for Spans {
    type Item = Span;
    type IntoIter = std::vec::IntoIter<Span>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Spans {
    type Item = &'a Span;
    type IntoIter = std::slice::Iter<'a, Span>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn unindented(text: &str) -> String {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let common = lines().map(indentation).min().unwrap_or(0);
    lines().flat_map(|line| [line[common..].trim_end(), "\n"]).collect()
}

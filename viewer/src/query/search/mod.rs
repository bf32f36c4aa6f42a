//! The search language: terms that a sample must all satisfy, such as
//! `status:failed error-stage:judge age:>60s -task:gsm8k "two words"`.

mod find;
mod parse;
mod text;
mod words;

pub(crate) use find::Finder;

use text::Pattern;
use words::{Field, Is, Measure};

/// Terms that must all hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Search {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    /// `-` stands before it: it must not hold.
    is_negated: bool,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// Any text that is known of a sample.
    Any(Pattern),
    /// A text of the sample or of one of its spans.
    Text(Field, Pattern),
    /// A number, or nanoseconds.
    Measure(Measure, Comparison, f64),
    /// How it stands.
    Is(Is),
    /// An attribute of one of its spans.
    Attribute { key: String, value: Option<Pattern> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::AtLeast => value >= bound,
            Self::More => value > bound,
        }
    }
}

//! What rules ask of a span, in fixed form: whose it is, and how it went.

use super::known::{Fact, ident};
use super::tables::Name;

/// The id of a sample, group, step or the like: a number or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ident {
    /// A number.
    Int(i64),
    /// A text.
    Text(Name),
}

/// What a span says that says nothing.
pub(super) const NO_LABEL: &Label = &Label {
    values: [0; ident::COUNT],
    kinds: [Kind::Absent; ident::COUNT],
    task: None,
    request: None,
};

/// Whose a span is. Spans of one sample mostly say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    values: [i64; ident::COUNT],
    kinds: [Kind; ident::COUNT],
    task: Option<NonZeroName>,
    request: Option<NonZeroName>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Absent,
    Int,
    Text,
}

/// How a span went, as it says itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    reward: Option<f64>,
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
    status: Option<NonZeroName>,
    finish: Option<NonZeroName>,
    outcome: Option<NonZeroName>,
    pass: Option<bool>,
}

/// A name that is not the empty text, which is the first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NonZeroName(std::num::NonZeroU32);

/// What went wrong in a span, as it says itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The kind of failure.
    pub kind: Option<Name>,
    /// For people.
    pub message: Option<Name>,
}

impl NonZeroName {
    fn new(name: Name) -> Option<Self> {
        std::num::NonZeroU32::new(name.0).map(Self)
    }

    fn name(self) -> Name {
        Name(self.0.get())
    }
}

impl Label {
    pub(super) fn set(&mut self, place: usize, value: Ident) {
        if self.kinds[place] == Kind::Absent {
            (self.values[place], self.kinds[place]) = match value {
                Ident::Int(value) => (value, Kind::Int),
                Ident::Text(name) => (i64::from(name.0), Kind::Text),
            };
        }
    }

    pub(super) fn set_name(&mut self, fact: Fact, name: Name) {
        match fact {
            Fact::Task => self.task = self.task.or(NonZeroName::new(name)),
            _ => self.request = self.request.or(NonZeroName::new(name)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes from another span what is not known.
    pub(crate) fn fill(&mut self, other: &Self) {
        for place in 0..ident::COUNT {
            if let (Kind::Absent, kind) = (self.kinds[place], other.kinds[place]) {
                (self.values[place], self.kinds[place]) = (other.values[place], kind);
            }
        }
        self.task = self.task.or(other.task);
        self.request = self.request.or(other.request);
    }

    /// Says whose sample it is, whatever was known.
    pub(crate) fn set_rollout(&mut self, rollout: Option<Ident>) {
        self.kinds[ident::ROLLOUT] = Kind::Absent;
        self.values[ident::ROLLOUT] = 0;
        if let Some(rollout) = rollout {
            self.set(ident::ROLLOUT, rollout);
        }
    }

    fn get(&self, place: usize) -> Option<Ident> {
        match self.kinds[place] {
            Kind::Absent => None,
            Kind::Int => Some(Ident::Int(self.values[place])),
            Kind::Text => Some(Ident::Text(Name(self.values[place] as u32))),
        }
    }

    pub(crate) fn rollout(&self) -> Option<Ident> {
        self.get(ident::ROLLOUT)
    }

    pub(crate) fn group(&self) -> Option<Ident> {
        self.get(ident::GROUP)
    }

    pub(crate) fn step(&self) -> Option<Ident> {
        self.get(ident::STEP)
    }

    pub(crate) fn attempt(&self) -> Option<Ident> {
        self.get(ident::ATTEMPT)
    }

    pub(crate) fn session(&self) -> Option<Ident> {
        self.get(ident::SESSION)
    }

    pub(crate) fn task(&self) -> Option<Name> {
        self.task.map(NonZeroName::name)
    }

    pub(crate) fn request(&self) -> Option<Name> {
        self.request.map(NonZeroName::name)
    }
}

impl Facts {
    pub(super) fn set_name(&mut self, fact: Fact, name: Name) {
        let place = match fact {
            Fact::Status => &mut self.status,
            Fact::Finish => &mut self.finish,
            _ => &mut self.outcome,
        };
        *place = place.or(NonZeroName::new(name));
    }

    pub(super) fn set_reward(&mut self, reward: f64) {
        self.reward = self.reward.or(Some(reward));
    }

    pub(super) fn set_pass(&mut self, pass: bool) {
        self.pass = self.pass.or(Some(pass));
    }

    pub(super) fn set_tokens(&mut self, fact: Fact, tokens: i64) {
        let place = match fact {
            Fact::PromptTokens => &mut self.prompt_tokens,
            _ => &mut self.completion_tokens,
        };
        *place = place.or(Some(tokens));
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes from another span what is not known, but for how it ended.
    pub(crate) fn fill(&mut self, other: &Self) {
        self.reward = self.reward.or(other.reward);
        self.pass = self.pass.or(other.pass);
        self.prompt_tokens = self.prompt_tokens.or(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.or(other.completion_tokens);
        self.finish = self.finish.or(other.finish);
    }

    /// Whether it says the same, but for how the span ended.
    pub(crate) fn says_as_much_as(&self, other: &Self) -> bool {
        let end = |facts: &Self| Self { status: None, outcome: None, ..*facts };
        end(self) == end(other)
    }

    pub(crate) fn status(&self) -> Option<Name> {
        self.status.map(NonZeroName::name)
    }

    pub(crate) fn finish(&self) -> Option<Name> {
        self.finish.map(NonZeroName::name)
    }

    pub(crate) fn outcome(&self) -> Option<Name> {
        self.outcome.map(NonZeroName::name)
    }

    pub(crate) fn reward(&self) -> Option<f64> {
        self.reward
    }

    pub(crate) fn pass(&self) -> Option<bool> {
        self.pass
    }

    pub(crate) fn prompt_tokens(&self) -> Option<i64> {
        self.prompt_tokens
    }

    pub(crate) fn completion_tokens(&self) -> Option<i64> {
        self.completion_tokens
    }
}

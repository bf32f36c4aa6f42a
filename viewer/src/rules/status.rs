//! How a sample stands, in the word that was recorded.

use crate::store::{Facts, Name, Store};
use stagetrace_wire::span::StatusCode;

/// How a sample or request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// It ended without an outcome: it was cancelled.
    Init,
    /// Its root has not ended.
    Running,
    /// It was finished.
    Completed,
    /// It went wrong.
    Failed,
    /// It was cut off, and may be tried again.
    Aborted,
    /// It taught nothing.
    Filtered,
    /// It was too old.
    Expired,
    /// It was used.
    Archived,
    /// Its caller gave up.
    Cancelled,
    /// It ended, and nobody says how.
    Unknown,
    /// Its process died.
    Lost,
    /// Another word that was recorded.
    Other(Name),
}

const WORDS: [(&str, Status); 11] = [
    ("init", Status::Init),
    ("running", Status::Running),
    ("completed", Status::Completed),
    ("failed", Status::Failed),
    ("aborted", Status::Aborted),
    ("filtered", Status::Filtered),
    ("expired", Status::Expired),
    ("archived", Status::Archived),
    ("cancelled", Status::Cancelled),
    ("unknown", Status::Unknown),
    ("lost", Status::Lost),
];

impl Status {
    /// The word.
    pub fn text(self, store: &Store) -> String {
        match (self, WORDS.iter().find(|(_, status)| *status == self)) {
            (Self::Other(name), _) => store.text(name),
            (_, word) => word.map_or("", |(word, _)| word).to_owned(),
        }
    }

    /// In one number.
    pub(super) fn code(self) -> u32 {
        match (self, WORDS.iter().position(|(_, status)| *status == self)) {
            // Four billion names would not fit into memory.
            (Self::Other(name), _) => name.0 + WORDS.len() as u32,
            (_, place) => place.unwrap_or(0) as u32,
        }
    }

    pub(super) fn of_code(code: u32) -> Self {
        let known = WORDS.get(code as usize).map(|(_, status)| *status);
        known.unwrap_or_else(|| Self::Other(Name(code - WORDS.len() as u32)))
    }

    /// How a sample stands whose root has ended, by what the root says.
    pub(super) fn of_ended(store: &Store, facts: &Facts, code: StatusCode) -> Self {
        let is_error = code == StatusCode::Error;
        if let Some(word) = facts.status() {
            return match Self::of_word(store, word) {
                // An exception left the function before the last update.
                Self::Init if is_error => Self::Failed,
                status => status,
            };
        }
        let outcome = facts.outcome().map(|outcome| store.text(outcome));
        match outcome.as_deref() {
            Some("ok" | "handed_over") => Self::Completed,
            Some("cancelled") => Self::Cancelled,
            Some("error" | "panic") => Self::Failed,
            Some("dropped") => Self::Unknown,
            // OpenTelemetry leaves the status unset on success.
            _ if is_error => Self::Failed,
            _ => Self::Completed,
        }
    }

    fn of_word(store: &Store, name: Name) -> Self {
        let known = |text: &str| WORDS.iter().find(|(word, _)| *word == text);
        store.with_text(name, known).map_or(Self::Other(name), |(_, status)| *status)
    }
}

//! How a stage or a request ended, and how that is read off a returned value.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::task::Poll;

use super::error_type::error_type;

/// How a request or a stage ended.
///
/// Exported as the attribute `stagetrace.outcome`, under the name that [`Outcome::as_str`] gives.
/// Only `Error`, `Panic` and `Cancelled` give the span the status *error*. A worse outcome is
/// greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// It did what it was asked to.
    Ok = 0,
    /// The request goes on elsewhere: another process finishes it.
    HandedOver = 1,
    /// The last handle went away and nobody had finished the request.
    Dropped = 2,
    /// Its future was dropped before it was ready.
    Cancelled = 3,
    /// It returned an error.
    Error = 4,
    /// It panicked.
    Panic = 5,
}

/// What [`StageOutcome`] made of a returned value: success, or a failure with its `error.type` and
/// perhaps its text.
///
/// A success costs nothing, a failure without text allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    outcome: Outcome,
    error_type: &'static str,
    message: Option<Box<str>>,
}

/// A returned value that says whether the stage succeeded.
///
/// Implemented for `Result` (an `Err` is a failure), `Option` and `ControlFlow` (`None` and `Break`
/// are failures only with the option `err`), `ExitCode` (all but success), and `Poll` of these.
/// Values of other types are successes. Implement it for a return type of your own that can hold a
/// failure:
///
/// ```
/// use stagetrace::{Failure, StageOutcome};
///
/// enum Reply {
///     Text(String),
///     Refused(std::io::Error),
/// }
///
/// impl StageOutcome for Reply {
///     type Error = std::io::Error;
///
///     fn failure(&self, _strict: bool) -> Option<Failure<'_, Self::Error>> {
///         match self {
///             Reply::Text(_) => None,
///             Reply::Refused(error) => Some(Failure::Error(error)),
///         }
///     }
/// }
/// ```
pub trait StageOutcome {
    /// The type of the error inside. With the option `err` it must implement `Display`;
    /// [`Infallible`] where there is none.
    type Error: ?Sized;

    /// Why this value is a failure, or `None` if it is a success. `strict` is the option `err`:
    /// then an absent value counts as a failure too.
    fn failure(&self, strict: bool) -> Option<Failure<'_, Self::Error>>;
}

/// Why a value is a failure.
#[derive(Debug)]
pub enum Failure<'a, E: ?Sized> {
    /// This error. Its type becomes `error.type`.
    Error(&'a E),
    /// No error at hand, but a name for `error.type`. Use few different ones.
    Named(&'static str),
}

impl Outcome {
    /// The value of `stagetrace.outcome`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::HandedOver => "handed_over",
            Self::Dropped => "dropped",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Panic => "panic",
        }
    }

    /// Whether the span gets the status *error*.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Cancelled | Self::Error | Self::Panic)
    }

    /// The outcome with this discriminant. Larger numbers, which nobody writes, read as `Panic`.
    pub(crate) const fn from_u8(number: u8) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::HandedOver,
            2 => Self::Dropped,
            3 => Self::Cancelled,
            4 => Self::Error,
            _ => Self::Panic,
        }
    }
}

impl Judged {
    /// A success.
    pub const OK: Self = Self::of(Outcome::Ok, "");

    /// An error of this type. Use few different names: backends group by them.
    pub const fn error(error_type: &'static str) -> Self {
        Self::of(Outcome::Error, error_type)
    }

    /// The same with a text for people: the span's status description. It is cut at 4 KiB.
    #[must_use]
    pub fn with_message(mut self, message: &str) -> Self {
        self.message = Some(cut(message, MAX_MESSAGE).into());
        self
    }

    /// How it ended.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The value of `error.type`, for a failure.
    pub const fn error_type(&self) -> Option<&'static str> {
        if self.outcome.is_failure() { Some(self.error_type) } else { None }
    }

    /// The text for people, if there is one.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    const fn of(outcome: Outcome, error_type: &'static str) -> Self {
        Self { outcome, error_type, message: None }
    }
}

/// Longest message that is kept, in bytes.
pub(crate) const MAX_MESSAGE: usize = 4096;

/// The longest beginning of the text that has at most `limit` bytes.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let is_boundary = |&end: &usize| text.is_char_boundary(end);
    &text[..(0..=limit).rev().find(is_boundary).unwrap_or(0)]
}

impl From<Outcome> for Judged {
    /// `error.type` is `panic`, `cancelled`, or `_OTHER` for an error of which no more is known.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Error => Self::error("_OTHER"),
            Outcome::Ok => Self::OK,
            _ => Self::of(outcome, outcome.as_str()),
        }
    }
}

impl<T: StageOutcome> From<&T> for Judged {
    /// Judges without text, as a stage without options does.
    fn from(value: &T) -> Self {
        judged(value.failure(false))
    }
}

/// Names the failure, without text.
#[inline]
pub fn judged<E: ?Sized>(failure: Option<Failure<'_, E>>) -> Judged {
    match failure {
        None => Judged::OK,
        Some(failure) => named(&failure),
    }
}

#[cold]
fn named<E: ?Sized>(failure: &Failure<'_, E>) -> Judged {
    Judged::error(match failure {
        Failure::Error(_) => error_type::<E>(),
        Failure::Named(name) => name,
    })
}

impl<T, E> StageOutcome for Result<T, E> {
    type Error = E;

    #[inline]
    fn failure(&self, _: bool) -> Option<Failure<'_, E>> {
        self.as_ref().err().map(Failure::Error)
    }
}

impl<T> StageOutcome for Option<T> {
    type Error = Infallible;

    #[inline]
    fn failure(&self, strict: bool) -> Option<Failure<'_, Infallible>> {
        (strict && self.is_none()).then_some(Failure::Named("None"))
    }
}

impl<B, C> StageOutcome for ControlFlow<B, C> {
    type Error = Infallible;

    #[inline]
    fn failure(&self, strict: bool) -> Option<Failure<'_, Infallible>> {
        (strict && self.is_break()).then_some(Failure::Named("Break"))
    }
}

impl StageOutcome for ExitCode {
    type Error = Infallible;

    #[inline]
    fn failure(&self, _: bool) -> Option<Failure<'_, Infallible>> {
        (*self != ExitCode::SUCCESS).then_some(Failure::Named("ExitCode"))
    }
}

impl<T: StageOutcome> StageOutcome for Poll<T> {
    type Error = T::Error;

    #[inline]
    fn failure(&self, strict: bool) -> Option<Failure<'_, T::Error>> {
        match self {
            Poll::Ready(value) => value.failure(strict),
            Poll::Pending => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Outcome; 6] = [
        Outcome::Ok,
        Outcome::HandedOver,
        Outcome::Dropped,
        Outcome::Cancelled,
        Outcome::Error,
        Outcome::Panic,
    ];

    #[test]
    fn an_outcome_survives_its_number() {
        for outcome in ALL {
            assert_eq!(Outcome::from_u8(outcome as u8), outcome);
        }
    }

    #[test]
    fn a_worse_outcome_is_greater_and_so_is_its_number() {
        assert!(ALL.is_sorted_by(|better, worse| better < worse));
        assert!(ALL.is_sorted_by_key(|&outcome| outcome as u8));
    }

    #[test]
    fn only_failures_have_an_error_type() {
        let types = ALL.map(|outcome| Judged::from(outcome).error_type());
        let expected = [None, None, None, Some("cancelled"), Some("_OTHER"), Some("panic")];
        assert_eq!(types, expected);
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let judged = Judged::error("E").with_message(&format!("x{}", "é".repeat(MAX_MESSAGE)));
        assert_eq!(judged.message().map(str::len), Some(MAX_MESSAGE - 1));
    }

    #[test]
    fn a_result_converts_by_reference() {
        let result: Result<(), std::num::ParseIntError> = "x".parse::<u8>().map(drop);
        assert_eq!(Judged::from(&result).error_type(), Some("ParseIntError"));
        assert_eq!(Judged::from(&Ok::<(), ()>(())), Judged::OK);
    }
}

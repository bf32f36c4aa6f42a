//! The judging of a returned value of any type, chosen by the compiler.
//!
//! Stable Rust has no specialisation, but method lookup comes near: an inherent method whose bounds
//! do not hold is passed over, and the search goes on behind [`Deref`]. So each type below tries
//! its own method first and leaves the rest to the next. No trait has to be in scope, and the value
//! stays where it is.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::{self, Display, Write};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::outcome::{Failure, MAX_MESSAGE, StageOutcome, cut};

/// Judges a value behind a reference and gives a `Judged`. The value is neither moved nor changed.
///
/// - `judge!(DEFAULT, &value)`: failures are named.
/// - `judge!(ERR, &value)`: an absent value is a failure too; the error's text is taken, with its
///   sources.
/// - `judge!(NO_ERR, &value)`: always a success. Also for functions that return `!`: the type of
///   what never comes is still open when the compiler chooses.
#[doc(hidden)]
#[macro_export]
macro_rules! __stagetrace_judge {
    (DEFAULT, $value:expr) => {
        $crate::__private0::judged(
            $crate::__private0::Judge::new($value).__stagetrace_failure(false),
        )
    };
    (ERR, $value:expr) => {
        match $crate::__private0::Judge::new($value).__stagetrace_failure(true) {
            $crate::__private0::core::option::Option::Some($crate::__private0::Failure::Error(
                error,
            )) => $crate::__private0::judged($crate::__private0::core::option::Option::Some(
                $crate::__private0::Failure::Error(error),
            ))
            .with_message(&$crate::__private0::ErrorText::new(error).__stagetrace_text()),
            failure => $crate::__private0::judged(failure),
        }
    };
    (NO_ERR, $value:expr) => {{
        let _ = $value;
        $crate::__private0::Judged::OK
    }};
    // The mode may come with a path before it.
    ($skipped:tt $($mode:tt)+) => {
        $crate::__private0::judge!($($mode)+)
    };
}

/// A value to be judged: by [`StageOutcome`], or else as a success.
pub struct Judge<'a, T: ?Sized> {
    value: &'a T,
    plain: Plain,
}

/// A value of a type without outcome.
pub struct Plain;

/// An error whose text is wanted: with its sources if it is an [`Error`] or points to one, as
/// `Box<dyn Error>` and `anyhow::Error` do, else as its `Display` gives it.
pub struct ErrorText<'a, E: ?Sized>(PointerText<'a, E>);

/// The second try: a pointer to an error.
pub struct PointerText<'a, E: ?Sized>(DisplayText<'a, E>);

/// The third try: `Display`.
pub struct DisplayText<'a, E: ?Sized>(NoText<'a, E>);

/// The end: an error without text, refused in words.
pub struct NoText<'a, E: ?Sized>(&'a E);

/// What can record the text of an error `E`. Nothing implements it, since `Display` is tried
/// before. `E` is a parameter, so that the compiler does not advise to bound a generic error by
/// this trait.
#[diagnostic::on_unimplemented(
    message = "`{E}` has no text that `err` could record",
    label = "this stage returns an error without `Display`",
    note = "implement or require `std::fmt::Display` for `{E}`, or leave out `err`: the failure is \
            recorded anyway, with the name of its type"
)]
pub trait RecordsText<E: ?Sized> {}

/// Who records texts.
pub struct Recorder;

impl<'a, T: ?Sized> Judge<'a, T> {
    /// Looks at this value.
    #[inline]
    pub fn new(value: &'a T) -> Self {
        Self { value, plain: Plain }
    }
}

impl<'a, T: StageOutcome + ?Sized> Judge<'a, T> {
    /// What the value says of itself.
    #[inline]
    pub fn __stagetrace_failure(&self, strict: bool) -> Option<Failure<'a, T::Error>> {
        self.value.failure(strict)
    }
}

impl<T: ?Sized> Deref for Judge<'_, T> {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        &self.plain
    }
}

impl Plain {
    /// Never a failure.
    #[inline]
    pub fn __stagetrace_failure(&self, _: bool) -> Option<Failure<'static, Infallible>> {
        None
    }
}

impl<'a, E: ?Sized> ErrorText<'a, E> {
    /// Looks at this error.
    pub fn new(error: &'a E) -> Self {
        Self(PointerText(DisplayText(NoText(error))))
    }
}

impl<E: Error + ?Sized> ErrorText<'_, E> {
    /// The error and its sources.
    #[cold]
    pub fn __stagetrace_text(&self) -> String {
        let error = self.0.0.0.0;
        text(error, error.source())
    }
}

impl<'a, E: ?Sized> Deref for ErrorText<'a, E> {
    type Target = PointerText<'a, E>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<E: Deref<Target: Error> + ?Sized> PointerText<'_, E> {
    /// The error pointed to, and its sources.
    #[cold]
    pub fn __stagetrace_text(&self) -> String {
        let error = &**self.0.0.0;
        text(error, error.source())
    }
}

impl<'a, E: ?Sized> Deref for PointerText<'a, E> {
    type Target = DisplayText<'a, E>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<E: Display + ?Sized> DisplayText<'_, E> {
    /// The error.
    #[cold]
    pub fn __stagetrace_text(&self) -> String {
        text(self.0.0, None)
    }
}

impl<'a, E: ?Sized> Deref for DisplayText<'a, E> {
    type Target = NoText<'a, E>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<E: ?Sized> NoText<'_, E> {
    /// Never compiles.
    pub fn __stagetrace_text(&self) -> String
    where
        Recorder: RecordsText<E>,
    {
        String::new()
    }
}

/// Most sources that are followed.
const MAX_SOURCES: usize = 16;

/// `error: source: its source`. What a text already ends with is not said twice. The code that
/// writes it is the user's: it may go on for ever or panic, neither of which may reach the caller.
fn text<E: Display + ?Sized>(error: &E, source: Option<&(dyn Error + 'static)>) -> String {
    let mut text = Capped::default();
    let written = catch_unwind(AssertUnwindSafe(|| {
        text.push(error);
        let mut next = source;
        for _ in 0..MAX_SOURCES {
            let Some(source) = next else { break };
            let mut part = Capped::default();
            part.push(source);
            if !text.0.ends_with(&part.0) {
                text.push(&format_args!(": {}", part.0));
            }
            next = source.source();
        }
    }));
    if written.is_err() {
        text.push(&" (its text panicked)");
    }
    text.0
}

/// A text of at most [`MAX_MESSAGE`] bytes. What goes beyond is an error to the writer, so that it
/// stops.
#[derive(Default)]
struct Capped(String);

impl Capped {
    fn push(&mut self, part: &(impl Display + ?Sized)) {
        // Err: it is full, or the error gave up. Either way we keep what there is.
        let _ = write!(self, "{part}");
    }
}

impl Write for Capped {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MAX_MESSAGE - self.0.len();
        self.0.push_str(cut(part, room));
        if part.len() <= room { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests;

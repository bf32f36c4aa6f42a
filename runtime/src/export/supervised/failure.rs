//! Why spans are lost: causes, named as `error.type`, and counts.

use std::fmt;

/// Why a call into the exporter failed.
#[derive(Clone, Debug)]
pub(in super::super) struct Failure {
    pub(in super::super) cause: Cause,
    pub(in super::super) problem: String,
}

/// What spans are lost to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Cause {
    QueueFull,
    Timeout,
    Hanging,
    Panic,
    Refused,
    Rejected,
    Unavailable,
    TooLarge,
    OutboxFull,
    Expired,
    Closed,
}

/// How many spans were lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses([u64; Cause::ALL.len()]);

impl Failure {
    /// A call that panicked with this text.
    pub(super) fn panic(text: &str) -> Failure {
        Failure { cause: Cause::Panic, problem: format!("panicked: {text}") }
    }

    /// One that failed for this reason.
    pub(in super::super) fn refused(problem: String) -> Failure {
        Failure { cause: Cause::Refused, problem }
    }
}

impl Cause {
    /// Every cause.
    pub(super) const ALL: [Cause; 11] = [
        Cause::QueueFull,
        Cause::Timeout,
        Cause::Hanging,
        Cause::Panic,
        Cause::Refused,
        Cause::Rejected,
        Cause::Unavailable,
        Cause::TooLarge,
        Cause::OutboxFull,
        Cause::Expired,
        Cause::Closed,
    ];

    /// Its `error.type`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Cause::QueueFull => "queue_full",
            Cause::Timeout => "timeout",
            Cause::Hanging => "exporter_hangs",
            Cause::Panic => "panic",
            Cause::Refused => "export_failed",
            Cause::Rejected => "rejected",
            Cause::Unavailable => "unavailable",
            Cause::TooLarge => "too_large",
            Cause::OutboxFull => "outbox_full",
            Cause::Expired => "outbox_expired",
            Cause::Closed => "already_shutdown",
        }
    }

    /// In words, where nothing more is known.
    pub(in super::super) fn problem(self) -> &'static str {
        match self {
            Cause::QueueFull => "its queue is full",
            Cause::Timeout => "it takes too long",
            Cause::Hanging => "it hangs",
            Cause::Panic => "it panicked",
            Cause::Refused => "it failed",
            Cause::Rejected => "the server rejects it",
            Cause::Unavailable => "the server cannot take it now",
            Cause::TooLarge => "a span is too large",
            Cause::OutboxFull => "the outbox is full",
            Cause::Expired => "it waited too long in the outbox",
            Cause::Closed => "it is shut down",
        }
    }
}

impl Losses {
    /// Counts so many more.
    pub(super) fn add(&mut self, cause: Cause, spans: u64) {
        self.0[cause as usize] += spans;
    }

    /// All of them.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The causes that took any.
    pub(super) fn by_cause(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} spans", self.total())?;
        let mut separator = " (";
        for (cause, count) in self.by_cause() {
            write!(f, "{separator}{} {count}", cause.name())?;
            separator = ", ";
        }
        f.write_str(if separator == " (" { "" } else { ")" })
    }
}

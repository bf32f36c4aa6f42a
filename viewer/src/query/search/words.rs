//! The words of the search language.

/// What stands before a colon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Prefix {
    Text(Field),
    Measure(Measure),
    Is,
    Attribute,
}

/// Texts of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Rollout,
    Group,
    Session,
    Task,
    Trace,
    Status,
    /// The stage of any of its spans.
    Stage,
    /// The name of any of its spans.
    Span,
    /// The names from the root to what it is in, or to what failed.
    Stack,
    /// The stage that it is in now.
    Current,
    /// Type or message of what went wrong.
    Error,
    ErrorStage,
    /// Attributes that say why it was filtered out.
    Filter,
    /// Attributes that say why it was dropped.
    Drop,
}

/// Numbers and times of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Step,
    Attempt,
    Reward,
    Tokens,
    Spans,
    /// From begin to end, or to now.
    Duration,
    /// From begin to now, while it is open.
    Age,
    /// For how long it has been in its stage, while it is open.
    StageAge,
}

impl Measure {
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Duration | Self::Age | Self::StageAge)
    }
}

/// How a sample stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Open,
    Stuck,
    Lost,
    Failed,
    /// Something went wrong in one of its spans.
    Error,
    /// Its root never came.
    RootMissing,
    /// Spans of it are open though its root has ended.
    LeftOpen,
}

/// Every prefix.
pub(super) const PREFIXES: [(&str, Prefix); 30] = [
    ("rollout", Prefix::Text(Field::Rollout)),
    ("rollout_id", Prefix::Text(Field::Rollout)),
    ("group", Prefix::Text(Field::Group)),
    ("group_id", Prefix::Text(Field::Group)),
    ("step", Prefix::Measure(Measure::Step)),
    ("producer_future_step", Prefix::Measure(Measure::Step)),
    ("attempt", Prefix::Measure(Measure::Attempt)),
    ("session", Prefix::Text(Field::Session)),
    ("task", Prefix::Text(Field::Task)),
    ("trace", Prefix::Text(Field::Trace)),
    ("trace_id", Prefix::Text(Field::Trace)),
    ("status", Prefix::Text(Field::Status)),
    ("is", Prefix::Is),
    ("stage", Prefix::Text(Field::Stage)),
    ("span", Prefix::Text(Field::Span)),
    ("stack", Prefix::Text(Field::Stack)),
    ("current", Prefix::Text(Field::Current)),
    ("error", Prefix::Text(Field::Error)),
    ("error-stage", Prefix::Text(Field::ErrorStage)),
    ("error_stage", Prefix::Text(Field::ErrorStage)),
    ("filter", Prefix::Text(Field::Filter)),
    ("drop", Prefix::Text(Field::Drop)),
    ("attr", Prefix::Attribute),
    ("reward", Prefix::Measure(Measure::Reward)),
    ("tokens", Prefix::Measure(Measure::Tokens)),
    ("spans", Prefix::Measure(Measure::Spans)),
    ("duration", Prefix::Measure(Measure::Duration)),
    ("age", Prefix::Measure(Measure::Age)),
    ("stage-age", Prefix::Measure(Measure::StageAge)),
    ("stage_age", Prefix::Measure(Measure::StageAge)),
];

/// Every word after `is:`.
pub(super) const STATES: [(&str, Is); 7] = [
    ("open", Is::Open),
    ("stuck", Is::Stuck),
    ("lost", Is::Lost),
    ("failed", Is::Failed),
    ("error", Is::Error),
    ("root-missing", Is::RootMissing),
    ("left-open", Is::LeftOpen),
];

/// Units of time in nanoseconds.
pub(super) const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

/// The names of a table, for people.
pub(super) fn listed<T>(table: &[(&str, T)], around: impl Fn(&str) -> String) -> String {
    table.iter().map(|(word, _)| around(word)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_the_page_explains_every_prefix_and_every_state() {
        let help = include_str!("../../../pages/js/search.js");
        for (prefix, _) in PREFIXES {
            assert!(help.contains(&format!("\"{prefix}:")), "{prefix}: is not explained");
        }
        for (state, _) in STATES {
            assert!(help.contains(&format!("\"is:{state}\"")), "is:{state} is not explained");
        }
    }
}

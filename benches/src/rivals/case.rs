//! What is compared, and with whom.

use std::fmt;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Spans in a loop, so many below each root.
    Span(usize),
    /// Spans of which each begins where the last one ends, so many below each root.
    Consecutive(usize),
    /// Spans in a loop with four typed attributes, 100 below each root.
    Attributes,
    /// The same work when nothing was started.
    Off,
    /// Nothing is recorded, since the request is not sampled.
    NotSampled,
    /// Nothing is recorded, since the span is too detailed.
    AboveLevel,
    /// Async functions with three awaits that are ready.
    AsyncReady,
    /// Async functions with three awaits that yield to the executor.
    AsyncYield,
    /// Spans in a loop on so many threads at once.
    Threads(usize),
    /// A request of 12 spans that crosses a channel.
    Channel,
    /// Spans around 300 ns of work: what they add to it.
    Work,
    /// To OpenTelemetry's `SpanData`; with attributes or without.
    SpanData { has_attributes: bool },
    /// To the bytes of OTLP requests.
    Otlp { has_attributes: bool },
    /// How long single spans take, 0.5 µs apart.
    Tail,
    /// As fast as one thread can, with default settings.
    Flood,
    /// The same, to the bytes of OTLP requests.
    FloodOtlp,
    /// What the start of a process costs.
    Start,
}

/// All cases, in the order of the table.
pub(crate) const CASES: &[Case] = &[
    Case::Span(10),
    Case::Span(100),
    Case::Span(1000),
    Case::Consecutive(10),
    Case::Consecutive(100),
    Case::Attributes,
    Case::Work,
    Case::Off,
    Case::NotSampled,
    Case::AboveLevel,
    Case::AsyncReady,
    Case::AsyncYield,
    Case::Channel,
    Case::Threads(2),
    Case::Threads(4),
    Case::SpanData { has_attributes: false },
    Case::SpanData { has_attributes: true },
    Case::Otlp { has_attributes: false },
    Case::Otlp { has_attributes: true },
    Case::Tail,
    Case::Flood,
    Case::FloodOtlp,
    Case::Start,
];

/// Everyone, in the order of the table.
pub(crate) const PEERS: &[&str] = &[BARE, "stagetrace", "fastrace", "opentelemetry", TRACING, LEAN];

/// The work without spans.
pub(crate) const BARE: &str = "no tracing";
pub(crate) const TRACING: &str = "tracing-opentelemetry";
/// With location, threads and timings switched off.
pub(crate) const LEAN: &str = "tracing-opentelemetry, lean";

impl Case {
    /// The case of that name.
    pub(crate) fn named(name: &str) -> Option<Case> {
        CASES.iter().copied().find(|case| case.to_string() == name)
    }

    /// Whether it says something about the peer.
    pub(crate) fn applies_to(self, peer: &str) -> bool {
        match peer {
            BARE => {
                matches!(self, Case::AsyncReady | Case::AsyncYield | Case::Channel | Case::Start)
            }
            LEAN => matches!(self, Case::Span(100) | Case::Attributes),
            "fastrace" | "opentelemetry" => self != Case::AboveLevel,
            _ => true,
        }
    }

    /// Why this machine cannot do it.
    pub(crate) fn impossible(self) -> Option<String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Case::Threads(threads) if cores < threads => {
                Some(format!("{threads} threads need {threads} cores, and there are {cores}"))
            }
            _ => None,
        }
    }

    /// What it is, for people.
    pub(crate) fn title(self) -> String {
        let with = |has_attributes| if has_attributes { ", 4 attributes" } else { "" };
        match self {
            Case::Span(children) => format!("span in a loop, {children} below a root"),
            Case::Consecutive(children) => {
                format!("span that begins where the last one ends, {children} below a root")
            }
            Case::Attributes => "span with 4 attributes".to_owned(),
            Case::Off => "nothing started".to_owned(),
            Case::NotSampled => "not sampled".to_owned(),
            Case::AboveLevel => "above the level".to_owned(),
            Case::AsyncReady => "async function, 3 awaits that are ready".to_owned(),
            Case::AsyncYield => "async function, 3 awaits that yield".to_owned(),
            Case::Threads(threads) => format!("span in a loop, {threads} threads at once"),
            Case::Channel => "request of 12 spans across a channel".to_owned(),
            Case::Work => "span around 300 ns of work: what it adds".to_owned(),
            Case::SpanData { has_attributes } => {
                format!("span to SpanData{}", with(has_attributes))
            }
            Case::Otlp { has_attributes } => format!("span to OTLP bytes{}", with(has_attributes)),
            Case::Tail => "tail of one span".to_owned(),
            Case::Flood => "flat out, default settings".to_owned(),
            Case::FloodOtlp => "flat out, to OTLP bytes".to_owned(),
            Case::Start => "start of a process".to_owned(),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |has_attributes: bool| if has_attributes { "-attributes" } else { "" };
        match *self {
            Case::Span(children) => write!(f, "span/{children}"),
            Case::Consecutive(children) => write!(f, "consecutive/{children}"),
            Case::Attributes => f.write_str("attributes/100"),
            Case::Off => f.write_str("off/100"),
            Case::NotSampled => f.write_str("not-sampled/100"),
            Case::AboveLevel => f.write_str("above-level/100"),
            Case::AsyncReady => f.write_str("async-ready/100"),
            Case::AsyncYield => f.write_str("async-yield/100"),
            Case::Threads(threads) => write!(f, "threads/{threads}"),
            Case::Channel => f.write_str("channel/12"),
            Case::Work => f.write_str("work/100"),
            Case::SpanData { has_attributes } => write!(f, "span-data{}/100", with(has_attributes)),
            Case::Otlp { has_attributes } => write!(f, "otlp{}/100", with(has_attributes)),
            Case::Tail => f.write_str("tail"),
            Case::Flood => f.write_str("flood"),
            Case::FloodOtlp => f.write_str("flood-otlp"),
            Case::Start => f.write_str("start"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_by_which_it_is_found() {
        let names: BTreeSet<String> = CASES.iter().map(Case::to_string).collect();
        assert_eq!(names.len(), CASES.len());
        for case in CASES {
            assert_eq!(Case::named(&case.to_string()), Some(*case));
        }
    }
}

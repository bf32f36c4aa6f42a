//! Where the time of a sample went: waiting or working, and the latencies that model servers tell.

use serde::Serialize;
use stagetrace_wire::span::Value;

use super::order::Drawn;
use crate::query::json::number;

/// How a sample's time divides. The three are together as long as its root.
#[derive(Debug, Serialize)]
pub(super) struct Waits {
    /// Spans that wait by their names ran.
    waiting_ns: String,
    /// The root ran, and none of its children.
    between_ns: String,
    working_ns: String,
}

/// A part of a request's latency.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    /// `queue`, `prefill`, `decode`, `time_to_first_token`, `time_per_output_token`, `inference` or `total`.
    part: &'static str,
    ns: String,
    /// The attribute that says so, or `event` or `stages`.
    source: &'static str,
    /// Calls of which it is the sum.
    calls: usize,
}

/// Attributes that tell a part of a request's latency: key, part, nanoseconds of one.
pub(super) const LATENCIES: [(&str, &str, f64); 12] = [
    ("gen_ai.latency.time_in_queue", "queue", 1e9),
    ("gen_ai.latency.time_in_model_prefill", "prefill", 1e9),
    ("gen_ai.latency.time_in_model_decode", "decode", 1e9),
    ("gen_ai.latency.time_in_model_inference", "inference", 1e9),
    ("gen_ai.latency.time_to_first_token", "time_to_first_token", 1e9),
    ("gen_ai.server.time_to_first_token", "time_to_first_token", 1e9),
    ("gen_ai.response.time_to_first_chunk", "time_to_first_token", 1e9),
    ("ttft_ms", "time_to_first_token", 1e6),
    ("gen_ai.server.time_per_output_token", "time_per_output_token", 1e9),
    ("gen_ai.latency.time_per_output_token", "time_per_output_token", 1e9),
    ("gen_ai.latency.e2e", "total", 1e9),
    ("gen_ai.server.request.duration", "total", 1e9),
];

/// What was told of latencies, span by span.
#[derive(Debug, Default)]
pub(super) struct Told {
    latencies: Vec<Latency>,
    sums: Vec<f64>,
}

impl Told {
    /// Adds what a span says: which of [`LATENCIES`], and how much.
    pub(super) fn add(&mut self, which: usize, value: &Value) {
        let Some((key, part, unit)) = LATENCIES.get(which) else { return };
        let amount = match value {
            Value::F64(value) => *value,
            Value::I64(value) => *value as f64,
            _ => return,
        };
        let ns = amount * unit;
        if ns.is_finite() && ns >= 0.0 {
            self.add_ns(part, key, ns);
        }
    }

    fn add_ns(&mut self, part: &'static str, source: &'static str, ns: f64) {
        match self.latencies.iter().position(|one| one.part == part) {
            None => {
                self.latencies.push(Latency { part, ns: String::new(), source, calls: 1 });
                self.sums.push(ns);
            }
            // The same told by another name is not added.
            Some(at) if self.latencies[at].source == source => {
                self.latencies[at].calls += 1;
                // Of several calls the first token is that of the first one.
                if !part.starts_with("time_") {
                    self.sums[at] += ns;
                }
            }
            Some(_) => {}
        }
    }

    /// All parts. What no attribute tells is taken from an event or from stages that are named so.
    pub(super) fn finish(
        mut self,
        first_token_ns: Option<u64>,
        stages: &[(&'static str, u64)],
    ) -> Vec<Latency> {
        let is_told = |told: &Self, part: &str| told.latencies.iter().any(|one| one.part == part);
        if let Some(ns) = first_token_ns.filter(|_| !is_told(&self, "time_to_first_token")) {
            self.add_ns("time_to_first_token", "event", ns as f64);
        }
        let is_model = stages.iter().any(|(part, ns)| *part == "prefill" && *ns > 0);
        for (part, ns) in stages.iter().filter(|(_, ns)| is_model && *ns > 0) {
            if !is_told(&self, part) {
                self.add_ns(part, "stages", *ns as f64);
            }
        }
        for (latency, sum) in self.latencies.iter_mut().zip(&self.sums) {
            latency.ns = number(sum.round() as u64);
        }
        self.latencies
    }
}

/// Whether an event says that the first token came.
pub(super) fn is_first_token(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("first") && (name.contains("token") || name.contains("chunk"))
}

impl Waits {
    /// Divides the time of a root, given how much of it its children cover, and how much spans that wait.
    pub(super) fn new(root: &Drawn, covered: u64, waiting: u64) -> Self {
        let whole = root.duration();
        let waiting = waiting.min(whole);
        let between = whole.saturating_sub(covered).min(whole - waiting);
        Self {
            waiting_ns: number(waiting),
            between_ns: number(between),
            working_ns: number(whole - waiting - between),
        }
    }
}

/// Nanoseconds within bounds that at least one of some spans covers.
pub(super) fn union(spans: impl Iterator<Item = (u64, u64)>, (begin, end): (u64, u64)) -> u64 {
    let mut spans: Vec<_> = spans.collect();
    spans.sort_unstable();
    let (mut sum, mut until) = (0, begin);
    for (from, to) in spans {
        let (from, to) = (from.max(until), to.min(end));
        if from < to {
            sum += to - from;
            until = to;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(told: Told) -> Vec<(&'static str, String, &'static str, usize)> {
        let all = told.finish(Some(7), &[("queue", 3), ("prefill", 5), ("decode", 0)]);
        all.into_iter().map(|one| (one.part, one.ns, one.source, one.calls)).collect()
    }

    #[test]
    fn latencies_of_several_calls_add_up_but_for_the_first_token() {
        let mut all = Told::default();
        let at = |key: &str| LATENCIES.iter().position(|one| one.0 == key).unwrap();
        for seconds in [0.5, 0.25] {
            all.add(at("gen_ai.latency.time_in_queue"), &Value::F64(seconds));
            all.add(at("ttft_ms"), &Value::F64(seconds * 1e3));
        }
        all.add(at("gen_ai.server.time_to_first_token"), &Value::F64(9.0));
        for nonsense in [Value::F64(f64::NAN), Value::F64(-1.0), Value::Str("1".into())] {
            all.add(at("gen_ai.latency.e2e"), &nonsense);
        }
        assert_eq!(
            told(all),
            [
                ("queue", "750000000".to_owned(), "gen_ai.latency.time_in_queue", 2),
                ("time_to_first_token", "500000000".to_owned(), "ttft_ms", 2),
                ("prefill", "5".to_owned(), "stages", 1),
            ]
        );
    }

    #[test]
    fn what_is_not_told_is_taken_from_events_and_stages() {
        assert!(is_first_token("gen_ai.first_token") && is_first_token("FirstChunk"));
        assert!(!is_first_token("token") && !is_first_token("first step"));
        let parts: Vec<_> = told(Told::default()).into_iter().map(|one| (one.0, one.2)).collect();
        let expected =
            [("time_to_first_token", "event"), ("queue", "stages"), ("prefill", "stages")];
        assert_eq!(parts, expected);
    }

    #[test]
    fn time_that_several_spans_cover_counts_once_and_within_bounds() {
        assert_eq!(union([(5, 20), (0, 10), (30, 99)].into_iter(), (2, 40)), 28);
        assert_eq!(union([(9, 3)].into_iter(), (0, 40)), 0);
    }
}

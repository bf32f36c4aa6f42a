//! What the tests have in common.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stagetrace_viewer::{
    Ident, Name, Sample, Samples, SourceReport, Sources, StepChoice, Store, StuckRule, Summary,
    SummaryOptions,
};

pub(crate) mod serve;

/// Long enough for a machine that does other things too.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits until the condition holds, which it does before long.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONG, "it does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sources, and all that was read of them.
pub(crate) struct View {
    pub(crate) sources: Sources,
    pub(crate) store: Store,
    pub(crate) samples: Samples,
}

impl View {
    /// Opens paths, and reads what is there.
    pub(crate) fn of<P: AsRef<Path>>(paths: &[P]) -> View {
        let sources = Sources::open(paths).expect("the paths are there");
        let mut view = View { sources, store: Store::default(), samples: Samples::default() };
        view.poll();
        view
    }

    /// Reads what is new.
    pub(crate) fn poll(&mut self) {
        self.sources.poll(&mut self.store);
        self.samples.refresh(&mut self.store);
    }

    pub(crate) fn report(&self) -> SourceReport {
        self.sources.report()
    }

    pub(crate) fn summary(&self, now: u64, step: StepChoice) -> Summary {
        let options = SummaryOptions { step, now, stuck: StuckRule::default() };
        Summary::new(&self.store, &self.samples, &self.report(), &options).expect("a known step")
    }

    pub(crate) fn json(&self, now: u64) -> Json {
        serde_json::to_value(self.summary(now, StepChoice::All)).expect("it is JSON")
    }

    /// All spans with all they own, one a line, sorted.
    pub(crate) fn spans(&self) -> Vec<String> {
        let store = &self.store;
        let numbers = store.traces().flat_map(|trace| store.spans_of(trace));
        let mut spans: Vec<_> = numbers.map(|number| format!("{:?}", store.span(number))).collect();
        spans.sort();
        spans
    }

    /// All that there is to know, for comparison.
    pub(crate) fn everything(&self, now: u64) -> (Vec<String>, Json) {
        let mut json = self.json(now);
        // What was read twice says how it was read.
        json["losses"]["duplicates"] = Json::Null;
        (self.spans(), json)
    }

    pub(crate) fn text(&self, name: Option<Name>) -> Option<String> {
        name.map(|name| self.store.text(name))
    }

    pub(crate) fn one(&self) -> Sample {
        let mut samples = self.samples.iter(&self.store);
        let one = samples.next().expect("a sample");
        assert!(samples.next().is_none(), "there are more samples than one");
        one
    }
}

pub(crate) fn ident(store: &Store, ident: Option<Ident>) -> Json {
    match ident {
        None => Json::Null,
        Some(Ident::Int(value)) => value.into(),
        Some(Ident::Text(name)) => store.text(name).into(),
    }
}

pub(crate) fn cases(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder)
}

pub(crate) fn append(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut file: File = OpenOptions::new().append(true).create(true).open(path).expect("a file");
    file.write_all(bytes.as_ref()).expect("it can be written");
}

/// A line with one span.
pub(crate) fn line(trace: u128, span: u64, parent: u64, name: &str, times: [u64; 2]) -> String {
    let parent = match parent {
        0 => String::new(),
        parent => format!(r#""parentSpanId":"{parent:016x}","#),
    };
    let [start, end] = times;
    format!(
        r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"scope":{{}},"spans":[{{"traceId":"{trace:032x}","spanId":"{span:016x}",{parent}"name":"{name}","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"}}]}}]}}]}}"#
    ) + "\n"
}

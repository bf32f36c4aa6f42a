//! Inboxes as sources: what fills them, what they hold, and what they say of themselves.

use std::sync::{Arc, Mutex};

use stagetrace_collector::Collector;

use super::ask::{self, Asked};
use super::inbox::Inbox;
use super::parse::Reader;
use super::report::InboxReport;
use crate::store::{Standing, Store};

/// An inbox, and what fills it as long as this is there.
#[derive(Debug)]
pub(super) struct Received {
    name: String,
    inbox: Inbox,
    feeder: Feeder,
    spans: u64,
    announced: u64,
}

/// What fills an inbox.
#[derive(Debug)]
pub(super) enum Feeder {
    /// The program that the viewer is part of.
    Program,
    Otlp(Collector),
    Jaeger(Arc<Mutex<Asked>>),
}

impl Received {
    pub(super) fn new(name: String, inbox: Inbox, feeder: Feeder) -> Self {
        Self { name, inbox, feeder, spans: 0, announced: 0 }
    }

    /// Takes in what is there now; what comes meanwhile has to wait for the next time.
    pub(super) fn poll(&mut self, reader: &mut Reader, store: &mut Store) {
        for _ in 0..self.inbox.len() {
            let Some(parcel) = self.inbox.take() else { return };
            let mut encoder = reader.encoder(store);
            for span in &parcel.spans {
                if !parcel.is_repeated || !store.has_end(span.trace_id, span.span_id) {
                    encoder.span(span, Standing::WrittenEnd);
                }
            }
            // It is in no file: its details stay as long as the store.
            let batch = encoder.take();
            self.spans += batch.spans.len() as u64;
            let is_announced = |standing| standing == Standing::Announced;
            let announced = batch.spans.iter().filter(|span| is_announced(span.standing));
            self.announced += announced.count() as u64;
            store.take(batch);
        }
    }

    pub(super) fn report(&self) -> InboxReport {
        let mut report = InboxReport {
            name: self.name.clone(),
            spans: self.spans,
            announced_spans: self.announced,
            deferred_spans: self.inbox.deferred(),
            ..InboxReport::default()
        };
        match &self.feeder {
            Feeder::Program => {}
            Feeder::Otlp(collector) => {
                let stats = collector.stats();
                report.requests = stats.requests;
                report.failed_requests = stats.failed_requests;
                report.refused_spans = stats.rejected_spans.saturating_sub(report.deferred_spans);
            }
            Feeder::Jaeger(asked) => {
                let asked = ask::lock(asked).clone();
                report.requests = asked.requests;
                report.failed_requests = asked.failed;
                report.refused_spans = asked.refused_spans;
                report.incomplete_windows = asked.incomplete_windows;
                report.error = asked.error.or_else(|| incomplete(asked.incomplete_windows));
            }
        }
        report
    }
}

fn incomplete(windows: u64) -> Option<String> {
    let message = || {
        format!(
            "{windows} times it had more than it gives at once, so traces are missing; ask for more at once"
        )
    };
    (windows > 0).then(message)
}

impl Drop for Received {
    fn drop(&mut self) {
        // Whoever waits for room would wait in vain.
        self.inbox.close();
    }
}

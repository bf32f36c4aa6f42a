//! What the program `victim` does over and over, so that anyone can tell of a span whether it is
//! whole, and which it is.

use crate::ledger::Ledger;
use stagetrace::{Carrier, Outcome, Position, Span, TraceState, Traced, event, span, stage};
use stagetrace_wire::span::{self as wire, Value, find};
use std::sync::mpsc::Sender;

/// A span of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A stage, in every round.
    Outer,
    /// One within it.
    Inner,
    /// One made by hand, with an event and a late attribute, in every 4th round.
    Talk,
    /// The root of a request, in every 8th.
    Asked,
    /// A stage of that request.
    Served,
    /// One that ends on another thread, in every 16th.
    Carried,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Outer, Kind::Inner, Kind::Talk, Kind::Asked, Kind::Served, Kind::Carried];

    /// The name of its spans.
    pub fn name(self) -> &'static str {
        ["outer", "inner", "talk", "asked", "served", "carried"][self as usize]
    }

    /// Its bit in the ledger.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which span it is: whose, of which round, which of the round's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Number of the worker.
    pub worker: u32,
    /// Number of its round.
    pub round: u32,
    /// Which of the round's spans.
    pub kind: Kind,
}

impl Label {
    /// What a span says of itself, or what is wrong with it. Its text may be cut short if
    /// `may_be_cut`, as in the slot of an open span.
    ///
    /// # Errors
    /// If it is torn, or none of ours.
    pub fn of(span: &wire::Span, may_be_cut: bool) -> Result<Label, String> {
        let number = |key| find(&span.attributes, key).and_then(Value::as_i64);
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == span.name);
        let label = match (kind, number("worker"), number("round")) {
            (Some(kind), Some(worker), Some(round)) => {
                Label { worker: worker as u32, round: round as u32, kind }
            }
            _ => return Err(format!("not one of ours: {span:?}")),
        };
        let (text, whole) = (label.text(), find(&span.attributes, "text").and_then(Value::as_str));
        let is_text = match whole {
            Some(found) if may_be_cut => text.starts_with(found),
            found => found == Some(&*text) || (found.is_none() && may_be_cut),
        };
        let late = find(&span.attributes, "late").and_then(Value::as_i64);
        let said = span.events.iter().map(|event| find(&event.attributes, "check")?.as_i64());
        let is_whole = number("check") == Some(label.check())
            && is_text
            && late.is_none_or(|late| late == !label.check())
            && said.into_iter().all(|check| check == Some(label.check()))
            && find(&span.attributes, "stagetrace.request.id")
                .is_none_or(|id| id.as_str() == Some(&label.request_id()));
        if is_whole { Ok(label) } else { Err(format!("{label:?} is torn: {span:?}")) }
    }

    /// A number that no other span has.
    pub fn check(self) -> i64 {
        let all = u64::from(self.worker) << 40 | u64::from(self.round) << 8 | self.kind as u64;
        let mixed = (all ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 29) as i64
    }

    /// A text of its own, of its own length.
    fn text(self) -> String {
        let length = self.check().unsigned_abs() as usize % 48;
        format!("{:016x}", self.check()).repeat(3)[..length].to_owned()
    }

    fn request_id(self) -> String {
        format!("{}-{}", self.worker, self.round)
    }
}

/// One worker, of whose rounds the ledger is kept.
#[derive(Debug)]
pub struct Worker<'a> {
    /// Its number.
    pub number: u32,
    /// Where it says what has ended.
    pub ledger: &'a Ledger,
    /// Who ends the spans of its that end on another thread.
    pub carrier: Sender<Carried>,
}

/// A span on its way to the thread that ends it.
#[derive(Debug)]
pub struct Carried {
    span: Span,
    label: Label,
}

impl Carried {
    /// Ends it, and says so.
    pub fn end(self, ledger: &Ledger) {
        drop(self.span);
        ledger.acknowledge(self.label.worker, self.label.round, Kind::Carried.bit());
    }
}

impl Worker<'_> {
    /// Runs a round, and acknowledges each span as it has ended. Whether all of them were recorded.
    pub fn run(&self, round: u32) -> bool {
        self.ledger.begin(self.number, round);
        let label = |kind| Label { worker: self.number, round, kind };
        let mut recorded = outer(self, label(Kind::Outer), stagetrace::current());
        if round.is_multiple_of(4) {
            recorded &= self.talk(label(Kind::Talk));
        }
        if round.is_multiple_of(8) {
            recorded &= self.ask(label(Kind::Asked));
        }
        if round.is_multiple_of(16) {
            recorded &= self.hand_over(label(Kind::Carried));
        }
        recorded
    }

    fn ended(&self, label: Label, recorded: bool) -> bool {
        if recorded {
            self.ledger.acknowledge(label.worker, label.round, label.kind.bit());
        }
        recorded
    }

    fn talk(&self, label: Label) -> bool {
        let (worker, round) = (label.worker, label.round);
        let check = label.check();
        let span = span!(
            "talk",
            "worker" = worker,
            "round" = round,
            "check" = check,
            "text" = label.text()
        );
        span.in_scope(|| event!("said", "check" = check));
        span.set_attribute("late", !check);
        let recorded = span.is_recorded();
        drop(span);
        self.ended(label, recorded)
    }

    fn ask(&self, label: Label) -> bool {
        let mut asked = Asked {
            id: label.request_id(),
            worker: label.worker,
            round: label.round,
            check: label.check(),
            text: label.text(),
            trace: TraceState::null(),
        };
        asked.begin(None);
        let recorded = !asked.trace.is_null();
        let above = asked.position();
        let served = served(&asked, Label { kind: Kind::Served, ..label }, above);
        let served = self.ended(Label { kind: Kind::Served, ..label }, served);
        asked.finish(Outcome::Ok);
        self.ended(label, recorded) && served
    }

    fn hand_over(&self, label: Label) -> bool {
        let (worker, round, check) = (label.worker, label.round, label.check());
        let text = label.text();
        let span =
            span!("carried", "worker" = worker, "round" = round, "check" = check, "text" = text);
        let recorded = span.is_recorded();
        if recorded {
            // Nobody to end it: then it stays open, as it is said to be.
            let _ = self.carrier.send(Carried { span, label });
        }
        recorded
    }
}

/// Whether its span is recorded: it is current then, in the place of the one above it.
#[stage(
    "outer",
    attrs(
        "worker" = label.worker,
        "round" = label.round,
        "check" = label.check(),
        "text" = label.text()
    )
)]
fn outer_stage(worker: &Worker<'_>, label: Label, above: Position) -> (bool, bool) {
    let here = stagetrace::current();
    let inner_label = Label { kind: Kind::Inner, ..label };
    let inner = inner(inner_label, here);
    (here != above, worker.ended(inner_label, inner))
}

fn outer(worker: &Worker<'_>, label: Label, above: Position) -> bool {
    let (outer, inner) = outer_stage(worker, label, above);
    worker.ended(label, outer) && inner
}

#[stage(
    "inner",
    attrs(
        "worker" = label.worker,
        "round" = label.round,
        "check" = label.check(),
        "text" = label.text()
    )
)]
fn inner(label: Label, above: Position) -> bool {
    stagetrace::current() != above
}

/// A request.
#[derive(Debug, Traced)]
#[traced(name = "asked")]
struct Asked {
    #[traced(id)]
    id: String,
    #[traced(attr = "worker")]
    worker: u32,
    #[traced(attr = "round")]
    round: u32,
    #[traced(attr = "check")]
    check: i64,
    #[traced(attr = "text")]
    text: String,
    #[traced(state)]
    trace: TraceState,
}

#[stage(
    "served",
    asked,
    attrs(
        "worker" = label.worker,
        "round" = label.round,
        "check" = label.check(),
        "text" = label.text()
    )
)]
fn served(asked: &Asked, label: Label, above: Position) -> bool {
    let _ = asked;
    stagetrace::current() != above && !stagetrace::current().is_null()
}

//! Which samples satisfy a search.

use hashbrown::{HashMap, HashSet};
use stagetrace_wire::span::Value;

use super::text::{Memo, Pattern};
use super::words::{Field, Is, Measure};
use super::{Comparison, Search, What};
use crate::query::stuck::Limits;
use crate::query::summary::path_names;
use crate::rules::{Sample, Samples, Status};
use crate::store::{Ident, Name, SpanNumber, Store};

/// Fewest letters of a free word that is looked for in trace ids, as shorter ones are in many by chance.
const LEAST_OF_TRACE: usize = 6;

/// Tests samples, one after the other.
pub(crate) struct Finder<'a> {
    store: &'a Store,
    samples: &'a Samples,
    limits: &'a Limits,
    now: u64,
    /// Those that cost little come first.
    tests: Vec<Test>,
    unsearched: usize,
}

struct Test {
    is_negated: bool,
    kind: Kind,
}

enum Kind {
    Is(Is),
    Measure(Measure, Comparison, f64),
    Text(Field, Memo, HashMap<Status, bool>),
    /// By number of the sample: whether one of its spans matches.
    Spans(Vec<bool>),
    Any(Memo, HashMap<Status, bool>, Vec<bool>),
    Stack(Memo, HashMap<Vec<Name>, bool>),
    Attribute {
        keys: HashSet<Name>,
        value: Option<Pattern>,
    },
}

impl Kind {
    fn cost(&self) -> u8 {
        match self {
            Self::Is(_) | Self::Measure(..) | Self::Spans(_) => 0,
            Self::Text(..) => 1,
            Self::Any(..) => 2,
            Self::Stack(..) => 3,
            Self::Attribute { .. } => 4,
        }
    }
}

impl<'a> Finder<'a> {
    /// Looks at all spans for each term that asks for a stage or a name of any of them.
    pub(crate) fn new(
        store: &'a Store,
        samples: &'a Samples,
        limits: &'a Limits,
        now: u64,
        search: &Search,
    ) -> Self {
        let tests = search.terms.iter().map(|term| {
            let kind = match &term.what {
                What::Is(is) => Kind::Is(*is),
                What::Measure(measure, comparison, bound) => {
                    Kind::Measure(*measure, *comparison, *bound)
                }
                What::Any(pattern) => {
                    let spans = spans(store, samples, &mut Memo::new(pattern), true, true);
                    Kind::Any(Memo::new(pattern), HashMap::new(), spans)
                }
                What::Text(Field::Stage, pattern) => {
                    Kind::Spans(spans(store, samples, &mut Memo::new(pattern), true, false))
                }
                What::Text(Field::Span, pattern) => {
                    Kind::Spans(spans(store, samples, &mut Memo::new(pattern), false, true))
                }
                What::Text(Field::Stack, pattern) => {
                    Kind::Stack(Memo::new(pattern), HashMap::new())
                }
                What::Text(field @ (Field::Filter | Field::Drop), pattern) => {
                    let part = if *field == Field::Filter { "filter" } else { "drop" };
                    let is_key = |key: &str| key.split(['.', '_']).any(|word| word == part);
                    let keys = store.names_where(is_key);
                    Kind::Attribute { keys, value: Some(pattern.clone()) }
                }
                What::Attribute { key, value } => {
                    let keys = store.names_where(|name| name == key);
                    Kind::Attribute { keys, value: value.clone() }
                }
                What::Text(field, pattern) => {
                    Kind::Text(*field, Memo::new(pattern), HashMap::new())
                }
            };
            Test { is_negated: term.is_negated, kind }
        });
        let mut tests: Vec<_> = tests.collect();
        tests.sort_by_key(|test| test.kind.cost());
        Self { store, samples, limits, now, tests, unsearched: 0 }
    }

    /// Whether a sample satisfies all terms. `number` is its place among all samples, `place` that among
    /// those of its trace.
    pub(crate) fn finds(&mut self, sample: &Sample, number: usize, place: usize) -> bool {
        let mut tests = std::mem::take(&mut self.tests);
        let finds = tests.iter_mut().all(|test| {
            let holds = self.holds(&mut test.kind, sample, number, place);
            holds != test.is_negated
        });
        self.tests = tests;
        finds
    }

    /// Spans whose attributes were asked for and are not in memory.
    pub(crate) fn unsearched(&self) -> usize {
        self.unsearched
    }

    fn holds(&mut self, kind: &mut Kind, sample: &Sample, number: usize, place: usize) -> bool {
        match kind {
            Kind::Is(is) => self.is(*is, sample),
            Kind::Measure(measure, comparison, bound) => {
                let value = self.measure(*measure, sample);
                value.is_some_and(|value| comparison.holds(value, *bound))
            }
            Kind::Spans(found) => found.get(number).copied().unwrap_or(false),
            Kind::Text(field, memo, statuses) => self.text(*field, memo, statuses, sample),
            Kind::Any(memo, statuses, found) => {
                found.get(number).copied().unwrap_or(false) || self.any(memo, statuses, sample)
            }
            Kind::Stack(memo, known) => self.stack(memo, known, sample),
            Kind::Attribute { keys, value } => self.attribute(keys, value.as_ref(), sample, place),
        }
    }

    fn is(&self, is: Is, sample: &Sample) -> bool {
        match is {
            Is::Open => sample.is_open,
            Is::Stuck => self.limits.is_stuck(sample, self.now),
            Is::Lost => sample.status == Status::Lost,
            Is::Failed => sample.status == Status::Failed,
            Is::Error => sample.error.is_some(),
            Is::RootMissing => sample.result_not_exported || sample.root.is_none(),
            Is::LeftOpen => !sample.left_open.is_empty(),
        }
    }

    fn measure(&self, measure: Measure, sample: &Sample) -> Option<f64> {
        let since = |at: u64| self.now.saturating_sub(at) as f64;
        let age = || sample.start.filter(|_| sample.is_open).map(since);
        match measure {
            Measure::Step => self.number(sample.step),
            Measure::Attempt => self.number(sample.attempt),
            Measure::Reward => sample.reward(),
            Measure::Tokens => sample.completion_tokens().map(|tokens| tokens as f64),
            Measure::Spans => Some(sample.finished_spans.into()),
            Measure::Duration => sample.duration.map(|ns| ns as f64).or_else(age),
            Measure::Age => age(),
            Measure::StageAge => {
                sample.current.filter(|_| sample.is_open).map(|current| since(current.since))
            }
        }
    }

    fn number(&self, ident: Option<Ident>) -> Option<f64> {
        match ident? {
            Ident::Int(value) => Some(value as f64),
            Ident::Text(name) => self.store.with_text(name, |text| text.parse().ok()),
        }
    }

    fn text(
        &self,
        field: Field,
        memo: &mut Memo,
        statuses: &mut HashMap<Status, bool>,
        sample: &Sample,
    ) -> bool {
        let store = self.store;
        let mut name = |name: Option<Name>| name.is_some_and(|name| memo.name(store, name));
        match field {
            Field::Rollout => memo.ident(store, sample.rollout.or(sample.request.map(Ident::Text))),
            Field::Group => memo.ident(store, sample.group),
            Field::Session => memo.ident(store, sample.session),
            Field::Task => name(sample.task),
            Field::Trace => {
                let id = store.trace_id(sample.trace).to_hex();
                str::from_utf8(&id).is_ok_and(|id| memo.pattern().is_in(id))
            }
            Field::Status => {
                let is = || memo.pattern().is_in(&sample.status.text(store));
                *statuses.entry(sample.status).or_insert_with(is)
            }
            Field::Current => {
                name(sample.current.filter(|_| sample.is_open).map(|current| current.stage))
            }
            Field::Error => {
                let failure = sample.error.map(|error| store.record(error).failure);
                failure.is_some_and(|failure| name(failure.kind) || name(failure.message))
            }
            Field::ErrorStage => name(sample.error.map(|error| store.stage(error))),
            // These have tests of their own.
            Field::Stage | Field::Span | Field::Stack | Field::Filter | Field::Drop => false,
        }
    }

    fn any(&self, memo: &mut Memo, statuses: &mut HashMap<Status, bool>, sample: &Sample) -> bool {
        let fields = [
            Field::Rollout,
            Field::Group,
            Field::Task,
            Field::Session,
            Field::Status,
            Field::Error,
        ];
        if fields.into_iter().any(|field| self.text(field, memo, statuses, sample)) {
            return true;
        }
        let word = memo.pattern().text();
        let may_be_trace = (LEAST_OF_TRACE..=32).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        (may_be_trace && self.text(Field::Trace, memo, statuses, sample))
            || sample.request.is_some_and(|request| memo.name(self.store, request))
            || sample.finish_reason().is_some_and(|reason| memo.name(self.store, reason))
    }

    fn stack(
        &self,
        memo: &mut Memo,
        known: &mut HashMap<Vec<Name>, bool>,
        sample: &Sample,
    ) -> bool {
        let current = sample.current.filter(|_| sample.is_open).map(|current| current.span);
        let Some(span) = current.or(sample.error) else { return false };
        let path = path_names(self.store, span);
        if let Some(is) = known.get(&path) {
            return *is;
        }
        let names: Vec<_> = path.iter().map(|name| self.store.text(*name)).collect();
        let is = memo.pattern().is_in(&names.join(" > "));
        known.insert(path, is);
        is
    }

    fn attribute(
        &mut self,
        keys: &HashSet<Name>,
        value: Option<&Pattern>,
        sample: &Sample,
        place: usize,
    ) -> bool {
        if keys.is_empty() {
            return false;
        }
        let Self { store, samples, .. } = *self;
        let mut is = |found: &Value| value.is_none_or(|pattern| is_in_value(pattern, found));
        for span in store.spans_of(sample.trace) {
            if samples.place(span) != Some(place) {
                continue;
            }
            if store.has_attribute(span, keys, &mut is) {
                return true;
            }
            self.unsearched += usize::from(!store.has_details(span));
        }
        false
    }
}

fn is_in_value(pattern: &Pattern, value: &Value) -> bool {
    match value {
        Value::Str(text) => pattern.is_in(text),
        Value::I64(number) => pattern.is_in_number(*number),
        Value::F64(number) => pattern.is_in(&number.to_string()),
        Value::Bool(truth) => pattern.is_in(if *truth { "true" } else { "false" }),
        Value::Array(values) => values.iter().any(|value| is_in_value(pattern, value)),
        Value::Map(members) => members.iter().any(|(_, value)| is_in_value(pattern, value)),
        _ => false,
    }
}

/// Of each sample, by its number, whether one of its spans has such a stage or name.
fn spans(
    store: &Store,
    samples: &Samples,
    memo: &mut Memo,
    by_stage: bool,
    by_name: bool,
) -> Vec<bool> {
    let mut first = Vec::with_capacity(store.traces().len());
    let mut count = 0;
    for trace in store.traces() {
        first.push(count);
        count += samples.rows_of(trace).count();
    }
    let mut found = vec![false; count];
    for span in (0..store.stats().spans as u32).map(SpanNumber) {
        let record = store.record(span);
        let is = (by_stage && memo.name(store, record.stage))
            || (by_name && memo.name(store, record.name));
        if is && let Some(place) = samples.place(span) {
            found[first[record.trace as usize] + place] = true;
        }
    }
    found
}

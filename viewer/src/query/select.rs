//! Which samples stand on either side of a comparison: those of a run, of a step, of a service.

use std::collections::BTreeSet;

use serde::Serialize;

use super::compare::{Comparison, RunMeasures};
use super::spread::Spread;
use super::summary::resource_texts;
use crate::rules::{SampleRow, Samples, shown};
use crate::store::{Origin, Store};

/// Most choices of each kind, the last ones.
const CHOICES: usize = 1000;
/// Where processes say their run.
const RUN: [&str; 2] = ["stagetrace.run.id", "run.id"];

/// A choice of samples, as people write it: `all`, `run:ID`, `step:ID`, `service:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    All,
    Run(String),
    Step(String),
    Service(String),
}

/// Two choices side by side.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// What could be chosen.
    choices: Choices,
    a: Option<String>,
    b: Option<String>,
    /// `null` if there are no two sides.
    comparison: Option<Comparison>,
    /// Of each stage of the comparison, how durations spread on either side.
    spreads: Vec<[Option<Spread>; 2]>,
}

#[derive(Debug, Serialize)]
struct Choices {
    runs: Vec<String>,
    steps: Vec<String>,
    services: Vec<String>,
}

/// Why there is nothing to compare.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectError {
    #[error("`{0}` chooses nothing: write all, run:ID, step:ID or service:NAME")]
    Form(String),
    #[error("no sample is of {0}")]
    Nothing(String),
}

impl Selector {
    /// # Errors
    /// If it has another form.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectError> {
        let wrong = || SelectError::Form(text.chars().take(200).collect());
        match text.split_once(':') {
            None if text == "all" => Ok(Self::All),
            Some(("run", id)) => Ok(Self::Run(id.to_owned())),
            Some(("step", id)) => Ok(Self::Step(id.to_owned())),
            Some(("service", name)) => Ok(Self::Service(name.to_owned())),
            _ => Err(wrong()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Run(id) => format!("run:{id}"),
            Self::Step(id) => format!("step:{id}"),
            Self::Service(name) => format!("service:{name}"),
        }
    }

    /// Takes what is compared of the samples that it chooses.
    fn measures(&self, store: &Store, samples: &Samples) -> Result<RunMeasures, SelectError> {
        let origins = store.origins();
        let is_of = |keys: &[&str], wanted: &str| -> Vec<bool> {
            origins.iter().map(|origin| text_of(origin, keys) == Some(wanted)).collect()
        };
        let (is_origin, step) = match self {
            Self::All => (None, None),
            Self::Run(id) => (Some(is_of(&RUN, id)), None),
            Self::Service(name) => (Some(is_of(&["service.name"], name)), None),
            Self::Step(id) => {
                let step = samples.steps().iter().find(|step| shown(store, **step) == *id);
                (None, Some(*step.ok_or_else(|| SelectError::Nothing(self.text()))?))
            }
        };
        let mut measures = match &is_origin {
            None => RunMeasures::of(store, &samples.totals(store, step)),
            Some(is) => {
                let is_chosen = |sample: SampleRow<'_>| is_recorded_by(store, sample, is);
                RunMeasures::of(store, &samples.totals_where(store, is_chosen))
            }
        };
        if let Some(is_origin) = &is_origin {
            let chosen = origins.iter().zip(is_origin).filter(|(_, is)| **is);
            let chosen: Vec<&Origin> = chosen.map(|(origin, _)| origin).collect();
            let texts = |keys: &[&str]| {
                let texts = chosen.iter().filter_map(|origin| text_of(origin, keys));
                texts.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
            };
            measures.set_names(texts(&RUN), texts(&["service.name"]));
        }
        match measures.samples() {
            0 if *self != Self::All => Err(SelectError::Nothing(self.text())),
            _ => Ok(measures),
        }
    }
}

/// Whether a sample was recorded by one of these: its root or, if that does not say by whom, its first span that does.
fn is_recorded_by(store: &Store, sample: SampleRow<'_>, is_origin: &[bool]) -> bool {
    let spans = sample.root().into_iter().chain(store.spans_of(sample.trace()));
    let mut known = spans.filter_map(|span| is_origin.get(store.record(span).origin as usize));
    known.next().is_some_and(|is| *is)
}

fn text_of<'o>(origin: &'o Origin, keys: &[&str]) -> Option<&'o str> {
    keys.iter().find_map(|key| origin.resource.attribute(key)?.as_str())
}

impl Compared {
    /// Without a choice the last two runs stand side by side, else the last two steps, else two services.
    ///
    /// # Errors
    /// If a choice chooses nothing.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        [a, b]: [Option<Selector>; 2],
    ) -> Result<Self, SelectError> {
        let last = |mut all: Vec<String>| all.split_off(all.len().saturating_sub(CHOICES));
        let steps: Vec<_> = samples.steps().iter().map(|step| shown(store, *step)).collect();
        let choices = Choices {
            runs: last(resource_texts(store, &RUN)),
            steps: last(steps),
            services: last(resource_texts(store, &["service.name"])),
        };
        let default = choices.last_two();
        let default = |place: usize| default.as_ref().map(|pair| pair[place].clone());
        let (a, b) = (a.or_else(|| default(0)), b.or_else(|| default(1)));
        let texts = [&a, &b].map(|side| side.as_ref().map(Selector::text));
        let (comparison, spreads) = match (a, b) {
            (Some(a), Some(b)) => {
                let (a, b) = (a.measures(store, samples)?, b.measures(store, samples)?);
                let mut comparison = Comparison::new(&a, &b);
                comparison.shorten();
                let names = comparison.stages.iter().map(|stage| stage.stage.as_str());
                let spreads =
                    names.map(|name| [&a, &b].map(|side| Spread::of(side.durations(name))));
                let spreads = spreads.collect();
                (Some(comparison), spreads)
            }
            _ => (None, Vec::new()),
        };
        let [a, b] = texts;
        Ok(Self { choices, a, b, comparison, spreads })
    }
}

impl Choices {
    fn last_two(&self) -> Option<[Selector; 2]> {
        let pair = |all: &[String], of: fn(String) -> Selector| match all {
            [.., one, other] => Some([of(one.clone()), of(other.clone())]),
            _ => None,
        };
        pair(&self.runs, Selector::Run)
            .or_else(|| pair(&self.steps, Selector::Step))
            .or_else(|| pair(&self.services, Selector::Service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_reads_as_it_is_written() {
        for text in ["all", "run:a:b", "step:21", "service:x y"] {
            assert_eq!(Selector::parse(text).map(|selector| selector.text()), Ok(text.to_owned()));
        }
        for text in ["", "21", "step", "moon:3"] {
            assert_eq!(Selector::parse(text), Err(SelectError::Form(text.to_owned())));
        }
    }
}

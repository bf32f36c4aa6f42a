//! Steps, and the order and text of ids.

use hashbrown::HashMap;

use crate::store::{Ident, Store, TraceNumber};

/// The steps that samples are of, by number.
#[derive(Debug, Default)]
pub(super) struct Steps {
    numbers: HashMap<Ident, u32>,
    all: Vec<Step>,
    ordered: Vec<Ident>,
    is_unsettled: bool,
}

#[derive(Debug)]
struct Step {
    ident: Ident,
    samples: usize,
    /// Traces that have had samples of it, some more than once.
    traces: Vec<TraceNumber>,
}

impl Steps {
    /// Counts a sample. `is_new` says whether its trace had none of this step before.
    pub(super) fn enter(
        &mut self,
        ident: Ident,
        trace: TraceNumber,
        is_new: impl FnOnce(u32) -> bool,
    ) -> u32 {
        let number = *self.numbers.entry(ident).or_insert_with(|| {
            self.all.push(Step { ident, samples: 0, traces: Vec::new() });
            self.all.len() as u32 - 1
        });
        let step = &mut self.all[number as usize];
        step.samples += 1;
        self.is_unsettled |= step.samples == 1;
        if step.traces.last() != Some(&trace) && is_new(number) {
            step.traces.push(trace);
        }
        number
    }

    /// Counts a sample no more.
    pub(super) fn leave(&mut self, number: u32) {
        if let Some(step) = self.all.get_mut(number as usize) {
            step.samples -= 1;
            self.is_unsettled |= step.samples == 0;
        }
    }

    /// Brings them into order after changes.
    pub(super) fn settle(&mut self, store: &Store) {
        if std::mem::take(&mut self.is_unsettled) {
            let steps = self.all.iter().filter(|step| step.samples > 0);
            self.ordered = steps.map(|step| step.ident).collect();
            self.ordered.sort_by_cached_key(|ident| order(store, *ident));
        }
    }

    pub(super) fn ordered(&self) -> &[Ident] {
        &self.ordered
    }

    pub(super) fn number(&self, ident: Ident) -> Option<u32> {
        self.numbers.get(&ident).copied()
    }

    pub(super) fn samples(&self, number: u32) -> usize {
        self.all.get(number as usize).map_or(0, |step| step.samples)
    }

    /// The traces that may have samples of a step, in order.
    pub(super) fn traces(&self, number: u32) -> Vec<TraceNumber> {
        let step = self.all.get(number as usize);
        let mut traces = step.map_or(Vec::new(), |step| step.traces.clone());
        traces.sort_unstable();
        traces.dedup();
        traces
    }

    pub(super) fn bytes(&self) -> usize {
        let traces: usize = self.all.iter().map(|step| 4 * step.traces.capacity()).sum();
        traces + self.all.len() * (size_of::<Step>() + 3 * size_of::<Ident>())
    }
}

/// What ids are sorted by: numbers before texts, and texts that are numbers by what they mean: 10
/// comes after 9.
pub(crate) fn order(store: &Store, ident: Ident) -> (bool, i64, String) {
    match ident {
        Ident::Int(value) => (false, value, String::new()),
        Ident::Text(name) => {
            let text = store.text(name);
            match text.parse() {
                Ok(value) => (false, value, text),
                Err(_) => (true, 0, text),
            }
        }
    }
}

/// As people write it.
pub(crate) fn shown(store: &Store, ident: Ident) -> String {
    match ident {
        Ident::Int(value) => value.to_string(),
        Ident::Text(name) => store.text(name),
    }
}

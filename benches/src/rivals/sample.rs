//! What a child process tells its parent, one JSON line, and what is made of several.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Figures of one process, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples {
    /// F, before each burst.
    pub(crate) floor: Vec<f64>,
    /// Nanoseconds on the hot thread per unit of work.
    pub(crate) hot: Vec<f64>,
    /// Nanoseconds of the process's CPU time per unit.
    pub(crate) total: Vec<f64>,
    /// What is counted once per process, by the name of its column.
    pub(crate) once: BTreeMap<String, Vec<f64>>,
}

impl Samples {
    pub(crate) fn note(&mut self, name: &str, figure: f64) {
        self.once.entry(name.to_owned()).or_default().push(figure);
    }

    /// Adds those of another process.
    pub(crate) fn add(&mut self, other: Samples) {
        self.floor.extend(other.floor);
        self.hot.extend(other.hot);
        self.total.extend(other.total);
        for (name, figures) in other.once {
            self.once.entry(name).or_default().extend(figures);
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "floor": self.floor, "hot": self.hot, "total": self.total, "once": self.once })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Samples> {
        let list = |value: &Value| -> Option<Vec<f64>> {
            value.as_array()?.iter().map(Value::as_f64).collect()
        };
        let once = value.get("once")?.as_object()?.iter();
        Some(Samples {
            floor: list(value.get("floor")?)?,
            hot: list(value.get("hot")?)?,
            total: list(value.get("total")?)?,
            once: once
                .map(|(name, figures)| Some((name.clone(), list(figures)?)))
                .collect::<Option<_>>()?,
        })
    }
}

/// The least of some figures.
pub(crate) fn least(figures: &[f64]) -> Option<f64> {
    figures.iter().copied().min_by(f64::total_cmp)
}

/// The median of some figures.
pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_their_way_to_the_parent() {
        let mut samples = Samples { hot: vec![1.5, 2.0], floor: vec![3.0], ..Samples::default() };
        samples.note("exported", 1.0);
        assert_eq!(Samples::from_json(&samples.to_json()), Some(samples.clone()));
        let mut both = samples.clone();
        both.add(samples);
        assert_eq!(both.hot, [1.5, 2.0, 1.5, 2.0]);
        assert_eq!(both.once["exported"], [1.0, 1.0]);
    }

    #[test]
    fn the_median_of_nothing_is_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(least(&[3.0, 1.0, 2.0]), Some(1.0));
    }
}

//! The result: one row for each case and peer.

use super::case::Case;
use super::sample::{Samples, least, median};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What was measured of a case and a peer.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) peer: &'static str,
    /// Why it was not measured.
    pub(crate) skipped: Option<String>,
    /// By name; those that the case does not have are missing.
    figures: BTreeMap<String, f64>,
}

/// The whole result.
pub(crate) struct Report {
    /// F: the median of all processes.
    pub(crate) f_ns: f64,
    pub(crate) rows: Vec<Row>,
}

impl Row {
    pub(crate) fn skipped(case: Case, peer: &'static str, reason: String) -> Row {
        Row { case, peer, skipped: Some(reason), figures: BTreeMap::new() }
    }

    pub(crate) fn new(case: Case, peer: &'static str, samples: &Samples) -> Row {
        let mut figures = BTreeMap::new();
        let mut note = |name: &str, figure: Option<f64>| {
            figures.extend(figure.map(|figure| (name.to_owned(), figure)));
        };
        note("hot_ns", median(&samples.hot));
        note("hot_min_ns", least(&samples.hot));
        // Each burst against the F that was measured right before it.
        let ratios: Vec<f64> =
            samples.hot.iter().zip(&samples.floor).map(|(hot, floor)| hot / floor).collect();
        note("hot_f", median(&ratios));
        note("total_cpu_ns", median(&samples.total));
        note("total_cpu_min_ns", least(&samples.total));
        for (name, figures) in &samples.once {
            // Of what was exported the worst counts.
            let figure = if name == "exported" { least(figures) } else { median(figures) };
            note(name, figure);
        }
        Row { case, peer, skipped: None, figures }
    }

    /// A figure by its name.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    fn to_json(&self) -> Value {
        let mut row = Map::new();
        row.insert("case".to_owned(), json!(self.case.to_string()));
        row.insert("peer".to_owned(), json!(self.peer));
        if let Some(reason) = &self.skipped {
            row.insert("skipped".to_owned(), json!(reason));
        }
        row.extend(
            self.figures.iter().map(|(name, figure)| (name.clone(), json!(rounded(*figure)))),
        );
        Value::Object(row)
    }
}

impl Report {
    /// The row of a case and a peer, if it was measured.
    pub(crate) fn row(&self, case: Case, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == case && row.peer == peer)
    }

    pub(crate) fn to_json(&self, machine: &[(String, String)]) -> Value {
        let machine: Map<_, _> =
            machine.iter().map(|(what, value)| (what.clone(), json!(value))).collect();
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        json!({ "f_ns": rounded(self.f_ns), "machine": machine, "rows": rows })
    }
}

/// To six digits after the point: more says nothing.
fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

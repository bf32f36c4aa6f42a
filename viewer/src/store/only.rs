//! Which processes' spans are kept, where files hold those of several.

use super::encode::lock;
use super::tables::Origin;
use super::{NONE, Store};

/// The services and runs whose spans are kept; of none named, all are. What does not say whose it is, as
/// lines of a live file, is kept.
#[derive(Clone, Debug, Default)]
pub struct Only {
    /// Values of `service.name`.
    pub services: Vec<String>,
    /// Values of `stagetrace.run.id` or `run.id`.
    pub runs: Vec<String>,
}

/// Which origins are wanted, by number.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    only: Only,
    known: Vec<bool>,
}

impl Only {
    fn takes(&self, origin: &Origin) -> bool {
        let is_one = |names: &[String], keys: &[&str]| {
            let text = keys.iter().find_map(|key| origin.resource.attribute(key)?.as_str());
            names.is_empty() || text.is_none_or(|text| names.iter().any(|name| name == text))
        };
        is_one(&self.services, &["service.name"])
            && is_one(&self.runs, &["stagetrace.run.id", "run.id"])
    }
}

impl Store {
    /// Keeps spans of these processes only, from now on.
    pub fn only(mut self, only: Only) -> Self {
        self.wanted = Wanted { only, known: Vec::new() };
        self
    }

    /// Whether spans of an origin are kept.
    pub(super) fn wants(&mut self, origin: u32) -> bool {
        let Wanted { only, known } = &mut self.wanted;
        if origin == NONE || (only.services.is_empty() && only.runs.is_empty()) {
            return true;
        }
        if known.len() <= origin as usize {
            let tables = lock(&self.tables);
            known.extend(tables.origins.iter().skip(known.len()).map(|origin| only.takes(origin)));
        }
        known.get(origin as usize).is_none_or(|is_wanted| *is_wanted)
    }
}

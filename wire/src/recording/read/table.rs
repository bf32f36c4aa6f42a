//! The stage table: what the numbers of sites mean, and which stages the program can record.

use super::damage::Damage;
use super::view::View;
use super::walk::{Kind, heads};
use crate::recording::layout::{BLOCK, chunk};
use crate::span::SpanKind;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a recording says of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Every stage that the program declares in a stage set, in order of declaration.
    pub stages: Vec<Arc<Stage>>,
    /// The places in the source that have recorded a span, by number.
    pub sites: BTreeMap<u32, Arc<Site>>,
}

/// A stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The name of its stage set; empty if it belongs to none.
    pub set: String,
    /// The name under which its spans are exported.
    pub name: String,
    /// How detailed it is: 1 important, 2 normal, 3 detail.
    pub level: u8,
    /// The name of the stage that it is declared to lie within.
    pub within: Option<String>,
}

/// A place in the source that records spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// What it records.
    pub stage: Stage,
    /// The part of its spans in calls between processes.
    pub kind: SpanKind,
    /// The keys of the attributes that stand inline in its spans, in order.
    pub keys: Vec<String>,
    /// The function; empty if the spans are not those of one.
    pub function: String,
    /// The source file, as the compiler names it.
    pub file: String,
    /// The line in it.
    pub line: u32,
}

/// What an entry of the table says.
enum Entry {
    Stage(Stage),
    Site(u32, Site),
}

impl Table {
    /// Reads all blocks of the table. Entries that cannot be read are left out and counted.
    pub(super) fn read(words: View<'_>, damage: &mut Damage) -> Table {
        let mut table = Table::default();
        for head in heads(words, &mut Damage::default()).filter(|head| head.kind == Kind::Table) {
            let tail = words.load_first(head.at + chunk::TAIL).min(BLOCK as u64) as usize;
            let end = (head.at + tail / 8).min(words.len());
            let mut at = head.at + chunk::HEAD / 8;
            while at < end {
                let len = usize::try_from(words.load(at)).unwrap_or(usize::MAX);
                if len == 0 || len > (end - at - 1) * 8 {
                    damage.entries += 1;
                    break;
                }
                match entry(&words.bytes(at + 1, len)) {
                    Some(Entry::Stage(stage)) => table.stages.push(Arc::new(stage)),
                    Some(Entry::Site(number, site)) => {
                        table.sites.entry(number).or_insert_with(|| Arc::new(site));
                    }
                    None => damage.entries += 1,
                }
                at += 1 + len.div_ceil(8);
            }
        }
        table
    }

    /// The site with this number.
    pub fn site(&self, number: u32) -> Option<&Arc<Site>> {
        self.sites.get(&number)
    }
}

fn entry(text: &[u8]) -> Option<Entry> {
    let json: Json = serde_json::from_slice(text).ok()?;
    let stage = stage(&json["stage"])?;
    if json["site"].is_null() {
        return Some(Entry::Stage(stage));
    }
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let keys = json["keys"].as_array().into_iter().flatten();
    let site = Site {
        stage,
        kind: SpanKind::from_number(json["kind"].as_i64().unwrap_or(0)),
        // One that is no text keeps its place, so that the others keep theirs.
        keys: keys.map(|key| key.as_str().unwrap_or_default().to_owned()).collect(),
        function: text("function"),
        file: text("file"),
        line: json["line"].as_u64().and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
    };
    Some(Entry::Site(u32::try_from(json["site"].as_u64()?).ok()?, site))
}

fn stage(json: &Json) -> Option<Stage> {
    Some(Stage {
        set: json["set"].as_str().unwrap_or_default().to_owned(),
        name: json["name"].as_str()?.to_owned(),
        level: json["level"].as_u64().and_then(|level| u8::try_from(level).ok()).unwrap_or(0),
        within: json["within"].as_str().map(str::to_owned),
    })
}

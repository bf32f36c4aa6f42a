//! The form of a summary, which is that of its JSON. `docs/viewer.md` specifies it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use super::stages::StageRow;

/// The answer. Its fields are the JSON of `stagetrace-viewer summary --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The version of this form. Fields may be added to a version, and are never changed.
    pub schema: u32,
    /// When it was asked, in nanoseconds since 1970.
    pub now_unix_nano: String,
    /// The steps that are summed up: `all`, or the id of one.
    pub step: Json,
    /// Every step there is, in order.
    pub available_steps: Vec<Json>,
    /// The greatest step.
    pub latest_step: Json,
    /// The runs that the spans are of.
    pub run_ids: Vec<String>,
    /// The services that the spans are of.
    pub services: Vec<String>,
    /// Whether a source knows open spans.
    pub live_source: bool,
    /// Lines that could not be read: file and number.
    pub damaged_lines: Vec<(String, u64)>,
    /// Files and recordings that could not be read: name, and why.
    pub unread: Vec<(String, String)>,
    /// Samples or requests.
    pub samples: usize,
    /// Groups that they are of.
    pub groups: usize,
    /// Steps that they are of.
    pub steps: usize,
    /// How many stand how.
    pub statuses: BTreeMap<String, usize>,
    /// Spans that have ended.
    pub finished_spans: u64,
    /// Samples whose root has not ended, the oldest first.
    pub open_samples: Vec<OpenSample>,
    /// How many are in each stage.
    pub occupancy: Vec<OccupancyRow>,
    /// Spans that are open though their sample's root has ended.
    pub left_open_spans: usize,
    /// Samples whose root ended and never came.
    pub result_not_exported: usize,
    /// Rewards.
    pub reward: Reward,
    /// Times until the first token, of samples that say so.
    pub first_token: Option<Latency>,
    /// Durations and errors by stage.
    pub stages: Vec<StageRow>,
    /// Open samples whose current span is open longer than its stage accounts for, the worst first.
    pub stuck: Vec<StuckSpan>,
    /// Samples whose process died.
    pub lost: Vec<LostSample>,
    /// Nanoseconds of each stage in which no other stage of the same sample ran inside it.
    pub self_times: Vec<SelfTime>,
    /// What was lost on the way.
    pub losses: Losses,
}

/// An open sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenSample {
    /// The rollout.
    pub rollout_id: Json,
    /// Its group.
    pub group_id: Json,
    /// Its step.
    pub step: Json,
    /// Its trace.
    pub trace_id: String,
    /// Nanoseconds since the root began; `null` if that is not known.
    pub age_ns: Option<String>,
    /// What it is in; `null` if that is not known.
    pub current: Option<CurrentSpan>,
    /// What it did last, where nothing is known of what it does.
    pub last_finished: Option<LastFinished>,
}

/// The deepest open span of a sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentSpan {
    /// Its stage.
    pub stage: String,
    /// Its name.
    pub span: String,
    /// Its id.
    pub span_id: String,
    /// When it began, in nanoseconds since 1970.
    pub since_unix_nano: String,
    /// Nanoseconds since then.
    pub age_ns: String,
    /// The names from the root to it.
    pub path: Vec<String>,
}

/// The last sign of a sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LastFinished {
    /// The stage of the span that ended last.
    pub stage: String,
    /// Its name.
    pub span: String,
    /// When it ended, in nanoseconds since 1970.
    pub end_unix_nano: String,
    /// Nanoseconds since then.
    pub silent_for_ns: String,
}

/// Who is in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OccupancyRow {
    /// The stage.
    pub stage: String,
    /// Samples that are in it.
    pub samples: usize,
    /// Groups that they are of.
    pub groups: usize,
    /// Nanoseconds since the first of them entered it.
    pub oldest_age_ns: String,
    /// The rollout of that one.
    pub oldest_rollout_id: Json,
}

/// Rewards of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reward {
    /// Samples that have one.
    pub count: usize,
    /// The sum of them.
    pub sum: f64,
    /// Samples that passed.
    pub passed: usize,
}

/// How long samples waited for something. Percentiles are by nearest rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Samples that say it.
    pub count: usize,
    /// Nanoseconds that half of them do not exceed.
    pub p50_ns: String,
    /// Nanoseconds that nine of ten do not exceed.
    pub p90_ns: String,
    /// Nanoseconds that 99 of 100 do not exceed.
    pub p99_ns: String,
    /// Nanoseconds of the longest.
    pub max_ns: String,
}

/// A span that is open too long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StuckSpan {
    /// The rollout.
    pub rollout_id: Json,
    /// Its group.
    pub group_id: Json,
    /// Its step.
    pub step: Json,
    /// Its trace.
    pub trace_id: String,
    /// The stage that it is in.
    pub stage: String,
    /// The span that is open.
    pub span_id: String,
    /// Nanoseconds for which it is.
    pub age_ns: String,
    /// Nanoseconds beyond which spans of this stage count as stuck.
    pub threshold_ns: String,
}

/// A sample whose process died.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostSample {
    /// The rollout.
    pub rollout_id: Json,
    /// Its group.
    pub group_id: Json,
    /// Its step.
    pub step: Json,
    /// Its trace.
    pub trace_id: String,
    /// The stage that it was in.
    pub stage: Option<String>,
}

/// Time of a stage itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfTime {
    /// The stage.
    pub stage: String,
    /// Nanoseconds.
    pub self_ns: String,
}

/// What did not arrive, or was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Spans that recorders had no room for.
    pub recorder_spans: u64,
    /// Events, links and late attributes that recorders had no room for.
    pub recorder_details: u64,
    /// Spans without valid ids.
    pub refused_spans: u64,
    /// Lines that could not be read.
    pub damaged_lines: u64,
    /// Spans beyond the viewer's memory limit.
    pub beyond_memory: u64,
    /// Spans that were there more than once, which is no loss.
    pub duplicates: u64,
    /// Ended spans that belong to no sample.
    pub unassigned_spans: u64,
}

//! The pages of samples, groups and steps, by real requests, against the expected numbers of the cases.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

mod support;

use support::serve::Viewer;
use support::{append, cases, line};

fn expected(case: &str) -> Json {
    let path = cases(&format!("xtuner/{case}/expected.json"));
    let text = std::fs::read_to_string(path).expect("the case is there");
    serde_json::from_str(&text).expect("it is JSON")
}

fn serve(case: &str) -> (Viewer, Json) {
    let expected = expected(case);
    let now = expected["now_unix_nano"].as_str().expect("it says when it is asked").to_owned();
    let folder = cases(&format!("xtuner/{case}"));
    let viewer = Viewer::start(&["--now", &now, folder.to_str().expect("it is UTF-8")]);
    (viewer, expected)
}

/// A search as a part of an address.
fn escaped(q: &str) -> String {
    q.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// How many samples a search finds.
fn matched(viewer: &Viewer, q: &str) -> u64 {
    let answer = viewer.ask(&format!("/api/samples?limit=0&q={}", escaped(q)));
    answer["matched"].as_u64().expect("it counts")
}

fn count_where(expected: &Json, is: impl Fn(&Json) -> bool) -> u64 {
    let all = expected["per_sample"].as_array().expect("it is a list");
    all.iter().filter(|sample| is(sample)).count() as u64
}

#[test]
fn every_status_is_found_as_often_as_it_is_expected() {
    for case in ["live", "agent", "rotated", "traces_only"] {
        let (viewer, expected) = serve(case);
        let answer = viewer.ask("/api/samples?limit=0");
        let statuses = expected["all"]["statuses"].as_object().expect("it has statuses");
        for (status, count) in statuses {
            assert_eq!(
                json!(matched(&viewer, &format!("status:{status}"))),
                *count,
                "{case} {status}"
            );
        }
        let facets = answer["facets"]["statuses"].as_array().expect("it is a list");
        let facets: BTreeMap<_, _> =
            facets.iter().map(|facet| (facet[0].as_str().expect("a word"), &facet[1])).collect();
        let statuses: BTreeMap<_, _> =
            statuses.iter().map(|(word, count)| (word.as_str(), count)).collect();
        assert_eq!(facets, statuses, "{case}");
        assert_eq!(answer["total"], expected["all"]["samples"], "{case}");
    }
}

#[test]
fn each_kind_of_term_finds_the_samples_that_are_expected() {
    for case in ["live", "agent", "traces_only"] {
        let (viewer, expected) = serve(case);
        let number = |sample: &Json, key: &str| sample[key].as_str().and_then(|ns| ns.parse().ok());
        let searches: [(&str, u64); 12] = [
            ("is:open", count_where(&expected, |sample| sample["open"] == true)),
            ("-is:open", count_where(&expected, |sample| sample["open"] == false)),
            ("reward:>=1", count_where(&expected, |s| s["reward_score"].as_f64() >= Some(1.0))),
            ("reward:0", count_where(&expected, |s| s["reward_score"].as_f64() == Some(0.0))),
            (
                "-is:open duration:>30s",
                count_where(&expected, |s| number(s, "duration_ns") > Some(30_000_000_000_u64)),
            ),
            (
                "tokens:<300",
                count_where(&expected, |s| {
                    s["completion_tokens"].as_u64().is_some_and(|tokens| tokens < 300)
                }),
            ),
            ("spans:4", count_where(&expected, |s| s["finished_spans"] == 4)),
            (
                "step:>0 step:<=7",
                count_where(&expected, |s| {
                    s["step"].as_u64().is_some_and(|step| step > 0 && step <= 7)
                }),
            ),
            ("group:=3", count_where(&expected, |s| s["group_id"] == 3)),
            ("rollout:=17", count_where(&expected, |s| s["rollout_id"] == 17)),
            (
                "task:数学",
                count_where(&expected, |s| {
                    s["task"].as_str().is_some_and(|task| task.contains("数学"))
                }),
            ),
            (
                "TASK:GSM8K status:COMPLETED",
                count_where(&expected, |s| s["task"] == "gsm8k" && s["status"] == "completed"),
            ),
        ];
        for (q, count) in searches {
            assert_eq!(matched(&viewer, q), count, "{case}: {q}");
        }
        for stage in expected["all"]["stages"].as_array().expect("it is a list") {
            let name = stage["stage"].as_str().expect("it has a name");
            let q = format!("error-stage:={name}");
            assert_eq!(json!(matched(&viewer, &q)), stage["error_samples"], "{case}: {q}");
        }
        for row in expected["all"]["occupancy"].as_array().expect("it is a list") {
            let q = format!("current:={}", row["stage"].as_str().expect("it has a name"));
            assert_eq!(json!(matched(&viewer, &q)), row["samples"], "{case}: {q}");
        }
    }
}

#[test]
fn terms_about_spans_look_at_all_of_a_sample_and_no_other() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    append(&path, line(1, 1, 0, "run", [10, 90]) + &line(1, 2, 1, "judge", [20, 30]));
    append(&path, line(2, 1, 0, "run", [10, 50]) + &line(2, 2, 1, "Tool call", [20, 30]));
    let attributes = r#","attributes":[{"key":"filter.reason","value":{"stringValue":"zero variance"}},{"key":"n","value":{"intValue":"17"}}],"status":{"code":2,"message":"gone: 17 %"}}]}]}]}"#;
    append(&path, line(3, 1, 0, "run", [10, 20]).replace("}]}]}]}", attributes));
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let searches = [
        ("", 3),
        ("run", 3),
        ("span:JUDGE", 1),
        ("stage:\"tool c\"", 1),
        ("-stage:judge", 2),
        ("-stage:judge -span:tool", 1),
        ("filter:variance", 1),
        ("drop:variance", 0),
        ("attr:n=17", 1),
        ("attr:n==7", 0),
        ("attr:n", 1),
        ("attr:none", 0),
        ("error:\"GONE: 17\"", 1),
        ("\"gone: 17\"", 1),
        ("stack:run is:error", 1),
        ("stack:judge", 0),
        ("trace:00000000000000000000000000000002", 1),
        ("spans:2 duration:<50ns", 1),
        ("%", 1),
    ];
    viewer.ask("/api/state");
    for (q, count) in searches {
        assert_eq!(matched(&viewer, q), count, "{q}");
    }
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_reason() {
    let (viewer, _) = serve("live");
    viewer.ask("/api/state");
    let long = format!("/api/samples?q={}", "a".repeat(2500));
    let refused = [
        ("/api/samples?q=foo:bar", "400", "`foo:` at 1 is not known"),
        ("/api/samples?q=%22open", "400", "not closed"),
        ("/api/samples?q=age:%3E5parsec", "400", "units are ns"),
        (&*long, "400", "too long"),
        ("/api/samples?sort=colour", "400", "there are start, duration"),
        ("/api/samples?limit=501", "400", "at most 500 rows"),
        ("/api/samples?limit=-1", "400", "invalid digit"),
        ("/api/samples?offset=99999999999999999999", "400", "number too large"),
        ("/api/samples?step=99", "404", "there are 2, from 21 to 22"),
        ("/api/step?step=99", "404", "there are 2, from 21 to 22"),
        ("/api/step?sort=x", "400", "longest, tail"),
        ("/api/group", "400", "say which group"),
        ("/api/group?group=4711", "404", "no sample is of group 4711"),
        ("/api/group?group=0&step=22", "404", "that group is in step 21"),
    ];
    for (path, status, why) in refused {
        let answer = viewer.get(path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert!(answer.contains(why), "{path}: {answer}");
    }
    // Beyond the end there is nothing, which is no error.
    let beyond = viewer.ask("/api/samples?offset=18446744073709551615&limit=500");
    assert_eq!((&beyond["rows"], &beyond["matched"]), (&json!([]), &json!(200)));
}

#[test]
fn pages_in_any_order_hold_each_sample_once() {
    let (viewer, expected) = serve("live");
    let columns = [
        "start",
        "duration",
        "status",
        "stage",
        "stage_age",
        "reward",
        "tokens",
        "spans",
        "attempt",
        "step",
        "group",
        "id",
    ];
    let mut all: Vec<_> = expected["per_sample"].as_array().expect("it is a list").iter().collect();
    all.sort_by_key(|sample| sample["rollout_id"].as_u64());
    let all: Vec<_> = all.into_iter().map(|sample| sample["rollout_id"].clone()).collect();
    for column in columns {
        for desc in [false, true] {
            let mut ids = Vec::new();
            for offset in (0..200).step_by(70) {
                let path =
                    format!("/api/samples?sort={column}&desc={desc}&offset={offset}&limit=70");
                let page = viewer.ask(&path);
                let rows = page["rows"].as_array().expect("it is a list");
                ids.extend(rows.iter().map(|row| row["id"].clone()));
            }
            if column == "id" {
                let mut sorted = all.clone();
                if desc {
                    sorted.reverse();
                }
                assert_eq!(ids, sorted, "{column} {desc}");
            }
            ids.sort_by_key(Json::as_u64);
            assert_eq!(ids, all, "{column} {desc}");
        }
    }
    let slowest = viewer.ask("/api/samples?sort=duration&desc=true&limit=200&q=-is:open");
    let rows = slowest["rows"].as_array().expect("it is a list").iter();
    let durations = rows.map(|row| row["duration_ns"].as_str().and_then(|ns| ns.parse().ok()));
    let durations: Vec<Option<u64>> = durations.collect();
    assert!(durations.iter().all(Option::is_some) && durations.is_sorted_by(|one, two| one >= two));
}

#[test]
fn a_row_has_the_stages_below_its_root_in_order() {
    let (viewer, expected) = serve("live");
    let answer = viewer.ask("/api/samples?q=rollout:=0");
    let row = &answer["rows"][0];
    let sample = &expected["per_sample"][0];
    for (key, other) in [
        ("trace_id", "trace_id"),
        ("duration_ns", "duration_ns"),
        ("completion_tokens", "completion_tokens"),
        ("reward", "reward_score"),
        ("task", "task"),
    ] {
        let same = row[key] == sample[other] || row[key].as_f64() == sample[other].as_f64();
        assert!(same && !row[key].is_null(), "{key}: {row} {sample}");
    }
    let path = row["path"].as_array().expect("it is a list");
    let stages: Vec<_> = path.iter().filter_map(|part| part["stage"].as_str()).collect();
    assert_eq!(stages, ["rollout.controller.generate", "judger.run"]);
    let number = |part: &Json, key: &str| part[key].as_str().and_then(|ns| ns.parse::<u64>().ok());
    let end = number(&path[1], "from_ns").zip(number(&path[1], "duration_ns"));
    let end = end.map(|(from, duration)| from + duration).expect("both are numbers");
    let whole = number(row, "duration_ns").expect("it is a number");
    assert!(end <= whole && end > whole / 2, "{end} of {whole}");
}

#[test]
fn what_is_stuck_has_its_limit_and_is_that_of_the_summary() {
    let (viewer, _) = serve("live");
    let overview = viewer.ask("/api/overview");
    let answer = viewer.ask("/api/samples?limit=500&q=is:stuck");
    assert!(overview["stuck"].as_u64() > Some(0));
    assert_eq!(answer["matched"], overview["stuck"]);
    let mut limits: Vec<_> = overview["summary"]["stuck"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|stuck| (stuck["rollout_id"].to_string(), stuck["threshold_ns"].clone()))
        .collect();
    let mut rows: Vec<_> = answer["rows"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|row| (row["id"].to_string(), row["threshold_ns"].clone()))
        .collect();
    limits.sort_by(|one, other| one.0.cmp(&other.0));
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(rows, limits);
}

#[test]
fn each_group_has_its_samples_and_the_worst_status() {
    for case in ["live", "rotated"] {
        let (viewer, expected) = serve(case);
        for group in expected["groups"].as_array().expect("it is a list") {
            let (step, id) = (&group["step"], &group["group_id"]);
            let answer = viewer.ask(&format!("/api/group?step={step}&group={id}"));
            assert_eq!(answer["samples"], group["samples"], "{case} {id}");
            assert_eq!(answer["statuses"], group["statuses"], "{case} {id}");
            let mut ids: Vec<_> = answer["rows"]
                .as_array()
                .expect("it is a list")
                .iter()
                .map(|row| row["id"].as_u64())
                .collect();
            ids.sort();
            let members: Vec<_> = group["rollout_ids"]
                .as_array()
                .expect("it is a list")
                .iter()
                .map(Json::as_u64)
                .collect();
            assert_eq!(ids, members, "{case} {id}");
            let worst =
                ["failed", "aborted", "expired", "filtered", "init", "running", "completed"]
                    .into_iter()
                    .find(|status| !group["statuses"][*status].is_null());
            assert_eq!(answer["status"].as_str(), worst, "{case} {id}");
        }
    }
}

#[test]
fn steps_have_the_numbers_of_their_summaries() {
    for case in ["live", "agent", "rotated", "traces_only"] {
        let (viewer, expected) = serve(case);
        let answer = viewer.ask("/api/steps");
        let rows = answer["rows"].as_array().expect("it is a list");
        let steps: Vec<_> = rows.iter().map(|row| row["step"].clone()).collect();
        assert_eq!(json!(steps), expected["steps"], "{case}");
        for row in rows {
            let of_step = &expected["by_step"][row["step"].to_string()];
            let one = viewer.ask(&format!("/api/step?step={}", row["step"]));
            for key in ["samples", "statuses"] {
                assert_eq!(row[key], of_step[key], "{case} {key}");
                assert_eq!(one[key], of_step[key], "{case} {key}");
            }
            assert_eq!(row["groups"], of_step["groups"], "{case}");
            let open = of_step["open_samples"].as_array().expect("it is a list").len();
            assert_eq!(row["open"], json!(open), "{case}");
            assert_eq!(row["reward"]["count"], of_step["reward"]["count"], "{case}");
            assert_eq!(row["reward"]["sum"].as_f64(), of_step["reward"]["sum"].as_f64(), "{case}");
            let summary = viewer.ask(&format!("/api/overview?step={}", row["step"]));
            assert_eq!(row["stuck"], summary["stuck"], "{case}");
            let groups = one["rows"].as_array().expect("it is a list");
            let of_groups = groups.iter().map(|group| group["samples"].as_u64());
            assert_eq!(of_groups.sum::<Option<u64>>(), of_step["samples"].as_u64(), "{case}");
            let mut durations: Vec<u64> = expected["per_sample"]
                .as_array()
                .expect("it is a list")
                .iter()
                .filter(|sample| sample["step"] == row["step"])
                .filter_map(|sample| sample["duration_ns"].as_str()?.parse().ok())
                .collect();
            durations.sort();
            let rank =
                |part: usize| durations[(durations.len() * part).div_ceil(100) - 1].to_string();
            for (key, part) in [("p50_ns", 50), ("p99_ns", 99), ("max_ns", 100)] {
                assert_eq!(row[key], json!(rank(part)), "{case} {key}");
            }
        }
    }
}

#[test]
fn the_flow_of_a_step_holds_the_time_of_all_its_samples() {
    let (viewer, expected) = serve("traces_only");
    let answer = viewer.ask("/api/step?step=7");
    let flow = &answer["flow"];
    let sum = |list: &Json| -> f64 {
        list.as_array().expect("it is a list").iter().filter_map(Json::as_f64).sum()
    };
    let bucket: f64 = flow["bucket_ns"].as_str().and_then(|ns| ns.parse().ok()).expect("a number");
    let in_flight = sum(&flow["samples"]) * bucket;
    let ended: f64 = expected["per_sample"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter(|sample| sample["step"] == 7)
        .filter_map(|sample| sample["duration_ns"].as_str()?.parse::<f64>().ok())
        .sum();
    assert!((in_flight - ended).abs() < ended * 0.01, "{in_flight} {ended}");
    let in_stages: f64 = flow["stages"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|series| sum(&series["samples"]) * bucket)
        .sum();
    assert!(
        in_stages <= in_flight * 1.01 && in_stages > in_flight * 0.9,
        "{in_stages} {in_flight}"
    );
    let ending = &answer["ending"];
    assert_eq!(ending["ended"][4][1], answer["wall_ns"]);
    assert!(ending["last_share"].as_f64().is_some_and(|share| 0.0 < share && share < 1.0));
    assert_eq!(answer["stragglers"].as_array().map(Vec::len), Some(12));
}

#[test]
fn hostile_spans_are_listed_and_break_nothing() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    let most = u64::MAX;
    append(&path, line(1, 1, 0, "</script><script>alert(1)</script>", [0, most]));
    append(&path, line(2, 1, 0, "backwards", [most, 1]) + &line(2, 2, 2, "own parent", [5, 9]));
    append(&path, line(3, 1, 2, "cycle", [7, 8]) + &line(3, 2, 1, "cycle", [7, 8]));
    append(&path, line(4, 1, 9, "orphan", [1, most / 2]) + &line(4, 2, 1, "child", [most, most]));
    let viewer = Viewer::start(&["--now", "5", path.to_str().expect("it is UTF-8")]);
    let answer = viewer.ask("/api/samples");
    assert_eq!(answer["matched"], 4);
    for path in ["/api/step", "/api/steps", "/api/samples?sort=duration&desc=true&q=duration:%3E1h"]
    {
        let answer = viewer.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    assert_eq!(matched(&viewer, "\"<script>\""), 1);
}

//! Times that spans say of themselves: shares of a batch, and when the first token came.

use std::fs;

use stagetrace_viewer::{StuckRule, Summary, SummaryOptions};

mod support;

use support::View;

/// A request with one stage, and what an attribute says of that.
fn request(number: u64, attribute: &str) -> String {
    let id = |span: u64| format!("{:016x}", 2 * number + span);
    let trace = format!("{number:032x}");
    format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[
        {{"traceId":"{trace}","spanId":"{}","name":"request","startTimeUnixNano":"1000000000","endTimeUnixNano":"11000000000"}},
        {{"traceId":"{trace}","spanId":"{}","parentSpanId":"{}","name":"gpu_forward","startTimeUnixNano":"1000000000","endTimeUnixNano":"10000000000","attributes":[{attribute}]}}
        ]}}]}}]}}"#,
        id(0),
        id(1),
        id(0)
    )
    .replace('\n', "")
        + "\n"
}

fn summary(lines: &str) -> Summary {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, lines).unwrap();
    let view = View::of(&[path]);
    let options = SummaryOptions { step: Default::default(), now: 0, stuck: StuckRule::default() };
    Summary::new(&view.store, &view.samples, &view.sources.report(), &options).unwrap()
}

#[test]
fn the_members_of_a_batch_add_up_to_the_time_that_it_took() {
    let share = |seconds: f64| {
        format!(r#"{{"key":"stagetrace.batch.share","value":{{"doubleValue":{seconds}}}}}"#)
    };
    let shares = [share(2.5), share(2.5), share(4.0)];
    let lines: String = (1..).zip(&shares).map(|(number, share)| request(number, share)).collect();
    let summary = summary(&lines);
    let forward = &summary.stages[0];
    assert_eq!((&*forward.stage, forward.span_count), ("gpu_forward", 3));
    assert_eq!(forward.sum_ns, "9000000000");
    assert_eq!(forward.p50_ns, "9000000000", "each of them waited for all of it");
    assert_eq!(summary.self_times[0].self_ns, "9000000000");
    assert_eq!(summary.self_times[1].self_ns, "3000000000");
}

#[test]
fn a_share_that_is_no_time_counts_for_nothing() {
    for share in [r#"{"doubleValue":-1}"#, r#"{"doubleValue":"NaN"}"#, r#"{"stringValue":"1"}"#] {
        let attribute = format!(r#"{{"key":"stagetrace.batch.share","value":{share}}}"#);
        assert_eq!(summary(&request(1, &attribute)).stages[0].sum_ns, "9000000000", "{share}");
    }
}

#[test]
fn times_until_the_first_token_are_summed_up_whoever_names_them() {
    let names = [
        ("gen_ai.response.time_to_first_chunk", "0.25"),
        ("gen_ai.server.time_to_first_token", "0.5"),
        ("gen_ai.latency.time_to_first_token", "1"),
        ("ttft_ms", "2000"),
    ];
    let say = |(key, value): (&str, &str)| {
        format!(r#"{{"key":"{key}","value":{{"doubleValue":{value}}}}}"#)
    };
    let lines: String =
        (1..).zip(names).map(|(number, name)| request(number, &say(name))).collect();
    let latency = summary(&lines).first_token.unwrap();
    assert_eq!((latency.count, &*latency.p50_ns, &*latency.max_ns), (4, "500000000", "2000000000"));
    assert_eq!(summary(&request(1, "")).first_token, None);
}

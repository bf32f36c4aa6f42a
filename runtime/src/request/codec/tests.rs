use serde_json::{Value, json};

use super::super::remote::{Remote, UNREADABLE};
use super::*;

const TRACEPARENT_TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The carrier that is read, and whether nothing was left out.
fn examine(json: &Value) -> (Option<Remote>, bool) {
    let text = json.to_string();
    let mut json = serde_json::Deserializer::from_str(&text);
    let draft = json.deserialize_option(Carrier { is_text: false }).expect("valid JSON");
    json.end().expect("the whole value was read");
    draft.examine()
}

/// What a relay sends on, and whether nothing was left out.
fn relay(json: Value) -> (Value, bool) {
    let (remote, is_whole) = examine(&json);
    (written(remote), is_whole)
}

fn written(remote: Option<Remote>) -> Value {
    remote.map_or(Value::Null, |remote| serde_json::to_value(Object(remote.carrier())).unwrap())
}

fn assert_kept(json: Value) {
    assert_eq!(relay(json.clone()), (json, true));
}

#[test]
fn a_full_carrier_is_kept_as_it_came() {
    assert_kept(json!({
        "traceparent": "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-f1-future",
        "tracestate": "b=2, a=1 x",
        "baggage": "tenant=a%20b;ttl=3 , k=v",
        "level": 4,
        "stage": "gpu_forward",
        "later": {"z": [1, -2, 2.5, true, null, "é"], "a": {}},
        "": u64::MAX,
    }));
}

#[test]
fn unknown_keys_keep_their_order() {
    let text = r#"{"z":1,"a":{"y":2,"b":3},"m":4}"#;
    let mut json = serde_json::Deserializer::from_str(text);
    let draft = json.deserialize_any(Carrier { is_text: false }).unwrap();
    let remote = draft.check().unwrap();
    assert_eq!(serde_json::to_string(&Object(remote.carrier())).unwrap(), text);
}

#[test]
fn what_is_absent_null_or_empty_is_null_and_not_counted() {
    for json in [
        json!(null),
        json!({}),
        json!(""),
        json!("null"),
        json!("{}"),
        json!({"traceparent": null, "tracestate": "", "level": null, "stage": ""}),
    ] {
        assert_eq!(relay(json.clone()), (Value::Null, true), "{json}");
    }
}

#[test]
fn what_makes_no_sense_is_null_and_counted() {
    for json in [
        json!(true),
        json!(-1),
        json!(7),
        json!(0.5),
        json!([{"traceparent": TRACEPARENT_TEXT}]),
        json!("no json"),
        json!("[]"),
        json!(r#""{}""#),
        json!(r#"{"level":1} {"level":1}"#),
        json!({"traceparent": 5}),
        json!({"traceparent": "00-0-0-0", "stage": "decode"}),
        json!({"traceparent": TRACEPARENT_TEXT.to_uppercase()}),
        json!({"traceparent": format!("{TRACEPARENT_TEXT}\r\n")}),
        json!({"traceparent": format!("01{}-\r\nX-Evil: 1", &TRACEPARENT_TEXT[2..])}),
        json!({"traceparent": format!("01{}-{}", &TRACEPARENT_TEXT[2..], "x".repeat(999))}),
    ] {
        assert_eq!(relay(json.clone()), (Value::Null, false), "{json}");
    }
}

#[test]
fn a_known_key_given_twice_is_null_and_counted() {
    let text = format!(r#"{{"traceparent":"{TRACEPARENT_TEXT}","stage":"a","stage":"b"}}"#);
    assert_eq!(relay(json!(text)), (Value::Null, false));
}

#[test]
fn of_an_unknown_key_given_twice_the_later_counts() {
    let text = r#"{"k":1,"z":0,"k":2}"#;
    assert_eq!(relay(json!(text)), (json!({"k": 2, "z": 0}), true));
}

#[test]
fn a_part_that_cannot_be_used_is_left_out_and_counted() {
    for (key, bad) in [
        ("tracestate", json!("no list")),
        ("tracestate", json!(["a=1"])),
        ("tracestate", json!((0..33).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(","))),
        ("baggage", json!("k=v\r\nX-Evil: 1")),
        ("baggage", json!("x".repeat(MAX_LIST + 1))),
        ("level", json!("3")),
        ("level", json!(-1)),
        ("level", json!(1.5)),
        ("level", json!(u64::MAX)),
        ("stage", json!(7)),
        ("stage", json!("s".repeat(MAX_STAGE + 1))),
        ("later", json!("x".repeat(MAX_EXTRA + 1))),
        ("later", (0..99).fold(json!(1), |inner, _| json!([inner]))),
        ("later", json!(vec![0; MAX_EXTRA])),
        ("x".repeat(MAX_KEY + 1).as_str(), json!(1)),
    ] {
        let mut json = json!({"traceparent": TRACEPARENT_TEXT, "kept": {"a": 1}});
        let expected = json.clone();
        json[key] = bad.clone();
        assert_eq!(relay(json), (expected, false), "{key}: {bad}");
    }
}

#[test]
fn good_members_of_a_baggage_survive_bad_ones() {
    let json = json!({"baggage": "a=1, b c=2, d=3"});
    assert_eq!(relay(json), (json!({"baggage": "a=1,d=3"}), false));
}

#[test]
fn a_tracestate_without_traceparent_means_nothing() {
    assert_eq!(relay(json!({"tracestate": "a=1", "level": 2})).0, json!({"level": 2}));
}

#[test]
fn unknown_keys_are_limited_in_number_and_size() {
    let many: serde_json::Map<_, _> = (0..999).map(|at| (format!("{at:03}"), json!(at))).collect();
    let (kept, is_whole) = relay(Value::Object(many));
    assert_eq!(kept.as_object().map(|map| map.len()), Some(MAX_EXTRA_KEYS));
    assert!(!is_whole);

    let large: serde_json::Map<_, _> =
        (0..20).map(|at| (at.to_string(), json!("x".repeat(1000)))).collect();
    let (kept, is_whole) = relay(Value::Object(large));
    assert!(kept.to_string().len() < MAX_EXTRA + 500, "{}", kept.to_string().len());
    assert!(kept.as_object().is_some_and(|map| map.len() == 8));
    assert!(!is_whole);
}

#[test]
fn the_trace_survives_behind_a_flood_of_other_keys() {
    let mut text = String::from("{");
    for at in 0..100_000 {
        text.push_str(&format!("\"k{at}\":[{at},[[]]],"));
    }
    text.push_str(&format!("\"traceparent\":\"{TRACEPARENT_TEXT}\"}}"));
    let mut json = serde_json::Deserializer::from_str(&text);
    let draft = json.deserialize_option(Carrier { is_text: false }).unwrap();
    let (remote, is_whole) = draft.examine();
    assert!(remote.is_some_and(|remote| remote.context().is_some()) && !is_whole);
    // As text in a binary format it is refused unread.
    assert_eq!(relay(json!(text)), (Value::Null, false));
}

#[test]
fn the_longest_carrier_fits_into_the_longest_text() {
    let headers = |text: &str| text.repeat(MAX_LIST / text.len());
    let list = headers(&format!("k={},", "\"".repeat(509)));
    let remote = Draft {
        traceparent: "\"".repeat(MAX_TRACEPARENT).into(),
        tracestate: list.clone().into(),
        baggage: list.into(),
        level: Some(i64::MAX),
        stage: "\u{1}".repeat(MAX_STAGE).into(),
        extra: vec![("\u{1}".repeat(MAX_EXTRA).into(), Json::Null)],
        ..Draft::default()
    };
    let object = RemoteRef {
        traceparent: Traceparent::Verbatim(&remote.traceparent),
        tracestate: &remote.tracestate,
        baggage: &remote.baggage,
        level: remote.level,
        stage: &remote.stage,
        extra: &remote.extra,
    };
    assert!(serde_json::to_string(&Object(object)).unwrap().len() < MAX_TEXT);
}

#[test]
fn a_number_in_disguise_is_a_number() {
    // What serde_json makes of numbers when `arbitrary_precision` is on somewhere in the build.
    let number = |digits: &str| json!({"$serde_json::private::Number": digits});
    let json = json!({
        "level": number("2"),
        "later": [number("18446744073709551615"), number("-5"), number("0.25"), number("1e999")],
        "after": number("-7"),
        "half": number("5e-1"),
    });
    let (kept, is_whole) = relay(json);
    assert_eq!((kept, is_whole), (json!({"level": 2, "after": -7, "half": 0.5}), false));
    assert_eq!(relay(number("7")), (Value::Null, false));
}

#[test]
fn a_greater_level_acts_as_three_and_goes_on_as_it_came() {
    for (level, acts) in [(0, 0), (1, 1), (3, 3), (4, 3), (i64::MAX, 3)] {
        let json = json!({"level": level});
        let (remote, _) = examine(&json);
        assert_eq!(remote.as_ref().and_then(Remote::level), Some(acts));
        assert_eq!(written(remote), json);
    }
}

#[test]
fn a_carrier_of_this_process_is_written_as_version_00() {
    let context = TraceContext::parse(TRACEPARENT_TEXT).unwrap();
    let carrier = RemoteRef { level: Some(2), stage: "decode", ..RemoteRef::of(context) };
    assert_eq!(
        serde_json::to_string(&Object(carrier)).unwrap(),
        format!(r#"{{"traceparent":"{TRACEPARENT_TEXT}","level":2,"stage":"decode"}}"#)
    );
}

#[test]
fn what_is_left_out_is_counted() {
    // Other tests count too, so only growth can be checked.
    let before = UNREADABLE.load(std::sync::atomic::Ordering::Relaxed);
    for bad in [r#""{""#, "7", r#"{"level":"high"}"#] {
        serde_json::from_str::<TraceState>(bad).unwrap();
    }
    assert!(UNREADABLE.load(std::sync::atomic::Ordering::Relaxed) >= before + 3);
}

//! Attributes of spans and requests: their types, their sizes, and which value counts.

use stagetrace::{Outcome, TraceState, Traced, span};
use stagetrace_tests::pipeline::Generate;
use stagetrace_tests::{alone, start};
use stagetrace_wire::span::{Span, Value};
use std::time::Duration;

#[test]
fn attributes_keep_their_types() {
    let spans = alone(|| {
        let _trace = start();
        let span = span!(
            "typed",
            "text" = "seven",
            "int" = -7_i64,
            "unsigned" = 7_u32,
            "double" = 0.5_f64,
            "bool" = true,
            "seconds" = Duration::from_millis(1500),
            "absent" = None::<i64>,
            "ints" = [1_i64, 2].as_slice()
        );
        span.set_attribute("late", 2_i64);
        span.set_attribute("late", 3_i64);
        span.set_attribute("int", 8_i64);
        span.in_scope(|| {
            stagetrace::set_attributes(&[("one", &1_i64), ("texts", &["a", "b"].as_slice())])
        });
    })
    .run()
    .spans();
    let span = spans.one("typed");
    let array = |values: &[Value]| Value::Array(values.to_vec());
    let expected = [
        ("text", Some(Value::from("seven"))),
        ("int", Some(Value::I64(8))),
        ("unsigned", Some(Value::I64(7))),
        ("double", Some(Value::F64(0.5))),
        ("bool", Some(Value::Bool(true))),
        ("seconds", Some(Value::F64(1.5))),
        ("absent", None),
        ("ints", Some(array(&[Value::I64(1), Value::I64(2)]))),
        ("late", Some(Value::I64(3))),
        ("one", Some(Value::I64(1))),
        ("texts", Some(array(&["a".into(), "b".into()]))),
    ];
    for (key, value) in expected {
        assert_eq!(span.attribute(key), value.as_ref(), "{key}");
    }
    let mut keys: Vec<_> = span.attributes.iter().map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), span.attributes.len(), "a key stands once");
}

#[test]
fn a_request_records_its_attributes_as_they_are_when_it_finishes() {
    let spans = alone(|| {
        let _trace = start();
        let mut request = Generate::begun("a");
        request.steps = 9;
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&["diffusion.steps"]), "generate diffusion.steps=9\n");
}

/// What a request becomes when it is answered.
#[derive(Traced)]
#[traced(name = "answer")]
struct Answer {
    #[traced(attr = "answer.tokens")]
    tokens: u32,
    #[traced(attr = "answer.reason", display)]
    reason: char,
    #[traced(state)]
    trace: TraceState,
}

#[test]
fn a_request_that_finishes_as_another_one_keeps_the_keys_of_what_it_records() {
    let spans = alone(|| {
        let _trace = start();
        let request = Generate::begun("a");
        let answer = Answer { tokens: 3, reason: 'b', trace: request.trace.clone() };
        answer.finish(Outcome::Ok);
    })
    .run()
    .spans();
    let keys = ["answer.tokens", "answer.reason", "diffusion.steps"];
    assert_eq!(spans.tree(&keys), "generate answer.tokens=3 answer.reason=b\n");
}

/// What an id can be.
#[derive(Traced)]
#[traced(name = "identified")]
struct Identified<T> {
    #[traced(id)]
    id: T,
    #[traced(state)]
    trace: TraceState,
}

fn finish_as<T: std::fmt::Display>(id: T) {
    let mut request = Identified { id, trace: TraceState::null() };
    request.begin(None);
    request.finish(Outcome::Ok);
}

/// The same of a type that the compiler knows when it derives.
macro_rules! finish_known {
    ($($name:ident: $type:ty = $id:expr;)*) => {$({
        #[derive(Traced)]
        #[traced(name = "identified")]
        struct $name {
            #[traced(id)]
            id: $type,
            #[traced(state)]
            trace: TraceState,
        }
        let mut request = $name { id: $id, trace: TraceState::null() };
        request.begin(None);
        request.finish(Outcome::Ok);
    })*};
}

#[test]
fn an_id_is_the_text_that_its_type_displays() {
    let spans = alone(|| {
        let _trace = start();
        finish_known! {
            Text: String = "request-17".to_owned();
            Borrowed: &'static str = "";
            Shared: std::sync::Arc<str> = "ü".repeat(200).into();
            Small: u8 = 7;
            Negative: i32 = -12;
            Large: u64 = u64::MAX;
            Long: i64 = 1_234_567_890_123_456;
            Longer: i64 = 12_345_678_901_234_567;
            Flag: bool = true;
            Real: f64 = 1.5;
            Address: std::net::Ipv4Addr = std::net::Ipv4Addr::LOCALHOST;
        }
        finish_as("of any type");
        finish_as(42);
    })
    .run()
    .spans();
    let all = spans.all("identified");
    let mut ids: Vec<_> = all.iter().map(|span| text(span, "stagetrace.request.id")).collect();
    ids.sort_unstable();
    let cut = "ü".repeat(128);
    let mut expected = vec![
        "request-17",
        "",
        &cut,
        "7",
        "-12",
        "18446744073709551615",
        "1234567890123456",
        "12345678901234567",
        "true",
        "1.5",
        "127.0.0.1",
        "of any type",
        "42",
    ];
    expected.sort_unstable();
    assert_eq!(ids, expected);
}

/// A request with more attributes than stand in a record.
#[derive(Clone, Default, Traced)]
#[traced(name = "wide")]
struct Wide {
    #[traced(id)]
    id: String,
    #[traced(attr = "a")]
    a: String,
    #[traced(attr = "b")]
    b: Option<i64>,
    #[traced(attr = "c")]
    c: f64,
    #[traced(attr = "d")]
    d: Vec<i64>,
    #[traced(attr = "e")]
    e: String,
    #[traced(attr = "f")]
    f: bool,
    #[traced(attr = "g", len)]
    g: Vec<u8>,
    #[traced(attr = "h", debug)]
    h: Option<u8>,
    #[traced(attr = "i")]
    i: u8,
    #[traced(attr = "j")]
    j: u8,
    #[traced(attr = "k")]
    k: u8,
    #[traced(attr = "l")]
    l: u8,
    #[traced(attr = "m")]
    m: u8,
    #[traced(attr = "n")]
    n: u8,
    #[traced(attr = "o")]
    o: u8,
    #[traced(attr = "p")]
    p: u8,
    #[traced(attr = "q")]
    q: u8,
    #[traced(state)]
    trace: TraceState,
}

#[test]
fn a_request_with_many_and_long_attributes_records_each_as_it_was_at_the_end() {
    let spans = alone(|| {
        let _trace = start();
        for length in [10, 60, 200, 2000, 20_000] {
            let mut wide = Wide { id: length.to_string(), ..Wide::default() };
            (wide.a, wide.e) = ("old".repeat(length), "old".repeat(length));
            (wide.d, wide.p, wide.q) = (vec![1; length / 10], 1, 1);
            wide.begin(None);
            (wide.a, wide.e) = ("new".repeat(length), "short".to_owned());
            (wide.b, wide.d, wide.p, wide.q) = (Some(7), vec![2; length / 10], 2, 2);
            wide.finish(Outcome::Ok);
        }
    })
    .run()
    .spans();
    for root in spans.all("wide") {
        let id = text(root, "stagetrace.request.id");
        let length: usize = id.parse().unwrap();
        let kept = (3 * length).min(32 * 1024);
        assert!(text(root, "a") == &"new".repeat(length)[..kept], "a of {id}");
        assert_eq!(text(root, "e"), "short", "{id}");
        let ints = |key| root.attribute(key).and_then(Value::as_i64);
        assert_eq!((ints("b"), ints("g"), ints("i")), (Some(7), Some(0), Some(0)), "{id}");
        assert_eq!((ints("p"), ints("q")), (Some(2), Some(2)), "{id}");
        let twos = vec![Value::I64(2); length / 10];
        assert!(root.attribute("d") == Some(&Value::Array(twos)), "d of {id}");
        assert_eq!(text(root, "h"), "None", "{id}");
        let mut keys: Vec<_> = root.attributes.iter().map(|(key, _)| key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), root.attributes.len(), "a key stands once, {id}");
    }
    assert_eq!(spans.all("wide").len(), 5);
}

#[test]
fn odd_values_come_back_as_they_were() {
    let text = "quote \" backslash \\ newline \n escape \x1b nul \0 line \u{2028} seven \u{1d7f3}";
    let spans = alone(move || {
        let _trace = start();
        let span =
            span!("odd", "nan" = f64::NAN, "infinite" = f64::NEG_INFINITY, "least" = i64::MIN);
        span.set_attribute(text, text);
        span.set_attribute("empty", "");
        span.set_attribute("", "no key");
        span.set_attribute("beyond", u64::MAX);
        span.set_attribute("none", [0_i64; 0].as_slice());
        span.set_attribute("minus zero", -0.0_f64);
    })
    .run()
    .spans();
    let span = spans.one("odd");
    let double = |key: &str| span.attribute(key).and_then(Value::as_f64).unwrap();
    assert!(double("nan").is_nan() && double("minus zero").is_sign_negative());
    assert_eq!(double("infinite"), f64::NEG_INFINITY);
    assert_eq!(span.attribute("least"), Some(&Value::I64(i64::MIN)));
    assert_eq!(span.attribute(text), Some(&Value::from(text)));
    assert_eq!(span.attribute("empty"), Some(&Value::from("")));
    assert_eq!(span.attribute("beyond"), Some(&Value::from("18446744073709551615")));
    assert_eq!(span.attribute("none"), Some(&Value::Array(Vec::new())));
}

#[test]
fn a_large_text_is_cut_and_its_length_noted() {
    let spans = alone(|| {
        let _trace = start();
        let text = "ü".repeat(6_000_000);
        let span = span!("large", "text" = &*text, "n" = 1);
        drop(span);
        drop(span!("small", "n" = 2));
    })
    .run()
    .spans();
    let large = spans.one("large");
    let kept = text(large, "text").len();
    assert!((1..=32 * 1024).contains(&kept), "{kept} bytes");
    assert_eq!(large.attribute("stagetrace.cut.text"), Some(&Value::I64(12_000_000)));
    assert_eq!(large.attribute("n"), Some(&Value::I64(1)));
    spans.one("small");
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    span.attribute(key).and_then(Value::as_str).unwrap_or_default()
}

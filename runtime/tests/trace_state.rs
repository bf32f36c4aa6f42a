//! The trace state of a request that only passes through: no recorder is needed here.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stagetrace::TraceState;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A request as users write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Request {
    id: String,
    #[serde(default, rename = "_trace_state")]
    trace: TraceState,
    steps: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum External {
    Run(Request),
    Stop { trace: TraceState, now: bool },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flattened {
    worker: u8,
    #[serde(flatten)]
    request: Request,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Run(Request),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Internal {
    Run(Request),
    Nested { inner: External },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "body")]
enum Adjacent {
    Run(Request),
}

/// A serde format: there and back.
struct Format {
    name: &'static str,
    /// Says of itself what comes next, which buffered and tagged types need.
    is_self_describing: bool,
}

const FORMATS: [Format; 8] = [
    Format { name: "JSON", is_self_describing: true },
    Format { name: "JSON value", is_self_describing: true },
    Format { name: "MessagePack maps", is_self_describing: true },
    Format { name: "MessagePack arrays", is_self_describing: false },
    Format { name: "readable MessagePack", is_self_describing: true },
    Format { name: "CBOR", is_self_describing: true },
    Format { name: "bincode", is_self_describing: false },
    Format { name: "postcard", is_self_describing: false },
];

impl Format {
    fn transfer<T: Serialize + DeserializeOwned>(&self, value: &T) -> T {
        match self.name {
            "JSON" => serde_json::from_slice(&serde_json::to_vec(value).unwrap()).unwrap(),
            "JSON value" => serde_json::from_value(serde_json::to_value(value).unwrap()).unwrap(),
            "MessagePack maps" => {
                rmp_serde::from_slice(&rmp_serde::to_vec_named(value).unwrap()).unwrap()
            }
            "MessagePack arrays" => {
                rmp_serde::from_slice(&rmp_serde::to_vec(value).unwrap()).unwrap()
            }
            "readable MessagePack" => {
                let mut bytes = Vec::new();
                let mut writer =
                    rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_human_readable();
                value.serialize(&mut writer).unwrap();
                let mut reader = rmp_serde::Deserializer::new(&bytes[..]).with_human_readable();
                T::deserialize(&mut reader).unwrap()
            }
            "CBOR" => {
                let mut bytes = Vec::new();
                ciborium::into_writer(value, &mut bytes).unwrap();
                ciborium::from_reader(&bytes[..]).unwrap()
            }
            "bincode" => {
                let config = bincode::config::standard();
                let bytes = bincode::serde::encode_to_vec(value, config).unwrap();
                bincode::serde::decode_from_slice(&bytes, config).unwrap().0
            }
            "postcard" => postcard::from_bytes(&postcard::to_stdvec(value).unwrap()).unwrap(),
            name => panic!("no format {name}"),
        }
    }
}

fn carrier() -> Value {
    json!({
        "traceparent": TRACEPARENT,
        "tracestate": "vendor=a b, other=1",
        "baggage": "tenant=acme;ttl=1",
        "level": 4,
        "stage": "scheduler_dispatch",
        "later": {"z": [1, -2, 0.5, true, null, "\u{1f980}\n"], "a": {}},
    })
}

fn remote() -> TraceState {
    serde_json::from_value(carrier()).unwrap()
}

fn request(trace: TraceState) -> Request {
    Request { id: "r-7".to_owned(), trace, steps: 30 }
}

/// What the trace state would send on.
fn sent(trace: &TraceState) -> Value {
    serde_json::to_value(trace).unwrap()
}

/// Sends a value through a format, and checks both its payload and the one trace state in it.
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    format: &Format,
    make: impl Fn(TraceState) -> T,
    trace: impl Fn(&T) -> &TraceState,
) {
    for state in [TraceState::null(), remote()] {
        let before = make(state);
        let after = format.transfer(&before);
        assert_eq!(after, before, "{}", format.name);
        assert_eq!(sent(trace(&after)), sent(trace(&before)), "{}", format.name);
    }
}

#[test]
fn every_format_carries_null_and_remote() {
    for format in &FORMATS {
        check(format, |trace| trace, |trace| trace);
        check(format, request, |request| &request.trace);
        check(format, |trace| vec![request(trace)], |requests| &requests[0].trace);
        check(format, |trace| Some(Box::new(request(trace))), |r| &r.as_ref().unwrap().trace);
        check(
            format,
            |trace| External::Run(request(trace)),
            |message| match message {
                External::Run(request) => &request.trace,
                External::Stop { trace, .. } => trace,
            },
        );
        check(
            format,
            |trace| External::Stop { trace, now: true },
            |message| match message {
                External::Run(request) => &request.trace,
                External::Stop { trace, .. } => trace,
            },
        );
    }
}

#[test]
fn serdes_buffers_carry_null_and_remote() {
    for format in FORMATS.iter().filter(|format| format.is_self_describing) {
        check(
            format,
            |trace| Flattened { worker: 1, request: request(trace) },
            |message| &message.request.trace,
        );
        check(
            format,
            |trace| Untagged::Run(request(trace)),
            |message| match message {
                Untagged::Run(request) => &request.trace,
                Untagged::Number(_) => panic!("not a number"),
            },
        );
        check(
            format,
            |trace| Adjacent::Run(request(trace)),
            |Adjacent::Run(request)| &request.trace,
        );
        check(format, |trace| Internal::Run(request(trace)), internal);
        check(
            format,
            |trace| Internal::Nested { inner: External::Stop { trace, now: true } },
            internal,
        );
    }
}

fn internal(message: &Internal) -> &TraceState {
    match message {
        Internal::Run(request) | Internal::Nested { inner: External::Run(request) } => {
            &request.trace
        }
        Internal::Nested { inner: External::Stop { trace, .. } } => trace,
    }
}

#[test]
fn a_chain_of_relays_in_all_formats_forwards_the_carrier_unchanged() {
    let mut request = request(remote());
    for format in &FORMATS {
        request = format.transfer(&request);
    }
    assert_eq!(sent(&request.trace), carrier());
}

#[test]
fn readable_formats_hold_an_object_and_binary_ones_its_text() {
    assert_eq!(sent(&remote()), carrier());
    let text: Option<String> =
        rmp_serde::from_slice(&rmp_serde::to_vec(&remote()).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text.unwrap()).unwrap(), carrier());
    let text: Option<String> =
        postcard::from_bytes(&postcard::to_stdvec(&remote()).unwrap()).unwrap();
    assert!(text.is_some_and(|text| text.starts_with(r#"{"traceparent":"00-"#)));
}

#[test]
fn null_is_an_absent_option() {
    assert_eq!(serde_json::to_string(&TraceState::null()).unwrap(), "null");
    for format in &FORMATS {
        let null = (TraceState::null(), 7_u8);
        let absent: (Option<String>, u8) = (None, 7);
        match format.name {
            "bincode" => {
                let config = bincode::config::standard();
                assert_eq!(
                    bincode::serde::encode_to_vec(&null, config).unwrap(),
                    bincode::serde::encode_to_vec(&absent, config).unwrap()
                );
            }
            "postcard" => assert_eq!(
                postcard::to_stdvec(&null).unwrap(),
                postcard::to_stdvec(&absent).unwrap()
            ),
            _ => assert_eq!(format.transfer(&null).1, 7),
        }
    }
}

#[test]
fn readers_take_the_form_of_the_other_kind() {
    let text = carrier().to_string();
    let from_text: TraceState = serde_json::from_value(json!(text)).unwrap();
    assert_eq!(sent(&from_text), carrier());
    let from_map: TraceState =
        rmp_serde::from_slice(&rmp_serde::to_vec(&carrier()).unwrap()).unwrap();
    assert_eq!(sent(&from_map), carrier());
}

#[test]
fn a_missing_field_is_null() {
    #[derive(Deserialize)]
    struct Forgetful {
        trace: TraceState,
    }

    let request: Request = serde_json::from_str(r#"{"id":"r","steps":1}"#).unwrap();
    assert!(request.trace.is_null());
    let without_default: Forgetful = serde_json::from_str("{}").unwrap();
    assert!(without_default.trace.is_null());
}

#[test]
fn a_bad_trace_state_never_costs_the_request() {
    for bad in [json!(7), json!([1, [2]]), json!("x"), json!({"traceparent": "00-0"}), json!(true)]
    {
        let json = json!({"id": "r", "_trace_state": bad, "steps": 1});
        let request: Request = serde_json::from_value(json).unwrap();
        assert!(request.trace.is_null(), "{bad}");
        assert_eq!(request.steps, 1);
    }
}

#[test]
fn a_clone_of_a_remote_sends_the_same_and_lives_on_alone() {
    let original = remote();
    let clone = original.clone();
    drop(original);
    assert_eq!(sent(&clone), carrier());
}

#[test]
fn a_remote_moves_to_another_thread() {
    let state = remote();
    let sent = std::thread::spawn(move || sent(&state)).join().unwrap();
    assert_eq!(sent, carrier());
}

#[test]
fn the_derives_of_a_request_mean_its_payload_only() {
    fn hash(value: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    let (traced, plain) = (request(remote()), request(TraceState::default()));
    assert_eq!(traced, plain);
    assert_eq!(traced.cmp(&plain), std::cmp::Ordering::Equal);
    assert_eq!(hash(&traced), hash(&plain));
    assert_ne!(traced, Request { steps: 31, ..plain });
}

#[test]
fn debug_names_the_trace_and_no_baggage() {
    assert_eq!(format!("{:?}", TraceState::null()), "TraceState(null)");
    assert_eq!(format!("{:?}", remote()), "TraceState(remote 0af7651916cd43dd8448eb211c80319c)");
    let baggage: TraceState = serde_json::from_value(json!({"baggage": "token=secret"})).unwrap();
    assert_eq!(format!("{baggage:?}"), "TraceState(remote)");
}

#[test]
fn the_trace_state_takes_two_words() {
    assert_eq!(size_of::<TraceState>(), 2 * size_of::<usize>());
}

#[test]
fn headers_become_a_carrier() {
    let headers = [
        ("Content-Type", "text/plain"),
        ("TraceParent", TRACEPARENT),
        ("tracestate", "a=1"),
        ("tracestate", " b=2 "),
        ("baggage", "k=v"),
    ];
    let expected = json!({"traceparent": TRACEPARENT, "tracestate": "a=1,b=2", "baggage": "k=v"});
    assert_eq!(sent(&TraceState::from_headers(headers)), expected);
    assert!(TraceState::from_headers([("accept", "*/*")]).is_null());
    assert!(TraceState::from_headers([("traceparent", "00-1-2-3"), ("baggage", "k=v")]).is_null());
}

/// Any JSON, with keys that are often known ones.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("traceparent".to_owned()),
        Just("tracestate".to_owned()),
        Just("baggage".to_owned()),
        Just("level".to_owned()),
        Just("stage".to_owned()),
        "\\PC{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(Value::from(TRACEPARENT)),
        Just(Value::from("k=v")),
    ];
    leaf.prop_recursive(4, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A carrier that a later version might send: all known keys well-formed, and any unknown ones.
fn any_carrier() -> impl Strategy<Value = Value> {
    let fits = |json: &Value| json.to_string().len() < 150; // six such keys stay within the limit
    let small = any_json().prop_filter("larger than what is kept", fits);
    let unknown = prop::collection::btree_map("[A-Za-z_]{0,9}", small, 0..6);
    (any::<[bool; 5]>(), unknown).prop_map(|(present, unknown)| {
        let mut carrier = carrier();
        let map = carrier.as_object_mut().expect("an object");
        for (key, present) in
            ["tracestate", "baggage", "level", "stage", "later"].into_iter().zip(present)
        {
            if !present {
                map.remove(key);
            }
        }
        map.extend(unknown.into_iter().map(|(key, value)| (format!("x{key}"), value)));
        carrier
    })
}

proptest! {
    #[test]
    fn any_json_is_read_without_error_and_settles_at_once(json in any_json()) {
        let request = json!({"id": "r", "_trace_state": json, "steps": 1});
        let request: Request = serde_json::from_value(request).unwrap();
        let once = sent(&request.trace);
        let twice: TraceState = serde_json::from_value(once.clone()).unwrap();
        prop_assert_eq!(sent(&twice), once);
    }

    #[test]
    fn a_relay_forwards_what_it_does_not_know(carrier in any_carrier()) {
        let mut request = request(serde_json::from_value(carrier.clone()).unwrap());
        for format in &FORMATS {
            request = format.transfer(&request);
            prop_assert_eq!(&sent(&request.trace), &carrier, "{}", format.name);
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
        read_everywhere(&bytes);
    }

    #[test]
    fn damaged_requests_are_read_without_panic(at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let request = request(remote());
        let config = bincode::config::standard();
        let mut cbor = Vec::new();
        ciborium::into_writer(&request, &mut cbor).unwrap();
        for mut bytes in [
            serde_json::to_vec(&request).unwrap(),
            rmp_serde::to_vec(&request).unwrap(),
            rmp_serde::to_vec_named(&request).unwrap(),
            cbor,
            bincode::serde::encode_to_vec(&request, config).unwrap(),
            postcard::to_stdvec(&request).unwrap(),
        ] {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            read_everywhere(&bytes);
        }
    }
}

/// Tries these bytes in every format. Errors are the format's own affair.
fn read_everywhere(bytes: &[u8]) {
    let config = bincode::config::standard().with_limit::<4096>();
    let _ = serde_json::from_slice::<Request>(bytes);
    let _ = serde_json::from_slice::<Untagged>(bytes);
    let _ = rmp_serde::from_slice::<Request>(bytes);
    let _ = rmp_serde::from_slice::<Untagged>(bytes);
    let _ = ciborium::from_reader::<Request, _>(bytes);
    let _ = ciborium::from_reader::<Untagged, _>(bytes);
    let _ = bincode::serde::decode_from_slice::<Request, _>(bytes, config);
    let _ = postcard::from_bytes::<Request>(bytes);
}

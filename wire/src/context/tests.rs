use proptest::prelude::*;

use super::*;
use crate::id::IdError;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_refused_traceparent_says_why() {
    let refusal = |text: &str| TraceContext::parse(text).unwrap_err();
    let replaced = |at: usize, with: &str| {
        let mut text = CALLER.to_owned();
        text.replace_range(at..at + with.len(), with);
        refusal(&text)
    };
    assert_eq!(refusal(""), TraceparentError::Short { found: 0 });
    assert_eq!(refusal(&format!("{CALLER}-")), TraceparentError::Trailing);
    assert_eq!(replaced(0, "ff"), TraceparentError::Version);
    assert_eq!(replaced(35, "_"), TraceparentError::Separator { at: 35 });
    assert_eq!(replaced(4, "X"), TraceparentError::TraceId(IdError::Digit { at: 1 }));
    assert_eq!(replaced(36, &"0".repeat(16)), TraceparentError::ParentId(IdError::Zero));
    assert_eq!(replaced(54, "A"), TraceparentError::Flags(IdError::Digit { at: 1 }));
}

#[test]
fn values_that_are_no_text_are_refused_and_counted() {
    let headers: [(&str, &[u8]); 4] = [
        ("traceparent", CALLER.as_bytes()),
        ("tracestate", b"a=1,b=\xff"),
        ("baggage", b"k\xff=1,ok=1,v=\xfe"),
        ("x-other", b"\xff"),
    ];
    let found = extract(headers);
    assert_eq!(found.context, CALLER.parse().ok());
    assert!(found.trace_state.is_empty());
    assert_eq!(found.tracestate_error, Some(TraceStateError::Value { member: 2 }));
    assert_eq!(found.baggage.as_str(), "ok=1");
    assert_eq!(found.baggage_refused, 2);
}

#[test]
fn a_refused_traceparent_discards_the_tracestate_but_not_the_baggage() {
    let found = extract([("traceparent", "00-"), ("tracestate", "a=1"), ("baggage", "b=2")]);
    assert_eq!(found.traceparent_error, Some(TraceparentError::Short { found: 3 }));
    assert_eq!((found.context, found.trace_state.as_str()), (None, ""));
    assert_eq!(found.baggage.get("b").as_deref(), Some("2"));
}

#[test]
fn a_relay_passes_on_tracestate_and_baggage_as_they_came() {
    let headers = [
        ("traceparent", CALLER),
        ("tracestate", "congo= a b,rojo=1"),
        ("baggage", "k=100%25 ; p = q;r , l=%c3%a9"),
    ];
    let found = extract(headers);
    let mut sent = Vec::new();
    inject(found.context.unwrap(), &found.trace_state, &found.baggage, |name, value| {
        sent.push((name, value.to_owned()));
    });
    let expected = [
        (TRACEPARENT, CALLER),
        (TRACESTATE, "congo= a b,rojo=1"),
        (BAGGAGE, "k=100%25;p=q;r,l=%c3%a9"),
    ];
    assert_eq!(sent, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn a_malformed_member_cannot_be_set() {
    let mut list: TraceStateList = "a=1".parse().unwrap();
    for (key, value) in [("", "1"), ("A", "1"), ("a", ""), ("a", "1,b=2"), ("a", "1 "), ("a", "é")]
    {
        assert!(list.set(key, value).is_err(), "{key}={value}");
    }
    assert_eq!(list.as_str(), "a=1");
    list.remove("a");
    assert!(list.is_empty());
}

#[test]
fn truncating_to_nothing_ends() {
    let mut list: TraceStateList = "a=1,b=2".parse().unwrap();
    list.truncate(5);
    assert_eq!(list.as_str(), "a=1");
    list.truncate(0);
    assert!(list.is_empty());
}

#[test]
fn baggage_is_replaced_by_key_and_bounded_in_bytes() {
    let mut baggage = Baggage::parse("a=1;p,b=2,a=3");
    assert_eq!(baggage.get("a").as_deref(), Some("3"));
    baggage.set("a", "x;y").unwrap();
    assert_eq!(baggage.as_str(), "b=2,a=x%3By");
    baggage.remove("b");
    assert_eq!(baggage.as_str(), "a=x%3By");
    assert_eq!(baggage.set("no key", "1"), Err(BaggageError::Key));
    assert_eq!(baggage.set("big", &"v".repeat(8192)), Err(BaggageError::Full));
    assert_eq!(baggage.as_str(), "a=x%3By");

    let found = extract([("baggage", format!("a=1,big={},c=3", "v".repeat(8192)))]);
    assert_eq!((found.baggage.as_str(), found.baggage_refused), ("a=1,c=3", 1));
}

/// Lists whose members are often, but not always, well-formed.
fn list() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-z0-9*]{1,3} {0,1}[=]{0,1}[a-zA-Z0-9 ;=%-]{0,8}", 0..5)
        .prop_map(|members| members.join(" ,"))
}

proptest! {
    #[test]
    fn arbitrary_headers_never_panic(
        headers: Vec<(String, Vec<u8>)>,
        own in prop::collection::vec((0usize..3, prop::collection::vec(any::<u8>(), 0..80)), 0..6),
    ) {
        let _ = extract(headers);
        const NAMES: [&str; 3] = [TRACEPARENT, TRACESTATE, BAGGAGE];
        let _ = extract(own.iter().map(|(name, value)| (NAMES[*name], value)));
    }

    #[test]
    fn what_was_accepted_is_accepted_again(trace_state in list(), baggage in list()) {
        let headers = [(TRACEPARENT, CALLER), (TRACESTATE, &trace_state), (BAGGAGE, &baggage)];
        let found = extract(headers);
        let mut sent = Vec::new();
        inject(found.context.unwrap(), &found.trace_state, &found.baggage, |name, value| {
            sent.push((name, value.to_owned()));
        });
        let again = extract(sent);
        prop_assert_eq!(&again.trace_state, &found.trace_state);
        prop_assert_eq!(&again.baggage, &found.baggage);
        prop_assert_eq!((again.baggage_refused, again.tracestate_error), (0, None));
    }

    #[test]
    fn any_value_survives_baggage(value: String) {
        let mut baggage = Baggage::default();
        if baggage.set("k", &value).is_ok() {
            let found = extract([(BAGGAGE, baggage.as_str())]);
            prop_assert_eq!(found.baggage.get("k"), Some(value.into()));
            prop_assert_eq!(found.baggage_refused, 0);
        }
    }

    #[test]
    fn a_context_reads_what_it_prints(trace in 1u128.., span in 1u64.., flags: u8) {
        use crate::id::{SpanId, TraceId};
        let context = TraceContext {
            trace_id: TraceId::from_u128(trace).unwrap(),
            span_id: SpanId::from_u64(span).unwrap(),
            flags: TraceFlags::from_bits(flags),
        };
        let sent = TraceContext { flags: context.flags.known(), ..context };
        prop_assert_eq!(context.to_string().parse(), Ok(sent));
    }
}

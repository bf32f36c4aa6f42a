//! What a reader makes of each thing that a recording can hold.

use handmade::{
    EPOCH, Handmade, Record, TRACE, bytes, keyed, one_of_everything, side, text, with_records,
};
use stagetrace_wire::recording::layout::{BLOCK, chunk, header, outcome, side as kind, slab, slot};
use stagetrace_wire::recording::read::Damage;
use stagetrace_wire::recording::value::Tag;
use stagetrace_wire::span::{StatusCode, Value};

mod handmade;

/// The attributes of the one span that is there, without the function.
fn attributes(made: &Handmade) -> Vec<(String, Value)> {
    let snapshot = made.snapshot();
    assert_eq!(snapshot.spans.len(), 1, "{:?}", snapshot.damage);
    let all = snapshot.spans[0].attributes();
    let mut all: Vec<_> = all.into_iter().map(|(key, v)| (key.to_owned(), v.into())).collect();
    all.retain(|(key, _)| key != "code.function.name");
    all
}

#[test]
fn an_ended_copy_in_a_chunk_beats_the_open_one_in_the_slab() {
    let made = with_records(&[Record::ended(1).words()]);
    let both = Handmade { words: [made.words, vec![0; BLOCK / 8]].concat() }
        .word(header::BLOCKS, 4)
        .slab(3, &[Record::open(1), Record::open(2)]);
    let snapshot = both.snapshot();
    let found: Vec<_> = snapshot.spans.iter().map(|s| (s.identity().1.to_u64(), s.end())).collect();
    assert_eq!(found, [(1, Some(EPOCH + 20)), (2, None)]);
}

#[test]
fn a_slab_slot_tells_of_a_span_only_while_its_generation_is_even() {
    let slot_at = 3 * BLOCK / 8 + chunk::HEAD / 8;
    let made = Handmade::new(4).slab(3, &[Record::open(1), Record::ended(2), Record::open(3)]);
    let being_written = made.word(slot_at + slab::GENERATION, 3);
    let snapshot = being_written.snapshot();
    let open: Vec<_> = snapshot.open().map(|span| span.identity().1.to_u64()).collect();
    let ended: Vec<_> = snapshot.ended().map(|span| span.identity().1.to_u64()).collect();
    assert_eq!((open, ended), (vec![3], vec![2]), "one that ended in place has ended");
}

#[test]
fn a_thrown_away_span_is_not_there_not_even_as_open() {
    let thrown_away = Record { marks: slot::DISCARDED, ..Record::ended(1) };
    let made = Handmade::new(4).slab(2, &[Record::open(1)]).chunk(3, &[thrown_away.words()]);
    assert!(made.snapshot().spans.is_empty());
}

#[test]
fn every_kind_of_value_is_read() {
    let values = [
        (Tag::I64, vec![-5_i64 as u64], Value::I64(-5)),
        (Tag::F64, vec![f64::INFINITY.to_bits()], Value::F64(f64::INFINITY)),
        (Tag::Bool, vec![1], Value::Bool(true)),
        (Tag::Str, text(""), Value::from("")),
        (Tag::Str, text("äöü, longer than one word"), Value::from("äöü, longer than one word")),
        (Tag::Bytes, bytes(&[0, 255, 7]), Value::Bytes(vec![0, 255, 7])),
        (Tag::I64s, vec![2, 1, 2], Value::Array(vec![Value::I64(1), Value::I64(2)])),
        (Tag::F64s, vec![1, 2f64.to_bits()], Value::Array(vec![Value::F64(2.0)])),
        (Tag::Bools, vec![2, 0, 1], Value::Array(vec![Value::Bool(false), Value::Bool(true)])),
        (
            Tag::Strs,
            [vec![2 << 32 | 3], text("ab"), text("")].concat(),
            Value::Array(vec![Value::from("ab"), Value::from("")]),
        ),
        (Tag::I64s, vec![0], Value::Array(vec![])),
    ];
    for (tag, words, expected) in values {
        let inline = vec![None, Some((tag, words.clone()))];
        let made = with_records(&[Record { inline, ..Record::ended(1) }.words()]);
        assert_eq!(attributes(&made), [("b".to_owned(), expected.clone())], "{tag:?} inline");
        let late = keyed(&[("late", tag, words), ("next", Tag::Bool, vec![1])]);
        let span = Record { sides: 1, ..Record::ended(1) };
        let made = with_records(&[span.words(), side(1, 15, kind::ATTRIBUTES, &late)]);
        let next = ("next".to_owned(), Value::Bool(true));
        assert_eq!(attributes(&made), [("late".to_owned(), expected), next], "{tag:?} beside");
    }
}

#[test]
fn a_value_that_does_not_fit_is_left_out_with_what_follows_it() {
    let values = [
        (Tag::Str, vec![u64::MAX]),
        (Tag::Str, vec![65, 0]),
        (Tag::Str, vec![1, u64::from_ne_bytes([0xff; 8])]),
        (Tag::I64s, vec![u64::MAX]),
        (Tag::I64s, vec![1 << 61]),
        (Tag::Strs, vec![u64::MAX]),
        (Tag::Bytes, vec![u64::MAX - 6]),
    ];
    for (tag, words) in values {
        let inline = vec![Some((Tag::I64, vec![1])), Some((tag, words.clone()))];
        let made = with_records(&[Record { inline, ..Record::ended(1) }.words()]);
        assert_eq!(attributes(&made), [("a".to_owned(), Value::I64(1))], "{tag:?} {words:?}");
        let late = keyed(&[("x", Tag::I64, vec![1]), ("y", tag, words)]);
        let made = with_records(&[Record::ended(1).words(), side(1, 15, kind::ATTRIBUTES, &late)]);
        assert_eq!(attributes(&made), [("x".to_owned(), Value::I64(1))], "{tag:?} beside");
    }
}

#[test]
fn an_array_of_texts_that_claims_too_many_has_those_that_are_there() {
    let inline = vec![Some((Tag::Strs, [vec![u64::MAX << 32 | 2], text("ab")].concat()))];
    let made = with_records(&[Record { inline, ..Record::ended(1) }.words()]);
    let expected = Value::Array(vec![Value::from("ab")]);
    assert_eq!(attributes(&made), [("a".to_owned(), expected)]);
}

#[test]
fn of_several_values_of_one_key_the_last_reported_counts() {
    let late = |tick, value| side(1, tick, kind::ATTRIBUTES, &keyed(&[("a", Tag::I64, value)]));
    let inline = vec![Some((Tag::I64, vec![1])), Some((Tag::I64, vec![2]))];
    let span = Record { inline, sides: 2, ..Record::ended(1) };
    // In the file the later one stands first.
    let made = with_records(&[late(19, vec![9]), span.words(), late(15, vec![5])]);
    let expected = [("b".to_owned(), Value::I64(2)), ("a".to_owned(), Value::I64(9))];
    assert_eq!(attributes(&made), expected);
}

#[test]
fn each_outcome_is_exported_by_its_name() {
    let told = |outcome, flags| {
        let span = Record { outcome, flags, sides: 1, ..Record::ended(1) };
        let failure = [text("IoError"), text("disk full")].concat();
        let made = with_records(&[side(1, 19, kind::FAILURE, &failure), span.words()]);
        let span = &made.snapshot().spans[0];
        let (code, message) = span.status();
        let mut all = attributes(&made);
        all.retain(|(key, _)| key != "stagetrace.request.id");
        let all: Vec<_> =
            all.iter().map(|(key, v)| format!("{key}={}", v.as_str().unwrap_or("?"))).collect();
        format!("{} {code:?} {message:?}", all.join(" "))
    };
    assert_eq!(told(outcome::UNSET, 0), " Unset \"\"");
    assert_eq!(told(outcome::OK, slot::ROOT), "stagetrace.outcome=ok Unset \"\"");
    let handed_over = told(outcome::HANDED_OVER, slot::ROOT);
    assert_eq!(handed_over, "stagetrace.outcome=handed_over Unset \"\"");
    let dropped = "stagetrace.outcome=dropped stagetrace.end=dropped Unset \"\"";
    assert_eq!(told(outcome::DROPPED, slot::ROOT), dropped);
    let cancelled = "stagetrace.outcome=cancelled error.type=cancelled Error \"disk full\"";
    assert_eq!(told(outcome::CANCELLED, 0), cancelled);
    let error = "stagetrace.outcome=error error.type=IoError Error \"disk full\"";
    assert_eq!(told(outcome::ERROR, 0), error);
    let panic = "stagetrace.outcome=panic error.type=panic Error \"disk full\"";
    assert_eq!(told(outcome::PANIC, 0), panic);
}

#[test]
fn an_open_span_has_no_outcome_though_its_end_is_being_prepared() {
    let made = with_records(&[Record { outcome: outcome::ERROR, ..Record::open(1) }.words()]);
    let span = &made.snapshot().spans[0];
    assert_eq!((span.outcome(), span.status()), (None, (StatusCode::Unset, "")));
}

#[test]
fn a_failure_whose_text_is_gone_is_of_no_known_type() {
    let made =
        with_records(&[Record { outcome: outcome::ERROR, sides: 1, ..Record::ended(1) }.words()]);
    assert!(attributes(&made).contains(&("error.type".to_owned(), Value::from("_OTHER"))));
    assert_eq!(made.snapshot().spans[0].missing_details(), 1);
}

#[test]
fn a_stage_of_a_request_knows_the_requests_id_while_the_root_is_there() {
    let made = one_of_everything();
    let snapshot = made.snapshot();
    let of_request = |id| snapshot.spans.iter().find(|span| span.identity().1.to_u64() == id);
    let open_stage = of_request(0x12).expect("the open stage");
    assert_eq!(snapshot.request_id(open_stage), Some("req-1"));
    assert!(snapshot.root_of(open_stage).is_some_and(|root| root.is_open()));
    let made = with_records(&[Record { root: 9, ..Record::open(1) }.words()]);
    let snapshot = made.snapshot();
    assert_eq!(snapshot.request_id(&snapshot.spans[0]), None, "the root is not here");
}

#[test]
fn a_request_without_an_id_has_its_attributes_all_the_same() {
    let inline = vec![None, Some((Tag::I64, vec![3]))];
    let made = with_records(&[Record { inline, flags: slot::ROOT, ..Record::open(1) }.words()]);
    assert_eq!(made.snapshot().spans[0].request_id(), None);
    assert_eq!(attributes(&made), [("a".to_owned(), Value::I64(3))]);
}

#[test]
fn a_root_has_the_trace_state_that_its_request_brought() {
    let state = "vendor=a,other=1";
    let root = Record { flags: slot::ROOT, sides: 1, ..Record::ended(1) };
    let child = Record { parent: 1, ..Record::ended(2) };
    let records = [root.words(), side(1, 11, kind::TRACE_STATE, &text(state)), child.words()];
    let recording = with_records(&records).read();
    let snapshot = recording.snapshot();
    let states: Vec<_> = snapshot.spans.iter().map(|span| span.trace_state()).collect();
    assert_eq!(states, [state, ""]);
    assert_eq!(snapshot.spans[0].missing_details(), 0);
    assert_eq!(snapshot.spans[0].to_span(recording.identity()).trace_state, state);
}

#[test]
fn a_trace_state_that_is_torn_is_none() {
    let torn = [u64::MAX, 0];
    let made = with_records(&[Record::ended(1).words(), side(1, 11, kind::TRACE_STATE, &torn)]);
    assert_eq!(made.snapshot().spans[0].trace_state(), "");
}

#[test]
fn a_side_record_of_a_kind_to_come_is_ignored() {
    let span = Record { sides: 1, ..Record::ended(1) };
    let made = with_records(&[span.words(), side(1, 11, 99, &text("of a later version"))]);
    let snapshot = made.snapshot();
    assert_eq!(snapshot.damage, Damage::default());
    assert_eq!(snapshot.spans[0].missing_details(), 0);
    assert_eq!(attributes(&made), []);
}

#[test]
fn a_span_whose_site_is_not_in_the_table_is_named_by_its_number() {
    let made = Handmade::new(3).chunk(2, &[Record { site: 77, ..Record::ended(1) }.words()]);
    let snapshot = made.snapshot();
    assert_eq!(snapshot.spans[0].name(), "stagetrace.site.77");
    assert!(snapshot.spans[0].attributes().is_empty());
}

#[test]
fn records_that_are_no_spans_are_counted() {
    let records = [
        Record { begin: 0, ..Record::ended(1) },
        Record { span: 0, ..Record::ended(1) },
        Record { trace: [0, 0], ..Record::ended(1) },
        Record { site: 0, ..Record::ended(1) },
    ];
    let snapshot = with_records(&records.map(|record| record.words())).snapshot();
    assert!(snapshot.spans.is_empty());
    assert_eq!(snapshot.damage.records, 4);
}

#[test]
fn a_span_becomes_one_of_the_model_with_the_processs_resource() {
    let made = one_of_everything();
    let recording = made.read();
    let snapshot = recording.snapshot();
    let spans: Vec<_> =
        snapshot.spans.iter().map(|span| span.to_span(recording.identity())).collect();
    let forward = spans.iter().find(|span| span.span_id.to_u64() == 0x11).expect("the stage");
    assert_eq!(forward.name, "gpu_forward");
    assert_eq!(forward.trace_id.to_u128(), u128::from(TRACE[0]) << 64 | u128::from(TRACE[1]));
    assert_eq!(forward.parent_span_id.map(|id| id.to_u64()), Some(0x10));
    assert_eq!(forward.attribute("steps"), Some(&Value::I64(10)));
    assert_eq!(forward.events[0].attributes, [("bytes".to_owned(), Value::I64(1 << 20))]);
    assert_eq!(forward.links[0].span_id.to_u64(), 0x99);
    assert_eq!(forward.status.code, StatusCode::Error);
    assert_eq!(forward.resource.service_name(), Some("server"));
    assert_eq!(forward.scope.name, "stagetrace");
    let open = spans.iter().find(|span| span.span_id.to_u64() == 0x12).expect("the open one");
    assert!(!open.has_ended());
}

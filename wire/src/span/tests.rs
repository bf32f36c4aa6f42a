use super::*;

fn span(id: u64, end_unix_nano: u64) -> Span {
    let (trace_id, span_id) = (TraceId::from_u128(7).unwrap(), SpanId::from_u64(id).unwrap());
    Span { start_unix_nano: 10, end_unix_nano, ..Span::new(trace_id, span_id) }
}

#[test]
fn of_repeated_spans_the_first_stays_unless_only_a_later_one_has_ended() {
    let mut spans = vec![span(1, 0), span(2, 20), span(1, 30), span(2, 40), span(1, 50)];
    assert_eq!(deduplicate(&mut spans), 3);
    assert_eq!(spans, [span(1, 30), span(2, 20)]);
    assert_eq!(deduplicate(&mut spans), 0);
}

#[test]
fn an_open_or_backward_span_has_no_duration() {
    assert_eq!(span(1, 0).duration_nano(), None);
    assert_eq!(span(1, 9).duration_nano(), None);
    assert_eq!(span(1, 10).duration_nano(), Some(0));
    assert_eq!(span(1, 12).duration_nano(), Some(2));
}

#[test]
fn attributes_are_found_by_key() {
    let attributes =
        vec![("service.name".to_owned(), Value::from("router")), ("n".to_owned(), Value::from(3))];
    let resource = Resource { attributes, ..Resource::default() };
    assert_eq!(resource.service_name(), Some("router"));
    assert_eq!(resource.attribute("n").and_then(Value::as_f64), Some(3.0));
    assert_eq!(resource.attribute("missing"), None);
    assert_eq!(Resource::default().service_name(), None);
}

#[test]
fn the_context_of_a_span_has_its_w3c_flags_only() {
    let span = Span { flags: flags::HAS_IS_REMOTE | flags::IS_REMOTE | 0x03, ..span(1, 0) };
    assert_eq!(span.context().flags, TraceFlags::from_bits(3));
}

fn child(id: u64, parent: u64, start_unix_nano: u64) -> Span {
    let parent_span_id = SpanId::from_u64(parent);
    Span { parent_span_id, start_unix_nano, name: format!("s{id}"), ..span(id, 0) }
}

#[test]
fn a_tree_has_children_in_the_order_of_their_begin_and_strangers_at_the_margin() {
    let spans = [child(3, 1, 5), child(2, 1, 4), child(1, 9, 3), child(4, 3, 6), child(5, 0, 1)];
    assert_eq!(tree(&spans, &[]), "s5\ns1\n  s2\n  s3\n    s4\n");
}

#[test]
fn a_tree_shows_the_attributes_that_are_asked_for_in_that_order() {
    let attributes = [
        ("b", Value::Bool(true)),
        ("a", Value::from("x")),
        ("list", Value::Array(vec![Value::I64(1)])),
        ("half", Value::F64(0.5)),
    ];
    let attributes = attributes.map(|(key, value)| (key.to_owned(), value)).into();
    let spans = [Span { attributes, ..child(1, 0, 1) }];
    assert_eq!(
        tree(&spans, &["a", "none", "b", "list", "half"]),
        "s1 a=x b=true list=Array([I64(1)]) half=0.5\n"
    );
}

#[test]
fn a_span_stays_on_its_line_and_does_nothing_to_a_terminal() {
    let attributes = vec![("k".to_owned(), Value::from("\x1b[31mé\r"))];
    let spans = [Span { name: "a\nb".to_owned(), attributes, ..child(1, 0, 1) }];
    assert_eq!(tree(&spans, &["k"]), "a\\nb k=\\u{1b}[31mé\\r\n");
}

#[test]
fn each_span_of_a_tree_stands_there_once_whatever_its_parents_are() {
    // Two that are each other's parents, one that is its own, and two of one identity.
    let spans = [
        child(1, 2, 1),
        child(2, 1, 2),
        child(3, 3, 3),
        child(4, 0, 4),
        child(4, 0, 5),
        child(5, 4, 6),
    ];
    assert_eq!(tree(&spans, &[]), "s4\n  s5\ns4\ns1\n  s2\ns3\n");
}

#[test]
fn a_tree_of_any_depth_is_written() {
    let spans: Vec<Span> = (1..=100_000).map(|id| child(id, id - 1, id)).collect();
    let text = tree(&spans, &[]);
    assert_eq!(text.lines().count(), 100_000);
    assert!(text.lines().nth(63).unwrap().starts_with(&" ".repeat(2 * 63)));
    assert!(text.len() < 100_000 * 140);
}

#[test]
fn a_span_weighs_what_it_owns_and_its_part_of_what_it_shares() {
    let bare = Span::new(TraceId::from_u128(1).unwrap(), SpanId::from_u64(1).unwrap());
    let text = |len| ("key".to_owned(), Value::Str("x".repeat(len)));
    let mut span = bare.clone();
    span.attributes = vec![text(1000)];
    span.events = vec![Event { attributes: vec![text(2000)], ..Event::default() }];
    let resource = Resource { attributes: vec![text(8000)], ..Resource::default() };
    span.resource = Arc::new(resource);
    let alone = span.memory_bytes() - bare.memory_bytes();
    assert!((11_000..11_600).contains(&alone), "{alone}");
    let others = vec![span.clone(); 3];
    assert!(
        alone - (span.memory_bytes() - bare.memory_bytes()) >= 6000,
        "of four each has a quarter"
    );
    drop(others);
}

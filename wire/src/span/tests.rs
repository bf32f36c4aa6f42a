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

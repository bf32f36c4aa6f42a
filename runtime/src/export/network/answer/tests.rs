use super::*;

#[test]
fn a_partial_success_is_read_in_either_encoding() {
    let partial = PartialSuccess { rejected_spans: 3, error_message: "no ids".to_owned() };
    let message = ExportResponse { partial_success: Some(partial) }.encode_to_vec();
    let expected = Answer { rejected: 3, message: "no ids".to_owned() };
    assert_eq!(Answer::of_protobuf(&message), expected);
    #[cfg(feature = "otlp-http")]
    for count in ["3", "\"3\""] {
        let text = format!(
            r#"{{"partialSuccess":{{"rejectedSpans":{count},"errorMessage":"no ids","more":{{}}}}}}"#
        );
        assert_eq!(Answer::of_json(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn an_empty_answer_and_garbage_reject_nothing() {
    for bytes in [&b""[..], b"\xff\xff\xff", b"<html>", b"{\"partialSuccess\":[7]}", b"null"] {
        assert_eq!(Answer::of_protobuf(bytes), Answer::default());
        #[cfg(feature = "otlp-http")]
        assert_eq!(Answer::of_json(bytes), Answer::default());
    }
    assert_eq!(Answer::new(-1, String::new()).rejected, 0);
}

#[test]
fn a_server_s_message_is_cut_and_escaped() {
    let answer = Answer::new(1, format!("\u{1b}[31m\n{}", "x".repeat(1000)));
    let text = answer.to_string();
    assert!(text.starts_with("the server rejected 1 spans: \\u{1b}[31m\\nxxx"), "{text}");
    assert!(text.ends_with("xx..") && text.len() < 300, "{text}");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (value, seconds) in [
        ("0", Some(0)),
        (" 120 ", Some(120)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
        ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10)),
        ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value:?}");
    }
}

#[cfg(feature = "otlp-grpc")]
#[test]
fn a_delay_is_found_among_other_details() {
    let delay = Delay { seconds: 1, nanos: 500_000_000 };
    let info = RetryInfo { retry_delay: Some(delay) }.encode_to_vec();
    let detail = |name: &str, value: Vec<u8>| {
        let type_url = format!("type.googleapis.com/google.rpc.{name}");
        Any { type_url, value }
    };
    let other = detail("Help", vec![0xff]);
    let status = |details| Status { details }.encode_to_vec();
    let delayed = status(vec![other.clone(), detail("RetryInfo", info)]);
    assert_eq!(retry_delay(&delayed), Some(Duration::from_millis(1500)));
    assert_eq!(retry_delay(&status(vec![other])), None);
    assert_eq!(retry_delay(b""), None);
    assert_eq!(retry_delay(b"\xff"), None);
}

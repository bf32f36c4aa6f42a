use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;

#[test]
fn a_trace_id_prints_its_most_significant_digit_first() {
    let id = TraceId::from_u128(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c).unwrap();
    assert_eq!(id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(id.to_bytes()[..2], [0x0a, 0xf7]);
    assert_eq!(TraceId::from_bytes(id.to_bytes()), Some(id));
}

#[test]
fn a_span_id_keeps_its_leading_zeros() {
    let id = SpanId::from_u64(0xabc).unwrap();
    assert_eq!(id.to_string(), "0000000000000abc");
    assert_eq!(format!("{id:?}"), "SpanId(0000000000000abc)");
    assert_eq!(SpanId::from_bytes(id.to_bytes()), Some(id));
}

#[test]
fn either_case_is_read() {
    let upper: TraceId = "0AF7651916CD43DD8448EB211C80319C".parse().unwrap();
    assert_eq!(upper.to_string(), "0af7651916cd43dd8448eb211c80319c");
}

#[test]
fn what_is_no_id_is_refused_with_its_reason() {
    assert_eq!(SpanId::from_hex("abc"), Err(IdError::Length { expected: 16, found: 3 }));
    assert_eq!(SpanId::from_hex("0000000000000000"), Err(IdError::Zero));
    assert_eq!(SpanId::from_hex("000000000000000g"), Err(IdError::Digit { at: 15 }));
    assert_eq!(SpanId::from_hex("+000000000000001"), Err(IdError::Digit { at: 0 }));
    assert_eq!(TraceId::from_hex([b'0'; 32]), Err(IdError::Zero));
    assert_eq!(TraceId::from_u128(0), None);
    assert_eq!(SpanId::from_u64(0), None);
}

#[test]
fn a_run_id_says_when_and_where_it_began() {
    let id = |seconds| RunId::new(UNIX_EPOCH + Duration::from_secs(seconds), 815, 0xf1e_2d3c);
    assert_eq!(id(1_784_172_600).as_str(), "20260716-033000-815-0f1e2d3c");
    assert_eq!(id(0).as_str(), "19700101-000000-815-0f1e2d3c");
    assert_eq!(id(951_782_399).as_str(), "20000228-235959-815-0f1e2d3c");
    assert_eq!(id(951_782_400).as_str(), "20000229-000000-815-0f1e2d3c");
    assert_eq!(id(4_107_542_400).as_str(), "21000301-000000-815-0f1e2d3c");
}

#[test]
fn a_run_id_cannot_name_another_directory() {
    for text in [".", ".."] {
        assert_eq!(text.parse::<RunId>(), Err(RunIdError::Dots));
    }
    assert_eq!("a/b".parse::<RunId>(), Err(RunIdError::Character { at: 1 }));
    assert_eq!("läuft".parse::<RunId>(), Err(RunIdError::Character { at: 1 }));
    assert_eq!("".parse::<RunId>(), Err(RunIdError::Length { found: 0 }));
    assert!("x".repeat(128).parse::<RunId>().is_ok());
    assert_eq!("x".repeat(129).parse::<RunId>(), Err(RunIdError::Length { found: 129 }));
    assert!("20260716-033000-815-0f1e2d3c".parse::<RunId>().is_ok());
}

proptest! {
    #[test]
    fn ids_read_what_they_print(trace in 1u128.., span in 1u64..) {
        let (trace, span) = (TraceId::from_u128(trace).unwrap(), SpanId::from_u64(span).unwrap());
        prop_assert_eq!(trace.to_string().parse(), Ok(trace));
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text: String) {
        let _ = TraceId::from_hex(&bytes);
        let _ = SpanId::from_hex(&bytes);
        let _ = text.parse::<RunId>();
    }
}

use super::*;
use std::time::Duration;

/// A status with a `RetryInfo` of one second.
fn delayed(code: Code, message: &str) -> Status {
    let mut any =
        b"\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01".to_vec();
    any.splice(0..0, [0x1a, any.len() as u8]);
    Status::with_details(code, message, any.into())
}

#[test]
fn the_table_of_otlp_says_what_is_tried_again() {
    let again = [
        Code::Cancelled,
        Code::DeadlineExceeded,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unavailable,
        Code::DataLoss,
    ];
    let never = [
        Code::Unknown,
        Code::InvalidArgument,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::FailedPrecondition,
        Code::Unimplemented,
        Code::Internal,
        Code::Unauthenticated,
        Code::ResourceExhausted,
    ];
    for code in again {
        let found = verdict(&Status::new(code, "s3cret"));
        assert!(
            matches!(&found, Verdict::Again(None, text) if !text.contains("s3cret")),
            "{code:?}: {found:?}"
        );
        let found = verdict(&delayed(code, ""));
        let second = Duration::from_secs(1);
        assert!(matches!(&found, Verdict::Again(Some(delay), _) if *delay == second), "{found:?}");
    }
    for code in never {
        let found = verdict(&Status::new(code, "s3cret"));
        assert!(
            matches!(&found, Verdict::Refused(text) if !text.contains("s3cret")),
            "{code:?}: {found:?}"
        );
    }
    let found = verdict(&delayed(Code::ResourceExhausted, ""));
    assert!(matches!(found, Verdict::Again(Some(_), _)), "{found:?}");
}

#[test]
fn a_connection_that_broke_is_tried_again_whatever_code_it_got() {
    let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let found = verdict(&Status::from_error(Box::new(reset)));
    assert!(matches!(&found, Verdict::Again(None, text) if text.contains("reset")), "{found:?}");
}

#[test]
fn servers_in_every_language_say_that_a_message_is_too_large() {
    for (code, message) in [
        (Code::ResourceExhausted, "grpc: received message larger than max (5242880 vs. 4194304)"),
        (Code::ResourceExhausted, "Received message larger than max (5242880 vs. 4194304)"),
        (Code::ResourceExhausted, "gRPC message exceeds maximum size 4194304: 5242880"),
        (
            Code::OutOfRange,
            "Error, decoded message length too large: found 5242880 bytes, the limit is: 4194304 bytes",
        ),
    ] {
        let found = verdict(&Status::new(code, message));
        assert!(matches!(found, Verdict::TooLarge(_)), "{message}: {found:?}");
    }
}

#[test]
fn a_proxy_s_answer_stands_for_the_code_that_grpc_says() {
    for (status, again) in [
        (429, true),
        (502, true),
        (503, true),
        (504, true),
        (400, false),
        (404, false),
        (500, false),
    ] {
        let status = StatusCode::from_u16(status).expect("it is a status");
        let answer = NotGrpc { status, wait: None };
        let found = verdict(&Status::from_error(Box::new(answer)));
        assert_eq!(matches!(&found, Verdict::Again(..)), again, "{found:?}");
        assert_eq!(matches!(&found, Verdict::Refused(..)), !again, "{found:?}");
    }
}

//! The macros are of edition 2024, and the user's block stays of edition 2021.

/// In 2021 the temporaries of a tail expression outlive the locals, so this is refused, as without
/// the attribute. See `ui-tests/tests/tail_temporaries.rs`.
#[test]
fn a_tail_that_2021_refuses_is_refused() {
    trybuild::TestCases::new().compile_fail("fail/tail-temporaries.rs");
}

use super::super::tuples::Attributes;
use super::*;
use stagetrace_wire::recording::value::{ValueRef, decode, inline};
use std::num::NonZero;

fn show<V: Value + ?Sized>(value: &V) -> String {
    let mut words = [MaybeUninit::new(0xAA); 64];
    let Some((tag, used)) = encode(value, &mut words) else { return "absent".into() };
    // SAFETY: all were written above.
    let words = words.map(|word| unsafe { word.assume_init() });
    let (value, rest) = decode(tag, &words[..used]).expect("what was encoded decodes");
    assert!(rest.is_empty(), "all words belong to the value");
    text(value)
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Array(array) => {
            let items: Vec<String> = array.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_type_keeps_its_kind() {
    assert_eq!(show(&-7_i32), "I64(-7)");
    assert_eq!(show(&7_usize), "I64(7)");
    assert_eq!(show(&0.5_f32), "F64(0.5)");
    assert_eq!(show(&true), "Bool(true)");
    assert_eq!(show("text"), "Str(\"text\")");
    assert_eq!(show(&String::from("eight by")), "Str(\"eight by\")");
    assert_eq!(show(""), "Str(\"\")");
    assert_eq!(show(&Duration::from_millis(1_500)), "F64(1.5)");
    assert_eq!(show(&NonZero::new(3_u64).unwrap()), "I64(3)");
    assert_eq!(show(&[1_u8, 2][..]), "Bytes([1, 2])");
    assert_eq!(show(&vec![1_i64, -2]), "[I64(1), I64(-2)]");
    assert_eq!(show(&[0.5_f64, 1.0]), "[F64(0.5), F64(1.0)]");
    assert_eq!(
        show(&["stop", "", "a longer one"]),
        "[Str(\"stop\"), Str(\"\"), Str(\"a longer one\")]"
    );
    assert_eq!(show(&Vec::<String>::new()), "[]");
}

#[test]
fn an_absent_option_is_absent() {
    assert_eq!(show(&None::<u32>), "absent");
    assert_eq!(show(&Some(Some(4_u32))), "I64(4)");
}

#[test]
fn an_unsigned_integer_above_the_signed_range_is_exact() {
    assert_eq!(show(&(i64::MAX as u64)), "I64(9223372036854775807)");
    assert_eq!(show(&(i64::MAX as u64 + 1)), "Str(\"9223372036854775808\")");
    assert_eq!(show(&u64::MAX), "Str(\"18446744073709551615\")");
}

#[test]
fn a_number_becomes_the_text_that_it_is_displayed_as() {
    let numbers = [0, 7, 42, 12_345_678, 123_456_789, 9_999_999_999_999_999];
    for number in numbers {
        let decimal = Decimal::of(number).map(|decimal| show(&decimal));
        assert_eq!(decimal, Some(format!("Str(\"{number}\")")));
    }
    assert!([-1, i64::MIN, 10_i64.pow(16)].iter().all(|&other| Decimal::of(other).is_none()));
}

#[test]
fn a_tuple_keeps_places_over_absent_values() {
    let values = (1_i64, None::<f64>, "three");
    let mut words = [0; 8];
    // SAFETY: the tuple takes one word of tags, one of the integer and two of the text.
    unsafe { values.put(words.as_mut_ptr()) };
    assert_eq!(Attributes::words(&values), 3);
    let seen: Vec<_> = inline(3, &words).map(|(at, value)| (at, text(value))).collect();
    assert_eq!(seen, [(0, "I64(1)".to_owned()), (2, "Str(\"three\")".to_owned())]);
}

#[test]
fn what_does_not_fit_is_not_written() {
    assert_eq!(encode("much longer than two words", &mut [MaybeUninit::new(0); 2]), None);
}

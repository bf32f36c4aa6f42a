//! Texts that are looked for in others, in any case.

use crate::store::Ident;

/// A text that another one must contain, or be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// In lower case.
    text: String,
    /// The other must be it as a whole.
    is_whole: bool,
}

impl Pattern {
    pub(super) fn new(text: &str, is_whole: bool) -> Self {
        Self { text: text.to_lowercase(), is_whole }
    }

    /// The text in lower case.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_in(&self, other: &str) -> bool {
        match (self.text.is_ascii(), self.is_whole) {
            (true, true) => self.text.eq_ignore_ascii_case(other),
            (true, false) => contains(other.as_bytes(), self.text.as_bytes()),
            (false, true) => other.to_lowercase() == self.text,
            (false, false) => other.to_lowercase().contains(&self.text),
        }
    }

    /// Whether the decimal digits of some number may hold it, so that numbers need not be looked at.
    pub(super) fn may_be_number(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    }

    pub(super) fn is_in_number(&self, number: i64) -> bool {
        // Longest: -9223372036854775808.
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        let (digits, text) = (&digits[at..], self.text.as_bytes());
        match self.is_whole {
            true => digits == text,
            false => contains(digits, text),
        }
    }
}

/// Whether a text holds another one, which is in lower case; only ASCII has cases.
fn contains(text: &[u8], part: &[u8]) -> bool {
    let Some((&first, rest)) = part.split_first() else { return true };
    let Some(last) = text.len().checked_sub(part.len()) else { return false };
    let begins = memchr::memchr2_iter(first, first.to_ascii_uppercase(), &text[..=last]);
    let mut begins = begins.map(|at| &text[at + 1..at + part.len()]);
    begins.any(|after| after.eq_ignore_ascii_case(rest))
}

/// What was found out about texts and numbers, so that each is looked at once.
#[derive(Debug)]
pub(super) struct Memo {
    pattern: Pattern,
    may_be_number: bool,
    /// By number of the name: 0 if it was not looked at, 1 if it does not match, 2 if it does.
    names: Vec<u8>,
}

impl Memo {
    pub(super) fn new(pattern: &Pattern) -> Self {
        let may_be_number = pattern.may_be_number();
        Self { pattern: pattern.clone(), may_be_number, names: Vec::new() }
    }

    pub(super) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    pub(super) fn name(&mut self, store: &crate::Store, name: crate::Name) -> bool {
        let at = name.0 as usize;
        if self.names.len() <= at {
            self.names.resize(at + 1, 0);
        }
        if self.names[at] == 0 {
            let is = store.with_text(name, |text| self.pattern.is_in(text));
            self.names[at] = 1 + u8::from(is);
        }
        self.names[at] == 2
    }

    pub(super) fn ident(&mut self, store: &crate::Store, ident: Option<Ident>) -> bool {
        match ident {
            None => false,
            Some(Ident::Int(value)) => self.may_be_number && self.pattern.is_in_number(value),
            Some(Ident::Text(name)) => self.name(store, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cases_do_not_matter_in_any_script() {
        for (text, part) in [("Grüße", "GRÜ"), ("JUDGE", "judge"), ("swe-数学", "数"), ("a", "")]
        {
            assert!(Pattern::new(part, false).is_in(text), "{part} in {text}");
        }
        for (text, part) in [("judge", "judger"), ("", "x"), ("xaxbxc", "abc")] {
            assert!(!Pattern::new(part, false).is_in(text), "{part} in {text}");
        }
        assert!(Pattern::new("JUDGE", true).is_in("judge"));
        assert!(!Pattern::new("judge", true).is_in("judger"));
    }

    proptest! {
        #[test]
        fn a_part_is_found_wherever_it_is(before in "[a-cA-C]*", part in "[a-cA-C]+", after in "[a-cA-C]*") {
            let text = format!("{before}{part}{after}");
            prop_assert!(Pattern::new(&part.to_uppercase(), false).is_in(&text));
        }

        #[test]
        fn only_what_is_there_is_found(text in "[ab]{0,12}", part in "[ab]{0,4}") {
            prop_assert_eq!(Pattern::new(&part, false).is_in(&text), text.contains(&part));
        }

        #[test]
        fn numbers_are_looked_at_by_their_digits(number: i64, part in "-?[0-9]{1,3}") {
            let shown = number.to_string();
            prop_assert_eq!(Pattern::new(&part, false).is_in_number(number), shown.contains(&part));
            prop_assert!(Pattern::new(&shown, true).is_in_number(number));
        }
    }
}

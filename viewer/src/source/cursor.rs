//! A place in JSON text of the usual form. Whatever is unusual ends the reading with `None`: the
//! tolerant reader of `stagetrace-wire` then decides.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// Values nest no deeper here.
const MAX_DEPTH: usize = 16;

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no space, 0 at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> Option<()> {
        if self.peek() != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Reads an object; `member` reads the value of each key.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.eat(b'{')?;
        if self.peek() == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.plain_text()?;
            self.eat(b':')?;
            member(self, key)?;
            match self.peek() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Reads a list; `element` reads each value.
    #[inline]
    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(b'[')?;
        if self.peek() == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            element(self)?;
            match self.peek() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// A text without escapes.
    #[inline]
    pub(super) fn plain_text(&mut self) -> Option<&'a str> {
        self.eat(b'"')?;
        let start = self.at;
        let end = plain_end(self.text.as_bytes(), start)?;
        if self.text.as_bytes()[end] != b'"' {
            return None;
        }
        self.at = end + 1;
        Some(&self.text[start..end])
    }

    /// A text.
    #[inline]
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        let before = *self;
        if let Some(text) = self.plain_text() {
            return Some(Cow::Borrowed(text));
        }
        *self = before;
        self.escaped_text().map(Cow::Owned)
    }

    #[cold]
    fn escaped_text(&mut self) -> Option<String> {
        self.eat(b'"')?;
        let bytes = self.text.as_bytes();
        let mut owned = String::new();
        loop {
            let end = plain_end(bytes, self.at)?;
            owned.push_str(&self.text[self.at..end]);
            self.at = end + 1;
            match bytes[end] {
                b'"' => return Some(owned),
                b'\\' => {
                    let escape = *bytes.get(self.at)?;
                    self.at += 1;
                    owned.push(match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'u' => {
                            let digits = self.text.get(self.at..self.at + 4)?;
                            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                                return None;
                            }
                            self.at += 4;
                            // Halves of a pair are left to the other reader.
                            char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
                        }
                        _ => return None,
                    });
                }
                // A control character, which JSON does not allow.
                _ => return None,
            }
        }
    }

    /// An integer, as a number or as a text.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<i128> {
        let is_text = self.peek() == b'"';
        self.at += usize::from(is_text);
        let bytes = self.text.as_bytes();
        let is_negative = bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(is_negative);
        let start = self.at;
        let mut number = 0_u128;
        while let Some(digit) = bytes.get(self.at).map(|byte| byte.wrapping_sub(b'0')) {
            if digit > 9 {
                break;
            }
            number = number.wrapping_mul(10).wrapping_add(u128::from(digit));
            self.at += 1;
        }
        // Longer ones may have wrapped; zeros in front are no JSON.
        let digits = self.at - start;
        if digits == 0 || digits > 30 || (digits > 1 && bytes[start] == b'0') {
            return None;
        }
        match bytes.get(self.at) {
            Some(b'"') if is_text => self.at += 1,
            Some(b',' | b'}' | b']' | b' ') if !is_text => {}
            _ => return None,
        }
        // It has at most 30 digits, so that it fits.
        let number = number as i128;
        Some(if is_negative { -number } else { number })
    }

    /// A number of JSON.
    pub(super) fn double(&mut self) -> Option<f64> {
        self.peek();
        let start = self.at;
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        // What Rust reads and JSON does not: `.5`, `5.`, `+5`, `05`.
        let has_zero = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
        let is_odd = !digits.first()?.is_ascii_digit() || has_zero || text.ends_with('.');
        if is_odd || text.contains(".e") || text.contains(".E") {
            return None;
        }
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        self.peek();
        let rest = &self.text[self.at..];
        let value = rest.starts_with("true");
        if !value && !rest.starts_with("false") {
            return None;
        }
        self.at += if value { 4 } else { 5 };
        Some(value)
    }

    /// The text of a value whose beginning and end are found; whether it is JSON, another reader says.
    pub(super) fn raw(&mut self) -> Option<&'a str> {
        self.peek();
        let start = self.at;
        let mut depth = 0;
        loop {
            match self.peek() {
                b'"' => drop(self.string()?),
                b'{' | b'[' if depth < MAX_DEPTH => (depth, self.at) = (depth + 1, self.at + 1),
                b'}' | b']' if depth > 0 => (depth, self.at) = (depth - 1, self.at + 1),
                0 | b'{' | b'[' | b'}' | b']' => return None,
                _ => self.at += 1,
            }
            if depth == 0 {
                // A number or a word goes on to what separates it; that is no object, so leave it.
                return self.text.get(start..self.at);
            }
        }
    }

    /// Whether nothing but spaces is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek();
        self.at == self.text.len()
    }
}

/// The place of the first byte from `at` on that ends a plain text: a quote, a backslash, or a control
/// character.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    while let Some(eight) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(eight.try_into().ok()?);
        let quotes = zeros(word ^ (ONES * b'"' as u64));
        let slashes = zeros(word ^ (ONES * b'\\' as u64));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let found = quotes | slashes | controls;
        if found != 0 {
            // Of several the lowest is exact; those above may be carried over from it.
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    rest.iter().position(ends).map(|place| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_quotes_backslashes_and_control_characters_wherever_they_stand() {
        for end in [b'"', b'\\', b'\n', 0, 0x1f] {
            for before in 0..40 {
                let mut bytes = vec![b'x'; before];
                bytes.push(end);
                bytes.extend("!\" \u{7f}世".bytes());
                assert_eq!(plain_end(&bytes, 0), Some(before));
            }
        }
        for text in ["\u{7f}ÿ世界 !#[]^~", ""] {
            assert_eq!(plain_end(text.repeat(3).as_bytes(), 0), None);
        }
    }

    #[test]
    fn escapes_become_characters() {
        let text = r#""a\"b\\c\/\n\t\r\b\fé 世""#;
        assert_eq!(Cursor::new(text).string().unwrap(), "a\"b\\c/\n\t\r\u{8}\u{c}é 世");
        for odd in [r#""\ud800""#, r#""\x""#, r#""\u12"#, "\"\n\"", "\"open", r#""\u+123""#] {
            assert_eq!(Cursor::new(odd).string(), None, "{odd}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        let integers =
            [("0,", 0), ("-7}", -7), (r#""123""#, 123), ("9007199254740993 ", 1 << 53 | 1)];
        for (text, value) in integers {
            assert_eq!(Cursor::new(text).integer(), Some(value), "{text}");
        }
        for odd in ["01,", "1.0,", "1e3,", "-,", "+1,", r#""1"#, r#""1 ""#, "null", ""] {
            assert_eq!(Cursor::new(odd).integer(), None, "{odd}");
        }
        for digits in [31, 38, 39, 40, 1000] {
            assert_eq!(Cursor::new(&("9".repeat(digits) + ",")).integer(), None, "{digits}");
        }
        for (text, value) in [("0.5", 0.5), ("-0.0,", -0.0), ("1e-3}", 0.001), ("42", 42.0)] {
            assert_eq!(Cursor::new(text).double().unwrap().to_bits(), f64::to_bits(value));
        }
        for odd in [".5", "5.", "+5", "05", "1.e5", "", "-", "1e999", "NaN", "\"1\""] {
            assert_eq!(Cursor::new(odd).double(), None, "{odd}");
        }
    }
}

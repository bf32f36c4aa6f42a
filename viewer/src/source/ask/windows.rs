//! Which windows of time are to be asked for, and how times are spelled.

/// A window of time in microseconds since 1970, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Window {
    /// The older and the newer half, unless it is a single microsecond.
    pub(super) fn halves(self) -> Option<[Self; 2]> {
        let middle = self.from + self.to.saturating_sub(self.from) / 2;
        (self.from < self.to)
            .then_some([Self { to: middle, ..self }, Self { from: middle + 1, ..self }])
    }
}

/// An instant of so many nanoseconds since 1970 as RFC 3339 spells it.
pub(super) fn rfc3339(nanoseconds: u64) -> String {
    const DAY: u64 = 86_400;
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (mut days, time) = (seconds / DAY, seconds % DAY);
    let divides = |number: u64, year: u64| year.is_multiple_of(number);
    let is_leap = |year| divides(4, year) && (!divides(100, year) || divides(400, year));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{rest:09}Z", days + 1)
}

/// A text as a value in the query of a URL.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_cover_their_window_and_end() {
        let whole = Window { from: 5, to: 3_600_000_000 };
        let mut open = vec![whole];
        let mut narrow = Vec::new();
        while let Some(window) = open.pop() {
            match window.halves() {
                Some([older, newer]) if window.from < 100 => {
                    assert_eq!(
                        (older.from, newer.to, older.to + 1),
                        (window.from, window.to, newer.from)
                    );
                    open.extend([older, newer]);
                }
                _ => narrow.push(window),
            }
        }
        // The newest comes first, and each begins where the one before ended.
        assert_eq!(narrow[0].to, whole.to);
        assert_eq!(narrow.last().unwrap().from, whole.from);
        assert!(narrow.windows(2).all(|pair| pair[1].to + 1 == pair[0].from));
        assert_eq!(Window { from: 7, to: 7 }.halves(), None);
        assert_eq!(Window { from: 9, to: 7 }.halves(), None);
    }

    #[test]
    fn times_are_spelled_as_rfc_3339_has_them() {
        let expected = [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399_000_000_001, "2000-02-28T23:59:59.000000001Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999999Z"),
            (1_735_689_599_000_000_000, "2024-12-31T23:59:59.000000000Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
        ];
        for (nanoseconds, text) in expected {
            assert_eq!(rfc3339(nanoseconds), text);
        }
    }

    #[test]
    fn names_cannot_change_what_is_asked() {
        assert_eq!(percent_encoded("a b&limit=1#é"), "a%20b%26limit%3D1%23%C3%A9");
    }
}

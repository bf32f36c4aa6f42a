//! The rules by which a variable of the environment is read, and nothing about what it means.
//!
//! Empty means unset, blanks around a value do not count. A boolean of OpenTelemetry's is true only
//! for `true`, any case; one of ours is one of two words. A number that does not parse warns and is
//! ignored; one out of range acts as the nearest inside. An unknown word warns and is ignored; case
//! does not matter. Times are milliseconds.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::choice::{Choice, parse_choice, words};
use super::warning::{ConfigProblem, ConfigWarning};

/// The environment as a function, so that tests never touch the process's own, and the warnings
/// that reading it gave so far.
pub(super) struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    pub(super) warnings: Vec<ConfigWarning>,
}

impl<'a> Environment<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { lookup, warnings: Vec::new() }
    }

    pub(super) fn warn(&mut self, variable: &str, problem: ConfigProblem) {
        self.warnings.push(ConfigWarning { variable: variable.into(), problem });
    }

    /// The variable as text without blanks around it; `None` when unset, empty or not UTF-8.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match (self.lookup)(name)?.into_string() {
            Ok(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Err(_) => {
                self.warn(name, ConfigProblem::NotUnicode);
                None
            }
        }
    }

    /// The variable as a path, which need not be UTF-8.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        (self.lookup)(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        (self.lookup)(name).is_some_and(|value| !value.to_string_lossy().trim().is_empty())
    }

    /// A boolean of OpenTelemetry's: whatever else stands there means false.
    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        let value = self.text(name)?;
        let is_true = value.eq_ignore_ascii_case("true");
        if !is_true && !value.eq_ignore_ascii_case("false") {
            self.warn(name, ConfigProblem::NotBoolean { value });
        }
        Some(is_true)
    }

    /// A whole number of at least `least`.
    pub(super) fn count(&mut self, name: &str, least: usize) -> Option<usize> {
        self.number(name, least..=usize::MAX, "a whole number")
    }

    pub(super) fn milliseconds(&mut self, name: &str) -> Option<Duration> {
        let range = 0..=u64::from(u32::MAX);
        self.number(name, range, "a whole number of milliseconds").map(Duration::from_millis)
    }

    pub(super) fn number<T>(
        &mut self,
        name: &str,
        range: RangeInclusive<T>,
        expected: &'static str,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Copy + Display,
    {
        let value = self.text(name)?;
        match value.parse::<T>() {
            Ok(number) if number.partial_cmp(&number).is_some() => {
                Some(self.clamp(name, value, number, range))
            }
            _ => {
                self.warn(name, ConfigProblem::NotNumber { value, expected });
                None
            }
        }
    }

    /// A number of bytes, as in `1048576`, `1024KiB` or `1 MiB`.
    pub(super) fn bytes(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.text(name)?;
        match parse_bytes(&value) {
            Some(bytes) => Some(self.clamp(name, value, bytes, range)),
            None => {
                let expected = "a number of bytes, as in 1048576 or 1MiB";
                self.warn(name, ConfigProblem::NotNumber { value, expected });
                None
            }
        }
    }

    pub(super) fn choice<T: Choice>(&mut self, name: &str) -> Option<T> {
        let value = self.text(name)?;
        self.choice_of(name, &value)
    }

    /// The members of a comma-separated list of words; those unknown are left out.
    pub(super) fn choices<T: Choice>(&mut self, name: &str) -> Option<Vec<T>> {
        let value = self.text(name)?;
        let found: Vec<T> = members(&value).filter_map(|word| self.choice_of(name, word)).collect();
        Some(found).filter(|found| !found.is_empty())
    }

    /// The members of `key=value,key=value`, values percent-decoded, later ones last. A member
    /// that is wrong costs only itself.
    pub(super) fn pairs(&mut self, name: &str) -> Vec<(String, String)> {
        let problem = |_, member: &str, problem| {
            let value = member.to_owned();
            ConfigProblem::Malformed { value, problem }
        };
        self.pairs_or(name, problem).into_iter().map(|(_, pair)| pair).collect()
    }

    /// The same where values may be secret: no warning repeats one. Each with its position, from 1.
    #[cfg(feature = "_network")]
    pub(super) fn secret_pairs(&mut self, name: &str) -> Vec<(usize, (String, String))> {
        self.pairs_or(name, |position, _, problem| ConfigProblem::Secret { position, problem })
    }

    fn pairs_or(
        &mut self,
        name: &str,
        problem: impl Fn(usize, &str, &'static str) -> ConfigProblem,
    ) -> Vec<(usize, (String, String))> {
        let Some(value) = self.text(name) else {
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (position, member) in (1..).zip(members(&value)) {
            match pair(member) {
                Ok(pair) => pairs.push((position, pair)),
                Err(wrong) => self.warn(name, problem(position, member, wrong)),
            }
        }
        pairs
    }

    fn choice_of<T: Choice>(&mut self, name: &str, word: &str) -> Option<T> {
        let found = parse_choice(word);
        if found.is_none() {
            let problem =
                ConfigProblem::UnknownWord { value: word.to_owned(), expected: words::<T>() };
            self.warn(name, problem);
        }
        found
    }

    fn clamp<T>(&mut self, name: &str, value: String, number: T, range: RangeInclusive<T>) -> T
    where
        T: PartialOrd + Copy + Display,
    {
        if range.contains(&number) {
            return number;
        }
        let used = if number < *range.start() { *range.start() } else { *range.end() };
        self.warn(name, ConfigProblem::OutOfRange { value, used: used.to_string() });
        used
    }
}

/// What stands between the commas.
fn members(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|member| !member.is_empty())
}

/// A member of a list, or what is wrong with it.
fn pair(member: &str) -> Result<(String, String), &'static str> {
    let (key, value) = member.split_once('=').ok_or("is not key=value")?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() {
        return Err("has no key before its `=`");
    }
    let value = percent_decode_str(value).decode_utf8();
    let value = value.map_err(|_| "has a value that is not percent-encoded UTF-8")?;
    Ok((key.to_owned(), value.into_owned()))
}

/// `1048576`, `1024KiB`, `1 MiB`, `1GiB`; any case.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

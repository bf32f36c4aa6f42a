//! What the environment got wrong, as values: parsing collects them, the recorder shows them once.

use super::otlp::OtlpError;
use std::fmt;

/// Longest part of a value that a warning repeats, in characters.
const SHOWN: usize = 64;

/// One environment variable that could not be used as it stands, and what happens instead.
///
/// `Display` gives one line without line breaks or control characters. Values of variables that may
/// hold secrets (`OTEL_EXPORTER_OTLP_HEADERS`) are never repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The variable's name, as in `OTEL_TRACES_SAMPLER`; or the program's own call, as in `Otlp::certificate`.
    pub variable: String,
    /// What is wrong with it.
    pub problem: ConfigProblem,
}

/// What is wrong with an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigProblem {
    /// Not `true` or `false`, and so taken for `false`.
    NotBoolean {
        /// The text found.
        value: String,
    },
    /// Not a number of the expected kind, and so ignored.
    NotNumber {
        /// The text found.
        value: String,
        /// What would have been understood, as in `a whole number of milliseconds`.
        expected: &'static str,
    },
    /// A number outside its range: the nearest that is inside is used.
    OutOfRange {
        /// The text found.
        value: String,
        /// The value used instead.
        used: String,
    },
    /// A word that is none of those expected, and so ignored.
    UnknownWord {
        /// The text found.
        value: String,
        /// The words that would have been understood.
        expected: String,
    },
    /// A text that breaks the rule of its variable, and so is ignored.
    Malformed {
        /// The text found.
        value: String,
        /// What is wrong with it, as in `is not key=value`.
        problem: &'static str,
    },
    /// A member of what may hold secrets, so that nothing of it is repeated: it breaks the rule of its variable, and so
    /// is ignored.
    Secret {
        /// Which member, counted from 1. Empty ones do not count.
        position: usize,
        /// What is wrong with it, as in `is not key=value`.
        problem: &'static str,
    },
    /// With this nothing can be sent; the local files are written.
    NotSent(OtlpError),
    /// Cannot be done, and so what is sent is not compressed.
    Uncompressed(OtlpError),
    /// Not UTF-8, and so ignored.
    NotUnicode,
    /// Understood, but not supported by this build; the text says what holds instead.
    NotSupported {
        /// What happens instead.
        instead: &'static str,
    },
    /// A word among others that is understood, but not supported by this build; the text says what holds instead.
    WordNotSupported {
        /// The word.
        word: &'static str,
        /// What happens instead.
        instead: &'static str,
    },
    /// Understood, but the other settings leave it nothing to do.
    NoEffect {
        /// In which case it would have an effect, or has none, as in `with an http:// endpoint`.
        when: &'static str,
    },
    /// Begins with `STAGETRACE_` but is no variable of ours: probably misspelt.
    UnknownName {
        /// The variable of ours that is spelt nearly the same.
        nearest: Option<String>,
    },
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text| Shown(text, SHOWN);
        let name = shown(&self.variable);
        match &self.problem {
            ConfigProblem::NotBoolean { value } => {
                write!(f, "{name}={} is neither true nor false: taken for false", shown(value))
            }
            ConfigProblem::NotNumber { value, expected } => {
                write!(f, "{name}={} is not {expected}: ignored", shown(value))
            }
            ConfigProblem::OutOfRange { value, used } => {
                write!(f, "{name}={} is out of range: {used} is used", shown(value))
            }
            ConfigProblem::UnknownWord { value, expected } => {
                write!(f, "{name}: {} is none of {expected}: ignored", shown(value))
            }
            ConfigProblem::Malformed { value, problem } => {
                write!(f, "{name}: {} {problem}: ignored", shown(value))
            }
            ConfigProblem::Secret { position, problem } => {
                let ordinal = Ordinal(*position);
                write!(f, "{name}: the {ordinal} member {problem}: ignored")
            }
            ConfigProblem::NotSent(error) => {
                write!(f, "{name}: {error}: nothing is sent, the local files are written")
            }
            ConfigProblem::Uncompressed(error) => write!(f, "{name}: {error}: sent as it is"),
            ConfigProblem::NotUnicode => write!(f, "{name} is not UTF-8: ignored"),
            ConfigProblem::NotSupported { instead } => {
                write!(f, "{name} has no effect in this build: {instead}")
            }
            ConfigProblem::WordNotSupported { word, instead } => {
                write!(f, "{name}: {word} has no effect in this build: {instead}")
            }
            ConfigProblem::NoEffect { when } => write!(f, "{name} has no effect {when}"),
            ConfigProblem::UnknownName { nearest } => {
                write!(f, "{name} is no variable of stagetrace: ignored")?;
                nearest.iter().try_for_each(|nearest| write!(f, "; is {nearest} meant?"))
            }
        }
    }
}

/// Text from outside on its way to a terminal: cut after so many characters, and with its control characters escaped.
pub(crate) struct Shown<'a>(pub(crate) &'a str, pub(crate) usize);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(text, limit) = *self;
        for character in text.chars().take(limit) {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        if text.chars().nth(limit).is_some() { f.write_str("..") } else { Ok(()) }
    }
}

/// A position in a list, as in `3rd`.
struct Ordinal(usize);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match (self.0 % 10, self.0 % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        write!(f, "{}{suffix}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_reaches_the_terminal_escaped_and_cut() {
        let warning = ConfigWarning {
            variable: "OTEL_TRACES_SAMPLER".into(),
            problem: ConfigProblem::UnknownWord {
                value: format!("\u{1b}[31mred\nline{}", "x".repeat(200)),
                expected: "always_on".into(),
            },
        };
        let text = warning.to_string();
        assert!(text.contains("\\u{1b}[31mred\\nlinexxx"), "{text}");
        assert!(text.contains("x..") && text.len() < 200, "{text}");
        assert!(!text.chars().any(char::is_control), "{text}");
    }

    #[test]
    fn a_warning_says_what_is_wrong_and_what_happens_instead() {
        let warning = ConfigWarning {
            variable: "OTEL_SDK_DISABLED".into(),
            problem: ConfigProblem::NotBoolean { value: "yes".into() },
        };
        let expected = "OTEL_SDK_DISABLED=yes is neither true nor false: taken for false";
        assert_eq!(warning.to_string(), expected);
    }

    #[test]
    fn positions_are_written_as_one_says_them() {
        let said = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(|position| Ordinal(position).to_string());
        assert_eq!(said, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]);
    }
}

//! From text to terms.

use super::text::Pattern;
use super::words::{PREFIXES, Prefix, STATES, UNITS, listed};
use super::{Comparison, Search, Term, What};

/// Most bytes of a search.
const LONGEST: usize = 2000;
/// Most terms of a search.
const MOST: usize = 40;

/// Why a text is no search. Places are characters, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("the search is too long: at most {LONGEST} bytes and {MOST} terms")]
    TooLong,
    #[error(
        "`{prefix}:` at {at} is not known; known are {}; a text with a colon is searched in quotes: \
         \"{prefix}:…\"",
        listed(&PREFIXES, |prefix| format!("{prefix}:"))
    )]
    UnknownPrefix { prefix: String, at: usize },
    #[error("the quote at {at} is not closed; a quote inside is written \\\"")]
    OpenQuote { at: usize },
    #[error("`{prefix}:` at {at} needs something after the colon")]
    Empty { prefix: String, at: usize },
    #[error("the minus at {at} needs a term after it; to look for a minus, quote it: \"-\"")]
    OnlyMinus { at: usize },
    #[error("`{value}` at {at} is no number; say `{prefix}:>1`, `{prefix}:<=1` or `{prefix}:1`")]
    NoNumber { prefix: String, value: String, at: usize },
    #[error(
        "`{value}` at {at} is no time to compare with; say `{prefix}:>60s` or `{prefix}:<=1.5min`; \
         units are {}",
        listed(&UNITS, str::to_owned)
    )]
    NoTime { prefix: String, value: String, at: usize },
    #[error("`is:{value}` at {at} is not known; known are {}", listed(&STATES, |word| format!("is:{word}")))]
    UnknownState { value: String, at: usize },
}

impl Search {
    /// Reads a search.
    ///
    /// # Errors
    /// If it has an unknown prefix, a quote that is not closed, or no number where one must be.
    pub(crate) fn parse(text: &str) -> Result<Self, SearchError> {
        if text.len() > LONGEST {
            return Err(SearchError::TooLong);
        }
        let mut reader = Reader { text, at: 0 };
        let mut terms = Vec::new();
        while let Some(term) = reader.term()? {
            if terms.len() == MOST {
                return Err(SearchError::TooLong);
            }
            terms.push(term);
        }
        Ok(Self { terms })
    }
}

struct Reader<'t> {
    text: &'t str,
    /// Bytes that were read.
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The place for people: characters from 1.
    fn place(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn term(&mut self) -> Result<Option<Term>, SearchError> {
        self.at = self.text.len() - self.rest().trim_start().len();
        if self.rest().is_empty() {
            return Ok(None);
        }
        let is_negated = self.rest().starts_with('-');
        if is_negated {
            let at = self.place();
            self.at += 1;
            if self.rest().is_empty() || self.rest().starts_with(char::is_whitespace) {
                return Err(SearchError::OnlyMinus { at });
            }
        }
        let at = self.place();
        let what = match self.prefix() {
            None => What::Any(Pattern::new(&self.value()?.0, false)),
            Some(name) => {
                self.at += name.len() + 1;
                let known = PREFIXES.iter().find(|(prefix, _)| name.eq_ignore_ascii_case(prefix));
                let Some((name, prefix)) = known else {
                    return Err(SearchError::UnknownPrefix { prefix: name.to_owned(), at });
                };
                self.prefixed(name, *prefix, at)?
            }
        };
        Ok(Some(Term { is_negated, what }))
    }

    /// The word before a colon, if the term begins with one.
    fn prefix(&self) -> Option<&'t str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let (word, _) = self.rest().split_once(':')?;
        (word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(is_word))
            .then_some(word)
    }

    fn prefixed(&mut self, name: &str, prefix: Prefix, at: usize) -> Result<What, SearchError> {
        let text = |name: &str| name.to_owned();
        if let Prefix::Attribute = prefix {
            return self.attribute(name, at);
        }
        let comparison = match prefix {
            Prefix::Is => None,
            _ => self.comparison(!matches!(prefix, Prefix::Measure(_))),
        };
        let place = self.place();
        let (value, is_quoted) = self.value()?;
        if value.is_empty() && !is_quoted {
            return Err(SearchError::Empty { prefix: text(name), at });
        }
        match prefix {
            Prefix::Measure(measure) if measure.is_time() => {
                let no_time =
                    || SearchError::NoTime { prefix: text(name), value: value.clone(), at: place };
                let ns = time(&value).ok_or_else(no_time)?;
                Ok(What::Measure(measure, comparison.ok_or_else(no_time)?, ns))
            }
            Prefix::Measure(measure) => {
                let parsed = value.parse().ok().filter(|number: &f64| number.is_finite());
                let number = parsed.ok_or_else(|| SearchError::NoNumber {
                    prefix: text(name),
                    value: value.clone(),
                    at: place,
                })?;
                Ok(What::Measure(measure, comparison.unwrap_or(Comparison::Equal), number))
            }
            Prefix::Is => {
                let known = STATES.iter().find(|(word, _)| value.eq_ignore_ascii_case(word));
                let unknown = || SearchError::UnknownState { value: value.clone(), at: place };
                known.map(|(_, is)| What::Is(*is)).ok_or_else(unknown)
            }
            Prefix::Text(field) => {
                Ok(What::Text(field, Pattern::new(&value, comparison.is_some())))
            }
            Prefix::Attribute => Err(SearchError::Empty { prefix: text(name), at }),
        }
    }

    /// `key`, `key=part of the value`, or `key==value`, where the key or the value may be quoted.
    fn attribute(&mut self, name: &str, at: usize) -> Result<What, SearchError> {
        let is_end = |c: char| c.is_whitespace() || c == '=';
        let key = match self.rest().starts_with('"') {
            true => self.value()?.0,
            false => {
                let key = self.rest().split(is_end).next().unwrap_or_default();
                self.at += key.len();
                key.to_owned()
            }
        };
        if key.is_empty() {
            return Err(SearchError::Empty { prefix: name.to_owned(), at });
        }
        let value = match self.comparison(true) {
            None => None,
            Some(_) => {
                let is_whole = self.comparison(true).is_some();
                Some(Pattern::new(&self.value()?.0, is_whole))
            }
        };
        Ok(What::Attribute { key, value })
    }

    /// What stands before a value: `>`, `<`, `>=`, `<=` or `=`.
    fn comparison(&mut self, only_equal: bool) -> Option<Comparison> {
        let known = [
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            (">", Comparison::More),
            ("<", Comparison::Less),
            ("=", Comparison::Equal),
        ];
        let known = if only_equal { &known[4..] } else { &known };
        let (sign, comparison) = known.iter().find(|(sign, _)| self.rest().starts_with(sign))?;
        self.at += sign.len();
        Some(*comparison)
    }

    /// A text up to the next space, or a quoted one, and whether it was quoted.
    fn value(&mut self) -> Result<(String, bool), SearchError> {
        let Some(quoted) = self.rest().strip_prefix('"') else {
            let value = self.rest().split(char::is_whitespace).next().unwrap_or_default();
            self.at += value.len();
            return Ok((value.to_owned(), false));
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += at + 2;
                    return Ok((value, true));
                }
                '\\' => {
                    let escaped = characters.next_if(|(_, next)| matches!(next, '"' | '\\'));
                    value.push(escaped.map_or('\\', |(_, next)| next));
                }
                _ => value.push(character),
            }
        }
        Err(SearchError::OpenQuote { at: self.place() })
    }
}

fn time(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit);
    let (_, ns) = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    number.parse::<f64>().ok().map(|number| number * ns)
}

#[cfg(test)]
mod tests {
    use super::super::words::{Field, Is, Measure};
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> (bool, What) {
        let search = Search::parse(text).expect(text);
        assert_eq!(search.terms.len(), 1, "{text}");
        let Term { is_negated, what } = search.terms.into_iter().next().expect("there is one");
        (is_negated, what)
    }

    fn part(text: &str) -> Pattern {
        Pattern::new(text, false)
    }

    #[test]
    fn each_kind_of_term_is_read_as_it_is_meant() {
        let whole = |text| Pattern::new(text, true);
        let cases = [
            ("word", false, What::Any(part("word"))),
            ("-word", true, What::Any(part("word"))),
            ("\"two words\"", false, What::Any(part("two words"))),
            ("\"http://host:1/\"", false, What::Any(part("http://host:1/"))),
            ("\"-\"", false, What::Any(part("-"))),
            (r#""a \"b\" \\ \n""#, false, What::Any(part(r#"a "b" \ \n"#))),
            ("STATUS:Failed", false, What::Text(Field::Status, part("failed"))),
            ("stage:\"a b\"", false, What::Text(Field::Stage, part("a b"))),
            ("error:a:b", false, What::Text(Field::Error, part("a:b"))),
            ("rollout:=7", false, What::Text(Field::Rollout, whole("7"))),
            ("rollout:\"=7\"", false, What::Text(Field::Rollout, part("=7"))),
            ("-is:stuck", true, What::Is(Is::Stuck)),
            ("age:>60s", false, What::Measure(Measure::Age, Comparison::More, 60e9)),
            (
                "duration:<=1.5min",
                false,
                What::Measure(Measure::Duration, Comparison::AtMost, 90e9),
            ),
            ("stage-age:>=2µs", false, What::Measure(Measure::StageAge, Comparison::AtLeast, 2e3)),
            ("reward:<-0.5", false, What::Measure(Measure::Reward, Comparison::Less, -0.5)),
            ("step:21", false, What::Measure(Measure::Step, Comparison::Equal, 21.0)),
            (
                "attr:http.url=\"a b\"",
                false,
                What::Attribute { key: "http.url".into(), value: Some(part("a b")) },
            ),
            ("attr:k==v", false, What::Attribute { key: "k".into(), value: Some(whole("v")) }),
            ("attr:k", false, What::Attribute { key: "k".into(), value: None }),
        ];
        for (text, is_negated, what) in cases {
            assert_eq!(one(text), (is_negated, what), "{text}");
        }
        assert_eq!(Search::parse("  ").expect("it is empty").terms, []);
        assert_eq!(Search::parse("a -b \"c d\" step:1").expect("it is right").terms.len(), 4);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_what_would_be_right() {
        let cases = [
            ("ok foo:bar", "`foo:` at 4 is not known; known are rollout:, rollout_id:, group:"),
            ("http://host", "searched in quotes: \"http:…\""),
            ("größe \"open", "the quote at 7 is not closed"),
            ("status:", "`status:` at 1 needs something"),
            ("a - b", "the minus at 3 needs a term"),
            ("reward:>x", "`x` at 9 is no number; say `reward:>1`"),
            ("step:nan", "`nan` at 6 is no number"),
            ("age:>60", "`60` at 6 is no time to compare with; say `age:>60s`"),
            ("age:60s", "`60s` at 5 is no time to compare with"),
            ("age:>1parsec", "units are ns, us, µs, ms, s, min, h, d"),
            ("is:late", "`is:late` at 4 is not known; known are is:open, is:stuck"),
            ("attr:=x", "`attr:` at 1 needs something"),
        ];
        for (text, expected) in cases {
            let error = Search::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(Search::parse(&"a".repeat(2001)), Err(SearchError::TooLong));
        assert_eq!(Search::parse(&"a ".repeat(41)), Err(SearchError::TooLong));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = Search::parse(&text);
        }

        #[test]
        fn any_mixture_of_its_signs_is_read_or_refused(
            text in "(age|attr|is|stage|x)?[:\"\\\\<>=\\- aµ1s.]{0,20}"
        ) {
            let _ = Search::parse(&text);
        }

        #[test]
        fn every_text_can_be_searched_in_quotes(text in "\\PC{0,40}") {
            let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(one(&quoted), (false, What::Any(part(&text))));
            prop_assert_eq!(
                one(&format!("-stage:{quoted}")).1,
                What::Text(Field::Stage, part(&text))
            );
        }
    }
}

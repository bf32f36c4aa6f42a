//! What the user asks for, in words: "a seven", "7", "the digit 3".

use thiserror::Error;

const NAMES: [&str; 10] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// Words that may stand around the digit.
const FILLERS: [&str; 16] = [
    "a",
    "an",
    "the",
    "digit",
    "number",
    "numeral",
    "figure",
    "draw",
    "paint",
    "show",
    "me",
    "picture",
    "image",
    "of",
    "handwritten",
    "please",
];

const ACCEPTED: &str = "write one digit, such as \"7\", \"seven\", \"a seven\" or \"the digit 7\"";

/// The longest piece of a prompt that an error repeats, in characters.
const QUOTED: usize = 40;

/// Why a prompt is no digit. The texts say what is accepted.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum PromptError {
    #[error("the prompt names no digit: {ACCEPTED}")]
    NoDigit,
    #[error("the prompt names several digits ({}): {ACCEPTED}, and ask once for each", list(.0))]
    Several(Vec<usize>),
    #[error("{0:?} is not one of the digits 0 to 9: {ACCEPTED}")]
    OutOfRange(String),
    #[error("cannot draw {0:?}, only the digits 0 to 9: {ACCEPTED}")]
    Unknown(String),
}

/// The digit that `prompt` asks for.
pub fn parse(prompt: &str) -> Result<usize, PromptError> {
    let mut digits = Vec::new();
    for word in prompt.split(|c: char| c.is_whitespace() || ",;.!?\"'".contains(c)) {
        let word = word.to_lowercase();
        if let Some(digit) = digit(&word) {
            digits.push(digit);
        } else if word.chars().any(|c| c.is_numeric()) {
            return Err(PromptError::OutOfRange(word.chars().take(QUOTED).collect()));
        } else if !word.is_empty() && word != "and" && !FILLERS.contains(&word.as_str()) {
            return Err(PromptError::Unknown(word.chars().take(QUOTED).collect()));
        }
    }
    match digits[..] {
        [] => Err(PromptError::NoDigit),
        [digit] => Ok(digit),
        _ => Err(PromptError::Several(digits)),
    }
}

fn digit(word: &str) -> Option<usize> {
    match word.as_bytes() {
        [byte @ b'0'..=b'9'] => Some(usize::from(byte - b'0')),
        _ => NAMES.iter().position(|name| *name == word),
    }
}

fn list(digits: &[usize]) -> String {
    let names: Vec<String> = digits.iter().take(10).map(ToString::to_string).collect();
    names.join(", ") + if digits.len() > 10 { ", .." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_may_be_a_figure_or_a_word_with_politeness_around_it() {
        for prompt in ["7", "seven", "a seven", "A SEVEN!", "the digit 7", "  \"seven\"  "] {
            assert_eq!(parse(prompt), Ok(7), "{prompt}");
        }
        assert_eq!(parse("draw me a picture of the number eight, please."), Ok(8));
    }

    #[test]
    fn every_digit_has_its_word() {
        for (digit, name) in NAMES.iter().enumerate() {
            assert_eq!(parse(name), Ok(digit));
            assert_eq!(parse(&digit.to_string()), Ok(digit));
        }
    }

    #[test]
    fn a_prompt_without_a_digit_says_what_to_write() {
        for prompt in ["", "  ", "a", "the digit"] {
            assert_eq!(parse(prompt), Err(PromptError::NoDigit), "{prompt}");
        }
        let text = PromptError::NoDigit.to_string();
        assert!(text.contains("such as \"7\", \"seven\""), "{text}");
    }

    #[test]
    fn several_digits_are_named() {
        assert_eq!(parse("3 and 5"), Err(PromptError::Several(vec![3, 5])));
        assert_eq!(parse("one two three"), Err(PromptError::Several(vec![1, 2, 3])));
        let text = parse("3 and 5").unwrap_err().to_string();
        assert!(text.starts_with("the prompt names several digits (3, 5): "), "{text}");
    }

    #[test]
    fn numbers_that_are_no_digit_are_named() {
        for (prompt, named) in [("a 12", "12"), ("-7", "-7"), ("٧", "٧"), ("7th", "7th")] {
            assert_eq!(parse(prompt), Err(PromptError::OutOfRange(named.into())), "{prompt}");
        }
    }

    #[test]
    fn other_things_are_named_and_control_characters_escaped() {
        assert_eq!(parse("a horse"), Err(PromptError::Unknown("horse".into())));
        let text = parse("\u{1b}[31mred").unwrap_err().to_string();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(parse(&"x".repeat(10_000)).unwrap_err().to_string().len() < 200);
    }
}

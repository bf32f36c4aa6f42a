//! The command line of the comparison.

use super::Size;
use std::path::PathBuf;

/// `rivals [--quick] [--case NAME].. [--json FILE] [--svg FILE] [--docs]`
#[derive(Debug)]
pub(crate) struct Options {
    pub(super) size: Size,
    /// All, if there are none.
    cases: Vec<String>,
    pub(super) json: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
    /// Whether the figures of this repository's documentation are replaced.
    pub(super) docs: bool,
}

pub(crate) const USAGE: &str =
    "rivals [--quick] [--case NAME].. [--json FILE] [--svg FILE] [--docs]";

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options =
            Options { size: Size::FULL, cases: Vec::new(), json: None, svg: None, docs: false };
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next().map(|value| value.to_string());
                value.ok_or_else(|| format!("{argument} needs a value: {USAGE}"))
            };
            match argument {
                "--quick" => options.size = Size::QUICK,
                "--docs" => options.docs = true,
                "--case" => options.cases.push(value()?),
                "--json" => options.json = Some(value()?.into()),
                "--svg" => options.svg = Some(value()?.into()),
                _ => return Err(format!("{argument:?} is no option: {USAGE}")),
            }
        }
        let unknown = options.cases.iter().find(|case| super::Case::named(case).is_none());
        match unknown {
            None => Ok(options),
            Some(case) => {
                let all: Vec<String> = super::CASES.iter().map(ToString::to_string).collect();
                Err(format!("no case {case:?}; there are {}", all.join(", ")))
            }
        }
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|wanted| wanted == case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_option_or_case_is_refused_by_name() {
        let refusal = |arguments: &[&str]| Options::parse(arguments).expect_err("it is wrong");
        assert!(refusal(&["--fast"]).starts_with("\"--fast\" is no option"));
        assert!(refusal(&["--json"]).starts_with("--json needs a value"));
        assert!(refusal(&["--case", "none"]).starts_with("no case \"none\"; there are span/10, "));
    }

    #[test]
    fn only_the_cases_that_were_named_are_wanted() {
        let options = Options::parse(&["--case", "tail", "--case", "flood"]).expect("cases");
        assert!(options.wants("tail") && options.wants("flood") && !options.wants("span/10"));
        assert!(Options::parse(&[]).expect("no options").wants("span/10"));
    }
}

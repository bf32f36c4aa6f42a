//! The limits: a checked-in table, one line for each case.

use std::collections::BTreeMap;

/// What a case may add per span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) instructions: f64,
    /// Where the limit is to go, if that is known; only shown.
    pub(crate) target: Option<f64>,
    /// Allocations on the thread that records.
    pub(crate) here: f64,
    /// Allocations on all threads.
    pub(crate) everywhere: f64,
}

/// All limits, by case.
#[derive(Debug)]
pub(crate) struct Limits(BTreeMap<String, Limit>);

impl Limits {
    /// Where they stand.
    pub(crate) const FILE: &str = "benches/limits.txt";

    /// Reads the table, as it was when this was built.
    pub(crate) fn read() -> Result<Limits, String> {
        Limits::parse(include_str!("../../limits.txt"))
    }

    fn parse(table: &str) -> Result<Limits, String> {
        let lines = table.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let mut limits = BTreeMap::new();
        for (at, line) in lines {
            let wrong = || {
                let form = "case | instructions | target | on the thread | in all";
                format!("{}, line {}: not of the form `{form}`: {line}", Limits::FILE, at + 1)
            };
            let mut columns = line.split('|').map(str::trim);
            let name = columns.next().unwrap_or_default().to_owned();
            let columns: Vec<&str> = columns.collect();
            let [instructions, target, here, everywhere] = columns[..] else { return Err(wrong()) };
            let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
            let limit = Limit {
                instructions: number(instructions)?,
                target: if target == "-" { None } else { Some(number(target)?) },
                here: number(here)?,
                everywhere: number(everywhere)?,
            };
            if limits.insert(name.clone(), limit).is_some() {
                return Err(format!("{}: two lines for {name}", Limits::FILE));
            }
        }
        Ok(Limits(limits))
    }

    /// The limit of a case.
    pub(crate) fn of(&self, name: &str) -> Option<Limit> {
        self.0.get(name).copied()
    }

    /// Complaints about lines for cases that there are not.
    pub(crate) fn unknown(&self, cases: Vec<&str>) -> Vec<String> {
        let unknown = self.0.keys().filter(|name| !cases.contains(&name.as_str()));
        unknown.map(|name| format!("{}: there is no case {name:?}", Limits::FILE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_case_and_four_numbers() {
        let limits =
            Limits::parse("# comment\n\nambient | 60.5 | 60 | 0 | 0.01\n").expect("a table");
        let limit = Limit { instructions: 60.5, target: Some(60.0), here: 0.0, everywhere: 0.01 };
        assert_eq!(limits.of("ambient"), Some(limit));
        let limits = Limits::parse("ambient | 60.5 | - | 0 | 0.01").expect("a table");
        assert_eq!(limits.of("ambient"), Some(Limit { target: None, ..limit }));
        assert_eq!(limits.of("another"), None);
        assert_eq!(limits.unknown(vec!["ambient"]), [""; 0]);
        assert_eq!(limits.unknown(vec![]), ["benches/limits.txt: there is no case \"ambient\""]);
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        for line in ["ambient | 60", "ambient | 60 | 60 | 0 | none", "a | 1 | 2 | 3 | 4 | 5"] {
            let problem = Limits::parse(line).expect_err("it is wrong");
            assert!(problem.starts_with("benches/limits.txt, line 1:"), "{problem}");
        }
        let twice = Limits::parse("a | 1 | 1 | 0 | 0\na | 2 | 2 | 0 | 0");
        assert_eq!(twice.expect_err("two lines"), "benches/limits.txt: two lines for a");
    }

    #[test]
    fn the_table_of_this_repository_can_be_read() {
        Limits::read().expect("a table");
    }
}

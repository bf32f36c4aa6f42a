//! Writes the result: as JSON, as a picture, and into this repository's documentation.

use super::options::Options;
use super::row::Report;
use super::{svg, table};
use crate::machine;
use std::fs;
use std::path::Path;

pub(super) fn write(
    options: &Options,
    report: &Report,
    machine: &[(String, String)],
) -> Result<(), String> {
    let json = || format!("{:#}\n", report.to_json(machine));
    let picture = || svg::picture(report, &caption(report, machine));
    if let Some(path) = &options.json {
        save(path, &json())?;
    }
    if let Some(path) = &options.svg {
        save(path, &picture())?;
    }
    if options.docs {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let described = machine::text(machine);
        let tables = format!("{described}\n\n{}", table::tables(report));
        replace_in(&repository.join("docs/performance.md"), &tables)?;
        if machine::profile_name() == "release" {
            save(&repository.join("docs/rivals.json"), &json())?;
            save(&repository.join("docs/rivals.svg"), &picture())?;
            let summary = format!("{}\nMeasured on {described}.", table::summary(report));
            replace_in(&repository.join("README.md"), &summary)?;
        }
    }
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn caption(report: &Report, machine: &[(String, String)]) -> String {
    let value = |what: &str| {
        let found = machine.iter().find(|(name, _)| name == what);
        found.map_or("", |(_, value)| value.as_str())
    };
    format!(
        "F = two clock reads and a store = {:.1} ns. {}. Shorter is better; each panel has its own scale.",
        report.f_ns,
        value("processor")
    )
}

/// Writes a text between the marks of a page.
fn replace_in(page: &Path, text: &str) -> Result<(), String> {
    let problem = |problem: String| format!("{}: {problem}", page.display());
    let old = fs::read_to_string(page).map_err(|error| problem(error.to_string()))?;
    let new = replaced(&old, &machine::profile_name(), text).map_err(problem)?;
    save(page, &new)
}

/// The page with another text between the marks of this profile.
fn replaced(page: &str, profile: &str, text: &str) -> Result<String, String> {
    let begin = format!("<!-- rivals, {profile}: begin -->");
    let end = format!("<!-- rivals, {profile}: end -->");
    let Some(((before, _), (_, after))) = page.split_once(&begin).zip(page.split_once(&end)) else {
        return Err(format!("lacks {begin} or {end}"));
    };
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_of_the_profile_is_replaced() {
        let page = |text| {
            format!(
                "# Page\n\n<!-- rivals, lto: begin -->\n\n{text}\n\n<!-- rivals, lto: end -->\n\nThe rest.\n"
            )
        };
        assert_eq!(replaced(&page("old"), "lto", "new\n"), Ok(page("new")));
        assert_eq!(
            replaced(&page("old"), "release", "new"),
            Err("lacks <!-- rivals, release: begin --> or <!-- rivals, release: end -->".to_owned())
        );
    }
}

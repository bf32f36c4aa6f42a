//! Writes the result: as JSON, as a picture, and into this repository's documentation.

use super::options::Options;
use super::row::Report;
use super::{svg, table};
use crate::machine;
use std::fs;
use std::path::Path;

/// Between these the documentation's tables stand.
const BEGIN: &str = "<!-- rivals: begin -->";
const END: &str = "<!-- rivals: end -->";

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
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        save(&docs.join("rivals.json"), &json())?;
        save(&docs.join("rivals.svg"), &picture())?;
        let page = docs.join("performance.md");
        let text =
            fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
        let tables = format!("{}\n\n{}", machine::text(machine), table::tables(report));
        save(&page, &replaced(&text, &tables)?)?;
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

/// The page with other tables between its marks.
fn replaced(page: &str, tables: &str) -> Result<String, String> {
    let parts = page.split_once(BEGIN).zip(page.split_once(END));
    let Some(((before, _), (_, after))) = parts else {
        return Err(format!("docs/performance.md lacks {BEGIN} or {END}"));
    };
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", tables.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("# Page\n\n{BEGIN}\nold\n{END}\n\nThe rest.\n");
        let new = replaced(&page, "new\n").expect("the marks are there");
        assert_eq!(new, format!("# Page\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe rest.\n"));
        assert_eq!(replaced(&new, "new\n").expect("the marks are there"), new);
        assert!(replaced("# Page", "new").is_err());
    }
}

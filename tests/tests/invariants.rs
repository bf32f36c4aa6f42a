//! `docs/invariants.md` tells the truth: what it names is there, and what should be in it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document() -> String {
    fs::read_to_string(repository().join("docs/invariants.md")).expect("the document is there")
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Every Rust file below a directory, as a path from the repository.
fn sources(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(repository().join(&directory)).expect("a directory of ours");
        for entry in entries.map(|entry| entry.expect("an entry can be read")) {
            let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
            match entry.file_type().expect("a type").is_dir() {
                true => directories.push(path),
                false if path.ends_with(".rs") => found.push(path),
                false => {}
            }
        }
    }
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_default()
}

/// Whether the code, comments aside, has a word of this kind.
fn has_unsafe(text: &str) -> bool {
    let code: Vec<&str> = text.lines().filter_map(|line| line.split("//").next()).collect();
    let code = code.join(" ");
    let kinds = ["{", "fn ", "impl ", "impl<", "extern ", "trait "];
    code.match_indices("unsafe ").any(|(at, word)| {
        let rest = code[at + word.len()..].trim_start();
        kinds.iter().any(|kind| rest.starts_with(kind))
    })
}

#[test]
fn every_test_and_file_that_is_named_exists() {
    let document = document();
    let mut tests = 0;
    for name in quoted(&document).filter(|name| name.contains(".rs")) {
        let (path, test) = name.split_once("::").map_or((name, None), |(p, t)| (p, Some(t)));
        let text = read(path);
        assert!(!text.is_empty(), "there is no {path}");
        if let Some(test) = test {
            tests += 1;
            let is_there = text.contains(&format!("fn {test}("));
            assert!(is_there, "{path} has no test {test}");
        }
    }
    assert!(tests > 40, "only {tests} tests are named: is the reader blind?");
}

#[test]
fn every_model_is_named() {
    let document = document();
    let named: BTreeSet<&str> = quoted(&document).collect();
    let mut models = 0;
    for path in sources("models/src/models") {
        let text = read(&path);
        for (at, attribute) in text.match_indices("#[test]") {
            let rest = text[at + attribute.len()..].trim_start().strip_prefix("fn ");
            let test = rest.and_then(|rest| rest.split('(').next()).expect("a test is a function");
            models += 1;
            assert!(named.contains(&*format!("{path}::{test}")), "{path}::{test} guards nothing");
        }
    }
    assert!(models > 20, "only {models} models were found");
}

#[test]
fn every_file_with_unsafe_says_its_idea() {
    let document = document();
    let (_, table) = document.split_once("## Where `unsafe` is").expect("the table is there");
    let told: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter(|(_, idea)| idea.trim_end_matches(" |").len() > 10)
        .map(|(path, _)| path)
        .collect();
    let crates = fs::read_dir(repository()).expect("the repository can be listed");
    let crates = crates.map(|entry| entry.expect("an entry can be read").file_name());
    let crates = crates.map(|name| name.to_string_lossy().into_owned());
    // What measures and tests may do as it likes.
    let crates = crates.filter(|name| !["tests", "ui-tests", "benches", "fuzz"].contains(&&**name));
    let folders = crates.map(|name| format!("{name}/src"));
    let folders = folders.filter(|folder| repository().join(folder).is_dir());
    let files: Vec<String> = folders.flat_map(|folder| sources(&folder)).collect();
    let found: BTreeSet<&str> =
        files.iter().filter(|path| has_unsafe(&read(path))).map(String::as_str).collect();
    assert!(found.len() > 10, "only {} files were found", found.len());
    let untold: Vec<_> = found.difference(&told).collect();
    assert!(untold.is_empty(), "docs/invariants.md does not say what unsafe is for in {untold:?}");
    let gone: Vec<_> = told.difference(&found).collect();
    assert!(gone.is_empty(), "docs/invariants.md names files without unsafe: {gone:?}");
}

#[test]
fn unsafe_is_seen_in_code_and_not_in_comments() {
    assert!(has_unsafe("let x = unsafe { y };"));
    assert!(has_unsafe("unsafe\nimpl Send for X {}"));
    assert!(!has_unsafe("// an unsafe { block }\nlet unsafe_code = 1;"));
}

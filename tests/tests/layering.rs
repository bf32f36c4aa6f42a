//! The flow goes one way: no module imports what lies after it. `docs/architecture.md` draws it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of the runtime in the order of the flow.
const FLOW: &[&str] = &["stage", "request", "record", "stats", "collect", "export"];
/// Lies between the caller's threads and the background, and may be used from both sides.
const BOUNDARY: &str = "chunk";
/// Used by all, using only each other.
const LEAVES: &[&str] = &["clock", "complain", "config", "error", "files", "signals", "sync"];
/// Put the parts together, and are imported by none of them.
const TOP: &[&str] = &[
    "lib",
    "adopt",
    "fork",
    "init",
    "integrations",
    "macros",
    "private",
    "recover",
    "run",
    "testing",
    "viewer",
];

/// Whether a module may name another one of the runtime.
fn may_import(module: &str, other: &str) -> bool {
    let place = |module: &str| FLOW.iter().position(|name| *name == module);
    if module == other || LEAVES.contains(&other) {
        return true;
    }
    if LEAVES.contains(&module) || module == BOUNDARY {
        return false;
    }
    match (place(module), place(other)) {
        (Some(here), Some(there)) => there < here,
        (Some(_), None) => other == BOUNDARY,
        (None, _) => TOP.contains(&module),
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust file below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).expect("the directory is in the repository");
        for path in entries.map(|entry| entry.expect("an entry can be read").path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The code of a file without comments and without its tests, which may look at everything.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that follow `crate::`, also inside braces: `crate::{clock, chunk::{Slot, Pool}}`.
fn named_modules(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c == '$' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(list_members(list)),
            None => found.push(identifier(rest)),
        }
    }
    found
}

/// The first identifier of each member of a brace's content.
fn list_members(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut members = vec![String::new()];
    for character in list.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => members.push(String::new()),
            _ => {}
        }
        if let Some(member) = members.last_mut() {
            member.push(character);
        }
    }
    let members =
        members.iter().map(|member| identifier(member.trim_start_matches([',', ' ', '\n'])));
    members.filter(|member| !member.is_empty()).collect()
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The module of the runtime that a file belongs to: `record` for `src/record/span.rs`.
fn module_of(source: &Path, root: &Path) -> String {
    let path = source.strip_prefix(root).expect("the file lies below its crate");
    let first = path.iter().next().expect("a path has a first part");
    first.to_string_lossy().trim_end_matches(".rs").to_owned()
}

#[test]
fn a_module_of_the_runtime_imports_only_what_lies_before_it() {
    let root = repository().join("runtime/src");
    let modules: Vec<String> = sources(&root).iter().map(|path| module_of(path, &root)).collect();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for source in sources(&root) {
        let module = module_of(&source, &root);
        let known = [FLOW, LEAVES, TOP, &[BOUNDARY]].iter().any(|group| group.contains(&&*module));
        assert!(known, "{} belongs to no part of the flow", source.display());
        let text = fs::read_to_string(&source).expect("a source is text");
        for other in named_modules(&code(&text)).iter().filter(|other| modules.contains(other)) {
            checked += 1;
            if !may_import(&module, other) {
                wrong.push(format!("{} imports {other}", source.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} imports were found: is the reader blind?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The modules of the viewer in the order of its flow.
const VIEW: &[&str] = &["store", "source", "rules", "query", "serve", "cli", "lib", "main"];

#[test]
fn a_module_of_the_viewer_imports_only_what_lies_before_it() {
    let root = repository().join("viewer/src");
    let place = |module: &str| VIEW.iter().position(|name| *name == module);
    let mut checked = 0;
    let mut wrong = Vec::new();
    for source in sources(&root) {
        let module = module_of(&source, &root);
        let here = place(&module);
        assert!(here.is_some(), "{} belongs to no part of the flow", source.display());
        let text = fs::read_to_string(&source).expect("a source is text");
        for other in named_modules(&code(&text)).iter().filter(|other| place(other).is_some()) {
            checked += 1;
            if place(other) > here {
                wrong.push(format!("{} imports {other}", source.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} imports were found: is the reader blind?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_import_against_the_flow_is_seen() {
    assert!(may_import("collect", "record") && !may_import("record", "collect"));
    assert!(may_import("record", "chunk") && !may_import("chunk", "record"));
    assert!(may_import("stage", "clock") && !may_import("clock", "stage"));
    assert!(!may_import("export", "init") && may_import("init", "export"));
    let text = "use crate::{clock, chunk::{Slot, Pool}, export as out}; // crate::hidden\n\
                x(crate::sync::new())";
    let code = code(text);
    assert_eq!(named_modules(&code), ["clock", "chunk", "export", "sync"]);
    assert!(named_modules("$crate::collect::x, my_crate::export").is_empty());
}

#[test]
fn the_contract_knows_nothing_of_who_uses_it_and_the_recorder_nothing_of_networks() {
    let above = ["stagetrace v", "stagetrace-macros"];
    assert_eq!(dependencies_among("stagetrace-wire", &above), Vec::<String>::new());
    let network =
        ["tokio v", "hyper v", "tonic v", "axum v", "reqwest v", "h2 v", "rustls v", "wgpu v"];
    assert_eq!(dependencies_among("stagetrace", &network), Vec::<String>::new());
    // What is not found above would be found if it were there.
    assert_eq!(dependencies_among("stagetrace", &["stagetrace-wire"]).len(), 1);
}

#[test]
fn the_collector_knows_the_contract_and_not_the_recorder_and_makes_no_connections_of_its_own() {
    let recorder = ["stagetrace v", "stagetrace-macros", "opentelemetry", "wgpu v"];
    assert_eq!(dependencies_among("stagetrace-collector", &recorder), Vec::<String>::new());
    let more = ["tonic v", "axum v", "reqwest v", "rustls v", "openssl"];
    assert_eq!(dependencies_among("stagetrace-collector", &more), Vec::<String>::new());
    assert_eq!(
        dependencies_among("stagetrace-collector", &["stagetrace-wire", "hyper v"]).len(),
        2
    );
}

#[test]
fn the_viewer_knows_what_leaves_a_process_and_not_who_recorded_it() {
    let recorder = ["stagetrace v", "stagetrace-macros", "opentelemetry", "wgpu v"];
    assert_eq!(dependencies_among("stagetrace-viewer", &recorder), Vec::<String>::new());
    assert_eq!(dependencies_among("stagetrace-viewer", &["stagetrace-wire", "clap v"]).len(), 2);
}

/// Which of these a crate depends on with its default features, at any depth.
fn dependencies_among(package: &str, names: &[&str]) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none"])
        .args(["--no-dedupe", "--locked"])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout);
    // The first line is the package itself.
    let mut found: Vec<String> = tree.lines().skip(1).map(str::to_owned).collect();
    found.retain(|line| names.iter().any(|name| line.starts_with(name)));
    found.sort();
    found.dedup();
    found
}

//! What the README promises is what the repository holds.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_readme_shows_the_hello_example_as_it_is() {
    let example = read("examples/hello.rs");
    let code: Vec<&str> = example.lines().skip_while(|line| line.starts_with("//!")).collect();
    let code = code.join("\n");
    assert!(code.contains("fn main"), "{code}");
    assert!(read("README.md").contains(code.trim()), "the README shows another hello.rs");
}

#[test]
fn the_readme_shows_the_headers_example_as_it_is() {
    let (readme, example) = (read("README.md"), read("examples/headers.rs"));
    let section = readme.split("### Requests from elsewhere").nth(1).expect("there is the section");
    let code = section.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let (imports, functions) = code.and_then(|code| code.split_once("\n\n")).expect("it has code");
    assert!(functions.contains("from_headers") && functions.contains("inject"), "{functions}");
    for part in [imports, functions] {
        assert!(example.contains(part), "the example lacks\n{part}");
    }
}

#[test]
fn the_collector_s_readme_shows_an_example_that_its_doctests_run() {
    let tested: String = read("collector/src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .filter(|line| !line.starts_with("# "))
        .flat_map(|line| [line, "\n"])
        .collect();
    let readme = read("collector/README.md");
    let code = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let code = code.expect("it has code");
    assert!(code.contains("Collector::start()") && tested.contains(code), "{code}");
}

#[test]
fn both_tables_of_features_have_every_feature() {
    let manifest = read("runtime/Cargo.toml");
    let features = manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next());
    let features = features.expect("the crate has features").lines();
    let names = features.filter_map(|line| line.split_once(" = [")).map(|(name, _)| name);
    let public: Vec<&str> =
        names.filter(|name| !name.starts_with('_') && *name != "default").collect();
    assert!(public.contains(&"otlp-http") && public.contains(&"prometheus"), "{public:?}");
    for (page, row) in [("README.md", "| `"), ("runtime/src/lib.rs", "//! | `")] {
        let text = read(page);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(row)).collect();
        for name in &public {
            let quoted = format!("`{name}`");
            let has_row = rows
                .iter()
                .any(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&quoted)));
            assert!(has_row, "{page} has no row of {quoted}");
        }
    }
}

#[test]
fn the_readme_names_the_oldest_rust_that_the_libraries_need() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.expect("the workspace has a rust-version").trim_matches('"');
    assert!(read("README.md").contains(&format!("The libraries need Rust {version}.")));
}

#[test]
fn ci_runs_the_two_commands_of_the_readme() {
    let (readme, script) = (read("README.md"), read(".ci/run"));
    for command in
        ["cargo run --release -p diffusion -- --view \"a seven\"", "cargo test --workspace"]
    {
        assert!(readme.contains(command), "the README lacks {command}");
        assert!(script.contains(&format!(" {command}\n")), ".ci/run lacks {command}");
    }
}

#[test]
fn files_that_the_pages_link_to_exist() {
    for page in ["README.md", "CONTRIBUTING.md", "collector/README.md", "docs/architecture.md"] {
        let directory = Path::new(page).parent().unwrap_or(Path::new(""));
        let text = read(page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            let path = repository().join(directory).join(link);
            assert!(path.exists(), "{page} links to {link}");
        }
    }
}

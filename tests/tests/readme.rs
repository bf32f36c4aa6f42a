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
fn the_readme_names_the_oldest_rust_that_the_libraries_need() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.expect("the workspace has a rust-version").trim_matches('"');
    assert!(read("README.md").contains(&format!("The libraries need Rust {version}.")));
}

#[test]
fn ci_runs_the_two_commands_of_the_readme() {
    let (readme, script) = (read("README.md"), read(".ci/run"));
    for command in ["cargo run --release -p diffusion -- \"a seven\"", "cargo test --workspace"] {
        assert!(readme.contains(command), "the README lacks {command}");
        assert!(script.contains(&format!(" {command}\n")), ".ci/run lacks {command}");
    }
}

#[test]
fn files_that_the_pages_link_to_exist() {
    for page in ["README.md", "CONTRIBUTING.md", "docs/architecture.md"] {
        let directory = Path::new(page).parent().unwrap_or(Path::new(""));
        let text = read(page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            let path = repository().join(directory).join(link);
            assert!(path.exists(), "{page} links to {link}");
        }
    }
}

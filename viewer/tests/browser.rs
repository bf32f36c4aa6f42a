//! The pages in a real browser: every page is opened and clicked through, and must neither be empty nor
//! say an error. The steps are in `browser/*.test.mjs`; pictures go to `target/tmp/pages`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `.ci/peers/install` puts what drives a browser and what checks types.
fn tools() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let tools = target.join("peers/browser/node_modules");
    if !tools.exists() {
        println!(
            "skipped: no playwright-core; .ci/peers/install installs it where there is Node.js"
        );
        return None;
    }
    Some(tools)
}

fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&paths).flat_map(|path| names.map(|name| path.join(name)));
    let found = all.into_iter().find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no Chromium");
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().expect("Node.js can be started");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    print!("{}", said[0]);
}

#[test]
fn the_scripts_have_no_errors_of_types() {
    let Some(tools) = tools() else { return };
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
    run(Command::new("node").arg(tools.join("typescript/bin/tsc")).args(["-p", pages]));
}

#[test]
fn every_page_can_be_clicked_through_without_an_error() {
    let (Some(tools), Some(browser)) = (tools(), browser()) else { return };
    let steps = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser");
    let steps = std::fs::read_dir(steps).expect("the steps are there");
    let steps = steps.map(|file| file.expect("a file is listed").path());
    let mut steps: Vec<_> =
        steps.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    steps.sort();
    assert!(!steps.is_empty());
    run(Command::new("node")
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(steps)
        .env("PLAYWRIGHT", tools.join("playwright-core/index.mjs"))
        .env("CHROMIUM", browser)
        .env("VIEWER", env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .env("CASES", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases"))
        .env("PICTURES", Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages")));
}

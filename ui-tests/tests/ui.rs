//! What a user sees when wrong: each file in `fail/` is a mistake, beside what the compiler says.
//!
//! After a change of a message, `TRYBUILD=overwrite cargo test -p stagetrace-ui-tests --test ui`
//! writes the new texts; read them in the diff.

use std::{env, error::Error, fs, process::Command};

#[test]
fn mistakes_are_explained_where_they_are() -> Result<(), Box<dyn Error>> {
    assert_pinned_compiler()?;
    trybuild::TestCases::new().compile_fail("fail/*.rs");
    Ok(())
}

/// The compiler's own words differ between versions, so another one is a failure and no reason to skip.
fn assert_pinned_compiler() -> Result<(), Box<dyn Error>> {
    let pin = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../rust-toolchain.toml"))?;
    let pinned = pin
        .lines()
        .find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"'))
        .ok_or("rust-toolchain.toml names no channel")?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    let version = String::from_utf8(output.stdout)?;
    assert!(
        version.starts_with(&format!("rustc {pinned} ")),
        "the texts in `fail/` are those of rustc {pinned}, but this is {version}: run this test with the \
         toolchain that rust-toolchain.toml pins"
    );
    Ok(())
}

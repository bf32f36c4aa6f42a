//! `stagetrace-viewer`: see `--help`, and `docs/viewer.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    stagetrace_viewer::cli::main()
}

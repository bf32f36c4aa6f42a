//! Runs the program as users do, and reads what it left.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::span::Span;

/// What the program did.
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The program, in an empty directory of its own.
pub struct Program {
    dir: PathBuf,
    command: Command,
}

impl Program {
    /// `test` names the directory, so it must be the name of one test.
    pub fn new(test: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_diffusion"));
        command.current_dir(&dir).env("NODEVICE_SELECT", "1");
        Program { dir, command }
    }

    /// Hides every Vulkan driver from it.
    pub fn without_adapter(mut self) -> Self {
        let nowhere = "/nonexistent";
        self.command.env("VK_DRIVER_FILES", nowhere).env("VK_ICD_FILENAMES", nowhere);
        self
    }

    pub fn run(&mut self, arguments: &[&str]) -> Outcome {
        let output = self.command.args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The text of every trace file that it wrote.
    pub fn trace_text(&self) -> String {
        files_below(&self.path("traces"))
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect()
    }

    /// The spans of every trace file that it wrote.
    pub fn spans(&self) -> Vec<Span> {
        let contents = read_lines(self.trace_text().as_bytes(), &ReadOptions::default());
        let report = &contents.report;
        let bad = (report.damaged_lines, report.refused_spans, report.incomplete_line);
        assert_eq!(bad, (0, 0, None), "{report:?}");
        contents.spans
    }
}

/// Whether there is a GPU for tests, of whatever kind. CI requires one.
pub fn has_gpu() -> bool {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(desc);
    let found = pollster::block_on(instance.request_adapter(&Default::default()));
    let required = std::env::var_os("REQUIRE_GPU").is_some_and(|value| value == "1");
    match found {
        Ok(_) => true,
        Err(why) if required => panic!("REQUIRE_GPU=1, but {why}"),
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

//! Tracing of this run: started first, and read back last.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stagetrace::{FlushError, InitError, TraceConfig, TraceGuard};
use stagetrace_wire::otlp::json::{LineReader, ReadOptions};

use crate::cli::Cli;
use crate::report::Report;

/// How long the last spans may take to the disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps tracing going until [`finish`](Self::finish).
pub struct Trace {
    guard: TraceGuard,
}

impl Trace {
    pub fn start(cli: &Cli) -> Result<Self, InitError> {
        let mut config = TraceConfig::from_env()?.service_name("diffusion").level(cli.level);
        if let Some(dir) = &cli.trace_dir {
            config = config.output_dir(dir);
        }
        Ok(Trace { guard: stagetrace::init(config)? })
    }

    /// Where the trace is being written.
    pub fn dir(&self) -> Option<&Path> {
        self.guard.run_dir()
    }

    /// Stops tracing, and tells from the trace file where it is and what took how long.
    ///
    /// What went wrong with the trace is told here and fails nothing.
    pub fn finish(self) -> String {
        let dir = self.guard.run_dir().map(Path::to_path_buf);
        match self.guard.shutdown(PATIENCE) {
            Ok(stats) if stats.dropped_spans() > 0 => {
                eprintln!("diffusion: {} spans found no room in the trace", stats.dropped_spans());
            }
            Ok(_) | Err(FlushError::NotRunning) => {}
            Err(error) => eprintln!("diffusion: the trace is incomplete: {error}"),
        }
        let files = dir.as_deref().map(trace_files).unwrap_or_default();
        let Some(dir) = dir.filter(|_| !files.is_empty()) else {
            return "\nno trace was written\n".into();
        };
        match read(&files) {
            Ok(report) => format!("\n{}\ntrace: {}\n", report.table(), dir.display()),
            Err(error) => format!("\ntrace: {}, which cannot be read: {error}\n", dir.display()),
        }
    }
}

/// The files of JSON lines that this process wrote; other processes may share the directory.
fn trace_files(dir: &Path) -> Vec<PathBuf> {
    let ours = format!("-{}-", std::process::id());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(&ours) && name.ends_with(".jsonl")
    };
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(is_ours).collect()
}

fn read(files: &[PathBuf]) -> io::Result<Report> {
    let mut report = Report::default();
    for path in files {
        let mut file = File::open(path)?;
        let mut reader = LineReader::new(ReadOptions::default());
        let (mut piece, mut spans) = (vec![0; 1 << 16], Vec::new());
        loop {
            let length = file.read(&mut piece)?;
            reader.feed(&piece[..length], &mut spans);
            for span in spans.drain(..) {
                if let Some(duration) = span.duration_nano() {
                    report.add(&span.name, duration);
                }
            }
            if length == 0 {
                break;
            }
        }
    }
    Ok(report)
}

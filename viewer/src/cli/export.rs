//! `export --perfetto|--chrome|--otlp|--html PATH…`

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Failure, Input, Loaded, trace_id};
use crate::query::{ExportError, ExportFormat, ExportOptions, StepChoice, export, printable};
use crate::rules::StuckRule;
use crate::serve::{Live, Saved};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    format: Format,
    /// Writes this trace only, and others that are named so.
    #[arg(long = "trace", value_name = "TRACE_ID")]
    traces: Vec<String>,
    /// Writes the samples of one step of training only: its id, `latest`, or `all`.
    #[arg(long, value_name = "N|latest|all", default_value = "all", conflicts_with = "html")]
    step: String,
    /// Shows so many samples span by span in a page of `--html`.
    #[arg(long, value_name = "N", default_value_t = 200)]
    samples: usize,
    /// Writes to this file instead of the standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: Input,
}

/// What is written. One of them.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Format {
    /// Perfetto's protobuf, for ui.perfetto.dev.
    #[arg(long)]
    perfetto: bool,
    /// JSON of Chrome's trace viewer, for chrome://tracing, Perfetto and Speedscope.
    #[arg(long)]
    chrome: bool,
    /// OTLP/JSON lines, for any collector, and for this viewer.
    #[arg(long)]
    otlp: bool,
    /// One page that needs no server: all that the pages of `serve` show, and some samples span by span.
    #[arg(long)]
    html: bool,
}

impl Format {
    /// `None` for a page.
    fn chosen(&self) -> Option<ExportFormat> {
        match (self.perfetto, self.chrome, self.html) {
            (true, ..) => Some(ExportFormat::Perfetto),
            (_, true, _) => Some(ExportFormat::Chrome),
            (.., true) => None,
            _ => Some(ExportFormat::Otlp),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.format.chosen();
    let is_binary = format == Some(ExportFormat::Perfetto);
    if is_binary && arguments.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Terminal);
    }
    let ids = arguments.traces.iter().map(|text| trace_id(text));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let mut loaded = arguments.input.load()?;
    loaded.tell_losses();
    let Some(format) = format else { return write_page(arguments, loaded) };
    let find =
        |id| loaded.store.find_trace(id).ok_or_else(|| Failure::UnknownTrace(format!("{id}")));
    let options = ExportOptions {
        format,
        traces: ids.into_iter().map(find).collect::<Result<_, _>>()?,
        step: StepChoice::parse(&arguments.step),
        now: loaded.now,
    };
    let mut write = |out: &mut dyn Write| {
        export(&mut loaded.sources, &mut loaded.store, &loaded.samples, &options, out)
    };
    let exported = match &arguments.output {
        None => write(&mut BufWriter::new(io::stdout().lock()))?,
        Some(path) => {
            let failed = |error| Failure::Output { path: path.clone(), error };
            let output = Output::open(path, &arguments.input.paths).map_err(failed)?;
            let exported =
                write(&mut BufWriter::new(&output.file)).map_err(|error| match error {
                    ExportError::Write(error) => failed(error),
                    other => other.into(),
                })?;
            output.finish().map_err(failed)?;
            exported
        }
    };
    if let Some(path) = &arguments.output {
        let name = path.display().to_string();
        eprintln!("{} spans written to {}", exported.spans, printable(&name));
    }
    if exported.without_details > 0 {
        eprintln!(
            "note: {} spans lack attributes, events and links, whose files cannot be read again",
            exported.without_details
        );
    }
    Ok(())
}

/// Writes a page. Its samples are those of the traces that are named, else those that matter most.
fn write_page(arguments: &Arguments, loaded: Loaded) -> Result<(), Failure> {
    let Loaded { sources, store, samples, now, .. } = loaded;
    let live = Live::new(sources, store, samples, Some(now), StuckRule::default());
    let live = Arc::new(live);
    live.look();
    let mut saved = Saved::new(live).map_err(Failure::Thread)?;
    saved.gather(&arguments.traces, arguments.samples);
    let page = saved.page();
    let Some(path) = &arguments.output else {
        return super::print(&page);
    };
    let failed = |error| Failure::Output { path: path.clone(), error };
    let output = Output::open(path, &arguments.input.paths).map_err(failed)?;
    (&output.file).write_all(page.as_bytes()).and_then(|()| output.finish()).map_err(failed)
}

/// A file that takes its name when it is whole.
struct Output {
    file: File,
    /// What it is called until then; `None` if it is no regular file.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl Output {
    fn open(path: &Path, inputs: &[PathBuf]) -> io::Result<Self> {
        let real = |path: &Path| fs::canonicalize(path).ok();
        if real(path)
            .is_some_and(|path| inputs.iter().any(|input| real(input).as_ref() == Some(&path)))
        {
            return Err(io::Error::other("it is what is read; name another file"));
        }
        // A pipe or device is written to as it is.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(path)?;
            return Ok(Self { file, part: None, path: path.to_owned() });
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part)?;
        Ok(Self { file, part: Some(part), path: path.to_owned() })
    }

    fn finish(mut self) -> io::Result<()> {
        match self.part.take() {
            Some(part) => fs::rename(part, &self.path),
            None => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

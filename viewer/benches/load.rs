//! How long a large run takes to load, and how much memory. Run by hand:
//!
//! ```text
//! cargo bench -p stagetrace-viewer --bench load -- --samples 200000
//! ```
//!
//! Writes a run as XTuner's exporter does (about 4 KB a sample, 512 spans a line) below the temporary
//! directory, reads it, sums it up, appends to it, and removes it. `--baseline` reads it as
//! `serde_json` values instead, `--memory-limit` bounds the store (MiB), `--keep` leaves the run. Each needs a process of its own, as the peak of
//! memory is that of the process. The figures are in `docs/viewer.md`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use stagetrace_viewer::{
    Samples, Sources, Status, StepChoice, Store, StuckRule, Summary, SummaryOptions,
};

struct Options {
    samples: u64,
    baseline: bool,
    keep: bool,
    memory_limit: usize,
    only_write: bool,
    directory: PathBuf,
}

fn main() -> io::Result<()> {
    let options = options();
    fs::create_dir_all(&options.directory)?;
    let file = options.directory.join("traces.jsonl");
    if !file.exists() {
        let start = Instant::now();
        let bytes = write_run(&file, options.samples)?;
        println!("written: {} MB in {:.1} s", bytes / 1_000_000, start.elapsed().as_secs_f64());
    }
    let peak_before = peak_mb();
    match (options.only_write, options.baseline) {
        (true, _) => {}
        (false, true) => read_values(&file)?,
        (false, false) => read_run(&file, options.memory_limit)?,
    }
    println!("peak memory: {} MB (before reading: {peak_before} MB)", peak_mb());
    if !options.keep {
        fs::remove_dir_all(&options.directory)?;
    }
    Ok(())
}

fn options() -> Options {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let samples = value("--samples").and_then(|samples| samples.parse().ok()).unwrap_or(2_000);
    let directory = value("--directory").map(PathBuf::from);
    let name = format!("stagetrace-viewer-load-{samples}");
    Options {
        samples,
        baseline: has("--baseline"),
        keep: has("--keep"),
        memory_limit: value("--memory-limit").and_then(|mb| mb.parse().ok()).unwrap_or(4096) << 20,
        only_write: has("--only-write"),
        directory: directory.unwrap_or_else(|| std::env::temp_dir().join(name)),
    }
}

fn read_run(file: &Path, memory_limit: usize) -> io::Result<()> {
    let start = Instant::now();
    let mut sources = Sources::open([file]).map_err(io::Error::other)?;
    let mut store = Store::new(memory_limit);
    sources.poll(&mut store);
    let loaded = start.elapsed();
    let mut samples = Samples::default();
    samples.refresh(&mut store);
    let ranked = start.elapsed();
    let options = SummaryOptions {
        step: StepChoice::All,
        now: BEGIN + 4_000_000_000_000,
        stuck: StuckRule::default(),
    };
    let sum = |store: &Store, samples: &Samples, sources: &Sources| {
        Summary::new(store, samples, &sources.report(), &options).map_err(io::Error::other)
    };
    let summary = sum(&store, &samples, &sources)?;
    let ready = start.elapsed();
    let stats = store.stats();
    println!(
        "read in {:.2} s, samples known after {:.2} s, summed up after {:.2} s",
        loaded.as_secs_f64(),
        ranked.as_secs_f64(),
        ready.as_secs_f64()
    );
    println!(
        "{} samples, {} spans, {} MB in the store, {} damaged lines",
        summary.samples,
        stats.spans,
        stats.bytes / 1_000_000,
        summary.losses.damaged_lines
    );

    let mut appended = BufWriter::new(File::options().append(true).open(file)?);
    write_samples(&mut appended, 1 << 40, 100)?;
    appended.flush()?;
    let start = Instant::now();
    sources.poll(&mut store);
    samples.refresh(&mut store);
    let known = start.elapsed();
    sum(&store, &samples, &sources)?;
    println!(
        "100 samples appended: known after {:.1} ms, summed up after {:.1} ms",
        known.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e3
    );
    best("summed up again", || sum(&store, &samples, &sources).map(|summary| summary.samples))?;
    let latest = SummaryOptions { step: StepChoice::Latest, ..options.clone() };
    best("the latest step summed up", || {
        Summary::new(&store, &samples, &sources.report(), &latest).map_err(io::Error::other)
    })?;
    best("sorted by duration", || {
        let mut rows: Vec<_> = samples.rows().map(|row| (row.duration(), row.trace())).collect();
        rows.sort_unstable();
        Ok(rows.len())
    })?;
    best("those that failed found", || {
        Ok(samples.rows().filter(|sample| sample.status() == Status::Failed).count())
    })?;
    best("those of a step found", || {
        let step = samples.steps().first().copied();
        Ok(samples.rows().filter(|sample| sample.step(&store) == step).count())
    })?;
    println!(
        "{} MB in the store, {} MB in the index",
        store.stats().bytes / 1_000_000,
        samples.bytes() / 1_000_000
    );
    Ok(())
}

/// Prints the least time of several, as others use the machine.
fn best<R>(what: &str, mut call: impl FnMut() -> io::Result<R>) -> io::Result<()> {
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        std::hint::black_box(call()?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what} in {:.1} ms", best * 1e3);
    Ok(())
}

/// What a reader costs that makes a value of each line.
fn read_values(file: &Path) -> io::Result<()> {
    let start = Instant::now();
    let mut values = Vec::new();
    for line in BufReader::new(File::open(file)?).lines() {
        values.push(serde_json::from_str::<serde_json::Value>(&line?)?);
    }
    println!("{} lines as values in {:.2} s", values.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn write_run(file: &Path, samples: u64) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    write_samples(&mut out, 0, samples)?;
    out.into_inner()?.metadata().map(|metadata| metadata.len())
}

const BEGIN: u64 = 1_784_106_000_000_000_000;
const PER_LINE: usize = 512;

/// Writes samples with ids from `first` on. Workers, controllers and the driver write batches of their
/// own, so that a trace is spread over lines, and children come before their parents.
fn write_samples(out: &mut impl Write, first: u64, samples: u64) -> io::Result<()> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (first + 1));
    let mut batches: [Vec<String>; 3] = Default::default();
    for sample in first..first + samples {
        for (process, span) in spans(sample, &mut random) {
            batches[process].push(span);
            if batches[process].len() == PER_LINE {
                write_line(out, process, &mut batches[process])?;
            }
        }
    }
    (0..3).try_for_each(|process| write_line(out, process, &mut batches[process]))
}

fn write_line(out: &mut impl Write, process: usize, spans: &mut Vec<String>) -> io::Result<()> {
    if spans.is_empty() {
        return Ok(());
    }
    write!(
        out,
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"telemetry.sdk.language","value":{{"stringValue":"python"}}}},{{"key":"telemetry.sdk.name","value":{{"stringValue":"opentelemetry"}}}},{{"key":"telemetry.sdk.version","value":{{"stringValue":"1.45.2"}}}},{{"key":"service.instance.id","value":{{"stringValue":"00000065-0000-4000-8000-{process:012}"}}}},{{"key":"service.name","value":{{"stringValue":"xtuner-rollout"}}}},{{"key":"run.id","value":{{"stringValue":"20260715-170000-4711-ab12cd34"}}}}]}},"scopeSpans":[{{"scope":{{"name":"xtuner"}},"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )?;
    spans.clear();
    out.write_all(b"\n")
}

/// The spans of a sample: worker, controller, judger, root. One in thirty hangs in the judger, and one in
/// twenty fails in the worker.
fn spans(sample: u64, random: &mut Random) -> Vec<(usize, String)> {
    let trace = format!("{:016x}{:016x}", random.next(), random.next() | 1);
    let ids: [u64; 4] = std::array::from_fn(|_| random.next() | 1);
    let start = BEGIN + (sample % 1_000_000) * 15_000_000;
    let generate = 5_000_000_000 + random.next() % 60_000_000_000;
    let judge = 100_000_000 + random.next() % 1_000_000_000;
    let fails = random.next().is_multiple_of(20);
    let hangs = !fails && random.next().is_multiple_of(30);
    let (prompt, tokens) = (random.next() % 400, random.next() % 1024);
    let session = random.next() >> 1;
    let common = |stage: &str, path: &[&str], status: &str| {
        let path: Vec<String> =
            path.iter().map(|name| format!(r#"{{"stringValue":"{name}"}}"#)).collect();
        format!(
            r#"{{"key":"xtuner.stage","value":{{"stringValue":"{stage}"}}}},{{"key":"xtuner.span_name_path","value":{{"arrayValue":{{"values":[{}]}}}}}},{{"key":"xtuner.status","value":{{"stringValue":"{status}"}}}},{{"key":"xtuner.rollout_id","value":{{"intValue":"{sample}"}}}},{{"key":"xtuner.group_id","value":{{"intValue":"{}"}}}},{{"key":"xtuner.session_id","value":{{"intValue":"{session}"}}}},{{"key":"xtuner.task_name","value":{{"stringValue":"gsm8k"}}}},{{"key":"xtuner.producer_future_step","value":{{"intValue":"{}"}}}},{{"key":"prompt.tokens","value":{{"intValue":"{prompt}"}}}}"#,
            path.join(","),
            sample / 4,
            sample / 1024
        )
    };
    let outcome = match fails {
        true => r#",{"key":"error.message","value":{"stringValue":"Server error HttpRequestErrorType.SERVER_ERROR with message: 503 Service Unavailable"}}"#.to_owned(),
        false => format!(r#",{{"key":"finish_reason","value":{{"stringValue":"stop"}}}},{{"key":"completion.tokens","value":{{"intValue":"{tokens}"}}}}"#),
    };
    let status = if fails { "failed" } else { "completed" };
    let reward = format!(
        r#",{{"key":"reward.score","value":{{"doubleValue":{}}}}},{{"key":"reward.pass","value":{{"boolValue":{}}}}}"#,
        if tokens.is_multiple_of(2) { "1" } else { "-0.5" },
        tokens.is_multiple_of(2)
    );
    let span = |id: u64, parent: u64, name: &str, from: u64, to: u64, attributes: String| {
        let parent = match parent {
            0 => String::new(),
            parent => format!(r#""parentSpanId":"{parent:016x}","#),
        };
        format!(
            r#"{{"traceId":"{trace}","spanId":"{id:016x}",{parent}"flags":768,"name":"{name}","kind":1,"startTimeUnixNano":"{from}","endTimeUnixNano":"{to}","attributes":[{attributes}],"status":{{}}}}"#
        )
    };
    let (root, controller, worker, judger) = (
        "single_turn_agent_loop.run",
        "rollout.controller.generate",
        "rollout.worker.generate",
        "judger.run",
    );
    let [root_id, controller_id, worker_id, judger_id] = ids;
    let end = start + generate;
    let mut spans = Vec::new();
    let attributes = common(worker, &[root, controller, worker], status) + &outcome;
    spans.push((2, span(worker_id, controller_id, worker, start + 2_000, end - 2_000, attributes)));
    let attributes = common(controller, &[root, controller], status) + &outcome;
    spans.push((
        1,
        span(controller_id, root_id, controller, start + 1_000, end - 1_000, attributes),
    ));
    if !fails && !hangs {
        let attributes =
            common(judger, &[root, controller, worker, judger], status) + &outcome + &reward;
        spans.push((0, span(judger_id, root_id, judger, end, end + judge, attributes)));
    }
    if !hangs {
        let attributes =
            common(root, &[root], status) + &outcome + if fails { "" } else { &reward };
        spans.push((0, span(root_id, 0, root, start, end + judge, attributes)));
    }
    spans
}

/// Xorshift: the same run each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Most memory that the process has had, on Linux; elsewhere 0.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

//! How long the pages' questions take at a large run, and how soon what is appended is seen. Run by hand:
//!
//! ```text
//! cargo bench -p stagetrace-viewer --bench load -- --samples 200000 --only-write --keep
//! cargo bench -p stagetrace-viewer --bench answers -- --samples 200000
//! ```
//!
//! Serves the run that the first command left, asks each question 20 times by HTTP, and appends to the
//! run. The figures are in `docs/viewer.md`.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Asked of every run; others need an id of it.
const QUESTIONS: &[&str] = &[
    "state",
    "overview",
    "overview?step=latest",
    "samples?limit=200&sort=start&desc=true",
    "samples?limit=200&sort=duration&offset=199800",
    "samples?limit=200&sort=id&q=status:failed%20error:503",
    "samples?limit=200&q=12345",
    "samples?limit=200&q=stage:judger",
    "samples?limit=200&q=attr:prompt.tokens==7",
    "group?group=777",
    "step?step=latest",
    "steps",
    "processes",
    "lanes?by=worker&width=1200",
    "stages",
    "stage?stage=judger.run",
    "compare?a=step:1&b=step:2",
    "compare?a=all&b=step:2",
];

struct Viewer {
    process: Child,
    address: String,
}

impl Viewer {
    fn start(run: &Path) -> io::Result<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
            .args(["serve", "--port", "0"])
            .arg(run)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?)
            .read_line(&mut url)?;
        let address = url.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { process, address })
    }

    fn ask(&self, question: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let host = &self.address;
        write!(
            stream,
            "GET /api/{question} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
        Ok(body.to_owned())
    }

    fn peak_mb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak.unwrap_or(0) / 1000
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn main() -> io::Result<()> {
    let Some(run) = run() else {
        println!("no run is there: write one as the head of this file says");
        return Ok(());
    };
    let begun = Instant::now();
    let viewer = Viewer::start(&run)?;
    while !viewer.ask("state")?.contains(r#""now_unix_nano""#) {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("ready after {:.2} s", begun.elapsed().as_secs_f64());
    for question in QUESTIONS {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..20 {
            let asked = Instant::now();
            bytes = viewer.ask(question)?.len();
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{question:40} {median:7.1} ms, at most {worst:7.1} ms, {:6} KB", bytes / 1000);
    }
    appended(&viewer, &run)?;
    println!("peak memory: {} MB", viewer.peak_mb());
    Ok(())
}

/// From the write to the event that tells of it, and to the answer that has it.
fn appended(viewer: &Viewer, run: &Path) -> io::Result<()> {
    let events = TcpStream::connect(&viewer.address)?;
    write!(&events, "GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", viewer.address)?;
    let mut told = BufReader::new(events).lines();
    let mut next = || told.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("data:")));
    next();
    let mut first = String::new();
    BufReader::new(File::open(run)?).read_line(&mut first)?;
    let mut file = File::options().append(true).open(run)?;
    for round in 0..3 {
        let known = |id: &str| format!(r#""traceId":"{id}"#);
        let new = first.replace(&known(""), &known(&format!("f{round}")));
        // Two digits more at the begin, two less at the end.
        let new = shortened(&new, &known(&format!("f{round}")));
        let begun = Instant::now();
        file.write_all(new.as_bytes())?;
        next();
        let event = begun.elapsed();
        viewer.ask("overview")?;
        let (event, seen) = (event.as_secs_f64() * 1e3, begun.elapsed().as_secs_f64() * 1e3);
        println!(
            "{} KB appended: told after {event:.0} ms, seen after {seen:.0} ms",
            new.len() / 1000
        );
    }
    Ok(())
}

/// Takes the last two digits away of each id that begins so.
fn shortened(text: &str, begin: &str) -> String {
    let mut parts = text.split(begin);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(begin);
        out.push_str(&part[..30]);
        out.push_str(&part[32..]);
    }
    out
}

fn run() -> Option<PathBuf> {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == "--samples");
    let samples = at.and_then(|at| arguments.get(at + 1)).map_or("2000", String::as_str);
    let directory = std::env::temp_dir().join(format!("stagetrace-viewer-load-{samples}"));
    Some(directory.join("traces.jsonl")).filter(|run| run.is_file())
}

//! What a server that is away costs the application: the same requests, traced with default settings, while spans are sent
//! nowhere, to a server that takes them, and to ones that do not.
//!
//! Each runs in a process of its own, in turns; the servers are threads of the parent.

mod server;

use crate::measure::{TickRate, peak_memory, process_cpu, ticks};
use crate::peers::{DIRECTORY, Peer, Stagetrace};
use server::Server;
use stagetrace::{LogLevel, Otlp, TraceConfig, init, stats};
use std::hint::black_box;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Children of a request below its root and first child.
const CHILDREN: usize = 10;
/// Time from the beginning of one request to that of the next.
const APART: Duration = Duration::from_micros(100);
/// How long each process works, and how often each has its turn.
const LONG: Duration = Duration::from_secs(6);
const TURNS: usize = 3;

/// What is printed of each process.
const COLUMNS: [&str; 7] =
    ["p50 ns", "p99 ns", "p99.9 ns", "CPU ns/span", "lost spans", "on disk", "peak MiB"];

/// The parent's side: prints a table.
pub(crate) fn compare() -> ExitCode {
    let mut rows: Vec<(&str, Vec<[f64; 7]>)> =
        Server::ALL.iter().map(|server| (server.title(), Vec::new())).collect();
    for _ in 0..TURNS {
        for (server, (_, turns)) in Server::ALL.iter().zip(&mut rows) {
            match turn(*server) {
                Ok(figures) => turns.push(figures),
                Err(problem) => {
                    eprintln!("{}: {problem}", server.title());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!(
        "Requests of {} spans, one each {APART:?}, for {TURNS} times {LONG:?}; medians of the turns.\n",
        CHILDREN + 2
    );
    println!("| spans are sent | {} |", COLUMNS.join(" | "));
    println!("|---|{}", "---:|".repeat(COLUMNS.len()));
    for (title, turns) in rows {
        let column = |at: usize| {
            let mut figures: Vec<f64> = turns.iter().map(|turn| turn[at]).collect();
            figures.sort_by(f64::total_cmp);
            format!("{:.0}", figures[figures.len() / 2])
        };
        let columns: Vec<_> = (0..COLUMNS.len()).map(column).collect();
        println!("| {title} | {} |", columns.join(" | "));
    }
    ExitCode::SUCCESS
}

fn turn(server: Server) -> Result<[f64; 7], String> {
    let failed = |error: std::io::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(failed)?;
    let endpoint = server.start().map_err(failed)?;
    let output = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["away-one", endpoint.as_deref().unwrap_or_default()])
        .env(DIRECTORY, directory.path())
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> =
        printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    figures.try_into().map_err(|_| format!("{}: {printed}", output.status))
}

/// The child's side: prints its figures.
pub(crate) fn run_one(endpoint: &str) -> ExitCode {
    let directory = std::env::var_os(DIRECTORY).unwrap_or_else(|| "traces".into());
    let config = TraceConfig::new().service_name("benches").output_dir(directory);
    let config = config.log_level(LogLevel::Off);
    let config = match endpoint {
        "" => config,
        endpoint => config.otlp(Otlp::http(endpoint)),
    };
    let trace = init(config).expect("the configuration is right");
    let (rate, cpu, start) = (TickRate::start(), process_cpu(), Instant::now());
    let mut taken = Vec::with_capacity(LONG.as_micros() as usize / 50);
    let mut next = start;
    while next < start + LONG {
        while Instant::now() < next {
            std::hint::spin_loop();
        }
        let begin = ticks();
        let request = Stagetrace::begin();
        Stagetrace::serve(black_box(request), CHILDREN);
        taken.push(ticks() - begin);
        next += APART;
    }
    let (ns_per_tick, spans) = (rate.ns_per_tick(), taken.len() * (CHILDREN + 2));
    // The waits between requests are CPU time, too.
    let background = process_cpu().saturating_sub(cpu).saturating_sub(start.elapsed());
    taken.sort_unstable();
    let at = |part: f64| taken[(taken.len() as f64 * part) as usize] as f64 * ns_per_tick;
    let sinks = stats().unwrap_or_default().sinks;
    let otlp = sinks.iter().find(|sink| sink.name == "otlp").cloned().unwrap_or_default();
    println!(
        "{} {} {} {} {} {} {}",
        at(0.5),
        at(0.99),
        at(0.999),
        background.as_nanos() as f64 / spans as f64,
        otlp.failed,
        otlp.outbox,
        peak_memory().unwrap_or_default()
    );
    drop(trace);
    ExitCode::SUCCESS
}

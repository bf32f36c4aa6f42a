//! The same work through us and through others.
//!
//! Each case of each peer runs in processes of its own, since a process has one recorder. The peers of a case take turns,
//! so that what the machine does meanwhile hits all alike; several rounds are put together.

mod bursts;
mod case;
mod docs;
mod one;
mod options;
mod row;
mod sample;
mod start;
mod svg;
mod table;
mod tail;

pub(crate) use one::run as run_one;

use crate::machine;
use case::{CASES, Case, PEERS};
use options::Options;
pub(crate) use options::USAGE;
use row::{Report, Row};
use sample::Samples;
use std::process::ExitCode;
use std::time::Duration;

/// How much of each is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    /// Processes of each case and peer.
    rounds: usize,
    /// Bursts that do not count, and bursts that do, in each process.
    warm_up: usize,
    bursts: usize,
    /// Spans in a burst.
    spans: usize,
    /// Spans that are timed one by one.
    tail: usize,
    flood: Duration,
}

impl Size {
    const FULL: Size = Size {
        name: "full",
        rounds: 3,
        warm_up: 3,
        bursts: 9,
        spans: 20_000,
        tail: 400_000,
        flood: Duration::from_millis(1500),
    };

    /// Just enough to see that all works.
    const QUICK: Size = Size {
        name: "quick",
        rounds: 1,
        warm_up: 1,
        bursts: 2,
        spans: 2_000,
        tail: 10_000,
        flood: Duration::from_millis(100),
    };

    pub(crate) fn named(name: &str) -> Option<Size> {
        [Size::FULL, Size::QUICK].into_iter().find(|size| size.name == name)
    }
}

/// Measures all, prints the tables and writes what the options ask for.
pub(crate) fn compare(arguments: &[&str]) -> ExitCode {
    let outcome = Options::parse(arguments).and_then(|options| {
        let report = measure(&options)?;
        let machine = machine::describe();
        println!("{}\n", machine::text(&machine));
        println!("{}", table::tables(&report));
        docs::write(&options, &report, &machine)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<Report, String> {
    let cases: Vec<Case> =
        CASES.iter().copied().filter(|case| options.wants(&case.to_string())).collect();
    let start = if cases.contains(&Case::Start) { start::build() } else { Ok(()) };
    let mut rows = Vec::new();
    let mut floors = Vec::new();
    for case in cases {
        let mut impossible = case.impossible();
        if let (Case::Start, Err(problem)) = (case, &start) {
            impossible = Some(problem.clone());
        }
        let peers: Vec<&str> = PEERS.iter().copied().filter(|peer| case.applies_to(peer)).collect();
        if let Some(reason) = impossible {
            rows.extend(peers.iter().map(|peer| Row::skipped(case, peer, reason.clone())));
            continue;
        }
        eprint!("{case} ");
        let mut samples = vec![Samples::default(); peers.len()];
        for _ in 0..options.size.rounds {
            for (samples, peer) in samples.iter_mut().zip(&peers) {
                let measured = match case {
                    Case::Start => start::measure(peer),
                    _ => one::start(case, peer, options.size),
                };
                samples.add(measured?);
            }
            eprint!(".");
        }
        eprintln!();
        for (samples, peer) in samples.iter().zip(&peers) {
            floors.extend_from_slice(&samples.floor);
            rows.push(Row::new(case, peer, samples));
        }
    }
    Ok(Report { f_ns: sample::median(&floors).unwrap_or(f64::NAN), rows })
}

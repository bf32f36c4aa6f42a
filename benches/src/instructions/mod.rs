//! Instructions and allocations per span, which are the same in every run, whatever else the machine does: what CI holds
//! to limits.
//!
//! Each case runs twice as a child process: under callgrind, and by itself for the allocations. From both the same work
//! without spans is taken off, so that what is left is what tracing adds.

mod cases;
mod child;
mod counted;
mod limits;

pub(crate) use child::run as run_child;

use cases::CASES;
use child::Count;
use limits::Limits;
use std::process::ExitCode;

/// Counts every case, prints the table, and says which limits are passed.
pub(crate) fn check() -> ExitCode {
    let limits = match Limits::read() {
        Ok(limits) => limits,
        Err(problem) => return fail(&[problem]),
    };
    let mut problems = limits.unknown(CASES.iter().map(|case| case.name).collect());
    println!("profile: {}\n", crate::machine::profile());
    println!(
        "{:<36} {:>12} {:>7} {:>7} {:>12} {:>8}",
        "added per span, or request", "instructions", "limit", "target", "allocations", "in all"
    );
    for case in CASES {
        match child::count(case) {
            Ok(count) => problems.extend(report(case.name, count, &limits)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { fail(&problems) }
}

/// Prints a case's line and gives the limits that it passes.
fn report(name: &'static str, count: Count, limits: &Limits) -> Vec<String> {
    let Count { instructions, here, everywhere } = count;
    let Some(limit) = limits.of(name) else {
        return vec![format!("{name}: {} has no line for it", Limits::FILE)];
    };
    let target = limit.target.map_or("-".to_owned(), |target| target.to_string());
    println!(
        "{name:<36} {instructions:>12.1} {:>7} {target:>7} {here:>12.3} {everywhere:>8.3}",
        limit.instructions
    );
    let pairs = [
        ("instructions", instructions, limit.instructions),
        ("allocations on the thread", here, limit.here),
        ("allocations in all", everywhere, limit.everywhere),
    ];
    let passed = pairs.into_iter().filter(|(_, measured, limit)| measured > limit);
    passed
        .map(|(what, measured, limit)| {
            format!("{name}: {measured:.3} {what} per span, and the limit is {limit}")
        })
        .collect()
}

fn fail(problems: &[String]) -> ExitCode {
    eprintln!();
    for problem in problems {
        eprintln!("failed: {problem}");
    }
    eprintln!(
        "\nA span costs more than is allowed. If it must, raise the limit in its line of {}, and say why in the commit; \
         a target stays.",
        Limits::FILE
    );
    ExitCode::FAILURE
}

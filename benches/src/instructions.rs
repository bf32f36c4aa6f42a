//! Instructions per span, counted by callgrind: the same in every run, whatever else the machine does.

use crate::cases::{self, CASES};
use std::process::Command;

const FEW: usize = 2_000;
const MANY: usize = 12_000;

/// Counts every case and prints the table.
pub(crate) fn count_all() {
    println!("{:<24} {:>14}", "case", "instr. per span");
    for case in CASES {
        match (count(case.name, FEW), count(case.name, MANY)) {
            (Some(few), Some(many)) => {
                let per_span = (many as f64 - few as f64) / (MANY - FEW) as f64;
                println!("{:<24} {per_span:>14.1}", case.name);
            }
            _ => {
                eprintln!("valgrind did not run; install it (`apt-get install valgrind`)");
                std::process::exit(1);
            }
        }
    }
}

/// Instructions that a run of the case executes inside [`run_case`], on the thread that records.
fn count(name: &str, spans: usize) -> Option<u64> {
    let this = std::env::current_exe().ok()?;
    let out = std::env::temp_dir().join(format!("callgrind-{}.out", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*run_case*", "--separate-threads=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(this)
        .args(["case", name, &spans.to_string()])
        .output()
        .ok()?;
    let _ = std::fs::remove_file(&out);
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find(|line| line.contains("Collected"))?;
    collected.rsplit(':').next()?.trim().parse().ok()
}

/// Runs one case under callgrind.
pub(crate) fn run_one(name: &str, spans: &str) {
    let case = CASES.iter().find(|case| case.name == name);
    let (Some(case), Ok(spans)) = (case, spans.parse()) else {
        eprintln!("no case {name}");
        std::process::exit(2);
    };
    let _trace = cases::init();
    run_case(case.run, 500);
    let _ = stagetrace::flush(std::time::Duration::from_secs(60));
    run_case(case.run, spans);
}

#[inline(never)]
fn run_case(run: fn(usize), spans: usize) {
    run(std::hint::black_box(spans));
    // Keeps the call above from becoming a jump, which callgrind would not follow.
    std::hint::black_box(spans);
}

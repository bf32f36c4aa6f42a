//! Built with `--cfg stagetrace_off`: functions are what they were, arguments are still checked, nothing is recorded.
//!
//! `RUSTFLAGS="--cfg stagetrace_off" cargo test -p stagetrace-ui-tests --test off`
#![cfg(stagetrace_off)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stagetrace::{
    FlushError, Outcome, Stages, TraceConfig, TraceState, Traced, event, set_attribute, span, stage,
};

/// Compiles `off/functions.rs`; options of the compiler follow.
fn compile() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--quiet", "--locked", "--package", "stagetrace-ui-tests"]);
    cargo.args(["--example", "off", "--"]);
    // As most users build: then the compiler inlines nothing of another crate unless it is told that it may.
    cargo.env("CARGO_INCREMENTAL", "1");
    cargo
}

/// The assembly of `off/functions.rs`, by function. What differs between two builds of one text is left out: hashes and
/// the numbers of labels.
fn assembly(is_staged: bool) -> BTreeMap<String, String> {
    let name = if is_staged { "staged" } else { "bare" };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("off-{name}.s"));
    let mut cargo = compile();
    cargo.args(["-Copt-level=3", "-Cdebuginfo=0", "-Ccodegen-units=1"]);
    cargo.args(["-Cdebug-assertions=off", "-Coverflow-checks=off"]);
    cargo.arg(format!("--emit=asm={}", file.display()));
    if is_staged {
        cargo.args(["--cfg", "staged"]);
    }
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    functions(&fs::read_to_string(&file).expect("the compiler has written it"))
}

/// The body of each function; those that other crates made for this one are left out.
fn functions(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut is_code = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        is_code = (is_code || line.contains("@function")) && !line.contains("@object");
        let Some(name) = line.strip_suffix(':').filter(|name| is_code && !name.starts_with('.'))
        else {
            continue;
        };
        is_code = false;
        let body = lines.by_ref().take_while(|line| !line.starts_with(".Lfunc_end"));
        let mut labels = BTreeMap::new();
        let body: Vec<String> = body
            .map(|line| line.split('#').next().unwrap_or_default().trim())
            .filter(|line| {
                !line.is_empty() && !line.starts_with(".cfi") && !line.starts_with(".p2")
            })
            .map(|line| normal(line, &mut labels))
            .collect();
        if !name.starts_with('_') || (name.starts_with("_ZN3off") && !name.starts_with("_ZN3off1_"))
        {
            found.insert(normal(name, &mut BTreeMap::new()), body.join("\n"));
        }
    }
    found
}

/// The line with local labels numbered by their first use, and symbols without their hashes.
fn normal(line: &str, labels: &mut BTreeMap<String, usize>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ['_', '.', '$'].contains(&c);
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        if word.starts_with(".L") {
            let next = labels.len();
            let number = *labels.entry(word.to_owned()).or_insert(next);
            out.push_str(&format!(".L{number}"));
        } else if word.starts_with("_ZN") {
            out.push_str(word.rsplit_once("17h").map_or(word, |(name, _)| name));
        } else {
            out.push_str(word);
        }
        rest = after;
    }
    out + rest
}

#[test]
fn a_staged_function_is_the_bare_one_to_the_instruction() {
    let (bare, staged) = (assembly(false), assembly(true));
    let names: Vec<&String> = bare.keys().collect();
    assert!(names.len() >= 18, "only these were found: {names:?}");
    assert_eq!(names, staged.keys().collect::<Vec<_>>());
    let mut differ = Vec::new();
    for (name, bare) in &bare {
        assert!(bare.lines().count() > 1, "{name} is empty");
        if staged[name] != *bare {
            differ.push(format!("{name}, bare:\n{bare}\n\nstaged:\n{}", staged[name]));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
}

#[test]
fn two_different_functions_are_seen_to_differ() {
    let text = |instruction: &str| {
        format!(
            "\t.type\tf,@function\nf:\n\t.cfi_startproc\n.LBB7_1:\n\t{instruction}\n\tjmp\t.LBB7_1\n.Lfunc_end0:\n"
        )
    };
    let one = functions(&text("callq\t*_ZN3foo3bar17h0123456789abcdefE@GOTPCREL(%rip)"));
    let same = functions(
        &text("callq\t*_ZN3foo3bar17hfedcba9876543210E@GOTPCREL(%rip)").replace("LBB7", "LBB9"),
    );
    let other = functions(&text("callq\t*_ZN3foo3baz17h0123456789abcdefE@GOTPCREL(%rip)"));
    assert_eq!(one, same);
    assert_ne!(one, other);
    assert_eq!(one["f"].lines().count(), 3);
}

#[test]
fn arguments_are_still_checked() {
    let mistakes = [
        ("undeclared_stage", "named `Nothing` found"),
        ("untraced_request", "`String` does not carry a trace"),
        ("foreign_request", "has no stages of `Foreign`"),
        ("unrecordable_value", "cannot be recorded"),
        ("unknown_option", "`knd`"),
        ("unrecordable_event", "cannot be recorded"),
    ];
    for (mistake, words) in mistakes {
        let output = compile().args(["--cfg", mistake]).output().expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{mistake} compiles");
        assert!(said.contains(words), "{mistake}: {said}");
    }
}

/// A pipeline.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Serialize, Deserialize)]
#[traced(stages = Steps)]
pub struct Request {
    #[traced(id)]
    id: String,
    #[traced(state)]
    #[serde(default)]
    trace: TraceState,
}

static EVALUATED: AtomicU32 = AtomicU32::new(0);

fn evaluated() -> u32 {
    EVALUATED.fetch_add(1, Ordering::Relaxed)
}

#[stage(Steps::Only, req, attrs("n" = evaluated()))]
fn staged(req: &Request) -> usize {
    req.id.len()
}

fn fails() -> Result<u32, std::fmt::Error> {
    EVALUATED.fetch_add(1, Ordering::Relaxed);
    Err(std::fmt::Error)
}

/// What may stand in a value when tracing is on may stand there when it is off.
fn question_mark() -> Result<(), std::fmt::Error> {
    event!("event", "n" = fails()?);
    Ok(())
}

#[test]
fn nothing_is_started_evaluated_recorded_or_said() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("off-{}", std::process::id()));
    let trace = stagetrace::init(TraceConfig::default().output_dir(&dir)).expect("it is the first");
    let again = stagetrace::init(TraceConfig::default().output_dir(&dir));
    assert!(again.is_err(), "a second init is a mistake also when off");
    let mut request = Request { id: "a".into(), trace: TraceState::null() };
    request.begin(None);
    assert!(request.trace.is_null());
    assert_eq!(staged(&request), 1);
    let by_hand = span!("by hand", parent = stagetrace::current(), "n" = evaluated());
    assert!(!by_hand.is_recorded());
    by_hand.in_scope(|| {
        event!("event", "n" = evaluated());
        set_attribute("key", "value");
        assert!(stagetrace::current().is_null());
    });
    question_mark().expect("the value is not worked out");
    request.finish(Outcome::Ok);
    stagetrace::set_level(3);
    assert_eq!((stagetrace::level(), EVALUATED.load(Ordering::Relaxed)), (0, 0));
    let status = stagetrace::status();
    assert!(!status.running && status.run_dir.is_none() && status.stats.is_none());
    assert!(matches!(stagetrace::flush(Duration::from_secs(1)), Err(FlushError::NotRunning)));
    drop(trace);
    assert!(!dir.exists(), "nothing is written");
    let captured = stagetrace::testing::capture(|| staged(&request));
    assert!(captured.spans.is_empty());
}

#[test]
fn a_requests_trace_state_is_relayed() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let line = format!(r#"{{"id":"a","trace":{{"traceparent":"{PARENT}","more":[1]}}}}"#);
    let mut request: Request = serde_json::from_str(&line).expect("a request");
    request.begin(None);
    staged(&request);
    request.finish(Outcome::Ok);
    assert_eq!(serde_json::to_string(&request).expect("it has no secrets"), line);
}

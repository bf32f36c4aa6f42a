//! The trace that a run leaves: its tree, its times, its attributes.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use common::{Program, has_gpu};
use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::{Span, StatusCode, Value};

/// What one request left behind.
struct Request {
    spans: Vec<Span>,
}

impl Request {
    /// The requests of a run, in order of their ids.
    fn all(spans: Vec<Span>) -> Vec<Request> {
        let mut traces: BTreeMap<TraceId, Vec<Span>> = BTreeMap::new();
        for span in spans {
            traces.entry(span.trace_id).or_default().push(span);
        }
        let mut requests: Vec<Request> =
            traces.into_values().map(|spans| Request { spans }).collect();
        for request in &mut requests {
            request.spans.sort_by_key(|span| (span.start_unix_nano, span.end_unix_nano));
        }
        requests.sort_by_key(|request| request.number());
        requests
    }

    fn number(&self) -> usize {
        let id = self.one("generate").attribute("stagetrace.request.id");
        let id = id.and_then(Value::as_str).unwrap();
        id.strip_prefix("request-").unwrap().parse().unwrap()
    }

    fn every(&self, name: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }

    fn one(&self, name: &str) -> &Span {
        let [span] = self.every(name)[..] else { panic!("expected one {name}:\n{}", self.tree()) };
        span
    }

    /// The names, each below its parent and indented; equal siblings counted.
    fn tree(&self) -> String {
        let mut text = String::new();
        self.write_children(None, 0, &mut text);
        text
    }

    fn write_children(&self, parent: Option<&Span>, depth: usize, text: &mut String) {
        let parent = parent.map(|span| span.span_id);
        let children = self.spans.iter().filter(|span| span.parent_span_id == parent);
        let children: Vec<&Span> = children.collect();
        for same in children.chunk_by(|a, b| a.name == b.name) {
            let count = if same.len() > 1 { format!(" × {}", same.len()) } else { String::new() };
            writeln!(text, "{}{}{count}", "  ".repeat(depth), same[0].name).unwrap();
            for child in same {
                self.write_children(Some(child), depth + 1, text);
            }
        }
    }
}

const TREE: &str = "\
generate
  queue_wait
  encode_prompt
  scheduler_dispatch
    gpu_queue_wait
    gpu_encode
    gpu_forward
      denoise_step × 20
  decode
";

/// How far apart two readings of clocks may be that were read in this order.
const CLOCKS_NS: u64 = 1_000;

/// Fails unless everything of the request happened in its order, and the steps did not overlap.
fn assert_in_order(request: &Request) {
    let one = |name| request.one(name);
    let root = one("generate");
    let (queue, prompt, dispatch) =
        (one("queue_wait"), one("encode_prompt"), one("scheduler_dispatch"));
    let (waiting, encode, forward) = (one("gpu_queue_wait"), one("gpu_encode"), one("gpu_forward"));
    let steps = request.every("denoise_step");
    let mut times = vec![
        ("accepted", root.start_unix_nano),
        ("queued", queue.start_unix_nano),
        ("taken", queue.end_unix_nano),
        ("prompt", prompt.start_unix_nano),
        ("prompt read", prompt.end_unix_nano),
        ("dispatched", dispatch.start_unix_nano),
        ("sent", waiting.start_unix_nano),
        ("received", waiting.end_unix_nano),
        ("encode", encode.start_unix_nano),
        ("encoded", encode.end_unix_nano),
        ("forward", forward.start_unix_nano),
    ];
    for step in &steps {
        times.extend([("step", step.start_unix_nano), ("step done", step.end_unix_nano)]);
    }
    times.extend([
        ("done", forward.end_unix_nano),
        ("replied", dispatch.end_unix_nano),
        ("decode", one("decode").start_unix_nano),
        ("decoded", one("decode").end_unix_nano),
        ("answered", root.end_unix_nano),
    ]);
    for pair in times.windows(2) {
        let [(_, earlier), (_, later)] = pair else { unreachable!() };
        assert!(*earlier <= later + CLOCKS_NS, "{pair:?}");
    }
    for (index, step) in steps.iter().enumerate() {
        let expected = Value::I64(index as i64);
        assert_eq!(step.attribute("diffusion.step"), Some(&expected));
    }
}

#[test]
fn a_request_on_the_processor_has_all_its_stages_in_order() {
    let mut program = Program::new("trace_cpu");
    let outcome = program.run(&["a seven", "--device", "cpu"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let [request] = &Request::all(program.spans())[..] else { panic!("expected one trace") };
    assert_eq!(request.tree(), TREE);
    assert_in_order(request);
    assert!(request.spans.iter().all(|span| span.status.code == StatusCode::Unset));
    let root = request.one("generate");
    assert_eq!(root.attribute("gpu.available"), Some(&Value::Bool(false)));
}

#[test]
fn attributes_are_typed_and_the_prompt_is_not_recorded() {
    let mut program = Program::new("trace_attributes");
    program.run(&["draw me a seven please", "--device", "cpu", "--steps", "4", "--seed", "9"]);
    let [request] = &Request::all(program.spans())[..] else { panic!("expected one trace") };
    let root = request.one("generate");
    let expected = [
        ("stagetrace.request.id", Value::Str("request-1".into())),
        ("gen_ai.request.model", Value::Str("digits".into())),
        ("gen_ai.request.seed", Value::I64(9)),
        ("gen_ai.request.choice.count", Value::I64(1)),
        ("diffusion.steps", Value::I64(4)),
        ("diffusion.guidance", Value::F64(2.0)),
        ("stagetrace.outcome", Value::Str("ok".into())),
        ("stagetrace.stage.denoise_step.count", Value::I64(4)),
    ];
    for (key, value) in expected {
        assert_eq!(root.attribute(key), Some(&value), "{key}");
    }
    let times = request.every("denoise_step").into_iter().map(|step| step.attribute("diffusion.t"));
    let expected = [1.0, 0.75, 0.5, 0.25].map(Value::F64);
    assert!(times.eq(expected.iter().map(Some)));
    let label = request.one("encode_prompt").attribute("diffusion.label");
    assert_eq!(label, Some(&Value::I64(7)));
    assert!(!program.trace_text().contains("please"));
}

#[test]
fn a_lower_level_leaves_out_the_details() {
    let mut program = Program::new("trace_level_1");
    program.run(&["a seven", "--device", "cpu", "--level", "1"]);
    let [request] = &Request::all(program.spans())[..] else { panic!("expected one trace") };
    let tree = "generate\n  queue_wait\n  scheduler_dispatch\n    gpu_forward\n";
    assert_eq!(request.tree(), tree);
}

#[test]
fn level_0_records_nothing_and_draws_the_same() {
    let mut off = Program::new("trace_level_0");
    let outcome = off.run(&["a seven", "--device", "cpu", "--level", "0"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(off.spans().is_empty());
    let mut on = Program::new("trace_level_3");
    on.run(&["a seven", "--device", "cpu"]);
    let read = |program: &Program| std::fs::read(program.path("digit.png")).unwrap();
    assert!(read(&off) == read(&on));
}

#[test]
fn the_table_of_stages_is_that_of_the_trace() {
    let mut program = Program::new("trace_table");
    let outcome = program.run(&["a seven", "--device", "cpu", "--requests", "3", "--steps", "5"]);
    let spans = program.spans();
    let mut durations: Vec<u64> = spans
        .iter()
        .filter(|span| span.name == "denoise_step")
        .map(|span| span.duration_nano().unwrap())
        .collect();
    durations.sort_unstable();
    let total: u64 = durations.iter().sum();
    let row = outcome.stdout.lines().find(|line| line.starts_with("denoise_step ")).unwrap();
    let (_, times) = row.split_once(" 15 ").unwrap();
    let cells: Vec<&str> = times.split_whitespace().collect();
    let (cells, _) = cells.as_chunks::<2>();
    let expected = [total, total / 15, durations[7], durations[14], durations[14]];
    assert_eq!(cells.len(), expected.len());
    for ([number, unit], expected) in cells.iter().zip(expected) {
        let unit = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)].iter().find(|(name, _)| name == unit);
        let ns = number.parse::<f64>().unwrap() * unit.unwrap().1;
        assert!((ns / expected as f64 - 1.0).abs() < 0.01, "{ns} is not {expected}");
    }
    let last = outcome.stdout.lines().last().unwrap();
    let dir = last.strip_prefix("trace: ").unwrap();
    assert!(program.path("traces").join(dir).is_dir(), "{dir}");
    for index in 1..=3 {
        assert!(program.path(&format!("digit-{index}.png")).exists());
    }
}

#[test]
fn many_requests_on_a_gpu_have_their_steps_in_order_and_never_two_at_a_time() {
    if !has_gpu() {
        return;
    }
    let mut program = Program::new("trace_gpu");
    let outcome = program.run(&["a seven", "--device", "gpu", "--requests", "24"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let requests = Request::all(program.spans());
    assert_eq!(requests.len(), 24);
    for request in &requests {
        assert_eq!(request.tree(), TREE);
        assert_in_order(request);
        let forward = request.one("gpu_forward");
        let text = |key| forward.attribute(key).and_then(Value::as_str);
        assert_eq!(text("gpu.timestamps"), Some("ok"));
        assert_eq!(text("gpu.clock.source"), Some("bracketed"));
        assert!(text("gpu.adapter").is_some_and(|name| !name.is_empty()));
        assert!(text("gpu.backend").is_some() && text("gpu.device_type").is_some());
        let uncertainty = forward.attribute("gpu.clock.uncertainty_ns");
        let most = forward.duration_nano().unwrap() as i64;
        assert!(uncertainty.and_then(Value::as_i64).is_some_and(|ns| 0 < ns && ns < most));
        let root = |key| request.one("generate").attribute(key);
        assert_eq!(root("gpu.available"), Some(&Value::Bool(true)));
        assert_eq!(root("stagetrace.stage.denoise_step.count"), Some(&Value::I64(20)));
    }

    let warmups = requests.iter().filter(|request| {
        request.one("gpu_forward").attribute("warmup") == Some(&Value::Bool(true))
    });
    assert_eq!(warmups.count(), 1);

    let mut steps: Vec<&Span> =
        requests.iter().flat_map(|request| request.every("denoise_step")).collect();
    steps.sort_by_key(|step| step.start_unix_nano);
    for pair in steps.windows(2) {
        assert!(pair[0].end_unix_nano <= pair[1].start_unix_nano + CLOCKS_NS);
    }

    let in_steps: u64 = steps.iter().map(|step| step.duration_nano().unwrap()).sum();
    let first_to_last = |request: &Request| {
        let steps = request.every("denoise_step");
        steps.last().unwrap().end_unix_nano - steps[0].start_unix_nano
    };
    let in_samples: u64 = requests.iter().map(first_to_last).sum();
    assert!(in_steps as f64 > 0.95 * in_samples as f64, "{in_steps} of {in_samples}");
}

#[test]
fn two_processes_at_once_lie_on_one_timeline() {
    if !has_gpu() {
        return;
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let begin = now();
    let runs = ["timeline_a", "timeline_b"].map(|test| {
        std::thread::spawn(move || {
            let mut program = Program::new(test);
            let outcome = program.run(&["a seven", "--device", "gpu", "--requests", "3"]);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            program.spans()
        })
    });
    let runs = runs.map(|run| run.join().unwrap());
    let end = now();
    for spans in &runs {
        assert_eq!(spans.iter().filter(|span| span.name == "denoise_step").count(), 60);
        for span in spans {
            let times = [begin, span.start_unix_nano, span.end_unix_nano, end];
            assert!(times.is_sorted(), "{} {times:?}", span.name);
        }
    }
}

#[test]
fn equal_seeds_draw_equal_pictures() {
    let draw = |test: &str, seed: &str| {
        let mut program = Program::new(test);
        let outcome = program.run(&["a seven", "--images", "2", "--seed", seed]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        std::fs::read(program.path("digit.png")).unwrap()
    };
    assert!(draw("seed_a", "5") == draw("seed_b", "5"));
    assert!(draw("seed_c", "5") != draw("seed_d", "6"));
}

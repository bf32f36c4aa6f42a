//! What is kept up to date is what is found by looking at everything anew.

use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{SpanKind, StatusCode};

use super::super::totals::StageTotals;
use super::*;
use crate::store::{
    Caches, Encoder, Head, Seen, Standing, put_double_value, put_int_value, put_text_value,
};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Adds a span, or what is known better of one.
fn add(store: &mut Store, caches: &mut Caches, random: &mut Random) {
    let mut encoder = Encoder::new(store.shared_tables(), caches);
    for key in ["rollout.id", "rollout.step", "rollout.group_id", "prompt.tokens"] {
        if random.below(3) == 0 {
            let value = random.below(2) as i64;
            put_int_value(encoder.value(), value);
            encoder.attribute(key, Seen::Int(value));
        }
    }
    for (key, texts) in [
        ("stage", ["one", "two"]),
        ("rollout.status", ["completed", "odd"]),
        ("error.message", ["bad", "worse"]),
    ] {
        if random.below(3) == 0 {
            let text = random.one_of(&texts);
            put_text_value(encoder.value(), text);
            encoder.attribute(key, Seen::Text(text));
        }
    }
    if random.below(3) == 0 {
        let reward = random.one_of(&[0.1, 0.7, -1.0]);
        put_double_value(encoder.value(), reward);
        encoder.attribute("reward.score", Seen::Double(reward));
    }
    let standings = [
        Standing::Announced,
        Standing::Recorded,
        Standing::Written,
        Standing::Over,
        Standing::RecordedEnd,
        Standing::WrittenEnd,
    ];
    let origin = encoder.no_origin();
    encoder.finish(&Head {
        trace_id: TraceId::from_u128(1 + u128::from(random.below(4))).unwrap(),
        span_id: SpanId::from_u64(1 + random.below(6)).unwrap(),
        parent: SpanId::from_u64(random.below(6)),
        start: 100 + random.below(50),
        end: 130 + random.below(50),
        name: random.one_of(&["a", "b", "c"]),
        kind: SpanKind::Internal,
        code: random.one_of(&[StatusCode::Unset, StatusCode::Error]),
        message: "",
        origin,
        standing: random.one_of(&standings),
    });
    let batch = encoder.take();
    store.take(batch);
    if random.below(4) == 0 {
        let spans = store.stats().spans as u64;
        let span = SpanNumber(random.below(spans) as u32);
        match random.below(2) {
            0 => store.lose(span),
            _ => store.end_unknown(span, 170),
        }
    }
}

fn anew(store: &Store) -> Samples {
    let mut samples = Samples::default();
    let stats = store.stats();
    samples.first.grow(stats.traces, NONE);
    samples.owners.grow(stats.spans, NONE);
    samples.self_ns.grow(stats.spans, 0);
    store.traces().for_each(|trace| samples.look_at(store, trace, &HashMap::new()));
    samples.totals.settle();
    samples.steps.settle(store);
    samples
}

/// All that can be asked.
fn said(store: &Store, samples: &Samples) -> Vec<String> {
    let mut said: Vec<_> = samples.iter(store).map(|sample| format!("{sample:?}")).collect();
    said.push(format!("{:?} {} {}", samples.steps(), samples.len(), samples.counted_spans()));
    let steps = samples.steps().iter().copied().map(Some).chain([None]);
    for step in steps {
        for row in samples.open(step).chain(samples.lost(step)) {
            said.push(format!("{step:?} {:?}", row.sample(store)));
        }
        let totals = samples.totals(store, step);
        let of_step = samples.rows().filter(|row| step.is_none() || row.step(store) == step);
        assert_eq!(totals.samples, of_step.count());
        let sums = [totals.samples, totals.left_open, totals.result_not_exported, totals.passed];
        said.push(format!("{sums:?} {} {:?}", totals.finished_spans, totals.rewards()));
        let (statuses, groups) = (totals.statuses.iter(), totals.groups.iter());
        let mut unordered: Vec<_> = statuses.map(|status| format!("{status:?}")).collect();
        unordered.extend(groups.map(|group| format!("{group:?}")));
        for (name, stage) in totals.stages.iter().filter(|(_, stage)| !stage.is_empty()) {
            let StageTotals { durations, sum_ns, self_ns, names, failures } = stage;
            let ranks: Vec<_> = (0..=10).map(|at| durations.percentile(10 * at)).collect();
            unordered.push(format!("{name:?} {ranks:?} {sum_ns} {self_ns}"));
            unordered.extend(names.iter().map(|count| format!("{name:?} {count:?}")));
            unordered.extend(failures.iter().map(|count| format!("{name:?} {count:?}")));
        }
        unordered.sort();
        said.extend(unordered);
    }
    said
}

#[test]
fn what_is_kept_up_to_date_is_what_is_there() {
    for seed in 0..60 {
        let (mut store, mut caches) = (Store::default(), Caches::default());
        let (mut samples, mut random) = (Samples::default(), Random(seed));
        for round in 0..40 {
            for _ in 0..=random.below(3) {
                add(&mut store, &mut caches, &mut random);
            }
            let before = samples.version();
            let changed = samples.refresh(&mut store);
            assert_eq!(changed.is_empty(), samples.version() == before);
            if round % 9 == 5 {
                samples.compact();
            }
            let anew = anew(&store);
            assert_eq!(said(&store, &samples), said(&store, &anew), "seed {seed}, round {round}");
            assert_eq!(samples.rows.len() - samples.left_over, anew.rows.len());
        }
    }
}

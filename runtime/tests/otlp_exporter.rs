//! Encoded batches handed to the program: what is in them, and that whoever sends them harms nobody.
#![cfg(not(stagetrace_off))]

#[path = "support/everything.rs"]
mod everything;
#[path = "otlp_exporter/sent.rs"]
mod sent;
mod support;
#[path = "otlp_exporter/tail.rs"]
mod tail;

use everything::{everything, plain};
use sent::{Sent, collecting};
use stagetrace::{Exporter, FlushError, init_with};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use support::{LONG, config, flush, problems, scenarios, sink, step, steps, wait_until, written};

scenarios! {
    fn a_request_holds_the_same_spans_as_the_file() {
        let config = config().resource_attribute("deployment.replica", 7_i64);
        let config = config.span_limits(|limits| {
            limits.attributes = 14;
            limits.attribute_length = Some(20);
            limits.events = 4;
            limits.links = 3;
            limits.attributes_per_event = 3;
        });
        let (exporter, sent) = collecting("memory");
        let trace = init_with(config, [exporter]).unwrap();
        everything();
        flush(LONG).unwrap();
        let (ours, file) = (sent.spans(), written(&trace));
        assert_eq!(ours.len(), 12, "{ours:#?}");
        for (ours, file) in ours.iter().zip(&file) {
            assert_eq!(ours, file);
        }
        assert_eq!(ours.len(), file.len());
        assert_eq!(ours[0].resource.service_name(), Some("exporter-test"));
        assert!(ours.iter().any(|span| span.trace_state == "vendor=a"));
    }

    fn plain_spans_have_all_that_they_were_given() {
        let (exporter, sent) = collecting("memory");
        let trace = init_with(config(), [exporter]).unwrap();
        let outer = stagetrace::span!("outer");
        outer.in_scope(|| (0..100).for_each(|_| plain("a text é", None)));
        drop(outer);
        flush(LONG).unwrap();
        let (ours, file) = (sent.spans(), written(&trace));
        assert_eq!(ours, file);
        let (outer, plain): (Vec<_>, Vec<_>) = ours.iter().partition(|span| span.name == "outer");
        assert_eq!((outer.len(), plain.len()), (1, 100));
        for (span, next) in plain.iter().zip(plain.iter().skip(1).chain(&outer)) {
            let values: Vec<_> = span.attributes.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
            let long = "o".repeat(200);
            let expected = [
                "text=Str(\"a text é\")",
                "a.key.that.is.longer.than.most.keys.are=I64(-7)",
                &format!("long=Str({long:?})"),
                "int=I64(300000000000)",
                "double=F64(0.25)",
                "bool=Bool(true)",
                "ints=Array([I64(1), I64(-2)])",
            ];
            assert_eq!(values[..7], expected);
            assert!(values[7].starts_with("code.function.name=") && values.len() == 8, "{values:?}");
            assert_eq!((span.parent_span_id, span.trace_id), (Some(outer[0].span_id), outer[0].trace_id));
            assert_eq!((span.flags, span.kind), (outer[0].flags, outer[0].kind));
            let is_ordered = outer[0].start_unix_nano <= span.start_unix_nano
                && span.start_unix_nano <= span.end_unix_nano
                && span.end_unix_nano <= next.end_unix_nano;
            assert!(is_ordered, "{span:#?}");
        }
    }

    fn batches_are_as_large_as_configured_and_wait_no_longer_than_the_delay() {
        let (exporter, sent) = collecting("good");
        let trace = init_with(config(), [exporter]).unwrap();
        steps(0, 3);
        wait_until(|| sent.spans().len() == 3);
        steps(3, 100);
        flush(LONG).unwrap();
        assert_eq!(sent.numbers(), (0..103).collect::<Vec<_>>());
        assert!(sent.requests().iter().all(|spans| (1..=8).contains(spans)), "{sent:?}");
        assert_eq!(written(&trace).len(), 103);
        let status = sink("good");
        assert_eq!((status.exported, status.failed, status.failing), (103, 0, None));

        step(103);
        let stats = trace.shutdown(LONG).unwrap();
        assert_eq!(stats.sinks[1].exported, 104);
        assert_eq!(sent.numbers().last(), Some(&103));
    }

    fn one_that_fails_panics_or_hangs_is_reported_and_the_others_are_well() {
        let failing = Exporter::otlp("failing", |_: &[u8]| Err("no route to host"));
        let panicking = Exporter::otlp("panicking", |_: &[u8]| -> Result<(), Infallible> {
            panic!("unlucky")
        });
        let hanging = Exporter::otlp("hanging", |_: &[u8]| {
            std::thread::sleep(Duration::from_secs(3600));
            Ok::<_, Infallible>(())
        });
        let (good, sent) = collecting("good");
        let trace = init_with(config(), [failing, hanging, good, panicking]).unwrap();
        steps(0, 9);
        let timed_out = "`export` has not returned within 1s";
        let expected = [
            ("failing", "lost 9 spans (export_failed 9); `export`: no route to host".to_owned()),
            ("hanging", format!("lost 9 spans (timeout 8, exporter_hangs 1); {timed_out}")),
            ("panicking", "lost 9 spans (panic 9); `export`: panicked: unlucky".to_owned()),
        ];
        assert_eq!(problems(flush(LONG)), expected);
        assert_eq!(sink("failing").failing.as_deref(), Some("`export`: no route to host"));
        assert_eq!(sink("panicking").panics, 2);
        assert_eq!(sent.numbers(), (0..9).collect::<Vec<_>>());
        assert_eq!(written(&trace).len(), 9);

        let start = Instant::now();
        let Err(FlushError::Sinks(errors)) = trace.shutdown(LONG) else {
            panic!("what hangs cannot be shut down");
        };
        assert_eq!((errors.len(), errors[0].sink), (1, "hanging"));
        assert!(start.elapsed() < LONG / 2, "a blocked thread is not waited for");
    }

    fn of_a_queue_that_overflows_the_rest_is_counted() {
        let sent = Sent::default();
        let keeper = sent.clone();
        let slow = Exporter::otlp("slow", move |request: &[u8]| {
            std::thread::sleep(Duration::from_millis(20));
            keeper.take(request);
            Ok::<_, Infallible>(())
        });
        let config = config().batching(|batching| batching.max_queue_size = Some(16));
        let trace = init_with(config, [slow]).unwrap();
        steps(0, 1000);
        let problems = problems(flush(LONG));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].1.contains("(queue_full "), "{problems:?}");
        let status = sink("slow");
        assert_eq!(status.failed_by, [("queue_full", 1000 - sent.spans().len() as u64)]);
        assert_eq!((status.queued, status.exported), (0, sent.spans().len() as u64));
        assert_eq!(written(&trace).len(), 1000);
    }

    fn what_it_does_is_not_traced() {
        let (exporter, sent) = collecting("good");
        let noisy = Exporter::otlp("noisy", |_: &[u8]| {
            step(1000);
            drop(stagetrace::span!("export"));
            Ok::<_, Infallible>(())
        });
        let trace = init_with(config(), [noisy, exporter]).unwrap();
        step(0);
        flush(LONG).unwrap();
        flush(LONG).unwrap();
        assert_eq!(sent.numbers(), [0]);
        assert_eq!(written(&trace).len(), 1);
    }
}

//! The recorder does not trace itself, and rests when there is nothing to do.

use stagetrace::{event, span};
use stagetrace_tests::pipeline::serve;
use stagetrace_tests::{alone, counters, flushed, processor_time, start_with};
use std::time::Duration;

#[test]
fn an_idle_process_records_nothing_of_its_own() {
    let spans = alone(|| {
        let trace = start_with(|config| config.level(3));
        serve("a", 1);
        let before = flushed();
        std::thread::sleep(Duration::from_millis(1500));
        for _ in 0..20 {
            counters();
            assert!(stagetrace::status().running);
        }
        let after = flushed();
        assert_eq!((after.begun, after.without_span), (before.begun, before.without_span));
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.contained_panics), (before.begun, 0));
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 5);
}

#[test]
fn an_idle_process_uses_next_to_no_processor_time() {
    alone(|| {
        let _trace = start_with(|config| config.level(3));
        let open: Vec<_> = (0..100).map(|_| span!("open")).collect();
        serve("a", 1);
        flushed();
        std::thread::sleep(Duration::from_millis(1200));
        let before = processor_time();
        std::thread::sleep(Duration::from_millis(2000));
        let used = processor_time() - before;
        assert!(used <= Duration::from_millis(40), "{used:?} of 2 s");
        drop(open);
    })
    .run();
}

#[test]
fn a_recorder_that_says_something_does_not_record_it() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.level(3));
        event!("nobody is there");
        drop(span!("only"));
    })
    .env("STAGETRACE_LEVEL", "nonsense")
    .run();
    assert_eq!(ran.complaints().len(), 1);
    assert_eq!(ran.spans().tree(&[]), "only\n");
}

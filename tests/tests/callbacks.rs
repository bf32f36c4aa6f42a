//! Code of the program that the recorder calls: it may panic, and it may trace.

use stagetrace::{Outcome, TraceState, Traced, span};
use stagetrace_tests::pipeline::Generate;
use stagetrace_tests::{alone, start};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What a request says of itself may do anything.
#[derive(Traced)]
#[traced(name = "odd")]
struct Odd {
    #[traced(id)]
    id: Speaks,
    #[traced(attr = "odd.value", display)]
    value: Speaks,
    #[traced(state)]
    trace: TraceState,
}

/// Its text is made by a function, which may panic or trace.
struct Speaks(fn());

impl fmt::Display for Speaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)();
        f.write_str("text")
    }
}

#[test]
fn a_request_whose_text_panics_ends_all_the_same() {
    fn panics() {
        panic!("as expected");
    }
    let spans = alone(|| {
        let trace = start();
        std::panic::set_hook(Box::new(|_| ()));
        for _ in 0..100 {
            let mut odd =
                Odd { id: Speaks(panics), value: Speaks(|| ()), trace: TraceState::null() };
            assert!(catch_unwind(AssertUnwindSafe(|| odd.begin(None))).is_err());
            drop(odd);
            let mut odd =
                Odd { id: Speaks(|| ()), value: Speaks(|| ()), trace: TraceState::null() };
            odd.begin(None);
            odd.value = Speaks(panics);
            assert!(catch_unwind(AssertUnwindSafe(|| odd.finish(Outcome::Ok))).is_err());
            assert!(stagetrace::current().is_null());
        }
        let _ = std::panic::take_hook();
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.open), (200, 0));
    })
    .run()
    .spans();
    assert_eq!(spans.all("odd").len(), 200);
}

#[test]
fn a_request_whose_text_traces_is_recorded_with_what_it_traced() {
    fn traces() {
        let inner = span!("inner");
        inner.in_scope(|| stagetrace::event!("event"));
        drop(Generate::begun("another"));
    }
    let spans = alone(|| {
        let _trace = start();
        let mut odd = Odd { id: Speaks(traces), value: Speaks(traces), trace: TraceState::null() };
        odd.begin(None);
        odd.finish(Outcome::Ok);
    })
    .run()
    .spans();
    assert_eq!(spans.one("odd").attribute("odd.value"), Some(&"text".into()));
    assert_eq!((spans.all("inner").len(), spans.all("generate").len()), (4, 4));
    assert!(spans.all("inner").iter().all(|span| span.events.len() == 1));
}

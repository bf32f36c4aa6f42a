//! A forked child leaves its parent's recording alone.
#![cfg(unix)]

use stagetrace::span;
use stagetrace_tests::{alone, start};
use std::time::Duration;

#[test]
fn a_forked_child_records_nothing_and_does_not_disturb_its_parent() {
    let spans = alone(|| {
        let trace = start();
        let outer = span!("outer");
        outer.in_scope(|| {
            drop(span!("before"));
            // SAFETY: the child only traces, which takes no lock that another thread may hold, and exits.
            match unsafe { libc::fork() } {
                0 => {
                    for _ in 0..100_000 {
                        drop(span!("in the child"));
                    }
                    drop(stagetrace::flush(Duration::from_millis(10)));
                    // SAFETY: ends the child at once, without destructors.
                    unsafe { libc::_exit(i32::from(stagetrace::status().running)) };
                }
                child => {
                    assert!(child > 0, "fork failed");
                    let mut status = 0;
                    // SAFETY: waits for the child made above.
                    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                    assert_eq!(status, 0, "the child still traces, or died");
                }
            }
            drop(span!("after"));
        });
        drop(outer);
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.handed, stats.dropped_spans()), (3, 3, 0));
    })
    .run()
    .spans();
    assert_eq!(stagetrace::testing::tree(&spans, &[]), "outer\n  before\n  after\n");
}

#[test]
fn a_child_that_ends_normally_does_not_close_its_parents_recording() {
    let spans = alone(|| {
        let trace = start();
        let outer = span!("outer");
        // SAFETY: the child drops what it has inherited, and exits.
        match unsafe { libc::fork() } {
            0 => {
                outer.in_scope(|| drop(span!("in the child")));
                drop(outer);
                drop(trace);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(0) };
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for the child made above.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0);
                drop(outer);
                drop(trace);
            }
        }
    })
    .run()
    .spans();
    assert_eq!(stagetrace::testing::tree(&spans, &[]), "outer\n");
}

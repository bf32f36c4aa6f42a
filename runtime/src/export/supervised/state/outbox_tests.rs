//! What waits on disk counts as neither queued nor gone.

use super::stored::{Asked, Listen, News};
use super::tests::{DELAY, TIMEOUT, check, done, put, state};
use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const CROWDED: Listen = Listen { every_batch: false, asked: Asked::Last };
const DUE: Listen = Listen { every_batch: true, asked: Asked::Any };

fn failure(cause: Cause) -> Failure {
    Failure { cause, problem: "away".to_owned() }
}

#[test]
fn spans_that_are_put_aside_wait_until_they_are_out() {
    let (mut state, now) = (state(None, 3), Instant::now());
    put(&mut state, 3, now);
    assert!(matches!(state.next(now), Ok(Task::Export(_))));
    assert_eq!(state.stored(3), 3);
    state.troubled("away");
    done(&mut state);
    let status = check(&state, 3);
    assert_eq!((status.outbox, status.queued, status.exported), (3, 0, 0));
    assert_eq!(status.failing.as_deref(), Some("away"), "that it was put aside is no success");
    assert_eq!(state.verdict(), Err("3 spans wait in the outbox: away".to_owned()));
    let standing = Standing { taken: 3, gone: 3, lost: 0 };
    assert_eq!(state.standing(), standing, "they are safe");
    state.settled(3, &[(1, failure(Cause::Rejected))], now);
    let status = check(&state, 3);
    assert_eq!((status.outbox, status.exported, status.failed), (0, 2, 1));
    assert_eq!(state.standing(), standing, "they were safe when they left");
}

#[test]
fn with_the_last_of_them_the_exporter_is_well_again() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 4, now);
    for _ in 0..2 {
        assert!(state.next(now).is_ok());
        state.stored(2);
        state.troubled("away");
        done(&mut state);
    }
    state.settled(2, &[], now);
    assert_eq!(check(&state, 4).failing.as_deref(), Some("away"));
    state.settled(2, &[], now);
    assert_eq!(check(&state, 4).failing, None);
    assert_eq!(state.verdict(), Ok(()));
}

#[test]
fn a_busy_exporter_is_given_what_there_is_soon_no_room_for() {
    let (mut state, now) = (state(Some(8), 2), Instant::now());
    let waker = Waker::noop();
    put(&mut state, 2, now);
    assert!(state.next(now).is_ok());
    put(&mut state, 4, now);
    assert_eq!(state.news(now, CROWDED, waker), Err(None));
    put(&mut state, 2, now);
    let Ok(News::Batch(batch)) = state.news(now, CROWDED, waker) else { panic!("it is crowded") };
    assert_eq!(batch.spans(), 2);
    assert_eq!((check(&state, 8).queued, state.standing().gone), (8, 0), "the call is older");
    done(&mut state);
    assert_eq!(state.standing().gone, 2);
    assert_eq!(state.stored(2), 2);
    assert_eq!((check(&state, 8).outbox, state.standing().gone), (2, 4));
}

#[test]
fn one_whose_server_is_away_is_given_every_batch_that_is_due() {
    let (mut state, now) = (state(None, 3), Instant::now());
    let waker = Waker::noop();
    assert_eq!(state.news(now, DUE, waker), Err(None));
    put(&mut state, 2, now);
    assert_eq!(state.news(now, DUE, waker), Err(Some(DELAY)));
    let later = now + DELAY;
    let Ok(News::Batch(batch)) = state.news(later, DUE, waker) else { panic!("it is due") };
    assert_eq!(batch.spans(), 2);
    state.not_stored(&failure(Cause::Unavailable));
    assert_eq!(check(&state, 2).failed_by, [("unavailable", 2)]);
    assert_eq!(state.standing(), Standing { taken: 2, gone: 2, lost: 2 });
}

#[test]
fn it_hears_of_the_flushes_that_it_listens_for() {
    let (mut state, now) = (state(None, 3), Instant::now());
    let (waker, deadline) = (Waker::noop(), now + TIMEOUT);
    state.ask(deadline, false);
    assert_eq!(state.news(now, CROWDED, waker), Err(None), "this is not the last");
    assert_eq!(state.news(now, DUE, waker), Ok(News::Flush(deadline)));
    state.ask(deadline, true);
    assert_eq!(state.news(now, CROWDED, waker), Ok(News::Flush(deadline)));
}

#[test]
fn it_is_woken_once_when_something_comes() {
    let (mut state, now) = (state(None, 3), Instant::now());
    let bell = Arc::new(Bell::default());
    assert_eq!(state.news(now, DUE, &Waker::from(Arc::clone(&bell))), Err(None));
    assert!(put(&mut state, 1, now));
    state.take_waker().expect("it listens").wake();
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    assert!(state.take_waker().is_none());
}

#[test]
fn of_a_call_that_was_given_up_nothing_counts_twice() {
    let (mut state, now) = (state(None, 3), Instant::now());
    put(&mut state, 3, now);
    assert!(state.next(now).is_ok());
    state.watch(now + 2 * TIMEOUT);
    assert_eq!(check(&state, 3).failed_by, [("timeout", 3)]);
    assert_eq!(state.stored(3), 0, "they are lost already");
    done(&mut state);
    state.settled(0, &[], now);
    assert_eq!(check(&state, 3).failed, 3);
}

#[test]
fn what_is_on_its_way_when_the_exporter_ends_is_lost() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 2, now);
    assert!(state.news(now, DUE, Waker::noop()).is_ok());
    state.close(Some("it has ended"));
    assert_eq!(check(&state, 2).failed_by, [("already_shutdown", 2)]);
}

#[test]
fn a_busy_exporter_is_woken_as_soon_as_there_is_little_room() {
    let (mut state, now) = (state(Some(8), 8), Instant::now());
    put(&mut state, 2, now);
    assert!(state.next(now + DELAY).is_ok());
    let later = now + DELAY;
    put(&mut state, 4, later);
    assert_eq!(state.news(later, CROWDED, Waker::noop()), Err(None));
    assert!(put(&mut state, 1, later), "more than half of the queue is taken");
    assert!(state.news(later, CROWDED, Waker::noop()).is_ok());
}

#[test]
fn an_exporter_whose_spans_leave_the_disk_does_not_hang() {
    let (mut state, mut now) = (state(None, 2), Instant::now());
    put(&mut state, 2, now);
    assert!(state.next(now).is_ok());
    state.stored(2);
    done(&mut state);
    state.ask(now + 4 * TIMEOUT, false);
    assert!(matches!(state.next(now), Ok(Task::Flush(_))));
    for _ in 0..3 {
        now += TIMEOUT / 2 + GRACE;
        state.watch(now);
        state.settled(0, &[], now);
    }
    assert!(state.is_flushing());
    put(&mut state, 2, now);
    assert_eq!(check(&state, 4).failed, 0);
    state.watch(now + 2 * TIMEOUT);
    assert!(!state.is_flushing(), "without any progress it does");
}

#[test]
fn what_others_left_makes_it_well_again_and_what_is_refused_does_not() {
    let (mut state, now) = (state(None, 3), Instant::now());
    state.troubled("away");
    state.settled(0, &[], now);
    assert_eq!(check(&state, 0).failing, None, "a server that takes it is there");
    put(&mut state, 3, now);
    assert!(state.next(now).is_ok());
    state.stored(3);
    done(&mut state);
    state.settled(3, &[(1, failure(Cause::Rejected))], now);
    assert_eq!(check(&state, 3).failing.as_deref(), Some("away"));
}

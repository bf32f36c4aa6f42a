use super::*;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
use opentelemetry_sdk::error::OTelSdkError;

const DELAY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(30);

fn state(max_queue_size: Option<usize>, max_export_batch_size: usize) -> State {
    State::new(Batching {
        max_queue_size,
        max_export_batch_size,
        schedule_delay: DELAY,
        export_timeout: TIMEOUT,
    })
}

fn span() -> SpanData {
    SpanData {
        span_context: SpanContext::NONE,
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "step".into(),
        start_time: std::time::SystemTime::UNIX_EPOCH,
        end_time: std::time::SystemTime::UNIX_EPOCH,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status: Status::Unset,
        instrumentation_scope: Default::default(),
    }
}

/// So many spans, which have waited since `since`.
fn spans(count: usize, since: Instant) -> Vec<Waiting> {
    (0..count).map(|_| Waiting { since, ..Waiting::new(span()) }).collect()
}

fn batch(task: Result<Task, Option<Duration>>) -> usize {
    match task {
        Ok(Task::Export(batch)) => batch.len(),
        other => panic!("not a batch: {other:?}"),
    }
}

/// Every span that was handed over is queued, exported or failed.
fn check(state: &State, handed: u64) -> SinkStatus {
    let status = state.status();
    assert_eq!(handed, status.queued + status.exported + status.failed, "{status:?}");
    assert_eq!(status.failed, status.failed_by.iter().map(|(_, count)| count).sum::<u64>());
    status
}

#[test]
fn spans_wait_until_a_batch_is_full() {
    let (mut state, now) = (state(None, 3), Instant::now());
    assert_eq!(state.next(now), Err(None));
    assert!(state.put(&mut spans(2, now)), "the first must wake the thread: it sets its clock");
    assert_eq!(state.next(now), Err(Some(DELAY)));
    assert!(state.put(&mut spans(2, now)));
    assert_eq!(batch(state.next(now)), 3);
    state.done(Ok(()));
    assert_eq!(state.next(now), Err(Some(DELAY)), "the fourth waits for others");
    assert_eq!(check(&state, 4).exported, 3);
}

#[test]
fn spans_wait_no_longer_than_the_delay() {
    let (mut state, now) = (state(None, 512), Instant::now());
    state.put(&mut spans(1, now));
    let later = now + Duration::from_secs(3);
    state.put(&mut spans(1, later));
    assert_eq!(state.next(later), Err(Some(Duration::from_secs(2))));
    assert_eq!(batch(state.next(now + DELAY)), 2);
}

#[test]
fn a_batch_is_bounded_by_bytes_but_a_large_span_goes_all_the_same() {
    let (mut state, now) = (state(None, 512), Instant::now());
    let large = |bytes| vec![Waiting { span: span(), bytes, since: now }];
    for bytes in [BATCH_BYTES / 2, BATCH_BYTES / 2, 1, BATCH_BYTES * 2, 1] {
        state.put(&mut large(bytes));
    }
    for spans in [2, 1, 1] {
        assert_eq!(batch(state.next(now)), spans);
        state.done(Ok(()));
    }
    assert_eq!(state.next(now), Err(Some(DELAY)));
    assert_eq!(state.bytes, 1);
}

#[test]
fn a_full_queue_drops_what_is_new_and_counts_it() {
    let (mut state, now) = (state(Some(10), 4), Instant::now());
    state.put(&mut spans(13, now));
    let status = check(&state, 13);
    assert_eq!(status.failed_by, [("queue_full", 3)]);
    assert_eq!(status.failing.as_deref(), Some("its queue is full"));
    let most = QUEUE_BYTES / 4;
    let mut heavy: Vec<_> =
        (0..5).map(|_| Waiting { span: span(), bytes: most, since: now }).collect();
    let mut by_bytes = self::state(None, 4);
    by_bytes.put(&mut heavy);
    assert_eq!(check(&by_bytes, 5).failed_by, [("queue_full", 1)]);
}

#[test]
fn a_flush_lets_go_of_what_was_there_before_it() {
    let (mut state, now) = (state(None, 4), Instant::now());
    state.put(&mut spans(6, now));
    state.ask(now + TIMEOUT, false);
    state.put(&mut spans(1, now));
    assert_eq!(batch(state.next(now)), 4);
    state.done(Ok(()));
    assert_eq!(batch(state.next(now)), 3);
    assert!(state.is_flushing());
    state.done(Ok(()));
    assert_eq!(state.next(now), Ok(Task::Flush));
    assert!(state.is_flushing());
    state.done(Ok(()));
    assert!(!state.is_flushing());
    assert_eq!(state.verdict(), Ok(()));
    assert_eq!(state.next(now), Err(None));
}

#[test]
fn spans_that_found_no_room_do_not_let_a_flush_end_early() {
    let (mut state, now) = (state(Some(4), 2), Instant::now());
    state.put(&mut spans(4, now));
    state.ask(now + TIMEOUT, false);
    state.put(&mut spans(4, now));
    assert_eq!(batch(state.next(now)), 2);
    state.done(Ok(()));
    assert_eq!(batch(state.next(now)), 2, "two of the four are still there");
    state.done(Ok(()));
    assert_eq!(state.next(now), Ok(Task::Flush));
}

#[test]
fn a_flush_names_every_failure_since_the_last_one() {
    let (mut state, now) = (state(Some(4), 2), Instant::now());
    let refused = || Failure::from(OTelSdkError::InternalFailure("no route".to_owned()));
    state.put(&mut spans(5, now));
    assert_eq!(batch(state.next(now)), 2);
    state.done(Err(Failure::panic("boom")));
    assert_eq!(batch(state.next(now)), 2);
    state.done(Err(refused()));
    let problem = state.verdict().expect_err("all five are lost");
    let counts = "lost 5 spans (queue_full 1, panic 2, export_failed 2)";
    assert_eq!(problem, format!("{counts}; its queue is full"));
    let status = check(&state, 5);
    assert_eq!(status.failing.as_deref(), Some("`export`: Operation failed: no route"));
    assert_eq!(status.panics, 1);

    assert_eq!(state.verdict(), Ok(()), "it was said");
    state.put(&mut spans(2, now));
    assert_eq!(batch(state.next(now)), 2);
    state.done(Ok(()));
    assert_eq!(check(&state, 7).failing, None, "it is well again");
}

#[test]
fn what_goes_wrong_is_said_aloud_once_per_cause() {
    let (mut state, now) = (state(None, 1), Instant::now());
    state.put(&mut spans(3, now));
    for panic in ["first", "second"] {
        assert_eq!(batch(state.next(now)), 1);
        state.done(Err(Failure::panic(panic)));
    }
    let said = state.take_complaints();
    assert_eq!(said, [("panic", "`export`: panicked: first".to_owned())]);
    assert_eq!(batch(state.next(now)), 1);
    state.done(Err(OTelSdkError::Timeout(TIMEOUT).into()));
    assert_eq!(state.take_complaints().len(), 1, "another cause");
}

#[test]
fn an_exporter_that_hangs_loses_its_spans_and_what_comes_until_it_returns() {
    let (mut state, now) = (state(None, 2), Instant::now());
    state.put(&mut spans(5, now));
    assert_eq!(batch(state.next(now)), 2);
    state.ask(now + TIMEOUT, false);
    state.watch(now + TIMEOUT);
    assert!(state.is_flushing(), "it may still be cancelled in time");

    state.watch(now + TIMEOUT + 2 * GRACE);
    assert!(!state.is_flushing());
    state.put(&mut spans(3, now));
    let status = check(&state, 8);
    assert_eq!(status.failed_by, [("timeout", 2), ("exporter_hangs", 6)]);
    assert_eq!(status.failing.as_deref(), Some("`export` has not returned within 30s"));
    let problem = state.verdict().expect_err("it hangs");
    let counts = "lost 8 spans (timeout 2, exporter_hangs 6)";
    assert_eq!(problem, format!("{counts}; `export` has not returned within 30s"));
    assert_eq!(state.verdict(), Err("`export` has not returned within 30s".to_owned()));

    assert_eq!(state.take_complaints().len(), 1);

    state.done(Ok(()));
    assert_eq!(check(&state, 8).exported, 0, "each span counts once");
    assert_eq!(state.next(now), Ok(Task::Flush), "it is still asked for");
    state.done(Ok(()));
    state.put(&mut spans(1, now - DELAY));
    assert_eq!(batch(state.next(now)), 1);
    state.done(Ok(()));
    let status = check(&state, 9);
    assert_eq!((status.exported, status.failing), (1, None));
}

#[test]
fn a_flush_that_its_deadline_overtook_says_what_is_left() {
    let (mut state, now) = (state(None, 2), Instant::now());
    state.put(&mut spans(3, now));
    state.ask(now, false);
    assert_eq!(batch(state.next(now)), 2);
    let problem = state.verdict().expect_err("nothing is exported yet");
    assert_eq!(problem, "not done at the deadline, 3 spans are not exported yet");
}

#[test]
fn the_last_flush_shuts_down_and_what_comes_later_is_counted() {
    let (mut state, now) = (state(None, 2), Instant::now());
    let deadline = now + TIMEOUT;
    state.put(&mut spans(1, now));
    state.ask(deadline, true);
    state.ask(deadline, false);
    assert_eq!(batch(state.next(now)), 1);
    state.done(Ok(()));
    assert_eq!(state.next(now), Ok(Task::Close(deadline)));
    state.put(&mut spans(1, now));
    state.done(Ok(()));
    state.close(None);
    state.close(Some("its thread has ended"));
    state.put(&mut spans(1, now));
    assert!(!state.is_flushing());
    assert_eq!(state.next(now), Err(None));
    let status = check(&state, 3);
    assert_eq!((status.exported, status.failed_by), (1, vec![("already_shutdown", 2)]));
    assert_eq!(status.failing.as_deref(), Some("it is shut down"));
}

#[test]
fn a_thread_that_ends_unasked_is_reported() {
    let (mut state, now) = (state(None, 2), Instant::now());
    state.put(&mut spans(3, now));
    state.ask(now + TIMEOUT, false);
    assert_eq!(batch(state.next(now)), 2);
    state.close(Some("its thread has ended"));
    assert!(!state.is_flushing());
    assert_eq!(check(&state, 3).failed, 3);
    let problem = state.verdict().expect_err("all is lost");
    assert_eq!(problem, "lost 3 spans (already_shutdown 3); its thread has ended");
}

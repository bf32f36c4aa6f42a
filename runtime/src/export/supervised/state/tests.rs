use super::*;

pub(super) const DELAY: Duration = Duration::from_secs(5);
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// So many spans of so many bytes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Spans(Vec<usize>);

impl Batch for Spans {
    fn spans(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.iter().sum()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

pub(super) fn state(max_queue_size: Option<usize>, max_export_batch_size: usize) -> State<Spans> {
    State::new(Batching {
        max_queue_size,
        max_export_batch_size,
        schedule_delay: DELAY,
        export_timeout: TIMEOUT,
    })
}

/// Puts in so many small spans, as the sink does. Whether the exporter's thread is to look.
pub(super) fn put(state: &mut State<Spans>, count: usize, now: Instant) -> bool {
    put_spans(state, &vec![1; count], now)
}

/// Puts in spans of these bytes.
fn put_spans(state: &mut State<Spans>, spans: &[usize], now: Instant) -> bool {
    let mut is_news = false;
    let mut filling = state.fill(now);
    for &bytes in spans {
        let too_large = filling.batch.spans() > 0 && filling.batch.bytes() + bytes > BATCH_BYTES;
        if too_large || is_full(&filling.batch, &state.batching) {
            filling.closed = too_large;
            is_news |= state.put(filling, now);
            filling = state.fill(now);
        }
        if filling.admits(bytes) {
            filling.batch.0.push(bytes);
        }
    }
    is_news | state.put(filling, now)
}

/// The task is done.
pub(super) fn done(state: &mut State<Spans>) {
    state.done(Ok(Vec::new()), None);
}

fn batch(task: Result<Task<Spans>, Option<Duration>>) -> usize {
    match task {
        Ok(Task::Export(batch)) => batch.spans(),
        other => panic!("not a batch: {other:?}"),
    }
}

/// Every span that was handed over is queued, exported or failed.
pub(super) fn check(state: &State<Spans>, handed: u64) -> SinkStatus {
    let status = state.status();
    let accounted = status.queued + status.outbox + status.exported + status.failed;
    assert_eq!(handed, accounted, "{status:?}");
    assert_eq!(status.failed, status.failed_by.iter().map(|(_, count)| count).sum::<u64>());
    status
}

#[test]
fn spans_wait_until_a_batch_is_full() {
    let (mut state, now) = (state(None, 3), Instant::now());
    assert_eq!(state.next(now), Err(None));
    assert!(put(&mut state, 2, now), "the first must wake the thread: it sets its clock");
    assert_eq!(state.next(now), Err(Some(DELAY)));
    assert!(put(&mut state, 2, now));
    assert_eq!(batch(state.next(now)), 3);
    done(&mut state);
    assert_eq!(state.next(now), Err(Some(DELAY)), "the fourth waits for others");
    assert_eq!(check(&state, 4).exported, 3);
}

#[test]
fn spans_wait_no_longer_than_the_delay() {
    let (mut state, now) = (state(None, 512), Instant::now());
    put(&mut state, 1, now);
    let later = now + Duration::from_secs(3);
    put(&mut state, 1, later);
    assert_eq!(state.next(later), Err(Some(Duration::from_secs(2))));
    assert_eq!(batch(state.next(now + DELAY)), 2);
}

#[test]
fn a_batch_is_bounded_by_bytes_but_a_large_span_goes_all_the_same() {
    let (mut state, now) = (state(None, 512), Instant::now());
    put_spans(&mut state, &[BATCH_BYTES / 2, BATCH_BYTES / 2, 1, BATCH_BYTES * 2, 1], now);
    for spans in [2, 1, 1] {
        assert_eq!(batch(state.next(now)), spans);
        done(&mut state);
    }
    assert_eq!(state.next(now), Err(Some(DELAY)));
    assert_eq!(state.bytes, 1);
}

#[test]
fn a_full_queue_drops_what_is_new_and_counts_it() {
    let (mut state, now) = (state(Some(10), 4), Instant::now());
    put(&mut state, 13, now);
    let status = check(&state, 13);
    assert_eq!(status.failed_by, [("queue_full", 3)]);
    assert_eq!(status.failing.as_deref(), Some("its queue is full"));
    let mut by_bytes = self::state(None, 4);
    put_spans(&mut by_bytes, &[QUEUE_BYTES / 4; 5], now);
    assert_eq!(check(&by_bytes, 5).failed_by, [("queue_full", 1)]);
}

#[test]
fn a_flush_lets_go_of_what_was_there_before_it() {
    let (mut state, now) = (state(None, 4), Instant::now());
    put(&mut state, 6, now);
    state.ask(now + TIMEOUT, false);
    put(&mut state, 1, now);
    assert_eq!(batch(state.next(now)), 4);
    done(&mut state);
    assert_eq!(batch(state.next(now)), 3);
    assert!(state.is_flushing());
    done(&mut state);
    assert_eq!(state.next(now), Ok(Task::Flush(now + TIMEOUT)));
    assert!(state.is_flushing());
    done(&mut state);
    assert!(!state.is_flushing());
    assert_eq!(state.verdict(), Ok(()));
    assert_eq!(state.next(now), Err(None));
}

#[test]
fn spans_that_found_no_room_do_not_let_a_flush_end_early() {
    let (mut state, now) = (state(Some(4), 2), Instant::now());
    put(&mut state, 4, now);
    state.ask(now + TIMEOUT, false);
    put(&mut state, 4, now);
    assert_eq!(batch(state.next(now)), 2);
    done(&mut state);
    assert_eq!(batch(state.next(now)), 2, "two of the four are still there");
    done(&mut state);
    assert_eq!(state.next(now), Ok(Task::Flush(now + TIMEOUT)));
}

#[test]
fn what_is_lost_of_a_batch_counts_under_its_causes_and_the_rest_as_exported() {
    let (mut state, now) = (state(None, 8), Instant::now());
    put(&mut state, 8, now);
    assert_eq!(batch(state.next(now)), 8);
    let lost = |cause, problem: &str| Failure { cause, problem: problem.to_owned() };
    let losses = vec![(3, lost(Cause::Rejected, "too old")), (1, lost(Cause::TooLarge, "413"))];
    state.done(Ok(losses), None);
    let status = check(&state, 8);
    assert_eq!((status.exported, status.failed), (4, 4));
    assert_eq!(status.failed_by, [("rejected", 3), ("too_large", 1)]);
    assert_eq!(status.failing.as_deref(), Some("`export`: 413"));

    // Nobody loses more than there was.
    put(&mut state, 8, now);
    assert_eq!(batch(state.next(now)), 8);
    state.done(Ok(vec![(u64::MAX, lost(Cause::Rejected, "all"))]), None);
    assert_eq!(check(&state, 16).failed, 12);
}

#[test]
fn a_span_that_no_queue_holds_is_lost_alone_and_not_to_a_full_queue() {
    let (mut state, now) = (state(None, 8), Instant::now());
    put_spans(&mut state, &[1, QUEUE_BYTES + 1, 1], now);
    assert_eq!(check(&state, 3).failed_by, [("too_large", 1)]);
}

#[test]
fn a_flush_names_every_failure_since_the_last_one() {
    let (mut state, now) = (state(Some(4), 2), Instant::now());
    let refused = || Failure::refused("no route".to_owned());
    put(&mut state, 5, now);
    assert_eq!(batch(state.next(now)), 2);
    state.done(Err(Failure::panic("boom")), None);
    assert_eq!(batch(state.next(now)), 2);
    state.done(Err(refused()), None);
    let problem = state.verdict().expect_err("all five are lost");
    let counts = "lost 5 spans (queue_full 1, panic 2, export_failed 2)";
    assert_eq!(problem, format!("{counts}; its queue is full"));
    let status = check(&state, 5);
    assert_eq!(status.failing.as_deref(), Some("`export`: no route"));
    assert_eq!(status.panics, 1);

    assert_eq!(state.verdict(), Ok(()), "it was said");
    put(&mut state, 2, now);
    assert_eq!(batch(state.next(now)), 2);
    done(&mut state);
    assert_eq!(check(&state, 7).failing, None, "it is well again");
}

#[test]
fn since_when_it_fails_is_told_until_a_success() {
    let (now, mut state) = (Instant::now(), state(None, 1));
    let mut export = |result: Result<Vec<(u64, Failure)>, Failure>| {
        put(&mut state, 1, now);
        assert_eq!(batch(state.next(now)), 1);
        state.done(result, None);
        state.status().failing_since
    };
    assert_eq!(export(Ok(Vec::new())), None);
    let since = export(Err(Failure::refused("no route".to_owned())));
    assert!(since.is_some_and(|since| since <= SystemTime::now()));
    assert_eq!(export(Err(Failure::refused("no answer".to_owned()))), since);
    assert_eq!(export(Ok(Vec::new())), None);
}

#[test]
fn what_goes_wrong_is_said_aloud_once_per_cause() {
    let (mut state, now) = (state(None, 1), Instant::now());
    put(&mut state, 3, now);
    for panic in ["first", "second"] {
        assert_eq!(batch(state.next(now)), 1);
        state.done(Err(Failure::panic(panic)), None);
    }
    let said = state.take_complaints();
    assert_eq!(said, [("panic", "`export`: panicked: first".to_owned())]);
    assert_eq!(batch(state.next(now)), 1);
    state.done(Err(Failure { cause: Cause::Timeout, problem: "too slow".to_owned() }), None);
    assert_eq!(state.take_complaints().len(), 1, "another cause");
}

#[test]
fn an_exporter_that_hangs_loses_its_spans_and_what_comes_until_it_returns() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 5, now);
    assert_eq!(batch(state.next(now)), 2);
    state.ask(now + TIMEOUT, false);
    state.watch(now + TIMEOUT);
    assert!(state.is_flushing(), "it may still be cancelled in time");

    state.watch(now + TIMEOUT + 2 * GRACE);
    assert!(!state.is_flushing());
    put(&mut state, 3, now);
    let status = check(&state, 8);
    assert_eq!(status.failed_by, [("timeout", 2), ("exporter_hangs", 6)]);
    assert_eq!(status.failing.as_deref(), Some("`export` has not returned within 30s"));
    let problem = state.verdict().expect_err("it hangs");
    let counts = "lost 8 spans (timeout 2, exporter_hangs 6)";
    assert_eq!(problem, format!("{counts}; `export` has not returned within 30s"));
    assert_eq!(state.verdict(), Err("`export` has not returned within 30s".to_owned()));

    assert_eq!(state.take_complaints().len(), 1);

    done(&mut state);
    assert_eq!(check(&state, 8).exported, 0, "each span counts once");
    assert_eq!(state.next(now), Ok(Task::Flush(now + TIMEOUT)), "it is still asked for");
    done(&mut state);
    put(&mut state, 1, now - DELAY);
    assert_eq!(batch(state.next(now)), 1);
    done(&mut state);
    let status = check(&state, 9);
    assert_eq!((status.exported, status.failing), (1, None));
}

#[test]
fn a_flush_that_its_deadline_overtook_says_what_is_left() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 3, now);
    state.ask(now, false);
    assert_eq!(batch(state.next(now)), 2);
    let problem = state.verdict().expect_err("nothing is exported yet");
    assert_eq!(problem, "not done at the deadline, 3 spans are not exported yet");
}

#[cfg(feature = "_network")]
#[test]
fn it_says_why_if_something_fails_meanwhile() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 2, now);
    state.ask(now, false);
    assert_eq!(batch(state.next(now)), 2);
    state.troubled("no route");
    let status = check(&state, 2);
    assert_eq!((status.failing.as_deref(), status.failed), (Some("no route"), 0));
    let problem = state.verdict().expect_err("nothing is exported yet");
    assert_eq!(problem, "not done at the deadline, 2 spans are not exported yet: no route");
    done(&mut state);
    assert_eq!(check(&state, 2).failing, None, "it has arrived");
}

#[test]
fn the_last_flush_shuts_down_and_what_comes_later_is_counted() {
    let (mut state, now) = (state(None, 2), Instant::now());
    let deadline = now + TIMEOUT;
    put(&mut state, 1, now);
    state.ask(deadline, true);
    state.ask(deadline, false);
    assert_eq!(batch(state.next(now)), 1);
    done(&mut state);
    assert_eq!(state.next(now), Ok(Task::Close(deadline)));
    put(&mut state, 1, now);
    done(&mut state);
    state.close(None);
    state.close(Some("its thread has ended"));
    put(&mut state, 1, now);
    assert!(!state.is_flushing());
    assert_eq!(state.next(now), Err(None));
    let status = check(&state, 3);
    assert_eq!((status.exported, status.failed_by), (1, vec![("already_shutdown", 2)]));
    assert_eq!(status.failing.as_deref(), Some("it is shut down"));
}

#[test]
fn a_thread_that_ends_unasked_is_reported() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 3, now);
    state.ask(now + TIMEOUT, false);
    assert_eq!(batch(state.next(now)), 2);
    state.close(Some("its thread has ended"));
    assert!(!state.is_flushing());
    assert_eq!(check(&state, 3).failed, 3);
    let problem = state.verdict().expect_err("all is lost");
    assert_eq!(problem, "lost 3 spans (already_shutdown 3); its thread has ended");
}

#[test]
fn a_batch_is_filled_further_until_it_is_full_and_keeps_its_age() {
    let (mut state, now) = (state(None, 4), Instant::now());
    put(&mut state, 1, now);
    let later = now + DELAY / 2;
    let filling = state.fill(later);
    assert_eq!((filling.batch.spans(), state.queued()), (1, 0));
    assert_eq!(state.next(later), Err(Some(DELAY / 2)), "the thread's clock goes on");
    assert!(!state.put(filling, later), "and needs no news");
    assert!(!put(&mut state, 2, later));
    assert!(put(&mut state, 1, later), "it is full");
    assert_eq!(batch(state.next(later)), 4);
    assert_eq!(check(&state, 4).queued, 4);
}

#[test]
fn what_is_being_filled_when_a_flush_begins_is_waited_for() {
    let (mut state, now) = (state(None, 4), Instant::now());
    put(&mut state, 1, now);
    state.ask(now + TIMEOUT, true);
    let filling = state.fill(now);
    assert_eq!(state.next(now), Err(None));
    assert!(state.put(filling, now));
    assert_eq!(batch(state.next(now)), 1);
    done(&mut state);
    assert_eq!(state.next(now), Ok(Task::Close(now + TIMEOUT)));
}

#[test]
fn a_batch_that_is_due_while_it_is_filled_leaves_when_it_comes_back() {
    let (mut state, now) = (state(None, 4), Instant::now());
    put(&mut state, 1, now);
    let filling = state.fill(now + DELAY);
    assert_eq!(state.next(now + DELAY), Err(None));
    assert!(state.put(filling, now + DELAY));
    assert_eq!(batch(state.next(now + DELAY)), 1);
}

#[test]
fn an_empty_batch_serves_again() {
    let (mut state, now) = (state(None, 1), Instant::now());
    put(&mut state, 1, now);
    let Ok(Task::Export(Spans(mut spans))) = state.next(now) else { panic!("it is due") };
    spans.reserve_exact(77);
    let (memory, capacity) = (spans.as_ptr(), spans.capacity());
    spans.clear();
    state.done(Ok(Vec::new()), Some(Spans(spans)));
    let again = state.fill(now).batch.0;
    assert_eq!((again.as_ptr(), again.capacity()), (memory, capacity));
}

/// How many have come, have gone, and were lost.
fn standing(state: &State<Spans>) -> (u64, u64, u64) {
    let Standing { taken, gone, lost } = state.standing();
    (taken, gone, lost)
}

#[test]
fn spans_have_gone_when_all_before_them_have_though_later_ones_found_no_room() {
    let (mut state, now) = (state(Some(4), 2), Instant::now());
    put(&mut state, 3, now);
    assert_eq!(standing(&state), (3, 0, 0));
    put(&mut state, 3, now);
    assert_eq!(standing(&state), (6, 0, 2), "two found no room");
    assert_eq!(batch(state.next(now)), 2);
    assert_eq!(standing(&state), (6, 0, 2), "they are only on their way");
    done(&mut state);
    assert_eq!(standing(&state), (6, 2, 2));
    assert_eq!(batch(state.next(now)), 2);
    state.done(Err(Failure::refused("no route".to_owned())), None);
    assert_eq!(standing(&state), (6, 6, 4));
}

#[test]
fn a_batch_that_is_filled_further_has_not_gone_before_its_first_span() {
    let (mut state, now) = (state(None, 4), Instant::now());
    put(&mut state, 2, now);
    put(&mut state, 1, now);
    put(&mut state, 3, now);
    assert_eq!(batch(state.next(now)), 4);
    assert_eq!(standing(&state), (6, 0, 0));
    done(&mut state);
    assert_eq!(standing(&state), (6, 4, 0));
}

#[test]
fn what_an_exporter_that_hangs_has_is_lost_and_gone() {
    let (mut state, now) = (state(None, 2), Instant::now());
    put(&mut state, 5, now);
    assert_eq!(batch(state.next(now)), 2);
    state.watch(now + TIMEOUT + 2 * GRACE);
    put(&mut state, 3, now);
    assert_eq!(standing(&state), (8, 8, 8));
    state.close(None);
    put(&mut state, 1, now);
    assert_eq!(standing(&state), (9, 9, 9));
}

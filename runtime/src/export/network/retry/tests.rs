//! Time stands still here but while everything waits; then it jumps.

use super::*;
use std::collections::VecDeque;

/// Plays a script, and keeps when it was asked. After the script it does not answer.
#[derive(Default)]
struct Scripted {
    script: VecDeque<Verdict>,
    attempts: Vec<Instant>,
    reconnects: usize,
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = Verdict>) -> Scripted {
        Scripted { script: script.into_iter().collect(), ..Scripted::default() }
    }

    /// The waits between attempts.
    fn waits(&self) -> Vec<Duration> {
        self.attempts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

impl Transport for Scripted {
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure> {
        Ok(Bytes::copy_from_slice(body))
    }

    async fn attempt(&mut self, _: Bytes) -> Verdict {
        self.attempts.push(Instant::now());
        match self.script.pop_front() {
            Some(verdict) => verdict,
            None => std::future::pending().await,
        }
    }

    fn reconnect(&mut self) {
        self.reconnects += 1;
    }
}

const TEN: Duration = Duration::from_secs(10);

fn again() -> Verdict {
    Verdict::Again(None, "HTTP status 502".to_owned())
}

fn after(seconds: u64) -> Verdict {
    Verdict::Again(Some(Duration::from_secs(seconds)), "HTTP status 503".to_owned())
}

fn arrived() -> Verdict {
    Verdict::Arrived(Answer::default())
}

async fn send(
    transport: &mut Scripted,
    throttle: &mut Throttle,
) -> Result<Answer, (Cause, String)> {
    let sent = super::send(transport, Bytes::new(), Time::from_now(TEN), throttle, |_| {}).await;
    sent.map_err(|Failure { cause, problem }| (cause, problem))
}

#[tokio::test(start_paused = true)]
async fn waits_double_with_chance_until_an_attempt_arrives() {
    let mut server = Scripted::new([again(), again(), again(), arrived()]);
    assert_eq!(send(&mut server, &mut Throttle::default()).await, Ok(Answer::default()));
    let waits = server.waits();
    assert_eq!(waits.len(), 3);
    for (wait, longest) in waits.into_iter().zip([200, 400, 800]) {
        // The clock of tests has milliseconds.
        let range = Duration::from_millis(longest / 2)..=Duration::from_millis(longest + 1);
        assert!(range.contains(&wait), "{wait:?} is not in {range:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_tried_again() {
    for (verdict, expected) in [
        (Verdict::Refused("HTTP status 400".to_owned()), (Cause::Rejected, "HTTP status 400")),
        (Verdict::TooLarge("HTTP status 413".to_owned()), (Cause::TooLarge, "HTTP status 413")),
    ] {
        let mut server = Scripted::new([verdict]);
        let error = send(&mut server, &mut Throttle::default()).await.expect_err("it is refused");
        assert_eq!((error.0, error.1.as_str()), expected);
        assert_eq!(server.attempts.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_never_well_is_given_up_before_the_deadline() {
    let mut server = Scripted::new(std::iter::repeat_with(again).take(100));
    let start = Instant::now();
    let (cause, problem) =
        send(&mut server, &mut Throttle::default()).await.expect_err("it is never well");
    assert_eq!(cause, Cause::Unavailable);
    let times = server.attempts.len();
    assert_eq!(problem, format!("HTTP status 502; tried {times} times within 10s"));
    assert!((5..20).contains(&times), "{times} attempts");
    assert!(start.elapsed() < TEN);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_an_attempt_that_is_not_answered() {
    let before = "no answer within 10s; before that: HTTP status 502";
    for (script, attempts, cause, problem) in [
        (vec![], 1, Cause::Timeout, "no answer within 10s"),
        (vec![again()], 2, Cause::Unavailable, before),
    ] {
        let mut server = Scripted::new(script);
        let start = Instant::now();
        let error = send(&mut server, &mut Throttle::default()).await;
        assert_eq!(error, Err((cause, problem.to_owned())));
        assert!(start.elapsed() >= TEN && start.elapsed() < TEN + Duration::from_millis(100));
        assert_eq!((server.attempts.len(), server.reconnects), (attempts, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_at_least_that() {
    let mut server = Scripted::new([after(3), after(0), arrived()]);
    assert_eq!(send(&mut server, &mut Throttle::default()).await, Ok(Answer::default()));
    let waits = server.waits();
    assert!(waits[0] >= Duration::from_secs(3) && waits[0] < Duration::from_secs(4), "{waits:?}");
    assert!(waits[1] < Duration::from_secs(1), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_asks_for_more_than_there_is_loses_the_batch_and_the_next_one_waits() {
    let mut throttle = Throttle::default();
    let mut server = Scripted::new([after(15), arrived(), arrived()]);
    let start = Instant::now();
    let (cause, problem) =
        send(&mut server, &mut throttle).await.expect_err("it asks for too much");
    assert_eq!(
        (cause, problem.as_str()),
        (Cause::Unavailable, "HTTP status 503; tried once within 10s")
    );
    assert!(start.elapsed() < Duration::from_secs(1), "there is nothing to wait for");

    // The second batch is lost to the wait, the third comes when it is over.
    let (cause, _) =
        send(&mut server, &mut throttle).await.expect_err("it is still to be left alone");
    assert_eq!((cause, server.attempts.len()), (Cause::Unavailable, 1));
    assert_eq!(send(&mut server, &mut throttle).await, Ok(Answer::default()));
    assert!(server.waits()[0] >= Duration::from_secs(15), "{:?}", server.waits());
    assert_eq!(send(&mut server, &mut throttle).await, Ok(Answer::default()));
}

#[tokio::test(start_paused = true)]
async fn no_server_is_obeyed_for_a_year() {
    let mut throttle = Throttle::default();
    let mut server = Scripted::new([Verdict::Again(Some(Duration::MAX), String::new()), arrived()]);
    let (cause, _) = send(&mut server, &mut throttle).await.expect_err("it asks for too much");
    assert_eq!(cause, Cause::Unavailable);
    tokio::time::advance(LONGEST_OBEYED).await;
    assert_eq!(send(&mut server, &mut throttle).await, Ok(Answer::default()));
}

#[test]
fn a_wait_is_never_less_than_half_nor_more_than_all() {
    let waits: Vec<Duration> = (0..100).map(|_| jittered(TEN)).collect();
    assert!(waits.iter().all(|wait| (TEN / 2..=TEN).contains(wait)), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait != waits[0]), "chance has no part in it");
}

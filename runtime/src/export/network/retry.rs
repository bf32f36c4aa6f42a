//! Attempts until one is answered for good or the deadline has passed: OTLP's rules, for either transport.

use super::answer::Answer;
use crate::export::supervised::{Cause, Failure};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// What makes attempts.
pub(super) trait Transport: Send {
    /// Makes of a body what each attempt sends.
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure>;

    /// Makes one attempt.
    fn attempt(&mut self, body: Bytes) -> impl Future<Output = Verdict>;

    /// Forgets the connection, whose other end did not answer in time and perhaps never will.
    fn reconnect(&mut self);
}

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It has arrived.
    Arrived(Answer),
    /// Try again, not before so long, if the server says.
    Again(Option<Duration>, String),
    /// Never again.
    Refused(String),
    /// Never again in one piece.
    TooLarge(String),
}

/// How long a batch has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    within: Duration,
    until: Instant,
}

impl Time {
    /// So long from now on, at most a year.
    pub(super) fn from_now(within: Duration) -> Time {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        Time { within, until: Instant::now() + within.min(YEAR) }
    }

    pub(super) fn until(self) -> Instant {
        self.until
    }
}

/// When the server wants to hear of us again, in this batch or a later one.
#[derive(Debug, Default)]
pub(super) struct Throttle(Option<Instant>);

/// The longest wait that a server is given: one that asks for a year has made a mistake.
const LONGEST_OBEYED: Duration = Duration::from_secs(300);
/// The first wait, and the longest of those that the server does not ask for.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Sends a body. The deadline holds for all attempts, for the waits between them, and cuts a running one. Of each that failed
/// and is followed by another `fails` is told why.
pub(super) async fn send(
    transport: &mut impl Transport,
    body: Bytes,
    time: Time,
    throttle: &mut Throttle,
    mut fails: impl FnMut(&str),
) -> Result<Answer, Failure> {
    throttle.wait(time.until).await?;
    let mut backoff = Backoff::default();
    let mut last = None;
    for attempt in 1.. {
        let verdict = timeout_at(time.until, transport.attempt(body.clone())).await;
        let (least, problem) = match verdict {
            Ok(Verdict::Arrived(answer)) => return Ok(answer),
            Ok(Verdict::Again(least, problem)) => (least, problem),
            Ok(Verdict::Refused(problem)) => {
                return Err(Failure { cause: Cause::Rejected, problem });
            }
            Ok(Verdict::TooLarge(problem)) => {
                return Err(Failure { cause: Cause::TooLarge, problem });
            }
            Err(_) => {
                transport.reconnect();
                return Err(timed_out(time.within, last));
            }
        };
        throttle.set(least);
        let until = backoff.next(least);
        if until >= time.until {
            let times = if attempt == 1 { "once".to_owned() } else { format!("{attempt} times") };
            let problem = format!("{problem}; tried {times} within {:?}", time.within);
            return Err(Failure { cause: Cause::Unavailable, problem });
        }
        fails(&problem);
        sleep_until(until).await;
        last = Some(problem);
    }
    unreachable!("attempts end at the deadline")
}

/// The deadline has cut an attempt. A server that was ill before is so still.
fn timed_out(within: Duration, last: Option<String>) -> Failure {
    let problem = format!("no answer within {within:?}");
    match last {
        None => Failure { cause: Cause::Timeout, problem },
        Some(last) => {
            let problem = format!("{problem}; before that: {last}");
            Failure { cause: Cause::Unavailable, problem }
        }
    }
}

/// Waits between attempts, each twice as long as the one before.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(FIRST_WAIT)
    }
}

impl Backoff {
    /// When to try again, after the server has asked for so long, if it has.
    pub(super) fn next(&mut self, least: Option<Duration>) -> Instant {
        let wait = self.0;
        self.0 = (2 * wait).min(LONGEST_WAIT);
        Instant::now() + least.unwrap_or_default().min(LONGEST_OBEYED) + jittered(wait)
    }
}

/// Half to all of a wait, by chance, so that those who failed together do not come back together.
fn jittered(wait: Duration) -> Duration {
    // Without chance the whole wait is as good.
    let chance = getrandom::u32().unwrap_or(u32::MAX);
    wait.mul_f64(0.5 + 0.5 * f64::from(chance) / f64::from(u32::MAX))
}

impl Throttle {
    /// The server wants to be left alone for so long.
    pub(super) fn set(&mut self, least: Option<Duration>) {
        if let Some(least) = least {
            self.0 = Some(Instant::now() + least.min(LONGEST_OBEYED));
        }
    }

    /// When it may be asked again, if it has asked for time.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0
    }

    /// Waits until the server may be asked again.
    async fn wait(&mut self, deadline: Instant) -> Result<(), Failure> {
        let Some(until) = self.0.filter(|until| *until > Instant::now()) else { return Ok(()) };
        // Meanwhile the queue keeps the later batches; to give this one up at once would soon empty it.
        sleep_until(until.min(deadline)).await;
        if until < deadline {
            self.0 = None;
            return Ok(());
        }
        let problem =
            "the server asked to be left alone for longer than an export may take".to_owned();
        Err(Failure { cause: Cause::Unavailable, problem })
    }
}

#[cfg(test)]
mod tests;

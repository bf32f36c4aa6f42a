//! Sends batches: within a deadline, in halves where one is too large, each loss under its cause. What cannot be sent now
//! waits in the outbox, if there is one.

use super::answer::Answer;
use super::beside::beside;
use super::body::Body;
use super::kept::{Kept, Line, Sent};
use super::retry::{self, Throttle, Time, Transport};
use crate::complain;
use crate::config::{Endpoint, Target};
use crate::export::supervised::{Asked, Cause, Failure, Listen, Outlet, Queue, silence};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

/// An outlet that has its own runtime.
pub(super) struct Sender<T, B: Body> {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    sending: Sending<T, B>,
}

struct Sending<T, B: Body> {
    transport: T,
    head: Arc<B::Head>,
    endpoint: Endpoint,
    timeout: Option<Duration>,
    throttle: Throttle,
    kept: Option<Kept>,
    losses: Vec<(u64, Failure)>,
    has_arrived: bool,
}

/// What has become of a batch so far.
struct Parts<B> {
    /// What was cut off and is to be sent.
    others: Vec<B>,
    arrived: Vec<(u64, Answer)>,
    /// What may be sent another time.
    unsent: Vec<(B, Failure)>,
    losses: Vec<(u64, Failure)>,
}

impl<T, B: Body> Sender<T, B> {
    /// One on this thread.
    pub(super) fn new(
        transport: T,
        head: Arc<B::Head>,
        target: &Target,
        kept: Option<Kept>,
    ) -> Result<Self, String> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name("stagetrace-dns")
            .on_thread_start(silence::for_this_thread)
            .build();
        let runtime = runtime.map_err(|error| format!("its runtime cannot start: {error}"))?;
        let sending = Sending {
            transport,
            head,
            endpoint: target.endpoint.clone(),
            timeout: target.timeout,
            throttle: Throttle::default(),
            kept,
            losses: Vec::new(),
            has_arrived: false,
        };
        Ok(Sender { runtime: Some(runtime), sending })
    }
}

impl<T: Transport, B: Body> Sender<T, B> {
    /// Sends what waits in the outbox, by then: see [`Kept::drain`].
    pub(super) fn drain(&mut self, queue: &Queue<B>, deadline: Instant) -> Sent {
        let Sender { runtime: Some(runtime), sending } = self else { return Sent::default() };
        let Some((kept, mut line)) = sending.kept(queue.export_timeout()) else {
            return Sent::default();
        };
        runtime.block_on(kept.drain(&mut line, deadline, queue))
    }
}

impl<T: Transport, B: Body> Sending<T, B> {
    /// Sends a batch. What cannot be sent now is put aside, or lost if there is no outbox; gives why.
    async fn export(&mut self, batch: &mut B, time: Time, queue: &Queue<B>) -> Option<Cause> {
        let mut parts = Parts::new();
        let Sending { transport, head, throttle, kept, .. } = self;
        let head: &B::Head = head;
        let done = {
            let sending = send_all(transport, throttle, head, batch, time, queue, &mut parts);
            match kept {
                None => {
                    sending.await;
                    Some(())
                }
                Some(kept) => {
                    let listen = Listen { every_batch: false, asked: Asked::Last };
                    let keep = |batch| kept.take_besides(batch, head, queue);
                    beside(pin!(sending), queue, listen, keep).await
                }
            }
        };
        let Parts { others, arrived, mut unsent, losses } = parts;
        if done.is_none() {
            transport.reconnect();
            let problem = "no answer before the shutdown".to_owned();
            let failure = Failure { cause: Cause::Timeout, problem };
            let left = std::iter::once(std::mem::take(batch)).chain(others);
            unsent.extend(left.map(|part| (part, failure.clone())));
        }
        self.losses.extend(losses);
        arrived.iter().for_each(|(spans, answer)| self.take_in(answer, *spans));
        let away = unsent.first().map(|(_, failure)| failure.cause);
        self.put_aside(unsent, queue);
        away
    }

    fn put_aside(&mut self, unsent: Vec<(B, Failure)>, queue: &Queue<B>) {
        let why = unsent.first().map(|(_, failure)| failure.problem.clone());
        for (mut part, failure) in unsent {
            let spans = part.spans() as u64;
            let kept = self.kept.as_mut().map(|kept| kept.take(&mut part, &self.head, queue));
            match kept {
                Some(Ok(())) => {}
                Some(Err(problem)) => {
                    let problem = format!("{}; nor can it wait in {problem}", failure.problem);
                    self.losses.push((spans, Failure { problem, ..failure }));
                }
                None => self.losses.push((spans, failure)),
            }
        }
        if let (Some(why), Some(kept)) = (why, &mut self.kept) {
            kept.is_away(&why, &self.throttle, queue);
        }
    }

    fn take_in(&mut self, answer: &Answer, spans: u64) {
        if let Some(kept) = &mut self.kept {
            kept.is_back();
        }
        if let Some(loss) = answer.loss(spans, &self.endpoint) {
            self.losses.push(loss);
        } else if answer.has_message() {
            complain::warn("otlp answer", format_args!("{}: {answer}", self.endpoint));
        }
        if answer.rejected < spans && !std::mem::replace(&mut self.has_arrived, true) {
            complain::info(format_args!("spans arrive at {}", self.endpoint));
        }
    }

    /// The outbox, and what sends what waits there.
    fn kept(&mut self, within: Duration) -> Option<(&mut Kept, Line<'_, T, B::Head>)> {
        let timeout = self.timeout.map_or(within, |timeout| timeout.min(within));
        let Sending { transport, throttle, head, kept, .. } = self;
        Some((kept.as_mut()?, Line { transport, throttle, head, timeout }))
    }
}

impl<B> Parts<B> {
    fn new() -> Parts<B> {
        Parts { others: Vec::new(), arrived: Vec::new(), unsent: Vec::new(), losses: Vec::new() }
    }
}

/// Sends a batch, halved until each part is taken or is a single span.
async fn send_all<B: Body>(
    transport: &mut impl Transport,
    throttle: &mut Throttle,
    head: &B::Head,
    batch: &mut B,
    time: Time,
    queue: &Queue<B>,
    parts: &mut Parts<B>,
) {
    // A connection that was closed meanwhile is found out now, and not by losing an attempt.
    for _ in 0..3 {
        yield_now().await;
    }
    loop {
        let spans = batch.spans();
        let sent = match transport.prepare(batch.encoded(head)) {
            Ok(body) => {
                let fails = |problem: &str| queue.troubled(problem);
                retry::send(transport, body, time, throttle, fails).await
            }
            Err(failure) => Err(failure),
        };
        match sent {
            Ok(answer) => parts.arrived.push((spans as u64, answer)),
            Err(Failure { cause: Cause::TooLarge, .. }) if spans > 1 => {
                parts.others.push(batch.split_off(spans / 2));
                continue;
            }
            Err(failure) if matches!(failure.cause, Cause::Timeout | Cause::Unavailable) => {
                parts.unsent.push((std::mem::take(batch), failure));
            }
            Err(failure) => parts.losses.push((spans as u64, failure)),
        }
        match parts.others.pop() {
            Some(next) => *batch = next,
            None => return,
        }
    }
}

impl<T: Transport, B: Body> Outlet<B> for Sender<T, B> {
    fn open(&mut self) -> Result<(), Failure> {
        if let Some(kept) = &mut self.sending.kept {
            kept.adopt();
        }
        Ok(())
    }

    fn export(&mut self, batch: &mut B, within: Duration, queue: &Queue<B>) -> Result<(), Failure> {
        let Sender { runtime: Some(runtime), sending } = self else {
            return Err(Failure::refused("it is shut down".to_owned()));
        };
        sending.losses.clear();
        // What cannot be written goes the straight way, as if there were no outbox.
        if let Some(kept) = sending.kept.as_mut().filter(|kept| kept.goes_first())
            && kept.take(batch, &sending.head, queue).is_ok()
        {
            return Ok(());
        }
        let within = sending.timeout.map_or(within, |timeout| timeout.min(within));
        let begun = Instant::now();
        let away = runtime.block_on(sending.export(batch, Time::from_now(within), queue));
        let lost = sending.losses.first().map(|(_, failure)| failure.cause);
        queue.operated(begun.elapsed(), away.or(lost));
        Ok(())
    }

    fn losses(&mut self) -> Vec<(u64, Failure)> {
        std::mem::take(&mut self.sending.losses)
    }

    fn times_itself(&self) -> bool {
        true
    }

    fn has_work(&self) -> bool {
        self.sending.kept.as_ref().is_some_and(Kept::has_work)
    }

    fn work(&mut self, queue: &Queue<B>) {
        let Sender { runtime: Some(runtime), sending } = self else { return };
        if let Some((kept, mut line)) = sending.kept(queue.export_timeout()) {
            runtime.block_on(kept.work(&mut line, queue));
        }
    }

    fn flush(&mut self, queue: &Queue<B>, deadline: Instant) -> Result<(), Failure> {
        let Sender { runtime: Some(runtime), sending } = self else { return Ok(()) };
        if let Some((kept, mut line)) = sending.kept(queue.export_timeout()) {
            runtime.block_on(kept.flush(&mut line, deadline, queue));
        }
        Ok(())
    }
}

impl<T, B: Body> Drop for Sender<T, B> {
    /// A look-up of a name that hangs is left behind.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

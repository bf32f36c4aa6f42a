//! Sends batches: within a deadline, in halves where one is too large, each loss under its cause.

use super::answer::Answer;
use super::body::Body;
use super::retry::{self, Throttle, Time, Transport};
use crate::complain;
use crate::config::{Endpoint, Target};
use crate::export::supervised::{Cause, Failure, Outlet, silence};
use std::sync::Arc;
use std::time::Duration;
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
    losses: Vec<(u64, Failure)>,
    has_arrived: bool,
}

impl<T, B: Body> Sender<T, B> {
    /// One on this thread.
    pub(super) fn new(transport: T, head: Arc<B::Head>, target: &Target) -> Result<Self, String> {
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
            losses: Vec::new(),
            has_arrived: false,
        };
        Ok(Sender { runtime: Some(runtime), sending })
    }
}

impl<T: Transport, B: Body> Sending<T, B> {
    /// Sends a batch, halved until each part is taken or is a single span.
    async fn send_all(&mut self, batch: &mut B, time: Time) {
        // A connection that was closed meanwhile is found out now, and not by losing an attempt.
        for _ in 0..3 {
            yield_now().await;
        }
        let mut others = Vec::new();
        loop {
            let spans = batch.spans();
            match self.send(batch, time).await {
                Err(Failure { cause: Cause::TooLarge, .. }) if spans > 1 => {
                    others.push(batch.split_off(spans / 2));
                    continue;
                }
                Err(failure) => self.losses.push((spans as u64, failure)),
                Ok(answer) => self.take_in(&answer, spans as u64),
            }
            match others.pop() {
                Some(next) => *batch = next,
                None => return,
            }
        }
    }

    async fn send(&mut self, batch: &mut B, time: Time) -> Result<Answer, Failure> {
        let body = self.transport.prepare(batch.encoded(&self.head))?;
        retry::send(&mut self.transport, body, time, &mut self.throttle).await
    }

    fn take_in(&mut self, answer: &Answer, spans: u64) {
        if answer.rejected > 0 {
            let failure = Failure { cause: Cause::Rejected, problem: answer.to_string() };
            self.losses.push((answer.rejected.min(spans), failure));
        } else if answer.has_message() {
            complain::warn("otlp answer", format_args!("{}: {answer}", self.endpoint));
        }
        if answer.rejected < spans && !std::mem::replace(&mut self.has_arrived, true) {
            complain::info(format_args!("spans arrive at {}", self.endpoint));
        }
    }
}

impl<T: Transport, B: Body> Outlet<B> for Sender<T, B> {
    fn export(&mut self, batch: &mut B, within: Duration) -> Result<(), Failure> {
        let Sender { runtime: Some(runtime), sending } = self else {
            return Err(Failure::refused("it is shut down".to_owned()));
        };
        let within = sending.timeout.map_or(within, |timeout| timeout.min(within));
        sending.losses.clear();
        runtime.block_on(sending.send_all(batch, Time::from_now(within)));
        Ok(())
    }

    fn losses(&mut self) -> Vec<(u64, Failure)> {
        std::mem::take(&mut self.sending.losses)
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

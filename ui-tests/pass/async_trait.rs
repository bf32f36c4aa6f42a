//! With async-trait: implementations, defaults, and other attributes above and below.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic)]
#![forbid(unsafe_code)]

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
pub struct Request {
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

#[async_trait]
trait Engine {
    #[stage(Steps::Only, request)]
    async fn with_default(&self, request: &Request) -> u32 {
        request.steps
    }

    async fn run(&mut self, mut request: Request, _: u32) -> Result<u32, String>;

    #[must_use]
    #[stage(Steps::Only)]
    #[inline]
    async fn generic<T: Send + 'static>(&self, x: T) -> T
    where
        Self: Sync,
    {
        x
    }
}

struct Cpu(u32);

#[async_trait]
impl Engine for Cpu {
    #[stage(Steps::Only, request, err, attrs("steps" = request.steps))]
    async fn run(&mut self, mut request: Request, _: u32) -> Result<u32, String> {
        request.steps += 1;
        self.0 += std::future::ready(request.steps).await;
        if self.0 == 0 {
            return Err("zero".to_owned());
        }
        Ok(self.0)
    }
}

fn complete<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[test]
fn it_works_with_async_trait() {
    let mut cpu: Box<Cpu> = Box::new(Cpu(1));
    assert_eq!(complete(cpu.with_default(&Request::default())), 0);
    assert_eq!(complete(cpu.run(Request::default(), 1)), Ok(2));
    assert_eq!(complete(cpu.generic("a")), "a");
}

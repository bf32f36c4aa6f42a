//! Any exporter of the SDK as an outlet: on the exporter's own thread, and one that drives its runtime.

use super::{Converter, Spans};
use crate::export::supervised::{Cause, Failure, Outlet, Queue, run, silence};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::SpanExporter;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Makes an exporter, or says why it cannot be made.
pub(super) type Build = Box<dyn FnOnce() -> Result<Box<dyn Outlet<Spans>>, String> + Send>;

/// An exporter, and whose spans it gets.
pub(super) struct OfSdk<E> {
    pub(super) exporter: E,
    pub(super) resource: Resource,
    pub(super) converter: Converter,
}

impl<E: SpanExporter> Outlet<Spans> for OfSdk<E> {
    fn open(&mut self) -> Result<(), Failure> {
        self.exporter.set_resource(&self.resource);
        Ok(())
    }

    /// Exports; what is not ready after `within` is cancelled.
    fn export(
        &mut self,
        batch: &mut Spans,
        within: Duration,
        _: &Queue<Spans>,
    ) -> Result<(), Failure> {
        let spans = batch.convert(&mut self.converter);
        let done = finish_within(self.exporter.export(spans), within);
        told(done.unwrap_or(Err(OTelSdkError::Timeout(within))))
    }

    fn flush(&mut self, _: &Queue<Spans>, _: Instant) -> Result<(), Failure> {
        told(self.exporter.force_flush())
    }

    fn shutdown(&mut self, within: Duration) -> Result<(), Failure> {
        told(self.exporter.shutdown_with_timeout(within))
    }
}

fn told(result: OTelSdkResult) -> Result<(), Failure> {
    result.map_err(|error| {
        let cause = match error {
            OTelSdkError::Timeout(_) => Cause::Timeout,
            OTelSdkError::AlreadyShutdown => Cause::Closed,
            OTelSdkError::InternalFailure(_) => Cause::Refused,
        };
        Failure { cause, problem: error.to_string() }
    })
}

/// Starts the threads. They end when the queue is flushed for the last time.
pub(super) fn start(build: Build, queue: &Arc<Queue<Spans>>) -> io::Result<()> {
    let closing = Closing(Arc::clone(queue));
    let thread = thread::Builder::new().name("stagetrace-otel".into());
    thread.spawn(move || drive(build, &closing.0)).map(drop)
}

/// Gives the exporter its thread, and drives the connections and timers of whatever it does there.
///
/// The calls do not run in `block_on`, since blocking clients refuse to work there.
fn drive(build: Build, queue: &Arc<Queue<Spans>>) {
    silence::for_this_thread();
    silence::mute();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .thread_name("stagetrace-out")
        .on_thread_start(silence::for_this_thread)
        .on_thread_unpark(silence::mute)
        .on_thread_park(silence::unmute)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return queue.close(Some(&format!("its runtime cannot start: {error}"))),
    };
    let of_exporter = Arc::clone(queue);
    let calls = runtime.spawn_blocking(move || run(build, &of_exporter));
    // An error would be a panic of ours; whoever ends here closes the queue.
    let _ = runtime.block_on(calls);
    // Whatever still blocks one of the runtime's threads is left behind.
    runtime.shutdown_background();
}

/// However the thread ends, nobody waits for it afterwards.
struct Closing(Arc<Queue<Spans>>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close(Some("its thread has ended"));
    }
}

/// Polls a future on this thread, which it may block, until it is ready; `None` if it is not within
/// this time.
fn finish_within<F: Future>(future: F, within: Duration) -> Option<F::Output> {
    let deadline = Instant::now() + within;
    let bell = Arc::new(Bell { thread: thread::current(), rang: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        while !bell.rang.swap(false, Ordering::Acquire) {
            let left = deadline.checked_duration_since(Instant::now())?;
            thread::park_timeout(left);
        }
    }
}

/// Wakes the thread; that it rang is kept, since the future's own code may park and take the
/// thread's token.
struct Bell {
    thread: Thread,
    rang: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, poll_fn, ready};

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn what_is_ready_is_had_at_once() {
        assert_eq!(finish_within(ready(7), Duration::ZERO), Some(7));
    }

    #[test]
    fn what_never_is_ready_is_given_up_in_time() {
        let start = Instant::now();
        assert_eq!(finish_within(pending::<()>(), Duration::from_millis(20)), None);
        assert!((20..5_000).contains(&start.elapsed().as_millis()));
    }

    #[test]
    fn a_wake_is_not_lost_if_the_future_parks_the_thread_itself() {
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            thread::park();
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        assert_eq!(finish_within(future, LONG), Some(()));
    }

    #[test]
    fn a_wake_from_another_thread_is_heard() {
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            let waker = context.waker().clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(5));
                waker.wake();
            });
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        let start = Instant::now();
        assert_eq!(finish_within(future, LONG), Some(()));
        assert!(start.elapsed() < LONG / 2);
    }
}

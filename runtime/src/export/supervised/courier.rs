//! The exporter's own thread: every call into it, one after another.

use super::failure::{Cause, Failure};
use super::queue::Queue;
use super::state::Task;
use super::{Batch, Build, silence};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Starts a thread for an exporter. It ends when the queue is flushed for the last time.
pub(in super::super) fn start<B: Batch>(build: Build<B>, queue: &Arc<Queue<B>>) -> io::Result<()> {
    let queue = Arc::clone(queue);
    let thread = thread::Builder::new().name("stagetrace-out".into());
    let work = move || {
        silence::for_this_thread();
        run(build, &queue);
    };
    thread.spawn(work).map(drop)
}

/// Makes the exporter and runs every call into it on this thread. However that ends, nobody waits for it afterwards.
pub(in super::super) fn run<B: Batch>(build: Build<B>, queue: &Arc<Queue<B>>) {
    let _closing = Closing(queue);
    let mut outlet = match contained(|| build().map_err(Failure::refused)) {
        Ok(outlet) => outlet,
        Err(failure) => {
            return queue.close(Some(&format!("it cannot be built: {}", failure.problem)));
        }
    };
    if let Err(failure) = contained(|| outlet.open()) {
        queue.report(&failure);
    }
    let timeout = queue.export_timeout();
    let mut works = true;
    loop {
        let due = if works && outlet.has_work() { queue.next_due() } else { Some(queue.next()) };
        let Some(task) = due else {
            let worked = contained(|| {
                outlet.work(queue);
                Ok(())
            });
            // What panics would do so again at once.
            works = worked.map_err(|failure| queue.report(&failure)).is_ok();
            continue;
        };
        works = true;
        match task {
            Task::Export(mut batch) => {
                let begun = Instant::now();
                let result = contained(|| {
                    outlet.export(&mut batch, timeout, queue)?;
                    Ok(outlet.losses())
                });
                if !outlet.times_itself() {
                    queue.operated(begun.elapsed(), cause_of(&result));
                }
                batch.clear();
                queue.done(result, Some(batch));
            }
            Task::Flush(deadline) => {
                let flushed = contained(|| outlet.flush(queue, deadline));
                queue.done(flushed.map(|()| Vec::new()), None);
            }
            Task::Close(deadline) => {
                let closed = contained(|| {
                    let flushed = outlet.flush(queue, deadline);
                    let left = deadline.saturating_duration_since(Instant::now());
                    let closed = outlet.shutdown(left);
                    drop(outlet);
                    flushed.and(closed)
                });
                queue.done(closed.map(|()| Vec::new()), None);
                return queue.close(None);
            }
        }
    }
}

/// Why not all spans of a batch left.
fn cause_of(result: &Result<Vec<(u64, Failure)>, Failure>) -> Option<Cause> {
    let failure = match result {
        Ok(losses) => losses.first().map(|(_, failure)| failure),
        Err(failure) => Some(failure),
    };
    failure.map(|failure| failure.cause)
}

struct Closing<'q, B: Batch>(&'q Queue<B>);

impl<B: Batch> Drop for Closing<'_, B> {
    fn drop(&mut self) {
        self.0.close(Some("its thread has ended"));
    }
}

/// Calls the exporter: nobody hears of it, and a panic is an error like others.
fn contained<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let _muted = silence::muted();
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(Failure::panic(text.unwrap_or("?")))
        }
    }
}

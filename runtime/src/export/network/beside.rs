//! Waiting for the network while the queue fills: what there is no room for is put aside, and a shutdown ends the wait in
//! time.

use crate::export::supervised::{Asked, Batch, Ear, Listen, News, Queue};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long before a deadline a wait ends, so that what was waited for can be put aside in time.
const MARGIN: Duration = Duration::from_millis(30);

/// When it is high time, with this deadline.
pub(super) fn before(deadline: std::time::Instant) -> Instant {
    let deadline = Instant::from_std(deadline);
    deadline.checked_sub(MARGIN).unwrap_or(deadline)
}

/// Waits for `work`. Batches that the queue gives meanwhile go to `keep`, which says whether it could; if not, only those come
/// from then on that there is no room for. `None` if a flush that is listened for ended it:
/// [`Asked::Any`] at once, [`Asked::Last`] shortly before its deadline.
pub(super) async fn beside<B: Batch, R>(
    mut work: Pin<&mut impl Future<Output = R>>,
    queue: &Queue<B>,
    listen: Listen,
    mut keep: impl FnMut(B) -> bool,
) -> Option<R> {
    let mut ear = Ear::new(queue, listen);
    let mut end: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        while let Poll::Ready(news) = ear.poll(context) {
            match news {
                News::Batch(batch) => ear.listen.every_batch &= keep(batch),
                News::Flush(_) if listen.asked == Asked::Any => return Poll::Ready(None),
                News::Flush(deadline) => {
                    ear.listen.asked = Asked::None;
                    end = Some(Box::pin(sleep_until(before(deadline))));
                }
            }
        }
        match &mut end {
            Some(end) => end.as_mut().poll(context).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

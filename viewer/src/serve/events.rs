//! Server-sent events: that something has changed, never what.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};

use super::live::Live;

/// One event with the version at once, and one for each change. Changes that come while nobody reads
/// are one.
pub(super) async fn events(
    State(live): State<Arc<Live>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let versions = WatchStream::new(live.versions());
    let events =
        versions.map(|version| Ok(Event::default().event("change").data(version.to_string())));
    // A connection that is gone is noticed by writing to it.
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)))
}

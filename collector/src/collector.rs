//! The handle of a running collector.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stagetrace_wire::span::Span;

use crate::receive::{Handler, Receiver};
use crate::reply::Reply;
use crate::request::Request;
use crate::server::Server;
use crate::spans::Spans;
use crate::store::{Arrivals, Store};

/// A running collector. It stops, and closes its connections, when it is dropped.
///
/// It runs on a thread of its own: it answers while a test blocks, under any executor or none.
pub struct Collector {
    server: Server,
    store: Arc<Store>,
}

/// Settings of a collector.
#[derive(Clone, Debug)]
pub struct Builder {
    address: SocketAddr,
    max_grpc_bytes: usize,
    max_http_bytes: usize,
    max_span_bytes: usize,
    handler: Option<Handler>,
}

/// What arrived since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests of any sort.
    pub requests: u64,
    /// Those that could not be read, or only in part.
    pub failed_requests: u64,
    /// Spans that were kept, or taken by the function of [`Builder::on_export`].
    pub spans: u64,
    /// Other spans: they could not be read, or the [`Reply`] said so.
    pub rejected_spans: u64,
    /// Of the spans that were kept, those that were given up for newer ones:
    /// see [`Builder::max_span_bytes`].
    pub dropped_spans: u64,
}

/// What was waited for did not arrive in time. Prints what did, spans as a tree.
#[derive(Clone)]
pub struct Timeout {
    waited: Duration,
    arrivals: Arrivals,
}

impl Collector {
    /// Starts a collector on a free port of the loopback interface, with the default settings.
    ///
    /// # Errors
    /// If the system refuses the socket or the thread.
    pub async fn start() -> io::Result<Self> {
        Self::start_blocking()
    }

    /// As [`Collector::start`], for tests that are not async.
    ///
    /// # Errors
    /// If the system refuses the socket or the thread.
    pub fn start_blocking() -> io::Result<Self> {
        Self::builder().start_blocking()
    }

    /// Settings to change before the start.
    pub fn builder() -> Builder {
        Builder {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            max_grpc_bytes: 4 << 20,
            max_http_bytes: 20 << 20,
            max_span_bytes: 64 << 20,
            handler: None,
        }
    }

    /// The address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The URL `http://<address>` for senders over gRPC, and for whoever appends `/v1/traces`
    /// itself, as SDKs do with `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The URL for senders over HTTP that use it as it is, as SDKs do with
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`.
    pub fn http_endpoint(&self) -> String {
        format!("http://{}/v1/traces", self.address())
    }

    /// The spans that arrived and were kept.
    pub fn spans(&self) -> Spans {
        self.store.arrivals().spans
    }

    /// The requests that arrived, in the order in which their bodies ended; the last few thousand of
    /// them.
    pub fn requests(&self) -> Vec<Request> {
        self.store.arrivals().requests.to_vec()
    }

    /// What arrived, in numbers.
    pub fn stats(&self) -> Stats {
        self.store.arrivals().stats
    }

    /// Waits until the spans are as wanted. The condition is asked at once, and again whenever a
    /// request has arrived.
    ///
    /// # Errors
    /// If they are not before the time is over.
    pub async fn wait_for(
        &self,
        mut condition: impl FnMut(&Spans) -> bool,
        timeout: Duration,
    ) -> Result<Spans, Timeout> {
        self.wait(move |arrivals| condition(&arrivals.spans), timeout).await.map(|it| it.spans)
    }

    /// As [`Collector::wait_for`], for tests that are not async.
    ///
    /// # Errors
    /// If the spans are not as wanted before the time is over.
    pub fn wait_for_blocking(
        &self,
        mut condition: impl FnMut(&Spans) -> bool,
        timeout: Duration,
    ) -> Result<Spans, Timeout> {
        let wanted = move |arrivals: &Arrivals| condition(&arrivals.spans);
        self.wait_blocking(wanted, timeout).map(|it| it.spans)
    }

    /// Waits until the requests are as wanted, however they were answered.
    ///
    /// # Errors
    /// If they are not before the time is over.
    pub async fn wait_for_requests(
        &self,
        mut condition: impl FnMut(&[Request]) -> bool,
        timeout: Duration,
    ) -> Result<Vec<Request>, Timeout> {
        let wanted = move |arrivals: &Arrivals| condition(&arrivals.requests);
        self.wait(wanted, timeout).await.map(|it| it.requests.to_vec())
    }

    /// As [`Collector::wait_for_requests`], for tests that are not async.
    ///
    /// # Errors
    /// If the requests are not as wanted before the time is over.
    pub fn wait_for_requests_blocking(
        &self,
        mut condition: impl FnMut(&[Request]) -> bool,
        timeout: Duration,
    ) -> Result<Vec<Request>, Timeout> {
        let wanted = move |arrivals: &Arrivals| condition(&arrivals.requests);
        self.wait_blocking(wanted, timeout).map(|it| it.requests.to_vec())
    }

    /// Forgets the spans and requests that arrived, and gives back the spans. The numbers of
    /// [`Collector::stats`] go on.
    pub fn clear(&self) -> Spans {
        self.store.clear()
    }

    /// Answers every request so, from now on and until this is called again. What is left of a
    /// script is forgotten.
    pub fn reply(&self, reply: Reply) {
        self.store.set_reply(reply);
    }

    /// Answers the next requests so, one after the other, after those of earlier scripts. Then the
    /// answer is again that of [`Collector::reply`], at first [`Reply::success`]. Requests take
    /// their answers in the order in which their heads arrive.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.store.script(replies.into_iter());
    }

    /// Goes down: closes all connections and refuses new ones, until [`Collector::accept_connections`].
    /// The port is free for nobody else meanwhile.
    ///
    /// # Errors
    /// If the system does not let it keep the port.
    pub fn refuse_connections(&self) -> io::Result<()> {
        self.server.refuse()
    }

    /// Comes up again, at the same address.
    ///
    /// # Errors
    /// If the system does not let it listen.
    pub fn accept_connections(&self) -> io::Result<()> {
        self.server.accept()
    }

    async fn wait(
        &self,
        mut condition: impl FnMut(&Arrivals) -> bool,
        timeout: Duration,
    ) -> Result<Arrivals, Timeout> {
        let until = deadline(timeout);
        let mut changes = self.store.subscribe();
        loop {
            let arrivals = self.store.arrivals();
            if condition(&arrivals) {
                return Ok(arrivals);
            }
            if Instant::now() >= until {
                return Err(Timeout { waited: timeout, arrivals });
            }
            drop(arrivals);
            // The timer is the server's: who waits may have none.
            let change = self.server.runtime.spawn(async move {
                let _ = tokio::time::timeout_at(until.into(), changes.changed()).await;
                changes
            });
            changes = match change.await {
                Ok(changes) => changes,
                Err(_) => return Err(Timeout { waited: timeout, arrivals: self.store.arrivals() }),
            };
        }
    }

    fn wait_blocking(
        &self,
        condition: impl FnMut(&Arrivals) -> bool,
        timeout: Duration,
    ) -> Result<Arrivals, Timeout> {
        let waited = self.store.wait(deadline(timeout), condition);
        waited.map_err(|arrivals| Timeout { waited: timeout, arrivals })
    }
}

/// When a wait of so long is over. There are no instants for the longest ones.
fn deadline(timeout: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + timeout.min(FAR)
}

impl Builder {
    /// Where to listen; by default at a free port of the loopback interface. There is no
    /// authentication and no encryption: elsewhere anyone may send.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Largest message over gRPC, as it is sent and after decompression; by default 4 MiB, as with
    /// the OpenTelemetry Collector.
    pub fn max_grpc_bytes(mut self, bytes: usize) -> Self {
        self.max_grpc_bytes = bytes;
        self
    }

    /// Largest body over HTTP, as it is sent and after decompression; by default 20 MiB, as with the
    /// OpenTelemetry Collector.
    pub fn max_http_bytes(mut self, bytes: usize) -> Self {
        self.max_http_bytes = bytes;
        self
    }

    /// Memory for spans, about; by default 64 MiB. Beyond it the oldest are dropped and counted.
    /// Requests are remembered, up to a few thousand, in a quarter as much beside it.
    pub fn max_span_bytes(mut self, bytes: usize) -> Self {
        self.max_span_bytes = bytes;
        self
    }

    /// Hands the spans of each request to a function, and keeps neither them nor the request: only
    /// [`Collector::stats`] go on. What the function returns is the answer; one that is no success, as
    /// `Reply::status(503)`, says that the spans were not taken. Answers of [`Collector::reply`] and
    /// [`Collector::script`] are not used.
    ///
    /// The function is not called for requests that cannot be read. It runs on the collector's thread,
    /// where a wait holds up all other requests.
    ///
    /// ```
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    /// use stagetrace_collector::{Collector, Reply};
    ///
    /// let (send, receive) = sync_channel(16);
    /// let full = || Reply::status(503).retry_after(Duration::from_secs(1));
    /// let collector = Collector::builder()
    ///     .on_export(move |spans| send.try_send(spans).map_or_else(|_| full(), |()| Reply::success()))
    ///     .start_blocking()?;
    /// # assert!(receive.try_recv().is_err());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_export(
        mut self,
        handler: impl Fn(Vec<Span>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.handler = Some(Handler(Arc::new(handler)));
        self
    }

    /// Starts the collector.
    ///
    /// # Errors
    /// If the address cannot be had, or the system refuses the thread.
    pub async fn start(self) -> io::Result<Collector> {
        self.start_blocking()
    }

    /// As [`Builder::start`], for tests that are not async.
    ///
    /// # Errors
    /// If the address cannot be had, or the system refuses the thread.
    pub fn start_blocking(self) -> io::Result<Collector> {
        let store = Arc::new(Store::new(self.max_span_bytes, self.handler.is_none()));
        let receiver = Receiver {
            store: store.clone(),
            handler: self.handler,
            max_grpc_bytes: self.max_grpc_bytes,
            max_http_bytes: self.max_http_bytes,
        };
        let server = Server::start(self.address, receiver)?;
        Ok(Collector { server, store })
    }
}

impl Timeout {
    /// The spans that had arrived.
    pub fn spans(&self) -> &Spans {
        &self.arrivals.spans
    }
}

/// The last of them.
const SHOWN_ERRORS: usize = 3;

impl std::error::Error for Timeout {}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (spans, requests) = (&self.arrivals.spans, &self.arrivals.requests);
        let (number, of) = (spans.len(), requests.len());
        writeln!(f, "not within {:?}; {number} spans of {of} requests are there", self.waited)?;
        let Stats { rejected_spans, dropped_spans, .. } = self.arrivals.stats;
        if rejected_spans + dropped_spans > 0 {
            writeln!(
                f,
                "{rejected_spans} were rejected and {dropped_spans} dropped since the start"
            )?;
        }
        let errors = requests.iter().filter_map(|request| Some((request, request.error.as_ref()?)));
        for (request, error) in errors.clone().skip(errors.count().saturating_sub(SHOWN_ERRORS)) {
            writeln!(f, "a request to {:?} has an error: {error}", request.path)?;
        }
        write!(f, "{spans}")
    }
}

/// As it is displayed, since that is what `unwrap` shows.
impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("address", &self.address())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

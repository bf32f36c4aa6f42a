//! A way out that the program brings with it.

use super::otlp;
use crate::collect::OpenSink;
use std::fmt;

/// A way out for spans that the program brings with it, beside the local file and not instead of it. Given to
/// [`init_with`](crate::init_with).
///
/// ```no_run
/// use stagetrace::{Exporter, TraceConfig, init_with};
/// use std::io::Write;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut file = std::fs::File::create("spans.otlp")?;
/// let exporter = Exporter::otlp("file", move |request: &[u8]| file.write_all(request));
/// let _trace = init_with(TraceConfig::from_env()?, [exporter])?;
/// # Ok(())
/// # }
/// ```
///
/// It is supervised. It runs on a thread of its own, which may block. It may fail, panic or never return: its spans are
/// then counted as failed in [`Stats`](crate::Stats), the first failure of each kind is said on standard error, and
/// nothing else is held up. Spans go out in batches, as `OTEL_BSP_*` or [`TraceConfig::batching`] say: each call may
/// take as long as `OTEL_BSP_EXPORT_TIMEOUT` allows, and of what waits meanwhile at most 16 MiB are kept.
///
/// What it does on its thread is not traced, lest each export beget the next. Threads that it starts by itself are
/// beyond that.
///
/// [`TraceConfig::batching`]: crate::TraceConfig::batching
pub struct Exporter {
    name: &'static str,
    open: OpenSink,
}

impl Exporter {
    /// Hands each batch to `send`, encoded as the body of an OTLP request: an `ExportTraceServiceRequest` in protobuf,
    /// as servers take it over gRPC and HTTP.
    ///
    /// The name is that of its [`SinkStatus`](crate::SinkStatus), and appears in complaints. An error says that the
    /// batch is lost; whoever wants to try again does so in `send`. Encoding takes no memory beyond that of a few
    /// batches, which is used again and again.
    pub fn otlp<E: fmt::Display>(
        name: &'static str,
        send: impl FnMut(&[u8]) -> Result<(), E> + Send + 'static,
    ) -> Exporter {
        Exporter::new(name, otlp::sending(name, send))
    }

    /// One whose sink is made by `open`.
    pub(crate) fn new(name: &'static str, open: OpenSink) -> Exporter {
        Exporter { name, open }
    }

    /// Makes its sink.
    pub(crate) fn into_open(self) -> OpenSink {
        self.open
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exporter").field(&self.name).finish()
    }
}

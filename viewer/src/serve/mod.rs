//! The pages: a server that shows what sources say while they grow.
//!
//! One thread reads the sources; requests ask pure queries of what it read, under a read lock. Who
//! looks at a page is told of each change by server-sent events.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

mod answer;
mod assets;
mod events;
mod guard;
mod live;
mod routes;
mod saved;

pub(crate) use guard::{Access, Token};
pub(crate) use live::Live;
pub(crate) use saved::Saved;

/// How the pages are served.
#[derive(Debug)]
pub(crate) struct Options {
    /// Where to listen.
    pub(crate) address: SocketAddr,
    /// Who may look.
    pub(crate) access: Access,
}

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(
        "cannot listen on {address}: {error}; another port is taken by --port, a free one by --port 0"
    )]
    Listen { address: SocketAddr, error: io::Error },
    #[error("cannot start the server: {0}")]
    Start(io::Error),
    #[error("the server stopped: {0}")]
    Stopped(io::Error),
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    access: Access,
    address: SocketAddr,
}

impl Server {
    /// Listens.
    pub(crate) fn bind(options: Options) -> Result<Self, ServeError> {
        let Options { address, access } = options;
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|error| ServeError::Listen { address, error })?;
        Ok(Self { listener, access, address })
    }

    /// What opens the pages, with the token if one is needed.
    pub(crate) fn url(&self) -> String {
        self.access.url(self.address)
    }

    /// Answers until it is interrupted.
    pub(crate) fn run(self, live: Arc<Live>) -> Result<(), ServeError> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().map_err(ServeError::Start)?;
        let served = runtime.block_on(async {
            let listener =
                tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Start)?;
            let pages = routes::all(live, self.access, self.address);
            tokio::select! {
                served = axum::serve(listener, pages) => served.map_err(ServeError::Stopped),
                () = interrupted() => Ok(()),
            }
        });
        // Streams of events never end by themselves.
        runtime.shutdown_background();
        served
    }
}

/// Waits for Ctrl-C or, on Unix, for SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

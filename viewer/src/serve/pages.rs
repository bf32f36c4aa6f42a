//! The pages within another program, which shows its own run.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::{Access, Live, Options, ServeError, Server};
use crate::rules::{Samples, StuckRule};
use crate::source::{OpenError, Sources};
use crate::store::Store;

/// Pages that are served to this machine, by threads of this process and for as long as it lives.
///
/// A program that is to be disturbed as little as possible starts `stagetrace-viewer serve` instead.
#[derive(Debug)]
pub struct Pages {
    url: String,
}

/// Why pages cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PagesError {
    /// What is to be shown is not there.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The port is taken, or the system has no room for a server.
    #[error("{0}")]
    Serve(String),
    /// The system has no room for a thread.
    #[error("cannot start a thread for the pages: {0}")]
    Thread(io::Error),
}

impl Pages {
    /// Serves the pages of what lies at these paths, as it grows; port 0 stands for a free one.
    ///
    /// # Errors
    /// If the paths are not there, or nothing can be served.
    pub fn serve<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        port: u16,
    ) -> Result<Self, PagesError> {
        let sources = Sources::open(paths)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Server::bind(Options { address, access: Access::default() })?;
        let url = server.url();
        let (store, samples) = (Store::default(), Samples::default());
        let live = Live::new(sources, store, samples, None, StuckRule::default());
        let live = Arc::new(live);
        live.follow().map_err(PagesError::Thread)?;
        let serve = move || {
            // Ends only with the process: signals are left to the program.
            let _ = server.run_until(live, std::future::pending());
        };
        thread::Builder::new().name("pages".to_owned()).spawn(serve).map_err(PagesError::Thread)?;
        Ok(Self { url })
    }

    /// What opens them.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl From<ServeError> for PagesError {
    fn from(error: ServeError) -> Self {
        Self::Serve(error.to_string())
    }
}

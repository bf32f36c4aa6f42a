//! The viewer's pages of this run, served by this process.

use std::thread;

use stagetrace_viewer::Pages;

use crate::trace::Trace;

/// Pages in which the trace can be looked at.
pub struct View {
    pages: Pages,
}

impl View {
    /// Serves them, and tells where.
    pub fn of(trace: &Trace) -> Result<Self, String> {
        let dir = trace.dir().ok_or("none is written")?;
        let pages = Pages::serve([dir], 0).map_err(|error| error.to_string())?;
        eprintln!("viewer: {}", pages.url());
        Ok(View { pages })
    }

    /// Goes on serving them, until somebody ends the process.
    pub fn stay(self) -> ! {
        eprintln!("\nviewer: {} until Ctrl-C", self.pages.url());
        loop {
            thread::park();
        }
    }
}

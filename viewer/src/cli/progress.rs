//! A bar on the terminal while much is read.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::source::Progress;

/// What takes no longer needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(100);
const TEMPLATE: &str =
    "reading {wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {msg} spans, {eta} left";

/// Reads, and shows how far it is if that takes long and the standard error is a terminal.
pub(super) fn shown<R>(progress: &Progress, read: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return read();
    }
    thread::scope(|scope| {
        // Dropped in the end, which is what the other side waits for.
        let (_reading, is_over) = channel::<()>();
        let show = move || show(progress, &is_over);
        // Without a thread for it, it is read without a bar.
        let _ = thread::Builder::new().name("progress".into()).spawn_scoped(scope, show);
        read()
    })
}

fn show(progress: &Progress, is_over: &Receiver<()>) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    let begin = Instant::now();
    while is_over.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if bar.is_hidden() && begin.elapsed() >= PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_length(progress.total());
        bar.set_message(progress.spans().to_string());
        bar.set_position(progress.bytes());
    }
    bar.finish_and_clear();
}

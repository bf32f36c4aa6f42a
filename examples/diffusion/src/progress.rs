//! A bar on the terminal for work that takes long; nothing where there is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Counts the denoise steps of all requests. Clones are the same bar.
#[derive(Clone)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar that ends at `steps`, and is not shown yet.
    pub fn of(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = "{spinner} denoising {wide_bar} {pos}/{len} steps, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Shows the bar from now on, if stderr is a terminal.
    pub fn show(&self) {
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.enable_steady_tick(Duration::from_millis(100));
    }

    /// A bar that nobody sees.
    #[cfg(test)]
    pub fn hidden() -> Self {
        Progress(ProgressBar::hidden())
    }

    pub fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    /// Takes the bar from the screen.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

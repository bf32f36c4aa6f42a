//! The terminal, drawn anew again and again.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use console::Term;

use super::{Tail, clock, line, standing};
use crate::cli::summary::{occupancy, section, stuck};
use crate::query::{Summary, Watch, printable};

/// A screen of its own, which leaves what was on the terminal before as it was.
pub(super) struct Screen(());

/// To the other screen, without cursor, and without breaking lines.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const CLOSE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        write(OPEN)?;
        Ok(Self(()))
    }

    pub(super) fn draw(&mut self, tail: &Tail, summary: &Summary, now: u64) -> io::Result<()> {
        let (height, width) = Term::stdout().size();
        let text = text(tail, summary, now);
        let mut drawn = HOME.to_owned();
        for line in text.lines().take(usize::from(height).saturating_sub(1)) {
            drawn.extend(line.chars().take(width.into()));
            drawn.push_str(CLEAR_LINE);
            drawn.push_str("\r\n");
        }
        drawn.push_str(CLEAR_REST);
        write(&drawn)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to be restored.
        let _ = write(CLOSE);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Most rows of what is stuck.
const STUCK: usize = 8;

/// What is shown, the most important first. Writing to a text does not fail.
fn text(tail: &Tail, summary: &Summary, now: u64) -> String {
    let mut text = format!("{} UTC, Ctrl-C ends\n{}\n", clock(now), standing(summary));
    let seconds = Watch::WINDOW_NS / 1_000_000_000;
    let _ = writeln!(
        text,
        "in the last {seconds} s: {} samples and {} spans ended",
        tail.news.recently_ended, tail.news.recent_spans
    );
    for (name, error) in &summary.unread {
        let _ = writeln!(text, "note: cannot read {}", printable(&format!("{name}: {error}")));
    }
    section(&mut text, "in a stage now", &occupancy(summary));
    section(&mut text, "stuck", &stuck(summary, STUCK));
    if !tail.errors.is_empty() {
        text.push_str("\nfailed or lost, the last first\n");
    }
    for (at, happening) in &tail.errors {
        let _ = writeln!(text, "  {}", printable(&line(happening, *at)));
    }
    text
}

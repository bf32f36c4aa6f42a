//! `tail PATH…`: what happens, while it happens.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::summary::plain;
use super::{Failure, Input, Loaded, Stuck, print};
use crate::query::{
    Happening, News, StepChoice, Summary, SummaryOptions, Watch, duration, printable,
};

mod screen;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    stuck: Stuck,
    /// Ends by itself after these seconds.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u32>,
}

/// How often is looked for what is new.
const INTERVAL: Duration = Duration::from_millis(200);
/// How often ages go on where nothing is new.
const AGES: Duration = Duration::from_secs(1);
/// Errors that are shown on a terminal.
const ERRORS: usize = 10;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut loaded = arguments.input.load()?;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let begin = Instant::now();
    let limit = arguments.seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let is_terminal = io::stdout().is_terminal();
    let mut screen = if is_terminal { Some(screen::Screen::open()?) } else { None };
    let mut tail = Tail::default();
    let (mut is_news, mut looked, mut next) = (true, begin, begin);
    while !is_over.load(Ordering::Relaxed) && limit.is_none_or(|limit| begin.elapsed() < limit) {
        let begun = Instant::now();
        loaded.sources.poll(&mut loaded.store);
        is_news |= !loaded.samples.refresh(&mut loaded.store).is_empty();
        if begun >= next && (is_news || begun.duration_since(looked) >= AGES) {
            (is_news, looked) = (false, begun);
            let now = arguments.input.now();
            let summary = tail.look(&loaded, arguments, now)?;
            match &mut screen {
                Some(screen) => screen.draw(&tail, &summary, now)?,
                None => print(&tail.lines(&summary, now))?,
            }
            // Where much goes on, a fifth of the time is spent on summing up.
            next = begun + begun.elapsed() * 5;
        }
        thread::sleep(INTERVAL.saturating_sub(begun.elapsed()).max(Duration::from_millis(1)));
    }
    drop(screen);
    // What came last may not have had its turn.
    loaded.sources.poll(&mut loaded.store);
    loaded.samples.refresh(&mut loaded.store);
    let now = arguments.input.now();
    let summary = tail.look(&loaded, arguments, now)?;
    let lines = if is_terminal { String::new() } else { tail.lines(&summary, now) };
    print(&format!("{lines}{}\n", standing(&summary)))
}

/// What was seen so far.
#[derive(Default)]
struct Tail {
    watch: Watch,
    news: News,
    /// When which samples failed or were lost last, the newest first.
    errors: VecDeque<(u64, Happening)>,
    unread: Vec<(String, String)>,
    has_begun: bool,
}

impl Tail {
    fn look(
        &mut self,
        loaded: &Loaded,
        arguments: &Arguments,
        now: u64,
    ) -> Result<Summary, Failure> {
        let options = SummaryOptions { step: StepChoice::All, now, stuck: arguments.stuck.rule() };
        let report = loaded.sources.report();
        let summary = Summary::new(&loaded.store, &loaded.samples, &report, &options)?;
        self.news = self.watch.look(&loaded.store, &loaded.samples, &summary, now);
        for happening in &self.news.happenings {
            if happening.error.is_some() || matches!(&*happening.what, "failed" | "lost") {
                self.errors.push_front((now, happening.clone()));
            }
        }
        self.errors.truncate(ERRORS);
        Ok(summary)
    }

    /// What is new, a line each.
    fn lines(&mut self, summary: &Summary, now: u64) -> String {
        let mut lines = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            lines.push(standing(summary));
        }
        lines.extend(self.news.happenings.iter().map(|one| line(one, now)));
        if self.unread != summary.unread {
            self.unread.clone_from(&summary.unread);
            let unread = self.unread.iter();
            lines.extend(unread.map(|(name, error)| format!("cannot read {name}: {error}")));
        }
        lines.iter().map(|line| printable(line) + "\n").collect()
    }
}

/// How many samples stand how.
fn standing(summary: &Summary) -> String {
    let statuses = summary.statuses.iter().map(|(status, count)| format!("{status} {count}"));
    let statuses: Vec<String> = statuses.collect();
    printable(&format!("{} samples: {}", summary.samples, statuses.join(", ")))
}

fn line(happening: &Happening, now: u64) -> String {
    let mut parts = vec![clock(now), format!("{:<9}", happening.what)];
    let ids = [
        ("sample", &happening.rollout_id),
        ("group", &happening.group_id),
        ("step", &happening.step),
    ];
    let ids = ids.into_iter().filter(|(_, id)| !id.is_null());
    parts.extend(ids.map(|(what, id)| format!("{what} {}", plain(id))));
    parts.extend(happening.lasted_ns.map(duration));
    parts.push(format!("trace {}", happening.trace_id));
    parts.extend(happening.stage.as_ref().map(|stage| format!("in {stage}")));
    parts.extend(happening.error.clone());
    parts.join("  ")
}

/// The time of day in UTC.
fn clock(unix_nano: u64) -> String {
    let second = unix_nano / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

//! What stagetrace says about itself on standard error: one line each, once per subject.

use crate::config::LogLevel;
use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Speaker {
    level: LogLevel,
    said: HashSet<String>,
    complaints: Vec<String>,
}

/// From which severity on to speak.
pub(crate) fn set_level(level: LogLevel) {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    *speaker = Some(Speaker { level, ..Speaker::default() });
}

/// Says what one may like to know.
pub(crate) fn info(what: impl fmt::Display) {
    say(LogLevel::Info, &what.to_string(), &what);
}

/// Says what works less well than it should, once per subject.
#[cold]
pub(crate) fn warn(subject: &str, what: impl fmt::Display) {
    say(LogLevel::Warn, subject, what);
}

/// Says what stopped working, once per subject.
#[cold]
pub(crate) fn error(subject: &str, what: impl fmt::Display) {
    say(LogLevel::Error, subject, what);
}

/// Has nobody else speak until the value is dropped.
#[cfg(unix)]
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(SPEAKER.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The warnings and errors so far, whether the level let them be heard or not.
pub(crate) fn said() -> Vec<String> {
    let speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    speaker.as_ref().map(|speaker| speaker.complaints.clone()).unwrap_or_default()
}

fn say(severity: LogLevel, subject: &str, what: impl fmt::Display) {
    if !is_to_be_said(severity, subject, &what) {
        return;
    }
    let word = match severity {
        LogLevel::Error => "error: ",
        LogLevel::Warn => "warning: ",
        _ => "",
    };
    let line = format!("stagetrace: {word}{}\n", printable(&what.to_string()));
    // That it is closed, or that nobody reads it, is no reason to fail or to wait: `status()` has it, too.
    if takes_more() {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Whether standard error takes a line at once: a pipe that nobody reads would have its writer wait for ever.
fn takes_more() -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stderr = std::io::stderr();
        let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
        !matches!(poll(&mut asked, Some(&Timespec::default())), Ok(0))
    }
    #[cfg(not(unix))]
    {
        true
    }
}

/// Whether it is said for the first time, and is severe enough to be heard.
fn is_to_be_said(severity: LogLevel, subject: &str, what: &impl fmt::Display) -> bool {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    let speaker = speaker.get_or_insert_default();
    if !speaker.said.insert(subject.to_owned()) {
        return false;
    }
    if severity <= LogLevel::Warn {
        speaker.complaints.push(printable(&what.to_string()));
    }
    speaker.level >= severity
}

/// One line, whatever stands in it: a path may hold anything, and whoever reads this may be a terminal.
fn printable(what: &str) -> String {
    let escape = |c: char| c.is_control().then(|| c.escape_default().to_string());
    what.chars().map(|c| escape(c).unwrap_or_else(|| c.into())).collect()
}

//! What stagetrace says about itself on standard error: one line each, once per subject. What comes and goes is said
//! again, as often as its caller allows.

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
    /// One per subject, in words.
    complaints: Vec<(String, String)>,
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

/// Says what works less well again, also if the subject was spoken of. It takes the place of what was said then.
#[cfg(feature = "_network")]
#[cold]
pub(crate) fn warn_again(subject: &str, what: impl fmt::Display) {
    let what = printable(&what.to_string());
    if note(LogLevel::Warn, subject, &what) >= LogLevel::Warn {
        write(LogLevel::Warn, &what);
    }
}

/// Says that what was said of the subject is over, and takes its place.
#[cfg(feature = "_network")]
#[cold]
pub(crate) fn over(subject: &str, what: impl fmt::Display) {
    let what = printable(&what.to_string());
    if note(LogLevel::Warn, subject, &what) >= LogLevel::Info {
        write(LogLevel::Info, &what);
    }
}

/// Has nobody else speak until the value is dropped.
#[cfg(unix)]
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(SPEAKER.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The warnings and errors so far, whether the level let them be heard or not.
pub(crate) fn said() -> Vec<String> {
    let speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    let complaints = speaker.iter().flat_map(|speaker| &speaker.complaints);
    complaints.map(|(_, what)| what.clone()).collect()
}

fn say(severity: LogLevel, subject: &str, what: impl fmt::Display) {
    let what = printable(&what.to_string());
    if is_first(subject) && note(severity, subject, &what) >= severity {
        write(severity, &what);
    }
}

fn write(severity: LogLevel, what: &str) {
    let word = match severity {
        LogLevel::Error => "error: ",
        LogLevel::Warn => "warning: ",
        _ => "",
    };
    let line = format!("stagetrace: {word}{what}\n");
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

/// Whether the subject is spoken of for the first time.
fn is_first(subject: &str) -> bool {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    speaker.get_or_insert_default().said.insert(subject.to_owned())
}

/// Keeps it as the subject's complaint, if it is one. Gives from which severity on to speak.
fn note(severity: LogLevel, subject: &str, what: &str) -> LogLevel {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    let speaker = speaker.get_or_insert_default();
    if severity <= LogLevel::Warn {
        match speaker.complaints.iter_mut().find(|(of, _)| of == subject) {
            Some((_, before)) => what.clone_into(before),
            None => speaker.complaints.push((subject.to_owned(), what.to_owned())),
        }
    }
    speaker.level
}

/// One line, whatever stands in it: a path may hold anything, and whoever reads this may be a terminal.
fn printable(what: &str) -> String {
    let escape = |c: char| c.is_control().then(|| c.escape_default().to_string());
    what.chars().map(|c| escape(c).unwrap_or_else(|| c.into())).collect()
}

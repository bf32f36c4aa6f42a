//! What stagetrace says about itself on standard error: one line each, once per subject.

use crate::config::LogLevel;
use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);

#[derive(Debug)]
struct Speaker {
    level: LogLevel,
    said: HashSet<String>,
}

/// From which severity on to speak.
pub(crate) fn set_level(level: LogLevel) {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    *speaker = Some(Speaker { level, said: HashSet::new() });
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

fn say(severity: LogLevel, subject: &str, what: impl fmt::Display) {
    if !is_news(severity, subject) {
        return;
    }
    let word = match severity {
        LogLevel::Error => "error: ",
        LogLevel::Warn => "warning: ",
        _ => "",
    };
    let line = format!("stagetrace: {word}{what}\n");
    // Nothing is held meanwhile: whoever reads standard error may be slow. That it is closed is no reason to fail.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether it is severe enough, and is said for the first time.
fn is_news(severity: LogLevel, subject: &str) -> bool {
    let mut speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner);
    let speaker =
        speaker.get_or_insert_with(|| Speaker { level: LogLevel::default(), said: HashSet::new() });
    speaker.level >= severity && speaker.said.insert(subject.to_owned())
}

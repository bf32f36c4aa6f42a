//! Enumerations of which each value has one word, in the environment and on the command line.

/// An enumeration with a word for each value.
pub(super) trait Choice: Copy + PartialEq + 'static {
    /// Each value under its word. Words are in lower case; reading ignores case.
    const WORDS: &'static [(&'static str, Self)];
}

pub(super) fn parse_choice<T: Choice>(word: &str) -> Option<T> {
    T::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

/// The word of a value, the first where several mean the same.
pub(super) fn word_of<T: Choice>(value: T) -> &'static str {
    T::WORDS.iter().find(|(_, other)| *other == value).map_or("", |(name, _)| name)
}

/// All words, for a message: `auto, shm, run-dir, memory`.
pub(super) fn words<T: Choice>() -> String {
    T::WORDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// What our own switches say. Any other text is ignored: a typo is no reason to switch something off.
impl Choice for bool {
    const WORDS: &'static [(&'static str, Self)] = &[("true", true), ("false", false)];
}

/// Where the mapped recording lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// `/dev/shm` where that suits, else the run's directory. The default.
    ///
    /// The run's directory serves where the process is PID 1, and where `/dev/shm` is absent or too
    /// small.
    #[default]
    Auto,
    /// `/dev/shm/stagetrace-<uid>/<run id>/`, linked from the run's directory. Where it is not to
    /// be had, the run's directory serves, with a warning.
    Shm,
    /// The run's directory. On a disk, write-back costs milliseconds at the tail.
    RunDir,
    /// Plain memory: no recording that others can read, nothing survives a kill.
    Memory,
}

impl Choice for Mapping {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("shm", Self::Shm),
        ("run-dir", Self::RunDir),
        ("memory", Self::Memory),
    ];
}

/// From which severity on stagetrace says something about itself on standard error. It has nothing
/// to do with the level of stages, nor with the application's own logging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What stopped working.
    Error,
    /// And what works less well than configured.
    Warn,
    /// And where the trace is. The default.
    #[default]
    Info,
    /// And what the background does.
    Debug,
}

impl Choice for LogLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("none", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("warning", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Debug),
    ];
}

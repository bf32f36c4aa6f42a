//! Which files a path stands for: a run's directory, or a file with what was rotated away from it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files to read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) recordings: Vec<PathBuf>,
    /// Lines and documents, what is older before what is newer, as far as names tell.
    pub(super) texts: Vec<PathBuf>,
    /// Directories that hold files to read, where the path itself holds none.
    pub(super) runs: Vec<PathBuf>,
}

/// Finds the files that a path stands for now.
pub(super) fn find(path: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    if fs::metadata(path)?.is_dir() {
        found.add_directory(path)?;
        if found.is_empty() {
            found.add_documents(path)?;
        }
        if found.is_empty() {
            found.add_runs(path)?;
        }
    } else if is_recording(path) {
        found.recordings.push(path.to_owned());
    } else {
        found.texts.extend(backups(path)?);
        found.texts.push(path.to_owned());
    }
    Ok(found)
}

impl Found {
    fn is_empty(&self) -> bool {
        self.recordings.is_empty() && self.texts.is_empty()
    }

    /// Adds what a run's directory holds, and the `traces` in it, where XTuner writes.
    fn add_directory(&mut self, directory: &Path) -> io::Result<()> {
        for path in entries(directory)? {
            if is_recording(&path) {
                self.recordings.push(path);
            } else if extension(&path) == Some("jsonl") || is_message(&path) {
                self.texts.push(path);
            } else if path.file_name() == Some(OsStr::new("traces")) && path.is_dir() {
                self.add_directory(&path)?;
            }
        }
        self.texts.sort_by_cached_key(|path| age(path));
        Ok(())
    }

    /// Adds what may be answers of a Jaeger.
    fn add_documents(&mut self, directory: &Path) -> io::Result<()> {
        self.texts = entries(directory)?
            .into_iter()
            .filter(|path| extension(path) == Some("json"))
            .collect();
        Ok(())
    }

    fn add_runs(&mut self, directory: &Path) -> io::Result<()> {
        for path in entries(directory)? {
            let mut within = Found::default();
            if path.is_dir() && within.add_directory(&path).is_ok() && !within.is_empty() {
                self.runs.push(path);
            }
        }
        Ok(())
    }
}

/// What is in a directory, by name.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn is_recording(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "recording")
}

/// Whether a file is of OTLP in protobuf, as its name says.
pub(super) fn is_message(path: &Path) -> bool {
    matches!(extension(path), Some("pb" | "binpb"))
}

/// What a file is, whether it is packed or not.
fn extension(path: &Path) -> Option<&str> {
    Some(split(path)?.1)
}

/// The name of a file without its extension, and that, whether it is packed or not.
fn split(path: &Path) -> Option<(&str, &str)> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".gz").unwrap_or(name).rsplit_once('.')
}

/// The files that were rotated away from this one: `<stem>.<n>.jsonl`, as we do, or
/// `<stem>-<date>.jsonl`, as the OpenTelemetry Collector does.
fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some((stem, extension)) = split(path) else { return Ok(Vec::new()) };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let is_backup = |other: &PathBuf| {
        let Some((name, _)) = split(other).filter(|(_, its)| *its == extension) else {
            return false;
        };
        let rest = name.strip_prefix(stem).unwrap_or_default();
        number(rest).is_some() || is_date(rest)
    };
    // A directory that cannot be listed hides backups, but not the file itself.
    let mut backups: Vec<_> = entries(directory).unwrap_or_default();
    backups.retain(is_backup);
    backups.sort_by_cached_key(|path| age(path));
    Ok(backups)
}

/// Sorts files of one name by age, the oldest first, and the one that is being written last.
fn age(path: &Path) -> (String, u8, u64, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = split(path).map_or(&*name, |(stem, _)| stem).to_owned();
    let date = stem.char_indices().find(|(at, _)| is_date(&stem[*at..]));
    if let Some((at, _)) = date {
        return (stem[..at].to_owned(), 0, 0, stem);
    }
    match stem.rsplit_once('.').map(|(base, rest)| (base, rest.parse())) {
        Some((base, Ok(number))) => (base.to_owned(), 0, number, stem),
        _ => (stem.clone(), 1, 0, stem),
    }
}

/// `.<n>`
fn number(rest: &str) -> Option<u64> {
    rest.strip_prefix('.')?.parse().ok()
}

/// `-2026-07-15T01-04-10.125`
fn is_date(rest: &str) -> bool {
    const DATE: &[u8] = b"-0000-00-00T00-00-00";
    let has_form = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    rest.len() >= DATE.len() && rest.bytes().zip(DATE).all(has_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[PathBuf]) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        found.iter().map(name).collect()
    }

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        directory
    }

    #[test]
    fn a_file_is_read_with_what_was_rotated_away_from_it_the_oldest_first() {
        let directory = directory(&[
            "traces.jsonl",
            "traces-2026-07-15T01-04-10.125.jsonl",
            "traces-2026-07-14T23-00-00.000.jsonl",
            "traces-notes.jsonl",
            "traces.10.jsonl",
            "traces.2.jsonl",
            "traces.json",
            "other.1.jsonl",
        ]);
        let found = find(&directory.path().join("traces.jsonl")).unwrap();
        assert_eq!(
            names(&found.texts),
            [
                // Nobody rotates in both ways.
                "traces-2026-07-14T23-00-00.000.jsonl",
                "traces-2026-07-15T01-04-10.125.jsonl",
                "traces.2.jsonl",
                "traces.10.jsonl",
                "traces.jsonl",
            ]
        );
    }

    #[test]
    fn a_run_is_read_whole_the_oldest_of_each_name_first() {
        let files = [
            "a.jsonl",
            "a.1.jsonl",
            "a.recording",
            "a.recovered.jsonl",
            "a.spool",
            "traces-2026-07-15T01-04-10.125.jsonl",
            "traces.jsonl",
            "x.json",
        ];
        let directory = directory(&files);
        let found = find(directory.path()).unwrap();
        assert_eq!(names(&found.recordings), ["a.recording"]);
        let dated = "traces-2026-07-15T01-04-10.125.jsonl";
        let texts = ["a.1.jsonl", "a.jsonl", "a.recovered.jsonl", dated, "traces.jsonl"];
        assert_eq!(names(&found.texts), texts);
    }

    #[test]
    fn the_directory_of_a_run_of_xtuner_is_read_through_its_traces() {
        let directory = directory(&["traces/traces.jsonl", "traces/live.jsonl"]);
        let found = find(directory.path()).unwrap();
        assert_eq!(names(&found.texts), ["live.jsonl", "traces.jsonl"]);
    }

    #[test]
    fn a_directory_of_runs_names_them() {
        let directory = directory(&["run-1/a.jsonl", "run-2/traces/traces.jsonl", "empty/x.txt"]);
        let found = find(directory.path()).unwrap();
        assert_eq!(names(&found.runs), ["run-1", "run-2"]);
        assert!(found.is_empty());
    }
}

//! What processes left on disk, read as anybody would read it.

use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::{Contents, ReadOptions, read_lines};
use stagetrace_wire::span::Span;
use std::collections::HashMap;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Spans in the order in which they began.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    spans: Vec<Span>,
    places: HashMap<(TraceId, SpanId), usize>,
}

impl Spans {
    /// All spans in the .jsonl files below a directory.
    ///
    /// # Panics
    /// If a file has damaged or torn lines, refused spans, or a span twice.
    pub fn of_dir(dir: &Path) -> Spans {
        Spans::read(dir, |path, contents| {
            let report = &contents.report;
            let damaged = report.damaged_lines + report.refused_spans + report.refused_links;
            assert_eq!(damaged, 0, "{}: {report:?}", path.display());
            assert_eq!(report.incomplete_line, None, "{}", path.display());
            assert_eq!(contents.duplicates, 0, "{}", path.display());
        })
    }

    /// The same, of a process that was killed: the last line of a file may be torn.
    ///
    /// # Panics
    /// If a file has another line that is damaged.
    pub fn of_killed(dir: &Path) -> Spans {
        Spans::read(dir, |path, contents| {
            let torn = u64::from(contents.report.incomplete_line.is_some());
            let damaged = contents.report.damaged_lines;
            assert!(damaged <= torn, "{}: {:?}", path.display(), contents.report);
        })
    }

    fn read(dir: &Path, check: impl Fn(&Path, &Contents)) -> Spans {
        let mut spans = Vec::new();
        for path in files(dir, "jsonl") {
            let bytes = fs::read(&path).expect("a trace file can be read");
            let contents = read_lines(&bytes, &ReadOptions::default());
            check(&path, &contents);
            spans.extend(contents.spans);
        }
        Spans::from(spans)
    }

    /// The one span of this name.
    ///
    /// # Panics
    /// If there is none or more than one.
    pub fn one(&self, name: &str) -> &Span {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "spans named {name} among\n{}", self.tree(&[]));
        all[0]
    }

    /// Every span of this name.
    pub fn all(&self, name: &str) -> Vec<&Span> {
        self.iter().filter(|span| span.name == name).collect()
    }

    /// The parent of a span, if it is among these.
    pub fn parent(&self, span: &Span) -> Option<&Span> {
        self.places.get(&(span.trace_id, span.parent_span_id?)).map(|at| &self.spans[*at])
    }

    /// The spans as an indented tree: see [`stagetrace::testing::tree`].
    pub fn tree(&self, attributes: &[&str]) -> String {
        stagetrace::testing::tree(self, attributes)
    }

    /// The same with siblings in the order of their names, for spans of several threads.
    pub fn tree_by_name(&self) -> String {
        let mut spans = self.spans.clone();
        spans.sort_by(|a, b| a.name.cmp(&b.name));
        // Siblings stand in the order in which they began.
        for (at, span) in (0..).zip(&mut spans) {
            span.start_unix_nano = at;
        }
        stagetrace::testing::tree(&spans, &[])
    }
}

impl From<Vec<Span>> for Spans {
    fn from(mut spans: Vec<Span>) -> Spans {
        // Of two that began in one instant, the longer is the outer one.
        spans.sort_by_key(|span| (span.start_unix_nano, std::cmp::Reverse(span.end_unix_nano)));
        let places = spans.iter().enumerate().map(|(at, span)| (span.identity(), at)).collect();
        Spans { spans, places }
    }
}

impl Deref for Spans {
    type Target = [Span];

    fn deref(&self) -> &[Span] {
        &self.spans
    }
}

/// Every file with this extension below a directory.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

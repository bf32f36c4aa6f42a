//! What the tests of faults share.

use stagetrace::{Span, Stats, span};
use stagetrace_tests::pipeline::serve;
use stagetrace_tests::{Ran, Spans, counters, flushed, until};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for anything that comes at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Spans of one [`job`].
pub(crate) const JOB: u64 = 50 * 4;

/// Requests that are traced.
pub(crate) fn job() {
    for request in 0..50 {
        serve(&request.to_string(), 1);
    }
}

/// Keeps so many spans open that they need about this much room, with the collector asked to provide it.
pub(crate) fn press(mib: u64) -> Vec<Span> {
    let mut open = Vec::new();
    for _ in 0..mib * 6 {
        open.extend((0..900).map(|_| span!("open")));
        counters();
    }
    open
}

/// The trace directory of this process.
pub(crate) fn trace_dir() -> PathBuf {
    std::env::var_os("STAGETRACE_DIR").expect("the test's process has one").into()
}

/// The directory of this process's run.
pub(crate) fn run_dir() -> PathBuf {
    stagetrace::status().run_dir.expect("there is one")
}

/// The file of this process with this extension, in its run's directory.
pub(crate) fn own_file(extension: &str) -> PathBuf {
    let pid = std::process::id().to_string();
    let mut files = names(&run_dir()).into_iter();
    let is_ours = |name: &String| {
        name.contains(&pid)
            && name.ends_with(&format!(".{extension}"))
            && name.matches('.').count() == 1
    };
    run_dir().join(files.find(is_ours).expect("the file is there"))
}

/// What is in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The recording grows beyond this many bytes if there is need.
pub(crate) fn assert_grows_beyond(bytes: u64) {
    let mut open = Vec::new();
    let grows = until(SOON, || {
        open.extend(press(1));
        counters().memory > bytes
    });
    assert!(grows, "{:?}", counters());
}

/// What `stats()` promises of its numbers.
pub(crate) fn assert_sums(stats: &Stats) {
    assert_eq!(stats.begun, stats.dropped_spans() + stats.open + stats.ended, "{stats:?}");
    assert_eq!(
        stats.ended,
        stats.waiting + stats.discarded + stats.unsampled + stats.handed,
        "{stats:?}"
    );
    for sink in &stats.sinks {
        assert_eq!(
            sink.handed,
            sink.queued + sink.outbox + sink.exported + sink.failed,
            "{sink:?}"
        );
    }
    assert_eq!(stats.contained_panics, 0, "{stats:?}");
}

/// The spans begun so far are this many, and all have left the process.
pub(crate) fn assert_all_written(begun: u64) {
    let stats = flushed();
    assert_sums(&stats);
    assert_eq!((stats.begun, stats.handed, stats.dropped_spans()), (begun, begun, 0));
    assert_eq!((stats.sinks[0].exported, stats.sinks[0].failed), (begun, 0), "{:?}", stats.sinks);
}

/// One line was said, a warning that names all these.
pub(crate) fn assert_one_complaint(ran: &Ran, about: &[&str]) {
    assert_complaints(ran, &[about]);
}

/// The same, of a process that also says, once for each kind, that spans are dropped.
pub(crate) fn assert_one_complaint_beside_losses(ran: &Ran, about: &[&str]) {
    let is_loss = |line: &&str| line.contains(" are dropped: more are ");
    let (losses, others): (Vec<_>, Vec<_>) = ran.complaints().into_iter().partition(is_loss);
    assert!(losses.len() <= 2 && others.len() == 1, "{}", ran.stderr);
    assert!(about.iter().all(|word| others[0].contains(word)), "{}\nlacks {about:?}", others[0]);
    assert_eq!(ran.stderr.lines().count(), losses.len() + others.len(), "{}", ran.stderr);
}

/// So many lines were said, each a warning or an error that names these.
pub(crate) fn assert_complaints(ran: &Ran, about: &[&[&str]]) {
    let complaints = ran.complaints();
    assert_eq!(complaints.len(), about.len(), "{}", ran.stderr);
    for (complaint, about) in complaints.iter().zip(about) {
        assert!(about.iter().all(|word| complaint.contains(word)), "{complaint}\nlacks {about:?}");
    }
    assert_eq!(ran.stderr.lines().count(), about.len(), "{}", ran.stderr);
}

/// The spans below a directory, without the reports of losses.
pub(crate) fn ours(dir: &Path) -> u64 {
    let spans = Spans::of_dir(dir);
    spans.iter().filter(|span| span.name != "stagetrace.loss").count() as u64
}

/// Writes into a file system until it has no room, down to `left` bytes.
pub(crate) fn fill(path: &Path, left: u64) {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        let full = loop {
            match file.write(&vec![b'x'; size]) {
                Ok(0) => break false,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break true,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(full, "{}", path.display());
    }
    file.set_len(file.metadata().unwrap().len().saturating_sub(left)).unwrap();
}

/// Waits until the file's sink fails, or is well again.
pub(crate) fn assert_sink_fails(fails: bool) {
    let seen = until(SOON, || counters().sinks[0].failing.is_some() == fails);
    assert!(seen, "{:?}", counters());
}

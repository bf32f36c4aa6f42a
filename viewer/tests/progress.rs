//! How far the reading is can be watched.

use std::fs;
use std::sync::Arc;
use std::thread;

use stagetrace_viewer::{Sources, Store};

mod support;

use support::{append, cases, line};

#[test]
fn all_that_was_read_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let lines = |from: u128| -> String {
        (from..from + 10).map(|trace| line(trace, 1, 0, "one", [1, 2])).collect()
    };
    fs::write(&path, lines(1)).unwrap();
    let mut sources = Sources::open([directory.path()]).unwrap();
    let (progress, mut store) = (sources.progress(), Store::default());
    let standing = || (progress.bytes(), progress.total(), progress.spans());
    assert_eq!(standing(), (0, 0, 0));
    let len = || fs::metadata(&path).unwrap().len();
    for spans in [10, 20] {
        sources.poll(&mut store);
        assert_eq!(standing(), (len(), len(), spans));
        append(&path, lines(u128::from(spans) + 1));
    }
    sources.poll(&mut store);
    assert_eq!(standing(), (len(), len(), 30));
}

#[test]
fn a_large_file_is_watched_from_another_thread_while_several_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let lines: String = (1..=60_000).map(|trace| line(trace, 1, 0, "one", [1, 2])).collect();
    assert!(lines.len() > 8 << 20, "so that several threads read it");
    fs::write(&path, &lines).unwrap();
    let mut sources = Sources::open([&path]).unwrap();
    let progress = sources.progress();
    let seen = thread::scope(|scope| {
        let watched = Arc::clone(&progress);
        let watcher = scope.spawn(move || {
            let mut seen = Vec::new();
            while watched.spans() < 60_000 {
                seen.extend(
                    seen.last()
                        .is_none_or(|last| *last != watched.bytes())
                        .then(|| watched.bytes()),
                );
                thread::yield_now();
            }
            seen
        });
        sources.poll(&mut Store::default());
        watcher.join().unwrap()
    });
    assert!(seen.is_sorted() && seen.len() > 2, "{seen:?}");
    assert_eq!((progress.bytes(), progress.total()), (lines.len() as u64, lines.len() as u64));
}

#[test]
fn documents_are_counted_as_well() {
    let mut sources = Sources::open([cases("xtuner").join("jaeger")]).unwrap();
    let (progress, mut store) = (sources.progress(), Store::default());
    sources.poll(&mut store);
    assert_eq!(progress.bytes(), progress.total());
    assert!(progress.spans() >= store.stats().spans as u64 && progress.bytes() > 0);
}

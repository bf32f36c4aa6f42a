//! The viewer's readers: a file of any form, in two pieces and written anew, is read, summed up and shown.

#![no_main]

use std::fs;
use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use stagetrace_viewer::{
    Samples, Sources, StepChoice, Store, StuckRule, Summary, SummaryOptions, tree,
};

// The first byte says what the file is called, the second where it is cut.
fuzz_target!(|input: &[u8]| {
    let &[name, cut, ref bytes @ ..] = input else { return };
    let names = ["x.jsonl", "x.json", "x.pb", "x.jsonl.gz", "x.pb.gz"];
    let directory = tempfile::tempdir().expect("there is room for a file");
    let path = directory.path().join(names[usize::from(name) % names.len()]);
    let cut = usize::from(cut) * bytes.len() / 255;
    fs::write(&path, &bytes[..cut]).expect("it can be written");

    let mut sources = Sources::open([&path]).expect("it is there");
    // Small, so that details make room as well.
    let (mut store, mut samples) = (Store::new(1 << 16), Samples::default());
    look(&mut sources, &mut store, &mut samples);
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("it is there");
    file.write_all(&bytes[cut..]).expect("it can be written");
    look(&mut sources, &mut store, &mut samples);
    fs::write(&path, &bytes[cut..]).expect("it can be written");
    look(&mut sources, &mut store, &mut samples);
});

fn look(sources: &mut Sources, store: &mut Store, samples: &mut Samples) {
    sources.poll(store);
    samples.refresh(store);
    let options =
        SummaryOptions { step: StepChoice::All, now: 1 << 60, stuck: StuckRule::default() };
    let summary = Summary::new(store, samples, &sources.report(), &options).expect("all steps");
    serde_json::to_string(&summary).expect("it is JSON");
    for trace in store.traces() {
        sources.restore(store, trace);
        let text = tree(store, samples, trace, 1 << 60);
        assert!(text.lines().count() >= store.len_of(trace));
        for span in store.spans_of(trace) {
            store.span(span);
        }
    }
}

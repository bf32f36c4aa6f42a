//! `exits HOW`: serves requests, has one open, and ends: by `return`, `panic`, `exit`, `abort`, or
//! by what others do to it (`wait`, `work`). Says on standard output what is done: `finished <id>`
//! after each request, then `open`.

use stagetrace::{Outcome, Traced, event, span};
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward, serve};
use stagetrace_tests::start;
use std::time::Duration;

/// Requests that are finished before the end.
const FINISHED: u32 = 50;

fn main() {
    let how = std::env::args().nth(1).expect("how to end");
    let _trace = start();
    if how == "work" {
        return work();
    }
    for number in 0..FINISHED {
        serve(&format!("done-{number}"), 2);
        println!("finished done-{number}");
    }
    let open = Generate::begun("open");
    dispatch(&open, || {
        event!("about to end", "how" = &*how);
        forward(&open);
        let _background = span!("background", "n" = 7);
        println!("open");
        end(&how);
    });
    open.finish(Outcome::Ok);
}

fn end(how: &str) {
    match how {
        "return" => {}
        "panic" => panic!("as expected"),
        "exit" => std::process::exit(1),
        "abort" => std::process::abort(),
        // Bounded, in case that nobody does anything to it.
        "wait" => std::thread::sleep(Duration::from_secs(60)),
        _ => panic!("no such end: {how}"),
    }
}

/// Serves requests on two threads, some thousand a second, for a minute at most.
fn work() {
    let serving = |thread: u32| {
        for number in 0..1_000_000 {
            let id = format!("{thread}-{number}");
            let request = Generate::begun(&id);
            dispatch(&request, || {
                span!("background").in_scope(|| decode(&request));
                event!("done soon", "number" = number);
                std::thread::sleep(Duration::from_micros(100));
            });
            request.finish(Outcome::Ok);
            println!("finished {id}");
        }
    };
    std::thread::spawn(move || serving(1));
    std::thread::spawn(move || serving(2));
    std::thread::sleep(Duration::from_secs(60));
}

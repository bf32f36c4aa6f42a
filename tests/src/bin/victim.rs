//! `victim WORKERS END AFTER`: records spans on so many threads as fast as it can (`3-brief`: three at
//! a time, each a short thread, followed by another one), says of each in the file `VICTIM_LEDGER`, and of some on standard
//! output, that it has ended, and after so many rounds
//! that were recorded whole ends as told: by `abort`, `segv`, `panic`,
//! `memory` (takes it until there is none), `shutdown`; or by what others do to it (`wait`). With `VICTIM_EXPORTER`, one of
//! the ways of `stagetrace_tests::delivered`, it has no .jsonl but such an exporter, whose file is `VICTIM_DELIVERED`. With
//! `VICTIM_SAMPLES` its .jsonl gets each trace when that has ended.

use stagetrace_tests::ledger::{Ledger, ROUNDS, WORKERS};
use stagetrace_tests::rounds::{Carried, Worker};
use stagetrace_tests::{delivered, start, start_exporting, start_with};
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Longest that it lives if nobody ends it.
const LIFE: Duration = Duration::from_secs(240);
/// Rounds after which it says on standard output what has ended.
const SAID: u32 = 32;
/// Rounds of a short thread.
const BRIEF: usize = 8;
/// How long a worker waits when there was no room for a span.
const FULL: Duration = Duration::from_micros(200);

/// The workers are to stop.
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [workers, end, after] = &*args else { panic!("victim WORKERS END AFTER") };
    let after: u32 = after.parse().expect("a number of rounds");
    let path = std::env::var_os("VICTIM_LEDGER").expect("the ledger's path");
    let ledger: &'static Ledger =
        Box::leak(Box::new(Ledger::open(path.as_ref()).expect("a ledger")));
    let trace = match std::env::var("VICTIM_EXPORTER") {
        Err(_) if std::env::var_os("VICTIM_SAMPLES").is_some() => start_with(|config| {
            config.tail_sampling(|tail| (tail.fraction, tail.jsonl) = (1.0, true))
        }),
        Err(_) => start(),
        Ok(how) => {
            let path = std::env::var_os("VICTIM_DELIVERED").expect("the path of what it delivers");
            start_exporting(delivered::exporter(path.as_ref(), &how))
        }
    };
    let (carrier, carried) = channel();
    let mut threads = vec![thread::spawn(move || carry(&carried, ledger))];
    let (workers, are_brief) = match workers.strip_suffix("-brief") {
        Some(workers) => (workers, true),
        None => (&**workers, false),
    };
    for number in 0..workers.parse().expect("a number of workers") {
        assert!(number < WORKERS, "too many workers");
        let worker = Worker { number, ledger, carrier: carrier.clone() };
        threads.push(thread::spawn(move || match are_brief {
            false => rounds(0..ROUNDS).for_each(|round| work(&worker, round)),
            true => be_brief(worker),
        }));
    }
    drop(carrier);
    let deadline = std::time::Instant::now() + LIFE;
    while ledger.recorded() < after && std::time::Instant::now() < deadline {
        thread::yield_now();
    }
    match &**end {
        "wait" => thread::sleep(LIFE),
        "abort" => std::process::abort(),
        "segv" => segv(),
        "panic" => panic!("as expected"),
        "memory" => take_memory(),
        "shutdown" => {
            // What ends while the recorder stops is nobody's promise.
            IS_OVER.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            trace.shutdown(LIFE).expect("all can be written");
        }
        _ => panic!("no such end: {end}"),
    }
}

/// These rounds, as long as there is work.
fn rounds(all: Range<u32>) -> impl Iterator<Item = u32> {
    all.take_while(|_| !IS_OVER.load(Ordering::Relaxed))
}

fn work(worker: &Worker<'_>, round: u32) {
    match worker.run(round) {
        true => worker.ledger.record(worker.number),
        false => thread::sleep(FULL),
    }
    if (round + 1).is_multiple_of(SAID) {
        say(worker, round + 1 - SAID);
    }
}

/// Says on standard output which spans of the last rounds have ended.
fn say(worker: &Worker<'_>, first: u32) {
    let mut message = [worker.number.to_le_bytes(), first.to_le_bytes()].concat();
    message.extend(
        (first..first + SAID).map(|round| worker.ledger.acknowledged(worker.number, round)),
    );
    let mut out = std::io::stdout().lock();
    // Whoever listens may have gone.
    let _ = out.write_all(&message).and_then(|()| out.flush());
}

/// Each thread fills no more than its first, small chunk, so that chunks go round quickly.
fn be_brief(mut worker: Worker<'static>) {
    for first in rounds(0..ROUNDS).step_by(BRIEF) {
        let work = move || {
            rounds(first..first + BRIEF as u32).for_each(|round| work(&worker, round));
            worker
        };
        worker = thread::spawn(work).join().expect("it does not panic");
    }
}

/// Ends what the workers hand over, a little later.
fn carry(carried: &Receiver<Carried>, ledger: &Ledger) {
    for span in carried {
        thread::yield_now();
        span.end(ledger);
    }
}

fn segv() -> ! {
    // SAFETY: it is not safe, which is the point: nothing is mapped at this address.
    unsafe { std::ptr::null::<u64>().with_addr(4096).read_volatile() };
    unreachable!("nothing is mapped there");
}

fn take_memory() -> ! {
    let mut taken = Vec::new();
    loop {
        taken.push(vec![1_u8; 1 << 20]);
        std::hint::black_box(&taken);
    }
}

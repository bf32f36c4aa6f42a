//! The part of a case that counts: callgrind collects in here, and nowhere else.

use crate::measure::{Allocations, count};
use std::sync::mpsc;
use std::time::Duration;

/// Spans, or requests, between two flushes: few enough to find room whatever the collector does meanwhile.
pub(super) const PIECE: usize = 500;

/// Runs a case's work and adds up what it allocates.
#[derive(Default)]
pub(crate) struct Counted {
    pieces: usize,
    /// How often the work was done, what came before it was counted left out.
    pub(crate) times: usize,
    pub(crate) allocations: Allocations,
}

/// What callgrind collects in: the name of [`collected_by_callgrind`]. Every thread has a state of its own, so that the
/// collector's work is not counted, though it runs meanwhile.
pub(crate) const COLLECTED: &str = "*collected_by_callgrind*";

#[inline(never)]
fn collected_by_callgrind(work: &mut dyn FnMut()) {
    work();
    // Keeps the call above from becoming a jump, which callgrind would not follow.
    std::hint::black_box(());
}

impl Counted {
    /// So much work, in pieces.
    pub(crate) fn new(times: usize) -> Counted {
        Counted { pieces: times.div_ceil(PIECE), ..Counted::default() }
    }

    /// Does `work` for as many spans as there are to be.
    pub(crate) fn each(&mut self, mut work: impl FnMut(usize)) {
        let mut all = || (0..PIECE).for_each(&mut work);
        // What happens once, as a thread's or a stage's first time, does not count.
        all();
        flush();
        for _ in 0..self.pieces {
            let before = Allocations::now();
            self.counted(&mut all);
            flush();
            self.allocations.everywhere += Allocations::since(before).everywhere;
            self.times += PIECE;
        }
    }

    /// Does `send` on this thread and `receive` on another one.
    pub(crate) fn across<T: Send>(
        &mut self,
        send: impl Fn(usize) -> T,
        receive: impl Fn(T) + Sync,
    ) {
        let (requests, mut received) = mpsc::channel();
        let all = || (0..PIECE).for_each(|i| _ = requests.send(send(i)));
        all();
        received.try_iter().for_each(&receive);
        flush();
        for _ in 0..self.pieces {
            let before = Allocations::now();
            self.counted(all);
            let received = &mut received;
            let receive = &receive;
            let receive_all = move || {
                let mut there = Counted::default();
                there.counted(|| received.try_iter().for_each(receive));
                there.allocations.here
            };
            let there = std::thread::scope(|scope| scope.spawn(receive_all).join());
            flush();
            self.allocations.here += there.expect("the receiver does not panic");
            self.allocations.everywhere += Allocations::since(before).everywhere;
            self.times += PIECE;
        }
    }

    fn counted(&mut self, mut work: impl FnMut()) {
        count(true);
        let before = Allocations::now();
        collected_by_callgrind(&mut work);
        self.allocations.here += Allocations::since(before).here;
    }
}

/// Lets the collector catch up, so that nothing is dropped for want of room. It fails if nothing is installed.
fn flush() {
    let _ = stagetrace::flush(Duration::from_secs(60));
}

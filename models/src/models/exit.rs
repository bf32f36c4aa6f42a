//! The end of a thread, and of the recorder: nothing is lost, nothing is used too early.

use super::support::{Memory, begin, copy, end_span, explore, number_of};
use crate::chunk::{Pool, Progress, Seen, Writer};
use crate::recording::layout::{chunk, slot};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// What the collector knows of the first block of a pool, which is two small chunks.
struct Collector {
    pool: &'static Pool,
    chunks: [Progress; 2],
    ended: Vec<u64>,
}

impl Collector {
    fn new(pool: &'static Pool) -> Collector {
        Collector { pool, chunks: Default::default(), ended: Vec::new() }
    }

    /// A walk over the chunks, after which what was done is recycled.
    fn walk(&mut self) {
        let block = self.pool.block(1);
        let size = (block[chunk::KIND].load(Ordering::Acquire) >> 32) as usize;
        let chunks = block.chunks(size / 8);
        for (words, progress) in chunks.zip(&mut self.chunks) {
            progress.look(words, |seen, _, record| {
                assert_eq!(seen, Seen::Ended);
                self.ended.push(number_of(&copy(record)));
            });
            if progress.is_done(words) {
                *progress = Progress::default();
                self.pool.recycle(words);
            }
        }
    }

    fn ended(mut self) -> Vec<u64> {
        self.ended.sort_unstable();
        self.ended
    }
}

/// A pool whose only block for threads is two small chunks: a thread's, and one that is free or taken for good. The other
/// block is kept for shared chunks.
fn small_chunks(free: usize) -> (Memory, Writer) {
    let memory = Memory::new(3);
    let writer = Writer::new();
    assert!(writer.refill(memory.pool(), slot::WORDS));
    assert!((free..1).all(|_| memory.take_chunk(true, 64).is_some()));
    (memory, writer)
}

#[test]
fn a_thread_that_ends_loses_nothing_and_its_chunk_is_used_anew_only_when_read() {
    explore(|| {
        let (memory, writer) = small_chunks(0);
        let pool = memory.pool();
        let ends = thread::spawn(move || {
            end_span(begin(&writer, 1), 1);
            // The exit hook.
            writer.close(pool);
        });
        let mut collector = Collector::new(pool);
        collector.walk();
        // Whether or not a chunk has become free: another thread asks for one.
        let writer = Writer::new();
        let again = writer.refill(pool, slot::WORDS);
        if again {
            end_span(begin(&writer, 2), 2);
        }
        ends.join().unwrap();
        collector.walk();
        let expected = if again { vec![1, 2] } else { vec![1] };
        assert_eq!(collector.ended(), expected);
    });
}

#[test]
fn what_a_thread_leaves_of_its_chunk_another_one_goes_on_with_behind_all_that_stands_there() {
    explore(|| {
        let (memory, writer) = small_chunks(1);
        let pool = memory.pool();
        let ends = thread::spawn(move || {
            end_span(begin(&writer, 1), 1);
            // The exit hook.
            writer.leave(pool);
        });
        let later = thread::spawn(move || {
            let writer = Writer::new();
            let has_room = writer.refill(pool, slot::WORDS);
            if has_room {
                end_span(begin(&writer, 2), 2);
                writer.leave(pool);
            }
            has_room
        });
        let mut collector = Collector::new(pool);
        collector.walk();
        ends.join().unwrap();
        let has_room = later.join().unwrap();
        collector.walk();
        let expected = if has_room { vec![1, 2] } else { vec![1] };
        assert_eq!(collector.ended(), expected);
    });
}

#[test]
fn a_span_that_ends_after_its_thread_is_seen_and_keeps_its_chunk_until_then() {
    explore(|| {
        let (memory, writer) = small_chunks(0);
        let pool = memory.pool();
        let words = begin(&writer, 1);
        writer.close(pool);
        let ends = thread::spawn(move || end_span(words, 1));
        let mut collector = Collector::new(pool);
        collector.walk();
        if let Some(chunk) = pool.take_chunk(true, 64) {
            assert_eq!(collector.ended, [1], "used anew before its span ended");
            assert_eq!(chunk.as_ptr(), pool.block(1).as_ptr());
        }
        ends.join().unwrap();
        collector.walk();
        assert_eq!(collector.ended(), [1]);
    });
}

#[test]
fn threads_that_have_no_chunk_share_one_under_a_lock() {
    explore(|| {
        // Its only block is one chunk, which the first to come begins.
        let memory = Memory::new(2);
        let pool = memory.pool();
        let late = move |number| {
            let borrowed = pool.shared().borrow(pool, slot::WORDS);
            let is_borrowed = borrowed.is_some();
            if let Some(chunk) = borrowed {
                end_span(begin(chunk.writer(), number), number);
            }
            is_borrowed
        };
        let thread = thread::spawn(move || late(1));
        let mine = late(2);
        let mut collector = Collector::new(pool);
        collector.walk();
        let others = thread.join().unwrap();
        collector.walk();
        assert!(mine || others, "there is room, and a lock that is taken is given back");
        let expected = [(others, 1), (mine, 2)].into_iter().filter(|late| late.0);
        assert_eq!(collector.ended(), expected.map(|late| late.1).collect::<Vec<u64>>());
    });
}

#[test]
fn what_ended_before_a_flush_is_asked_for_is_in_it() {
    explore(|| {
        let (memory, writer) = small_chunks(0);
        let pool = memory.pool();
        let asked = Arc::new(AtomicU64::new(0));
        let tells = asked.clone();
        let thread = thread::spawn(move || {
            end_span(begin(&writer, 1), 1);
            tells.store(1, Ordering::Release);
            // What comes later may be in it or not.
            end_span(begin(&writer, 2), 2);
        });
        let mut collector = Collector::new(pool);
        if asked.load(Ordering::Acquire) == 1 {
            collector.walk();
            assert!(collector.ended.contains(&1));
        }
        thread.join().unwrap();
    });
}

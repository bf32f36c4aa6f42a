//! A span is visible, whole, from its first instant; and an ended one with all that belongs to its end.

use super::support::{Memory, begin, copy, end_span, explore, number_of, numbers};
use crate::chunk::{Progress, Seen, Writer};
use crate::recording;
use crate::recording::layout::{BLOCK, SMALL_CHUNK, chunk, slot};
use loom::thread;

/// A writer with a small chunk, as at a thread's first span.
fn started(memory: &Memory) -> Writer {
    let writer = Writer::new();
    assert!(writer.refill(memory.pool(), slot::WORDS));
    writer
}

/// The chunk that a pool hands out first.
fn first_chunk(memory: &Memory) -> &[crate::sync::AtomicU64] {
    &memory.block(1)[..SMALL_CHUNK / 8]
}

#[test]
fn another_process_reads_a_span_whole_or_not_at_all() {
    explore(|| {
        let memory = Memory::new(3);
        let pool = memory.pool();
        let writer = Writer::new();
        let thread = thread::spawn(move || {
            assert!(writer.refill(pool, slot::WORDS));
            let first = begin(&writer, 1);
            begin(&writer, 2);
            end_span(first, 1);
        });
        let found = recording::chunks(pool.space().words());
        assert!([vec![], vec![1], vec![1, 2]].contains(&numbers(&found.spans)));
        assert!(found.is_sound(), "{found:?}");
        thread.join().unwrap();
    });
}

#[test]
fn what_was_published_before_a_thread_ended_is_there() {
    explore(|| {
        let memory = Memory::new(3);
        let pool = memory.pool();
        let writer = Writer::new();
        let thread = thread::spawn(move || {
            assert!(writer.refill(pool, slot::WORDS));
            end_span(begin(&writer, 1), 1);
            begin(&writer, 2);
        });
        thread.join().unwrap();
        let found = recording::chunks(pool.space().words());
        assert_eq!(numbers(&found.spans), [1, 2]);
        let open: Vec<bool> = found.spans.iter().map(|span| span[slot::END] == 0).collect();
        assert_eq!(open, [false, true]);
    });
}

#[test]
fn the_collector_sees_each_span_end_once_and_whole() {
    explore(|| {
        let memory = Memory::new(3);
        let writer = started(&memory);
        let mut progress = Progress::default();
        let mut ended = Vec::new();
        let thread = thread::spawn(move || {
            let first = begin(&writer, 1);
            let second = begin(&writer, 2);
            end_span(second, 2);
            end_span(first, 1);
        });
        let mut look = || {
            progress.look(first_chunk(&memory), |seen, _, record| {
                assert_eq!(seen, Seen::Ended);
                ended.push(number_of(&copy(record)));
            });
        };
        look();
        look();
        thread.join().unwrap();
        look();
        look();
        ended.sort_unstable();
        assert_eq!(ended, [1, 2]);
    });
}

#[test]
fn a_chunk_is_small_and_in_the_first_block() {
    explore(|| {
        let memory = Memory::new(3);
        let writer = started(&memory);
        begin(&writer, 1);
        assert!(writer.has_room(slot::WORDS));
        begin(&writer, 2);
        assert!(!writer.has_room(slot::WORDS));
        let head = first_chunk(&memory);
        let tail = head[chunk::TAIL].load(crate::sync::Ordering::Relaxed);
        assert_eq!(tail as usize, SMALL_CHUNK);
        assert_eq!(memory.block(1).len() * 8, BLOCK);
    });
}

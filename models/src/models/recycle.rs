//! A chunk that is used anew is never read as a mixture of its uses.

use super::support::{Memory, begin, end_span, explore, explore_up_to, numbers, put};
use crate::chunk::{Pool, Writer};
use crate::recording;
use crate::recording::layout::{SMALL_CHUNK, chunk, slot};
use crate::sync::Ordering;
use loom::thread;

/// Hands over a chunk in which span 1 ended.
fn used_once(pool: &'static Pool) {
    let writer = Writer::new();
    assert!(writer.refill(pool, slot::WORDS));
    end_span(begin(&writer, 1), 1);
    writer.close(pool);
}

/// Takes a chunk, if one is free, and writes span 2 into it.
fn use_again(pool: &'static Pool) {
    let writer = Writer::new();
    if writer.refill(pool, slot::WORDS) {
        begin(&writer, 2);
    }
}

fn check(pool: &Pool) {
    let found = recording::chunks(pool.space().words());
    let numbers = numbers(&found.spans);
    assert!([vec![], vec![1], vec![2]].contains(&numbers), "{numbers:?}");
    assert!(found.is_sound(), "{found:?}");
}

#[test]
fn a_reader_finds_the_spans_of_one_use_of_a_chunk() {
    explore(|| {
        let memory = Memory::new(3);
        let pool = memory.pool();
        used_once(pool);
        // The other small chunk is taken, so that the first one is used again.
        assert!(pool.take_chunk(true, 64).is_some());
        let writer = thread::spawn(move || {
            pool.recycle(&pool.block(1)[..SMALL_CHUNK / 8]);
            use_again(pool);
        });
        check(pool);
        writer.join().unwrap();
        check(pool);
    });
}

#[test]
fn a_reader_finds_the_spans_of_one_use_though_another_thread_takes_the_chunk() {
    explore(|| {
        let memory = Memory::new(3);
        let pool = memory.pool();
        used_once(pool);
        assert!(pool.take_chunk(true, 64).is_some());
        let collector = thread::spawn(move || pool.recycle(&pool.block(1)[..SMALL_CHUNK / 8]));
        let writer = thread::spawn(move || use_again(pool));
        check(pool);
        collector.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_large_chunk_that_is_split_into_small_ones_is_read_as_one_or_the_other() {
    // Once the reader is interrupted; each word that it then reads may be old or new.
    explore_up_to(1, || {
        let memory = Memory::new(3);
        let pool = memory.pool();
        // A span stands where the head of the second small chunk comes to be, behind one that is not looked at.
        let large = pool.take_shared_chunk(64).expect("a block is free");
        let (first, second) = (&large[chunk::HEAD / 8..], &large[SMALL_CHUNK / 8..]);
        put(first, 1, 2 * slot::WORDS);
        put(second, 1, slot::WORDS);
        large[chunk::TAIL].store((SMALL_CHUNK + slot::WORDS * 8) as u64, Ordering::Release);
        let thread = thread::spawn(move || {
            pool.recycle(large);
            assert!(pool.take_chunk(true, 64).is_some());
        });
        let found = recording::chunks(pool.space().words());
        let numbers = numbers(&found.spans);
        assert!([vec![], vec![1, 1]].contains(&numbers), "{numbers:?}");
        assert!(found.is_sound(), "{found:?}");
        thread.join().unwrap();
    });
}

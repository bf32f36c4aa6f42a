//! A pool grows, and its blocks change their kind, while threads take chunks and readers walk.

use super::support::{Memory, begin, explore, numbers};
use crate::chunk::Writer;
use crate::recording;
use crate::recording::layout::{chunk, slot};
use crate::sync::Ordering;
use loom::thread;

#[test]
fn a_block_that_is_counted_has_its_head() {
    explore(|| {
        let memory = Memory::growing(4, 2);
        let pool = memory.pool();
        let collector = thread::spawn(move || {
            pool.space().widen();
            assert!(pool.grow_to_reserve(u32::MAX).unwrap());
        });
        // In this process.
        let blocks = pool.blocks();
        assert!([2, 4].contains(&blocks));
        for block in 1..blocks {
            assert_eq!(
                pool.block(block)[chunk::KIND].load(Ordering::Relaxed) as u32,
                chunk::RECORDS
            );
        }
        // In another one.
        let heads = recording::heads(pool.space().words());
        assert!([1, 3].contains(&heads), "{heads} heads");
        collector.join().unwrap();
    });
}

#[test]
fn a_chunk_of_a_new_block_is_written_only_when_it_is_made() {
    explore(|| {
        let memory = Memory::growing(3, 2);
        let pool = memory.pool();
        let first = pool.take_shared_chunk(64).expect("a block is free");
        let collector = thread::spawn(move || {
            pool.space().widen();
            assert!(pool.grow_to_reserve(u32::MAX).unwrap());
        });
        let writer = Writer::new();
        let taken = writer.refill_shared(pool, slot::WORDS);
        if taken {
            begin(&writer, 1);
        }
        let found = numbers(&recording::chunks(pool.space().words()).spans);
        assert_eq!(found.len(), usize::from(taken));
        collector.join().unwrap();
        let found = numbers(&recording::chunks(pool.space().words()).spans);
        assert_eq!(found.len(), usize::from(taken));
        assert_eq!(first[chunk::STATE].load(Ordering::Relaxed), chunk::OWNED);
    });
}

#[test]
fn a_block_that_becomes_the_stage_table_is_never_read_as_records() {
    explore(|| {
        let memory = Memory::new(2);
        let pool = memory.pool();
        let thread = thread::spawn(move || {
            // As long as a record, and with what could be a size where a record has it.
            let entry: Vec<u8> =
                [8_u64 << 32 | 1; 16].iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert!(pool.add_to_table(&entry));
        });
        let found = recording::chunks(pool.space().words());
        assert!(found.spans.is_empty(), "{:?}", found.spans);
        assert!(found.is_sound(), "{found:?}");
        thread.join().unwrap();
    });
}

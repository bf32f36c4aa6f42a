//! Slab slots: taken on one thread, ended on another, in place or copied, and used anew.

use super::support::{Memory, begin, explore, number_of, numbers, put};
use crate::chunk::{Hand, Pool, Writer, generation};
use crate::recording;
use crate::recording::layout::{chunk, slab, slot};
use crate::sync::{AtomicU64, Ordering};
use loom::thread;

/// Takes a slot and begins span `number` in it, unless all are taken.
fn begin_in_slab(pool: &'static Pool, hand: &Hand, number: u64) -> Option<u32> {
    let at = hand.take(pool, pool.slots())?;
    let words = pool.slot(at);
    generation::before_writing();
    put(words, number, slot::WORDS);
    words[slot::LIFE].store(0, Ordering::Relaxed);
    generation::publish(words);
    Some(at)
}

/// Gives the slot back, as after its span was copied.
fn release(pool: &'static Pool, hand: &Hand, at: u32) {
    generation::release(pool.slot(at));
    hand.give(pool, pool.slots(), at);
}

/// A pool with one free slot.
fn one_slot(blocks: usize) -> Memory {
    let memory = Memory::new(blocks);
    assert!(memory.add_slots());
    let hand = Hand::new();
    assert!((1..slab::SLOTS).all(|_| hand.take(memory.pool(), memory.slots()).is_some()));
    hand.empty(memory.pool(), memory.slots());
    memory
}

#[test]
fn a_slot_that_gets_another_span_is_never_read_as_a_mixture() {
    explore(|| {
        let memory = one_slot(4);
        let pool = memory.pool();
        let hand = Hand::new();
        let at = begin_in_slab(pool, &hand, 1).expect("one is free");
        let thread = thread::spawn(move || {
            // Ended here: the slot comes into this thread's hand.
            let hand = Hand::new();
            release(pool, &hand, at);
            begin_in_slab(pool, &hand, 2);
        });
        let found = numbers(&recording::slabs(pool.space().words()).spans);
        assert!([vec![], vec![1], vec![2]].contains(&found), "{found:?}");
        thread.join().unwrap();
    });
}

#[test]
fn a_slot_that_goes_over_the_shelf_to_a_third_thread_is_never_read_as_a_mixture() {
    explore(|| {
        let memory = one_slot(4);
        let pool = memory.pool();
        let at = begin_in_slab(pool, &Hand::new(), 1).expect("one is free");
        let ends = thread::spawn(move || {
            let hand = Hand::new();
            release(pool, &hand, at);
            hand.empty(pool, pool.slots());
        });
        let begins = thread::spawn(move || begin_in_slab(pool, &Hand::new(), 2));
        let found = numbers(&recording::slabs(pool.space().words()).spans);
        assert!([vec![], vec![1], vec![2]].contains(&found), "{found:?}");
        ends.join().unwrap();
        begins.join().unwrap();
    });
}

#[test]
fn a_span_that_is_copied_at_its_end_is_found_in_one_place_or_in_both() {
    explore(|| {
        let memory = one_slot(4);
        let pool = memory.pool();
        let hand = Hand::new();
        let at = begin_in_slab(pool, &hand, 7).expect("one is free");
        let writer = Writer::new();
        assert!(writer.refill(pool, slot::WORDS));
        let thread = thread::spawn(move || {
            begin(&writer, 7);
            release(pool, &Hand::new(), at);
        });
        let slabs = recording::slabs(pool.space().words());
        let chunks = recording::chunks(pool.space().words());
        let found = numbers(&[slabs.spans, chunks.spans].concat());
        assert!(found == [7] || found == [7, 7], "{found:?}");
        thread.join().unwrap();
    });
}

#[test]
fn a_span_that_ended_in_place_is_taken_once_and_whole() {
    explore(|| {
        let memory = one_slot(4);
        let pool = memory.pool();
        let at = begin_in_slab(pool, &Hand::new(), 5).expect("one is free");
        let words: &'static [AtomicU64] = pool.slot(at);
        let thread = thread::spawn(move || {
            generation::end_in_place(words, 5, 5);
            pool.note_ended_in_place();
        });
        let mut taken = 0;
        let mut look = || {
            if pool.take_ended_in_place() == 0 {
                return;
            }
            // Whoever is told that one ended finds it.
            assert!(generation::take_ended(words));
            assert!(!generation::take_ended(words), "taken twice");
            let mut copy: Vec<u64> =
                words[..slot::WORDS].iter().map(|word| word.load(Ordering::Relaxed)).collect();
            copy[slot::LIFE] &= !slot::TAKEN;
            assert_eq!(number_of(&copy), 5);
            taken += 1;
        };
        look();
        look();
        thread.join().unwrap();
        look();
        assert_eq!(taken, 1);
    });
}

#[test]
fn a_block_that_becomes_slots_shows_no_span_of_its_time_as_a_chunk() {
    explore(|| {
        let memory = Memory::new(4);
        let pool = memory.pool();
        // The block that is free next holds what a chunk left: where a slot begins stands a span.
        let taken = pool.take_chunk(false, 64).expect("a block is free");
        let left = &taken[chunk::HEAD / 8..];
        left[..slab::WORDS].iter().for_each(|word| word.store(8, Ordering::Relaxed));
        pool.recycle(taken);
        let thread = thread::spawn(move || {
            assert!(pool.add_slots());
            begin_in_slab(pool, &Hand::new(), 9)
        });
        let found = numbers(&recording::slabs(pool.space().words()).spans);
        assert!([vec![], vec![9]].contains(&found), "{found:?}");
        thread.join().unwrap();
    });
}

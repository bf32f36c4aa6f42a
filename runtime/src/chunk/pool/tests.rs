use super::chunks::Head;
use super::{Pool, SMALL_PER_BLOCK};
use crate::chunk::space::Space;
use crate::clock::Clock;
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk};
use std::sync::atomic::{AtomicU64, Ordering};

fn pool(blocks: usize) -> Pool {
    Pool::new(Space::in_memory(blocks).unwrap(), Clock::Monotonic, "{}").unwrap()
}

#[test]
fn a_first_chunk_is_small_and_later_ones_are_large() {
    let pool = pool(16);
    assert_eq!(pool.take_chunk(true, 64).unwrap().len(), SMALL_CHUNK / 8);
    assert_eq!(pool.take_chunk(false, 64).unwrap().len(), BLOCK / 8);
}

#[test]
fn an_empty_pool_says_no_and_a_recycled_chunk_is_taken_again() {
    let pool = pool(4);
    let chunks: Vec<_> = std::iter::from_fn(|| pool.take_chunk(false, 4096)).take(9).collect();
    assert_eq!(chunks.len(), 2, "one block is the header's, and one is kept");
    let sequence = || chunks[0][chunk::SEQUENCE].load(Ordering::Relaxed);
    let before = sequence();
    pool.recycle(chunks[0]);
    let again = pool.take_chunk(false, 4096).unwrap();
    assert_eq!(again.as_ptr(), chunks[0].as_ptr());
    assert_eq!(sequence(), before + 2, "even, and not what readers of the last use saw");
    assert!(before.is_multiple_of(2));
}

#[test]
fn a_pool_grows_in_steps_up_to_its_limit() {
    let pool = pool(40);
    assert_eq!(pool.blocks(), 16);
    assert!(pool.grow_to_reserve(u32::MAX).unwrap());
    assert!(pool.grow_to_reserve(u32::MAX).unwrap());
    assert_eq!(pool.blocks(), 40);
    assert!(!pool.grow_to_reserve(u32::MAX).unwrap());
    let chunks = std::iter::from_fn(|| pool.take_chunk(false, 4096)).take(99).count();
    assert_eq!(chunks, 39 - 2, "a sixteenth is kept");
}

#[test]
fn the_smallest_pool_is_short_only_when_little_is_left() {
    let pool = pool(16);
    assert!(!pool.is_short());
    let taken: Vec<_> = (0..12).filter_map(|_| pool.take_chunk(false, 4096)).collect();
    assert!((taken.len(), pool.is_short()) == (12, false));
    assert!(pool.take_chunk(false, 4096).is_some() && pool.is_short());
}

#[test]
fn a_record_that_no_chunk_holds_finds_none() {
    let pool = pool(4);
    let small = pool.take_chunk(true, 64).unwrap();
    let large = pool.take_chunk(false, SMALL_CHUNK).unwrap();
    assert!(
        pool.take_chunk(false, SMALL_CHUNK).is_none(),
        "what is free is small, or kept for all"
    );
    pool.recycle(small);
    assert!(pool.take_chunk(false, SMALL_CHUNK).is_none());
    pool.recycle(large);
    assert!(pool.take_chunk(true, SMALL_CHUNK).unwrap().len() > SMALL_CHUNK / 8);
}

#[test]
fn table_entries_follow_each_other_and_open_new_blocks() {
    let pool = pool(8);
    let entry = [7; 1000];
    assert!((0..100).all(|_| pool.add_to_table(&entry)));
    assert!(!pool.add_to_table(&[0; BLOCK]));
}

fn head(words: &[AtomicU64]) -> &Head {
    words.first_chunk().unwrap()
}

#[test]
fn what_a_dead_thread_leaves_of_a_small_chunk_the_next_one_gets() {
    let pool = pool(16);
    let first = pool.take_chunk(true, 64).unwrap();
    first[chunk::TAIL].store(1024, Ordering::Relaxed);
    pool.leave(head(first));
    let next = pool.take_chunk(true, 64).unwrap();
    assert_eq!(next.as_ptr(), first.as_ptr());
    assert_eq!(next[chunk::TAIL].load(Ordering::Relaxed), 1024, "what stands in it stays");
    // One that is nearly full is handed over instead.
    next[chunk::TAIL].store(SMALL_CHUNK as u64 - 128, Ordering::Relaxed);
    pool.leave(head(next));
    assert_eq!(next[chunk::STATE].load(Ordering::Relaxed), chunk::FULL);
    assert_ne!(pool.take_chunk(true, 64).unwrap().as_ptr(), first.as_ptr());
}

#[test]
fn a_left_chunk_without_enough_room_is_handed_over() {
    let pool = pool(16);
    let first = pool.take_chunk(true, 64).unwrap();
    first[chunk::TAIL].store(2048, Ordering::Relaxed);
    pool.leave(head(first));
    let next = pool.take_chunk(true, 3000).unwrap();
    assert_ne!(next.as_ptr(), first.as_ptr());
    assert_eq!(first[chunk::STATE].load(Ordering::Relaxed), chunk::FULL);
}

#[test]
fn dead_threads_do_not_keep_more_than_a_sixteenth_of_the_pool() {
    let pool = pool(64);
    while pool.grow_to_reserve(u32::MAX).unwrap() {}
    let chunks: Vec<_> = (0..200).map(|_| pool.take_chunk(true, 64).unwrap()).collect();
    chunks.iter().for_each(|chunk| pool.leave(head(chunk)));
    let is_left =
        |words: &&&[AtomicU64]| words[chunk::STATE].load(Ordering::Relaxed) == chunk::OWNED;
    assert_eq!(chunks.iter().filter(is_left).count(), 4 * SMALL_PER_BLOCK);
}

#[test]
fn many_threads_get_small_chunks_so_that_all_find_room() {
    let pool = pool(128);
    while pool.grow_to_reserve(u32::MAX).unwrap() {}
    let mut sizes = Vec::new();
    for _ in 0..500 {
        // Each fills its first chunk and comes for a second one.
        let first = pool.take_chunk(true, 64).unwrap();
        pool.hand_over(head(first));
        sizes.push(pool.take_chunk(false, 64).unwrap().len() * 8);
        pool.recycle(first);
    }
    assert_eq!(sizes.iter().filter(|size| **size == BLOCK).count(), 128 / 4);
}

#[test]
fn small_chunks_leave_half_of_the_blocks_whole() {
    let pool = pool(32);
    while pool.grow_to_reserve(u32::MAX).unwrap() {}
    let chunks: Vec<_> = std::iter::from_fn(|| pool.take_chunk(true, 64)).take(9999).collect();
    let large = chunks.iter().filter(|words| words.len() * 8 == BLOCK).count();
    assert_eq!((chunks.len() - large) / SMALL_PER_BLOCK, 16);
    assert_eq!(large, 31 - 16 - 2, "and a sixteenth is kept for all");
}

//! The memory of a recording: one reserved range of blocks, a mapped file or plain memory.
//!
//! The range is reserved once and never given back, so an address in it stays valid for the life of the process. Blocks
//! become usable one step at a time, and only after the file system has promised their pages: touching one can then
//! neither fail nor take a first fault. This is the one file with `mmap`.

use crate::files::OwnFile;
use memmap2::{MmapOptions, MmapRaw};
use stagetrace_wire::recording::layout::BLOCK;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A reserved range of blocks.
#[derive(Debug)]
pub(crate) struct Space {
    base: NonNull<AtomicU64>,
    blocks: usize,
    /// How many of them are usable.
    provided: AtomicUsize,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    /// The mapping lives as long as the space; the file grows with it.
    File {
        file: OwnFile,
        _map: MmapRaw,
    },
    Memory {
        _map: MmapRaw,
    },
}

// SAFETY: the range is only accessed through atomics, or as bytes by the one thread that owns a chunk in it.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves plain memory for `blocks` blocks; pages are taken by the operating system as they are touched.
    pub(crate) fn in_memory(blocks: usize) -> io::Result<Space> {
        // Mapped, since the allocator writes zeros into all of what is aligned so much.
        let map = MmapRaw::from(MmapOptions::new().len(blocks.max(1) * BLOCK).map_anon()?);
        let base = NonNull::new(map.as_mut_ptr().cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let provided = AtomicUsize::new(0);
        Ok(Space { base, blocks, provided, backing: Backing::Memory { _map: map } })
    }

    /// Maps `file`, which is empty and nobody else's, with room for `blocks` blocks.
    pub(crate) fn in_file(file: File, blocks: usize) -> io::Result<Space> {
        let len = blocks * BLOCK;
        file.set_len(len as u64)?;
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        let base = NonNull::new(map.as_mut_ptr().cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let file = OwnFile::new(file)?;
        let provided = AtomicUsize::new(0);
        Ok(Space { base, blocks, provided, backing: Backing::File { file, _map: map } })
    }

    /// Blocks in the range, usable or not.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Whether whoever looks for the recording finds it. Plain memory has nothing to find.
    pub(crate) fn has_name(&self) -> bool {
        match &self.backing {
            // With its descriptor closed there is no telling, and no reason to think that it is gone.
            Backing::File { file, .. } => file.get().map_or(true, |(_, look)| look.has_name),
            Backing::Memory { .. } => true,
        }
    }

    /// Makes the pages of `count` blocks from `first` on usable, in which nobody has anything yet: has the file system
    /// provide them, and touches them. In order; those that are usable stay as they are.
    pub(crate) fn provide(&self, first: usize, count: usize) -> io::Result<()> {
        if first + count <= self.provided.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Backing::File { file, .. } = &self.backing {
            match file.get() {
                Ok((file, _)) => {
                    leave_room(file, first, count)?;
                    allocate(file, first * BLOCK, count * BLOCK)?;
                }
                Err(closed) => self.populate(first, count).ok_or(closed)??,
            }
        }
        if !matches!(self.populate(first, count), Some(Ok(()))) {
            // An older system: page by page.
            for page in (first * BLOCK..(first + count) * BLOCK).step_by(4096) {
                // A store, since an operation that changes nothing is compiled into one that touches nothing.
                self.word(page / 8).store(0, Ordering::Relaxed);
            }
        }
        self.provided.store(first + count, Ordering::Relaxed);
        Ok(())
    }

    /// Has the pages made ready through the mapping, and provided if they were not, as when the program has closed the
    /// file. `None` where that cannot be asked for.
    fn populate(&self, first: usize, count: usize) -> Option<io::Result<()>> {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let (from, len) = (self.block(first).as_ptr().cast_mut().cast(), count * BLOCK);
            assert!(first + count <= self.blocks, "the blocks lie in the recording");
            // SAFETY: the range is a part of our mapping; its pages are made ready and keep what they hold.
            let populated = unsafe { libc::madvise(from, len, libc::MADV_POPULATE_WRITE) };
            Some(if populated == 0 { Ok(()) } else { Err(io::Error::last_os_error()) })
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        {
            let _ = (first, count);
            None
        }
    }

    /// Replaces a shared mapping by private memory, zeroed, at the same address, and closes the file, so that its lock
    /// is the parent's alone.
    ///
    /// # Safety
    /// This is the child of a fork, and its only thread.
    #[cfg(unix)]
    pub(crate) unsafe fn make_private(&self) {
        use std::os::fd::AsRawFd;
        if let Backing::File { file, .. } = &self.backing {
            // Without a promise of memory, so that a `fork` before an `exec` costs nothing.
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let flags = private | libc::MAP_FIXED;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let len = self.blocks * BLOCK;
            // A program that closed our descriptor may have given the number to another file.
            let ours = file.get().map(|(file, _)| file.as_raw_fd());
            // SAFETY: the range is our mapping; whoever points into it finds words there as before. Nobody uses the
            // file in the child: only the collector does, which is not there.
            unsafe {
                let mapped = libc::mmap(self.base.as_ptr().cast(), len, access, flags, -1, 0);
                if mapped == libc::MAP_FAILED {
                    libc::abort();
                }
                if let Ok(ours) = ours {
                    libc::close(ours);
                }
            }
        }
    }

    /// The word with this index.
    ///
    /// # Panics
    /// If it lies outside the range.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.blocks * (BLOCK / 8), "word {index} lies outside the recording");
        // SAFETY: the index is in the range, which is mapped for as long as `self` lives.
        unsafe { &*self.base.as_ptr().add(index) }
    }

    /// The words of one block.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub(crate) fn block(&self, block: usize) -> &[AtomicU64] {
        assert!(block < self.blocks, "block {block} lies outside the recording");
        // SAFETY: the block is in the range, which is mapped and zeroed, for as long as `self` lives.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(block * (BLOCK / 8)), BLOCK / 8)
        }
    }
}

/// Refuses a step of growth after which less than twice the recording would be left for others, who may not know how to
/// ask for what they map: a full file system ends them with a signal. The first step was decided when it was mapped.
fn leave_room(file: &File, first: usize, count: usize) -> io::Result<()> {
    #[cfg(unix)]
    if first > 0
        && let Ok(stat) = rustix::fs::fstatvfs(file)
    {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let (have, more) = ((first * BLOCK) as u64, (count * BLOCK) as u64);
        if have + more > free.saturating_add(have) / 3 {
            let what = format!("its file system has {free} bytes left, which are left to others");
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
    }
    let _ = (file, first, count);
    Ok(())
}

/// Has the file system provide the bytes, as zeros, so that a full disk is an error here and not a signal later.
fn allocate(file: &File, from: usize, len: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(file, flags, from as u64, len as u64) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            other => return other.map_err(io::Error::from),
        }
    }
    write_zeros(file, from as u64, len)
}

#[cfg(unix)]
fn write_zeros(file: &File, from: u64, len: usize) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, &vec![0; len], from)
}

#[cfg(windows)]
fn write_zeros(file: &File, mut from: u64, len: usize) -> io::Result<()> {
    let zeros = vec![0; len];
    let mut rest = &zeros[..];
    while !rest.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, rest, from)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        from += written as u64;
        rest = &rest[written..];
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// First touches of pages by this thread so far.
    fn faults() -> i64 {
        // SAFETY: all bits zero is a value of this struct of numbers, which the call fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
            usage
        };
        usage.ru_minflt + usage.ru_majflt
    }

    /// Pages that are touched for the first time when one word of each is written.
    fn first_touches(space: &Space, blocks: usize) -> i64 {
        let before = faults();
        for page in 0..blocks * BLOCK / 4096 {
            space.word(page * 512 + 7).store(1, Ordering::Relaxed);
        }
        faults() - before
    }

    fn in_shared_memory(blocks: usize) -> Space {
        let name = format!("/dev/shm/stagetrace-test-{}-{blocks}", std::process::id());
        let path = std::path::Path::new(&name);
        let file = crate::files::create(path).unwrap();
        std::fs::remove_file(path).unwrap();
        Space::in_file(file, blocks).unwrap()
    }

    #[test]
    fn what_is_provided_is_not_touched_for_the_first_time_later() {
        const PAGES: i64 = (16 * BLOCK / 4096) as i64;
        let (plain, mapped) = (Space::in_memory(32).unwrap(), in_shared_memory(32));
        for space in [&plain, &mapped] {
            space.provide(0, 16).unwrap();
            // The system may take a page or two away again.
            assert!(first_touches(space, 16) < PAGES / 16, "{space:?}");
        }
        // Plain memory may be one huge page.
        assert!(first_touches(&mapped, 32) > PAGES / 2, "the test sees what is not provided");
    }
}

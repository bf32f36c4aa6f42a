//! Something to do between spans: about 300 ns of arithmetic over 256 KiB, so that spans and work compete for caches as
//! they do in a program.

/// The work. A span around it costs more than in a tight loop.
pub(crate) struct Work {
    buffer: Vec<u64>,
    seed: u64,
}

impl Work {
    pub(crate) fn new() -> Work {
        Work { buffer: vec![1; 256 * 1024 / size_of::<u64>()], seed: 1 }
    }

    /// Does it once.
    #[inline(never)]
    pub(crate) fn run(&mut self) {
        let mut x = self.seed;
        for _ in 0..160 {
            x = x.wrapping_mul(25_214_903_917).wrapping_add(11) & 0xffff_ffff;
            let at = (x >> 7) as usize % self.buffer.len();
            self.buffer[at] = self.buffer[at].wrapping_add(x);
        }
        self.seed = x;
    }
}

//! A thread's own sequence of ids.

use super::Local;

/// Between two ids of a thread: twice an odd number, so that the odd ids come round only after all were used.
const STEP: u64 = 0x3C6E_F372;
/// What half of it is multiplied with to give 1.
const HALF_STEP_INVERSE: u64 = {
    // Newton's iteration doubles the bits that are right.
    let (half, mut inverse, mut turn) = (STEP / 2, STEP / 2, 0);
    while turn < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(half.wrapping_mul(inverse)));
        turn += 1;
    }
    inverse
};
const _: () = assert!((STEP / 2).wrapping_mul(HALF_STEP_INVERSE) == 1);

impl Local {
    /// A span id that no other span has, never 0.
    #[inline(always)]
    pub(crate) fn next_id(&self) -> u64 {
        // A Weyl sequence from a random start: it takes every odd value once before it repeats.
        let id = self.ids.get().wrapping_add(STEP);
        self.ids.set(id);
        id
    }

    /// Whether this thread made the id `later` after the id `earlier`, and not too long after.
    pub(crate) fn is_later(later: u64, earlier: u64) -> bool {
        let steps = (later.wrapping_sub(earlier) / 2).wrapping_mul(HALF_STEP_INVERSE) << 1 >> 1;
        (1..1 << 40).contains(&steps)
    }

    /// A trace id: two independent random words, not both 0.
    pub(crate) fn next_trace(&self) -> [u64; 2] {
        loop {
            let trace = [self.next_random(), self.next_random()];
            if trace != [0; 2] {
                return trace;
            }
        }
    }

    /// xoroshiro128++ by Blackman and Vigna.
    fn next_random(&self) -> u64 {
        let [a, mut b] = self.random.get();
        let random = a.wrapping_add(b).rotate_left(17).wrapping_add(a);
        b ^= a;
        self.random.set([a.rotate_left(49) ^ b ^ (b << 21), b.rotate_left(28)]);
        random
    }
}

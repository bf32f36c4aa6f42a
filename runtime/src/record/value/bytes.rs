//! Byte strings as words: a length, then the bytes, padded.

/// Words of a byte string: its length and its bytes.
#[inline(always)]
pub(super) fn byte_words(len: usize) -> usize {
    1 + len.div_ceil(8)
}

/// Writes a byte string: its length and its bytes, the last word padded with zeros.
///
/// # Safety
/// `out` points to `byte_words(bytes.len())` words of the caller's own.
#[inline(always)]
pub(super) unsafe fn put_bytes(bytes: &[u8], out: *mut u64) {
    // SAFETY: the bytes' words, of which the last, or without bytes the length's, is zeroed first for its padding; then the
    // length's word.
    unsafe {
        let len = bytes.len();
        out.add(len.div_ceil(8)).write(0);
        out.write(len as u64);
        copy(bytes.as_ptr(), out.add(1).cast(), len);
    }
}

/// Copies bytes; of short texts, which most are, by two moves that overlap, without a call.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both moves lie within the `len` bytes.
    unsafe {
        if (8..=16).contains(&len) {
            let (first, last) = (from.cast::<u64>(), from.add(len - 8).cast::<u64>());
            let (first, last) = (first.read_unaligned(), last.read_unaligned());
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
        } else {
            to.copy_from_nonoverlapping(from, len);
        }
    }
}

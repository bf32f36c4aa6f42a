//! What a sink keeps for each site: what is constant of its spans, encoded.

use crate::collect::SpanView;

/// Something for each site, by its number.
#[derive(Debug)]
pub(super) struct Sites<T>(Vec<Option<T>>);

impl<T> Sites<T> {
    /// Nothing yet.
    pub(super) fn new() -> Sites<T> {
        Sites(Vec::new())
    }

    /// That of the span's site; made at its first span.
    #[inline]
    pub(super) fn of(&mut self, span: &SpanView<'_>, make: impl FnOnce(&SpanView<'_>) -> T) -> &T {
        // Numbers begin at 1; the recorder's own site, whose number is the greatest, is here the first.
        let at = span.number.wrapping_add(1) as usize;
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at].get_or_insert_with(|| make(span))
    }
}

//! What a sink keeps for each site: what is constant of its spans, encoded.

/// Something for each site, by its number.
#[derive(Debug)]
pub(super) struct Sites<T>(Vec<Option<T>>);

impl<T> Sites<T> {
    /// Nothing yet.
    pub(super) fn new() -> Sites<T> {
        Sites(Vec::new())
    }

    /// That of the site with this number; made when it is first asked for, if it can be.
    #[inline]
    pub(super) fn of(&mut self, number: u32, make: impl FnOnce() -> Option<T>) -> Option<&mut T> {
        // Numbers begin at 1; the recorder's own site, whose number is the greatest, is here the first.
        let at = number.wrapping_add(1) as usize;
        if !matches!(self.0.get(at), Some(Some(_))) {
            self.add(at, make()?);
        }
        self.0.get_mut(at)?.as_mut()
    }

    #[cold]
    fn add(&mut self, at: usize, made: T) {
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(made);
    }
}

//! A request's id and attributes on their way into its root.

use super::inline::Inline;
use super::local::Local;
use super::side::{self, Owner};
use super::slab::SlabSpan;
use super::value::Value;
use super::write::SlotRef;
use crate::stage::Site;
use stagetrace_wire::recording::layout::slab;
use std::fmt;

/// Takes a request's id and attributes; generated code calls it in the order of the declaration.
pub struct RequestRecorder<'a> {
    local: &'a Local,
    site: &'static Site,
    slot: SlotRef,
    out: &'a mut dyn Place,
}

/// Where attributes go, whatever its size.
pub(crate) trait Place {
    fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value);
    fn count(&self) -> u8;
    /// An attribute whose key is not the site's next.
    fn add_beside(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value);
}

impl<const ROOM: usize> Place for Inline<ROOM> {
    fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        Inline::add(self, local, slot, key, value);
    }
    fn count(&self) -> u8 {
        Inline::count(self)
    }
    fn add_beside(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        side::attributes(local, Owner::of(slot), &[(key, value)]);
    }
}

/// The key of a request's id.
pub(crate) const REQUEST_ID: &str = "stagetrace.request.id";

impl<'a> RequestRecorder<'a> {
    /// For the root in this slot, of a request of this site.
    pub(crate) fn new(
        local: &'a Local,
        site: &'static Site,
        slot: SlotRef,
        out: &'a mut dyn Place,
    ) -> RequestRecorder<'a> {
        RequestRecorder { local, site, slot, out }
    }

    /// The request's id; first, and once.
    pub fn id(&mut self, id: &(impl fmt::Display + ?Sized)) {
        let mut text = ShortText::default();
        let _ = fmt::write(&mut text, format_args!("{id}"));
        self.out.add(self.local, self.slot, REQUEST_ID, &text.as_str());
    }

    /// The next attribute, as its `Display` gives it; 256 bytes are kept.
    pub fn display(&mut self, key: &'static str, value: &(impl fmt::Display + ?Sized)) {
        self.text(key, format_args!("{value}"));
    }

    /// The next attribute, as its `Debug` gives it; 256 bytes are kept.
    pub fn debug(&mut self, key: &'static str, value: &(impl fmt::Debug + ?Sized)) {
        self.text(key, format_args!("{value:?}"));
    }

    fn text(&mut self, key: &'static str, value: fmt::Arguments<'_>) {
        let mut text = ShortText::default();
        let _ = fmt::write(&mut text, value);
        self.attribute(key, text.as_str());
    }

    /// The next attribute.
    pub fn attribute<V: Value + ?Sized>(&mut self, key: &'static str, value: &V) {
        let value = &value;
        if self.out.count() == 0 {
            // A request without id: its place stays empty.
            self.out.add(self.local, self.slot, REQUEST_ID, &None::<&str>);
        }
        let place = usize::from(self.out.count()) - 1;
        if self.site.keys().get(place) == Some(&key) {
            self.out.add(self.local, self.slot, key, value);
        } else {
            self.out.add_beside(self.local, self.slot, key, value);
        }
    }
}

impl fmt::Debug for RequestRecorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestRecorder").finish_non_exhaustive()
    }
}

/// A short text without allocation: 256 bytes are kept.
struct ShortText {
    bytes: [u8; 256],
    len: usize,
}

impl Default for ShortText {
    fn default() -> Self {
        ShortText { bytes: [0; 256], len: 0 }
    }
}

impl ShortText {
    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = crate::request::cut(text, self.bytes.len() - self.len);
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// The attributes of a root that begins, as far as they fit into its slot.
pub(crate) struct Beginning(Inline<{ slab::WORDS - slab::ATTRIBUTES }>);

impl Beginning {
    /// None yet.
    pub(crate) fn new() -> Beginning {
        Beginning(Inline::new())
    }

    /// Puts what fits into the slot of the root, which is not published.
    pub(crate) fn store_in(&self, span: &SlabSpan) {
        span.store_inline(&self.0);
    }
}

impl Place for Beginning {
    fn add(&mut self, _: &Local, _: SlotRef, _: &str, value: &dyn Value) {
        self.0.fit(value);
    }
    fn count(&self) -> u8 {
        self.0.count()
    }
    fn add_beside(&mut self, _: &Local, _: SlotRef, _: &str, _: &dyn Value) {}
}

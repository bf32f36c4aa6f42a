//! A request's id and attributes on their way into its root.

use super::inline::{Inline, Room};
use super::local::Local;
use super::side::{self, Owner};
use super::value::{Decimal, Value, integer};
use super::write::SlotRef;
use crate::stage::Site;
use std::fmt;

/// The key of a request's id.
pub(crate) const REQUEST_ID: &str = "stagetrace.request.id";

/// Takes a request's id and attributes; generated code calls it in the order of the declaration.
pub struct RequestRecorder<'a> {
    local: &'a Local,
    site: &'static Site,
    slot: SlotRef,
    inline: Inline<'a>,
    /// Whether what has no room is recorded beside. Else it is cut, or left out.
    is_whole: bool,
}

impl<'a> RequestRecorder<'a> {
    /// For the root in this slot, of a request of this site, as it begins: `end` reads everything again, so what does not
    /// fit into `room` is cut.
    pub(crate) fn begin<const WORDS: usize>(
        local: &'a Local,
        site: &'static Site,
        slot: SlotRef,
        room: &'a mut Room<WORDS>,
    ) -> RequestRecorder<'a> {
        RequestRecorder { local, site, slot, inline: Inline::new(room), is_whole: false }
    }

    /// The same as it ends.
    pub(crate) fn end<const WORDS: usize>(
        local: &'a Local,
        site: &'static Site,
        slot: SlotRef,
        room: &'a mut Room<WORDS>,
    ) -> RequestRecorder<'a> {
        RequestRecorder { local, site, slot, inline: Inline::new(room), is_whole: true }
    }

    /// The words of what stands inline, and how many attributes they are.
    pub(crate) fn finish(self) -> (&'a [u64], u8) {
        self.inline.finish()
    }

    /// The request's id; first, and once. `known` is the same id, if the compiler knew how to read it.
    #[inline]
    pub fn id(&mut self, id: &(impl fmt::Display + ?Sized), known: KnownId<'_>) {
        match known {
            KnownId::Text(text) if text.len() <= ShortText::MOST => self.add(REQUEST_ID, text),
            KnownId::Text(text) => self.add(REQUEST_ID, crate::request::cut(text, ShortText::MOST)),
            KnownId::Integer(number) => match Decimal::of(number) {
                Some(decimal) => self.add(REQUEST_ID, &decimal),
                None => self.id_of(format_args!("{number}")),
            },
            KnownId::Unknown => self.id_of(format_args!("{id}")),
        }
    }

    #[inline(never)]
    fn id_of(&mut self, id: fmt::Arguments<'_>) {
        self.add(REQUEST_ID, ShortText::of(id).as_str());
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
        self.attribute(key, ShortText::of(value).as_str());
    }

    /// The next attribute.
    #[inline]
    pub fn attribute<V: Value + ?Sized>(&mut self, key: &'static str, value: &V) {
        if self.inline.count() == 0 {
            // A request without id: its place stays empty.
            self.inline.fit(&None::<&str>);
        }
        let next = self.site.keys().get(usize::from(self.inline.count()) - 1);
        if next.is_some_and(|next| std::ptr::eq(*next, key) || *next == key) {
            self.add(key, value);
        } else if self.is_whole {
            self.add_beside(key, &value);
        }
    }

    #[inline]
    fn add<V: Value + ?Sized>(&mut self, key: &str, value: &V) {
        if !self.inline.fit(value) && self.is_whole {
            self.add_beside(key, &value);
        }
    }

    #[cold]
    fn add_beside(&self, key: &str, value: &dyn Value) {
        side::attributes(self.local, Owner::of(self.slot), &[(key, value)]);
    }
}

impl fmt::Debug for RequestRecorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestRecorder").finish_non_exhaustive()
    }
}

/// A request's id, as its type shows it without formatting.
#[derive(Clone, Copy, Debug)]
pub enum KnownId<'a> {
    /// Itself.
    Text(&'a str),
    /// Shown in decimal.
    Integer(i64),
    /// Only its `Display` knows.
    Unknown,
}

/// Finds out about an id. Generated code calls [`known`](PlainId::known), which is the inherent method where the type is
/// one whose values can be recorded, and else that of [`OtherId`].
#[derive(Debug)]
pub struct PlainId<'a, T: ?Sized>(pub &'a T);

impl<'a, T: Value + ?Sized> PlainId<'a, T> {
    /// The id as text or number, if it is one.
    #[inline(always)]
    pub fn known(&self) -> KnownId<'a> {
        match (self.0.text(), integer(self.0)) {
            (Some(text), _) => KnownId::Text(text),
            (None, Some(number)) => KnownId::Integer(number),
            (None, None) => KnownId::Unknown,
        }
    }
}

/// What there is to know of an id of any other type.
pub trait OtherId {
    /// Nothing.
    #[inline(always)]
    fn known(&self) -> KnownId<'static> {
        KnownId::Unknown
    }
}

impl<T: ?Sized> OtherId for PlainId<'_, T> {}

/// A short text without allocation: 256 bytes are kept.
struct ShortText {
    bytes: [u8; ShortText::MOST],
    len: usize,
}

impl Default for ShortText {
    fn default() -> Self {
        ShortText { bytes: [0; ShortText::MOST], len: 0 }
    }
}

impl ShortText {
    const MOST: usize = 256;

    fn of(text: fmt::Arguments<'_>) -> ShortText {
        let mut short = ShortText::default();
        let _ = fmt::write(&mut short, text);
        short
    }

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

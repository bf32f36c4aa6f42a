//! Attributes of a stage that are known only after it has begun.

use super::local::{self, Local};
use super::side::{self, Owner};
use super::tuples::Attributes;
use super::value::Value;
use super::write::SlotRef;
use crate::stage::Site;

/// Attributes that come after the begin of a stage.
#[derive(Debug)]
pub struct Late<'a> {
    local: &'a Local,
    site: &'static Site,
    from: usize,
}

impl Late<'_> {
    /// Records them.
    pub fn set<A: Attributes>(self, attributes: A) {
        super::span::add_attributes(self.local, self.site, self.from, &attributes);
    }
}

/// Records attributes of the current span, if it is an execution of `site`, under the site's keys from place `from` on.
/// Generated code calls it first in a future, and for more attributes than stand inline.
#[inline]
pub fn record_current(site: &'static Site, from: usize, record: impl FnOnce(Late<'_>)) {
    local::with(|local| {
        if is_current(local, site) {
            record(Late { local, site, from });
        }
    });
}

/// Records what a stage returned, as its attribute `return`, if the current span is an execution of `site`.
pub fn record_return<V: Value + ?Sized>(site: &'static Site, value: &V) {
    local::with(|local| {
        if is_current(local, site)
            && let Some(owner) = Owner::current(local)
        {
            side::attributes(local, owner, &[("return", &value)]);
        }
    });
}

/// Whether the current span is recorded, and one of `site`.
fn is_current(local: &Local, site: &'static Site) -> bool {
    // SAFETY: the context only has the slot while whoever made it current keeps the span.
    let slot = unsafe { SlotRef::new(local.known_slot()) };
    !slot.is_none() && local.current_site() == site.number()
}

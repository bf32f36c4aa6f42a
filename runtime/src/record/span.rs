//! Spans by hand, for code without stages: begun anywhere, sent anywhere, entered when needed, ended on drop.

use super::entry::Entry;
use super::local::{self, Local};
use super::side::{self, Attribute, Owner};
use super::slab::SlabSpan;
use super::tuples::Attributes;
use super::value::Value;
use super::{Context, Position, recorder};
use crate::request::{Judged, Outcome};
use crate::stage::{Site, level};

/// A span that is not entered: `Send`, and it ends when it is dropped, on whatever thread.
///
/// Made by [`span!`](crate::span). Its children are made inside [`Span::in_scope`] or a future's
/// [`in_span`](crate::InSpan::in_span), or with [`Span::position`] as parent. It may outlive its parent.
#[derive(Debug)]
#[must_use = "the span ends when it is dropped"]
pub struct Span {
    span: Option<SlabSpan>,
    inside: Context,
}

impl Span {
    /// A span of this site under `parent`; under what is current if that is null, else in a trace of its own.
    #[doc(hidden)]
    pub fn begin(
        site: &'static Site,
        parent: Position,
        begin: impl FnOnce(BeginSpan<'_>) -> Span,
    ) -> Span {
        if level::in_use() < site.level() {
            return Span::none();
        }
        local::with(|local| {
            let before = local.context();
            let is_elsewhere = parent.trace != before.trace || parent.state.outranks(before.state);
            let under = match before.state.is_active() {
                _ if !parent.is_null() && is_elsewhere => Context::at(parent),
                _ if !parent.is_null() => Context { span: parent.span, ..before },
                true => before,
                false => {
                    let own = local.pool().and_then(|_| recorder::own_trace(local, site.level()));
                    match own {
                        None => return Span::none(),
                        Some(context) if context.state.level() == 0 => context,
                        Some(context) => Context { span: 0, ..context },
                    }
                }
            };
            if under.state.level() < site.level() {
                // Filtered or not sampled: transparent, what goes inside it goes under its parent.
                let inside = Context { slot: std::ptr::null(), ..under };
                return Span { span: None, inside };
            }
            begin(BeginSpan { local, site, under })
        })
    }

    /// A span that is not recorded and changes nothing.
    #[inline]
    pub const fn none() -> Span {
        Span { span: None, inside: Context::NONE }
    }

    /// Whether it is recorded.
    #[inline]
    pub const fn is_recorded(&self) -> bool {
        self.span.is_some()
    }

    /// Where it is: a parent for other spans. If it is filtered, the position of its parent.
    #[inline]
    pub fn position(&self) -> Position {
        self.inside.position()
    }

    pub(crate) fn inside(&self) -> Context {
        self.inside
    }

    /// Runs `f` with this span current.
    pub fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = self.enter();
        f()
    }

    /// Makes this span current until the guard is dropped. The guard is not `Send` and must not live across an
    /// `.await`; for futures there is [`in_span`](crate::InSpan::in_span).
    #[inline]
    pub fn enter(&self) -> Entered<'_> {
        if !self.inside.state.is_active() {
            return Entered { entry: Entry::NONE, _span: self };
        }
        local::with(|local| {
            let entry = Entry::new(local);
            local.arrive_at(self.inside.span);
            local.set_context(&self.inside);
            Entered { entry, _span: self }
        })
    }

    /// Adds an attribute, with any key; of several values of one key the last wins.
    #[inline]
    pub fn set_attribute(&self, key: &str, value: impl Value) {
        self.detail(|local, owner| side::attributes(local, owner, &[(key, &value)]));
    }

    /// Adds an event.
    #[inline]
    pub fn add_event(&self, name: &str, attributes: &[Attribute<'_>]) {
        self.detail(|local, owner| side::event(local, owner, name, attributes));
    }

    /// Adds a link to another span.
    #[inline]
    pub fn link(&self, to: Position) {
        if !to.is_null() {
            self.detail(|local, owner| side::link(local, owner, to, &[]));
        }
    }

    fn detail(&self, add: impl FnOnce(&Local, Owner) -> bool) {
        if let Some(span) = &self.span {
            local::with(|local| add(local, Owner::of(span.slot())));
        }
    }

    /// Ends it as it was judged: by an [`Outcome`], or a reference to a returned value.
    #[inline]
    pub fn end(mut self, outcome: impl Into<Judged>) {
        let judged = outcome.into();
        if let Some(span) = self.span.take() {
            local::with(|local| span.end(local, &judged));
        }
    }

    /// Throws it away: it is counted, and not exported. Its children stay.
    #[inline]
    pub fn discard(mut self) {
        if let Some(span) = self.span.take() {
            local::with(|local| span.discard(local));
        }
    }
}

/// A span that is about to begin; its attributes are evaluated before it does.
#[doc(hidden)]
#[derive(Debug)]
pub struct BeginSpan<'a> {
    local: &'a Local,
    site: &'static Site,
    under: Context,
}

impl BeginSpan<'_> {
    /// Begins it, with these attributes.
    pub fn with<A: Attributes>(self, attributes: A) -> Span {
        let BeginSpan { local, site, under } = self;
        let Some(span) = SlabSpan::begin(local, site, 0, &under) else { return Span::none() };
        span.set_attributes(local, site, &attributes);
        span.publish();
        let inside = Context {
            span: span.id(),
            state: under.state.of_local(),
            slot: span.slot().address(),
            // A span that is only named says nothing about where stages may lie.
            stage: if site.stage().set().is_empty() { under.stage } else { site.stage().address() },
            ..under
        };
        Span { span: Some(span), inside }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if cfg!(stagetrace_off) {
            return;
        }
        if let Some(span) = self.span.take() {
            let outcome = if std::thread::panicking() { Outcome::Panic } else { Outcome::Ok };
            local::with(|local| span.end(local, &Judged::from(outcome)));
        }
    }
}

/// A span that is current on this thread until the guard is dropped.
#[derive(Debug)]
#[must_use = "the span is current only as long as the guard lives"]
pub struct Entered<'a> {
    entry: Entry,
    _span: &'a Span,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.entry.leave();
    }
}

/// Where this thread is: the current span, null without one.
pub fn current() -> Position {
    local::with(Local::position)
}

/// Adds an attribute to the current span, with any key; of several values of one key the last wins. Without a recorded
/// span it is counted and dropped.
#[inline]
pub fn set_attribute(key: &str, value: impl Value) {
    of_current(|local, owner| side::attributes(local, owner, &[(key, &value)]));
}

/// Adds attributes to the current span.
#[inline]
pub fn set_attributes(attributes: &[Attribute<'_>]) {
    of_current(|local, owner| side::attributes(local, owner, attributes));
}

/// Adds an event to the current span. See [`event!`](crate::event).
#[inline]
pub fn add_event(name: &str, attributes: &[Attribute<'_>]) {
    of_current(|local, owner| side::event(local, owner, name, attributes));
}

/// Links the current span to another one.
#[inline]
pub fn link(to: Position) {
    if !to.is_null() {
        of_current(|local, owner| side::link(local, owner, to, &[]));
    }
}

fn of_current(add: impl FnOnce(&Local, Owner) -> bool) {
    if level::in_use() == 0 {
        return;
    }
    local::with(|local| match Owner::current(local) {
        Some(owner) => {
            add(local, owner);
        }
        None if local.state.get().is_active() && local.state.get().level() == 0 => {}
        None => recorder::count(&recorder::NO_SPAN),
    });
}

/// Adds attributes to the current span, under the site's keys from place `from` on.
pub(crate) fn add_attributes<A: Attributes>(
    local: &Local,
    site: &Site,
    from: usize,
    attributes: &A,
) {
    let Some(owner) = Owner::current(local) else { return };
    attributes.each(&mut |at, value| {
        if let Some(key) = site.keys().get(from + at) {
            side::attributes(local, owner, &[(key, value)]);
        }
    });
}

/// Records a span of which begin and end are known, in nanoseconds of the monotonic clock
/// ([`monotonic_ns`](crate::monotonic_ns)): what another clock measured, a GPU's for example. Whether it was recorded.
pub fn record_interval<A: Attributes>(
    site: &'static Site,
    parent: Position,
    begin: u64,
    end: u64,
    attributes: A,
) -> bool {
    let recorded = !parent.is_null() && parent.level() >= site.level();
    recorded
        && level::in_use() >= site.level()
        && super::write::write_interval(site, parent, begin, end.max(begin), &attributes)
}

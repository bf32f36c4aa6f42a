//! The field of a request that carries its trace.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::replace;
use std::ptr::NonNull;

use stagetrace_wire::context::TraceContext;

use super::remote::Remote;

/// The trace of a request, as a field of it. It moves and clones with the request, and serialising
/// the request hands the trace on to whoever reads it, in any serde format.
///
/// It is one of three things:
///
/// - *null*: no trace. What `default()` gives.
/// - *remote*: a place in a trace of another process, just read. It is kept as it came and
///   forwarded so, with or without a recorder.
/// - *live*: a handle to a request that this process has begun. Clones are handles to the same.
///
/// All values compare equal and hash alike, so that a request's own `PartialEq`, `Ord` and `Hash`
/// go on meaning its payload.
///
/// # Serialised form
///
/// `null`, or an object of the keys `traceparent`, `tracestate`, `baggage`, `level`, `stage`, each
/// only if there is something to say; binary formats hold that object as JSON text. Reading takes
/// either form everywhere and is never the reason why a request cannot be read: what cannot be
/// understood is null, and counted. Give the field `#[serde(default)]`, so that it may be missing
/// too, but no `skip_serializing_if`: formats that go by position cannot read that back.
///
/// Whatever a sender wrote, reading keeps at most 8 KiB each of `tracestate` and `baggage` and 64
/// unknown keys of 8 KiB in all.
pub struct TraceState(Repr);

/// What a [`TraceState`] is.
pub(crate) enum Repr {
    Null,
    Remote(Box<Remote>),
    Live(Live),
}

/// A counted handle to the block of a live root.
///
/// Opaque here: `record` knows the block, and implements whatever has to look into it (`Drop` and
/// `Clone` of the trace state, `Debug` of the handle). It has no `Drop` of its own, so that the
/// trace state can take it apart.
pub(crate) struct Live(pub(crate) NonNull<()>);

// SAFETY: the handle is an address and a share in a count. The block behind it is only reached
// through `record`, whose blocks are `Sync`, and stays allocated until the count is given back, on
// whatever thread.
unsafe impl Send for Live {}
// SAFETY: as above; a shared handle gives no more than the address.
unsafe impl Sync for Live {}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<TraceState>();
    assert!(size_of::<TraceState>() == 16 || size_of::<usize>() != 8);
};

impl TraceState {
    /// No trace.
    pub const fn null() -> Self {
        Self(Repr::Null)
    }

    /// What came with a request as headers: `traceparent`, `tracestate`, `baggage`, in any case and
    /// order.
    ///
    /// Null if none of them is there, or if there is a `traceparent` that cannot be read, which is
    /// counted. Of a `tracestate` or `baggage` the part that cannot be read is left out.
    ///
    /// ```
    /// use stagetrace::TraceState;
    ///
    /// let headers = [("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    /// assert!(!TraceState::from_headers(headers).is_null());
    /// assert!(TraceState::from_headers([("traceparent", "42")]).is_null());
    /// ```
    pub fn from_headers<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        Remote::from_headers(headers).into()
    }

    /// Whether there is no trace.
    pub const fn is_null(&self) -> bool {
        matches!(self.0, Repr::Null)
    }

    /// Has the request's trace be exported, whatever the [`Sampler`](crate::Sampler) and
    /// [tail sampling](crate::TailSampling) of this process and of all others say that serve it. Whether it will be: a
    /// request that has begun has been decided, so this comes before `begin`.
    ///
    /// A sender can ask for the same with the member `stagetrace=f:1` of its `tracestate`, which
    /// [`trust_callers`](crate::TraceConfig::trust_callers) may forbid. Level 0 records nothing all the same.
    ///
    /// ```
    /// use stagetrace::{Outcome, TraceState, Traced};
    ///
    /// #[derive(Traced)]
    /// struct Request {
    ///     #[traced(state)]
    ///     trace: TraceState,
    /// }
    ///
    /// let mut request = Request { trace: TraceState::null() };
    /// request.trace.force();
    /// request.begin(None);
    /// request.finish(Outcome::Ok);
    /// ```
    pub fn force(&mut self) -> bool {
        match &mut self.0 {
            Repr::Null => *self = Some(Remote::forced()).into(),
            Repr::Remote(remote) => remote.force(),
            Repr::Live(_) => return false,
        }
        true
    }

    /// A place in a trace of another process.
    pub(crate) fn from_context(context: TraceContext, level: Option<i64>) -> Self {
        Some(Remote::from_context(context, level)).into()
    }

    /// The carrier, if it is one.
    pub(crate) fn into_remote(mut self) -> Option<Box<Remote>> {
        match replace(&mut self.0, Repr::Null) {
            Repr::Remote(remote) => Some(remote),
            other => {
                self.0 = other;
                None
            }
        }
    }

    pub(crate) const fn from_repr(repr: Repr) -> Self {
        Self(repr)
    }

    pub(crate) const fn repr(&self) -> &Repr {
        &self.0
    }

    pub(crate) const fn repr_mut(&mut self) -> &mut Repr {
        &mut self.0
    }
}

impl From<Option<Remote>> for TraceState {
    fn from(remote: Option<Remote>) -> Self {
        Self(remote.map_or(Repr::Null, |remote| Repr::Remote(Box::new(remote))))
    }
}

impl Default for TraceState {
    fn default() -> Self {
        Self::null()
    }
}

impl fmt::Debug for TraceState {
    /// Says which of the three it is, and the trace id. Baggage and unknown keys may be private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Null => f.write_str("TraceState(null)"),
            Repr::Remote(remote) => match remote.context() {
                Some(context) => write!(f, "TraceState(remote {})", context.trace_id),
                None => f.write_str("TraceState(remote)"),
            },
            Repr::Live(live) => write!(f, "TraceState({live:?})"),
        }
    }
}

impl PartialEq for TraceState {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TraceState {}

impl PartialOrd for TraceState {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TraceState {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for TraceState {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

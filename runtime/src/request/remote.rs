//! A carrier: the place in another process's trace that came with a request, kept as it came.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stagetrace_wire::context::{
    BAGGAGE, TRACEPARENT, TRACESTATE, TraceContext, TraceStateList, Wishes, extract,
};

use super::json::Json;

/// Carriers of which something could not be read, since the process began.
pub(crate) static UNREADABLE: AtomicU64 = AtomicU64::new(0);

/// Whether what a sender wishes counts: its level, and that its trace be exported.
static TRUSTS: AtomicBool = AtomicBool::new(true);

/// Says whether what senders wish counts from now on.
pub(crate) fn trust_callers(trust: bool) {
    TRUSTS.store(trust, Ordering::Relaxed);
}

/// Longest `traceparent` of a future version, in bytes.
pub(crate) const MAX_TRACEPARENT: usize = 256;
/// Longest `tracestate`, and longest `baggage`, in bytes.
pub(crate) const MAX_LIST: usize = 8192;
/// Longest `tracestate` that a span is exported with, in bytes: what W3C asks everybody to keep.
const MAX_EXPORTED_LIST: usize = 512;
/// A `tracestate` in which nothing is said but that the trace is exported.
pub(crate) const FORCED: &str = "stagetrace=f:1";
/// Longest name of a stage, in bytes.
pub(crate) const MAX_STAGE: usize = 256;
/// Most unknown keys.
pub(crate) const MAX_EXTRA_KEYS: usize = 64;
/// Longest unknown keys and their values, in bytes, all together.
pub(crate) const MAX_EXTRA: usize = 8192;

/// Highest level that means something here. A greater one acts as this and is forwarded as it came.
const MAX_LEVEL: u8 = 3;

/// A carrier that was read. Something in it is not empty.
#[derive(Clone)]
pub(crate) struct Remote {
    context: Option<TraceContext>,
    traceparent: Box<str>,
    tracestate: Box<str>,
    baggage: Box<str>,
    level: Option<i64>,
    /// What the tracestate says in our name.
    wishes: Wishes,
    stage: Box<str>,
    extra: Vec<(Box<str>, Json)>,
}

/// A carrier to be written: as it came, or about a place in a trace of this process.
#[derive(Clone, Copy)]
pub(crate) struct RemoteRef<'a> {
    pub(crate) traceparent: Traceparent<'a>,
    /// Header text, empty if absent.
    pub(crate) tracestate: &'a str,
    /// Header text, empty if absent.
    pub(crate) baggage: &'a str,
    /// As it came, if it came.
    pub(crate) level: Option<i64>,
    /// Name of the last first-level stage, empty if absent.
    pub(crate) stage: &'a str,
    /// Keys that mean nothing here, in order.
    pub(crate) extra: &'a [(Box<str>, Json)],
}

/// The place in the trace.
#[derive(Clone, Copy)]
pub(crate) enum Traceparent<'a> {
    /// Header text, empty if absent.
    Verbatim(&'a str),
    /// Of this process.
    Of(TraceContext),
}

/// What a carrier says, before it is checked. Texts may be empty.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) traceparent: Box<str>,
    pub(crate) tracestate: Box<str>,
    pub(crate) baggage: Box<str>,
    pub(crate) level: Option<i64>,
    pub(crate) stage: Box<str>,
    pub(crate) extra: Vec<(Box<str>, Json)>,
    /// A part was left out: wrong type, too long, too many.
    pub(crate) incomplete: bool,
    /// The whole makes no sense.
    pub(crate) unreadable: bool,
}

impl Remote {
    /// `None` if there is nothing to keep.
    pub(crate) fn from_headers<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Option<Self>
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let found = extract(headers);
        Draft {
            traceparent: found
                .context
                .map(|context| context.to_string().into())
                .unwrap_or_default(),
            tracestate: found.trace_state.as_str().into(),
            baggage: found.baggage.as_str().into(),
            unreadable: found.traceparent_error.is_some(),
            incomplete: found.tracestate_error.is_some() || found.baggage_refused > 0,
            ..Draft::default()
        }
        .check()
    }

    /// A carrier of which only this is known.
    pub(crate) fn from_context(context: TraceContext, level: Option<i64>) -> Self {
        Self {
            context: Some(context),
            traceparent: context.to_string().into(),
            tracestate: Box::default(),
            baggage: Box::default(),
            level,
            wishes: Wishes::default(),
            stage: Box::default(),
            extra: Vec::new(),
        }
    }

    /// A carrier without a place: of a request that is to begin a trace that is exported whatever samplers say.
    pub(crate) fn forced() -> Self {
        let wishes = Wishes { level: None, force: true };
        Self {
            context: None,
            traceparent: Box::default(),
            tracestate: FORCED.into(),
            baggage: Box::default(),
            level: None,
            wishes,
            stage: Box::default(),
            extra: Vec::new(),
        }
    }

    /// Has the trace be exported, whatever samplers say here and wherever this is sent.
    pub(crate) fn force(&mut self) {
        if !self.wishes.force {
            self.wishes.force = true;
            let mut list = TraceStateList::parse(&*self.tracestate).unwrap_or_default();
            self.wishes.write(&mut list);
            self.tracestate = list.as_str().into();
        }
    }

    /// Whether the trace is exported, whatever samplers say.
    pub(crate) fn is_forced(&self) -> bool {
        self.wishes.force
    }

    /// The sender's span, the parent of what begins here. `None` if the carrier names none.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// The level that the request brings, 0 to 3. Its own key beats the tracestate.
    pub(crate) fn level(&self) -> Option<u8> {
        let clamped = |level: i64| level.clamp(0, MAX_LEVEL.into()) as u8;
        self.level.map(clamped).or(self.wishes.level)
    }

    /// Says that the request goes on in this trace: what belongs to another one is left out. Baggage stays, and so does
    /// what is wished.
    pub(crate) fn move_to(&mut self, trace: [u64; 2]) {
        let trace = u128::from(trace[0]) << 64 | u128::from(trace[1]);
        if self.context.is_none_or(|context| context.trace_id.to_u128() != trace) {
            let mut list = TraceStateList::default();
            self.wishes.write(&mut list);
            self.tracestate = list.as_str().into();
            self.stage = Box::default();
        }
    }

    /// The `tracestate` as spans are exported with it: as it came, but for the members that make it too long. Empty if
    /// none came.
    pub(crate) fn trace_state(&self) -> Cow<'_, str> {
        if self.tracestate.len() <= MAX_EXPORTED_LIST {
            return Cow::Borrowed(&self.tracestate);
        }
        let mut list = TraceStateList::parse(&*self.tracestate).unwrap_or_default();
        list.truncate(MAX_EXPORTED_LIST);
        Cow::Owned(list.as_str().to_owned())
    }

    /// The carrier as it came. To name another place: `RemoteRef { traceparent, stage,
    /// ..remote.carrier() }`.
    pub(crate) fn carrier(&self) -> RemoteRef<'_> {
        RemoteRef {
            traceparent: Traceparent::Verbatim(&self.traceparent),
            tracestate: &self.tracestate,
            baggage: &self.baggage,
            level: self.level,
            stage: &self.stage,
            extra: &self.extra,
        }
    }
}

impl RemoteRef<'_> {
    /// A carrier that says only where in the trace we are.
    pub(crate) const fn of(context: TraceContext) -> Self {
        Self {
            traceparent: Traceparent::Of(context),
            tracestate: "",
            baggage: "",
            level: None,
            stage: "",
            extra: &[],
        }
    }
}

impl Draft {
    pub(crate) fn unreadable() -> Self {
        Self { unreadable: true, ..Self::default() }
    }

    /// The carrier, without what would not do as a header. `None` if nothing is left or the
    /// `traceparent` is wrong. Counts whatever was left out, once.
    pub(crate) fn check(self) -> Option<Remote> {
        let (remote, is_whole) = self.examine();
        if !is_whole {
            UNREADABLE.fetch_add(1, Ordering::Relaxed);
        }
        remote
    }

    /// The same without counting: says whether nothing was left out.
    pub(super) fn examine(mut self) -> (Option<Remote>, bool) {
        let (context, wishes) = self.check_headers();
        let is_whole = !self.unreadable && !self.incomplete;
        if self.unreadable || self.is_empty() {
            return (None, is_whole);
        }
        let remote = Remote {
            context,
            traceparent: self.traceparent,
            tracestate: self.tracestate,
            baggage: self.baggage,
            level: self.level,
            wishes,
            stage: self.stage,
            extra: self.extra,
        };
        (Some(remote), is_whole)
    }

    fn check_headers(&mut self) -> (Option<TraceContext>, Wishes) {
        let headers: [(_, &str); 3] = [
            (TRACEPARENT, &self.traceparent),
            (TRACESTATE, &self.tracestate),
            (BAGGAGE, &self.baggage),
        ];
        let mut found = extract(headers.into_iter().filter(|(_, text)| !text.is_empty()));
        // What follows the fields of a future version must still be fit for a header.
        let is_header = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        self.unreadable |= found.traceparent_error.is_some() || !is_header(&self.traceparent);
        self.incomplete |= found.tracestate_error.is_some() || found.baggage_refused > 0;
        if found.trace_state.is_empty() {
            self.tracestate = Box::default();
        }
        if found.baggage.is_empty() || found.baggage_refused > 0 {
            self.baggage = found.baggage.as_str().into();
        }
        let mut wishes = Wishes::of(&found.trace_state);
        if !TRUSTS.load(Ordering::Relaxed) {
            // Nobody behind this process shall take them for ours.
            self.level = None;
            if wishes != Wishes::default() {
                wishes = Wishes::default();
                wishes.write(&mut found.trace_state);
                self.tracestate = found.trace_state.as_str().into();
            }
        }
        (found.context, wishes)
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.traceparent, &self.tracestate, &self.baggage, &self.stage];
        texts.iter().all(|text| text.is_empty()) && self.level.is_none() && self.extra.is_empty()
    }
}

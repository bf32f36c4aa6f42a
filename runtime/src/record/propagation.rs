//! Headers: where this thread is, for the next process, and back.

use super::Position;
use super::local::{self, Local};
use crate::request::TraceState;
use crate::stage::level;
use stagetrace_wire::context::{Baggage, TraceStateList, Wishes, inject as write};

/// Hands the headers of the current span to `set`, as (name, value): `inject(|name, value| request.insert(name, value))`.
///
/// Nothing without a current span. A request that carries its own [`TraceState`] need not be injected: serialising it
/// is enough.
pub fn inject(set: impl FnMut(&'static str, &str)) {
    local::with(Local::position).inject(set);
}

/// Reads headers (`traceparent`, `tracestate`, `baggage`, in any case) into the position they name; null if there is none
/// that can be read.
///
/// ```
/// let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
/// let parent = stagetrace::extract(headers);
/// let _attached = stagetrace::attach(parent);
/// ```
pub fn extract<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Position
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    super::Carrier::position(&TraceState::from_headers(headers))
}

impl Position {
    /// Hands the headers of this position to `set`, as (name, value); none if it is null.
    pub fn inject(&self, set: impl FnMut(&'static str, &str)) {
        if let Some(context) = self.context() {
            let mut list = TraceStateList::default();
            self.wishes().write(&mut list);
            write(context, &list, &Baggage::default(), set);
        }
    }

    /// What those who receive it would not know: that the trace is forced, and a level that is not this process's.
    fn wishes(&self) -> Wishes {
        let usual = local::with(Local::base_level).unwrap_or_else(level::of_process);
        let is_usual = self.level() == usual || !self.state.is_sampled();
        Wishes { level: (!is_usual).then(|| self.level()), force: self.state.is_forced() }
    }
}

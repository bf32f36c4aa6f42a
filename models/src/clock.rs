//! A clock that stands: no model depends on time.

/// Where ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// As if from the processor's counter, so that writers reserve the fast way.
    Counter,
}

impl Clock {
    /// Its code in a recording's header.
    pub(crate) fn code(self) -> u64 {
        0
    }
}

//! DECLARE: what belongs to a request: the field that carries its trace, and how its stages ended.
//!
//! What a request does with the recorder (`begin`, `finish`, and the clone, drop and serialisation
//! of a live trace state) stands in `record/root.rs`: this module imports nothing to its right.

mod codec;
mod error_type;
mod json;
mod judge;
mod outcome;
mod remote;
mod state;

pub use judge::{ErrorText, Judge};
pub use outcome::{Failure, Judged, Outcome, StageOutcome, judged};
pub use state::TraceState;

pub(crate) use codec::{serialize_null, serialize_remote};
pub(crate) use outcome::cut;
pub(crate) use remote::{FORCED, Remote, RemoteRef, Traceparent, UNREADABLE, trust_callers};
pub(crate) use state::{Live, Repr};

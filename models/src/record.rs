//! What the recorder's side keeps beside the boundary.

#[path = "../../runtime/src/record/rights.rs"]
#[allow(dead_code, reason = "the models use a part of it")]
pub(crate) mod rights;

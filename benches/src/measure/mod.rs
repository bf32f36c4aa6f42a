//! What can be counted and timed, whoever is measured.

mod allocations;
mod clock;
mod work;

pub(crate) use allocations::{Allocations, count};
pub(crate) use clock::{TickRate, floor, peak_memory, process_cpu, ticks};
pub(crate) use work::Work;

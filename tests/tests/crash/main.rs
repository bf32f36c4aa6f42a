//! Busy processes are killed, at random instants and at chosen ones, and what they had acknowledged
//! as ended is compared with what they left: nothing is lost, torn or doubled.
//!
//! The program `victim` is killed; `stagetrace_tests::rounds` says what it records, and
//! `stagetrace_tests::ledger` how it acknowledges it. `STAGETRACE_KILLS=1000` kills as often at
//! random instants, instead of 200 times; `STAGETRACE_KILLS_SEED` repeats a choice of instants.

mod dead;
mod ends;
mod exporters;
mod places;
mod random;
mod recovery;
mod traced;
mod victim;

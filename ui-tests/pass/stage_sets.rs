//! What `Stages` generates.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::redundant_pub_crate, unused_qualifications)]
#![forbid(unsafe_code)]

use stagetrace::{Stage, StageSet, Stages, stage};

/// The stages of a server.
///
/// ```text
/// not part of the constants' documentation
/// ```
#[derive(Stages, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The scheduler works.
    ///
    /// # Details
    ///
    /// Not part of the constant's documentation.
    #[stage(level = 1)]
    SchedulerDispatch,
    /// In upper case, so that it has no constant.
    VAE,
    /// Acronyms.
    KVCache,
    /// All options.
    #[stage(level = 3, within = SchedulerDispatch, name = "vae.step2")]
    #[allow(clippy::doc_markdown)]
    Step = 7,
    /// Deprecated.
    #[deprecated = "use another"]
    Old,
    /// Inside of one that is declared later.
    #[stage(within = Later)]
    Early,
    /// Later.
    Later,
}

#[deny(unreachable_pub)]
mod private {
    /// Private sets are used in part.
    #[derive(stagetrace::Stages)]
    pub(super) enum Hidden {
        One,
        #[allow(dead_code)]
        Two,
    }

    #[derive(stagetrace::Stages)]
    enum Unused {
        One,
    }
}

/// A constant is a stage too.
pub const FORWARD: Stage = Server::KV_CACHE;

#[stage(FORWARD)]
fn by_constant() {}

#[stage(Server::SCHEDULER_DISPATCH)]
fn by_generated_constant() {}

#[stage(Server::VAE)]
fn by_variant() {}

#[stage(nested_path::Server::Step)]
fn by_path() {}

/// Where paths lead.
pub mod nested_path {
    pub use super::Server;
}

const fn in_constants() -> Stage {
    Server::VAE.stage()
}

#[test]
fn a_set_knows_its_stages() {
    assert_eq!(Server::SCHEDULER_DISPATCH.name(), "scheduler_dispatch");
    assert_eq!(Server::SCHEDULER_DISPATCH.level(), 1);
    assert_eq!(in_constants().name(), "vae");
    assert_eq!(in_constants().level(), 2);
    assert_eq!(Server::KV_CACHE.name(), "kv_cache");
    assert_eq!(Server::STEP.name(), "vae.step2");
    assert_eq!(Server::STEP.within().map(Stage::name), Some("scheduler_dispatch"));
    assert_eq!(Server::EARLY.within().map(Stage::name), Some("later"));
    assert_eq!(Server::ALL.len(), 7);
    assert_eq!(Server::ALL[0], Server::SchedulerDispatch);
    assert_eq!(Server::from_name("vae.step2"), Some(Server::Step));
    assert_eq!(Server::from_name("step"), None);
    assert_eq!(<Server as StageSet>::NAME, "Server");
    assert_eq!(<Server as StageSet>::STAGES.len(), 7);
    assert_eq!(private::Hidden::ONE.name(), "one");
    by_constant();
    by_generated_constant();
    by_variant();
    by_path();
}

//! The contract's layout with smaller blocks, and its walk: a reader in another process.

#![allow(dead_code, reason = "the models use a part of the product's code")]

#[path = "../../wire/src/recording/read/damage.rs"]
mod damage;
pub(crate) mod layout;
#[path = "../../wire/src/recording/read/view.rs"]
mod view;
#[path = "../../wire/src/recording/read/walk.rs"]
mod walk;

use crate::sync::AtomicU64;
use damage::Damage;
use view::View;

/// What a reader found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) spans: Vec<Vec<u64>>,
    pub(crate) damage: Damage,
}

impl Found {
    /// Whether all that was found made sense. That something changed meanwhile does.
    pub(crate) fn is_sound(&self) -> bool {
        Damage { busy: 0, ..self.damage }.is_none()
    }
}

/// Reads the slots of all slabs.
pub(crate) fn slabs(words: &[AtomicU64]) -> Found {
    let Found { mut spans, mut damage } = Found::default();
    walk::slabs(View::of(words), &mut damage, |span| spans.push(span.to_vec()));
    Found { spans, damage }
}

/// Reads the records of all chunks.
pub(crate) fn chunks(words: &[AtomicU64]) -> Found {
    let Found { mut spans, mut damage } = Found::default();
    walk::chunks(View::of(words), &mut damage, |_, record| spans.push(record.to_vec()));
    Found { spans, damage }
}

/// How many blocks and small chunks it finds a head of.
pub(crate) fn heads(words: &[AtomicU64]) -> usize {
    walk::heads(View::of(words), &mut Damage::default()).count()
}

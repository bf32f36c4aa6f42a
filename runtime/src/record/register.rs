//! Numbers for sites: given at a site's first span, the same for every recorder of the process.

use crate::chunk::{DropCause, Pool};
use crate::stage::{STAGE_SETS, Site, Stage};
use serde_json::json;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// All numbered sites. Number `n` is at `n - 1`.
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { sites: Vec::new(), table: None });

/// The first of them, to be looked up without the lock. Number `n` is at `n - 1`.
static FIRST: [AtomicPtr<Site>; 1024] = [const { AtomicPtr::new(ptr::null_mut()) }; 1024];

#[derive(Debug)]
struct Registry {
    sites: Vec<&'static Site>,
    /// The recording that shows the numbers to other processes.
    table: Option<&'static Pool>,
}

/// The site's number, which it gets now if it has none. From then on the recording's stage table explains it.
#[cold]
#[inline(never)]
pub(crate) fn register(site: &'static Site) -> u32 {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if site.number() == 0 {
        registry.sites.push(site);
        let number = registry.sites.len() as u32;
        registry.show(number, site);
        if let Some(place) = FIRST.get(number as usize - 1) {
            place.store(ptr::from_ref(site).cast_mut(), Ordering::Release);
        }
        site.set_number(number);
    }
    site.number()
}

/// Has nobody else number a site until the value is dropped.
#[cfg(unix)]
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(REGISTRY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The sites numbered from `known + 1` on.
pub(crate) fn sites_after(known: usize) -> Vec<&'static Site> {
    let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry.sites.get(known..).unwrap_or_default().to_vec()
}

/// Writes the declared stages and every numbered site into the recording's table, and all later ones.
pub(crate) fn show_in(pool: &'static Pool) {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry.table = Some(pool);
    for stage in STAGE_SETS.iter().copied().flatten() {
        add(pool, &json!({ "stage": facts(*stage) }));
    }
    for (at, site) in registry.sites.iter().enumerate() {
        registry.show(at as u32 + 1, site);
    }
}

impl Registry {
    fn show(&self, number: u32, site: &Site) {
        if let Some(pool) = self.table {
            let entry = json!({
                "site": number,
                "stage": facts(site.stage()),
                "kind": site.kind() as u8,
                "keys": site.keys(),
                "function": site.function(),
                "file": site.file(),
                "line": site.line(),
            });
            add(pool, &entry);
        }
    }
}

fn facts(stage: Stage) -> serde_json::Value {
    json!({
        "set": stage.set(),
        "name": stage.name(),
        "level": stage.level(),
        "within": stage.within().map(Stage::name),
    })
}

fn add(pool: &Pool, entry: &serde_json::Value) {
    if !pool.add_to_table(entry.to_string().as_bytes()) {
        pool.count_dropped(DropCause::TableFull);
    }
}

/// The site with this number, `None` for 0. Takes the lock only in programs of more than a thousand sites.
pub(crate) fn site(number: u32) -> Option<&'static Site> {
    let at = (number as usize).checked_sub(1)?;
    if let Some(place) = FIRST.get(at) {
        // SAFETY: null or the address of a static, stored from a reference.
        return unsafe { place.load(Ordering::Acquire).as_ref() };
    }
    let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry.sites.get(at).copied()
}

//! What a device reports on its own: mistakes in what it was told to do, and its loss.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::EngineError;
use crate::gpu::one_line;

/// What the device reported on its own, for the next who asks. Without this wgpu panics.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Reports>>);

#[derive(Default)]
struct Reports {
    refused: Option<String>,
    /// Is never taken: nothing works any more.
    lost: Option<String>,
}

impl Faults {
    pub fn of(device: &wgpu::Device) -> Self {
        let faults = Faults::default();
        let reports = Arc::clone(&faults.0);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&reports).refused.get_or_insert_with(|| one_line(&error));
        }));
        let reports = Arc::clone(&faults.0);
        device.set_device_lost_callback(move |reason, text| {
            lock(&reports).lost.get_or_insert_with(|| format!("{reason:?} {text}"));
        });
        faults
    }

    /// The first fault since the last call, if any.
    pub fn check(&self) -> Result<(), EngineError> {
        let Reports { refused, lost } = &mut *lock(&self.0);
        match (lost, refused.take()) {
            (Some(lost), _) => Err(EngineError::Lost(lost.clone())),
            (None, Some(refused)) => Err(EngineError::Refused(refused)),
            (None, None) => Ok(()),
        }
    }

    /// Gives the device up.
    pub fn lose(&self, why: String) -> EngineError {
        lock(&self.0).lost.get_or_insert_with(|| why.clone());
        EngineError::Lost(why)
    }
}

fn lock(reports: &Mutex<Reports>) -> MutexGuard<'_, Reports> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Other libraries' worlds, one feature each.

#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "otel")]
pub mod otel;
#[cfg(feature = "wgpu")]
pub mod wgpu;

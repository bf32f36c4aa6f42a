//! The name of this host.

/// The host's name, where the system tells it.
#[cfg(unix)]
pub(super) fn name() -> Option<String> {
    let system = rustix::system::uname();
    system.nodename().to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The host's name, where the system tells it.
#[cfg(not(unix))]
pub(super) fn name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}

//! Files of our own.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes a file of our own: nobody else's, and for nobody else to read.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    options.open(path)
}

//! Files of our own: nobody else's, and for nobody else to read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a file that is not there yet.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    create_with(path, OpenOptions::new().write(true))
}

fn create_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).create_new(true);
    for_us_alone(options);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Whatever the program's umask took away. A file system without modes has none to set.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Opens a file to change it where it is.
#[cfg(feature = "_network")]
pub(crate) fn open_to_change(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    for_us_alone(&mut options);
    options.open(path)
}

/// Every write goes to the end, wherever somebody else has put that. Elsewhere a file so opened could not be cut.
fn to_append() -> OpenOptions {
    let mut options = OpenOptions::new();
    if cfg!(unix) {
        options.append(true)
    } else {
        options.write(true)
    };
    options
}

/// Of a file that is made or opened: no link is followed, no child process inherits it.
fn for_us_alone(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Makes a directory and those above it, none of them for all to write, whatever the program's umask is.
pub(crate) fn make_dirs(dir: &Path) -> io::Result<()> {
    match make_dir(dir, 0o775) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_dirs(dir.parent().ok_or(error)?)?;
            make_dir(dir, 0o775)
        }
        Err(_) if dir.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes a directory with these rights, less what the umask takes from others.
pub(crate) fn make_dir(dir: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        DirBuilder::new().mode(mode).create(dir)?;
        let mut rights = std::fs::symlink_metadata(dir)?.permissions();
        if rights.mode() & 0o700 != 0o700 {
            rights.set_mode(rights.mode() | 0o700);
            std::fs::set_permissions(dir, rights)?;
        }
        Ok(())
    }
    #[cfg(not(unix))]
    {
        let _ = mode;
        DirBuilder::new().create(dir)
    }
}

/// Whether a file belongs to this user.
pub(crate) fn is_ours(file: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::uid(file) == rustix::process::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    {
        file.is_file()
    }
}

/// How many bytes of a file system are free for this user.
#[cfg(unix)]
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// How many bytes of a file system are free for this user.
#[cfg(not(unix))]
pub(crate) fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The greatest length that this process may give a file. To go beyond would raise a signal that ends it.
pub(crate) fn longest() -> u64 {
    #[cfg(unix)]
    {
        rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX)
    }
    #[cfg(not(unix))]
    {
        u64::MAX
    }
}

/// Gives the calling thread descriptors of its own, but for standard error: none of them can be closed by the program, nor
/// can the thread close one of the program's. Where the system has no such thing, nothing changes.
pub(crate) fn separate_descriptors() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: with this flag the descriptors are copied first, for this thread alone, and only if that was done are
        // those copies closed.
        unsafe {
            let close = |first: u32, last: u32| {
                libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE)
            };
            if close(0, 1) == 0 {
                close(3, u32::MAX);
            }
        }
    }
}

/// A file that stays open for the life of the process, which knows whether its descriptor is still its own.
///
/// Programs close descriptors that they have not opened, as daemons do at their start. The number then goes to the next
/// file that is opened, a stranger's, which must be neither written to, nor grown, nor closed.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: Option<File>,
    identity: Identity,
}

/// What one descriptor's file is, as the system tells files apart.
type Identity = (u64, u64);

/// How a file is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether it has a name: whether anybody can find it.
    pub(crate) has_name: bool,
    /// Its length.
    pub(crate) len: u64,
}

impl OwnFile {
    /// Keeps a file that was just made.
    pub(crate) fn new(file: File) -> io::Result<OwnFile> {
        let (identity, _) = look(&file)?;
        Ok(OwnFile { file: Some(file), identity })
    }

    /// Makes a file that is not there yet, to append to.
    pub(crate) fn append(path: &Path) -> io::Result<OwnFile> {
        OwnFile::new(create_with(path, &mut to_append())?)
    }

    /// Opens a file again whose descriptor the program has closed, to append to it, if it is what the path leads to.
    pub(crate) fn reopen(&mut self, path: &Path) -> io::Result<()> {
        let mut options = to_append();
        options.read(true);
        for_us_alone(&mut options);
        self.replace(options.open(path)?)
    }

    /// The same, to change it where it is.
    #[cfg(feature = "_network")]
    pub(crate) fn reopen_to_change(&mut self, path: &Path) -> io::Result<()> {
        self.replace(open_to_change(path)?)
    }

    fn replace(&mut self, file: File) -> io::Result<()> {
        if look(&file)?.0 != self.identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        // To close the old number could close the new file, which may have got it.
        std::mem::forget(self.file.replace(file));
        Ok(())
    }

    /// Whether this path leads to it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let found = std::fs::symlink_metadata(path);
            found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
        }
        #[cfg(not(unix))]
        {
            path.exists()
        }
    }

    /// The file, as it is now.
    ///
    /// # Errors
    /// If the program has closed its descriptor.
    pub(crate) fn get(&self) -> io::Result<(&File, Look)> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let (identity, look) = look(file)?;
        if identity == self.identity { Ok((file, look)) } else { Err(closed()) }
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.get().is_err() {
            // The number is a stranger's, or nobody's.
            std::mem::forget(self.file.take());
        }
    }
}

#[cfg(unix)]
fn closed() -> io::Error {
    // Without memory of its own: the child of a fork asks, too.
    rustix::io::Errno::BADF.into()
}

#[cfg(not(unix))]
fn closed() -> io::Error {
    io::ErrorKind::NotFound.into()
}

#[cfg(unix)]
fn look(file: &File) -> io::Result<(Identity, Look)> {
    let stat = rustix::fs::fstat(file).map_err(|_| closed())?;
    // The types of these numbers are the platform's.
    #[allow(clippy::unnecessary_cast)]
    let identity = (stat.st_dev as u64, stat.st_ino as u64);
    Ok((identity, Look { has_name: stat.st_nlink > 0, len: stat.st_size as u64 }))
}

#[cfg(not(unix))]
fn look(file: &File) -> io::Result<(Identity, Look)> {
    Ok(((0, 0), Look { has_name: true, len: file.metadata()?.len() }))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn a_descriptor_that_was_closed_and_has_another_file_is_not_touched() {
        let dir = std::env::temp_dir().join(format!("stagetrace-files-{}", std::process::id()));
        make_dirs(&dir.join("a/b")).expect("it can be made");
        let (ours, other) = (dir.join("ours"), dir.join("a/b/other"));
        let mut own = OwnFile::append(&ours).expect("it can be made");
        assert!(own.is_at(&ours) && OwnFile::append(&ours).is_err());
        let (mut file, look) = own.get().expect("it is open");
        assert_eq!(look, Look { has_name: true, len: 0 });
        file.write_all(b"line\n").expect("it can be written");
        let number = file.as_raw_fd();
        let stranger = create(&other).expect("it can be made");
        // SAFETY: the number is that of `own`, which only looks at it from now on, as this test wants to see.
        let replaced = unsafe { libc::dup2(stranger.as_raw_fd(), number) };
        assert_eq!(replaced, number);
        assert!(own.get().is_err());
        own.reopen(&ours).expect("the file is still there");
        assert_eq!(own.get().expect("it is open").1.len, 5);
        assert!(own.reopen(&other).is_err());
        std::fs::remove_file(&ours).expect("it is there");
        assert!(!own.get().expect("it is open").1.has_name && !own.is_at(&ours));
        drop(own);
        // SAFETY: nobody else has this number now; it is closed here if the drop has not.
        let kept = unsafe { File::from_raw_fd(number) };
        assert_eq!(kept.metadata().expect("the drop has not closed it").len(), 0);
        std::fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn one_that_gets_its_old_number_again_stays_open() {
        let path = std::env::temp_dir().join(format!("stagetrace-number-{}", std::process::id()));
        let mut own = OwnFile::append(&path).expect("it can be made");
        // Tests beside this one may get the number first; then there is nothing to see.
        for _ in 0..100 {
            let number = own.get().expect("it is open").0.as_raw_fd();
            // SAFETY: it is ours, closed as a program does that closes what it has not opened; nobody uses it before it is looked at.
            unsafe { libc::close(number) };
            own.reopen(&path).expect("the file is still there");
            own.get().expect("it is open");
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}

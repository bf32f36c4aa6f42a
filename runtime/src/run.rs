//! A process's place on disk: the run's directory, and where its recording lies.

use crate::chunk::Space;
use crate::complain;
use crate::config::{Mapping, Settings};
use crate::files::create;
use stagetrace_wire::id::RunId;
use stagetrace_wire::recording::layout::BLOCK;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where a process keeps its files.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) run_id: RunId,
    /// The run's directory; `None` if it cannot be made.
    pub(crate) dir: Option<PathBuf>,
    /// `<pid>-<8 hex>`, which no other process of the run has.
    pub(crate) process_id: String,
    /// The beginning of this process's file names.
    pub(crate) stem: String,
    /// The mapped recording, if there is one.
    pub(crate) recording: Option<PathBuf>,
}

impl Place {
    /// Makes the run's directory. If it cannot be made, that is said once, and nothing is written to disk.
    pub(crate) fn new(settings: &Settings) -> Place {
        let pid = std::process::id();
        let (for_run, for_process) = (random(), random());
        let run_id =
            settings.run_id.clone().unwrap_or_else(|| RunId::new(SystemTime::now(), pid, for_run));
        let process_id = format!("{pid}-{for_process:08x}");
        let dir = settings.output_dir.join(run_id.as_str());
        let made = fs::create_dir_all(&dir).and_then(|()| {
            // Being allowed to write is another thing than being there.
            let probe = dir.join(format!(".{process_id}"));
            create(&probe).and_then(|_| fs::remove_file(&probe))
        });
        let dir = match made {
            Ok(()) => Some(dir),
            Err(error) => {
                let what = "tracing goes on without files";
                complain::warn(
                    "dir",
                    format_args!("cannot use {}: {error}; {what}", dir.display()),
                );
                None
            }
        };
        let stem = format!("{}-{process_id}", settings.service_in_file_name());
        Place { run_id, dir, process_id, stem, recording: None }
    }

    /// The path of a file of this process in the run's directory.
    pub(crate) fn file(&self, extension: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{}.{extension}", self.stem)))
    }

    /// The memory to record into: mapped where the settings say or, failing that, plain.
    pub(crate) fn space(&mut self, settings: &Settings) -> Space {
        let wanted = match settings.mapping {
            Mapping::Memory => return in_memory(settings),
            // That there is no directory has been said.
            Mapping::RunDir if self.dir.is_none() => return in_memory(settings),
            Mapping::RunDir => vec![Mapping::RunDir],
            Mapping::Shm => vec![Mapping::Shm, Mapping::RunDir],
            // As PID 1 we are a container's only process: its /dev/shm goes with it, the run's directory may stay.
            Mapping::Auto if std::process::id() == 1 => vec![Mapping::RunDir],
            Mapping::Auto => vec![Mapping::Shm, Mapping::RunDir],
        };
        let mut failure = None;
        for mapping in wanted {
            let mapped = match mapping {
                Mapping::Shm => self.map_in_shm(settings),
                _ => self.map_in_run_dir(settings),
            };
            match (mapped, failure.take()) {
                (Ok(space), Some(error)) if settings.mapping == Mapping::Shm => {
                    let what = "cannot map the recording in shared memory";
                    complain::warn(
                        "mapping",
                        format_args!("{what}: {error}; the run's directory serves"),
                    );
                    return space;
                }
                (Ok(space), _) => return space,
                (Err(error), _) => failure = Some(error),
            }
        }
        if let (Some(error), true) = (failure, self.dir.is_some()) {
            let what = "recording in plain memory: a kill loses what is not exported";
            complain::warn("mapping", format_args!("cannot map the recording: {error}; {what}"));
        }
        in_memory(settings)
    }

    fn map_in_run_dir(&mut self, settings: &Settings) -> io::Result<Space> {
        let path = self.file("recording").ok_or(io::ErrorKind::NotFound)?;
        let space = map(&path, settings)?;
        self.recording = Some(path);
        Ok(space)
    }

    #[cfg(target_os = "linux")]
    fn map_in_shm(&mut self, settings: &Settings) -> io::Result<Space> {
        use std::os::unix::fs::DirBuilderExt;
        let own = shared_memory_dir().ok_or(io::ErrorKind::NotFound)?;
        let dir = own.join(self.run_id.as_str());
        DirBuilder::new().mode(0o700).recursive(true).create(&dir)?;
        for made in [&own, &dir] {
            if !is_ours_alone(made) {
                let problem = format!("{} is not ours alone", made.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
            }
        }
        let path = dir.join(format!("{}.recording", self.stem));
        let space = map(&path, settings)?;
        if let Some(link) = self.file("recording") {
            std::os::unix::fs::symlink(&path, link)?;
        }
        self.recording = Some(path);
        Ok(space)
    }

    #[cfg(not(target_os = "linux"))]
    fn map_in_shm(&mut self, _: &Settings) -> io::Result<Space> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Replaces the mapped recording by a small closed one in the run's directory: its header and its stage table.
    pub(crate) fn close(&self, closed: &[u8]) -> io::Result<()> {
        let Some(mapped) = &self.recording else { return Ok(()) };
        if let Some(path) = self.file("recording") {
            let temporary = path.with_extension("recording.closing");
            let mut file = create(&temporary)?;
            write_sparse(&mut file, closed)?;
            fs::rename(&temporary, &path)?;
            if *mapped == path {
                return Ok(());
            }
        }
        fs::remove_file(mapped)?;
        if let Some(dir) = mapped.parent() {
            // Fails as long as another process of the run has its recording there.
            let _ = fs::remove_dir(dir);
        }
        Ok(())
    }
}

/// Where this user's recordings lie in shared memory.
#[cfg(target_os = "linux")]
pub(crate) fn shared_memory_dir() -> Option<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    Some(Path::new("/dev/shm").join(format!("stagetrace-{uid}")))
}

/// Where this user's recordings lie in shared memory.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shared_memory_dir() -> Option<PathBuf> {
    None
}

/// Whether a directory belongs to this user and nobody else may look into it.
pub(crate) fn is_ours_alone(dir: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let is_private = |dir: &fs::Metadata| dir.is_dir() && dir.mode() & 0o077 == 0;
        fs::symlink_metadata(dir).is_ok_and(|dir| is_private(&dir) && is_ours(&dir))
    }
    #[cfg(not(unix))]
    {
        dir.is_dir()
    }
}

/// Whether a file belongs to this user.
pub(crate) fn is_ours(file: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::uid(file) == rustix::process::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    {
        file.is_file()
    }
}

/// Writes the pages that hold something, and leaves holes for the others.
fn write_sparse(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(bytes.len() as u64)?;
    for (at, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at as u64 * 4096))?;
            file.write_all(page)?;
        }
    }
    Ok(())
}

fn map(path: &Path, settings: &Settings) -> io::Result<Space> {
    let file = create(path)?;
    let mapped = lock(&file).and_then(|()| {
        let blocks = blocks(settings, Some(path));
        if blocks < FIRST_STEP {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let space = Space::in_file(file, blocks)?;
        // Now, while there is a choice: later there is none.
        space.provide(0, FIRST_STEP)?;
        Ok(space)
    });
    if mapped.is_err() {
        let _ = fs::remove_file(path);
    }
    mapped
}

/// Whoever finds the lock held knows that we live; it goes with the process, however that ends.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        // A file system without locks: liveness is then not known, which is no reason to fail.
        Err(fs::TryLockError::Error(_)) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

fn in_memory(settings: &Settings) -> Space {
    Space::in_memory(blocks(settings, None))
}

/// Blocks at most: by the configured limit and, in a file, a quarter of what its file system has free.
fn blocks(settings: &Settings, path: Option<&Path>) -> usize {
    let free = path.and_then(free_bytes).map_or(usize::MAX, |free| (free / 4) as usize);
    settings.memory_limit.min(free) / BLOCK
}

/// Blocks of a recording's first step.
const FIRST_STEP: usize = crate::chunk::STEP_BLOCKS;

#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

fn random() -> u32 {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        return crate::clock::unix_ns() as u32;
    }
    u32::from_ne_bytes(bytes)
}

//! A process's place on disk: the run's directory, and where its recording lies.

use crate::chunk::Space;
use crate::complain;
use crate::config::{Mapping, Settings};
use crate::files::{self, create, longest};
use stagetrace_wire::id::RunId;
use stagetrace_wire::recording::layout::BLOCK;
use std::fs::{self, File};
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
        let made = files::make_dirs(&dir).and_then(|()| {
            // Being allowed to write is another thing than being there.
            let probe = dir.join(format!(".{process_id}"));
            create(&probe).and_then(|_| fs::remove_file(&probe))
        });
        let dir = match made {
            Ok(()) => Some(dir),
            Err(error) => {
                let what = "tracing goes on without files; STAGETRACE_DIR names another directory";
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

    /// The path of the process's spool, which is read only beside a mapped recording.
    pub(crate) fn spool(&self) -> Option<PathBuf> {
        self.recording.as_ref().and_then(|_| self.file("spool"))
    }

    /// The memory to record into: mapped where the settings say or, failing that, plain.
    pub(crate) fn space(&mut self, settings: &Settings) -> io::Result<Space> {
        // Of a run without a directory nobody would ever find the recording. That there is none has been said.
        let Some(dir) = &self.dir else { return in_memory(settings) };
        let wanted = match settings.mapping {
            Mapping::Memory => return in_memory(settings),
            Mapping::RunDir => vec![Mapping::RunDir],
            // A recording in shared memory names its run, in UTF-8.
            _ if dir.to_str().is_none() => vec![Mapping::RunDir],
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
                    return Ok(space);
                }
                (Ok(space), _) => return Ok(space),
                (Err(error), _) => failure = Some(error),
            }
        }
        if let (Some(error), Some(dir)) = (failure, &self.dir) {
            let where_ = dir.display();
            let what = "recording in plain memory: a kill loses what is not exported";
            complain::warn(
                "mapping",
                format_args!("cannot map the recording in {where_}: {error}; {what}"),
            );
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
        let own = shared_memory_dir().ok_or(io::ErrorKind::NotFound)?;
        let dir = own.join(self.run_id.as_str());
        // Not those above: where there is no shared memory, a directory of that name would be something else.
        for dir in [&own, &dir] {
            match files::make_dir(dir, 0o700) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ if is_ours_alone(dir) => {}
                _ => {
                    let problem = format!("{} is not ours alone", dir.display());
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
                }
            }
        }
        let path = dir.join(format!("{}.recording", self.stem));
        let space = map(&path, settings)?;
        if let Some(link) = self.file("recording")
            && let Err(error) = std::os::unix::fs::symlink(&path, link)
        {
            let _ = fs::remove_file(&path);
            return Err(error);
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
        // Where the run's directory was thrown away, nobody looks for the closed one either.
        if let Some(path) = self.file("recording").filter(|_| !self.is_thrown_away()) {
            let temporary = path.with_extension("recording.closing");
            let mut file = create(&temporary)?;
            let replaced =
                write_sparse(&mut file, closed).and_then(|()| fs::rename(&temporary, &path));
            if replaced.is_err() {
                let _ = fs::remove_file(&temporary);
            }
            replaced?;
            if *mapped == path {
                return Ok(());
            }
        }
        self.remove(mapped)
    }

    /// Removes the files of a process that does not record after all.
    pub(crate) fn give_up(&self) {
        if let Some(mapped) = &self.recording {
            let _ = self.remove(mapped);
        }
        for file in ["recording", "jsonl"].iter().filter_map(|extension| self.file(extension)) {
            // Those that are there are links that lead nowhere, or empty.
            let _ = fs::remove_file(file);
        }
    }

    /// Whether somebody has removed the run's directory.
    fn is_thrown_away(&self) -> bool {
        let found = self.dir.as_ref().map(fs::metadata);
        found.is_some_and(|dir| dir.is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
    }

    fn remove(&self, mapped: &Path) -> io::Result<()> {
        match fs::remove_file(mapped) {
            // Somebody did, which was said then.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
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
        fs::symlink_metadata(dir).is_ok_and(|dir| is_private(&dir) && files::is_ours(&dir))
    }
    #[cfg(not(unix))]
    {
        dir.is_dir()
    }
}

/// Writes the pages that hold something, and leaves holes for the others.
fn write_sparse(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 > longest() {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
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

/// Plain memory, as much of what is configured as there is.
fn in_memory(settings: &Settings) -> io::Result<Space> {
    let mut blocks = blocks(settings, None);
    loop {
        match Space::in_memory(blocks) {
            Err(_) if blocks > FIRST_STEP => blocks = (blocks / 2).max(FIRST_STEP),
            space => return space,
        }
    }
}

/// Blocks at most: by the configured limit and, in a file, a quarter of what its file system has free, and the length
/// that this process may give a file.
fn blocks(settings: &Settings, path: Option<&Path>) -> usize {
    let free = |path| files::free_bytes(path).map_or(u64::MAX, |free| free / 4).min(longest());
    let most = path.map_or(u64::MAX, free);
    (settings.memory_limit as u64).min(most) as usize / BLOCK
}

/// Blocks of a recording's first step.
const FIRST_STEP: usize = crate::chunk::STEP_BLOCKS;

fn random() -> u32 {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        return crate::clock::unix_ns() as u32;
    }
    u32::from_ne_bytes(bytes)
}

//! A victim under `ptrace`: it is stopped at each system call, and killed exactly there.

use crate::victim::{Victim, Work};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Longest that a process is followed: thousands of steps take long where others use the processor.
const PATIENCE: Duration = Duration::from_secs(180);
/// Stops after which a thread that is of no interest is left alone.
const BORED: u32 = 64;

/// A traced process. All is asked of it by the thread that started it.
pub(crate) struct Traced {
    pid: i32,
    watched: &'static str,
    threads: HashMap<i32, Thread>,
    status: Option<ExitStatus>,
    deadline: Instant,
}

#[derive(Debug, Default)]
struct Thread {
    call: Option<Call>,
    stops: u32,
    is_watched: bool,
}

/// A system call that changes files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name, the same for all variants of it.
    pub(crate) name: &'static str,
    /// The file: that of the descriptor, or the path that is given.
    pub(crate) path: String,
    /// Bytes, of a `write`.
    pub(crate) bytes: u64,
}

/// A watched thread that is stopped at a call.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) thread: i32,
    pub(crate) call: Call,
    /// `None` before it is done.
    pub(crate) result: Option<i64>,
}

impl Stop {
    /// Whether a call of this name on a file with this ending is about to be made.
    pub(crate) fn is_before(&self, name: &str, file: &str) -> bool {
        self.result.is_none() && self.call.name == name && self.call.path.ends_with(file)
    }

    /// Whether it has just been made.
    pub(crate) fn is_after(&self, name: &str, file: &str) -> bool {
        self.result.is_some() && self.call.name == name && self.call.path.ends_with(file)
    }
}

/// Starts a victim, of which the threads of this name are watched. `None` if nobody may be traced here.
pub(crate) fn victim(work: Work<'_>, watched: &'static str) -> Option<(Victim, Traced)> {
    let victim = Victim::start_with(work, be_traced);
    let victim = allowed(victim)?;
    let traced = Traced::of(victim.child.id() as i32, watched);
    Some((victim, traced))
}

/// Starts another program whose main thread is watched.
pub(crate) fn program(mut command: Command, watched: &'static str) -> Option<Traced> {
    be_traced(&mut command);
    let child = allowed(command.spawn())?;
    // Waited for by the tracer.
    Some(Traced::of(child.id() as i32, watched))
}

fn allowed<T>(started: io::Result<T>) -> Option<T> {
    match started {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: no right to trace a process: {error}");
            None
        }
        started => Some(started.expect("the program can be started")),
    }
}

fn be_traced(command: &mut Command) {
    let ask = || match ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    // SAFETY: between `fork` and `exec` it makes one system call and nothing else.
    unsafe { command.pre_exec(ask) };
}

impl Traced {
    /// The process that has just been started, and stands at its first instruction.
    fn of(pid: i32, watched: &'static str) -> Traced {
        let mut status = 0;
        // SAFETY: the status is ours.
        let stopped = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
        assert!(stopped == pid && libc::WIFSTOPPED(status), "{pid} has not begun: {status:x}");
        let options =
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
        ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options as usize).expect("it is ours");
        let threads = HashMap::from([(pid, Thread::default())]);
        let deadline = Instant::now() + PATIENCE;
        let mut traced = Traced { pid, watched, threads, status: None, deadline };
        traced.go_on(pid, 0);
        traced
    }

    /// Goes on to the next stop of which `is_wanted` says so; the thread stands there then. `None` if
    /// the process has ended before.
    pub(crate) fn run_to(&mut self, mut is_wanted: impl FnMut(&Stop) -> bool) -> Option<Stop> {
        loop {
            let stop = self.next()?;
            if is_wanted(&stop) {
                return Some(stop);
            }
            self.go_on(stop.thread, 0);
        }
    }

    /// Lets the thread go on from where it stands, to the end of its call.
    pub(crate) fn finish_call(&mut self, stop: &Stop) -> Option<Stop> {
        self.go_on(stop.thread, 0);
        let thread = stop.thread;
        self.run_to(|stop| stop.thread == thread && stop.result.is_some())
    }

    /// Lets the thread go on from where it stands.
    pub(crate) fn let_go(&mut self, stop: &Stop) {
        self.go_on(stop.thread, 0);
    }

    /// Lets the thread execute one instruction. Whether it still lives.
    pub(crate) fn step(&mut self, stop: &Stop) -> bool {
        if ptrace(libc::PTRACE_SINGLESTEP, stop.thread, 0, 0).is_err() {
            return false;
        }
        let mut status = 0;
        // SAFETY: the status is ours.
        let stopped = unsafe { libc::waitpid(stop.thread, &mut status, libc::__WALL) };
        stopped == stop.thread && libc::WIFSTOPPED(status)
    }

    /// Has the `write` at which a thread stands write so many bytes only.
    pub(crate) fn shorten(&self, stop: &Stop, bytes: u64) {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
        let mut vector = libc::iovec {
            iov_base: registers.as_mut_ptr().cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        let vector = &raw mut vector as usize;
        let general = libc::NT_PRSTATUS as usize;
        ptrace(libc::PTRACE_GETREGSET, stop.thread, general, vector).expect("it stands");
        // SAFETY: they were all given; they are numbers.
        let registers = unsafe { registers.assume_init_mut() };
        #[cfg(target_arch = "x86_64")]
        let length = &mut registers.rdx;
        #[cfg(target_arch = "aarch64")]
        let length = &mut registers.regs[2];
        *length = bytes;
        ptrace(libc::PTRACE_SETREGSET, stop.thread, general, vector).expect("it stands");
    }

    /// Kills the process where it stands, and waits for its end.
    pub(crate) fn kill(mut self) -> ExitStatus {
        // SAFETY: it is our child, and nobody has waited for its end.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        while self.next().is_some() {}
        self.status.expect("it has ended")
    }

    /// The next stop of a watched thread at a call that changes files.
    fn next(&mut self) -> Option<Stop> {
        while self.status.is_none() {
            assert!(Instant::now() < self.deadline, "{} takes too long", self.pid);
            let mut status = 0;
            // SAFETY: the status is ours. Only this thread's own children are waited for.
            let thread =
                unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
            assert!(thread > 0, "nothing to wait for: {}", io::Error::last_os_error());
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                self.threads.remove(&thread);
                if thread == self.pid {
                    self.status = Some(ExitStatus::from_raw(status));
                }
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            if signal == libc::SIGTRAP | 0x80 {
                if let Some(stop) = self.stop_of(thread) {
                    return Some(stop);
                }
                self.go_on(thread, 0);
            } else if signal == libc::SIGTRAP || signal == libc::SIGSTOP {
                // A thread was made, or begins.
                self.go_on(thread, 0);
            } else {
                self.go_on(thread, signal);
            }
        }
        None
    }

    /// Where a thread stands, if it is of interest.
    fn stop_of(&mut self, thread: i32) -> Option<Stop> {
        let known = self.threads.entry(thread).or_default();
        known.stops += 1;
        if known.stops <= BORED {
            // A thread gives itself its name; before, it has that of the one that made it.
            let name = fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.pid)).ok()?;
            known.is_watched = name.trim_end() == self.watched;
        }
        let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
        let size = size_of::<libc::ptrace_syscall_info>();
        let to = info.as_mut_ptr() as usize;
        ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, to).ok()?;
        // SAFETY: the kernel has filled what it knows, and the rest is zero; all of it are numbers.
        let info = unsafe { info.assume_init() };
        if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            // SAFETY: so says `op`.
            let entry = unsafe { info.u.entry };
            known.call = call(self.pid, entry.nr as i64, entry.args);
            let call = known.call.clone().filter(|_| known.is_watched)?;
            return Some(Stop { thread, call, result: None });
        }
        let call = known.call.take().filter(|_| known.is_watched)?;
        // SAFETY: so says `op`.
        let result = unsafe { info.u.exit.sval };
        Some(Stop { thread, call, result: Some(result) })
    }

    fn go_on(&mut self, thread: i32, signal: i32) {
        let known = self.threads.entry(thread).or_default();
        let is_boring = !known.is_watched && known.stops > BORED;
        let how = if is_boring { libc::PTRACE_CONT } else { libc::PTRACE_SYSCALL };
        // It may have been killed meanwhile; then its end comes next.
        let _ = ptrace(how, thread, 0, signal as usize);
    }
}

/// A call that changes files; `None` if it is another one.
fn call(pid: i32, number: i64, args: [u64; 6]) -> Option<Call> {
    let by_descriptor = || {
        let link = fs::read_link(format!("/proc/{pid}/fd/{}", args[0])).ok()?;
        Some(link.to_string_lossy().into_owned())
    };
    let name = name(number)?;
    let (path, bytes) = match name {
        "write" => (by_descriptor()?, args[2]),
        "ftruncate" | "fallocate" | "fsync" => (by_descriptor()?, 0),
        _ if IN_DIRECTORY.contains(&number) => (text(pid, args[1])?, 0),
        _ => (text(pid, args[0])?, 0),
    };
    // To open a file changes nothing, to make it does.
    let makes = name != "open" || args[2] as i32 & libc::O_CREAT != 0;
    // Messages through a pipe.
    (makes && path.starts_with('/')).then_some(Call { name, path, bytes })
}

/// Calls whose first path follows a directory's descriptor.
const IN_DIRECTORY: [i64; 6] = [
    libc::SYS_openat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
];

fn name(number: i64) -> Option<&'static str> {
    Some(match number {
        libc::SYS_write => "write",
        libc::SYS_ftruncate => "ftruncate",
        libc::SYS_fallocate => "fallocate",
        libc::SYS_fsync => "fsync",
        libc::SYS_openat => "open",
        libc::SYS_renameat | libc::SYS_renameat2 => "rename",
        libc::SYS_unlinkat => "unlink",
        libc::SYS_mkdirat => "mkdir",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => "rename",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rmdir => "unlink",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => "mkdir",
        _ => return None,
    })
}

/// A text in another process's memory.
fn text(pid: i32, address: u64) -> Option<String> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; 4096];
    let read = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

fn ptrace(request: libc::c_uint, pid: i32, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: requests that write through `data` are given the address of something of ours of the
    // right size; the others take numbers.
    match unsafe { libc::ptrace(request, pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

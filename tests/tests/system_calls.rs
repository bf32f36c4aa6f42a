//! A warm recorder makes no system call but a wake-up of the collector for every eight full chunks.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use stagetrace::{Mapping, Outcome, Traced, event, span, stage};
use stagetrace_tests::alone;
use stagetrace_tests::pipeline::{Generate, decode, dispatch};
use stagetrace_tests::start_with;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Stands in the sixth argument of the calls that the handler repeats, so that they pass the filter.
const AGAIN: u32 = 0x5354_4147;

/// How often this thread of the test called the system, but for wake-ups; and those.
static CALLS: AtomicU64 = AtomicU64::new(0);
static WAKE_UPS: AtomicU64 = AtomicU64::new(0);
/// The number of the last call that was no wake-up.
static LAST: AtomicI64 = AtomicI64::new(-1);

/// Has every system call of this thread, to its end, counted; it is still made. Whether that is allowed.
fn count_system_calls() -> bool {
    let number = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
    let sixth = (std::mem::offset_of!(libc::seccomp_data, args) + 5 * 8) as u32;
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equals =
        |value, skip| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, skip, 0, value);
    let verdict = |value| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let mut program = [
        load(number),
        // These cannot be made from a handler.
        equals(libc::SYS_rt_sigreturn as u32, 4),
        equals(libc::SYS_exit as u32, 3),
        load(sixth),
        equals(AGAIN, 1),
        verdict(libc::SECCOMP_RET_TRAP),
        verdict(libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the handler only stores and makes the call that was trapped; the filter is a valid program.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_system_call as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        assert_eq!(libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()), 0);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) == 0
    }
}

fn instruction(code: u32, if_so: u8, if_not: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_so, jf: if_not, k: value }
}

extern "C" fn on_system_call(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system hands a context to such a handler.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let number = registers[libc::REG_RAX as usize];
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8]
        .map(|register| registers[register as usize]);
    let wakes = number == libc::SYS_futex && arguments[1] & 0x7F == i64::from(libc::FUTEX_WAKE);
    if wakes {
        WAKE_UPS.fetch_add(1, Ordering::Relaxed);
    } else {
        LAST.store(number, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    let [a, b, c, d, e] = arguments;
    // SAFETY: the call that the thread was about to make; none of those that it makes has a sixth argument that matters.
    registers[libc::REG_RAX as usize] =
        unsafe { raw_system_call(number, [a, b, c, d, e, AGAIN.into()]) };
}

/// # Safety
/// That of the call.
unsafe fn raw_system_call(number: i64, arguments: [i64; 6]) -> i64 {
    let mut result = number;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

#[stage("work", attrs("n" = n))]
fn work(n: u64) {
    let _ = n;
}

/// Something of everything.
fn everything(request: &mut Generate) {
    request.begin(None);
    dispatch(request, || {
        (0..10).for_each(work);
        decode(request);
        event!("event", "text" = "some text", "n" = 7);
        let span = span!("by hand", "n" = 7);
        span.in_scope(|| work(7));
    });
    request.finish(Outcome::Ok);
    request.trace = stagetrace::TraceState::null();
}

#[test]
fn a_warm_thread_makes_no_system_call_but_a_wake_up_for_eight_chunks() {
    const ROUNDS: u64 = 5_000;
    let ran = alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        // Asserted outside of the thread, since a panic's report makes other calls than the handler can.
        let counted = thread::spawn(|| {
            let mut request = Generate::new("a request of middling length", 2);
            (0..500).for_each(|_| everything(&mut request));
            if !count_system_calls() {
                return None;
            }
            // SAFETY: asks for a number, so that the counter is seen to count.
            unsafe { libc::getppid() };
            let counts = CALLS.swap(0, Ordering::Relaxed) == 1;
            WAKE_UPS.store(0, Ordering::Relaxed);
            (0..ROUNDS).for_each(|_| everything(&mut request));
            let calls = CALLS.load(Ordering::Relaxed);
            Some((counts, calls, WAKE_UPS.load(Ordering::Relaxed)))
        });
        let Some((counts, calls, wake_ups)) = counted.join().unwrap() else {
            println!("\nskipped: no right to filter system calls");
            return;
        };
        assert!(counts, "the counter does not count");
        assert_eq!(calls, 0, "the last was number {}", LAST.load(Ordering::Relaxed));
        let stats = trace.shutdown(Duration::from_secs(60)).unwrap();
        // Each of them takes two lines of 64 bytes at most.
        let chunks = stats.begun * 128 / (64 * 1024);
        assert!(wake_ups <= chunks / 8 + 8, "{wake_ups} wake-ups for {chunks} chunks");
    })
    .run();
    // To be seen by whoever runs the tests, as what they say themselves.
    ran.stdout.lines().filter(|line| line.starts_with("skipped: ")).for_each(|l| println!("{l}"));
}

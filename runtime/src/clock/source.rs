//! Which clock this machine's ticks are of, and why.

use std::fmt;

/// What the time stamps of this process are read from, and why that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockSource {
    /// `tsc`, the processor's time stamp counter, or `clock_gettime`, the monotonic clock (whatever its name on this
    /// platform), which costs more.
    pub name: &'static str,
    /// Why, for a person.
    pub reason: String,
    pub(crate) is_counter: bool,
}

impl ClockSource {
    /// The best of this machine: the counter, where the kernel keeps its own time by it and the processor says that it
    /// runs at one rate in every power state.
    pub(crate) fn of_this_machine() -> ClockSource {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            let kernel = kernels("/sys/devices/system/clocksource/clocksource0".as_ref());
            ClockSource::on_linux(kernel.as_deref(), counter_is_invariant(cpuid))
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        ClockSource::other("only x86-64 Linux says whether its counter can be trusted".to_owned())
    }

    /// The best where this is the kernel's clock source, if it names one.
    #[cfg(any(test, all(target_arch = "x86_64", target_os = "linux")))]
    fn on_linux(kernel: Option<&str>, is_invariant: bool) -> ClockSource {
        match kernel {
            Some("tsc") if is_invariant => ClockSource {
                name: "tsc",
                reason: "the kernel's clock source is tsc, and the counter is invariant".to_owned(),
                is_counter: true,
            },
            Some("tsc") => ClockSource::other("the counter is not invariant".to_owned()),
            Some(other) => ClockSource::other(format!("the kernel's clock source is {other}")),
            None => ClockSource::other("the kernel does not name its clock source".to_owned()),
        }
    }

    fn other(reason: String) -> ClockSource {
        ClockSource { name: "clock_gettime", reason, is_counter: false }
    }
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// The clock source that the kernel names in this directory.
#[cfg(any(test, all(target_arch = "x86_64", target_os = "linux")))]
fn kernels(directory: &std::path::Path) -> Option<String> {
    let name = std::fs::read_to_string(directory.join("current_clocksource")).ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether the counter runs at one rate in every power state: `eax` and `edx` of leaves of `cpuid` say so.
#[cfg(any(test, all(target_arch = "x86_64", target_os = "linux")))]
fn counter_is_invariant(cpuid: impl Fn(u32) -> (u32, u32)) -> bool {
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    cpuid(HIGHEST).0 >= POWER && cpuid(POWER).1 & (1 << 8) != 0
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn cpuid(leaf: u32) -> (u32, u32) {
    // A safe function in newer releases of Rust than the oldest supported one.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    let found = unsafe { core::arch::x86_64::__cpuid(leaf) };
    (found.eax, found.edx)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kernel that says this in its file has us use.
    fn chosen(file: Option<&str>, is_invariant: bool) -> String {
        let directory = std::env::temp_dir().join(format!(
            "stagetrace-clock-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&directory).unwrap();
        if let Some(text) = file {
            std::fs::write(directory.join("current_clocksource"), text).unwrap();
        }
        let kernel = kernels(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        ClockSource::on_linux(kernel.as_deref(), is_invariant).to_string()
    }

    #[test]
    fn the_counter_is_used_where_the_kernel_keeps_its_own_time_by_it() {
        let tsc = "tsc: the kernel's clock source is tsc, and the counter is invariant";
        assert_eq!(chosen(Some("tsc\n"), true), tsc);
        assert_eq!(chosen(Some("tsc\n"), false), "clock_gettime: the counter is not invariant");
    }

    #[test]
    fn every_other_machine_is_asked_for_its_monotonic_clock() {
        let others = [
            "kvm-clock",                   // a KVM guest without a stable counter
            "hpet",                        // where the watchdog has given up the counter
            "acpi_pm",                     // the same, without that timer
            "xen",                         // a Xen guest
            "hyperv_clocksource_tsc_page", // a guest of Hyper-V and Azure
            "hyperv_clocksource_msr",
            "arch_sys_counter", // aarch64
            "riscv_clocksource",
            "jiffies",
            "tsc-early", // while the kernel still calibrates
        ];
        for name in others {
            let expected = format!("clock_gettime: the kernel's clock source is {name}");
            assert_eq!(chosen(Some(&format!("{name}\n")), true), expected);
        }
        let unnamed = "clock_gettime: the kernel does not name its clock source";
        assert_eq!(chosen(None, true), unnamed, "a sandbox without /sys");
        assert_eq!(chosen(Some("\n"), true), unnamed);
    }

    #[test]
    fn the_processor_says_whether_its_counter_is_invariant() {
        let leaves = |highest, power| {
            move |leaf| if leaf == 0x8000_0000 { (highest, 0) } else { (0, power) }
        };
        assert!(counter_is_invariant(leaves(0x8000_0008, 0x0000_0100)), "Intel, since Nehalem");
        assert!(counter_is_invariant(leaves(0x8000_0028, 0x0000_6799)), "AMD EPYC");
        assert!(!counter_is_invariant(leaves(0x8000_0008, 0)), "a guest whose host may move it");
        assert!(!counter_is_invariant(leaves(0x8000_0004, 0xFFFF_FFFF)), "it has no such leaf");
    }

    #[test]
    fn this_machines_choice_is_that_of_its_files() {
        let chosen = ClockSource::of_this_machine();
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let named = std::fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc");
        assert!(named || !chosen.is_counter, "{chosen}");
    }
}

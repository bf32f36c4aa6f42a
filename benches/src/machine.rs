//! Where the figures come from.

use std::fs;
use std::process::Command;

/// How this program was built, as far as it matters: cargo puts each profile's programs into a directory of its name.
pub(crate) fn profile() -> String {
    match profile_name().as_str() {
        "release" => "release, without link-time optimisation across crates".to_owned(),
        "lto" => "release with fat link-time optimisation".to_owned(),
        other => other.to_owned(),
    }
}

/// The profile's directory: `debug` is cargo's `dev`.
pub(crate) fn profile_name() -> String {
    let this = std::env::current_exe().unwrap_or_default();
    let directory = this.parent().and_then(|parent| parent.file_name());
    directory.map_or("unknown".into(), |name| name.to_string_lossy()).into_owned()
}

/// What the figures depend on, by name: the machine, the compiler, the versions.
pub(crate) fn describe() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let entries = [
        ("processor", format!("{}, {cores} cores", processor())),
        ("system", format!("{} {}", std::env::consts::OS, kernel())),
        ("clock", clock_source()),
        ("compiler", rustc()),
        ("profile", profile()),
        ("versions", versions()),
    ];
    entries.map(|(what, value)| (what.to_owned(), value)).into()
}

/// The same as a sentence.
pub(crate) fn text(machine: &[(String, String)]) -> String {
    let parts: Vec<String> =
        machine.iter().map(|(what, value)| format!("{what}: {value}")).collect();
    parts.join("; ")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn processor() -> String {
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split_once(':')).map(|(_, name)| name.trim());
    let arch = std::env::consts::ARCH;
    match model {
        Some(model) => format!("{model} ({arch})"),
        None => arch.to_owned(),
    }
}

fn kernel() -> String {
    read("/proc/sys/kernel/osrelease")
}

fn clock_source() -> String {
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        source if source.is_empty() => "unknown".to_owned(),
        source => source,
    }
}

fn rustc() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "rustc unknown".to_owned())
}

/// The versions of all that is compared, as Cargo.lock had them when this was built.
fn versions() -> String {
    const COMPARED: &[&str] = &[
        "stagetrace",
        "fastrace",
        "fastrace-opentelemetry",
        "opentelemetry",
        "opentelemetry_sdk",
        "tracing",
        "tracing-opentelemetry",
        "tracing-subscriber",
    ];
    let lock = include_str!("../../Cargo.lock");
    let packages = lock.split("[[package]]").filter_map(|package| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim_start_matches(" = ").trim_matches('"'))
        };
        Some((value("name")?, value("version")?))
    });
    let compared = packages.filter(|(name, _)| COMPARED.contains(name));
    compared.map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

//! What only root may do: mounts of a test's own, and being somebody else.

use std::process::Command;

/// A user who owns nothing.
pub const NOBODY: u32 = 65_534;

/// A script that runs `setup`, and then the process, among mounts of their own; `None`, and why,
/// where that is not allowed.
pub fn with_mounts(setup: &str) -> Option<String> {
    in_namespaces("-m", "mount", setup)
}

/// The same for a script that `unshare` is to run with these options.
pub fn in_namespaces(options: &str, what_for: &str, setup: &str) -> Option<String> {
    let options_list: Vec<_> = options.split(' ').collect();
    let may = Command::new("unshare").args(options_list).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        println!("skipped: no right to {what_for}");
        return None;
    }
    let script = format!("{setup}\nshift; exec \"$@\"").replace('\'', r"'\''");
    Some(format!("exec unshare {options} sh -euc '{script}' sh \"$@\""))
}

/// Lines for the setup of [`with_mounts`] that mount a new, empty disk of ext4 of so many MiB at `$1`; `None`, and why,
/// where that is not allowed, or the kernel does not know the options.
pub fn ext4(mib: u32, make_options: &str, mount_options: &str) -> Option<String> {
    let lines = mount_lines(mib, make_options, mount_options);
    if may_mount(&lines) {
        return Some(lines);
    }
    if may_mount(&mount_lines(mib, "", "rw")) {
        println!("not checked: this kernel mounts no disk of ext4 with {mount_options}");
    } else {
        println!("skipped: no right to mount a disk of ext4, or nothing that makes one");
    }
    None
}

fn mount_lines(mib: u32, make_options: &str, mount_options: &str) -> String {
    format!(
        r#"image=$(mktemp); truncate -s {mib}M "$image"
        PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q {make_options} "$image"
        mount -o loop,{mount_options} "$image" "$1"; rm "$image"
        rmdir "$1/lost+found""#
    )
}

fn may_mount(lines: &str) -> bool {
    let attempt = format!(
        r#"dir=$(mktemp -d); trap 'rmdir "$dir"' EXIT; set -- "$dir"; {lines}; umount "$dir""#
    );
    let may = Command::new("unshare").args(["-m", "sh", "-euc", &attempt]).output();
    may.is_ok_and(|output| output.status.success())
}

/// Whether this process may become another user; if not, says that the test is skipped.
pub fn may_change_user() -> bool {
    // SAFETY: asks only.
    let may = unsafe { libc::geteuid() } == 0;
    if !may {
        println!("skipped: no right to become another user");
    }
    may
}

/// Makes this process one of another user, for good.
///
/// # Panics
/// If that is not allowed.
pub fn become_user(user: u32) {
    // SAFETY: plain calls of the system, with numbers.
    let done = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(user, user, user) == 0
            && libc::setresuid(user, user, user) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

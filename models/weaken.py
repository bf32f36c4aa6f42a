#!/usr/bin/env python3
"""Weakens each memory ordering of the checked files in turn, and says which model notices first.

    models/weaken.py             all of them: minutes
    models/weaken.py pool.rs     those of one file

Works in a copy below the target directory. An ordering that no model notices is either stronger than it need be or not
modelled; docs/invariants.md says which, for each.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COPY = TARGET / "weakened"
# The checked files, and the models that may notice.
FILES = {
    "runtime/src/chunk/generation.rs": ["slab"],
    "runtime/src/chunk/pool.rs": ["growth", "slab", "exit"],
    "runtime/src/chunk/pool/chunks.rs": ["recycle", "exit", "growth", "shelf", "publish"],
    "runtime/src/chunk/pool/slots.rs": ["slab"],
    "runtime/src/chunk/pool/table.rs": ["growth"],
    "runtime/src/chunk/progress.rs": ["publish", "exit"],
    "runtime/src/chunk/shelf.rs": ["shelf", "slab"],
    "runtime/src/chunk/stack.rs": ["shelf", "recycle", "exit"],
    "runtime/src/chunk/writer.rs": ["publish", "exit"],
    "runtime/src/record/rights.rs": ["rights"],
    "wire/src/recording/read/view.rs": ["publish", "recycle", "slab", "growth"],
}
DOOR = '''
static WEAKENED: std::sync::LazyLock<Option<usize>> =
    std::sync::LazyLock::new(|| std::env::var("WEAKEN").ok()?.parse().ok());

pub(crate) fn weak(site: usize, ordering: Ordering) -> Ordering {
    if *WEAKENED == Some(site) { Ordering::Relaxed } else { ordering }
}

pub(crate) fn weak_fence(site: usize, ordering: Ordering) {
    if *WEAKENED != Some(site) {
        fence(ordering);
    }
}
'''


def weaken(sites, path):
    """Makes every ordering of a file one that can be switched off by its number."""
    text = (ROOT / path).read_text()
    code, tests, rest = text.partition("#[cfg(all(test, not(loom)))]\nmod tests {")
    lines = code.split("\n")
    for at, line in enumerate(lines):
        def switch(match, is_fence=False):
            sites.append((path, at + 1, line.strip()))
            name = "weak_fence" if is_fence else "weak"
            return f"crate::sync::{name}({len(sites) - 1}, {match.group(1)})"
        if line.strip().startswith("//"):
            continue
        changed = re.sub(r"(?<![\w:])fence\((Ordering::\w+)\)", lambda m: switch(m, True), line)
        if changed == line:
            changed = re.sub(r"(?<![\w:])(Ordering::(?:Release|Acquire|AcqRel))\b", switch, line)
        lines[at] = changed
    target = COPY / path
    target.write_text("\n".join(lines) + tests + rest)


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    shutil.rmtree(COPY, ignore_errors=True)
    ignore = shutil.ignore_patterns("target", ".git", "tests", "traces")
    for part in ("wire", "runtime", "models"):
        shutil.copytree(ROOT / part, COPY / part, ignore=ignore)
    root = (ROOT / "Cargo.toml").read_text()
    members = re.sub(r"members = \[[^\]]*\]", 'members = ["models"]', root)
    (COPY / "Cargo.toml").write_text(members)
    shutil.copy(ROOT / "Cargo.lock", COPY)
    shutil.copy(ROOT / "rust-toolchain.toml", COPY)
    sites = []
    for path in FILES:
        weaken(sites, path)
    with open(COPY / "models/src/sync.rs", "a") as door:
        door.write(DOOR)
    build = ["cargo", "test", "-p", "stagetrace-models", "--no-run", "--offline"]
    # With a target directory of its own: cargo takes the copy's artifacts for those of the workspace.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET / "weakened-target")}
    built = subprocess.run(build, cwd=COPY, env=environment, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(built.stderr)
    program = re.search(r"\(([^()]*stagetrace_models-[^()]*)\)", built.stderr).group(1)
    program = (COPY / program).resolve()
    unnoticed = 0
    for site, (path, line, code) in enumerate(sites):
        if wanted not in path:
            continue
        environment = {**os.environ, "WEAKEN": str(site), "RUST_BACKTRACE": "0"}
        failed = []
        for part in FILES[path]:
            ran = subprocess.run([program, f"models::{part}::"], env=environment,
                                 capture_output=True, text=True, cwd=COPY)
            failed += sorted(set(re.findall(r"test models::(\S+) \.\.\. FAILED", ran.stdout)))
            if failed:
                break
        unnoticed += not failed
        print(f"{path}:{line}: {code}")
        print("    " + ("\n    ".join(failed) if failed else "not noticed"), flush=True)
    print(f"{unnoticed} were not noticed")


if __name__ == "__main__":
    main()

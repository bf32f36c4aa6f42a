//! What goes wrong ends in one clear line and the right exit code.

mod common;

use std::fs;

use common::{Outcome, Program, has_gpu};

/// A run on the processor, which every machine has.
fn on_cpu(test: &str, arguments: &[&str]) -> Outcome {
    Program::new(test).run(&[&["--device", "cpu"], arguments].concat())
}

/// The one line on standard error.
fn only_line(outcome: &Outcome) -> &str {
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", outcome.stderr);
    lines[0]
}

#[test]
fn a_bad_prompt_is_told_with_what_is_accepted() {
    let outcome = on_cpu("bad_prompt", &["a horse"]);
    assert_eq!(outcome.code, Some(2));
    assert_eq!(
        only_line(&outcome),
        "diffusion: cannot draw \"horse\", only the digits 0 to 9: write one digit, such as \"7\", \
         \"seven\", \"a seven\" or \"the digit 7\""
    );
}

#[test]
fn an_unknown_option_is_told_with_the_one_that_was_meant() {
    let outcome = on_cpu("unknown_option", &["7", "--guidence", "2"]);
    assert_eq!(outcome.code, Some(2));
    let line = only_line(&outcome);
    assert_eq!(line, "diffusion: unexpected argument '--guidence' found: did you mean --guidance?");
}

#[test]
fn an_image_path_that_cannot_be_written_is_told_after_the_picture_was_shown() {
    let outcome = on_cpu("unwritable_image", &["7", "--out", "nowhere/seven.png"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stdout.contains("@@"), "{}", outcome.stdout);
    let last = outcome.stderr.lines().last().unwrap();
    assert!(last.starts_with("diffusion: writing nowhere/seven.png: No such file"), "{last}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_for_the_image_is_told() {
    let outcome = on_cpu("full_disk", &["7", "--out", "/dev/full"]);
    assert_eq!(outcome.code, Some(1));
    let last = outcome.stderr.lines().last().unwrap();
    assert!(last.starts_with("diffusion: writing /dev/full: No space left"), "{last}");
}

#[test]
fn corrupt_weights_are_told_by_the_tensor_that_is_wrong() {
    let mut program = Program::new("corrupt_weights");
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/digits.safetensors");
    let mut bytes = fs::read(good).unwrap();
    let name = b"\"1.qkv.w\"";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + 1] = b'9';
    fs::write(program.path("bad.safetensors"), bytes).unwrap();
    let outcome = program.run(&["7", "--weights", "bad.safetensors"]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(
        only_line(&outcome),
        "diffusion: weights bad.safetensors: tensor \"1.qkv.w\" is missing"
    );
}

#[test]
fn truncated_and_absent_weights_are_told() {
    let mut program = Program::new("truncated_weights");
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/digits.safetensors");
    fs::write(program.path("half.safetensors"), &fs::read(good).unwrap()[..400_000]).unwrap();
    let outcome = program.run(&["7", "--weights", "half.safetensors"]);
    assert_eq!(outcome.code, Some(1));
    let line = only_line(&outcome);
    assert!(
        line.starts_with("diffusion: weights half.safetensors: not a safetensors file"),
        "{line}"
    );

    let outcome = on_cpu("absent_weights", &["7", "--weights", "nothing"]);
    assert_eq!(outcome.code, Some(1));
    assert!(only_line(&outcome).starts_with("diffusion: weights nothing: No such file"));
}

#[test]
fn without_an_adapter_auto_takes_the_processor_and_says_so_in_one_line() {
    let mut program = Program::new("no_adapter_auto").without_adapter();
    let outcome = program.run(&["a seven"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let line = only_line(&outcome);
    assert!(line.starts_with("no GPU adapter found, running on the processor instead"), "{line}");
    assert!(line.contains("apt install mesa-vulkan-drivers"), "{line}");
    assert!(program.path("digit.png").exists());
}

#[test]
fn without_an_adapter_a_gpu_cannot_be_had() {
    let mut program = Program::new("no_adapter_gpu").without_adapter();
    let outcome = program.run(&["a seven", "--device", "gpu"]);
    assert_eq!(outcome.code, Some(2));
    assert!(only_line(&outcome).starts_with("diffusion: no GPU adapter found; on Linux"));
    assert!(!program.path("digit.png").exists());
}

#[test]
fn a_software_adapter_is_told_by_name() {
    if !has_gpu() {
        return;
    }
    let outcome = Program::new("software_adapter").run(&["a seven", "--device", "gpu"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let line = only_line(&outcome);
    let expected = if line.contains("llvmpipe") {
        "timings are those of a software rasteriser"
    } else {
        "running on "
    };
    assert!(line.contains(expected), "{line}");
}

#[test]
fn a_trace_directory_that_cannot_be_written_only_warns() {
    let mut program = Program::new("unwritable_traces");
    fs::write(program.path("file"), "").unwrap();
    let outcome = program.run(&["7", "--device", "cpu", "--trace-dir", "file/traces"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(program.path("digit.png").exists());
    let warnings = outcome.stderr.lines().filter(|line| line.contains("file/traces")).count();
    assert_eq!(warnings, 1, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("no trace was written"), "{}", outcome.stdout);
}

//! Mistakes of the user are shown where they are.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
fn tail() -> u32 {
    "text"
}

#[stage(Steps::GpuForward)]
async fn tail_of_async() -> u32 {
    "text"
}

#[stage(Steps::GpuForward)]
fn early(x: bool) -> u32 {
    if x {
        return "text";
    }
    1
}

#[stage(Steps::GpuForward)]
async fn early_of_async(x: bool) -> Result<u32, String> {
    if x {
        return Ok("text");
    }
    Ok(1)
}

#[stage(Steps::GpuForward)]
fn extra_semicolon() -> u32 {
    1;
}

#[stage(Steps::GpuForward)]
async fn extra_semicolon_of_async() -> Result<u32, String> {
    Ok(1);
}

#[stage(Steps::GpuForward)]
fn question_mark() -> Result<u32, std::fmt::Error> {
    Ok("1".parse::<u32>()?)
}

#[stage(Steps::GpuForward)]
fn unknown_type() -> Unknown {
    1
}

#[stage(Steps::GpuForward)]
async fn not_enough() -> u32 {}

fn main() {}

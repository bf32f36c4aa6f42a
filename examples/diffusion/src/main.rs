//! A small diffusion model that draws handwritten digits, traced from prompt to picture.
//!
//! ```text
//! cargo run --release -p diffusion -- "a seven"
//! ```
//!
//! Read it in the order of a request's life: `cli` → `server` (queue, prompt, picture) → `device`
//! (the thread that owns the engine) → `gpu` or `cpu` (the model). `request` declares the stages that
//! the trace shows.

#![allow(unreachable_pub, reason = "a program has no public face")]

mod app;
mod cli;
mod cpu;
mod device;
mod engine;
#[cfg(test)]
mod golden;
mod gpu;
mod model;
mod noise;
mod picture;
mod progress;
mod prompt;
mod report;
mod request;
mod sampler;
mod server;
mod trace;
mod view;
mod weights;

use std::process::ExitCode;

use cli::Cli;

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(Ok(done)) => return done,
        Err(Err(mistake)) => return fail(&mistake.0, 2),
    };
    match app::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, error.exit_code()),
    }
}

fn fail(why: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("diffusion: {why}");
    ExitCode::from(code)
}

//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{Parser, value_parser};
use stagetrace::TraceState;

use crate::device::Choice;
use crate::request::GenerateRequest;

/// Draws a handwritten digit with a diffusion model on the GPU, and traces how
#[derive(Debug, Parser)]
#[command(version, after_help = "Example: diffusion --images 4 \"a seven\"")]
pub struct Cli {
    /// What to draw: one digit, such as "7", "a seven" or "the digit 7"
    #[arg(required = true, value_name = "PROMPT")]
    prompt: Vec<String>,

    /// Pictures of a request, drawn as one batch
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=64))]
    pub images: u32,

    /// Requests that are sent at once
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=10_000))]
    pub requests: u32,

    /// Denoise steps of a picture
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000))]
    pub steps: u32,

    /// How much the prompt counts: 0 not at all, 1 plainly, more exaggerates (up to 20)
    #[arg(long, default_value_t = 2.0, value_parser = guidance)]
    pub guidance: f32,

    /// Seed of the first request's noise; each further request has the next one
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(..=SEEDS))]
    pub seed: u64,

    /// Where to compute; auto is a GPU if there is one
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub device: Choice,

    /// Picture to write; with several requests, "digit-1.png", "digit-2.png" and so on
    #[arg(long, value_name = "FILE", default_value = "digit.png")]
    pub out: PathBuf,

    /// Weights to use instead of the bundled ones (safetensors)
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// Most detailed stage to trace: 0 none, 1 important, 2 normal, 3 detail
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u8).range(0..=3))]
    pub level: u8,

    /// Directory for the trace [default: traces]
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,

    /// Show the trace in a browser while it grows, and go on showing it until Ctrl-C
    #[arg(long)]
    pub view: bool,
}

/// The greatest seed: seeds are recorded, and OpenTelemetry's integers have a sign.
const SEEDS: u64 = i64::MAX as u64;

/// A command line that cannot be followed, in one line.
#[derive(Debug)]
pub struct UsageError(pub String);

impl Cli {
    /// The arguments of this process.
    ///
    /// `Err` is what to exit with at once: after `--help` and `--version`, which are printed here, or
    /// with a mistake that is to be told.
    pub fn read() -> Result<Self, Result<ExitCode, UsageError>> {
        Self::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                let _ = error.print(); // nobody is left to be told
                Ok(ExitCode::SUCCESS)
            }
            _ => Err(UsageError(one_line(&error))),
        })
    }

    /// The prompt, whether it came as one argument or as several.
    pub fn prompt(&self) -> String {
        self.prompt.join(" ")
    }

    /// Request number `index` of this command line.
    pub fn request(&self, index: u32, gpu_available: bool) -> GenerateRequest {
        GenerateRequest {
            id: format!("request-{}", index + 1),
            model: "digits".into(),
            images: self.images,
            steps: self.steps,
            guidance: self.guidance,
            seed: (self.seed + u64::from(index)) & SEEDS,
            gpu_available,
            prompt: self.prompt(),
            trace: TraceState::default(),
        }
    }

    /// Where the picture of request number `index` goes.
    pub fn picture(&self, index: u32) -> PathBuf {
        if self.requests == 1 {
            return self.out.clone();
        }
        let stem = self.out.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{stem}-{}", index + 1);
        let mut path = self.out.with_file_name(name);
        if let Some(extension) = self.out.extension() {
            path.set_extension(extension);
        }
        path
    }
}

fn guidance(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(weight) if (0.0..=20.0).contains(&weight) => Ok(weight),
        _ => Err("expected a number from 0 to 20".into()),
    }
}

/// The mistake, and the option that was perhaps meant; without usage and decoration.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mistake = text.split("\n\n").next().unwrap_or_default();
    let words = mistake.trim_start_matches("error: ").split_whitespace();
    let mistake = words.collect::<Vec<_>>().join(" ");
    match error.get(ContextKind::SuggestedArg) {
        Some(option) => format!("{mistake}: did you mean {option}?"),
        None => format!("{mistake} (--help tells more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cli(arguments: &[&str]) -> Result<Cli, String> {
        let arguments = ["diffusion"].iter().chain(arguments);
        Cli::try_parse_from(arguments).map_err(|error| one_line(&error))
    }

    #[test]
    fn a_prompt_may_be_several_arguments() {
        assert_eq!(cli(&["a", "seven"]).unwrap().prompt(), "a seven");
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        let mistakes: [(&[&str], &str); 6] = [
            (&["7", "--stepz", "3"], "unexpected argument '--stepz' found: did you mean --steps?"),
            (&["7", "--frob"], "unexpected argument '--frob' found (--help tells more)"),
            (
                &[],
                "the following required arguments were not provided: <PROMPT>... (--help tells more)",
            ),
            (
                &["7", "--steps", "0"],
                "invalid value '0' for '--steps <STEPS>': 0 is not in 1..=1000 (--help tells more)",
            ),
            (
                &["7", "--guidance", "nan"],
                "invalid value 'nan' for '--guidance <GUIDANCE>': expected a number from 0 to 20 (--help tells more)",
            ),
            (
                &["7", "--device", "tpu"],
                "invalid value 'tpu' for '--device <DEVICE>' [possible values: auto, gpu, cpu] (--help tells more)",
            ),
        ];
        for (arguments, text) in mistakes {
            assert_eq!(cli(arguments).unwrap_err(), text);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn each_request_has_a_seed_and_a_picture_of_its_own() {
        let cli = cli(&["7", "--requests", "3", "--seed", "5", "--out", "out/seven.png"]).unwrap();
        let seeds = [0, 1, 2].map(|index| cli.request(index, true).seed);
        assert_eq!(seeds, [5, 6, 7]);
        assert_eq!(cli.picture(1), PathBuf::from("out/seven-2.png"));
    }

    #[test]
    fn a_single_picture_goes_where_it_was_said() {
        assert_eq!(
            cli(&["7", "--out", "/dev/full"]).unwrap().picture(0),
            PathBuf::from("/dev/full")
        );
    }
}

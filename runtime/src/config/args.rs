//! The same settings from a command line, by `clap`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use stagetrace_wire::id::RunId;

use super::choice::{Choice, parse_choice};
use super::environment::parse_bytes;
use super::{MAX_MEMORY, MIN_MEMORY, Mapping, TraceConfig};

/// Command-line options for tracing, to be flattened into a program's own (feature `clap`, of
/// clap 4).
///
/// ```
/// use clap::Parser;
/// use stagetrace::{TraceArgs, TraceConfig};
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     trace: TraceArgs,
/// }
///
/// # fn main() -> Result<(), stagetrace::InitError> {
/// let args = Args::parse_from(["server", "--trace-level", "3"]);
/// let config = args.trace.apply(TraceConfig::from_env()?.service_name("server"));
/// # let _ = config;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Tracing")]
pub struct TraceArgs {
    /// Record nothing
    #[arg(long)]
    pub no_trace: bool,

    /// Directory of the runs
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,

    /// Run to join
    #[arg(long, value_name = "ID", value_parser = run_id)]
    pub trace_run_id: Option<String>,

    /// Most detailed level recorded: 0 off, 1 important, 2 normal, 3 detail
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub trace_level: Option<u8>,

    /// Name of this process within its run
    #[arg(long, value_name = "TEXT")]
    pub trace_label: Option<String>,

    /// Most memory for spans on their way out, as in 8MiB
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub trace_memory: Option<usize>,

    /// Where the mapped recording lies
    #[arg(long, value_name = "WHERE", value_parser = mapping())]
    pub trace_mapping: Option<Mapping>,
}

impl TraceArgs {
    /// The configuration, changed by the options that were given.
    pub fn apply(self, mut config: TraceConfig) -> TraceConfig {
        if self.no_trace {
            config = config.enabled(false);
        }
        if let Some(dir) = self.trace_dir {
            config = config.output_dir(dir);
        }
        if let Some(run_id) = self.trace_run_id {
            config = config.run_id(run_id);
        }
        if let Some(level) = self.trace_level {
            config = config.level(level);
        }
        if let Some(label) = self.trace_label {
            config = config.process_label(label);
        }
        if let Some(bytes) = self.trace_memory {
            config = config.memory_limit(bytes);
        }
        if let Some(mapping) = self.trace_mapping {
            config = config.mapping(mapping);
        }
        config
    }
}

fn run_id(text: &str) -> Result<String, String> {
    let run_id: Result<RunId, _> = text.parse();
    run_id.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn memory(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| (MIN_MEMORY..=MAX_MEMORY).contains(bytes));
    bytes.ok_or_else(|| "expected 1MiB to 32MiB".to_owned())
}

fn mapping() -> impl TypedValueParser<Value = Mapping> {
    let words = Mapping::WORDS.iter().map(|(word, _)| *word);
    PossibleValuesParser::new(words).try_map(|word| parse_choice(&word).ok_or("unknown"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        trace: TraceArgs,
    }

    fn parse(line: &str) -> Result<TraceArgs, clap::Error> {
        let words = ["program"].into_iter().chain(line.split_whitespace());
        Program::try_parse_from(words).map(|program| program.trace)
    }

    #[test]
    fn the_options_are_well_formed() {
        Program::command().debug_assert();
    }

    #[test]
    fn no_option_changes_nothing() {
        let config = TraceConfig::new().level(1).output_dir("runs");
        let args = parse("").expect("no option is needed");
        assert_eq!(args.apply(config.clone()), config);
    }

    #[test]
    fn each_option_beats_what_the_program_set_before() {
        let line = "--no-trace --trace-dir d --trace-run-id r --trace-level 3 --trace-label l \
                    --trace-memory 8MiB --trace-mapping run-dir";
        let args = parse(line).expect("every option is known");
        let expected = TraceConfig::new()
            .enabled(false)
            .output_dir("d")
            .run_id("r")
            .level(3)
            .process_label("l")
            .memory_limit(8 << 20)
            .mapping(Mapping::RunDir);
        assert_eq!(args.apply(TraceConfig::new().level(1).output_dir("runs")), expected);
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_name_of_its_option() {
        for (line, option) in [
            ("--trace-level 4", "--trace-level"),
            ("--trace-run-id a/b", "--trace-run-id"),
            ("--trace-memory 1KiB", "--trace-memory"),
            ("--trace-memory much", "--trace-memory"),
            ("--trace-mapping disk", "--trace-mapping"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(option), "{error}");
        }
    }
}

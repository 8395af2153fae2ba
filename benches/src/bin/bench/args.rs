//! The command line of `bench`.

use std::path::PathBuf;

use clap::Parser;
use pointwise::DType;
use regex_lite::Regex;

use crate::sets::Set;
use pointwise_cli::device::device_name;

/// Times the ops of pointwise beside a copy of the same bytes, and beside other libraries.
#[derive(Debug, Parser)]
#[command(
    name = "bench",
    version,
    infer_long_args = false,
    after_help = "Examples:\n  bench --set large --json ours.json\n  bench --op '^silu$' --dtype bf16\n  \
                  bench --from ours.json --peers peers.jsonl --figures figures\n\n\
                  Exit codes: 0 done, 1 the ops or the data were at fault, 2 the call was."
)]
pub(crate) struct Args {
    /// The device: auto (cuda if it is there, else the CPU), cpu, cuda, cuda:N, emulated (the kernels on the CPU,
    /// checked; slow) or emulated:80
    #[arg(long, default_value = "auto", value_parser = device_name)]
    pub(crate) device: String,
    /// Only ops whose name matches a regular expression, such as '^silu$'
    #[arg(long, value_name = "RE", value_parser = regex)]
    pub(crate) op: Option<Regex>,
    /// Only rows of an element type
    #[arg(long, value_name = "T")]
    pub(crate) dtype: Option<DType>,
    /// The rows; default: reference, with --from all that it has
    #[arg(long, value_enum)]
    pub(crate) set: Option<Set>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draw figures (SVG) into a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// Times of other libraries, made by benches/peers/peers.py, to hold ours against
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: Option<PathBuf>,
    /// Measure nothing: take the results of an earlier --json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "max_bytes"])]
    pub(crate) from: Option<PathBuf>,
    /// The clock that takes times on a GPU
    #[arg(long, value_enum, default_value_t = ClockSource::Events, conflicts_with = "from")]
    pub(crate) clock: ClockSource,
    /// CUPTI's library, for --clock cupti; by default the system finds it
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) libcupti: Option<PathBuf>,
    /// Shrink rows that move more bytes (of the set sizes: leave out); default: 16 MiB on the CPU, none on a GPU
    #[arg(long, value_name = "N", value_parser = bytes)]
    pub(crate) max_bytes: Option<u64>,
}

/// The values of `--clock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClockSource {
    /// CUDA events around each call
    Events,
    /// events, and after that CUPTI's records of what each kernel takes
    Cupti,
}

/// Refuses 0 bytes: there would be no tensors to time.
fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok().filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "must be a whole number of bytes, 1 or more, such as 16777216".to_owned())
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}

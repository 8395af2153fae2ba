//! Fuzzers: `fuzz [TARGET] --seconds N` runs targets and reports findings; `fuzz TARGET --seed S --case N` repeats one
//! case. Exit code 1 on findings.
//!
//! A case is made from its number and the seed alone. Cases run in a child process (`worker`), which the parent watches
//! (`supervisor`): an abort, a signal and a hang are findings, too, and the child is started again behind the case.

#![forbid(unsafe_code)]

mod case;
mod command;
mod compare;
mod config;
mod fusion;
mod library;
mod make;
mod planted;
mod random;
mod rope;
mod supervisor;
mod tuner;
mod worker;

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{Parser, ValueEnum};

use case::{Case, Outcome};

/// The target of a fuzzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Every op of the registries, on views of all kinds
    Library,
    /// Graphs of random ops as fused kernels
    Fusion,
    /// Calls of the rotary embedding
    Rope,
    /// RoPE's configurations, as JSON and through the builder
    Config,
    /// The tuner's file
    Tuner,
    /// The command on files and arguments
    Command,
    /// Faults on purpose, which must be found
    #[value(hide = true)]
    Planted,
}

impl Target {
    /// The targets of a run that names none.
    const ALL: [Target; 6] =
        [Target::Library, Target::Fusion, Target::Rope, Target::Config, Target::Tuner, Target::Command];

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self, case: &mut Case) -> Outcome {
        match self {
            Target::Library => library::run(case),
            Target::Fusion => fusion::run(case),
            Target::Rope => rope::run(case),
            Target::Config => config::run(case),
            Target::Tuner => tuner::run(case),
            Target::Command => command::run(case),
            Target::Planted => planted::run(case),
        }
    }
}

#[derive(Clone, Debug, Parser)]
#[command(name = "fuzz", about = "Runs the project's fuzzers; exit code 1 on findings")]
struct Arguments {
    /// The target to fuzz; without one, all in turn
    target: Option<Target>,
    /// How long each target runs
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// The seed of all cases; by default the clock's
    #[arg(long)]
    seed: Option<u64>,
    /// Run this case of a target alone
    #[arg(long, requires = "target")]
    case: Option<u64>,
    /// The device of `library`, `fusion` and `rope`: cpu, cuda, cuda:N or emulated (with the feature `emulator`)
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The address space that a case may use on the CPU, in MiB; 0 for no limit, which a sanitizer needs
    #[arg(long, default_value_t = 4096)]
    memory: u64,
    /// A case that takes more seconds is a finding
    #[arg(long, default_value_t = 10)]
    hang: u64,
    /// Run cases from this one on, in this process, and report to the parent
    #[arg(long, hide = true)]
    worker_from: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the targets. Returns true if there was no finding.
fn run(arguments: &Arguments) -> Result<bool> {
    let seed = arguments.seed.unwrap_or_else(clock);
    if let (Some(target), Some(from)) = (arguments.target, arguments.worker_from) {
        worker::run(arguments, target, seed, from)?;
        return Ok(true);
    }
    println!("seed {seed}");
    let chosen = arguments.target.map(|target| vec![target]);
    let mut clean = true;
    for target in chosen.unwrap_or_else(|| Target::ALL.to_vec()) {
        let report = supervisor::watch(arguments, target, seed)?;
        println!("{report}");
        clean &= report.findings.is_empty();
    }
    Ok(clean)
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // Short enough to be typed.
    since.as_millis() as u64 % 1_000_000_000
}

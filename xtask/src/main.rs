//! The project's own commands.

mod book;
mod build_ptx;
mod bundle;
mod compare;
mod cpu_loops;
mod deny;
#[path = "../../crates/pointwise/build/family.rs"]
mod family;
mod fuzz;
mod licences;
mod package;
mod pypi;
mod registers;
mod semver;
mod setup;
mod shell;
mod sizes;
mod spelling;
mod test;
mod tools;
mod wheel;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing, build and assemble the PTX, run every test
    Test {
        #[command(flatten)]
        install: Install,
    },
    /// Compile the family's kernels, check the PTX, assemble it with ptxas where there is one
    BuildPtx {
        /// Assemble for sm_100, too, which the test command leaves out
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        install: Install,
    },
    /// Build the book in `target/book`, with a page for each op, and check its links
    Book,
    /// Say which tools are there and what to do about the others
    Doctor,
    /// Gather test programs, command and benchmarks in `bundle/`, for a machine with nothing but a driver
    GpuBundle,
    /// Time every op and its peers in Python on this machine's GPU, join them and draw figures in `target/compare/`
    Compare {
        /// Arguments of benches/peers/compare.py, such as `--set reference`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the fuzzers: all targets in turn, or one; exit code 1 on findings
    Fuzz {
        /// Arguments of the program, such as `library --seconds 60 --seed 1`; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Read the assembly of the CPU executor: its loops must be vector code, without calls
    CpuLoops,
    /// Build a user's programs with and without the kernels, from nothing; say how large they are and how long it took
    Sizes,
    /// Check licences and sources of every dependency with cargo-deny
    Deny,
    /// Check the spelling of every file with typos
    Spelling {
        #[command(flatten)]
        install: Install,
    },
    /// Make the packages to publish in `dist/`, with the PTX inside, and try all that can be tried before the upload
    Package,
    /// Compare the public names of the crates with a release's, with cargo-semver-checks
    Semver {
        /// A tag or a commit; the newest tag of a version if it is left out
        baseline: Option<String>,
    },
    /// Build the Python package, install it in a virtual environment and test it there
    Wheel {
        /// Test it with PyTorch, too (downloads 0.5 GB the first time)
        #[arg(long)]
        torch: bool,
        /// Build it for another processor, such as `aarch64-unknown-linux-gnu`, and test nothing (downloads 0.1 GB the first
        /// time)
        #[arg(long, conflicts_with = "torch")]
        target: Option<String>,
    },
}

/// For commands that may install something.
#[derive(clap::Args)]
struct Install {
    /// Install what is missing without asking
    #[arg(long)]
    yes: bool,
}

impl Install {
    fn consent(&self) -> setup::Consent {
        if self.yes { setup::Consent::Given } else { setup::Consent::Ask }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not Debug, which adds a backtrace: the causes say all.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    match Arguments::parse().command {
        Command::Test { install } => test::run_all(install.consent()),
        Command::BuildPtx { all, install } => build_ptx::run(install.consent(), all),
        Command::Book => book::build(),
        Command::Doctor => {
            println!("{}", pointwise_build::doctor::report());
            Ok(())
        }
        Command::GpuBundle => bundle::run(),
        Command::Compare { arguments } => compare::run(&arguments),
        Command::Fuzz { arguments } => fuzz::run_by_hand(&arguments),
        Command::CpuLoops => cpu_loops::check(),
        Command::Sizes => sizes::run(),
        Command::Deny => deny::check(),
        Command::Spelling { install } => spelling::check(install.consent()),
        Command::Package => package::run(),
        Command::Semver { baseline } => semver::check(baseline),
        Command::Wheel { torch, target: None } => wheel::run(torch),
        Command::Wheel { target: Some(target), .. } => wheel::cross(&target),
    }
}

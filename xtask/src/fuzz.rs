//! `cargo xtask fuzz`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::build_ptx::target;
use crate::shell::{cargo, run};

/// Builds the fuzzers and the command, and runs them.
pub(crate) fn run_by_hand(arguments: &[String]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet", "-p", "fuzz", "-p", "pointwise-cli"]);
    if arguments.iter().any(|word| word.contains("emulated")) {
        build.args(["--features", "fuzz/emulator"]);
    }
    run(&mut build)?;
    run(Command::new(program()).args(arguments))
}

/// Runs each target for a few seconds, always on the same cases, with what `cargo test --workspace` has built.
pub(crate) fn run_shortly() -> Result<()> {
    run(Command::new(program()).args(["--seconds", "5", "--seed", "1"]))
}

fn program() -> PathBuf {
    target().join(format!("debug/fuzz{}", std::env::consts::EXE_SUFFIX))
}

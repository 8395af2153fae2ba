//! `cargo xtask fuzz`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::build_ptx::target;
use crate::shell::{Background, cargo, run};

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

/// The fuzzers, which run.
pub(crate) struct Running(Background);

/// Starts each target for a few seconds, in turn and always on the same cases, with what `cargo test --workspace` has built.
pub(crate) fn start() -> Result<Running> {
    let mut command = Command::new(program());
    Background::start(command.args(["--seconds", "5", "--seed", "1"]).stdout(Stdio::piped())).map(Running)
}

impl Running {
    /// Waits for them and shows what they found.
    pub(crate) fn end(mut self) -> Result<()> {
        let mut said = String::new();
        if let Some(mut text) = self.0.child.stdout.take() {
            text.read_to_string(&mut said).context("reading what the fuzzers say")?;
        }
        print!("{said}");
        self.0.end()
    }
}

fn program() -> PathBuf {
    target().join(format!("debug/fuzz{}", std::env::consts::EXE_SUFFIX))
}

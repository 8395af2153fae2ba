//! `cargo xtask compare`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::build_ptx::target;
use crate::shell::{self, cargo, root};

/// The script that times both sides and joins them; the bundle has it, too.
const SCRIPT: &str = "benches/peers/compare.py";

/// Builds the program `bench` and hands it to the script, with its other arguments. It first checks that there are
/// Python, PyTorch and a GPU.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let python = python()?;
    let script = || {
        let mut command = Command::new(&python);
        command.current_dir(root()).arg(SCRIPT).args(arguments);
        command
    };
    shell::run(script().arg("--check"))?;
    if arguments.iter().any(|argument| argument == "--check") {
        return Ok(());
    }
    shell::run(cargo().args(["build", "--release", "-p", "benches", "--bin", "bench"]))?;
    let program = target().join("release").join(format!("bench{}", std::env::consts::EXE_SUFFIX));
    let mut command = script();
    command.arg("--bench").arg(&program);
    if !arguments.iter().any(|argument| argument == "--out" || argument.starts_with("--out=")) {
        command.arg("--out").arg(results());
    }
    shell::run(&mut command)
}

/// Folder of the results, ignored by git.
fn results() -> PathBuf {
    target().join("compare")
}

/// The first Python 3: an active virtual environment's, else the system's.
fn python() -> Result<PathBuf> {
    let environment = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python3"));
    let is_there = |python: &PathBuf| Command::new(python).arg("--version").output().is_ok_and(|o| o.status.success());
    match environment.into_iter().chain(["python3".into(), "python".into()]).find(is_there) {
        Some(python) => Ok(python),
        None => {
            bail!("no python3 here: install Python 3.10 or newer (Debian: apt-get install python3-pip), then PyTorch")
        }
    }
}

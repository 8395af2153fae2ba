//! Programs from crates.io, of pinned versions. Each is built once, in `target/tools`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::build_ptx::target;
use crate::shell::{Background, cargo, output, run};

/// A program of the package of its name.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`.
    pub(crate) options: &'static [&'static str],
}

impl Tool {
    /// The program, which is installed if it is not there.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        if let Some(found) = self.installed() {
            return Ok(found);
        }
        run(&mut self.install()).with_context(|| format!("{} {} cannot be installed", self.name, self.version))?;
        self.installed().with_context(|| format!("{} is not {} {}", self.own().display(), self.name, self.version))
    }

    /// Starts to install it where it is not there.
    pub(crate) fn start_install(&self) -> Result<Option<Background>> {
        self.installed().is_none().then(|| Background::start(&mut self.install())).transpose()
    }

    /// The path of the program that is installed here.
    fn own(&self) -> PathBuf {
        target().join("tools/bin").join(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX))
    }

    fn installed(&self) -> Option<PathBuf> {
        let is_right = |program: &PathBuf| {
            // Some say `v1.2.3`.
            let said = output(Command::new(program).arg("--version")).unwrap_or_default();
            said.split_whitespace().next_back().is_some_and(|last| last.trim_start_matches('v') == self.version)
        };
        [PathBuf::from(self.name), self.own()].into_iter().find(is_right)
    }

    fn install(&self) -> Command {
        let mut command = cargo();
        // Not optimised: each runs for seconds.
        command.args(["install", self.name, "--version", self.version, "--locked", "--debug", "--quiet"]);
        command.args(self.options).arg("--root").arg(target().join("tools"));
        command
    }
}

//! Installing what the tests need and a fresh machine lacks: a compiler for device code, and ptxas. What is installed is
//! said first; at a terminal a person is asked.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use pointwise_build::{Error, ptxas, toolchain};

use crate::pypi::Wheel;
use crate::shell::run;

/// Debian's packages with a compiler for device code.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// NVIDIA's assembler.
const PTXAS: Wheel = Wheel { requirement: include_str!("../ptxas.txt"), what: "40 MB, for ptxas" };

/// Who is asked before something is installed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consent {
    /// A person at a terminal. Without a terminal, the system is changed by root alone.
    Ask,
    /// Nobody: `--yes`.
    Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Go,
    AskFirst,
    /// There is nobody to ask, and it takes rights that the caller does not have.
    Refuse,
}

impl Consent {
    /// Decides if the setup goes on. `needs_sudo`: it takes another user's rights.
    fn answer(self, is_terminal: bool, needs_sudo: bool) -> Answer {
        match self {
            Consent::Given => Answer::Go,
            Consent::Ask if is_terminal => Answer::AskFirst,
            Consent::Ask if needs_sudo => Answer::Refuse,
            Consent::Ask => Answer::Go,
        }
    }

    /// Says what is to be installed, and asks where somebody is there to answer.
    pub(crate) fn to(self, what: &str, needs_sudo: bool) -> Result<()> {
        println!("to be installed: {what}");
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        match self.answer(is_terminal, needs_sudo) {
            Answer::Go => Ok(()),
            Answer::Refuse => bail!("that takes root's rights, and there is no terminal to ask at: give --yes"),
            Answer::AskFirst => {
                print!("go on? [y/N] ");
                io::stdout().flush()?;
                let mut line = String::new();
                io::stdin().read_line(&mut line)?;
                if is_yes(&line) { Ok(()) } else { bail!("not installed") }
            }
        }
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

/// A compiler for device code: found, or installed with Debian's package manager.
pub(crate) fn device_toolchain(consent: Consent) -> Result<()> {
    match toolchain::find() {
        Ok(found) => {
            println!("device compiler: {found}");
            return Ok(());
        }
        // If a named compiler does not serve or the search is switched off, the user must settle it.
        Err(error @ Error::SwitchedOff) => bail!("{error}; the tests need one: unset {}", toolchain::RUSTC_VARIABLE),
        Err(error) if !error.is_absence() => return Err(error.into()),
        Err(error) => println!("{error}"),
    }
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!("there is no apt-get here to install one with; see above for what to install");
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let by = if is_root { "apt-get" } else { "sudo apt-get" };
    consent.to(&format!("Debian's packages {} (by {by})", PACKAGES.join(" and ")), !is_root)?;
    apt(is_root, &["update", "-qq"])?;
    apt(is_root, &[&["install", "-y", "-qq", "--no-install-recommends"], &PACKAGES[..]].concat())?;
    println!("device compiler: {}", toolchain::find()?);
    Ok(())
}

/// `apt-get`, as root: by `sudo` for anybody else.
fn apt(is_root: bool, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.arg("apt-get");
    }
    run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// ptxas: found, or taken from PyPI's `nvidia-cuda-nvcc`. Without Python, network or consent there is none, and the PTX
/// stays unassembled.
pub(crate) fn assembler(consent: Consent) -> Option<ptxas::Ptxas> {
    if let Ok(found) = ptxas::find() {
        return Some(found);
    }
    let program = format!("ptxas{}", env::consts::EXE_SUFFIX);
    let binary = match PTXAS.program(consent, |folder| ptxas::in_packages(&folder.join("nvidia"), &program).pop()) {
        Ok(binary) => binary,
        Err(error) => {
            println!("no ptxas, so the PTX will not be assembled: {error:#}");
            return None;
        }
    };
    // SAFETY: this program has one thread as yet.
    unsafe { env::set_var(ptxas::PTXAS_VARIABLE, &binary) };
    match ptxas::find() {
        Ok(found) => Some(found),
        Err(error) => {
            println!("{error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_installs_unasked() {
        let (terminal, sudo) = (true, true);
        assert_eq!(Consent::Ask.answer(terminal, sudo), Answer::AskFirst);
        assert_eq!(Consent::Ask.answer(terminal, !sudo), Answer::AskFirst);
        assert_eq!(Consent::Ask.answer(!terminal, sudo), Answer::Refuse);
        assert_eq!(Consent::Ask.answer(!terminal, !sudo), Answer::Go);
        assert_eq!(Consent::Given.answer(!terminal, sudo), Answer::Go);
        assert!(is_yes("y\n") && is_yes(" Yes ") && !is_yes("") && !is_yes("n\n") && !is_yes("yo"));
    }
}

//! `cargo xtask spelling`: the program typos reads every file of the repository; `typos.toml` has the words it must know.

use std::process::Command;

use anyhow::Result;

use crate::pypi::Wheel;
use crate::setup::Consent;
use crate::shell::{root, run};

const TYPOS: Wheel = Wheel { requirement: include_str!("../typos.txt"), what: "8 MB, checks spelling" };

pub(crate) fn check(consent: Consent) -> Result<()> {
    let typos = TYPOS.program(consent, |folder| {
        let folders = std::fs::read_dir(folder).ok()?.flatten();
        folders.map(|entry| entry.path().join("scripts/typos")).find(|program| program.is_file())
    })?;
    run(Command::new(typos).current_dir(root()))
}

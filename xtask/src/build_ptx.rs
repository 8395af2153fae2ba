//! `cargo xtask build-ptx`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use pointwise_build::{Artifacts, Sm, TargetArtifacts, ptxas};

use crate::family;
use crate::registers;
use crate::setup;
use crate::shell::root;

/// The architectures that the PTX is assembled for: its own targets.
const ASSEMBLE: [Sm; 2] = [Sm(80), Sm(90)];
/// A newer architecture, which takes the PTX of sm_90.
const NEWER: Sm = Sm(100);

/// Compiles, checks and packs the kernels, and assembles them; with `newer` for a newer target, too.
pub(crate) fn run(consent: setup::Consent, newer: bool) -> Result<()> {
    let start = Instant::now();
    let artifacts = family::kernels(root().join("gpu-kernels")).target_dir(target().join("ptx")).compile()?;
    let folder = target().join("ptx-embedded");
    if folder.exists() {
        // The folder has another set of targets, whose files are out of date.
        std::fs::remove_dir_all(&folder)?;
    }
    artifacts.write(&folder)?;
    println!(
        "{} entries for {}, {:.2} MB of PTX, {:.2} MB embedded, in {:.1} s; every check passed",
        artifacts.symbols().count(),
        artifacts.targets.iter().map(|target| target.sm.to_string()).collect::<Vec<_>>().join(" and "),
        megabytes(artifacts.targets.iter().flat_map(TargetArtifacts::own).map(|(_, it)| it.entry.len() as u64).sum()),
        megabytes(size(&folder)?),
        start.elapsed().as_secs_f64(),
    );
    match setup::assembler(consent) {
        Some(ptxas) => assemble(&artifacts, &ptxas, newer),
        None => Ok(()),
    }
}

/// Assembles everything; spills and stack are errors.
fn assemble(artifacts: &Artifacts, ptxas: &ptxas::Ptxas, newer: bool) -> Result<()> {
    println!("{ptxas}");
    for sm in ASSEMBLE.into_iter().chain(Some(NEWER).filter(|_| newer)) {
        let start = Instant::now();
        let figures = artifacts.assemble(ptxas, sm)?;
        let most = figures.iter().max_by_key(|entry| entry.registers);
        ptxas::deny_spills(&figures, sm)?;
        println!(
            "{sm}: {} entries, {:.2} MB of machine code, no spills, no stack, at most {} registers ({}), in {:.1} s",
            figures.len(),
            megabytes(figures.iter().map(|entry| entry.code).sum()),
            most.map_or(0, |entry| entry.registers),
            most.map_or("", |entry| entry.name.as_str()),
            start.elapsed().as_secs_f64(),
        );
        if sm == registers::TARGET {
            let ptxas = ptxas.version.as_str();
            registers::compare(&format!("{}, ptxas {ptxas}", artifacts.note), &figures)?;
        }
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Bytes of the files in a folder.
pub(crate) fn size(folder: &std::path::Path) -> Result<u64> {
    let mut total = 0;
    for file in std::fs::read_dir(folder)? {
        total += file?.metadata()?.len();
    }
    Ok(total)
}

/// Cargo's target directory, which this program lies in: TARGET/PROFILE/xtask.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(2).map_or_else(|| root().join("target"), PathBuf::from)
}

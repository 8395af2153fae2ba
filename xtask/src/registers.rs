//! `gpu-kernels/registers.txt`: the registers and bytes of machine code of every entry, so that a review sees what a
//! change costs.
//!
//! The first line names compiler and assembler. With others the figures are others, and nothing is compared.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};
use pointwise_build::Sm;
use pointwise_build::ptxas::Figures;

use crate::shell::root;

const FILE: &str = "gpu-kernels/registers.txt";
/// The target whose figures are kept: the newest that there are entries for.
pub(crate) const TARGET: Sm = Sm(90);
/// The most lines of differences that are shown.
const SHOWN: usize = 20;

/// Compares figures with the file, or writes it where `POINTWISE_BLESS` is set.
///
/// # Errors
/// The figures differ, by the same tools; the file cannot be read or written.
pub(crate) fn compare(tools: &str, figures: &[Figures]) -> Result<()> {
    let path = root().join(FILE);
    let now = text(tools, figures);
    if std::env::var_os("POINTWISE_BLESS").is_some() {
        fs::write(&path, now).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{FILE}: written");
        return Ok(());
    }
    let before = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if before.lines().next() != now.lines().next() {
        println!("{FILE} is of other tools, and not compared: {}", before.lines().next().unwrap_or_default());
        return Ok(());
    }
    let differences = differences(&before, &now);
    if differences.is_empty() {
        println!("{FILE}: the same");
        return Ok(());
    }
    bail!(
        "{} line(s) of {FILE} are out of date; if that is meant, run `POINTWISE_BLESS=1 cargo xtask build-ptx` and commit \
         the file:\n{}",
        differences.len(),
        differences[..differences.len().min(SHOWN)].join("\n")
    )
}

/// The file: a line for each entry, with registers and bytes of code.
fn text(tools: &str, figures: &[Figures]) -> String {
    let mut lines: Vec<String> =
        figures.iter().map(|entry| format!("{} {}/{}\n", entry.name, entry.registers, entry.code)).collect();
    lines.sort_unstable();
    format!("# {TARGET}, {tools}. Entries as NAME REGISTERS/BYTES.\n{}", lines.concat())
}

/// The lines that differ, as a diff has them.
fn differences(before: &str, now: &str) -> Vec<String> {
    let lines = |text: &str| -> BTreeSet<String> { text.lines().skip(1).map(str::to_owned).collect() };
    let (before, now) = (lines(before), lines(now));
    // The old line of an entry is before its new one.
    let mut differences: Vec<_> = before.symmetric_difference(&now).collect();
    differences.sort_by_key(|&line| (line.split(' ').next(), !before.contains(line)));
    differences.iter().map(|&line| format!("{} {line}", if before.contains(line) { '-' } else { '+' })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown() {
        let before = "# tools\na_flat 16/100\nb_flat 16/100\nc_flat 1/2\n";
        let now = "# tools\na_flat 16/100\nb_flat 17/100\nd_flat 3/4\n";
        let lines = differences(before, now);
        assert_eq!(lines, ["- b_flat 16/100", "+ b_flat 17/100", "- c_flat 1/2", "+ d_flat 3/4"]);
        assert!(differences(before, before).is_empty());
    }
}

//! `gpu-kernels/registers.txt`: the registers and bytes of machine code of every entry, so that a review sees what a
//! change costs.
//!
//! The first line names compiler and assembler. With others the figures are others, and nothing is compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use pointwise_build::Sm;
use pointwise_build::ptxas::Figures;
use pointwise_core::DType;

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

/// The file: a line for each op and element type, of its entries with registers and bytes of code.
fn text(tools: &str, figures: &[Figures]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    for entry in figures {
        let (row, variant) = split(&entry.name);
        rows.entry(row).or_default().insert(variant, format!("{}/{}", entry.registers, entry.code));
    }
    let mut text = format!("# {TARGET}, {tools}. Entries as VARIANT REGISTERS/BYTES.\n");
    for (row, entries) in rows {
        let entries: Vec<String> = entries.iter().map(|(variant, figures)| format!("{variant} {figures}")).collect();
        let _ = writeln!(text, "{row}: {}", entries.join(", "));
    }
    text
}

/// An entry's name as op and element type, and the variant behind them.
fn split(name: &str) -> (&str, &str) {
    let ends = name.match_indices('_').map(|(at, _)| at);
    let last =
        ends.rev().find(|&at| name[..at].rsplit('_').next().is_some_and(|word| DType::from_name(word).is_some()));
    last.map_or((name, "entry"), |at| (&name[..at], &name[at + 1..]))
}

/// The lines that differ, as a diff has them.
fn differences(before: &str, now: &str) -> Vec<String> {
    let rows = |text: &'_ str| -> BTreeMap<String, String> {
        let pairs = text.lines().skip(1).filter_map(|line| line.split_once(": "));
        pairs.map(|(row, entries)| (row.to_owned(), entries.to_owned())).collect()
    };
    let (before, now) = (rows(before), rows(now));
    let mut lines = Vec::new();
    for (row, entries) in &before {
        match now.get(row) {
            Some(other) if other == entries => {}
            Some(other) => lines.push(format!("- {row}: {entries}\n+ {row}: {other}")),
            None => lines.push(format!("- {row}: {entries}")),
        }
    }
    let new = now.iter().filter(|(row, _)| !before.contains_key(*row));
    lines.extend(new.map(|(row, entries)| format!("+ {row}: {entries}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_behind_the_element_type() {
        assert_eq!(split("unary_round_decimals_f32_register_copy"), ("unary_round_decimals_f32", "register_copy"));
        assert_eq!(split("convert_f32_f8e4m3_flat"), ("convert_f32_f8e4m3", "flat"));
        assert_eq!(split("binary_lookup_pairs_flat"), ("binary_lookup_pairs_flat", "entry"));
    }

    #[test]
    fn what_differs_is_shown() {
        let before = "# tools\na: flat 16/100\nb: flat 16/100\nc: flat 1/2\n";
        let now = "# tools\na: flat 16/100\nb: flat 17/100\nd: flat 3/4\n";
        let lines = differences(before, now);
        assert_eq!(lines, ["- b: flat 16/100\n+ b: flat 17/100", "- c: flat 1/2", "+ d: flat 3/4"]);
        assert!(differences(before, before).is_empty());
    }
}

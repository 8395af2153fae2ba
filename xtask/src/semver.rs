//! `cargo xtask semver`: compares the public names of the crates with those of a release, by cargo-semver-checks.

use std::process::Command;

use anyhow::{Context as _, Result};
use pointwise_build::toolchain;

use crate::package::CRATES;
use crate::shell::{output, root, run};
use crate::tools::Tool;

const SEMVER_CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0", options: &[] };

/// Crates without an API to keep: a macro, which the tool cannot read, and the library of the command.
const WITHOUT: [&str; 2] = ["pointwise-macros", "pointwise-cli"];

/// Compares with a commit or a tag: the newest tag of a version, if none is given.
pub(crate) fn check(baseline: Option<String>) -> Result<()> {
    let Some(baseline) = baseline.map_or_else(newest_tag, |given| Ok(Some(given)))? else {
        println!("no tag `v*`: there is no release to compare with");
        return Ok(());
    };
    let program = SEMVER_CHECKS.program()?;
    let mut command = Command::new(program);
    command.current_dir(root()).args(["semver-checks", "--default-features", "--baseline-rev", &baseline]);
    command.args(CRATES.iter().filter(|name| !WITHOUT.contains(name)).flat_map(|name| ["--package", name]));
    // Names are the same with kernels and without.
    run(command.env(toolchain::RUSTC_VARIABLE, "none"))
}

/// The newest tag of a version.
fn newest_tag() -> Result<Option<String>> {
    let mut git = Command::new("git");
    let tags = output(git.current_dir(root()).args(["tag", "--list", "v*", "--sort=-version:refname"]));
    Ok(tags.context("cannot list the tags")?.lines().next().map(str::to_owned))
}

//! `cargo xtask compare`.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell::{self, cargo, root};

/// Folder of the results, ignored by git.
const FOLDER: &str = "target/compare";

/// The commands that `docs/bench.md` names, one after another: the GPU serves one at a time.
pub(crate) fn run() -> Result<()> {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = |name: &str| format!("{FOLDER}/{name}");
    let (ours, peers) = (file("ours.json"), file("peers.jsonl"));
    bench(&["--device", "cuda", "--set", "all", "--json", &ours])?;
    let mut python = Command::new("python3");
    python.current_dir(root()).args(["benches/peers/peers.py", "--set", "all", "--out", &peers]);
    shell::run(&mut python)?;
    bench(&["--from", &ours, "--peers", &peers, "--json", &file("joined.json"), "--figures", &file("figures")])
}

fn bench(arguments: &[&str]) -> Result<()> {
    shell::run(cargo().args(["run", "--release", "-p", "pointwise-cli", "--", "bench"]).args(arguments))
}

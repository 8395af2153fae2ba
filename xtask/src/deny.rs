//! `cargo xtask deny`: checks licences and sources of third-party code, and what must not be depended on, by cargo-deny.
//! `deny.toml` has the rules.

use std::process::Command;

use anyhow::Result;

use crate::shell::{root, run};
use crate::tools::Tool;

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", options: &[] };

/// The workspaces of the repository: folders of their manifests.
const WORKSPACES: [&str; 3] = ["", "gpu-kernels", "examples/candle-model"];

/// Checks every dependency of every workspace, also for other systems and for tests.
pub(crate) fn check() -> Result<()> {
    let deny = DENY.program()?;
    for folder in WORKSPACES {
        let mut command = Command::new(&deny);
        command.current_dir(root()).args(["--locked", "--config", "deny.toml", "--manifest-path"]);
        // Without advisories: they are for a machine that may read GitHub at any time.
        run(command.arg(root().join(folder).join("Cargo.toml")).args(["check", "bans", "licenses", "sources"]))?;
    }
    Ok(())
}

//! `cargo xtask test`.

use std::time::Instant;

use anyhow::Result;

use crate::build_ptx::target;
use crate::shell::{cargo, run};
use crate::{build_ptx, cpu_loops, fuzz, setup};

pub(crate) fn run_all(consent: setup::Consent) -> Result<()> {
    let start = Instant::now();
    setup::device_toolchain(consent)?;
    build_ptx::run(consent)?;
    run(cargo().args(["test", "--workspace"]).env("POINTWISE_KERNELS", "required"))?;
    // In the same target directory, where the family's kernels are compiled already.
    run(cargo().args(["test", "--workspace", "--manifest-path", "examples/Cargo.toml", "--target-dir"]).arg(target()))?;
    fuzz::run_shortly()?;
    cpu_loops::check()?;
    println!("everything passed, in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

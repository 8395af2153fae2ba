//! `cargo xtask test`.

use std::time::Instant;

use anyhow::Result;

use crate::shell::{cargo, run};
use crate::{build_ptx, setup};

pub(crate) fn run_all() -> Result<()> {
    let start = Instant::now();
    setup::device_toolchain()?;
    build_ptx::run()?;
    run(cargo().args(["test", "--workspace"]))?;
    run(cargo().args(["test", "--manifest-path", "examples/custom-op/Cargo.toml"]))?;
    println!("everything passed, in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

//! `cargo xtask test`.

use std::time::Instant;

use anyhow::Result;

use crate::shell::{cargo, run};
use crate::{build_ptx, cpu_loops, setup};

pub(crate) fn run_all(consent: setup::Consent) -> Result<()> {
    let start = Instant::now();
    setup::device_toolchain(consent)?;
    build_ptx::run(consent)?;
    run(cargo().args(["test", "--workspace"]).env("POINTWISE_KERNELS", "required"))?;
    for example in ["custom-op", "fused-op"] {
        run(cargo().args(["test", "--manifest-path", &format!("examples/{example}/Cargo.toml")]))?;
    }
    cpu_loops::check()?;
    println!("everything passed, in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

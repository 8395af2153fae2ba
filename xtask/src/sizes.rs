//! `cargo xtask sizes`: what a user of the host crate pays for the kernels, in bytes and in time to build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use pointwise_build::toolchain;

use crate::build_ptx::{size, target};
use crate::family;
use crate::shell::{cargo, root, run as run_command};

/// A user's programs, each a little more than the one before.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("empty", "a program that does nothing", "fn main() {}\n"),
    (
        "one",
        "one op: `ops::silu`",
        "use pointwise::{Device, Tensor, ops};\n\nfn main() -> pointwise::Result<()> {\n    \
         let x = Tensor::from_slice(&Device::best()?, &[-1.0_f32, 0.0, 2.0], [3])?;\n    \
         println!(\"{:?}\", ops::silu(&x)?.to_vec::<f32>()?);\n    Ok(())\n}\n",
    ),
    (
        "all",
        "every op of one operand, by name",
        "use pointwise::{Device, Tensor};\n\nfn main() -> pointwise::Result<()> {\n    \
         let x = Tensor::from_slice(&Device::best()?, &[-1.0_f32, 0.0, 2.0], [3])?;\n    \
         for op in pointwise::info::all().filter(|op| op.info.is_unary() && op.info.supports(pointwise::DType::F32)) {\n        \
         println!(\"{} {:?}\", op.info.name, op.unary_with(&[]).run(&x)?.to_bytes()?);\n    }\n    Ok(())\n}\n",
    ),
];

/// A build from nothing.
struct Built {
    seconds: f64,
    /// Bytes of the programs, in their order.
    programs: Vec<u64>,
}

pub(crate) fn run() -> Result<()> {
    toolchain::find().context("the kernels need a compiler for device code: see `cargo xtask doctor`")?;
    let folder = target().join("sizes");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let user = folder.join("user");
    write_user(&user)?;
    // A download is not part of a build.
    run_command(in_user(&user).arg("fetch"))?;
    let without = build(&user, &folder.join("without"), false)?;
    let with = build(&user, &folder.join("with"), true)?;
    let kernels = family::kernels(root().join("gpu-kernels")).target_dir(folder.join("with/ptx")).compile()?;
    let embedded = folder.join("embedded");
    kernels.write(&embedded)?;
    let bytes = size(&embedded)?;

    println!("\n| | with kernels | without |\n|---|---|---|");
    println!("| embedded kernels, {} entries | {} | |", kernels.symbols().count(), megabytes(bytes));
    for (at, (_, what, _)) in PROGRAMS.iter().enumerate() {
        let [with, without] = [&with, &without].map(|built| megabytes(built.programs[at]));
        println!("| {what}; release, stripped | {with} | {without} |");
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let [with, without] = [with.seconds, without.seconds];
    println!(
        "| `cargo build --release` of `pointwise` from nothing, {threads} threads | {with:.0} s | {without:.0} s |"
    );
    Ok(())
}

/// A package with these programs that depends on the host crate, with the versions of the workspace.
fn write_user(folder: &Path) -> Result<()> {
    let programs = folder.join("src/bin");
    fs::create_dir_all(&programs).with_context(|| format!("cannot make {}", programs.display()))?;
    let path = root().join("crates/pointwise");
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         pointwise = {{ path = {path:?} }}\n\n[profile.release]\nstrip = true\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    for (name, _, source) in PROGRAMS {
        fs::write(programs.join(name).with_extension("rs"), source)?;
    }
    Ok(())
}

fn in_user(folder: &Path) -> Command {
    let mut command = cargo();
    command.current_dir(folder);
    command
}

/// Builds the host crate alone, which is timed, then the programs.
fn build(user: &Path, target_dir: &Path, with_kernels: bool) -> Result<Built> {
    let build = |arguments: &[&str]| {
        let mut command = in_user(user);
        command.args(["build", "--release", "--quiet"]).args(arguments).arg("--target-dir").arg(target_dir);
        if !with_kernels {
            command.env(toolchain::RUSTC_VARIABLE, "none");
        }
        run_command(&mut command)
    };
    let start = Instant::now();
    build(&["--package", "pointwise"])?;
    let seconds = start.elapsed().as_secs_f64();
    build(&["--bins"])?;
    let program =
        |name: &str| -> PathBuf { target_dir.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX)) };
    let bytes = |(name, _, _): &(&str, &str, &str)| {
        let path = program(name);
        Ok(fs::metadata(&path).with_context(|| format!("no program {}", path.display()))?.len())
    };
    Ok(Built { seconds, programs: PROGRAMS.iter().map(bytes).collect::<Result<_>>()? })
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

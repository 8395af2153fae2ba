//! `cargo xtask package`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pointwise_build::toolchain;

use crate::shell::{cargo, root, run as run_command};
use crate::{build_ptx, family, licences};

/// The crates to publish, each after those it depends on.
const CRATES: [&str; 10] = [
    "pointwise-core",
    "pointwise-macros",
    "pointwise-device",
    "pointwise-ptx",
    "pointwise-build",
    "pointwise-emulator",
    "pointwise",
    "pointwise-testkit",
    "pointwise-torch",
    "pointwise-cli",
];

const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// crates.io takes no larger file.
const LARGEST: u64 = 10 * 1024 * 1024;

/// The trial's program: an op on the CPU, and the kernels that came with the package.
const TRIAL: &str = r#"
use pointwise::{Device, Tensor, ops, embed::embedded};
use {pointwise_build as _, pointwise_cli as _, pointwise_core as _, pointwise_device as _, pointwise_testkit as _};

fn main() -> pointwise::Result<()> {
    let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 0.0, 2.0], [3])?;
    let y = ops::silu(&x)?.to_vec::<f32>()?;
    let exact = [-0.268_941_43, 0.0, 1.761_594_2];
    assert!(y.iter().zip(exact).all(|(y, exact)| (y - exact).abs() < 1e-6), "{y:?}");
    let entries = embedded().entries().count();
    assert!(entries > 0 && !embedded().targets().is_empty(), "no kernels: {}", embedded().note());
    for sm in embedded().targets() {
        assert!(embedded().entries().all(|symbol| embedded().ptx(symbol, sm).is_some()), "damaged PTX for sm_{sm}");
    }
    println!("silu {y:?}; {entries} kernels for {:?}, compiled by {}", embedded().targets(), embedded().note());
    Ok(())
}
"#;

pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let dist = root().join("dist");
    empty(&dist)?;
    let work = std::env::temp_dir().join(format!("pointwise-package-{}", std::process::id()));
    empty(&work)?;
    let made = package(&work, &dist).and_then(|()| try_out(&work.join("trial"), &dist));
    // The temporary files are of use only for as long as this runs; what went wrong matters more than a failure here.
    let removed = fs::remove_dir_all(&work);
    made?;
    removed.with_context(|| format!("cannot remove {}", work.display()))?;
    println!("packed and tried, in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Writes the `.crate` files to `dist`, from a copy of the workspace: kernels and licences are added to the packages
/// without a trace in the sources.
fn package(work: &Path, dist: &Path) -> Result<()> {
    let stage = work.join("stage");
    for name in CRATES {
        let folder = stage.join("crates").join(name);
        copy(&root().join("crates").join(name), &folder)?;
        for licence in LICENCES {
            copy(&root().join(licence), &folder.join(licence))?;
        }
    }
    // For whoever hands the built command on. The package itself is source, without anybody else's code.
    write(
        &stage.join("crates/pointwise-cli").join(licences::FILE),
        &licences::notices("", &["pointwise-cli"], "", false)?,
    )?;
    // The PTX in this one has code of the packages that the kernels use.
    write(
        &stage.join("crates/pointwise").join(licences::FILE),
        &licences::notices("gpu-kernels", &["gpu-kernels"], "", false)?,
    )?;
    copy(&root().join("Cargo.lock"), &stage.join("Cargo.lock"))?;
    let manifest = read(&root().join("Cargo.toml"))?;
    // A member of the workspace stands in a line of its own.
    let is_member = |line: &str| line.starts_with('"') && line.ends_with("\",");
    let is_published = |line: &&str| !is_member(line.trim()) || line.contains("\"crates/");
    let manifest: Vec<&str> = manifest.lines().filter(is_published).collect();
    write(&stage.join("Cargo.toml"), &manifest.join("\n"))?;

    let kernels = family::kernels(root().join("gpu-kernels")).target_dir(build_ptx::target().join("ptx"));
    kernels.compile()?.write(&stage.join("crates/pointwise/prebuilt"))?;

    let target = work.join("target");
    let mut command = cargo();
    command.current_dir(&stage).args(["package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir"]);
    run_command(command.arg(&target).args(CRATES.iter().flat_map(|name| ["--package", name])))?;
    for name in CRATES {
        let made = packed(&target.join("package"), name)?;
        let file = made.file_name().unwrap_or_default().to_string_lossy();
        let size = fs::copy(&made, dist.join(&*file)).with_context(|| format!("cannot copy {}", made.display()))?;
        println!("dist/{file}: {:.1} kB", size as f64 / 1e3);
        if size > LARGEST {
            bail!("{file} has {size} bytes, and crates.io takes {LARGEST}");
        }
    }
    Ok(())
}

/// Builds and runs a project that depends on the packages, without a compiler for device code.
fn try_out(folder: &Path, dist: &Path) -> Result<()> {
    let mut dependencies = String::new();
    let mut patches = String::new();
    for name in CRATES {
        let file = packed(dist, name)?;
        fs::create_dir_all(folder)?;
        run_command(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(folder))?;
        // A package unpacks to a folder of its own name: NAME-VERSION.
        let unpacked = file.file_stem().unwrap_or_default().to_string_lossy();
        let notices = ["pointwise", "pointwise-cli"].contains(&name).then_some(licences::FILE);
        for licence in LICENCES.into_iter().chain(notices) {
            read(&folder.join(&*unpacked).join(licence))?;
        }
        dependencies += &format!("{name} = {:?}\n", unpacked.trim_start_matches(name).trim_start_matches('-'));
        patches += &format!("{name} = {{ path = {unpacked:?} }}\n");
    }
    let manifest = format!(
        "[package]\nname = \"trial\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\
         [patch.crates-io]\n{patches}\n[workspace]\n"
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("src/main.rs"), TRIAL)?;
    let mut command = cargo();
    command.current_dir(folder).args(["run", "--quiet", "--target-dir"]).arg(folder.join("target"));
    // No compiler. `none` would be no kernels.
    run_command(command.env(toolchain::RUSTC_VARIABLE, folder.join("no-compiler")))
}

/// The package of a crate in a folder of packages.
fn packed(folder: &Path, name: &str) -> Result<PathBuf> {
    let is_of_crate = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let version = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".crate"));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    let paths = entries(folder)?;
    paths.into_iter().find(is_of_crate).with_context(|| format!("no package of {name} in {}", folder.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
    list().with_context(|| format!("cannot list {}", folder.display()))
}

/// Copies a file, or a folder with what is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {}", from.display()));
    }
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for path in entries(from)?.iter().filter(|path| !path.ends_with("target")) {
        copy(path, &to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Makes an empty folder of a folder that may be there.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

//! Installing what the tests need and a fresh machine lacks: a compiler for device code, and ptxas.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use pointwise_build::{Error, ptxas, toolchain};

use crate::shell::{root, run};

/// A compiler for device code: found, or installed with Debian's package manager.
pub(crate) fn device_toolchain() -> Result<()> {
    match toolchain::find() {
        Ok(found) => {
            println!("device compiler: {found}");
            return Ok(());
        }
        // One that is there but does not serve, or is not to be looked for, is for whoever named it to settle.
        Err(error @ Error::SwitchedOff) => bail!("{error}; the tests need one: unset {}", toolchain::RUSTC_VARIABLE),
        Err(error) if !error.is_absence() => return Err(error.into()),
        Err(error) => println!("{error}"),
    }
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!("there is no apt-get here to install one with; see above for what to install");
    }
    println!("installing Debian's rustc-web and rust-web-src");
    apt(&["update", "-qq"])?;
    apt(&["install", "-y", "-qq", "--no-install-recommends", "rustc-web", "rust-web-src"])?;
    println!("device compiler: {}", toolchain::find()?);
    Ok(())
}

/// `apt-get`, as root: by `sudo` for anybody else.
fn apt(arguments: &[&str]) -> Result<()> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.arg("apt-get");
    }
    run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// ptxas: found, or taken from PyPI's `nvidia-cuda-nvcc`. Without Python or network there is none, and the PTX stays
/// unassembled.
pub(crate) fn assembler() -> Option<ptxas::Ptxas> {
    if let Ok(found) = ptxas::find() {
        return Some(found);
    }
    let folder = root().join("target/ptxas");
    let binary = Path::new("nvidia/cu13/bin/ptxas");
    if !folder.join(binary).is_file()
        && let Err(error) = fetch(&folder, binary)
    {
        println!("no ptxas, so the PTX will not be assembled: {error:#}");
        return None;
    }
    let binary = folder.join(binary);
    // SAFETY: this program has one thread as yet.
    unsafe { env::set_var(ptxas::PTXAS_VARIABLE, &binary) };
    match ptxas::find() {
        Ok(found) => Some(found),
        Err(error) => {
            println!("{error}");
            None
        }
    }
}

/// Downloads the wheel and unpacks it: no virtual environment, which Debian has a package of its own for. The folder is
/// there when all of it is.
fn fetch(target: &Path, binary: &Path) -> Result<()> {
    println!("fetching ptxas (PyPI's nvidia-cuda-nvcc)");
    let folder = &target.with_extension("part");
    for old in [folder, target] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    let python = || Command::new("python3");
    run(python()
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(folder)
        .arg("nvidia-cuda-nvcc"))?;
    for wheel in wheels(folder)? {
        run(python().args(["-m", "zipfile", "-e"]).arg(wheel).arg(folder))?;
    }
    make_executable(&folder.join(binary))?;
    Ok(fs::rename(folder, target)?)
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    Ok(files.into_iter().map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "whl")).collect())
}

#[cfg(unix)]
fn make_executable(binary: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // Python's zipfile leaves permissions out.
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(binary, mode).with_context(|| format!("the package has no {}", binary.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

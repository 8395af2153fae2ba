//! The kernel crate around a module of ops.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::sources::Sources;
use crate::{
    Error,
    artifacts::{self, write_file},
};

/// Writes the crate to `folder`, but not what is there already.
pub(crate) fn write(folder: &Path, sources: &Sources) -> Result<(), Error> {
    let src = folder.join("src");
    let places: Vec<PathBuf> = sources.files.iter().map(|file| src.join(&file.place)).collect();
    remove_others(&src, &places)?;
    for (file, place) in sources.files.iter().zip(&places) {
        write_file(place, file.text.as_bytes())?;
    }
    write_file(&src.join("lib.rs"), root(&sources.module).as_bytes())?;
    let manifest = folder.join("Cargo.toml");
    let is_new = artifacts::differs(&manifest, self::manifest().as_bytes());
    write_file(&manifest, self::manifest().as_bytes())?;
    // The versions are those of the package, where it has the same dependencies. Cargo removes the rest.
    if let Some(lock) = lock_file().filter(|_| is_new) {
        let text = fs::read(&lock).map_err(Error::io("cannot read", &lock))?;
        write_file(&folder.join("Cargo.lock"), &text)?;
    }
    Ok(())
}

fn root(module: &str) -> String {
    format!(
        "//! Written by pointwise-build around a copy of the package's ops.\n\
         #![no_std]\n\
         #![feature(abi_gpu_kernel, asm_experimental_arch)]\n\
         // The package's own build says what is wrong with its style.\n\
         #![allow(warnings)]\n\
         // Kernels and assembly by hand are no formula: `#[allow(unsafe_code)]` says who answers for them.\n\
         #![deny(unsafe_code)]\n\n\
         pointwise::kernel_crate!();\n\n\
         mod {module};\n"
    )
}

fn manifest() -> String {
    let device = pointwise_device::__private::FOLDER;
    format!(
        "# Written by pointwise-build.\n\
         [package]\n\
         name = \"pointwise-ops-kernels\"\n\
         version = \"0.0.0\"\n\
         edition = \"2024\"\n\
         publish = false\n\n\
         [workspace]\n\n\
         [dependencies]\n\
         pointwise = {{ package = \"pointwise-device\", path = {device:?} }}\n"
    )
}

/// The lock file of the package whose build script runs.
fn lock_file() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file())
}

/// Removes the files that the module had and has no more.
fn remove_others(folder: &Path, kept: &[PathBuf]) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(Error::io("cannot list", folder))?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) && path.file_name().is_some_and(|name| name != "lib.rs") {
            fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
        }
    }
    Ok(())
}

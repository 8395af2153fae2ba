//! NVIDIA's assembler: machine code from PTX, and figures about registers and spills. No build needs it.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{Error, Sm, cubin, outside};

/// The environment variable that names the assembler.
pub const PTXAS_VARIABLE: &str = "POINTWISE_PTXAS";

/// The environment variable that names a Python virtual environment with the package `nvidia-cuda-nvcc`.
pub const VENV_VARIABLE: &str = "POINTWISE_VENV";

/// The environment variables with the folder of a CUDA toolkit, the first one to look at first.
const TOOLKITS: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];

/// The environment variables that decide which assembler is found.
pub(crate) const VARIABLES: [&str; 4] = [PTXAS_VARIABLE, VENV_VARIABLE, TOOLKITS[0], TOOLKITS[1]];

/// An assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// Its path.
    pub path: PathBuf,
    /// Its release, such as `release 13.0, V13.0.48`.
    pub version: String,
}

impl fmt::Display for Ptxas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptxas {} ({})", self.version, self.path.display())
    }
}

/// The assembler's figures for one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The entry.
    pub name: String,
    /// Registers of 32 bits a thread.
    pub registers: u32,
    /// Bytes of stack a thread.
    pub stack: u32,
    /// Bytes of registers stored to memory for want of registers.
    pub spill_stores: u32,
    /// Bytes loaded back.
    pub spill_loads: u32,
    /// Bytes of machine code.
    pub code: u64,
}

/// An assembled module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The machine code: an ELF file.
    pub cubin: Vec<u8>,
    /// The figures of each entry, in the order of the text.
    pub figures: Vec<Figures>,
}

impl Figures {
    /// True if memory is used that the kernel did not ask for.
    #[must_use]
    pub fn spills(&self) -> bool {
        [self.stack, self.spill_stores, self.spill_loads].iter().any(|&bytes| bytes > 0)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { name, registers, stack, spill_stores, spill_loads, code } = self;
        write!(f, "{name}: {registers} registers, {code} bytes of code")?;
        if self.spills() {
            write!(f, ", {stack} bytes of stack, {spill_stores} spilled, {spill_loads} loaded back")?;
        }
        Ok(())
    }
}

/// Fails if any of the entries spills or uses the stack.
///
/// # Errors
/// Fails with [`Error::Spills`].
pub fn deny_spills(figures: &[Figures], sm: Sm) -> Result<(), Error> {
    let entries: Vec<String> = figures.iter().filter(|it| it.spills()).map(ToString::to_string).collect();
    if entries.is_empty() { Ok(()) } else { Err(Error::Spills { sm, entries }) }
}

/// Returns the first assembler that runs, in this order: `POINTWISE_PTXAS`, the Python package in `POINTWISE_VENV`,
/// `PATH`, `CUDA_HOME` and `CUDA_PATH`, the Python package of the `python3` on the `PATH`, `/usr/local/cuda`. All
/// programs run from `/`, and Python runs isolated (`-I`), so that nothing in the current folder is executed.
///
/// # Errors
/// Fails with [`Error::NoPtxas`] and the places that were looked at, also if a named `POINTWISE_PTXAS` does not run.
pub fn find() -> Result<Ptxas, Error> {
    let program = format!("ptxas{}", env::consts::EXE_SUFFIX);
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let (named, venv) = (folder(PTXAS_VARIABLE), folder(VENV_VARIABLE).filter(|_| folder(PTXAS_VARIABLE).is_none()));
    let mut places: Vec<PathBuf> = venv.iter().flat_map(|venv| in_python(venv, &program)).collect();
    let bare = venv.filter(|_| places.is_empty());
    let lacks = |venv: PathBuf| format!("{VENV_VARIABLE}={} (it has no nvidia-cuda-nvcc)", venv.display());
    let mut tried: Vec<String> = bare.map(lacks).into_iter().collect();
    let mut look = |path: &Path| match version(path) {
        Ok(version) => Some(Ptxas { path: path.to_owned(), version }),
        Err(why) => {
            tried.push(format!("{} ({why})", path.display()));
            None
        }
    };
    if let Some(named) = named {
        return look(&named).ok_or(Error::NoPtxas { tried, wanted: Vec::new() });
    }
    places.push(PathBuf::from(&program));
    places.extend(TOOLKITS.iter().filter_map(|name| folder(name)).map(|it| it.join("bin").join(&program)));
    if let Some(found) = places.iter().find_map(|path| look(path)) {
        return Ok(found);
    }
    let mut places = in_python(Path::new(""), &program);
    places.push(Path::new("/usr/local/cuda/bin").join(&program));
    let found = places.iter().find_map(|path| look(path));
    found.ok_or(Error::NoPtxas { tried, wanted: Vec::new() })
}

/// Returns the assemblers in NVIDIA's packages, in the Python of a virtual environment, or of the `PATH` for an empty
/// path.
fn in_python(venv: &Path, program: &str) -> Vec<PathBuf> {
    let python = if venv.as_os_str().is_empty() { PathBuf::from("python3") } else { venv.join("bin/python") };
    // Isolated, and without an import: no module of the current folder or of `PYTHONPATH` is executed. An isolated run
    // does not see the packages of `pip install --user`, so their folder is named.
    let output = outside::command(&python).args(["-I", "-c", FIND_PACKAGES]).output();
    let Ok(output) = output else {
        return Vec::new();
    };
    String::from_utf8_lossy(&output.stdout).lines().flat_map(|line| in_packages(Path::new(line), program)).collect()
}

/// Prints the folders of the Python package `nvidia`.
const FIND_PACKAGES: &str = "\
import importlib.util, site, sys
if sys.prefix == sys.base_prefix:
    sys.path.append(site.getusersitepackages())
found = importlib.util.find_spec('nvidia')
print(*(found and found.submodule_search_locations or ()), sep='\\n')";

/// Returns the assemblers below the folder of NVIDIA's Python packages, `nvidia/PART/bin/PROGRAM`, the newest release
/// first. A part is named after CUDA's release (`cu13`), before CUDA 13 after its content (`cuda_nvcc`).
#[must_use]
pub fn in_packages(nvidia: &Path, program: &str) -> Vec<PathBuf> {
    let Ok(parts) = fs::read_dir(nvidia) else {
        return Vec::new();
    };
    let release = |part: &Path| {
        let name = part.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix("cu").and_then(|number| number.parse::<u32>().ok())
    };
    let mut found: Vec<PathBuf> =
        parts.flatten().map(|part| part.path()).filter(|part| part.join("bin").join(program).is_file()).collect();
    found.sort_by(|a, b| release(b).cmp(&release(a)).then_with(|| a.cmp(b)));
    found.into_iter().map(|part| part.join("bin").join(program)).collect()
}

fn version(path: &Path) -> Result<String, String> {
    let output = outside::command(path).arg("--version").output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("Cuda compilation tools, "))
        .map(|release| release.trim().to_owned())
        .ok_or_else(|| "it does not say that it is ptxas".to_owned())
}

impl Ptxas {
    /// Assembles a module for `sm`. Returns its machine code, and the figures of its entries in the order of the text.
    ///
    /// # Errors
    /// Fails with [`Error::Tool`] and the assembler's words, or with [`Error::Io`] for its files.
    pub fn assemble(&self, text: &str, sm: Sm) -> Result<Assembly, Error> {
        let folder = Scratch::new()?;
        let (source, cubin) = (folder.0.join("module.ptx"), folder.0.join("module.cubin"));
        fs::write(&source, text).map_err(Error::io("cannot write", &source))?;
        let output = Command::new(&self.path)
            .args(["-v", "-arch"])
            .arg(sm.to_string())
            .arg(&source)
            .arg("-o")
            .arg(&cubin)
            .output()
            .map_err(Error::io("cannot run", &self.path))?;
        let mut log = String::from_utf8_lossy(&output.stdout).into_owned();
        log += &String::from_utf8_lossy(&output.stderr);
        let failed = |log| Error::Tool { tool: "ptxas".to_owned(), sm, status: output.status.to_string(), log };
        if !output.status.success() {
            return Err(failed(log));
        }
        let bytes = fs::read(&cubin).map_err(Error::io("cannot read", &cubin))?;
        let mut figures = parse_log(&log);
        let sizes =
            cubin::code_sizes(&bytes).ok_or_else(|| failed("its output is not a 64-bit ELF file".to_owned()))?;
        for entry in &mut figures {
            entry.code = sizes.get(&entry.name).copied().unwrap_or(0);
        }
        Ok(Assembly { cubin: bytes, figures })
    }
}

/// Reads the figures in the output of `ptxas -v`: a line that names the entry, one with its stack, one with its
/// registers.
fn parse_log(log: &str) -> Vec<Figures> {
    let mut found: Vec<Figures> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Figures { name, ..Figures::default() });
        } else if let Some(figures) = found.last_mut() {
            let set = |words: &str, field: &mut u32| {
                if let Some(value) = number_before(line, words) {
                    *field = value;
                }
            };
            set(" bytes stack frame", &mut figures.stack);
            set(" bytes spill stores", &mut figures.spill_stores);
            set(" bytes spill loads", &mut figures.spill_loads);
            set(" registers", &mut figures.registers);
        }
    }
    found
}

fn number_before(line: &str, words: &str) -> Option<u32> {
    let before = &line[..line.find(words)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A folder that is removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Error> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let name = format!("pointwise-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let folder = env::temp_dir().join(name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Scratch(folder)),
                // The folder belongs to a process of this number that is gone, or that runs in another container.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("cannot create", &folder)(error)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it: the system empties its folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_any_release() {
        let scratch = Scratch::new().unwrap();
        for (part, program) in [("cu9", "ptxas"), ("cu14", "ptxas"), ("cuda_nvcc", "ptxas"), ("cu15", "nvcc")] {
            let bin = scratch.0.join(part).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join(program), "").unwrap();
        }
        let expected = ["cu14", "cu9", "cuda_nvcc"].map(|part| scratch.0.join(part).join("bin/ptxas"));
        assert_eq!(in_packages(&scratch.0, "ptxas"), expected);
        assert!(in_packages(&scratch.0.join("nowhere"), "ptxas").is_empty());
    }

    #[test]
    fn the_log() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'abs_f32' for 'sm_90'\n\
                   ptxas info    : Function properties for abs_f32\n    \
                   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 14 registers, used 0 barriers\n\
                   ptxas info    : Compiling entry function 'big' for 'sm_90'\n\
                   ptxas info    : Function properties for big\n    \
                   48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads\n\
                   ptxas info    : Used 255 registers, used 1 barriers, 256 bytes smem\n";
        let found = parse_log(log);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].registers, found[0].spills()), ("abs_f32", 14, false));
        assert_eq!((found[1].registers, found[1].stack), (255, 48));
        assert_eq!((found[1].spill_stores, found[1].spill_loads), (40, 44));
        let error = deny_spills(&found, Sm(90)).unwrap_err().to_string();
        assert!(error.starts_with("1 kernel(s) for sm_90") && error.contains("big: 255 registers"), "{error}");
        assert!(deny_spills(&found[..1], Sm(90)).is_ok());
        assert!(Figures { stack: u32::MAX, spill_loads: 1, ..Figures::default() }.spills());
    }
}

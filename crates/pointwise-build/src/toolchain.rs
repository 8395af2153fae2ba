//! Finds a compiler for device code.
//!
//! Device code is compiled together with `core`, so the compiler must come with the source of its own library
//! (rustup's component `rust-src`, Debian's `rust-src` or `rust-web-src`), and with the LLVM back end for PTX. It need
//! not be the compiler of the host crate, and is a stable release: `RUSTC_BOOTSTRAP=1` is set for the device build
//! alone.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use crate::{Error, outside};

/// The environment variable that names the compiler.
pub const RUSTC_VARIABLE: &str = "POINTWISE_DEVICE_RUSTC";

/// The oldest compiler that serves: 1.95 is the first release with the lint `improper_gpu_kernel_arg`, which kernel
/// crates deny, in the form they use it. 1.96 is the oldest release that the kernels were tested with.
pub const MINIMUM: (u32, u32) = (1, 95);

/// The advice if there is no compiler.
pub const INSTALL: &str = "To build GPU kernels, install the library source of the active toolchain with \
     `rustup component add rust-src`, or on Debian and Ubuntu a compiler with its source, \
     `apt-get install rustc-web rust-web-src` (or rustc and rust-src, where rustc is at least 1.95), \
     or name a compiler in POINTWISE_DEVICE_RUSTC.";

/// The target of every kernel crate.
pub const TARGET: &str = "nvptx64-nvidia-cuda";

/// The place that a compiler came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolchainKind {
    /// Named in `POINTWISE_DEVICE_RUSTC`.
    Named,
    /// The compiler of the active toolchain: the one that builds the host crate.
    Active,
    /// The system's `/usr/bin/rustc`.
    System,
}

impl fmt::Display for ToolchainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ToolchainKind::Named => RUSTC_VARIABLE,
            ToolchainKind::Active => "the active toolchain",
            ToolchainKind::System => "the system's compiler",
        })
    }
}

/// A compiler that can build device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler itself, not rustup's proxy for it.
    pub rustc: PathBuf,
    /// The output of `rustc --version`.
    pub version: String,
    /// The place where it was found.
    pub kind: ToolchainKind,
    /// The output of `rustc --print sysroot`.
    pub sysroot: PathBuf,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.version, self.rustc.display(), self.kind)
    }
}

/// A compiler that was looked at and does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The place.
    pub kind: ToolchainKind,
    /// The program that was asked.
    pub rustc: PathBuf,
    /// The reason why it does not serve.
    pub why: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.kind, self.rustc.display(), self.why)
    }
}

/// Returns the first compiler that serves, in this order: the one named in `POINTWISE_DEVICE_RUSTC`, the active
/// toolchain's, the system's.
///
/// They are asked from `/`: a `rust-toolchain.toml` in the current folder chooses no compiler. In a build the outer cargo
/// has chosen one already, and rustup's `RUSTUP_TOOLCHAIN` names it.
///
/// # Errors
/// Fails with [`Error::NoToolchain`] and everything that was tried, with [`Error::SwitchedOff`] for
/// `POINTWISE_DEVICE_RUSTC=none`, and with [`Error::NamedToolchain`] if the named compiler does not serve: no other one
/// is taken instead.
pub fn find() -> Result<Toolchain, Error> {
    if is_switched_off() {
        return Err(Error::SwitchedOff);
    }
    if let Some(named) = env::var_os(RUSTC_VARIABLE).filter(|value| !value.is_empty()) {
        let rustc = PathBuf::from(named);
        return inspect(&rustc, ToolchainKind::Named).map_err(|why| Error::NamedToolchain { rustc, why });
    }
    // cargo tells a build script its compiler in RUSTC.
    let active = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let candidates = [(active, ToolchainKind::Active), (PathBuf::from("/usr/bin/rustc"), ToolchainKind::System)];
    let mut tried = Vec::new();
    for (rustc, kind) in candidates {
        match inspect(&rustc, kind) {
            Ok(toolchain) => return Ok(toolchain),
            Err(why) => tried.push(Attempt { kind, rustc, why }),
        }
    }
    Err(Error::NoToolchain { tried })
}

/// True if `POINTWISE_DEVICE_RUSTC=none` asks for a build without kernels.
pub(crate) fn is_switched_off() -> bool {
    env::var_os(RUSTC_VARIABLE).is_some_and(|value| value == "none")
}

/// Asks one compiler for its version, sysroot and targets. The error is a sentence: the reason why it does not serve.
///
/// # Errors
/// Fails if the compiler does not serve, with the reason for a person to read.
pub fn inspect(rustc: &Path, kind: ToolchainKind) -> Result<Toolchain, String> {
    let version = ask(rustc, &["--version"])?;
    let sysroot = sysroot(rustc)?;
    let Some(number) = parse_version(&version) else {
        return Err(format!("`{version}` names no version"));
    };
    if number < MINIMUM {
        return Err(format!("{version} is older than {}.{}", MINIMUM.0, MINIMUM.1));
    }
    let source = sysroot.join("lib/rustlib/src/rust/library");
    if !source.join("core/src/lib.rs").is_file() {
        return Err(format!("{version} has no library source at {}", source.display()));
    }
    if !ask(rustc, &["--print", "target-list"])?.lines().any(|line| line == TARGET) {
        return Err(format!("{version} does not know the target {TARGET}"));
    }
    // A proxy of rustup chooses by environment and folder, and both will differ when it runs.
    let real = sysroot.join("bin").join(format!("rustc{}", env::consts::EXE_SUFFIX));
    let rustc = if real.is_file() { real } else { rustc.to_owned() };
    Ok(Toolchain { rustc, version, kind, sysroot })
}

/// Returns the folder of a compiler and its libraries.
pub(crate) fn sysroot(rustc: &Path) -> Result<PathBuf, String> {
    ask(rustc, &["--print", "sysroot"]).map(PathBuf::from)
}

/// Returns the output of a compiler for some arguments, trimmed.
fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = outside::command(rustc)
        .args(arguments)
        .env("RUSTUP_AUTO_INSTALL", "0")
        .output()
        .map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed and said nothing");
        return Err(first.trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns major and minor of `rustc 1.96.0 (...)`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_whitespace().nth(1)?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parse_version("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)"), Some((1, 96)));
        assert_eq!(parse_version("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), Some((1, 97)));
        assert_eq!(parse_version("gcc"), None);
    }

    #[test]
    fn a_missing_program_is_a_reason_not_a_panic() {
        let why = inspect(Path::new("/nowhere/rustc"), ToolchainKind::Named).unwrap_err();
        assert!(why.starts_with("cannot be run"), "{why}");
    }

    #[test]
    fn the_message_says_what_was_tried_and_what_to_install() {
        let tried = vec![Attempt {
            kind: ToolchainKind::System,
            rustc: "/usr/bin/rustc".into(),
            why: "cannot be run: No such file or directory".to_owned(),
        }];
        let text = Error::NoToolchain { tried }.to_string();
        for word in ["/usr/bin/rustc", "rustup component add rust-src", "apt-get install rustc-web rust-web-src"] {
            assert!(text.contains(word), "{word} is missing in: {text}");
        }
    }
}

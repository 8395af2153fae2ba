//! Runs cargo on a kernel crate, for one target.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Sm, Toolchain, inputs, toolchain::TARGET};

/// Flags for every crate and target: jump threading copies the code behind a join, a whole formula, into each way that
/// leads there.
const COMMON_FLAGS: &str = "-Zmir-enable-passes=-JumpThreading";

/// One run of cargo.
pub(crate) struct Job<'a> {
    pub(crate) toolchain: &'a Toolchain,
    /// Folder of the kernel crate, absolute.
    pub(crate) kernel_crate: &'a Path,
    /// Its lock file, as [`lock`] left it.
    pub(crate) lock: &'a Path,
    pub(crate) limits: Limits,
    pub(crate) sm: Sm,
    /// The older targets that are compiled beside it.
    pub(crate) older: &'a [Sm],
    /// A target directory that no other cargo uses. Two would wait for each other's lock, and a build script would wait
    /// forever for the lock of the cargo that started it.
    pub(crate) target_dir: &'a Path,
    /// Features of the kernel crate.
    pub(crate) features: &'a [String],
    /// Its variable and cfgs, if a builder wrote the crate.
    pub(crate) generated: Option<&'a Generated>,
}

/// The environment variable and the cfgs for a crate that a builder wrote.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    /// A variable and its value.
    pub(crate) variable: (&'static str, String),
    /// Its cfgs, as the compiler takes them: `name`, or `name="value"`.
    pub(crate) cfgs: Vec<String>,
}

/// The result of a run.
pub(crate) struct Output {
    /// The kernel crate's PTX.
    pub(crate) ptx: String,
    /// The files it was compiled from.
    pub(crate) inputs: BTreeSet<PathBuf>,
    /// The compiler's warnings.
    pub(crate) log: String,
}

impl Job<'_> {
    /// Compiles the crate, or finds it compiled, and reads the PTX.
    pub(crate) fn run(&self) -> Result<Output, Error> {
        let mut run = self.cargo()?;
        let mut assembly = self.assembly(&run.artifact)?;
        if !assembly.is_file() {
            // cargo keeps no record of the assembly file: it calls a crate fresh even if somebody has removed its text.
            self.forget(&run.artifact)?;
            run = self.cargo()?;
            assembly = self.assembly(&run.artifact)?;
        }
        let ptx = fs::read_to_string(&assembly)
            .map_err(|error| self.output(format!("{} cannot be read: {error}", assembly.display())))?;
        Ok(Output { ptx, inputs: self.inputs(&run)?, log: run.log })
    }

    fn cargo(&self) -> Result<Run, Error> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(&cargo);
        clean_environment(&mut command);
        command.envs(self.generated.map(|generated| (generated.variable.0, &generated.variable.1)));
        command
            .current_dir(self.kernel_crate)
            .env("RUSTC", &self.toolchain.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            // Not `--config build.rustflags`: this one also overrides a user's configuration files.
            .env("CARGO_ENCODED_RUSTFLAGS", COMMON_FLAGS)
            // A user's configuration may have one folder for the intermediate files of all builds.
            .env("CARGO_BUILD_BUILD_DIR", self.target_dir)
            .args(["rustc", "--quiet", "--lib", "--release", "--target", TARGET, "-Zbuild-std=core"])
            .arg("--target-dir")
            .arg(self.target_dir)
            .arg("--message-format=json-render-diagnostics");
        for (key, value) in [
            ("opt-level", "3".to_owned()),
            // With more, each unit's assembly is a file of its own.
            ("codegen-units", "1".to_owned()),
            ("panic", "\"abort\"".to_owned()),
            ("debug", "0".to_owned()),
            ("debug-assertions", "false".to_owned()),
            ("overflow-checks", "false".to_owned()),
            ("incremental", "false".to_owned()),
            ("lto", "\"off\"".to_owned()),
        ] {
            command.arg("--config").arg(format!("profile.release.{key}={value}"));
        }
        // Flags for one target are not for `core`, which all targets share, nor for macros, which run here.
        command.arg("-Zprofile-rustflags");
        let for_target = self.sm.rustflags(self.older).iter().map(|flag| format!("'{flag}'")).collect::<Vec<_>>();
        // Nothing is ever linked, so the machine code of these two is not used. Only their MIR is inlined, which this
        // flag does not change. It takes a third off their compile time.
        let for_core = "'-Cno-prepopulate-passes'";
        for (key, flags) in [
            ("rustflags", for_target.join(", ").as_str()),
            ("build-override.rustflags", ""),
            ("package.core.rustflags", for_core),
            ("package.compiler_builtins.rustflags", for_core),
        ] {
            command.arg("--config").arg(format!("profile.release.{key}=[{flags}]"));
        }
        if !self.features.is_empty() {
            command.arg("--features").arg(self.features.join(","));
        }
        // The file is complete, and runs side by side must not write it.
        if self.lock.is_file() || self.limits.locked {
            command.arg("--locked");
        }
        if self.limits.offline {
            command.arg("--offline");
        }
        // For this crate alone: with it in RUSTFLAGS, core too would write its 7 MB.
        command.args(["--", "--emit=asm"]);
        for cfg in self.generated.into_iter().flat_map(|generated| &generated.cfgs) {
            command.args(["--cfg", cfg]);
        }
        let (status, messages, log) = capture(&mut command).map_err(Error::io("cannot run", Path::new(&cargo)))?;
        if !status.success() {
            return Err(Error::Compile {
                kernel_crate: self.kernel_crate.to_owned(),
                sm: self.sm,
                status: status.to_string(),
                log,
            });
        }
        let manifest = self.kernel_crate.join("Cargo.toml");
        let files = messages
            .lines()
            .filter(|line| line.starts_with("{\"reason\":\"compiler-artifact\""))
            .filter(|line| {
                string_after(line, "\"manifest_path\":").is_some_and(|path| same_file(Path::new(&path), &manifest))
            })
            .find_map(|line| files_of(line).into_iter().find(|path| path.extension() == Some(OsStr::new("rmeta"))));
        match files {
            Some(artifact) => Ok(Run { artifact, log }),
            None => Err(self.output("it named no library among what it built".to_owned())),
        }
    }

    /// Returns the assembly file of the library with the metadata `artifact`.
    fn assembly(&self, artifact: &Path) -> Result<PathBuf, Error> {
        let (folder, stem) = self.place(artifact)?;
        Ok(folder.join(format!("{stem}.s")))
    }

    /// Makes cargo compile the crate again.
    fn forget(&self, artifact: &Path) -> Result<(), Error> {
        fs::remove_file(artifact).map_err(Error::io("cannot remove", artifact))
    }

    fn inputs(&self, run: &Run) -> Result<BTreeSet<PathBuf>, Error> {
        let (folder, stem) = self.place(&run.artifact)?;
        let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
        // The file beside the final library, not the one in `deps`: it holds absolute paths, also of path dependencies.
        let dep_info = folder.parent().unwrap_or(folder).join(format!("lib{name}.d"));
        let text = fs::read_to_string(&dep_info).map_err(Error::io("cannot read", &dep_info))?;
        let mut foreign = vec![self.toolchain.sysroot.join("lib/rustlib")];
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        if let Some(home) = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))) {
            foreign.extend([home.join("registry"), home.join("git")]);
        }
        let mut inputs = inputs::from_dep_info(&text, &foreign);
        inputs.insert(self.kernel_crate.join("Cargo.toml"));
        inputs.extend(self.lock.is_file().then(|| self.lock.to_owned()));
        Ok(inputs)
    }

    /// Returns folder and `NAME-HASH` of `.../deps/libNAME-HASH.rmeta`.
    fn place<'p>(&self, artifact: &'p Path) -> Result<(&'p Path, &'p str), Error> {
        let stem = artifact.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.strip_prefix("lib"));
        artifact
            .parent()
            .zip(stem)
            .ok_or_else(|| self.output(format!("{} has no name of the form libNAME-HASH.rmeta", artifact.display())))
    }

    fn output(&self, why: String) -> Error {
        Error::Output { kernel_crate: self.kernel_crate.to_owned(), sm: self.sm, why }
    }
}

struct Run {
    artifact: PathBuf,
    log: String,
}

/// Actions that the user forbids the cargo that runs the build script. No cargo inside of it may do them either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Lock files must not be written.
    pub(crate) locked: bool,
    /// The network must not be used.
    pub(crate) offline: bool,
}

impl Limits {
    /// Returns the limits of the cargo that started this process. Any cargo reads `CARGO_NET_OFFLINE` and the
    /// configuration files for itself. The outer cargo does not pass its arguments on, but Linux shows them.
    pub(crate) fn of_the_build() -> Limits {
        #[cfg(target_os = "linux")]
        {
            let parent = PathBuf::from(format!("/proc/{}", std::os::unix::process::parent_id()));
            let is_cargo = env::var_os("CARGO").is_some_and(|cargo| same_file(&parent.join("exe"), Path::new(&cargo)));
            if is_cargo && let Ok(arguments) = fs::read(parent.join("cmdline")) {
                return Limits::of_arguments(arguments.split(|&byte| byte == 0));
            }
        }
        Limits::default()
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    fn of_arguments<'a>(arguments: impl IntoIterator<Item = &'a [u8]>) -> Limits {
        let mut limits = Limits::default();
        // Arguments after `--` are for the program that is run.
        for argument in arguments.into_iter().take_while(|argument| *argument != b"--") {
            limits.locked |= matches!(argument, b"--locked" | b"--frozen");
            limits.offline |= matches!(argument, b"--offline" | b"--frozen");
        }
        limits
    }
}

/// Returns the lock file of a crate, or of its workspace. Writes it if there is none, and updates it if the manifests
/// ask for more, as any run of cargo would, unless the `limits` forbid it. Runs side by side would all write it.
///
/// Uses the network only for packages that this machine does not have: the first attempt is offline.
pub(crate) fn lock(toolchain: &Toolchain, kernel_crate: &Path, limits: Limits) -> PathBuf {
    let metadata = |offline: bool| {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        clean_environment(&mut command);
        command.current_dir(kernel_crate).env("RUSTC", &toolchain.rustc).args(["metadata", "--format-version=1"]);
        // Without it, cargo also downloads packages that only other systems need.
        command.args(["--filter-platform", TARGET]);
        command.args(offline.then_some("--offline")).args(limits.locked.then_some("--locked"));
        capture(&mut command).ok().filter(|(status, ..)| status.success()).map(|(_, messages, _)| messages)
    };
    let found = metadata(true).or_else(|| if limits.offline { None } else { metadata(false) });
    // Any failure happens again in the build itself, which reports it.
    let messages = found.unwrap_or_default();
    // The last key of this name: packages may have words of their own before it.
    let root = messages.rfind(WORKSPACE_ROOT).and_then(|at| string_after(&messages[at..], WORKSPACE_ROOT));
    root.map_or_else(|| kernel_crate.to_owned(), PathBuf::from).join("Cargo.lock")
}

/// The key of the folder with the lock file, in the output of `cargo metadata`.
const WORKSPACE_ROOT: &str = "\"workspace_root\":";

/// Removes the variables for the build of the host crate. Variables for the places of registries, and for access to
/// them, stay.
fn clean_environment(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_for_the_host) {
            command.env_remove(&name);
        }
    }
    for variable in ["LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"] {
        if let Some(paths) = env::var_os(variable) {
            command.env(variable, without_compilers(&paths));
        }
    }
    command.env("RUSTUP_AUTO_INSTALL", "0");
}

fn is_for_the_host(name: &str) -> bool {
    let kept = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR", "CARGO_SOURCE_", "CARGO_RESOLVER_"];
    let removed = ["CARGO_", "RUSTC", "RUSTFLAGS", "RUSTDOC", "DEP_"];
    let set_by_cargo =
        ["CARGO", "MAKEFLAGS", "MFLAGS", "OUT_DIR", "TARGET", "HOST", "NUM_JOBS", "OPT_LEVEL", "PROFILE", "DEBUG"];
    set_by_cargo.contains(&name)
        || (removed.iter().any(|start| name.starts_with(start)) && !kept.iter().any(|start| name.starts_with(start)))
}

/// Returns a search path without the folders of other compilers' libraries: cargo puts its own compiler's there, and
/// the device compiler could load them.
fn without_compilers(paths: &OsStr) -> OsString {
    let has_compiler = |folder: &PathBuf| {
        fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(|name| name.contains("rustc_driver")))
        })
    };
    env::join_paths(env::split_paths(paths).filter(|folder| !has_compiler(folder))).unwrap_or_default()
}

/// Runs to the end. Returns the status, the output and the error output.
fn capture(command: &mut Command) -> std::io::Result<(std::process::ExitStatus, String, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut out, mut log) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both at once: a program that fills one pipe while the other is read would wait forever.
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| stderr.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut log)));
        let first = stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut out));
        let second = reader.join().unwrap_or(Ok(0));
        first.and(second)
    });
    let status = child.wait()?;
    read?;
    Ok((status, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&log).into_owned()))
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().ok().is_some_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// Returns the `filenames` of one of cargo's artifact messages.
fn files_of(message: &str) -> Vec<PathBuf> {
    let Some((_, list)) = message.split_once("\"filenames\":[") else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut rest = list;
    while let Some((text, after)) = json_string(rest) {
        files.push(PathBuf::from(text));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    files
}

/// Returns the string value that follows `key` in a message.
fn string_after(message: &str, key: &str) -> Option<String> {
    let (_, rest) = message.split_once(key)?;
    json_string(rest).map(|(text, _)| text)
}

/// Returns the JSON string at the start of `text`, and the text after it. Knows the escapes that occur in paths.
fn json_string(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &body[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_messages() {
        let message = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"C:\\k\\Cargo.toml","#,
            r#""filenames":["/t/libk.rlib","/t/deps/libk-1f.rmeta"],"executable":null}"#
        );
        assert_eq!(files_of(message), ["/t/libk.rlib", "/t/deps/libk-1f.rmeta"].map(PathBuf::from));
        assert_eq!(string_after(message, "\"manifest_path\":").as_deref(), Some(r"C:\k\Cargo.toml"));
        assert!(files_of("{}").is_empty());
    }

    #[test]
    fn limits_are_the_outer_cargos() {
        let limits = |line: &str| Limits::of_arguments(line.split(' ').map(str::as_bytes));
        let (locked, offline) = (true, true);
        assert_eq!(limits("cargo build --release"), Limits::default());
        assert_eq!(limits("cargo build --locked"), Limits { locked, ..Limits::default() });
        assert_eq!(limits("/bin/cargo --offline test"), Limits { offline, ..Limits::default() });
        assert_eq!(limits("cargo check --frozen -p x"), Limits { locked, offline });
        assert_eq!(limits("cargo run -- --frozen"), Limits::default());
    }

    /// A lock file that is older than its manifest is updated, but not in a `--locked` build.
    #[test]
    fn a_lock_file_follows_its_manifest() {
        let folder = env::temp_dir().join(format!("pointwise-lock-{}", std::process::id()));
        fs::create_dir_all(folder.join("member/src")).unwrap();
        fs::write(folder.join("member/src/lib.rs"), "").unwrap();
        fs::write(folder.join("Cargo.toml"), "[workspace]\nmembers = [\"member\"]\nresolver = \"3\"\n").unwrap();
        let toolchain = Toolchain {
            rustc: env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from),
            version: String::new(),
            kind: crate::toolchain::ToolchainKind::Active,
            sysroot: PathBuf::new(),
        };
        for version in ["0.1.0", "0.2.0"] {
            let manifest = format!("[package]\nname = \"member\"\nversion = \"{version}\"\nedition = \"2024\"\n");
            fs::write(folder.join("member/Cargo.toml"), manifest).unwrap();
            let lock = lock(&toolchain, &folder.join("member"), Limits::default());
            assert!(same_file(&lock, &folder.join("Cargo.lock")), "that of the workspace, not {}", lock.display());
            assert!(fs::read_to_string(&lock).unwrap().contains(&format!("version = \"{version}\"")));
        }
        let manifest = fs::read_to_string(folder.join("member/Cargo.toml")).unwrap().replace("0.2.0", "0.3.0");
        fs::write(folder.join("member/Cargo.toml"), manifest).unwrap();
        lock(&toolchain, &folder.join("member"), Limits { locked: true, offline: false });
        assert!(fs::read_to_string(folder.join("Cargo.lock")).unwrap().contains("version = \"0.2.0\""));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_for_the_host_stays_there() {
        for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_TARGET_DIR", "CARGO_MANIFEST_DIR"]
        {
            assert!(is_for_the_host(name), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_REGISTRIES_X_INDEX", "PATH", "RUSTUP_HOME"] {
            assert!(!is_for_the_host(name), "{name}");
        }
    }
}

//! A file of `#[op]` functions: [`ops`] makes a kernel crate around a copy of it, compiles that, and leaves for each op
//! what the attribute looks for.
//!
//! The attribute finds `OUT_DIR/pointwise_ops/NAME`: the op's kernels as an expression of literals, and what the device
//! compiler says against the op, if anything. So each op embeds its own kernels, wherever its module stands, and a program
//! embeds those of the ops that it uses.

mod blame;
mod cfgs;
mod crate_of;
mod manifest;
mod sources;
mod stamp;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    Artifacts, Error, Kernels, Toolchain,
    artifacts::{self, Place},
    cargo::Generated,
    kernels::{self, CUBINS_VARIABLE},
    pack::Level,
    ptxas, toolchain,
};
use blame::Blame;
use sources::Sources;
use stamp::Stamp;

/// The environment variable by which both compilations know the hash of the sources.
const SOURCE_VARIABLE: &str = "POINTWISE_SOURCE";

/// The folder in `OUT_DIR` that the attribute reads.
const FOLDER: &str = "pointwise_ops";

/// The device compiler's errors in an op, in the op's folder.
const ERROR: &str = "error.txt";

/// Why an item with the attribute cannot be an op at all, in the folder of its name.
const NO_OP: &str = "no_op.txt";

/// Why no op has kernels, in the folder of all.
const NONE: &str = "none.txt";

/// There, in the folder of all, where every op of the module has kernels.
const STAMP: &str = "stamp.txt";

/// True if a build script has called [`Ops::try_build`].
static IS_CALLED: AtomicBool = AtomicBool::new(false);

/// How a file of ops is compiled for the GPU. See [`ops`].
#[derive(Clone, Debug)]
#[must_use = "nothing is compiled before `build`"]
pub struct Ops {
    path: PathBuf,
    targets: Vec<u32>,
    cubins: Vec<u32>,
    cfgs: Vec<String>,
    target_dir: Option<PathBuf>,
}

/// The ops of the module in the file `path`, relative to the package whose build script runs:
///
/// ```no_run
/// pointwise_build::ops("src/ops.rs").build();
/// ```
///
/// The module's submodules in files, here those in `src/ops/`, belong to it. A package has one such module, and calls this
/// once. The file is compiled twice: as a module of the package, and for the GPU, in edition 2024, as a module of a crate
/// that has no `std` and no other dependency than `pointwise`, where `pointwise` is the device side of it. Code for the
/// host alone stands behind `#[cfg(not(target_arch = "nvptx64"))]`.
///
/// The package's features hold for both, and so do the cfgs in `RUSTFLAGS` and those of [`Ops::cfg`]. The other cfgs say
/// what is compiled for: those of the GPU's side are those of nvptx64, without `debug_assertions`.
///
/// The defaults are the targets sm_80 and sm_90.
pub fn ops(path: impl Into<PathBuf>) -> Ops {
    Ops { path: path.into(), targets: vec![80, 90], cubins: Vec::new(), cfgs: Vec::new(), target_dir: None }
}

impl Ops {
    /// The compute capabilities to compile for, such as `[80, 90]`. The driver of a newer device compiles the newest
    /// PTX that is old enough.
    pub fn targets(mut self, targets: impl IntoIterator<Item = u32>) -> Self {
        self.targets = targets.into_iter().collect();
        self
    }

    /// The compute capabilities to embed machine code for, besides those in `POINTWISE_CUBINS`. Needs ptxas.
    pub fn cubins(mut self, cubins: impl IntoIterator<Item = u32>) -> Self {
        self.cubins = cubins.into_iter().collect();
        self
    }

    /// Sets a cfg of the package, `name` or `name="value"`, for the GPU's side, too. It takes the place of
    /// `println!("cargo::rustc-cfg=..")`, of which this crate would not know.
    pub fn cfg(mut self, cfg: impl Into<String>) -> Self {
        self.cfgs.push(cfg.into());
        self
    }

    /// Sets the folder for cargo's target directories. By default it is `pointwise-ops` in the package's own target directory.
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.target_dir = Some(folder.into());
        self
    }

    /// Compiles the ops, or finds them compiled, and tells cargo when to do so again.
    ///
    /// A mistake in the ops is no error of the build script: what the device compiler says becomes an error of the
    /// package, at the op. Where there is no compiler for GPU code the ops are built for the CPU alone, and cargo shows a
    /// warning. Any other error is written to the error output, and the process ends.
    pub fn build(&self) {
        if let Err(error) = self.try_build() {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }

    /// As [`build`](Ops::build), for scripts that treat errors in their own way.
    ///
    /// # Errors
    /// A file that cannot be read or written, settings that make no sense, a compiler named in `POINTWISE_DEVICE_RUSTC`
    /// or an assembler that does not serve.
    pub fn try_build(&self) -> Result<(), Error> {
        if IS_CALLED.swap(true, Ordering::Relaxed) {
            let why = format!(
                "the build script calls pointwise_build::ops a second time, for {}: a package has one module of ops. Make \
                 this file a submodule of that one, in the folder of its name",
                self.path.display()
            );
            return Err(Error::Settings(why));
        }
        let out_dir = kernels::out_dir()?;
        let sources = Sources::read(&kernels::in_package(&self.path))?;
        let cfgs = cfgs::of_the_package(&self.cfgs);
        for cfg in &self.cfgs {
            println!("cargo::rustc-check-cfg={}", cfgs::check(cfg));
            println!("cargo::rustc-cfg={cfg}");
        }
        self.warn(&sources, &cfgs);
        for path in sources.watched() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        for variable in [toolchain::RUSTC_VARIABLE, CUBINS_VARIABLE] {
            println!("cargo::rerun-if-env-changed={variable}");
        }
        if !self.cubins.is_empty() || env::var_os(CUBINS_VARIABLE).is_some_and(|list| !list.is_empty()) {
            for variable in ptxas::VARIABLES {
                println!("cargo::rerun-if-env-changed={variable}");
            }
        }
        let source = sources.hash();
        println!("cargo::rustc-env={SOURCE_VARIABLE}={source}");
        let packs = Packs { folder: out_dir.join(FOLDER) };

        if !sources.may_have_ops() {
            // The host's compiler says what is wrong with a file that is no Rust.
            return packs.clear();
        }
        let no_ops: BTreeMap<&str, String> = match manifest::renamed() {
            Some(name) => sources.ops().iter().map(|op| (&*op.name, manifest::why(&name))).collect(),
            None => sources.methods().iter().map(|name| (&**name, METHOD.to_owned())).collect(),
        };
        if !no_ops.is_empty() {
            packs.write_none("the package does not compile")?;
            return packs.write_texts(no_ops, NO_OP);
        }
        let toolchain = match toolchain::find() {
            Ok(toolchain) => toolchain,
            Err(error) if error.is_absence() => {
                for file in error.what_may_change() {
                    println!("cargo::rerun-if-changed={}", file.display());
                }
                let note = error.to_string();
                println!("cargo::warning=built without GPU kernels: {}", note.replace('\n', " "));
                return packs.write_none(&note);
            }
            Err(error) => return Err(error),
        };
        let settings = format!(
            "{source} {toolchain} {:?} {:?} {:?} {cfgs:?}",
            self.targets,
            self.cubins,
            env::var_os(CUBINS_VARIABLE)
        );
        let stamp = Stamp::new(packs.folder.join(STAMP), settings);
        if let Some(inputs) = stamp.unchanged() {
            watch(&inputs);
            return Ok(());
        }
        packs.clear()?;
        match self.compile(&sources, &out_dir, &toolchain, cfgs) {
            Ok(artifacts) => {
                eprint!("{}", artifacts.log);
                packs.write(&artifacts)?;
                // The copies are ours; what they are copies of is watched.
                let inputs: Vec<_> =
                    artifacts.inputs.into_iter().filter(|input| !input.starts_with(&out_dir)).collect();
                watch(&inputs);
                stamp.write(&inputs)
            }
            Err(error) => match Blame::of(&error, &sources) {
                Some(blame) => packs.write_errors(&blame),
                None => Err(error),
            },
        }
    }

    /// Tells what would go wrong without a word.
    fn warn(&self, sources: &Sources, cfgs: &[String]) {
        let file = self.path.display();
        let module = &sources.module;
        if !sources.is_declared() {
            println!("cargo::warning={file} is no module of the package: write `pub mod {module};` in src/lib.rs");
        }
        for other in sources.undeclared() {
            let (other, name) = (other.path.display(), other.path.file_stem().unwrap_or_default().display());
            println!("cargo::warning={other} is no module of the package: write `mod {name};` in {file}");
        }
        if !sources.may_have_ops() {
            println!("cargo::warning={file} has no op: write `#[op(..)]` before a function");
        }
        for name in sources.cfgs().iter().filter(|name| cfgs::may_differ(name, cfgs)) {
            println!(
                "cargo::warning={file} asks for the cfg `{name}`, which may be another for the GPU, so that an op would \
                 compute something else there: ask for a feature of the package, or give the cfg to \
                 `pointwise_build::ops(..).cfg(..)`"
            );
        }
    }

    fn compile(
        &self,
        sources: &Sources,
        out_dir: &Path,
        toolchain: &Toolchain,
        cfgs: Vec<String>,
    ) -> Result<Artifacts, Error> {
        let folder = out_dir.join("pointwise_ops_crate");
        crate_of::write(&folder, sources)?;
        let kernels = Kernels::new(folder)
            .targets(self.targets.iter().copied())
            .cubins(self.cubins.iter().copied())
            .target_dir(self.target_dir.clone().unwrap_or_else(|| shared(out_dir)))
            .generated(Generated { variable: (SOURCE_VARIABLE, sources.hash()), cfgs });
        kernels.compile_with(toolchain)
    }
}

/// The error of a function of an `impl` or a trait.
const METHOD: &str = "an op is a function of a module: move it out of the `impl` or trait";

/// The folder for what is compiled for the GPU, shared by all packages of a workspace and by all profiles, so that `core`
/// and the templates are compiled once: cargo's target folder, of which `out_dir` is `PROFILE/build/PACKAGE/out`.
fn shared(out_dir: &Path) -> PathBuf {
    out_dir.ancestors().nth(4).unwrap_or(out_dir).join("pointwise-ops")
}

/// Tells cargo to build again when one of these files changes.
fn watch(inputs: &[PathBuf]) {
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
}

/// The files that the attribute reads, op by op.
struct Packs {
    folder: PathBuf,
}

impl Packs {
    /// Removes what an earlier build left.
    fn clear(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("cannot remove", &self.folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// The kernels of each op, with those of its gradients.
    fn write(&self, artifacts: &Artifacts) -> Result<(), Error> {
        for (op, symbols) in artifacts.by_op() {
            artifacts.only(&symbols)?.write_at(&self.folder.join(op), Level::Quick, Place::Inline)?;
        }
        Ok(())
    }

    /// No kernels for any op.
    fn write_none(&self, why: &str) -> Result<(), Error> {
        self.clear()?;
        artifacts::write_file(&self.folder.join(NONE), why.as_bytes())
    }

    /// No kernels, and what is wrong with some ops.
    fn write_errors(&self, blame: &Blame) -> Result<(), Error> {
        self.write_none("the device compiler refused the package's ops; see the errors of this build")?;
        self.write_texts(blame.ops.iter().map(|(op, why)| (&**op, why)), ERROR)
    }

    /// A text in the folders of some ops.
    fn write_texts<'t, W: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = (&'t str, W)>,
        file: &str,
    ) -> Result<(), Error> {
        texts
            .into_iter()
            .try_for_each(|(op, why)| artifacts::write_file(&self.folder.join(op).join(file), why.as_ref().as_bytes()))
    }
}

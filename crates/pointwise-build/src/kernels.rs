//! The builder that build scripts and tools use.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use crate::{
    Artifacts, Error, Sm,
    artifacts::{self, GENERATED, Place},
    cargo::{self, Generated, Job, Limits},
    facts::{self, Facts},
    lanes,
    lint::{self, Lint},
    pack::Level,
    ptx, ptxas,
    toolchain::{self, Toolchain},
};

/// The environment variable with the compute capabilities to embed machine code for.
pub const CUBINS_VARIABLE: &str = "POINTWISE_CUBINS";

/// The folder of prebuilt kernels, beside a package's `Cargo.toml`.
const PREBUILT: &str = "prebuilt";

/// Compiles, checks and embeds a crate of kernels. See the [crate documentation](crate).
#[derive(Clone, Debug)]
#[must_use = "nothing is compiled before `compile` or `build`"]
pub struct Kernels {
    path: PathBuf,
    targets: Vec<Sm>,
    shards: Vec<Vec<String>>,
    expected: Option<BTreeSet<String>>,
    lint: Lint,
    cubins: Vec<Sm>,
    target_dir: Option<PathBuf>,
    prebuilt: PathBuf,
    /// The settings of a crate that a builder wrote.
    generated: Option<Generated>,
}

impl Kernels {
    /// Returns a builder for the kernels of the crate in the folder `path`: absolute, or relative to the package whose
    /// build script runs.
    ///
    /// The defaults are the targets sm_80 and sm_90, the crate's default features, [`Lint::default`], and the folder
    /// `prebuilt` for kernels that come with the package.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Kernels {
            path: path.into(),
            targets: vec![Sm(80), Sm(90)],
            shards: Vec::new(),
            expected: None,
            lint: Lint::default(),
            cubins: Vec::new(),
            target_dir: None,
            prebuilt: PREBUILT.into(),
            generated: None,
        }
    }

    /// Sets the compute capabilities to compile for, such as `[80, 90]`. The driver of a newer device compiles the
    /// newest PTX that is old enough.
    pub fn targets(mut self, targets: impl IntoIterator<Item = u32>) -> Self {
        self.targets = targets.into_iter().map(Sm).collect();
        self
    }

    /// Adds one run of cargo with these features of the kernel crate. Several calls make several runs, side by side on
    /// as many processors as there are, and their entries are merged: a large crate has a feature for each of its
    /// parts. The longest run should come first.
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.shards.push(features.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the expected entries: the result must have each of them, and no others.
    pub fn expect_entries<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.expected = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the checks beyond the rules for every kernel.
    pub fn lint(mut self, lint: Lint) -> Self {
        self.lint = lint;
        self
    }

    /// Sets the compute capabilities to embed machine code for, beside the ones in `POINTWISE_CUBINS`. Needs ptxas.
    pub fn cubins(mut self, cubins: impl IntoIterator<Item = u32>) -> Self {
        self.cubins = cubins.into_iter().map(Sm).collect();
        self
    }

    /// Sets the folder for cargo's target directories; by default they are in `OUT_DIR`.
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.target_dir = Some(folder.into());
        self
    }

    /// Sets the folder of kernels that [`Artifacts::write`] wrote, relative to the package. If it exists, [`build`]
    /// embeds them and compiles nothing: a published package ships its kernels so.
    ///
    /// [`build`]: Kernels::build
    pub fn prebuilt(mut self, folder: impl Into<PathBuf>) -> Self {
        self.prebuilt = folder.into();
        self
    }

    /// Marks the crate as written by a builder. Its lock file is the builder's, too: the user did not forbid to write it.
    /// The crate may have no kernel, if its cfgs leave all out.
    pub(crate) fn generated(mut self, generated: Generated) -> Self {
        self.generated = Some(generated);
        self
    }

    /// Compiles the crate for every target and checks the result.
    ///
    /// # Errors
    /// Fails with any variant of [`Error`]; [`Error::is_absence`] is true if there is merely no compiler.
    pub fn compile(&self) -> Result<Artifacts, Error> {
        self.compile_with(&toolchain::find()?)
    }

    /// [`compile`](Kernels::compile) with a compiler of the caller's choice.
    ///
    /// # Errors
    /// Fails with any variant of [`Error`], except the ones for a missing compiler.
    pub fn compile_with(&self, toolchain: &Toolchain) -> Result<Artifacts, Error> {
        let kernel_crate = self.kernel_crate()?;
        let (targets, cubins) = (sorted(&self.targets), self.wanted_cubins()?);
        let Some(oldest) = targets.first() else {
            return Err(Error::Settings("no targets: give Kernels::targets at least one".to_owned()));
        };
        if let Some(sm) = cubins.iter().find(|sm| *sm < oldest) {
            return Err(Error::Settings(format!(
                "machine code for {sm} cannot be made from PTX for {oldest}: add {} to the targets",
                sm.0
            )));
        }
        let target_dir = self.target_folder()?;
        let mut limits = Limits::of_the_build();
        limits.locked &= self.generated.is_none();
        let lock = cargo::lock(toolchain, &kernel_crate, limits);

        let mut shards = self.shards.clone();
        if shards.is_empty() {
            shards.push(Vec::new());
        }
        let older = |target: usize| targets.get(..target).unwrap_or_default();
        let light: Vec<bool> = targets.iter().enumerate().map(|(target, sm)| sm.is_light(older(target))).collect();
        // The long runs come first, so that no lane is left with a long run at the end.
        let mut runs: Vec<(usize, &Vec<String>)> =
            (0..targets.len()).flat_map(|target| shards.iter().map(move |features| (target, features))).collect();
        runs.sort_by_key(|(target, _)| light[*target]);
        let names: Vec<String> =
            runs.iter().map(|(target, features)| format!("{} {}", targets[*target], features.join(" "))).collect();
        let outputs = lanes::map(&target_dir, &names, |run, target_dir| {
            let (target, features) = runs[run];
            Job {
                toolchain,
                kernel_crate: &kernel_crate,
                lock: &lock,
                limits,
                sm: targets[target],
                older: older(target),
                target_dir,
                features,
                generated: self.generated.as_ref(),
            }
            .run()
        })?;

        let mut found = Artifacts::new(toolchain);
        for (target, &sm) in targets.iter().enumerate() {
            let mut texts = Vec::new();
            for (_, output) in runs.iter().zip(&outputs).filter(|(run, _)| run.0 == target) {
                found.inputs.extend(output.inputs.iter().cloned());
                found.log += &output.log;
                texts.push(output.ptx.as_str());
            }
            self.take(&mut found, sm, light[target], &texts)?;
        }
        if self.expected.is_none()
            && self.generated.is_none()
            && found.targets.iter().all(|target| target.modules.is_empty())
        {
            return Err(Error::Output {
                kernel_crate,
                sm: *oldest,
                why: "it exports no kernel: write ops as functions with #[op], which pointwise_build::ops compiles"
                    .to_owned(),
            });
        }
        if !cubins.is_empty() {
            let ptxas = ptxas::find().map_err(|error| match error {
                Error::NoPtxas { tried, .. } => Error::NoPtxas { tried, wanted: cubins.clone() },
                error => error,
            })?;
            for sm in cubins {
                found.add_cubin(&ptxas, sm)?;
            }
        }
        Ok(found)
    }

    /// For a build script: compiles the crate and writes `pointwise_kernels.rs` to `OUT_DIR`, with the files that it
    /// includes, and tells cargo when to do so again.
    ///
    /// If there is no compiler for GPU code, the host crate is built without kernels, and cargo shows a warning. Any
    /// other error is written to the error output, and the process ends.
    pub fn build(&self) {
        if let Err(error) = self.try_build() {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }

    /// [`build`](Kernels::build) for scripts that treat errors in their own way.
    ///
    /// # Errors
    /// Fails as [`compile`](Kernels::compile) does, but not for a missing compiler, and if `OUT_DIR` cannot be written.
    pub fn try_build(&self) -> Result<(), Error> {
        let out_dir = out_dir()?;
        // A build that needs no assembler does not depend on these variables.
        let assemblers = if self.wanted_cubins()?.is_empty() { &[][..] } else { &ptxas::VARIABLES };
        for variable in [toolchain::RUSTC_VARIABLE, CUBINS_VARIABLE].iter().chain(assemblers) {
            println!("cargo::rerun-if-env-changed={variable}");
        }
        let prebuilt = in_package(&self.prebuilt);
        if prebuilt.join(GENERATED).is_file() && !toolchain::is_switched_off() {
            if env::var_os(CUBINS_VARIABLE).is_some_and(|list| !list.is_empty()) {
                println!(
                    "cargo::warning={CUBINS_VARIABLE} makes no machine code here: the kernels in {} are embedded as \
                     they are",
                    prebuilt.display()
                );
            }
            println!("cargo::rerun-if-changed={}", prebuilt.display());
            let path = in_package(&self.path);
            if path.join("Cargo.toml").is_file() {
                // Without a warning, changes to the kernels would have no effect, and nobody would know why.
                println!(
                    "cargo::warning=embedding the kernels in {}, not those of {}: \
                     remove the former to compile the latter",
                    prebuilt.display(),
                    path.display()
                );
            }
            return copy(&prebuilt, &out_dir);
        }
        match self.compile() {
            Ok(artifacts) => {
                for input in &artifacts.inputs {
                    println!("cargo::rerun-if-changed={}", input.display());
                }
                eprint!("{}", artifacts.log);
                artifacts.write_at(&out_dir, Level::Quick, Place::Beside)
            }
            Err(error) if error.is_absence() => {
                println!("cargo::rerun-if-changed={}", in_package(&self.path).join("Cargo.toml").display());
                for file in error.what_may_change() {
                    println!("cargo::rerun-if-changed={}", file.display());
                }
                let note = error.to_string();
                println!("cargo::warning=built without GPU kernels: {}", note.replace('\n', " "));
                artifacts::write_empty(&out_dir, &note)
            }
            Err(error) => Err(error),
        }
    }

    fn kernel_crate(&self) -> Result<PathBuf, Error> {
        let path = in_package(&self.path);
        if !path.join("Cargo.toml").is_file() {
            return Err(Error::NoKernelCrate { path });
        }
        let package = env::var_os("CARGO_MANIFEST_DIR").and_then(|package| fs::canonicalize(package).ok());
        if fs::canonicalize(&path).ok().is_some_and(|path| Some(path) == package) {
            // Its build script would run for the kernels, too, and so on forever.
            return Err(Error::Settings(format!(
                "the kernel crate cannot be {}, the package that is being built: kernels are a crate of their own, in \
                 a folder such as kernels",
                path.display()
            )));
        }
        std::path::absolute(&path).map_err(Error::io("cannot find", &path))
    }

    fn target_folder(&self) -> Result<PathBuf, Error> {
        match &self.target_dir {
            Some(folder) => std::path::absolute(folder).map_err(Error::io("cannot find", folder)),
            None => Ok(out_dir()?.join("pointwise-target")),
        }
    }

    fn wanted_cubins(&self) -> Result<Vec<Sm>, Error> {
        let mut cubins = self.cubins.clone();
        if let Ok(list) = env::var(CUBINS_VARIABLE) {
            let named = Sm::parse_list(&list).map_err(|why| Error::Settings(format!("{CUBINS_VARIABLE}: {why}")))?;
            cubins.extend(named);
        }
        Ok(sorted(&cubins))
    }

    /// Checks the texts for one target, and takes them in. A light target takes its other entries from the target
    /// before it.
    fn take(&self, found: &mut Artifacts, sm: Sm, light: bool, texts: &[&str]) -> Result<(), Error> {
        let mut violations = Vec::new();
        let mut modules = Vec::new();
        let facts: BTreeMap<&str, Facts> = texts.iter().flat_map(|text| facts::read(text)).collect();
        for text in texts {
            let module = ptx::parse(text).map_err(|ptx::ParseError { line, why }| Error::Ptx { sm, line, why })?;
            violations.extend(lint::check(&module, sm, &self.lint, &facts));
            modules.push(module);
        }
        let names = || modules.iter().flat_map(|module| module.entries.iter().map(|entry| entry.name));
        if modules.len() > 1 {
            violations.extend(lint::check_twice(names()));
        }
        let older = found.targets.last().map(|target| &target.modules);
        let inherited = older.filter(|_| light).into_iter().flat_map(|modules| modules.keys().map(String::as_str));
        let all = names().chain(inherited);
        if let Some(expected) = &self.expected {
            violations.extend(lint::check_entries(all, expected));
        } else if let Some(older) = older {
            // All targets have the same entries.
            violations.extend(lint::check_entries(all, &older.keys().cloned().collect()));
        }
        if !violations.is_empty() {
            return Err(Error::Lint { sm, violations });
        }
        let differs = |&(name, facts): &(&&str, &Facts)| {
            older.and_then(|older| older.get(*name)).is_some_and(|module| module.row != Some(facts.row))
        };
        if let Some((name, _)) = facts.iter().find(differs) {
            let why = format!("{name} has another row than for older targets: a row must be the same for all");
            return Err(Error::Output { kernel_crate: self.kernel_crate()?, sm, why });
        }
        found.add(sm, light, &modules, &facts);
        Ok(())
    }
}

fn sorted(list: &[Sm]) -> Vec<Sm> {
    list.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn out_dir() -> Result<PathBuf, Error> {
    env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| {
        Error::Settings("OUT_DIR is not set: outside of a build script, give Kernels::target_dir".to_owned())
    })
}

/// Returns a path in the package whose build script runs.
pub(crate) fn in_package(path: &Path) -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| path.to_owned(), |package| Path::new(&package).join(path))
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(from).map_err(Error::io("cannot list", from))? {
        let path = entry.map_err(Error::io("cannot list", from))?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            let bytes = fs::read(&path).map_err(Error::io("cannot read", &path))?;
            artifacts::write_file(&to.join(name), &bytes)?;
        }
    }
    Ok(())
}

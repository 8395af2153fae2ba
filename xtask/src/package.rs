//! `cargo xtask package`: makes the packages to publish and tries them, short of the upload.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pointwise_build::toolchain;

use crate::shell::{cargo, root, run as run_command};
use crate::{build_ptx, family, licences};

/// The crates to publish, each after those it depends on.
pub(crate) const CRATES: [&str; 11] = [
    "pointwise-macros",
    "pointwise-core",
    "pointwise-device",
    "pointwise-ptx",
    "pointwise-build",
    "pointwise-emulator",
    "pointwise",
    "pointwise-testkit",
    "pointwise-torch",
    "pointwise-candle",
    "pointwise-cli",
];

const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// crates.io takes no larger file.
const LARGEST: u64 = 10 * 1024 * 1024;

/// All features that build without nvcc.
const FEATURES: &str = "pointwise/emulator,pointwise/cudarc,pointwise/cust,pointwise/safetensors,pointwise/ndarray,\
                        pointwise/serde,pointwise-testkit/family,pointwise-torch/python";

/// The trial's program: an op on the CPU, and the kernels that came with the package.
const TRIAL: &str = r#"
use pointwise::{Device, Tensor, ops, embed::embedded};

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
    // Git ignores this folder: cargo packs what is in it.
    let stage = dist.join("workspace");
    let work = std::env::temp_dir().join(format!("pointwise-package-{}", std::process::id()));
    empty(&work)?;
    let made = all(&stage, &dist, &work);
    // The temporary files are of use only for as long as this runs; what went wrong matters more than a failure here.
    let removed = fs::remove_dir_all(&work);
    made?;
    removed.with_context(|| format!("cannot remove {}", work.display()))?;
    println!("packed and tried, in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn all(stage: &Path, dist: &Path, work: &Path) -> Result<()> {
    let start = Instant::now();
    let said = |what: &str| println!("{what}: done after {:.0} s", start.elapsed().as_secs_f64());
    write_workspace(stage)?;
    said("the workspace to publish");
    pack(stage, &work.join("target"), dist)?;
    publish_dry(stage, &work.join("target"))?;
    said("cargo publish --dry-run");
    check_minimal_versions(stage, &work.join("minimal"))?;
    said("the oldest versions that the manifests allow");
    let packages = unpack(dist, &work.join("packages"))?;
    try_all(&packages, &work.join("all"))?;
    said("a program with every crate");
    try_candle(&packages, &work.join("candle"))?;
    said("a program with candle");
    Ok(())
}

/// Writes a copy of the workspace with what is published: kernels and licences are added to the packages without a trace in
/// the sources.
fn write_workspace(stage: &Path) -> Result<()> {
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
    // Cargo warns of profiles of packages that are not there. None counts for what is published.
    let (manifest, _) = manifest.split_once("[profile.").context("Cargo.toml has no profiles")?;
    let manifest: Vec<&str> = manifest.lines().filter(is_published).collect();
    write(&stage.join("Cargo.toml"), &manifest.join("\n"))?;

    let kernels = family::kernels(root().join("gpu-kernels")).target_dir(build_ptx::target().join("ptx"));
    kernels.compile()?.write(&stage.join("crates/pointwise/prebuilt"))?;
    Ok(())
}

/// Writes the packages to `dist`.
fn pack(stage: &Path, target: &Path, dist: &Path) -> Result<()> {
    let mut command = cargo();
    command.current_dir(stage).args(["package", "--workspace", "--no-verify", "--quiet", "--target-dir"]);
    run_command(command.arg(target))?;
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

/// Builds each crate from its package, and does all else that comes before the upload.
fn publish_dry(stage: &Path, target: &Path) -> Result<()> {
    // As a whole: a crate is built with the packages of those it depends on, which crates.io need not have.
    let mut command = cargo();
    command.current_dir(stage).args(["publish", "--workspace", "--dry-run", "--quiet", "--target-dir"]).arg(target);
    run_command(as_user(&mut command, stage))
}

/// Compiles the crates with the oldest versions of their dependencies that the manifests allow.
fn check_minimal_versions(stage: &Path, folder: &Path) -> Result<()> {
    copy(stage, folder)?;
    let mut update = cargo();
    // Cargo has the option for nightly compilers alone. It chooses versions, and compiles nothing.
    update.current_dir(folder).args(["update", "--quiet", "-Z", "direct-minimal-versions"]);
    run_command(update.env("RUSTC_BOOTSTRAP", "1"))?;
    let mut check = cargo();
    check.current_dir(folder).args(["check", "--workspace", "--locked", "--quiet", "--features", FEATURES]);
    // cust compiles without a CUDA toolkit.
    check.args(["--target-dir"]).arg(folder.join("target")).env("DOCS_RS", "1");
    run_command(as_user(&mut check, folder))
}

/// Unpacks the packages to a folder. Returns name and folder of each.
fn unpack(dist: &Path, to: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    fs::create_dir_all(to)?;
    let mut packages = Vec::new();
    for name in CRATES {
        let file = packed(dist, name)?;
        run_command(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(to))?;
        // A package unpacks to a folder of its own name: NAME-VERSION.
        let unpacked = to.join(file.file_stem().unwrap_or_default());
        let notices = ["pointwise", "pointwise-cli"].contains(&name).then_some(licences::FILE);
        for licence in LICENCES.into_iter().chain(notices) {
            read(&unpacked.join(licence))?;
        }
        packages.push((name, unpacked));
    }
    Ok(packages)
}

/// Builds and runs a program that depends on every package.
fn try_all(packages: &[(&str, PathBuf)], folder: &Path) -> Result<()> {
    let libraries = packages.iter().map(|(name, _)| format!("use {} as _;\n", name.replace('-', "_")));
    let libraries: String = libraries.filter(|line| !line.contains(" pointwise ")).collect();
    let dependencies: String = packages.iter().map(|(name, _)| dependency(name)).collect();
    try_out(packages, folder, &dependencies, &(libraries + TRIAL))
}

/// Builds and runs the program in the README of `pointwise-candle`, with what a new user writes to `Cargo.toml`.
fn try_candle(packages: &[(&str, PathBuf)], folder: &Path) -> Result<()> {
    const NAME: &str = "pointwise-candle";
    let (_, package) = packages.iter().find(|(name, _)| *name == NAME).context("no package for candle")?;
    let readme = read(&package.join("README.md"))?;
    let program = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let program = program.with_context(|| format!("the README of {NAME} has no program"))?;
    try_out(packages, folder, &(dependency(NAME) + "candle-core = \"0.11\"\n"), program)
}

/// The line of a manifest that asks for a crate of this version.
fn dependency(name: &str) -> String {
    // `xtask` has the workspace's version.
    format!("{name} = {:?}\n", env!("CARGO_PKG_VERSION"))
}

/// Builds and runs a project that takes the packages for what crates.io has, without a compiler for device code.
fn try_out(packages: &[(&str, PathBuf)], folder: &Path, dependencies: &str, program: &str) -> Result<()> {
    let patches: String = packages.iter().map(|(name, path)| format!("{name} = {{ path = {path:?} }}\n")).collect();
    let manifest = format!(
        "[package]\nname = \"trial\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\
         [patch.crates-io]\n{patches}\n[workspace]\n"
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("src/main.rs"), program)?;
    let mut command = cargo();
    command.current_dir(folder).args(["run", "--quiet", "--target-dir"]).arg(folder.join("target"));
    run_command(as_user(&mut command, folder))
}

/// Hides the compiler for device code (`none` would be no kernels), and leaves out what debuggers need.
fn as_user<'c>(command: &'c mut Command, folder: &Path) -> &'c mut Command {
    command.env(toolchain::RUSTC_VARIABLE, folder.join("no-compiler")).env("CARGO_PROFILE_DEV_DEBUG", "0")
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::shell::output;

    /// The crates that cargo would publish, as it sees them.
    fn published() -> Vec<Value> {
        let text =
            output(cargo().args(["metadata", "--no-deps", "--locked", "--offline", "--format-version=1"])).unwrap();
        let metadata: Value = serde_json::from_str(&text).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        // `publish = false` is a list of no registries.
        packages.iter().filter(|package| package["publish"].is_null()).cloned().collect()
    }

    fn name(package: &Value) -> &str {
        package["name"].as_str().unwrap()
    }

    /// The features that a program may ask for.
    fn features(package: &Value) -> impl Iterator<Item = &String> {
        package["features"].as_object().unwrap().keys().filter(|feature| *feature != "default")
    }

    #[test]
    fn every_crate_is_packed_after_those_it_depends_on() {
        let published = published();
        let mut names: Vec<&str> = published.iter().map(name).collect();
        let mut listed = CRATES;
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
        let place = |name: &str| CRATES.iter().position(|of| *of == name).unwrap();
        for package in &published {
            let dependencies = package["dependencies"].as_array().unwrap();
            // Cargo packs no dependency of tests that has no version.
            let is_packed = |dependency: &&Value| dependency["kind"] != "dev" || dependency["req"] != "*";
            let ours = dependencies.iter().filter(|dependency| !dependency["path"].is_null()).filter(is_packed);
            for ours in ours {
                assert!(place(name(ours)) < place(name(package)), "{} before {}", name(package), name(ours));
                assert_eq!(ours["req"], format!("^{}", env!("CARGO_PKG_VERSION")), "{}", name(package));
            }
        }
    }

    #[test]
    fn manifests_have_what_crates_io_and_docs_rs_show() {
        for package in published() {
            let name = name(&package);
            for field in ["description", "license", "repository", "rust_version"] {
                assert!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name}: {field}");
            }
            assert_eq!(package["version"], env!("CARGO_PKG_VERSION"), "{name}");
            assert_eq!(package["readme"], "README.md", "{name}");
            assert_eq!(package["documentation"], format!("https://docs.rs/{name}"));
            // crates.io takes five of each, and words of twenty letters.
            for field in ["categories", "keywords"] {
                let words = package[field].as_array().unwrap();
                assert!((1..=5).contains(&words.len()), "{name}: {field}");
                let is_short = |word: &Value| field == "categories" || word.as_str().unwrap().len() <= 20;
                assert!(words.iter().all(is_short), "{name}: {words:?}");
            }
            assert!(package["metadata"]["docs"]["rs"]["targets"].is_array(), "{name}: package.metadata.docs.rs");
        }
    }

    /// crates.io shows a README without the repository around it.
    #[test]
    fn readmes_stand_alone_and_explain_features() {
        for package in published() {
            let folder = root().join("crates").join(name(&package));
            let readme = read(&folder.join("README.md")).unwrap();
            assert!(readme.starts_with(&format!("# {}\n", name(&package))), "{}", name(&package));
            assert!(readme.contains("](https://github.com/pointwise-rs/pointwise"), "{}", name(&package));
            for link in readme.split("](").skip(1) {
                assert!(link.starts_with("https://"), "{}: {link:.40}", name(&package));
            }
            let documentation = read(&folder.join("src/lib.rs")).unwrap();
            for feature in features(&package) {
                let row = format!("| `{feature}` |");
                assert!(readme.contains(&row), "README.md of {} lacks {row}", name(&package));
                assert!(documentation.contains(&format!("//! {row}")), "the docs of {} lack {row}", name(&package));
            }
        }
    }

    #[test]
    fn the_oldest_versions_are_checked_with_all_features() {
        // All but the last are there by default; that one needs nvcc.
        const OTHERS: [&str; 4] =
            ["pointwise/family", "pointwise-core/formulas", "pointwise-device/formulas", "pointwise-candle/cuda"];
        for package in published() {
            for feature in features(&package) {
                let feature = format!("{}/{feature}", name(&package));
                let mut known = FEATURES.split(',').chain(OTHERS);
                assert!(known.any(|of| of == feature), "{feature} is not in FEATURES");
            }
        }
    }
}

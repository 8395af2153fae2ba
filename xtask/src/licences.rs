//! The notices for programs that contain third-party code. `cargo xtask deny` checks its licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::shell::{cargo, output, root};

/// Name of the file with notices.
pub(crate) const FILE: &str = "THIRD-PARTY-NOTICES";

/// The starts of the names of files with a licence's text or a notice.
const TEXTS: [&str; 5] = ["LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// The notice for the library that comes with the compiler and is linked into every program.
const STANDARD_LIBRARY: &str = "\
Rust's standard library, MIT OR Apache-2.0
    Copyright (c) The Rust Project Contributors, https://github.com/rust-lang/rust
    Its own notices are in the toolchain's share/doc/rust/COPYRIGHT-library.html.
";

/// The output of `cargo metadata` for a workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<PathBuf>,
    repository: Option<String>,
    /// None for packages of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `dev`, `build`, or none.
    kind: Option<String>,
}

/// The notices of all third-party code that is linked into programs of these packages of a workspace; with `tests`, of
/// their test programs, too. `features` are those that the packages are built with, beside the default ones.
pub(crate) fn notices(folder: &str, roots: &[&str], features: &str, tests: bool) -> Result<String> {
    let host = host()?;
    let metadata = metadata(folder, &["--filter-platform", &host, "--features", features])?;
    let linked = linked(&metadata, roots, tests)?;
    let mut list = STANDARD_LIBRARY.to_owned();
    // Packages of one project have the same texts.
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for package in linked {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("its own licence");
        list += &format!("{name}, {licence}\n");
        if let Some(repository) = &package.repository {
            list += &format!("    {repository}\n");
        }
        let found = licence_texts(package)?;
        if found.is_empty() {
            list += "    Its package has no text of a licence: those of MIT and Apache-2.0 are below.\n";
            if !licence.contains("MIT") && !licence.contains("Apache-2.0") {
                bail!("{name} is under {licence}, and its package has no text of it");
            }
        }
        for text in found {
            let same = text.split_whitespace().collect::<Vec<_>>().join(" ");
            texts.entry(same).or_insert_with(|| (text, Vec::new())).1.push(name.clone());
        }
    }
    let mut result = format!(
        "Third-party code in these programs, and its licences\n{}\n\nThe programs themselves are under MIT OR \
         Apache-2.0, at your choice.\n\n{list}",
        "=".repeat(52)
    );
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by(|(_, a), (_, b)| a.cmp(b));
    for (text, names) in texts {
        result += &format!("\n{}\n{}\n\n{}\n", "-".repeat(80), names.join(", "), text.trim());
    }
    Ok(result)
}

/// Third-party packages whose code ends up in programs of `roots`, by name: what they depend on, and what that depends
/// on, without macros and what builds need.
fn linked<'m>(metadata: &'m Metadata, roots: &[&str], tests: bool) -> Result<Vec<&'m Package>> {
    let packages: BTreeMap<&str, &Package> = metadata.packages.iter().map(|it| (it.id.as_str(), it)).collect();
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut ids = BTreeSet::new();
    let mut left = Vec::new();
    for name in roots {
        let root = metadata.packages.iter().find(|package| package.name == *name && package.source.is_none());
        left.push((root.with_context(|| format!("no package {name}"))?.id.as_str(), tests));
    }
    while let Some((id, with_tests)) = left.pop() {
        if !ids.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            let is_linked = dependency.dep_kinds.iter().any(|it| match it.kind.as_deref() {
                None => true,
                Some(kind) => with_tests && kind == "dev",
            });
            let is_macro = packages
                .get(dependency.pkg.as_str())
                .is_some_and(|it| it.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro")));
            if is_linked && !is_macro {
                left.push((dependency.pkg.as_str(), false));
            }
        }
    }
    let mut found: Vec<&Package> = ids.iter().filter_map(|id| packages.get(id).copied()).collect();
    found.retain(|package| package.source.is_some());
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

/// The licences and notices in a package.
fn licence_texts(package: &Package) -> Result<Vec<String>> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
    let is_text = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && TEXTS.iter().any(|start| name.starts_with(start))
    };
    let list = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: BTreeSet<PathBuf> = list.flatten().map(|entry| entry.path()).filter(is_text).collect();
    files.extend(package.license_file.iter().map(|file| folder.join(file)).filter(|file| file.is_file()));
    let read = |file: PathBuf| fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()));
    files.into_iter().map(read).collect()
}

fn metadata(folder: &str, arguments: &[&str]) -> Result<Metadata> {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1", "--locked", "--manifest-path"]);
    let text = output(command.arg(root().join(folder).join("Cargo.toml")).args(arguments))?;
    serde_json::from_str(&text).context("cargo metadata is not as expected")
}

/// The triple that programs are built for here.
fn host() -> Result<String> {
    let text = output(std::process::Command::new("rustc").arg("-vV").current_dir(root()))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_notices_have_what_is_linked_and_nothing_else() {
        let text = notices("", &["pointwise-cli"], "", false).unwrap();
        for linked in
            ["Rust's standard library", "\nclap ", "\nsafetensors ", "\nrayon ", "Permission is hereby granted"]
        {
            assert!(text.contains(linked), "{linked}");
        }
        // A macro, what tests need, and what is our own.
        for absent in ["\nserde_derive ", "\ntrybuild ", "\npointwise-core "] {
            assert!(!text.contains(absent), "{absent}");
        }
        let with_tests = notices("", &["tests", "benches"], "", true).unwrap();
        assert!(with_tests.contains("\ncriterion "));
    }
}

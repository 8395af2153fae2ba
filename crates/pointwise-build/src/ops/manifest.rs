//! By which name the package has pointwise.

use std::{env, fs, path::Path};

/// Another name than `pointwise`, by which the package's manifest has it, unless a file of the package gives it that name.
pub(crate) fn renamed() -> Option<String> {
    let package = env::var_os("CARGO_MANIFEST_DIR")?;
    let package = Path::new(&package);
    let name = other_name(&fs::read_to_string(package.join("Cargo.toml")).ok()?)?;
    let roots = ["src/lib.rs", "src/main.rs"];
    let mut roots = roots.iter().filter_map(|root| fs::read_to_string(package.join(root)).ok());
    (!roots.any(|text| text.contains(" as pointwise;"))).then_some(name)
}

/// Returns the error of each op in a package that has pointwise by another name.
pub(crate) fn why(name: &str) -> String {
    format!(
        "Cargo.toml calls the crate pointwise `{name}`, and #[op] needs it by its own name: write `pointwise = {{ .. }}` \
         there, or `extern crate {name} as pointwise;` in the root of the crate"
    )
}

/// The key of a dependency `{ package = "pointwise" }` that is none of its own name, in a line or in a table.
fn other_name(manifest: &str) -> Option<String> {
    let mut table = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']');
            continue;
        }
        let plain: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let Some(before) = plain.find("package=\"pointwise\"").map(|at| &plain[..at]) else { continue };
        let (parent, last) = table.rsplit_once('.').unwrap_or(("", table));
        let name = match before.split_once('=') {
            Some((name, _)) if last.ends_with("dependencies") => name,
            None if parent.ends_with("dependencies") => last,
            _ => continue,
        };
        let name = name.trim_matches('"').replace('-', "_");
        if name != "pointwise" {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::other_name;

    #[test]
    fn a_renamed_dependency_is_found() {
        let line = "[package]\nname = \"x\"\n[dependencies]\npoint-wise = { path = \"p\", package = \"pointwise\" }\n";
        assert_eq!(other_name(line).as_deref(), Some("point_wise"));
        let table = "[target.'cfg(unix)'.dependencies.pw]\npath = \"p\"\npackage = \"pointwise\"\n";
        assert_eq!(other_name(table).as_deref(), Some("pw"));
        for plain in [
            "[dependencies]\npointwise = { package = \"pointwise\", path = \"p\" }\n",
            "[dependencies]\npointwise = \"0.1\"\n# pw = { package = \"pointwise\" }\n",
            "[package]\nname = \"pointwise\"\n",
        ] {
            assert_eq!(other_name(plain), None, "{plain}");
        }
    }
}

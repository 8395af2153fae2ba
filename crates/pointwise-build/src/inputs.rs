//! The files that a compiled kernel crate came from, read from the dep-info file that cargo leaves beside it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Returns the source files in cargo's dep-info `text`, with the manifests of their packages. Leaves out files under
/// one of the `foreign` folders: the compiler's library and packages from a registry do not change.
pub(crate) fn from_dep_info(text: &str, foreign: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut inputs = BTreeSet::new();
    for line in text.lines() {
        let Some(list) = prerequisites(line) else {
            continue;
        };
        for source in list {
            if foreign.iter().any(|folder| source.starts_with(folder)) {
                continue;
            }
            inputs.extend(manifest_of(&source));
            inputs.insert(source);
        }
    }
    inputs
}

/// Returns the paths to the right of the colon in a make rule. A blank in a path is written `\ `.
fn prerequisites(line: &str) -> Option<Vec<PathBuf>> {
    // On Windows a colon also follows the drive letter, but no blank follows that one.
    let (_, list) = line.split_once(": ")?;
    let mut paths = Vec::new();
    let mut path = String::new();
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&' ') => path.extend(characters.next()),
            ' ' => paths.extend((!path.is_empty()).then(|| PathBuf::from(std::mem::take(&mut path)))),
            _ => path.push(character),
        }
    }
    paths.extend((!path.is_empty()).then(|| PathBuf::from(path)));
    Some(paths)
}

/// Returns the `Cargo.toml` of a source file's package.
fn manifest_of(source: &Path) -> Option<PathBuf> {
    source.ancestors().skip(1).map(|folder| folder.join("Cargo.toml")).find(|manifest| manifest.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_without_foreign_ones() {
        let text = "/t/libk.rlib: /k/src/lib.rs /with\\ blank/src/a.rs /registry/half/src/lib.rs\n";
        let found = from_dep_info(text, &[PathBuf::from("/registry")]);
        let expected: BTreeSet<PathBuf> = ["/k/src/lib.rs", "/with blank/src/a.rs"].map(PathBuf::from).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn drive_letters_and_empty_rules() {
        assert_eq!(prerequisites(r"C:\t\libk.rlib: C:\k\lib.rs"), Some(vec![PathBuf::from(r"C:\k\lib.rs")]));
        assert_eq!(prerequisites(""), None);
    }
}

//! The files of a module of ops, and the ops in them.

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Item;

use crate::Error;

/// A module with its submodules.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The module's name.
    pub(crate) module: String,
    /// The module's file first.
    pub(crate) files: Vec<SourceFile>,
    /// What may hold files of submodules, whether it is there or not.
    folder: PathBuf,
    ops: Vec<FoundOp>,
}

/// A file of the module.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    /// Its place in the folder `src` of the kernel crate.
    pub(crate) place: PathBuf,
    pub(crate) text: String,
}

/// A function, or an impl of an op trait, with the attribute.
#[derive(Debug)]
pub(crate) struct FoundOp {
    pub(crate) name: String,
    /// Which of the files.
    pub(crate) file: usize,
    pub(crate) lines: RangeInclusive<usize>,
}

impl Sources {
    /// The module in the file `path`: `src/ops.rs` with `src/ops/`, or `src/ops/mod.rs` with its folder.
    pub(crate) fn read(path: &Path) -> Result<Sources, Error> {
        let text = fs::read_to_string(path).map_err(Error::io("cannot read the ops in", path))?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_mod = path.file_name().is_some_and(|name| name == "mod.rs");
        let named = if is_mod { parent.file_name() } else { path.file_stem() };
        let module = named.and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if syn::parse_str::<syn::Ident>(&module).is_err() || matches!(&*module, "lib" | "main") {
            let why = format!(
                "{} is no module of a crate: put the ops in one of their own, such as src/ops.rs, and declare it with \
                 `mod ops;`",
                path.display()
            );
            return Err(Error::Settings(why));
        }
        let folder = if is_mod { parent.to_owned() } else { parent.join(&module) };
        let name = if is_mod { PathBuf::from(&module).join("mod.rs") } else { PathBuf::from(format!("{module}.rs")) };
        let mut files = vec![SourceFile { path: path.to_owned(), place: name, text }];
        submodules(&folder, Path::new(&module), &mut files)?;
        let ops = files.iter().enumerate().flat_map(|(k, file)| found(k, &file.text)).collect();
        Ok(Sources { module, files, folder, ops })
    }

    /// The ops, in the order of the files.
    pub(crate) fn ops(&self) -> &[FoundOp] {
        &self.ops
    }

    /// What cargo is to watch.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &Path> {
        // Cargo takes what does not exist for changed at every build.
        let folder = Some(&*self.folder).filter(|folder| folder.is_dir());
        self.files.iter().map(|file| &*file.path).chain(folder)
    }

    /// A hash of the files' tokens, as 16 digits: another comment or layout makes no other kernels.
    pub(crate) fn hash(&self) -> String {
        let mut hash = Hash::new();
        for file in &self.files {
            hash.write(file.place.as_os_str().as_encoded_bytes());
            match file.text.parse::<TokenStream>() {
                Ok(tokens) => hash.write(tokens.to_string().as_bytes()),
                Err(_) => hash.write(file.text.as_bytes()),
            }
        }
        format!("{:016x}", hash.0)
    }
}

/// FNV-1a, which is the same in every version of every compiler.
pub(crate) struct Hash(pub(crate) u64);

impl Hash {
    pub(crate) fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// Takes in some bytes, and that they end here.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The files of submodules, sorted.
fn submodules(folder: &Path, place: &Path, files: &mut Vec<SourceFile>) -> Result<(), Error> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("cannot list", folder))? {
        paths.push(entry.map_err(Error::io("cannot list", folder))?.path());
    }
    paths.sort();
    for path in paths {
        let Some(name) = path.file_name() else { continue };
        let place = place.join(name);
        if path.is_dir() {
            submodules(&path, &place, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && files[0].path != path {
            let text = fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
            files.push(SourceFile { path, place, text });
        }
    }
    Ok(())
}

/// The ops in a file; none in one that does not parse.
fn found(file: usize, text: &str) -> Vec<FoundOp> {
    let mut ops = Vec::new();
    if let Ok(parsed) = syn::parse_file(text) {
        collect(&parsed.items, file, &mut ops);
    }
    ops
}

fn collect(items: &[Item], file: usize, ops: &mut Vec<FoundOp>) {
    for item in items {
        match item {
            Item::Fn(function) => {
                let name = function.sig.ident.to_string();
                ops.extend(found_op(&function.attrs, name, function.to_token_stream(), file));
            }
            Item::Impl(item) => {
                if let syn::Type::Path(path) = &*item.self_ty
                    && let Some(last) = path.path.segments.last()
                {
                    let name = snake(&last.ident.to_string());
                    ops.extend(found_op(&item.attrs, name, item.to_token_stream(), file));
                }
            }
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    collect(items, file, ops);
                }
            }
            _ => {}
        }
    }
}

/// The op of an item, if it has the attribute.
fn found_op(attributes: &[syn::Attribute], name: String, item: TokenStream, file: usize) -> Option<FoundOp> {
    let is_op = |attribute: &syn::Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "op");
    if !attributes.iter().any(is_op) {
        return None;
    }
    let mut spans = item.into_iter().map(|token| token.span());
    let first = spans.next()?;
    let last = spans.last().unwrap_or(first);
    Some(FoundOp { name, file, lines: first.start().line..=last.end().line })
}

/// `BiasGelu` as `bias_gelu`, which is how the attribute calls an op by hand.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (k, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && k > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "use pointwise::prelude::*;\n\n/// Doc.\n#[op(f32, exact)]\nfn one<T: Num>(x: T) -> T {\n    x\n}\n\n\
                        fn helper() {}\n\nmod inner {\n    #[pointwise::op(f32, exact)]\n    fn two<T: Num>(x: T) -> T { x }\n}\n";

    #[test]
    fn ops_are_found_with_their_lines() {
        let ops = found(3, TEXT);
        let ops: Vec<_> = ops.into_iter().map(|op| (op.name, op.file, op.lines)).collect();
        assert_eq!(ops, [("one".to_owned(), 3, 3..=7), ("two".to_owned(), 3, 12..=13)]);
        assert!(found(0, "fn (").is_empty());
        let by_hand = found(0, "#[op(f32, exact)]\nimpl<T: Real> UnaryOp<T> for BiasGelu<T> {}\nimpl Other {}");
        assert_eq!(by_hand.iter().map(|op| &*op.name).collect::<Vec<_>>(), ["bias_gelu"]);
    }

    #[test]
    fn comments_and_spaces_do_not_count() {
        let hash = |text: &str| {
            let file = SourceFile { path: "src/ops.rs".into(), place: "ops.rs".into(), text: text.to_owned() };
            Sources { module: "ops".into(), files: vec![file], folder: PathBuf::new(), ops: Vec::new() }.hash()
        };
        assert_eq!(hash(TEXT), hash(&TEXT.replace("    ", "  ").replace("fn helper", "// A comment.\nfn helper")));
        assert_ne!(hash(TEXT), hash(&TEXT.replace("Doc.", "Another.")));
        assert_ne!(hash("fn ("), hash("fn )"));
    }
}

//! The files of a module of ops, and the ops in them.

use std::{
    collections::BTreeSet,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, TraitItem};

use crate::Error;

/// A module with its submodules.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The module's name.
    pub(crate) module: String,
    /// The module's file first.
    pub(crate) files: Vec<SourceFile>,
    /// The folder that may hold files of submodules. It need not exist.
    folder: PathBuf,
    ops: Vec<FoundOp>,
    /// The names of functions in an `impl` or a trait with the attribute, which is for functions of modules.
    methods: Vec<String>,
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
        let (mut ops, mut methods) = (Vec::new(), Vec::new());
        for (k, file) in files.iter().enumerate() {
            if let Ok(parsed) = syn::parse_file(&file.text) {
                collect(&parsed.items, k, &mut ops, &mut methods);
            }
        }
        Ok(Sources { module, files, folder, ops, methods })
    }

    /// The ops, in the order of the files.
    pub(crate) fn ops(&self) -> &[FoundOp] {
        &self.ops
    }

    /// Functions of an `impl` or a trait that have the attribute.
    pub(crate) fn methods(&self) -> &[String] {
        &self.methods
    }

    /// True if there may be an op. A macro of the file may make some that [`Sources::ops`] does not know.
    pub(crate) fn may_have_ops(&self) -> bool {
        self.tokens().any(|tokens| mentions(tokens, &["op"]))
    }

    /// The names of all cfgs that the files ask for.
    pub(crate) fn cfgs(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.tokens().for_each(|tokens| cfgs(tokens, &mut names));
        names
    }

    /// The files of the folder that no `mod` of the module declares.
    pub(crate) fn undeclared(&self) -> impl Iterator<Item = &SourceFile> {
        let is_declared = |file: &&SourceFile| self.tokens().any(|tokens| declares(tokens, &file.path));
        self.files.iter().skip(1).filter(move |file| !is_declared(file))
    }

    /// True if a file of the package declares the module.
    pub(crate) fn is_declared(&self) -> bool {
        let mut others = Vec::new();
        let parent = self.files[0].path.parent().unwrap_or(Path::new(""));
        let parent = if self.files[0].path.ends_with("mod.rs") { parent.parent().unwrap_or(parent) } else { parent };
        if submodules(parent, Path::new(""), &mut others).is_err() {
            return true;
        }
        let is_own = |file: &SourceFile| self.files.iter().any(|own| own.path == file.path);
        let mut others = others.iter().filter(|file| !is_own(file));
        others.any(|file| file.text.parse().is_ok_and(|tokens| declares(tokens, &self.files[0].path)))
    }

    /// The files' tokens.
    fn tokens(&self) -> impl Iterator<Item = TokenStream> {
        self.files.iter().filter_map(|file| file.text.parse().ok())
    }

    /// The files that cargo watches, and the folder if it exists.
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
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && files.first().is_none_or(|first| first.path != path)
        {
            let text = fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
            files.push(SourceFile { path, place, text });
        }
    }
    Ok(())
}

/// The ops among items, and the functions of impls and traits that have the attribute.
fn collect(items: &[Item], file: usize, ops: &mut Vec<FoundOp>, methods: &mut Vec<String>) {
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
                methods.extend(item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) if is_op(&function.attrs) => Some(function.sig.ident.to_string()),
                    _ => None,
                }));
            }
            Item::Trait(item) => methods.extend(item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(function) if is_op(&function.attrs) => Some(function.sig.ident.to_string()),
                _ => None,
            })),
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    collect(items, file, ops, methods);
                }
            }
            _ => {}
        }
    }
}

/// True if the attribute is there, or may be, by `cfg_attr`.
fn is_op(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let by_cfg = path.is_ident("cfg_attr")
            && attribute.meta.require_list().is_ok_and(|list| mentions(list.tokens.clone(), &["op"]));
        by_cfg || path.segments.last().is_some_and(|last| last.ident == "op")
    })
}

/// The op of an item, if it has the attribute.
fn found_op(attributes: &[Attribute], name: String, item: TokenStream, file: usize) -> Option<FoundOp> {
    if !is_op(attributes) {
        return None;
    }
    let mut spans = item.into_iter().map(|token| token.span());
    let first = spans.next()?;
    let last = spans.last().unwrap_or(first);
    Some(FoundOp { name, file, lines: first.start().line..=last.end().line })
}

/// True if one of the names is among the tokens.
fn mentions(tokens: TokenStream, names: &[&str]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Ident(ident) => names.iter().any(|name| ident == name),
        _ => false,
    })
}

/// True if `mod NAME` for a file is among the tokens, or its name as a text, as in `#[path]` and `include!`.
fn declares(tokens: TokenStream, path: &Path) -> bool {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = if file == "mod.rs" { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    let stem = stem.and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut after_mod = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => declares(group.stream(), path),
        TokenTree::Ident(ident) => std::mem::replace(&mut after_mod, ident == "mod") && ident == stem,
        TokenTree::Literal(literal) => literal.to_string().contains(file),
        TokenTree::Punct(_) => false,
    })
}

/// The names in `cfg!(..)`, `#[cfg(..)]` and the condition of `#[cfg_attr(..)]`.
fn cfgs(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let mut before = None;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                match before.take() {
                    Some("cfg") if group.delimiter() == Delimiter::Parenthesis => predicate(group.stream(), names),
                    Some("cfg_attr") => {
                        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
                        predicate(group.stream().into_iter().take_while(|token| !is_comma(token)).collect(), names);
                    }
                    _ => {}
                }
                cfgs(group.stream(), names);
            }
            TokenTree::Ident(ident) => {
                before = ["cfg", "cfg_attr"].into_iter().find(|name| ident == name);
            }
            // That of `cfg!`.
            TokenTree::Punct(punct) if punct.as_char() == '!' => {}
            _ => before = None,
        }
    }
}

/// The names in the condition of a cfg.
fn predicate(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => predicate(group.stream(), names),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                if !matches!(&*name, "all" | "any" | "not" | "true" | "false") {
                    names.insert(name);
                }
            }
            _ => {}
        }
    }
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
        let (ops, _) = found(3, TEXT);
        let ops: Vec<_> = ops.into_iter().map(|op| (op.name, op.file, op.lines)).collect();
        assert_eq!(ops, [("one".to_owned(), 3, 3..=7), ("two".to_owned(), 3, 12..=13)]);
        let names = |text| found(0, text).0.into_iter().map(|op| op.name).collect::<Vec<_>>();
        let by_hand = "#[op(f32, exact)]\nimpl<T: Real> UnaryOp<T> for BiasGelu<T> {}\nimpl Other {}";
        assert_eq!(names(by_hand), ["bias_gelu"]);
        assert_eq!(
            names("#[cfg_attr(feature = \"gpu\", op(f32, exact))]\nfn three<T: Num>(x: T) -> T { x }"),
            ["three"]
        );
        let (ops, methods) = found(0, "impl X { #[op(f32)] fn a() {} fn b() {} }\ntrait Y { #[op(f32)] fn c(); }");
        assert!(ops.is_empty() && methods == ["a", "c"], "{methods:?}");
    }

    fn found(file: usize, text: &str) -> (Vec<FoundOp>, Vec<String>) {
        let (mut ops, mut methods) = (Vec::new(), Vec::new());
        collect(&syn::parse_file(text).unwrap().items, file, &mut ops, &mut methods);
        (ops, methods)
    }

    #[test]
    fn an_op_of_a_macro_may_be_there() {
        let has = |text: &str| sources(text).may_have_ops();
        assert!(has(
            "macro_rules! twice { ($name:ident) => { #[op(f32, exact)] fn $name<T: Num>(x: T) -> T { x + x } } }"
        ));
        assert!(has(TEXT) && !has("pub fn ops() {}"));
    }

    #[test]
    fn cfgs_are_found_by_name() {
        let text = "#[cfg(all(unix, not(feature = \"a\")))] fn f() {}\n#[cfg_attr(fast, inline)] fn g() -> bool {\n    if \
                    cfg!(debug_assertions) { f(target_os) } else { cfg }\n}\nconst fn cfg_of(x: bool) {}";
        let names: Vec<String> = sources(text).cfgs().into_iter().collect();
        assert_eq!(names, ["debug_assertions", "fast", "feature", "unix"]);
    }

    #[test]
    fn a_file_is_declared_by_its_name() {
        let is = |text: &str, path: &str| declares(text.parse().unwrap(), Path::new(path));
        assert!(is("pub mod ops;", "src/ops.rs") && is("mod a { mod ops; }", "src/ops/mod.rs"));
        assert!(is("#[path = \"../more/ops.rs\"] mod other;", "more/ops.rs"));
        assert!(!is("use ops::x; mod opsy;", "src/ops.rs") && !is("mod a; ops!()", "src/ops.rs"));
    }

    fn sources(text: &str) -> Sources {
        let file = SourceFile { path: "src/ops.rs".into(), place: "ops.rs".into(), text: text.to_owned() };
        Sources {
            module: "ops".into(),
            files: vec![file],
            folder: PathBuf::new(),
            ops: Vec::new(),
            methods: Vec::new(),
        }
    }

    #[test]
    fn comments_and_spaces_do_not_count() {
        let hash = |text: &str| sources(text).hash();
        assert_eq!(hash(TEXT), hash(&TEXT.replace("    ", "  ").replace("fn helper", "// A comment.\nfn helper")));
        assert_ne!(hash(TEXT), hash(&TEXT.replace("Doc.", "Another.")));
        assert_ne!(hash("fn ("), hash("fn )"));
    }
}

//! The results of compiling a kernel crate, and the files that embed them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error, Sm, Toolchain,
    facts::{self, Facts},
    pack::{self, Level},
    parallel,
    ptx::{Kind, Module, registers, wait},
    ptxas::{Assembly, Figures, Ptxas},
};

/// The file that a host crate includes.
pub const GENERATED: &str = "pointwise_kernels.rs";

/// The entries, sorted, one a line: the name and the word of its row.
const SYMBOLS: &str = "pointwise_kernels.txt";

/// The results of compiling a kernel crate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Artifacts {
    /// The compiler, as [`Toolchain`] displays it without its path.
    pub note: String,
    /// The files it was compiled from: those whose change asks for another build.
    pub inputs: BTreeSet<PathBuf>,
    /// The text that cargo and the compiler wrote: their warnings.
    pub log: String,
    /// One for each compute capability, the oldest first. All have entries of the same names.
    pub targets: Vec<TargetArtifacts>,
    cubins: Vec<Cubins>,
}

/// The PTX for one compute capability.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TargetArtifacts {
    /// The compute capability.
    pub sm: Sm,
    /// The version of the PTX language.
    pub version: (u32, u32),
    /// The entries, by name.
    pub modules: BTreeMap<String, EntryModule>,
}

/// One entry with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryModule {
    /// The compute capability that it was compiled for: the target's, or an older one's if its code is the same.
    pub sm: Sm,
    /// Word and slots of the row that it was made of; `None` for an entry by hand.
    pub row: Option<(u64, u128)>,
    /// The op that it belongs to; `None` for an entry by hand.
    pub op: Option<String>,
    /// The declarations that it mentions.
    pub declarations: Vec<String>,
    /// Its text, without comments but one: where it waits for the kernels before it, from sm_90 on.
    pub entry: String,
}

/// Machine code for one compute capability.
#[derive(Clone, Debug)]
struct Cubins {
    sm: Sm,
    groups: Vec<Assembly>,
}

impl TargetArtifacts {
    /// The text of a module with these entries; unknown names are left out.
    #[must_use]
    pub fn module<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> String {
        let modules: Vec<_> = names.into_iter().filter_map(|name| self.modules.get(name)).collect();
        self.text(&modules, self.sm)
    }

    /// The entries that no older target has the same: those embedded for this one, in the order of their names.
    pub fn own(&self) -> impl Iterator<Item = (&str, &EntryModule)> {
        self.modules.iter().filter(|(_, module)| module.sm == self.sm).map(|(name, module)| (name.as_str(), module))
    }

    /// Every entry in one module.
    #[must_use]
    pub fn whole(&self) -> String {
        self.text(&self.modules.values().collect::<Vec<_>>(), self.sm)
    }

    /// The text of a module for a device, which may be newer than the target.
    fn text(&self, modules: &[&EntryModule], device: Sm) -> String {
        let (target, (major, minor), waits) = wait::header(self.sm, self.version, device);
        let mut text = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n");
        let declarations: BTreeSet<&String> = modules.iter().flat_map(|module| &module.declarations).collect();
        for declaration in declarations {
            text += declaration;
            text.push('\n');
        }
        for module in modules {
            text += &module.entry;
        }
        if waits { wait::with_instruction(&text) } else { text }
    }
}

impl Artifacts {
    pub(crate) fn new(toolchain: &Toolchain) -> Self {
        Artifacts {
            note: toolchain.version.clone(),
            inputs: BTreeSet::new(),
            log: String::new(),
            targets: Vec::new(),
            cubins: Vec::new(),
        }
    }

    /// Takes in the modules of one target, which keep every rule. A light target has the other entries of the one
    /// before it.
    pub(crate) fn add(&mut self, sm: Sm, light: bool, texts: &[Module<'_>], facts: &BTreeMap<&str, Facts>) {
        let mut modules = match self.targets.last() {
            Some(older) if light => older.modules.clone(),
            _ => BTreeMap::new(),
        };
        let mut version = (0, 0);
        for text in texts {
            version = version.max(text.version);
            for entry in &text.entries {
                let declarations = text
                    .declarations
                    .iter()
                    .filter(|it| it.kind == Kind::Shared && entry.mentions(it.name))
                    .map(|it| it.text.to_owned())
                    .collect();
                let entry_text = wait::with_comment(&registers::with_limit(entry, entry.compact()));
                let facts = facts.get(entry.name);
                let (row, op) = (facts.map(|facts| facts.row), facts.map(|facts| facts.op.clone()));
                modules.insert(entry.name.to_owned(), EntryModule { sm, row, op, declarations, entry: entry_text });
            }
        }
        self.targets.push(TargetArtifacts { sm, version, modules });
    }

    /// The entries of the ops, by the ops' names.
    pub(crate) fn by_op(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut ops: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, module) in self.targets.first().into_iter().flat_map(|target| &target.modules) {
            if let Some(op) = &module.op {
                ops.entry(op).or_default().insert(name);
            }
        }
        ops
    }

    /// The names of the entries, sorted.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.targets.first().into_iter().flat_map(|target| target.modules.keys().map(String::as_str))
    }

    /// The newest target whose PTX a device of compute capability `sm` can run.
    #[must_use]
    pub fn target_for(&self, sm: Sm) -> Option<&TargetArtifacts> {
        self.targets.iter().filter(|target| target.sm <= sm).max_by_key(|target| target.sm)
    }

    /// Assembles every entry for `sm` and returns what the assembler says about each, by name.
    ///
    /// # Errors
    /// [`Error::Settings`] if no target's PTX runs on `sm`, [`Error::Tool`] if ptxas refuses it.
    pub fn assemble(&self, ptxas: &Ptxas, sm: Sm) -> Result<Vec<Figures>, Error> {
        let mut figures: Vec<_> = self.groups(ptxas, sm)?.into_iter().flat_map(|assembly| assembly.figures).collect();
        figures.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(figures)
    }

    pub(crate) fn add_cubin(&mut self, ptxas: &Ptxas, sm: Sm) -> Result<(), Error> {
        let groups = self.groups(ptxas, sm)?;
        self.cubins.push(Cubins { sm, groups });
        Ok(())
    }

    /// Machine code for `sm`, a file for a few entries.
    fn groups(&self, ptxas: &Ptxas, sm: Sm) -> Result<Vec<Assembly>, Error> {
        let Some(target) = self.target_for(sm) else {
            return Err(Error::Settings(format!("no target's PTX can be assembled for {sm}")));
        };
        let modules: Vec<&EntryModule> = target.modules.values().collect();
        let groups: Vec<_> = modules.chunks(pack::CUBIN_ENTRIES).collect();
        parallel::map(&groups, |group| ptxas.assemble(&target.text(group, sm), sm))
    }

    /// Writes the file to include, [`GENERATED`], and those it includes in turn, to `folder`, as
    /// small as they get.
    ///
    /// # Errors
    /// [`Error::Io`] with the file that could not be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        self.write_at(folder, Level::Small, Place::Beside)
    }

    /// With these entries and no others. Machine code is assembled anew, since its files are of several entries.
    pub(crate) fn only(&self, names: &BTreeSet<&str>) -> Result<Artifacts, Error> {
        let mut only = Artifacts { cubins: Vec::new(), ..self.clone() };
        for target in &mut only.targets {
            target.modules.retain(|name, _| names.contains(&**name));
        }
        for cubins in &self.cubins {
            only.add_cubin(&crate::ptxas::find()?, cubins.sm)?;
        }
        Ok(only)
    }

    /// Writes the expression of a `pointwise::embed::Pack` to [`GENERATED`].
    pub(crate) fn write_at(&self, folder: &Path, level: Level, place: Place) -> Result<(), Error> {
        let entries = self.targets.first().into_iter().flat_map(|target| &target.modules);
        let entries: Vec<String> = entries.map(|(name, module)| facts::line(name, module.row)).collect();
        let names = place.text(folder, SYMBOLS, &entries.join("\n"))?;
        let mut generated = format!("(\n    {:?},\n    {names},\n    &[\n", self.note);
        for target in &self.targets {
            let (names, modules): (Vec<&str>, Vec<&EntryModule>) = target.own().unzip();
            let texts: Vec<String> = modules.iter().map(|module| target.text(&[module], target.sm)).collect();
            let groups = pack::texts(&texts, level)?;
            let names = if names.len() == entries.len() {
                ALL.to_owned()
            } else {
                place.text(folder, &format!("{}.txt", target.sm), &names.join("\n"))?
            };
            let (sm, version, _) = wait::header(target.sm, target.version, target.sm);
            let bytes = place.bytes(folder, &format!("{sm}.ptx.zst"), &groups)?;
            generated += &line(sm, version, &names, &bytes, &groups);
        }
        for cubins in &self.cubins {
            let groups = parallel::map(&cubins.groups, |Assembly { cubin, figures }| {
                pack::Group::compress(cubin, figures.len(), level)
            })?;
            let bytes = place.bytes(folder, &format!("{}.cubin.zst", cubins.sm), &groups)?;
            generated += &line(cubins.sm, (0, 0), ALL, &bytes, &groups);
        }
        generated += "    ],\n)\n";
        write_file(&folder.join(GENERATED), generated.as_bytes())
    }
}

/// For the names of a target that has all entries.
const ALL: &str = "\"*\"";

/// A `pointwise::embed::PackedTarget`: what a host crate embeds for one target.
fn line(sm: Sm, (major, minor): (u32, u32), names: &str, bytes: &str, groups: &[pack::Group]) -> String {
    let groups: Vec<String> =
        groups.iter().map(|group| format!("({}, {}, {})", group.entries, group.bytes.len(), group.size)).collect();
    format!("        ({}, ({major}, {minor}), {names}, {bytes}, &[{}]),\n", sm.0, groups.join(", "))
}

/// The place of an expression's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In files beside that with the expression, which `pointwise::include_kernels!` includes. `pointwise_files` is a name
    /// that it gives.
    Beside,
    /// In the expression, as literals: it stands in code whose names may be anybody's.
    Inline,
}

impl Place {
    /// The expression of a text.
    fn text(self, folder: &Path, file: &str, text: &str) -> Result<String, Error> {
        match self {
            Place::Beside => {
                write_file(&folder.join(file), text.as_bytes())?;
                Ok(format!("pointwise_files::include_str!({file:?})"))
            }
            Place::Inline => Ok(format!("{text:?}")),
        }
    }

    /// The expression of the bytes of groups.
    fn bytes(self, folder: &Path, file: &str, groups: &[pack::Group]) -> Result<String, Error> {
        let bytes = groups.iter().map(|group| &*group.bytes).collect::<Vec<_>>().concat();
        match self {
            Place::Beside => {
                write_file(&folder.join(file), &bytes)?;
                Ok(format!("pointwise_files::include_bytes!({file:?})"))
            }
            Place::Inline => Ok(format!("b\"{}\"", bytes.escape_ascii())),
        }
    }
}

/// Writes a file to include that has no kernels.
pub(crate) fn write_empty(folder: &Path, why: &str) -> Result<(), Error> {
    write_file(&folder.join(GENERATED), format!("({why:?}, \"\", &[])\n").as_bytes())
}

/// Writes a file, if its content is not what it is already: the host crate is not compiled again for nothing.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if !differs(path, bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("cannot create", folder))?;
    }
    fs::write(path, bytes).map_err(Error::io("cannot write", path))
}

/// True if a file has another content.
pub(crate) fn differs(path: &Path, bytes: &[u8]) -> bool {
    fs::read(path).map_or(true, |old| old != bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_of_older_ptx_waits_where_the_device_can() {
        let entry = ".visible .entry a(\n)\n{\n//griddepcontrol.wait;\n\tret;\n}\n".to_owned();
        let module = EntryModule { sm: Sm(80), row: None, op: None, declarations: Vec::new(), entry };
        let target = TargetArtifacts { sm: Sm(80), version: (7, 0), modules: BTreeMap::new() };
        let text = |device| target.text(&[&module], Sm(device));
        for device in [80, 89] {
            assert!(text(device).starts_with(".version 7.0\n.target sm_80\n") && text(device).contains("//griddep"));
        }
        for device in [90, 120] {
            assert!(text(device).starts_with(".version 7.8\n.target sm_90\n") && !text(device).contains("//"));
            assert_eq!(text(device).matches("griddepcontrol.wait;").count(), 1);
        }
    }
}

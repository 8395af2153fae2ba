//! The errors between a kernel crate and its embedded PTX.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{Sm, lint::Violation, toolchain::Attempt};

/// The reason why kernels could not be compiled, checked or packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No compiler with the source of its own library was found. A build script goes on without kernels.
    #[error("no toolchain for GPU code.{}\n{}", list_attempts(.tried), crate::toolchain::INSTALL)]
    NoToolchain {
        /// The compilers that were looked at, in order, and why they do not serve.
        tried: Vec<Attempt>,
    },
    /// `POINTWISE_DEVICE_RUSTC=none` asks for a build without kernels.
    #[error("POINTWISE_DEVICE_RUSTC=none: no GPU code is built")]
    SwitchedOff,
    /// `POINTWISE_DEVICE_RUSTC` names a compiler that does not serve.
    #[error("POINTWISE_DEVICE_RUSTC={}: {why}\n{}", rustc.display(), crate::toolchain::INSTALL)]
    NamedToolchain {
        /// The compiler named.
        rustc: PathBuf,
        /// The reason why it does not serve.
        why: String,
    },
    /// There is no kernel crate at the path given.
    #[error("no kernel crate at {}: there is no Cargo.toml", path.display())]
    NoKernelCrate {
        /// The path.
        path: PathBuf,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
    /// cargo or rustc refused the kernel crate.
    #[error("compiling {} for {sm} failed ({status}):\n{log}", kernel_crate.display())]
    Compile {
        /// The kernel crate.
        kernel_crate: PathBuf,
        /// The target.
        sm: Sm,
        /// The exit status of cargo.
        status: String,
        /// The output of cargo and the compiler.
        log: String,
    },
    /// cargo succeeded, but its result is not what this crate expects.
    #[error("cargo built {} for {sm}, but {why}", kernel_crate.display())]
    Output {
        /// The kernel crate.
        kernel_crate: PathBuf,
        /// The target.
        sm: Sm,
        /// The missing or superfluous part.
        why: String,
    },
    /// The PTX text does not have the form that rustc gives it.
    #[error("the PTX for {sm} cannot be read: line {line}: {why}")]
    Ptx {
        /// The target.
        sm: Sm,
        /// Line number, from 1.
        line: usize,
        /// The mistake there.
        why: String,
    },
    /// The PTX breaks rules that kernels must keep.
    #[error("the PTX for {sm} breaks rules that kernels must keep:{}", list_violations(violations))]
    Lint {
        /// The target.
        sm: Sm,
        /// Every breach found, in the order of the text.
        violations: Vec<Violation>,
    },
    /// ptxas was asked for and is not there.
    #[error("no ptxas found{}: set POINTWISE_PTXAS or CUDA_HOME, or `pip install nvidia-cuda-nvcc`; \
         looked at {}", for_cubins(wanted), tried.join(", "))]
    NoPtxas {
        /// The places where it was looked for.
        tried: Vec<String>,
        /// The targets to embed machine code for, if it was wanted for these.
        wanted: Vec<Sm>,
    },
    /// ptxas refused its input.
    #[error("{tool} for {sm} failed ({status}):\n{log}")]
    Tool {
        /// The tool.
        tool: String,
        /// The target.
        sm: Sm,
        /// Its exit status.
        status: String,
        /// Its output.
        log: String,
    },
    /// Kernels use the stack or spill registers, which costs memory traffic that nothing asked for.
    #[error("{} kernel(s) for {sm} spill registers or use the stack:\n  {}", entries.len(), entries.join("\n  "))]
    Spills {
        /// The target.
        sm: Sm,
        /// The entries with their figures.
        entries: Vec<String>,
    },
    /// A file or program could not be used.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The action that failed, such as `cannot read`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns a function for `map_err`: makes an error of the action and the file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { what, path, source }
    }

    /// True if a host crate should be built without kernels instead of failing.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Error::NoToolchain { .. } | Error::SwitchedOff)
    }
}

impl Error {
    /// Returns files and folders whose change may mean that the missing compiler is there now. They all exist: cargo
    /// takes a missing file for changed at every build.
    pub(crate) fn what_may_change(&self) -> Vec<PathBuf> {
        let Error::NoToolchain { tried } = self else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        for Attempt { rustc, .. } in tried {
            // A missing compiler would appear in its folder, the source of its library in the sysroot's.
            let folder = rustc.parent().filter(|_| !rustc.exists());
            paths.push(folder.unwrap_or(rustc).to_owned());
            paths.extend(crate::toolchain::sysroot(rustc).ok().map(|sysroot| sysroot.join("lib/rustlib")));
        }
        paths.retain(|path| path.is_absolute() && path.exists());
        paths
    }
}

fn for_cubins(wanted: &[Sm]) -> String {
    if wanted.is_empty() {
        return String::new();
    }
    let targets: Vec<_> = wanted.iter().map(ToString::to_string).collect();
    format!(" to make machine code for {} with (Kernels::cubins or POINTWISE_CUBINS asks for that)", targets.join(", "))
}

fn list_attempts(tried: &[Attempt]) -> String {
    tried.iter().map(|attempt| format!("\n  {attempt}")).collect()
}

/// The most kinds of faulty entries to show: more say nothing new.
const SHOWN: usize = 10;

/// The rules that an entry breaks, at least one: for each the first breach and the number of breaches.
type Broken<'a> = Vec<(&'a Violation, usize)>;

/// True if two entries break the same rules; never for the module and an entry.
fn break_the_same(a: &Broken<'_>, b: &Broken<'_>) -> bool {
    let same = |((a, _), (b, _)): (&(&Violation, usize), &(&Violation, usize))| {
        a.entry.is_some() && b.entry.is_some() && a.rule == b.rule
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Lists the entries with the rules that they break. If several break the same rules, only the first is shown: they
/// come from one faulty formula or template, for other types and strategies.
fn list_violations(violations: &[Violation]) -> String {
    let mut entries: Vec<Broken<'_>> = Vec::new();
    let mut places: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for violation in violations {
        let entry = violation.entry.as_deref();
        let place = *places.entry(entry).or_insert_with(|| {
            entries.push(Vec::new());
            entries.len() - 1
        });
        let rules = &mut entries[place];
        match rules.iter_mut().find(|(first, _)| first.rule == violation.rule) {
            Some((_, count)) => *count += 1,
            None => rules.push((violation, 1)),
        }
    }
    let mut kinds: Vec<(Broken<'_>, usize)> = Vec::new();
    for entry in entries {
        match kinds.iter_mut().find(|(first, _)| break_the_same(first, &entry)) {
            Some((_, others)) => *others += 1,
            None => kinds.push((entry, 0)),
        }
    }
    let mut text = String::new();
    for (rules, others) in kinds.iter().take(SHOWN) {
        text += "\n  ";
        text += rules[0].0.place();
        text += &match others {
            0 => ":".to_owned(),
            1 => ", and another entry likewise:".to_owned(),
            _ => format!(", and {others} other entries likewise:"),
        };
        for (rule, count) in rules {
            text += &format!("\n    {}", rule.what());
            if *count > 1 {
                text += &format!(" (and {} more in this entry)", count - 1);
            }
        }
    }
    if kinds.len() > SHOWN {
        let more: usize = kinds[SHOWN..].iter().map(|(_, others)| 1 + others).sum();
        text += &format!("\n  ... and {more} entries more, which break others");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::Rule;

    #[test]
    fn breaches_are_listed_once_for_each_entry_and_rule() {
        let violation = |entry: &str, rule, line| Violation {
            rule,
            entry: Some(entry.to_owned()),
            op: None,
            line,
            text: "x".to_owned(),
        };
        let mut violations: Vec<_> = (1..=9).map(|line| violation("a", Rule::Local, line)).collect();
        violations.insert(5, violation("a", Rule::Call, 10));
        let text = |violations: &[Violation]| Error::Lint { sm: Sm(90), violations: violations.to_vec() }.to_string();
        let head = "the PTX for sm_90 breaks rules that kernels must keep:";
        let a = "\n  a:\n    local memory at line 1: x (and 8 more in this entry)\n    a call at line 10: x";
        assert_eq!(text(&violations), format!("{head}{a}"));
        // Entries that break the same rules come from one fault.
        violations.extend((0..30).map(|i| violation(&format!("b{i}"), Rule::Trap, 20 + i)));
        let b = "\n  b0, and 29 other entries likewise:\n    a trap at line 20: x";
        assert_eq!(text(&violations), format!("{head}{a}{b}"));
        // A breach of the module belongs to no entry.
        violations.push(Violation { rule: Rule::Trap, entry: None, op: None, line: 3, text: "x".to_owned() });
        assert_eq!(text(&violations), format!("{head}{a}{b}\n  (module):\n    a trap at line 3: x"));
    }

    #[test]
    fn a_long_list_ends_with_how_many_more_there_are() {
        let violation = |i: usize| {
            let rule = Rule::Barriers { declared: 1, found: 2 + i / 2 };
            Violation { rule, entry: Some(format!("e{i}")), op: None, line: 0, text: String::new() }
        };
        let text = Error::Lint { sm: Sm(80), violations: (0..30).map(violation).collect() }.to_string();
        assert!(text.contains("\n  e18, and another entry likewise:\n    11 barrier(s) instead of 1\n"), "{text}");
        assert!(text.ends_with("\n  ... and 10 entries more, which break others"), "{text}");
    }

    #[test]
    fn only_a_missing_compiler_lets_a_build_go_on() {
        assert!(Error::SwitchedOff.is_absence());
        assert!(Error::NoToolchain { tried: Vec::new() }.is_absence());
        assert!(!Error::NamedToolchain { rustc: "x".into(), why: "y".into() }.is_absence());
        assert!(!Error::Settings("x".into()).is_absence());
    }
}

//! Rules that the PTX of kernels must keep, checked as text on every build.
//!
//! Each rule finds a mistake in device code that the compiler does not report: a call to a function that is never
//! linked, a panic's data, an array moved to local memory, an access whose address space the compiler lost, a barrier
//! that it doubled, a vector access that it took apart, an entry that is missing or that nobody asked for.

mod access;
mod rules;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

pub use crate::facts::Vectors;
use crate::{Sm, facts::Facts, ptx::Module};

/// The checks beyond the rules for every kernel.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// Returns the promises of an entry by hand by its name; [`Vectors::NONE`] by default. Entries of ops say themselves
    /// what they promise.
    pub vectors: fn(&str) -> Vectors,
    /// The number of barriers in an entry that uses shared memory. Other entries have none.
    pub barriers: usize,
    /// True if loads through the read-only path (`ld.global.nc`) are allowed. They are wrong in a kernel that may run
    /// in place.
    pub read_only_loads: bool,
}

impl Default for Lint {
    fn default() -> Self {
        Lint { vectors: |_| Vectors::NONE, barriers: 1, read_only_loads: false }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Something is defined elsewhere: nothing is linked, so it stays undefined.
    Extern,
    /// A function that is not a kernel: the compiler did not inline it.
    Function,
    /// Data in global or constant memory, such as the message of a panic.
    Data,
    /// A call.
    Call,
    /// A trap or breakpoint, as from a panic.
    Trap,
    /// Local memory: an array that did not stay in registers, or a stack.
    Local,
    /// A load, store or atomic operation that names no address space.
    Generic,
    /// A load through the read-only path.
    ReadOnlyLoad,
    /// The module is for another target than the one asked for.
    Target {
        /// Asked for.
        asked: Sm,
    },
    /// The module asks for a newer driver than its target needs.
    Version {
        /// The newest version that would do.
        newest: (u32, u32),
    },
    /// The number of barriers is not the declared one.
    Barriers {
        /// Declared.
        declared: usize,
        /// Found.
        found: usize,
    },
    /// No load of 16 bytes, though the name promises one.
    NoVectorLoad,
    /// No store of 16 bytes, though the name promises one.
    NoVectorStore,
    /// An expected entry is missing.
    Missing,
    /// An entry is not expected.
    Unexpected,
    /// Two entries have one name.
    Twice,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Extern => f.write_str(
                "an external symbol, which nothing will define (a panic path, or a function that was not inlined)",
            ),
            Rule::Function => f.write_str("a function that was not inlined"),
            Rule::Data => f.write_str("data in global memory (the message of a panic, or a table)"),
            Rule::Call => f.write_str("a call"),
            Rule::Trap => f.write_str("a trap"),
            Rule::Local => f.write_str("local memory"),
            Rule::Generic => f.write_str("an access that names no address space"),
            Rule::ReadOnlyLoad => f.write_str("a load through the read-only path"),
            Rule::Target { asked } => write!(f, "not for the target {asked}"),
            Rule::Version { newest } => write!(f, "needs a newer driver than .version {}.{}", newest.0, newest.1),
            // `kernel_crate!` declares the shared memory of tables.
            Rule::Barriers { declared: 0, found } => write!(
                f,
                "{found} barrier(s), but no shared memory; does the kernel crate's root call \
                 pointwise_device::kernel_crate!()?"
            ),
            Rule::Barriers { declared, found } => write!(f, "{found} barrier(s) instead of {declared}"),
            Rule::NoVectorLoad => f.write_str("no load of 16 bytes from global memory"),
            Rule::NoVectorStore => f.write_str("no store of a vector to global memory"),
            Rule::Missing => f.write_str("missing"),
            Rule::Unexpected => f.write_str("not expected"),
            Rule::Twice => f.write_str("defined twice"),
        }
    }
}

/// A rule broken somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The entry; `None` for the module.
    pub entry: Option<String>,
    /// The op of the entry; `None` for an entry by hand.
    pub op: Option<String>,
    /// Line number, from 1; 0 if no line can be named.
    pub line: usize,
    /// The text of the line; empty if no line can be named.
    pub text: String,
}

impl Violation {
    /// Returns the entry's name, or `(module)`.
    pub(crate) fn place(&self) -> &str {
        self.entry.as_deref().unwrap_or("(module)")
    }

    /// Returns the rule, the line and its text.
    pub(crate) fn what(&self) -> String {
        let mut what = self.rule.to_string();
        if self.line > 0 {
            what += &format!(" at line {}", self.line);
        }
        if !self.text.is_empty() {
            what += &format!(": {}", self.text);
        }
        what
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.what())
    }
}

/// Returns every rule that a module for `sm` breaks, in the order of the text. `facts` are those of its entries.
pub(crate) fn check(module: &Module<'_>, sm: Sm, lint: &Lint, facts: &BTreeMap<&str, Facts>) -> Vec<Violation> {
    let mut found = rules::header(module, sm);
    found.extend(rules::declarations(module));
    for entry in &module.entries {
        rules::entry(module, entry, lint, facts.get(entry.name), &mut found);
    }
    found
}

/// Compares the entries of `names` with the `expected` ones, by name.
#[must_use]
pub fn check_entries<'a>(names: impl IntoIterator<Item = &'a str>, expected: &BTreeSet<String>) -> Vec<Violation> {
    let violation =
        |rule, name: &str| Violation { rule, entry: Some(name.to_owned()), op: None, line: 0, text: String::new() };
    let found: BTreeSet<&str> = names.into_iter().collect();
    let missing = expected.iter().filter(|name| !found.contains(name.as_str()));
    let unexpected = found.iter().filter(|name| !expected.contains(**name));
    missing
        .map(|name| violation(Rule::Missing, name))
        .chain(unexpected.map(|name| violation(Rule::Unexpected, name)))
        .collect()
}

/// Returns the `names` that occur twice in several modules that are to be merged.
pub(crate) fn check_twice<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let twice = names.into_iter().filter(|name| !seen.insert(*name)).collect::<BTreeSet<_>>();
    twice
        .into_iter()
        .map(|name| Violation {
            rule: Rule::Twice,
            entry: Some(name.to_owned()),
            op: None,
            line: 0,
            text: String::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests;

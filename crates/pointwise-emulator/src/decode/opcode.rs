//! An opcode: a name, and suffixes that the instruction's decoder takes one by one.

use super::types::Type;

/// An opcode. If a suffix is left when the decoder is done, the instruction is not understood.
#[derive(Clone, Debug)]
pub(crate) struct Opcode<'a> {
    /// The first part, such as `ld`.
    pub(crate) name: &'a str,
    suffixes: Vec<&'a str>,
}

impl<'a> Opcode<'a> {
    pub(crate) fn of(text: &'a str) -> Opcode<'a> {
        let mut parts = text.split('.');
        let name = parts.next().unwrap_or("");
        Opcode { name, suffixes: parts.collect() }
    }

    /// Takes a suffix. Returns false if it is not there.
    pub(crate) fn take(&mut self, suffix: &str) -> bool {
        let found = self.suffixes.iter().position(|&part| part == suffix);
        if let Some(at) = found {
            self.suffixes.remove(at);
        }
        found.is_some()
    }

    /// Takes the first suffix that `read` understands.
    pub(crate) fn take_as<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (at, value) = self.suffixes.iter().enumerate().find_map(|(at, part)| Some((at, read(part)?)))?;
        self.suffixes.remove(at);
        Some(value)
    }

    /// Takes the first type.
    pub(crate) fn take_type(&mut self) -> Option<Type> {
        self.take_as(Type::of)
    }

    /// Takes the suffixes that change no result here: scopes, memory orders and cache hints.
    pub(crate) fn take_hints(&mut self) {
        const HINTS: [&str; 22] = [
            "ca",
            "cg",
            "cs",
            "lu",
            "cv",
            "wb",
            "wt",
            "nc",
            "relaxed",
            "acquire",
            "release",
            "acq_rel",
            "weak",
            "cta",
            "gpu",
            "sys",
            "cluster",
            "volatile",
            "sc",
            "evict_first",
            "evict_last",
            "no_allocate",
        ];
        self.suffixes.retain(|part| !HINTS.contains(part) && !part.contains("::"));
    }

    /// Returns the suffixes that are left.
    pub(crate) fn rest(&self) -> &[&'a str] {
        &self.suffixes
    }
}

//! The facts that the entry macros of `pointwise_device` write beside an entry, as a comment of the module:
//! `// entry NAME: row=WORD op=OP loads=1 stores=1`, of a formula also `slots=NUMBER`, of an op on rows also `barriers=2`.
//!
//! Word and slots bind an entry to its row: the host launches the entry only if its own row has the same
//! (`pointwise_core::row`). Nothing reads the entry's name.

use std::collections::BTreeMap;

/// The comment, before the entry's name.
const COMMENT: &str = "// entry ";

/// The accesses to global memory that are at least 16 bytes wide, as an entry's template promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vectors {
    /// At least one load.
    pub loads: bool,
    /// At least one store. If results are narrower than operands (a predicate's), a store of as many elements as the
    /// widest load has.
    pub stores: bool,
}

impl Vectors {
    /// No promise.
    pub const NONE: Vectors = Vectors { loads: false, stores: false };
    /// Loads and stores.
    pub const BOTH: Vectors = Vectors { loads: true, stores: true };
}

/// The facts of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Word and slots of the row that it was made of.
    pub(crate) row: (u64, u128),
    /// The op that it belongs to: of a gradient, the op whose gradient it is.
    pub(crate) op: String,
    /// The accesses that its template promises.
    pub(crate) vectors: Vectors,
    /// The barriers of the block that it waits at, where the lint's setting does not say that.
    pub(crate) barriers: Option<usize>,
}

/// Returns the facts in a module's text, by the names of its entries.
pub(crate) fn read(text: &str) -> BTreeMap<&str, Facts> {
    text.lines().map(str::trim).filter_map(entry).collect()
}

fn entry(line: &str) -> Option<(&str, Facts)> {
    let (name, fields) = line.strip_prefix(COMMENT)?.split_once(": ")?;
    let field = |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let is = |name: &str| field(name).map(|value| value == "1");
    let vectors = Vectors { loads: is("loads")?, stores: is("stores")? };
    let barriers = field("barriers").and_then(|count| count.parse().ok());
    let slots = field("slots").map_or(Some(0), |slots| slots.parse().ok())?;
    Some((name, Facts { row: (field("row")?.parse().ok()?, slots), op: field("op")?.to_owned(), vectors, barriers }))
}

/// Returns a line of the list of entries: the name and, if the entry has a row, its word, and its slots if it has any.
pub(crate) fn line(name: &str, row: Option<(u64, u128)>) -> String {
    match row {
        None => name.to_owned(),
        Some((word, 0)) => format!("{name} {word:016x}"),
        Some((word, slots)) => format!("{name} {word:016x} {slots:x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_and_words_written() {
        let text = ".address_size 64\n// entry a_f32_flat: row=18446744073709551615 op=a loads=1 stores=0\n\
                    \t// entry b: row=16 op=a loads=0 stores=1 barriers=2 slots=33\r\n// entry c: row=many op=a loads=0 stores=0\n\
                    // entry d\n// another comment: 1\n.visible .entry b()\n{\n\tret;\n}\n";
        let facts = read(text);
        assert_eq!(facts.keys().collect::<Vec<_>>(), [&"a_f32_flat", &"b"]);
        let vectors = |loads, stores| Vectors { loads, stores };
        assert_eq!(
            facts["a_f32_flat"],
            Facts { row: (u64::MAX, 0), op: "a".into(), vectors: vectors(true, false), barriers: None }
        );
        assert_eq!(
            facts["b"],
            Facts { row: (16, 33), op: "a".into(), vectors: vectors(false, true), barriers: Some(2) }
        );
        assert_eq!(line("b", Some((16, 0))), "b 0000000000000010");
        assert_eq!(line("b", Some((16, 33))), "b 0000000000000010 21");
        assert_eq!(line("b", None), "b");
    }
}

//! The words that bind entries to their rows: comments of the module, written by `pointwise_device`'s entry macros.
//!
//! The host launches an entry only if its own row has the same word (`pointwise_core::row`).

use std::collections::BTreeMap;

/// The comment, before the entry's name.
const COMMENT: &str = "// row of ";

/// Returns the words of a module's text, by the names of its entries.
pub(crate) fn read(text: &str) -> BTreeMap<&str, u64> {
    let word = |line| {
        let (name, word) = str::strip_prefix(line, COMMENT)?.split_once(": ")?;
        Some((name, word.parse().ok()?))
    };
    text.lines().map(str::trim).filter_map(word).collect()
}

/// Returns a line of the list of entries: the name and, if the entry has a row, its word.
pub(crate) fn line(name: &str, row: Option<u64>) -> String {
    row.map_or_else(|| name.to_owned(), |row| format!("{name} {row:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        let text = ".address_size 64\n// row of unary_a_f32_direct: 18446744073709551615\n\t// row of b: 16\r\n\
                    // row of c: many\n// row of d\n// another comment: 1\n.visible .entry b()\n{\n\tret;\n}\n";
        let words = read(text);
        assert_eq!(words.into_iter().collect::<Vec<_>>(), [("b", 16), ("unary_a_f32_direct", u64::MAX)]);
        assert_eq!(line("b", Some(16)), "b 0000000000000010");
        assert_eq!(line("b", None), "b");
    }
}

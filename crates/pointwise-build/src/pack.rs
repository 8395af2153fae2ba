//! Packs entries in compressed groups, so that a host that needs one of thousands decompresses few others with it.
//!
//! A group is one zstd frame. For PTX it holds the texts one after another, each with a NUL byte at its end; for
//! machine code one file with all entries of the group. Groups keep the order of the sorted list of entries: the counts
//! alone give the group of an entry. Neighbours are types and strategies of one op, which have much text in common.

use crate::{Error, parallel};

/// The most entries in a group.
const ENTRIES: usize = 64;

/// The most bytes in a group, unless one entry has more. They decompress in a millisecond or two.
const BYTES: usize = 1 << 18;

/// The entries in a group of machine code: the driver loads them all if one is needed.
pub(crate) const CUBIN_ENTRIES: usize = 16;

/// The level of compression, as zstd counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// For every build: a sixth more bytes, in a seventh of the time. cargo does not optimise build scripts.
    Quick = 9,
    /// For a package that is built once. The highest level would take three times as long for 1.5 % less.
    Small = 15,
}

/// A compressed group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) entries: usize,
    /// The decompressed size, in bytes.
    pub(crate) size: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Group {
    pub(crate) fn compress(content: &[u8], entries: usize, level: Level) -> Result<Group, Error> {
        let bytes = zstd::bulk::compress(content, level as i32)
            .map_err(|error| Error::Settings(format!("zstd cannot compress {} bytes: {error}", content.len())))?;
        Ok(Group { entries, size: content.len(), bytes })
    }
}

/// Packs texts in groups, in their order.
pub(crate) fn texts(texts: &[String], level: Level) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<(usize, Vec<u8>)> = Vec::new();
    for text in texts {
        let size = text.len() + 1;
        let fits = |(entries, bytes): &&mut (usize, Vec<u8>)| *entries < ENTRIES && bytes.len() + size <= BYTES;
        let group = match groups.last_mut().filter(fits) {
            Some(group) => group,
            None => groups.push_mut((0, Vec::new())),
        };
        group.0 += 1;
        group.1.extend_from_slice(text.as_bytes());
        group.1.push(0);
    }
    parallel::map(&groups, |(entries, bytes)| Group::compress(bytes, *entries, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_order_and_bounds() {
        let many: Vec<String> = (0..200).map(|i| format!("{i} {}", "x".repeat(i * 40))).collect();
        let mut again = Vec::new();
        for group in texts(&many, Level::Quick).unwrap() {
            assert!(group.entries <= ENTRIES && group.size <= BYTES, "{} {}", group.entries, group.size);
            let content = zstd::bulk::decompress(&group.bytes, group.size).unwrap();
            let content = String::from_utf8(content).unwrap();
            let found: Vec<String> = content.split_terminator('\0').map(str::to_owned).collect();
            assert_eq!(found.len(), group.entries);
            again.extend(found);
        }
        assert_eq!(again, many);
    }

    #[test]
    fn a_text_larger_than_a_group() {
        let sizes = [1, BYTES * 2, 1].map(|size| "y".repeat(size));
        let groups: Vec<_> = texts(&sizes, Level::Quick).unwrap().iter().map(|group| group.entries).collect();
        assert_eq!(groups, [1, 1, 1]);
        assert!(texts(&[], Level::Quick).unwrap().is_empty());
    }
}

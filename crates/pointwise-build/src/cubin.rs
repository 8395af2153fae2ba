//! Reads the sizes of the kernels' code from the ELF file that the assembler writes.

use std::collections::BTreeMap;

/// Returns the bytes of code of each entry, from the sections `.text.NAME`. `None` if this is not a 64-bit ELF file in
/// the byte order of NVIDIA's devices.
pub(crate) fn code_sizes(file: &[u8]) -> Option<BTreeMap<String, u64>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let sections = u64_at(file, 0x28)?;
    let (length, count, names) = (u16_at(file, 0x3a)?, u16_at(file, 0x3c)?, u16_at(file, 0x3e)?);
    let header = |index: u16| {
        let at = sections.checked_add(u64::from(index) * u64::from(length))?;
        file.get(usize::try_from(at).ok()?..)
    };
    let names = u64_at(header(names)?, 0x18)?;
    let mut sizes = BTreeMap::new();
    for index in 0..count {
        let section = header(index)?;
        let name = names.checked_add(u64::from(u32_at(section, 0)?))?;
        let name = file.get(usize::try_from(name).ok()?..)?.split(|&byte| byte == 0).next()?;
        if let Some(name) = name.strip_prefix(b".text.") {
            sizes.insert(String::from_utf8_lossy(name).into_owned(), u64_at(section, 0x20)?);
        }
    }
    Some(sizes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with a table of names and one section of code.
    fn elf() -> Vec<u8> {
        let mut file = vec![0_u8; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28] = 0x60;
        file[0x3a..0x40].copy_from_slice(&[0x40, 0, 2, 0, 0, 0]);
        file.extend_from_slice(b"\0.text.k\0");
        file.resize(0x60 + 0x80, 0);
        file[0x60 + 0x18] = 0x40;
        file[0xa0] = 1;
        file[0xa0 + 0x20..0xa0 + 0x22].copy_from_slice(&[0x80, 1]);
        file
    }

    #[test]
    fn sizes_by_name() {
        assert_eq!(code_sizes(&elf()), Some([("k".to_owned(), 0x180)].into()));
    }

    #[test]
    fn no_panic_on_anything_else() {
        assert_eq!(code_sizes(b"PTX"), None);
        let whole = elf();
        for end in 0..whole.len() - 0x18 {
            assert_eq!(code_sizes(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] = 0xff;
            // Any result will do, but no panic.
            let _ = code_sizes(&file);
        }
    }
}

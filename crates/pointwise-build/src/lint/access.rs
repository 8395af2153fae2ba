//! An access to memory, read from its opcode.

/// An operation on memory, read from its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access<'a> {
    /// `ld`, `st`, `atom` or `red`.
    pub(crate) operation: &'a str,
    /// `global`, `shared`, `param`, `const` or `local`; `None` for a generic access.
    pub(crate) space: Option<&'a str>,
    /// True if it goes through the read-only path.
    pub(crate) read_only: bool,
    /// The bits that it moves at once; 0 if the opcode does not tell.
    pub(crate) bits: u32,
}

impl<'a> Access<'a> {
    /// Reads an opcode. `None` for an operation that does not touch memory.
    pub(crate) fn of(opcode: &'a str) -> Option<Access<'a>> {
        let mut parts = opcode.split('.');
        let operation = parts.next().filter(|name| matches!(*name, "ld" | "ldu" | "st" | "atom" | "red"))?;
        let (mut lanes, mut width) = (1, 0_u32);
        let mut access = Access { operation, space: None, read_only: operation == "ldu", bits: 0 };
        for part in parts {
            let part = part.split("::").next().unwrap_or(part);
            match part {
                "global" | "shared" | "param" | "const" | "local" => access.space = Some(part),
                "nc" => access.read_only = true,
                "v2" => lanes = 2,
                "v4" => lanes = 4,
                "v8" => lanes = 8,
                _ => width = bits_of(part).unwrap_or(width),
            }
        }
        access.bits = width.saturating_mul(lanes);
        Some(access)
    }
}

/// Returns the width of a type suffix such as `b32`.
fn bits_of(suffix: &str) -> Option<u32> {
    suffix.strip_prefix(['b', 'u', 's', 'f'])?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Access;

    #[test]
    fn opcodes() {
        let of = |opcode| Access::of(opcode).map(|access| (access.space, access.read_only, access.bits));
        assert_eq!(of("ld.global.v4.b32"), Some((Some("global"), false, 128)));
        assert_eq!(of("ld.global.nc.L1::no_allocate.v2.u64"), Some((Some("global"), true, 128)));
        assert_eq!(of("st.volatile.shared::cta.b8"), Some((Some("shared"), false, 8)));
        assert_eq!(of("ld.v4.b32"), Some((None, false, 128)));
        assert_eq!(of("ld.b32"), Some((None, false, 32)));
        assert_eq!(of("atom.global.add.u32"), Some((Some("global"), false, 32)));
        assert_eq!(of("ld.global.v8.b4294967295"), Some((Some("global"), false, u32::MAX)));
        assert_eq!(of("ldu.global.u32"), Some((Some("global"), true, 32)));
        assert_eq!(of("add.rn.f32"), None);
        assert_eq!(of("cvta.to.global.u64"), None);
    }
}

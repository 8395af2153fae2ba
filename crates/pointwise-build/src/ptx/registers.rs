//! Limits the registers of a kernel.
//!
//! Rust has no attribute for it: a kernel has a comment in its body, and the builder turns it into a directive.

use super::Entry;

/// The comment, before the number. `pointwise_device::thread::at_most_registers` writes it.
const COMMENT: &str = "// most registers: ";

/// Returns `text`, a text of the entry, with the directive that its comment asks for.
pub(crate) fn with_limit(entry: &Entry<'_>, text: String) -> String {
    let Some((_, rest)) = entry.text.split_once(COMMENT) else { return text };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    // Parameters have no braces.
    match text.split_once('{') {
        Some((head, body)) if digits > 0 => format!("{head}.maxnreg {}\n{{{body}", &rest[..digits]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx;

    fn limited(body: &str) -> String {
        let whole = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry a(\n\t.param .u64 a_0\n)\n{{\n{body}\n}}\n"
        );
        let module = ptx::parse(&whole).unwrap();
        with_limit(&module.entries[0], module.entries[0].compact())
    }

    #[test]
    fn the_directive_stands_before_the_body() {
        let text = limited("\t.reg .b32 %r<3>;\n\t// most registers: 32\n\tret;");
        assert!(text.contains(")\n.maxnreg 32\n{\n"), "{text}");
        let header = ".version 7.8\n.target sm_90\n.address_size 64\n";
        let whole = format!("{header}{text}");
        assert_eq!(ptx::parse(&whole).unwrap().entries[0].statements().count(), 2);
    }

    #[test]
    fn without_a_comment_there_is_none() {
        assert!(
            !limited("\tret;").contains("maxnreg") && !limited("\t// most registers: all\n\tret;").contains("maxnreg")
        );
    }
}

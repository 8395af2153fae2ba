//! Puts the instruction into kernels that waits for the kernels before it in its stream.
//!
//! Devices from sm_90 on may start a kernel while the one before it in the stream ends (programmatic dependent launch),
//! if its first instruction waits until the earlier kernel's memory can be seen. PTX for older targets has this
//! instruction as a comment. The host crate turns it into an instruction for a device that knows it, so that no target
//! needs all kernels again.

use crate::Sm;

/// The instruction, as a comment.
const COMMENT: &str = "//griddepcontrol.wait;";

/// The oldest target and version that know the instruction.
const SINCE: (Sm, (u32, u32)) = (Sm(90), (7, 8));

/// Returns an entry's text with the comment before its first instruction.
pub(crate) fn with_comment(entry: &str) -> String {
    // Parameters have no braces.
    let mut at = entry.find('{').map_or(0, |brace| brace + 1);
    loop {
        let rest = entry[at..].trim_start();
        let end = if rest.starts_with(".loc") { '\n' } else { ';' };
        let Some(length) = rest.find(end).filter(|_| rest.starts_with('.')) else { break };
        at = entry.len() - rest.len() + length + 1;
    }
    let (head, body) = entry.split_at(at);
    format!("{}\n{COMMENT}\n{}", head.trim_end(), body.trim_start_matches('\n'))
}

/// Returns the target and version of a text for `target` on a `device`, and true if the comment becomes the instruction
/// there.
pub(crate) fn header(target: Sm, version: (u32, u32), device: Sm) -> (Sm, (u32, u32), bool) {
    if device < SINCE.0 { (target, version, false) } else { (target.max(SINCE.0), version.max(SINCE.1), true) }
}

/// Turns the comment of a text into the instruction.
pub(crate) fn with_instruction(text: &str) -> String {
    text.replace(COMMENT, &COMMENT[2..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx;

    const ENTRY: &str = ".visible .entry a(\n\t.param .u64 a_0\n)\n.maxntid 128\n{\n\t.reg .b32 \t%r<3>;\n\t{ mov.b32 %r1, 0; }\n\tret;\n}\n";

    #[test]
    fn the_first_instruction() {
        let text = with_comment(ENTRY);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[5..7], ["\t.reg .b32 \t%r<3>;", COMMENT]);
        assert_eq!(text.replace(&format!("{COMMENT}\n"), ""), ENTRY);
        let header = ".version 7.8\n.target sm_90\n.address_size 64\n";
        let whole = format!("{header}{}", with_instruction(&text));
        let module = ptx::parse(&whole).unwrap();
        let statements: Vec<_> = module.entries[0].statements().map(|it| it.text).collect();
        assert_eq!(statements, [".reg .b32 \t%r<3>", "griddepcontrol.wait", "mov.b32 %r1, 0", "ret"]);
    }

    #[test]
    fn however_the_body_begins() {
        for (body, before) in
            [("{ ret; }", "{"), ("{\n.loc 1 2 3\nret;\n}", ".loc 1 2 3"), ("{.reg .b32 a;ret;}", ".reg .b32 a;")]
        {
            let text = with_comment(&format!(".visible .entry a()\n{body}\n"));
            let (head, _) = text.split_once(COMMENT).unwrap();
            assert!(head.trim_end().ends_with(before), "{text}");
        }
    }

    #[test]
    fn targets_and_versions() {
        assert_eq!(header(Sm(80), (7, 0), Sm(89)), (Sm(80), (7, 0), false));
        assert_eq!(header(Sm(80), (7, 0), Sm(90)), (Sm(90), (7, 8), true));
        assert_eq!(header(Sm(89), (8, 1), Sm(120)), (Sm(90), (8, 1), true));
        assert_eq!(header(Sm(100), (8, 6), Sm(100)), (Sm(100), (8, 6), true));
    }
}

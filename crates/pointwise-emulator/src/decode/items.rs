//! Cuts the body of an entry into scopes, labels, directives and instructions.

use pointwise_ptx::without_comment;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// `{` and `}` of a scope with registers of its own.
    Open,
    Close,
    Label(&'a str),
    /// A directive with its operands.
    Directive(&'a str),
    Instruction {
        /// The guard predicate, with `!` before it if it is negated.
        guard: Option<&'a str>,
        opcode: &'a str,
        /// The text after the opcode.
        operands: &'a str,
    },
}

/// An item and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located<'a> {
    pub(crate) item: Item<'a>,
    /// Line number, from 1 in the body.
    pub(crate) line: u32,
    /// The range of its text in the body: `start..end`.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Cuts a body: the text between the braces of an entry.
///
/// `clean` is the body with blanks for its comments: see [`blanked`].
pub(crate) fn items(clean: &str) -> Vec<Located<'_>> {
    let mut items = Vec::new();
    let mut at = 0;
    let mut line = 1;
    let mut counted = 0;
    while let Some(skip) = clean[at..].find(|c: char| !c.is_whitespace() && c != ';') {
        let start = at + skip;
        line += u32::try_from(clean[counted..start].matches('\n').count()).unwrap_or(u32::MAX);
        counted = start;
        let rest = &clean[start..];
        let (item, length) = one(rest);
        items.push(Located { item, line, start, end: start + length });
        at = start + length;
    }
    items
}

/// Returns the item at the start of a text, and the bytes of the text that it takes.
fn one(rest: &str) -> (Item<'_>, usize) {
    match rest.as_bytes()[0] {
        b'{' => return (Item::Open, 1),
        b'}' => return (Item::Close, 1),
        _ => {}
    }
    let word = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
    if word > 0 && rest[word..].trim_start().starts_with(':') {
        let colon = rest.find(':').unwrap_or(word);
        return (Item::Label(&rest[..word]), colon + 1);
    }
    // Directives of debug information end with their line.
    let debug = rest.starts_with(".loc") || rest.starts_with(".file");
    let end = rest.find(if debug { '\n' } else { ';' }).unwrap_or(rest.len());
    let text = rest[..end].trim_end();
    if text.starts_with('.') {
        return (Item::Directive(text), end);
    }
    let (guard, text) = match text.strip_prefix('@') {
        Some(text) => {
            let (guard, text) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            (Some(guard), text.trim_start())
        }
        None => (None, text),
    };
    let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (Item::Instruction { guard, opcode, operands: operands.trim() }, end)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Replaces comments by blanks, so that positions stay.
pub(crate) fn blanked(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let code = without_comment(line);
        clean += code;
        if code.len() < line.len() {
            let comment = &line[code.len()..];
            clean.extend(comment.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
    }
    clean
}

/// Splits operands at the commas that are not inside braces or brackets.
pub(crate) fn operands(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_with_everything() {
        let text = "\t.reg .b32 %r<3>; // x;\n$L_1: @!%p1 bra $L_1;\n\t{ .reg .pred v, o;\n\
                    @v ld.global.v2.u32 {%r1, %r2}, [%rd1+8]; }\n.loc 1 2 3\n$L_t: .branchtargets\n $a,\n $b;\nret;";
        let clean = blanked(text);
        assert_eq!(clean.len(), text.len());
        let found: Vec<_> = items(&clean).into_iter().map(|located| (located.line, located.item)).collect();
        let plain = |opcode, operands| Item::Instruction { guard: None, opcode, operands };
        assert_eq!(
            found,
            [
                (1, Item::Directive(".reg .b32 %r<3>")),
                (2, Item::Label("$L_1")),
                (2, Item::Instruction { guard: Some("!%p1"), opcode: "bra", operands: "$L_1" }),
                (3, Item::Open),
                (3, Item::Directive(".reg .pred v, o")),
                (
                    4,
                    Item::Instruction {
                        guard: Some("v"),
                        opcode: "ld.global.v2.u32",
                        operands: "{%r1, %r2}, [%rd1+8]"
                    }
                ),
                (4, Item::Close),
                (5, Item::Directive(".loc 1 2 3")),
                (6, Item::Label("$L_t")),
                (6, Item::Directive(".branchtargets\n $a,\n $b")),
                (9, plain("ret", "")),
            ]
        );
        assert_eq!(operands("{%r1, %r2}, [%rd1+8], 3"), ["{%r1, %r2}", "[%rd1+8]", "3"]);
        assert!(operands("").is_empty());
    }
}

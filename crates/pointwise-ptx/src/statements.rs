//! The statements of a kernel's body.

use super::without_comment;

/// A directive or an instruction, without label, guard predicate and `;`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The text, trimmed.
    pub text: &'a str,
    /// Line number, from 1.
    pub line: usize,
}

impl<'a> Statement<'a> {
    /// Returns the operation with its suffixes, such as `ld.global.v4.b32`, or the directive.
    #[must_use]
    pub fn opcode(&self) -> &'a str {
        self.text.split(char::is_whitespace).next().unwrap_or("")
    }
}

/// See [`super::Entry::statements`].
#[derive(Clone, Debug)]
pub struct Statements<'a> {
    lines: std::str::Lines<'a>,
    line: usize,
    /// The rest of the current line.
    rest: &'a str,
    /// True behind the brace that opens the body. The parameters stand before it.
    inside: bool,
}

impl<'a> Statements<'a> {
    pub(super) fn of(text: &'a str, line: usize) -> Self {
        Statements { lines: text.lines(), line: line.saturating_sub(1), rest: "", inside: false }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        loop {
            while self.rest.is_empty() {
                self.rest = without_comment(self.lines.next()?).trim();
                self.line += 1;
                if !self.inside {
                    let brace = self.rest.find('{');
                    self.inside = brace.is_some();
                    self.rest = brace.map_or("", |at| self.rest[at..].trim());
                }
            }
            let (text, rest) = self.rest.split_once(';').unwrap_or((self.rest, ""));
            self.rest = rest.trim_start();
            let text = strip_prefixes(text);
            if !text.is_empty() {
                return Some(Statement { text, line: self.line });
            }
        }
    }
}

/// Removes the braces of scopes, labels and guard predicates before an operation.
fn strip_prefixes(mut text: &str) -> &str {
    loop {
        text = text.trim().trim_start_matches(['{', '}']).trim_start();
        let word = text.split(char::is_whitespace).next().unwrap_or("");
        if word.starts_with('@') {
            text = &text[word.len()..];
        } else if let Some((_, rest)) = text.split_once(':').filter(|(label, _)| is_label(label)) {
            text = rest;
        } else {
            return text;
        }
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_on_a_line_and_what_stands_before_them() {
        let text = ".visible .entry a(\n\t.param .u32 p\n)\n{\n\t{ .reg .b32 t; mov.u32 t, x; }\n\
                    $L_1: @!%p1 bra $L_1;\n\tld.global.v2.b32 {%r1, %r2}, [%rd1]; // ld.b32\n}";
        let found: Vec<_> = Statements::of(text, 10).map(|s| (s.line, s.opcode(), s.text)).collect();
        assert_eq!(
            found,
            [
                (14, ".reg", ".reg .b32 t"),
                (14, "mov.u32", "mov.u32 t, x"),
                (15, "bra", "bra $L_1"),
                (16, "ld.global.v2.b32", "ld.global.v2.b32 {%r1, %r2}, [%rd1]"),
            ]
        );
    }
}

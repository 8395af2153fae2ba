//! Takes apart the PTX text that rustc writes: header, declarations of the module, entries, instructions.
//!
//! The grammar is the part of the PTX ISA that LLVM's back end and module-level assembly use: one directive or
//! instruction a line or several separated by `;`, `//` comments, no `/* */` comments.

#![forbid(unsafe_code)]

mod statements;

use std::fmt;

pub use statements::{Statement, Statements};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A PTX text, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// `.version`, major and minor.
    pub version: (u32, u32),
    /// `.target`, such as `sm_90`.
    pub target: &'a str,
    /// `.address_size`, in bits.
    pub address_size: u32,
    /// The declarations beside the entries.
    pub declarations: Vec<Declaration<'a>>,
    /// The kernels, in the order of the text.
    pub entries: Vec<Entry<'a>>,
}

/// A declaration of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration<'a> {
    /// The kind of declaration.
    pub kind: Kind,
    /// Its name; empty if none was found.
    pub name: &'a str,
    /// The whole text, with its `;`.
    pub text: &'a str,
    /// Line number, from 1.
    pub line: usize,
}

/// The kind of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A variable in shared memory.
    Shared,
    /// A variable in global or constant memory: data that the kernel carries along.
    Data,
    /// Something that is defined elsewhere.
    Extern,
    /// A function that is not a kernel.
    Function,
    /// Anything else.
    Other,
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its symbol.
    pub name: &'a str,
    /// From `.visible` to the closing brace.
    pub text: &'a str,
    /// Line number of its first line, from 1.
    pub line: usize,
}

impl<'a> Entry<'a> {
    /// Returns the directives and instructions between the braces, one by one.
    #[must_use]
    pub fn statements(&self) -> Statements<'a> {
        Statements::of(self.text, self.line)
    }

    /// True if `name` occurs as a word in the text.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
        !name.is_empty()
            && self.text.match_indices(name).any(|(at, _)| {
                let bytes = self.text.as_bytes();
                let before = at.checked_sub(1).is_some_and(|at| is_word(bytes[at]));
                let after = bytes.get(at + name.len()).is_some_and(|&byte| is_word(byte));
                !before && !after
            })
    }

    /// Returns the text without comments and empty lines.
    #[must_use]
    pub fn compact(&self) -> String {
        let mut compact = String::with_capacity(self.text.len());
        for line in self.text.lines().map(|line| without_comment(line).trim_end()).filter(|line| !line.is_empty()) {
            compact += line;
            compact.push('\n');
        }
        compact
    }
}

/// An error in a text: the line that is not the PTX that this module knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line number, from 1.
    pub line: usize,
    /// The mistake there.
    pub why: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ParseError {}

/// Returns a line up to its comment.
#[must_use]
pub fn without_comment(line: &str) -> &str {
    line.find("//").map_or(line, |at| &line[..at])
}

/// Takes a PTX text apart.
///
/// # Errors
/// Fails if the text ends early, closes a brace too many, lacks its header, or is something else.
pub fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    let mut module =
        Module { version: (0, 0), target: "", address_size: 0, declarations: Vec::new(), entries: Vec::new() };
    // The construct that is being read: its start, its line, and its open braces.
    let mut start: Option<(usize, usize)> = None;
    let mut depth = 0_usize;
    let mut offset = 0;
    let mut lines = 0;
    for raw in text.split_inclusive('\n') {
        lines += 1;
        let code = without_comment(raw);
        if code.contains("/*") {
            return Err(ParseError { line: lines, why: "comments of the form /* */ are not understood".to_owned() });
        }
        if depth > 0 && !code.contains(['{', '}']) {
            offset += raw.len();
            continue;
        }
        if depth == 0 && start.is_none() && module.directive(code.trim(), lines)? {
            offset += raw.len();
            continue;
        }
        for (at, byte) in code.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 0 => {
                    return Err(ParseError { line: lines, why: "a closing brace too many".to_owned() });
                }
                b'}' => depth -= 1,
                _ => {}
            }
            if start.is_none() && !byte.is_ascii_whitespace() {
                start = Some((offset + at, lines));
            }
            // No byte of a letter of several bytes is one of the ends.
            let Some((from, line)) = start.filter(|_| depth == 0 && matches!(byte, b';' | b'}')) else { continue };
            let whole = &text[from..=offset + at];
            if byte == b';' || !is_initialised(whole) {
                module.construct(whole, line)?;
                start = None;
            }
        }
        offset += raw.len();
    }
    if let Some((_, line)) = start {
        return Err(ParseError { line, why: "what begins here does not end".to_owned() });
    }
    if module.version == (0, 0) || module.target.is_empty() || module.address_size == 0 {
        return Err(ParseError { line: lines, why: "no .version, .target or .address_size".to_owned() });
    }
    Ok(module)
}

/// True if a construct that a brace has closed is a variable with its values. It goes on to the `;`.
fn is_initialised(whole: &str) -> bool {
    whole.find('{').is_some_and(|brace| whole[..brace].trim_end().ends_with('='))
}

impl<'a> Module<'a> {
    /// Takes in a directive of the header or of debug information. Returns false for any other line.
    fn directive(&mut self, code: &'a str, line: usize) -> Result<bool, ParseError> {
        let (word, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        let rest = rest.trim();
        let wrong = || ParseError { line, why: format!("`{code}` is not understood") };
        match word {
            "" => {}
            ".version" => {
                let (major, minor) = rest.split_once('.').ok_or_else(wrong)?;
                self.version = (major.parse().map_err(|_| wrong())?, minor.parse().map_err(|_| wrong())?);
            }
            ".target" => self.target = rest.split(',').next().unwrap_or(rest).trim(),
            ".address_size" => self.address_size = rest.parse().map_err(|_| wrong())?,
            ".file" | ".loc" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes in a whole declaration or function.
    fn construct(&mut self, text: &'a str, line: usize) -> Result<(), ParseError> {
        let head = &text[..text.find(['(', '{', '=', ';']).unwrap_or(text.len())];
        let has = |word: &str| head.split_whitespace().any(|part| part == word);
        let name = || {
            let head = &head[..head.find('[').unwrap_or(head.len())];
            head.split_whitespace().next_back().filter(|word| !word.starts_with('.')).unwrap_or("")
        };
        if has(".entry") && !has(".extern") {
            if name().is_empty() {
                return Err(ParseError { line, why: "an entry without a name".to_owned() });
            }
            self.entries.push(Entry { name: name(), text, line });
            return Ok(());
        }
        let kind = if has(".shared") {
            // With `.extern` the launch gives its size.
            Kind::Shared
        } else if has(".extern") {
            Kind::Extern
        } else if has(".func") {
            Kind::Function
        } else if has(".global") || has(".const") {
            Kind::Data
        } else {
            Kind::Other
        };
        self.declarations.push(Declaration { kind, name: name(), text, line });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//
// Generated by LLVM NVPTX Back-End
//

.version 7.8
.target sm_90, debug
.address_size 64

.shared .align 16 .b8 pw_table[256]; .shared .align 4 .b32 pw_other; .extern .shared .align 16 .b8 pw_open[];
.global .align 1 .b8 anon[3] = {1, 2, 3};
.extern .func (.param .b32 func_retval0) cbrtf
(
\t.param .b32 cbrtf_param_0
)
;
\t// .globl\ta {
.visible .entry a(
\t.param .u64 .ptr .align 1 a_param_0
)
{
\t.reg .b32 \t%r<3>;
$L__BB0_1:
\tld.global.v4.b32 \t{%r7, %r9, %r11, %r13}, [%rd6];
\t// begin inline asm
\t{ .reg .b32 t; mov.u32 t, pw_table; @%p1 st.shared.b8 [t], %r2; bar.sync 0; }
\t// end inline asm
\tret;

}
.visible .entry b(
)
{
\tmov.u32 %r1, pw_table2;
\tret;
}
";

    #[test]
    fn takes_a_module_apart() {
        let module = parse(TEXT).unwrap();
        assert_eq!((module.version, module.target, module.address_size), ((7, 8), "sm_90", 64));
        let names: Vec<_> =
            module.declarations.iter().map(|declaration| (declaration.kind, declaration.name)).collect();
        let shared = ["pw_table", "pw_other", "pw_open"].map(|name| (Kind::Shared, name));
        assert_eq!((&names[..3], names[3]), (&shared[..], (Kind::Data, "anon")));
        assert_eq!(names[4].0, Kind::Extern);
        assert_eq!(module.declarations[0].text, ".shared .align 16 .b8 pw_table[256];");
        let entries: Vec<_> = module.entries.iter().map(|entry| (entry.name, entry.line)).collect();
        assert_eq!(entries, [("a", 17), ("b", 30)]);
        assert!(module.entries[0].text.starts_with(".visible .entry a(") && module.entries[0].text.ends_with('}'));
    }

    #[test]
    fn words_and_parts_of_words() {
        let module = parse(TEXT).unwrap();
        assert!(module.entries[0].mentions("pw_table"));
        assert!(!module.entries[1].mentions("pw_table"));
        assert!(!module.entries[1].mentions(""));
    }

    #[test]
    fn compacting_keeps_every_statement() {
        let module = parse(TEXT).unwrap();
        let compact = module.entries[0].compact();
        assert!(!compact.contains("//") && !compact.contains("\n\n"));
        let again = Statements::of(&compact, 1).map(|statement| statement.text).collect::<Vec<_>>();
        let before = module.entries[0].statements().map(|statement| statement.text).collect::<Vec<_>>();
        assert_eq!(again, before);
    }

    #[test]
    fn faults_have_a_line() {
        let line = |text: &str| parse(text).unwrap_err().line;
        assert_eq!(line("}"), 1);
        assert_eq!(line(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry a(\n)\n{\n"), 4);
        assert_eq!(line(".version seven\n"), 1);
        assert_eq!(line("\n/* x */"), 2);
        assert_eq!(line(".version 7.8\n\u{e9}t\u{e9} {\u{1f600}"), 2, "letters of several bytes");
        assert!(parse("").is_err());
    }
}

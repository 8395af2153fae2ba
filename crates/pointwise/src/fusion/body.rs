//! Bodies: the formula of one element as PTX over registers, as the build made it, and copies of it in a kernel's text.
//!
//! A body is an entry that nothing launches. Its parameters are a pointer to the results, then the operands, then the words of the
//! op's parameters; result `k` is stored 8 bytes times `k` behind the pointer. A copy has registers and labels of its own; loads
//! of operands and stores of results become moves.

use std::fmt::Write as _;

use pointwise_ptx::{parse, without_comment};

/// A body, taken apart.
#[derive(Debug)]
pub(super) struct Body {
    /// Kinds of registers: type, name with `%`, count.
    registers: Vec<(String, String, String)>,
    lines: Vec<Line>,
}

/// A line of a body.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Text whose registers and labels are the copy's own.
    Text(String),
    /// An operand to a register; the type of the move.
    Operand { kind: &'static str, register: String, operand: usize },
    /// A word of the parameters, by its opcode and its place: `ld.param.b32 %r1, [word + offset]`.
    Word { opcode: String, register: String, word: usize, offset: String },
    /// A register or a number to a result.
    Result { kind: &'static str, result: usize, value: String },
}

/// Operands, words and results of a copy, by the names that they have in the kernel's text.
pub(super) struct Names<'a> {
    pub(super) operands: &'a [String],
    pub(super) words: &'a [String],
    pub(super) results: &'a [String],
}

impl Body {
    /// Takes apart the text of a module with the one entry, of an op of so many operands. The error is a sentence.
    pub(super) fn parse(text: &str, operands: usize) -> Result<Body, String> {
        let module = parse(text).map_err(|error| format!("the text cannot be read: {error}"))?;
        let [entry] = &*module.entries else { return Err("the text has not one entry".to_owned()) };
        let open = entry.text.find('{').ok_or("the entry has no code")?;
        let close = entry.text.rfind('}').ok_or("the entry has no end")?;
        let parameter = |text: &str| -> Option<(usize, String)> {
            let inner = text.strip_prefix('[')?.strip_suffix(']')?.strip_prefix(entry.name)?.strip_prefix("_param_")?;
            let digits = inner.find(|it: char| !it.is_ascii_digit()).unwrap_or(inner.len());
            Some((inner[..digits].parse().ok()?, inner[digits..].to_owned()))
        };
        let mut body = Body { registers: Vec::new(), lines: Vec::new() };
        // The registers that hold the pointer to the results.
        let mut pointers: Vec<String> = Vec::new();
        for line in entry.text[open + 1..close].lines() {
            let line = without_comment(line).trim();
            let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
            match &*words {
                [] | ["ret"] | ["griddepcontrol.wait"] => {}
                [".reg", kind, name] => {
                    let (name, count) = name.split_once('<').ok_or_else(|| format!("a register alone: {line}"))?;
                    body.registers.push(((*kind).to_owned(), name.to_owned(), count.trim_end_matches('>').to_owned()));
                }
                [opcode, register, place] if opcode.starts_with("ld.param.") => {
                    let register = register.trim_end_matches(',').to_owned();
                    let (k, offset) = parameter(place).ok_or_else(|| format!("another parameter: {line}"))?;
                    match k.checked_sub(1) {
                        None => pointers.push(register),
                        Some(operand) if operand < operands => {
                            let kind = match *opcode {
                                "ld.param.b32" | "ld.param.u32" | "ld.param.s32" | "ld.param.f32" => "b32",
                                "ld.param.b64" | "ld.param.u64" | "ld.param.s64" => "b64",
                                _ => return Err(format!("an operand of another size: {line}")),
                            };
                            body.lines.push(Line::Operand { kind, register, operand });
                        }
                        Some(k) => {
                            let word = k - operands;
                            body.lines.push(Line::Word { opcode: (*opcode).to_owned(), register, word, offset });
                        }
                    }
                }
                [opcode, register, pointer]
                    if opcode.starts_with("cvta.") && pointers.iter().any(|it| it == pointer) =>
                {
                    pointers.push(register.trim_end_matches(',').to_owned());
                }
                [opcode, place, value] if opcode.starts_with("st.global.") => {
                    let kind = match *opcode {
                        "st.global.b32" | "st.global.u32" | "st.global.s32" | "st.global.f32" => "b32",
                        "st.global.b64" | "st.global.u64" | "st.global.s64" => "b64",
                        _ => return Err(format!("a result of another size: {line}")),
                    };
                    let inner = place.trim_start_matches('[').trim_end_matches([',', ']']);
                    let (pointer, offset) = inner.split_once('+').unwrap_or((inner, "0"));
                    let offset: usize = offset.parse().map_err(|_| format!("a result elsewhere: {line}"))?;
                    if !pointers.iter().any(|it| it == pointer) || !offset.is_multiple_of(8) {
                        return Err(format!("a store elsewhere: {line}"));
                    }
                    body.lines.push(Line::Result { kind, result: offset / 8, value: (*value).to_owned() });
                }
                _ if line.contains("_param_") || line.contains(".local") || line.starts_with("call") => {
                    return Err(format!("not of registers alone: {line}"));
                }
                _ if words.contains(&"ret") => return Err(format!("an end before the last: {line}")),
                _ => body.lines.push(Line::Text(line.to_owned())),
            }
        }
        Ok(body)
    }

    /// Writes copy `copy` of the code, and the declaration of its registers.
    pub(super) fn write(&self, copy: usize, names: &Names<'_>, registers: &mut String, code: &mut String) {
        // Writing to a `String` does not fail.
        for (kind, name, count) in &self.registers {
            let name = name.trim_start_matches('%');
            _ = writeln!(registers, "\t.reg {kind} %c{copy}{name}<{count}>;");
        }
        let own = |text: &str| renamed(text, copy);
        for line in &self.lines {
            _ = match line {
                Line::Text(text) => writeln!(code, "\t{}", own(text)),
                Line::Operand { kind, register, operand } => {
                    writeln!(code, "\tmov.{kind} {}, {};", own(register), names.operands[*operand])
                }
                Line::Word { opcode, register, word, offset } => {
                    writeln!(code, "\t{opcode} {}, [{}{offset}];", own(register), names.words[*word])
                }
                Line::Result { kind, result, value } => {
                    writeln!(code, "\tmov.{kind} {}, {};", names.results[*result], own(value))
                }
            };
        }
    }
}

/// Returns a text whose registers (`%r1`) and labels (`$L1`) are those of a copy.
fn renamed(text: &str, copy: usize) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for part in text.split_inclusive(['%', '$']) {
        out.push_str(part);
        if part.ends_with('%') {
            _ = write!(out, "c{copy}");
        } else if part.ends_with('$') {
            _ = write!(out, "c{copy}_");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .entry f(\n\t.param .u64 f_param_0,\n\t.param .u32 f_param_1,\n\t.param .u64 f_param_2\n)\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 \t%r<4>;\n\t.reg .b64 %rd<3>;\n\tgriddepcontrol.wait;\n\tld.param.b64 %rd1, [f_param_0];\n\tcvta.to.global.u64 %rd2, %rd1;\n\tld.param.b32 %r1, [f_param_1];\n\tld.param.b32 %r2, [f_param_2+4];\n\tsetp.lt.f32 %p1, %r1, 0f00000000;\n\t@%p1 bra $L__BB0_2;\n\tadd.rn.f32 %r3, %r1, %r2; // sum\n$L__BB0_2:\n\tst.global.b32 [%rd2], %r3;\n\tst.global.b32 [%rd2+8], 7;\n\tret;\n}\n";

    #[test]
    fn a_copy_has_names_of_its_own() {
        let body = Body::parse(TEXT, 1).unwrap();
        assert_eq!(body.lines.len(), 8);
        let (mut registers, mut code) = (String::new(), String::new());
        let [operands, words, results] = [&["%x"][..], &["w5"], &["%y", "%z"]]
            .map(|names| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        body.write(3, &Names { operands: &operands, words: &words, results: &results }, &mut registers, &mut code);
        assert_eq!(registers, "\t.reg .pred %c3p<2>;\n\t.reg .b32 %c3r<4>;\n\t.reg .b64 %c3rd<3>;\n");
        assert_eq!(
            code,
            "\tmov.b32 %c3r1, %x;\n\tld.param.b32 %c3r2, [w5+4];\n\tsetp.lt.f32 %c3p1, %c3r1, 0f00000000;\n\t@%c3p1 bra \
             $c3_L__BB0_2;\n\tadd.rn.f32 %c3r3, %c3r1, %c3r2;\n$c3_L__BB0_2:\n\tmov.b32 %y, %c3r3;\n\tmov.b32 %z, 7;\n"
                .replace("\n$c3", "\n\t$c3")
        );
    }

    #[test]
    fn what_is_no_body_is_refused() {
        for (from, to, why) in [
            ("st.global.b32 [%rd2]", "st.global.b16 [%rd2]", "another size"),
            ("st.global.b32 [%rd2]", "st.global.b32 [%rd3]", "elsewhere"),
            ("ld.param.b32 %r1, [f_param_1]", "ld.param.b8 %r1, [f_param_1]", "another size"),
            ("\tadd.rn.f32", "\tmov.b64 %rd1, f_param_1;\n\tadd.rn.f32", "registers alone"),
            ("@%p1 bra $L__BB0_2", "@%p1 ret", "before the last"),
        ] {
            let error = Body::parse(&TEXT.replace(from, to), 1).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}

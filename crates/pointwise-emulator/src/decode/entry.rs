//! One entry: its parameters, its shared variables, and the walk over its statements.

use std::collections::HashMap;

use pointwise_ptx::Entry;

use super::{
    LoadError, compare, control, convert, float, integer,
    items::{self, Item, Located},
    memory, moves,
    opcode::Opcode,
    registers::{Builder, PARAMETER_BASE, SHARED_BASE},
    types::Type,
};
use crate::program::{Operation, Parameter, Place, Program, TRUE};

/// The error is the reason why an instruction is not understood; [`Walk`] knows its place.
pub(super) type Decoded<T = ()> = Result<T, String>;

/// Decodes an entry. `declarations` are the module's shared variables, with their lines.
pub(super) fn decode(entry: &Entry<'_>, declarations: &[(&str, usize)]) -> Result<Program, LoadError> {
    let clean = items::blanked(entry.text);
    let fail = |line: usize, text: &str, why: String| LoadError::Instruction {
        kernel: entry.name.to_owned(),
        line,
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        why,
    };
    let open = clean.find('{').unwrap_or(clean.len());
    let (head, body) = clean.split_at(open);
    let parameters = parameters(head).map_err(|(text, why)| fail(entry.line, &text, why))?;
    let parameter_bytes = parameters.last().map_or(0, |last| last.offset + last.bytes);
    let mut walk = Walk {
        builder: Builder::new(),
        labels: HashMap::new(),
        tables: HashMap::new(),
        label: "",
        shared: Shared::default(),
    };
    walk.builder.parameter_bytes = parameter_bytes;
    for parameter in &parameters {
        walk.builder.symbols.insert(parameter.name.clone(), PARAMETER_BASE + parameter.offset as u64);
    }
    for (text, line) in declarations {
        let variable = variable(text).map_err(|why| fail(*line, text, why))?;
        if entry.mentions(&variable.name) {
            walk.declare(variable).map_err(|why| fail(*line, text, why))?;
        }
    }
    let line_of_body = entry.line + head.matches('\n').count();
    // Without the braces of the body itself.
    let inside = body.get(1..body.len().saturating_sub(1)).unwrap_or("");
    for located in items::items(inside) {
        let line = line_of_body + located.line as usize - 1;
        let (start, end) = (open + 1 + located.start, open + 1 + located.end);
        let range = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        walk.builder.place = Place { line: u32::try_from(line).unwrap_or(u32::MAX), text: range(start)..range(end) };
        walk.item(&located).map_err(|why| fail(line, &clean[start..end], why))?;
    }
    // A body that runs to its end returns.
    walk.builder.guard = (TRUE, false);
    walk.builder.emit(Operation::Exit);
    walk.finish(entry, head, parameters, parameter_bytes).map_err(|why| fail(entry.line, entry.name, why))
}

/// The layout of shared memory.
#[derive(Default)]
struct Shared {
    bytes: u32,
    /// Names of variables whose size the launch gives.
    open: Vec<String>,
}

struct Walk<'a> {
    builder: Builder,
    labels: HashMap<String, u32>,
    tables: HashMap<String, Vec<String>>,
    /// The latest label.
    label: &'a str,
    shared: Shared,
}

impl<'a> Walk<'a> {
    fn item(&mut self, located: &Located<'a>) -> Decoded {
        match located.item {
            Item::Open => self.builder.open(),
            Item::Close => self.builder.close()?,
            Item::Label(name) => {
                self.label = name;
                let here = u32::try_from(self.builder.code.len()).map_err(|error| error.to_string())?;
                if self.labels.insert(name.to_owned(), here).is_some() {
                    return Err(format!("label `{name}` is there twice"));
                }
            }
            Item::Directive(text) => self.directive(text)?,
            Item::Instruction { guard, opcode, operands } => {
                self.builder.guard = match guard {
                    Some(text) => self.builder.predicate(text)?,
                    None => (TRUE, false),
                };
                instruction(&mut self.builder, opcode, &items::operands(operands))?;
                self.builder.end_instruction();
            }
        }
        Ok(())
    }

    fn directive(&mut self, text: &str) -> Decoded {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match word {
            ".reg" => self.builder.declare(rest),
            ".pragma" | ".loc" | ".file" => Ok(()),
            ".shared" => self.declare(variable(text)?),
            ".branchtargets" => {
                let targets = rest.split(',').map(|target| target.trim().to_owned()).collect();
                self.tables.insert(self.label.to_owned(), targets);
                Ok(())
            }
            _ => Err("the emulator does not know this directive".to_owned()),
        }
    }

    /// Gives a shared variable its place. Variables that the launch sizes follow all others.
    fn declare(&mut self, variable: Variable) -> Decoded {
        let Some(bytes) = variable.bytes else {
            self.shared.open.push(variable.name);
            self.place_open();
            return Ok(());
        };
        let start = self.shared.bytes.next_multiple_of(variable.align);
        self.shared.bytes = start.checked_add(bytes).ok_or("more shared memory than there is")?;
        self.builder.symbols.insert(variable.name, u64::from(SHARED_BASE + start));
        self.place_open();
        Ok(())
    }

    /// Puts the variables that the launch sizes where the others end.
    fn place_open(&mut self) {
        let start = SHARED_BASE + self.shared.bytes.next_multiple_of(16);
        for name in &self.shared.open {
            self.builder.symbols.insert(name.clone(), u64::from(start));
        }
    }

    fn finish(
        mut self,
        entry: &Entry<'_>,
        head: &str,
        parameters: Vec<Parameter>,
        parameter_bytes: usize,
    ) -> Decoded<Program> {
        let find = |name: &String| self.labels.get(name).copied().ok_or_else(|| format!("there is no label `{name}`"));
        let targets = self.builder.targets.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let tables = self
            .builder
            .tables
            .iter()
            .map(|name| self.tables.get(name).ok_or_else(|| format!("there is no table `{name}`")))
            .map(|table| table?.iter().map(find).collect::<Result<Vec<_>, _>>())
            .collect::<Result<Vec<_>, _>>()?;
        for instruction in &mut self.builder.code {
            if let Operation::Branch { target } = &mut instruction.operation {
                *target = targets[*target as usize];
            }
        }
        let barriers =
            self.builder.code.iter().any(|instruction| matches!(instruction.operation, Operation::Barrier { .. }));
        let [words, longs, predicates] = self.builder.sizes();
        Ok(Program {
            name: entry.name.to_owned(),
            text: entry.text.to_owned(),
            parameters,
            parameter_bytes,
            word_numbers: self.builder.word_numbers(),
            long_numbers: self.builder.long_numbers(),
            specials: self.builder.specials(),
            code: self.builder.code,
            places: self.builder.places,
            tables,
            words,
            longs,
            predicates,
            shared: self.shared.bytes.next_multiple_of(16),
            barriers,
            most_threads: most_threads(head),
        })
    }
}

/// Decodes one instruction.
fn instruction(builder: &mut Builder, text: &str, operands: &[&str]) -> Decoded {
    let mut opcode = Opcode::of(text);
    match opcode.name {
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "prmt" | "lop3" | "popc"
        | "clz" | "brev" | "rem" => integer::decode(builder, &mut opcode, operands),
        "add" | "sub" | "mul" | "mad" | "min" | "max" | "neg" | "abs" | "div" => {
            if opcode.rest().iter().rev().find_map(|part| Type::of(part)).is_some_and(Type::is_float) {
                float::decode(builder, &mut opcode, operands)
            } else {
                integer::decode(builder, &mut opcode, operands)
            }
        }
        "fma" | "sqrt" | "rcp" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" => {
            float::decode(builder, &mut opcode, operands)
        }
        "set" | "setp" | "selp" => compare::decode(builder, &mut opcode, operands),
        "cvt" => convert::decode(builder, &mut opcode, operands),
        "mov" | "cvta" => moves::decode(builder, &mut opcode, operands),
        "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "prefetch" => memory::decode(builder, &mut opcode, operands),
        "bra" | "brx" | "ret" | "exit" | "bar" | "barrier" | "shfl" | "vote" | "activemask" | "griddepcontrol"
        | "membar" | "fence" => control::decode(builder, &mut opcode, operands),
        _ => return Err("the emulator does not know this instruction".to_owned()),
    }?;
    match opcode.rest() {
        [] => Ok(()),
        [suffix, ..] => Err(format!("the emulator does not know `.{suffix}` of this instruction")),
    }
}

/// Returns the operands if there are exactly `N`.
pub(super) fn exactly<'t, const N: usize>(operands: &[&'t str]) -> Decoded<[&'t str; N]> {
    operands.try_into().map_err(|_| format!("{N} operands are expected, not {}", operands.len()))
}

/// Reads the parameters of an entry from the text before its body.
fn parameters(head: &str) -> Result<Vec<Parameter>, (String, String)> {
    let inside = head.find('(').and_then(|open| Some(&head[open + 1..head.rfind(')')?])).unwrap_or("");
    let mut parameters = Vec::new();
    let mut offset = 0_usize;
    for text in inside.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let wrong = |why: &str| (text.to_owned(), why.to_owned());
        let mut words = text.split_whitespace().peekable();
        if words.next() != Some(".param") {
            return Err(wrong("a parameter is expected"));
        }
        let (mut align, mut of) = (None, None);
        let mut name = "";
        while let Some(word) = words.next() {
            match word {
                ".ptr" => {
                    // The alignment and space of its target do not matter to the parameter.
                    while words.peek().is_some_and(|word| word.starts_with('.')) {
                        if words.next() == Some(".align") {
                            words.next();
                        }
                    }
                }
                ".align" => align = words.next().and_then(|word| word.parse::<usize>().ok()),
                _ if word.starts_with('.') => of = Type::of(&word[1..]),
                _ => name = word,
            }
        }
        let of = of.ok_or_else(|| wrong("its type is not known"))?;
        let (name, count) = match name.split_once('[') {
            Some((name, count)) => {
                (name, count.trim_end_matches(']').parse().map_err(|_| wrong("its size is no number"))?)
            }
            None => (name, 1_usize),
        };
        let size = usize::from(of.bytes());
        let align = align.filter(|align| align.is_power_of_two()).unwrap_or(size);
        offset = offset.next_multiple_of(align);
        let bytes = size * count;
        parameters.push(Parameter { name: name.to_owned(), offset, bytes });
        offset += bytes;
    }
    Ok(parameters)
}

/// Returns the most threads that `.maxntid` or `.reqntid` allows.
fn most_threads(head: &str) -> Option<u32> {
    let at = head.find(".maxntid").or_else(|| head.find(".reqntid"))?;
    let numbers = head[at..].lines().next()?.split_once(char::is_whitespace)?.1;
    let threads = numbers.split(',').filter_map(|number| number.trim().parse::<u32>().ok());
    threads.reduce(u32::saturating_mul)
}

/// A shared variable.
struct Variable {
    name: String,
    align: u32,
    /// `None` if the launch gives the size.
    bytes: Option<u32>,
}

/// Reads a declaration such as `.extern .shared .align 16 .b8 name[256];`.
fn variable(text: &str) -> Decoded<Variable> {
    let mut words = text.trim_end_matches(';').split_whitespace();
    let (mut align, mut of, mut name) = (None, None, String::new());
    while let Some(word) = words.next() {
        match word {
            ".align" => align = words.next().and_then(|word| word.parse::<u32>().ok()),
            ".shared" | ".extern" | ".visible" | ".weak" => {}
            _ if word.starts_with('.') => of = Type::of(&word[1..]),
            _ => name += word,
        }
    }
    let size = u32::from(of.ok_or("its type is not known")?.bytes());
    let align = align.filter(|align| align.is_power_of_two()).unwrap_or(size);
    let (name, count) = match name.split_once('[') {
        None => (name.as_str(), Some(1)),
        Some((name, "]")) => (name, None),
        Some((name, count)) => (name, Some(count.trim_end_matches(']').parse().map_err(|_| "its size is no number")?)),
    };
    let bytes = match count {
        Some(count) => Some(size.checked_mul(count).filter(|&bytes| bytes <= 1 << 20).ok_or("it is too large")?),
        None => None,
    };
    Ok(Variable { name: name.to_owned(), align, bytes })
}

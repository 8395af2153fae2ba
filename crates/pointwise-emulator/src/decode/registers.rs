//! Gives registers, numbers and special registers their slots, and collects the instructions of a program.

use std::collections::HashMap;

use super::types::Type;
use crate::program::{Instruction, LaneRelation, Narrow, One, Operation, Place, Slot, Special, TRUE};

/// The first `.shared` address. It is not zero, so that an address near zero is an error.
pub(crate) const SHARED_BASE: u32 = 1024;

/// The first generic address of shared memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 56;

/// The first `.param` address.
pub(crate) const PARAMETER_BASE: u64 = 4096;

/// The size of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Predicate,
    Half,
    Word,
    Long,
}

impl Class {
    /// Returns the class of a type in a `.reg` directive.
    pub(crate) fn of(of: Type) -> Option<Class> {
        match (of, of.bytes()) {
            (Type::Pred, _) => Some(Class::Predicate),
            (_, 2) => Some(Class::Half),
            (_, 4) => Some(Class::Word),
            (_, 8) => Some(Class::Long),
            _ => None,
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) class: Class,
    pub(crate) slot: Slot,
}

/// Registers that a scope declares: single ones, and ranges such as `%r<3>`.
#[derive(Default)]
struct Scope {
    single: HashMap<String, Register>,
    ranges: Vec<(String, Class, Slot, u32)>,
}

/// The slots of one file: their number, and the ones that are free again.
#[derive(Default)]
struct File {
    count: u32,
    free: Vec<Slot>,
}

impl File {
    fn take(&mut self, count: u32) -> Result<Slot, String> {
        if count == 1
            && let Some(slot) = self.free.pop()
        {
            return Ok(slot);
        }
        let first = self.count;
        self.count = self.count.checked_add(count).filter(|&count| count < u32::from(Slot::MAX)).ok_or_else(|| {
            "the kernel has more registers and numbers than the emulator's 65534 of one size".to_owned()
        })?;
        Slot::try_from(first).map_err(|error| error.to_string())
    }
}

/// A program in the making.
pub(crate) struct Builder {
    scopes: Vec<Scope>,
    words: File,
    longs: File,
    predicates: File,
    word_numbers: HashMap<u32, Slot>,
    long_numbers: HashMap<u64, Slot>,
    specials: HashMap<Special, Slot>,
    /// Addresses of shared variables and parameters.
    pub(crate) symbols: HashMap<String, u64>,
    pub(crate) parameter_bytes: usize,
    pub(crate) code: Vec<Instruction>,
    pub(crate) places: Vec<Place>,
    /// The labels that branches name, in the order of their numbers.
    pub(crate) targets: Vec<String>,
    /// Tables of `brx.idx` by name, in the order of their numbers.
    pub(crate) tables: Vec<String>,
    /// The guard and the place of the instruction that is being decoded.
    pub(crate) guard: (Slot, bool),
    pub(crate) place: Place,
    /// Slots that serve one instruction only.
    temporary: Vec<Register>,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            scopes: vec![Scope::default()],
            words: File::default(),
            longs: File::default(),
            predicates: File { count: u32::from(TRUE) + 1, free: Vec::new() },
            word_numbers: HashMap::new(),
            long_numbers: HashMap::new(),
            specials: HashMap::new(),
            symbols: HashMap::new(),
            parameter_bytes: 0,
            code: Vec::new(),
            places: Vec::new(),
            targets: Vec::new(),
            tables: Vec::new(),
            guard: (TRUE, false),
            place: Place { line: 0, text: 0..0 },
            temporary: Vec::new(),
        }
    }

    /// Returns the number of slots in each file: words, longs, predicates.
    pub(crate) fn sizes(&self) -> [usize; 3] {
        [&self.words, &self.longs, &self.predicates].map(|file| file.count as usize)
    }

    pub(crate) fn word_numbers(&self) -> Vec<(Slot, u32)> {
        self.word_numbers.iter().map(|(&number, &slot)| (slot, number)).collect()
    }

    pub(crate) fn long_numbers(&self) -> Vec<(Slot, u64)> {
        self.long_numbers.iter().map(|(&number, &slot)| (slot, number)).collect()
    }

    pub(crate) fn specials(&self) -> Vec<(Slot, Special)> {
        self.specials.iter().map(|(&special, &slot)| (slot, special)).collect()
    }

    fn file(&mut self, class: Class) -> &mut File {
        match class {
            Class::Predicate => &mut self.predicates,
            Class::Half | Class::Word => &mut self.words,
            Class::Long => &mut self.longs,
        }
    }

    pub(crate) fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Ends a scope. Later scopes may use its registers again.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        let scope = self.scopes.pop().filter(|_| !self.scopes.is_empty()).ok_or("a closing brace too many")?;
        for register in scope.single.into_values() {
            self.file(register.class).free.push(register.slot);
        }
        Ok(())
    }

    /// Declares registers from the text after `.reg`, such as `.b32 %r<3>` or `.pred p, q`.
    pub(crate) fn declare(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let (of, names) = text.split_once(char::is_whitespace).ok_or("a type and names are expected")?;
        let class = of.strip_prefix('.').and_then(Type::of).and_then(Class::of);
        let class = class.ok_or_else(|| format!("the emulator has no registers of type `{of}`"))?;
        for name in names.split(',').map(str::trim) {
            if let Some((prefix, count)) = name.split_once('<') {
                let count = count.trim_end_matches('>').trim().parse().map_err(|_| format!("`{name}` is no range"))?;
                let first = self.file(class).take(count)?;
                self.scope().ranges.push((prefix.to_owned(), class, first, count));
            } else {
                let slot = self.file(class).take(1)?;
                self.scope().single.insert(name.to_owned(), Register { class, slot });
            }
        }
        Ok(())
    }

    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Returns the register with a name.
    pub(crate) fn register(&self, name: &str) -> Option<Register> {
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        self.scopes.iter().rev().find_map(|scope| {
            scope.single.get(name).copied().or_else(|| {
                let number: u32 = name[digits..].parse().ok()?;
                let (_, class, first, _) =
                    scope.ranges.iter().find(|(prefix, _, _, count)| *prefix == name[..digits] && number < *count)?;
                Some(Register { class: *class, slot: first + Slot::try_from(number).ok()? })
            })
        })
    }

    /// Returns a slot that is free again after the current instruction.
    pub(crate) fn temporary(&mut self, class: Class) -> Result<Slot, String> {
        let slot = self.file(class).take(1)?;
        self.temporary.push(Register { class, slot });
        Ok(slot)
    }

    /// Ends an instruction: frees its temporary slots.
    pub(crate) fn end_instruction(&mut self) {
        while let Some(register) = self.temporary.pop() {
            self.file(register.class).free.push(register.slot);
        }
    }

    /// Adds an instruction with the current guard and place.
    pub(crate) fn emit(&mut self, operation: Operation) {
        let (guard, negate) = self.guard;
        let acts = operation.acts();
        self.code.push(Instruction { operation, guard, flip: if negate { u32::MAX } else { 0 }, acts });
        self.places.push(self.place.clone());
    }

    /// Returns the slot that holds a number in every lane.
    pub(crate) fn word_number(&mut self, number: u32) -> Result<Slot, String> {
        if let Some(&slot) = self.word_numbers.get(&number) {
            return Ok(slot);
        }
        // Never a slot that was used before: it holds the number from the start to the end.
        let slot = self.words.take_new()?;
        self.word_numbers.insert(number, slot);
        Ok(slot)
    }

    pub(crate) fn long_number(&mut self, number: u64) -> Result<Slot, String> {
        if let Some(&slot) = self.long_numbers.get(&number) {
            return Ok(slot);
        }
        let slot = self.longs.take_new()?;
        self.long_numbers.insert(number, slot);
        Ok(slot)
    }

    fn special(&mut self, special: Special) -> Result<Slot, String> {
        if let Some(&slot) = self.specials.get(&special) {
            return Ok(slot);
        }
        let slot = self.words.take_new()?;
        self.specials.insert(special, slot);
        Ok(slot)
    }

    /// Returns the word slot of an operand of at most 32 bits.
    pub(crate) fn word(&mut self, text: &str, of: Type) -> Result<Slot, String> {
        if let Some(register) = self.register(text) {
            return self.word_register(text, register, of);
        }
        if let Some(special) = special(text) {
            return self.special(special);
        }
        if let Some(&address) = self.symbols.get(text) {
            let address = u32::try_from(address).map_err(|error| error.to_string())?;
            return self.word_number(address);
        }
        let number = number(text, of).ok_or_else(|| format!("`{text}` is no register or number that is known"))?;
        self.word_number(number as u32)
    }

    fn word_register(&mut self, text: &str, register: Register, of: Type) -> Result<Slot, String> {
        let narrow = match (register.class, of.bytes()) {
            (Class::Half, 1 | 2) | (Class::Word, 4) => return Ok(register.slot),
            (Class::Word, 2) => Operation::One { op: One::Unsigned16, d: 0, a: register.slot },
            (Class::Word, 1) => Operation::One { op: One::Unsigned8, d: 0, a: register.slot },
            (Class::Long, 4) => Operation::Narrow { op: Narrow::Low, d: 0, a: register.slot },
            (Class::Long, 2) => Operation::Narrow { op: Narrow::Low16, d: 0, a: register.slot },
            (Class::Long, 1) => Operation::Narrow { op: Narrow::Unsigned8, d: 0, a: register.slot },
            _ => return Err(format!("register `{text}` has another size")),
        };
        let slot = self.temporary(Class::Word)?;
        self.emit(match narrow {
            Operation::One { op, a, .. } => Operation::One { op, d: slot, a },
            Operation::Narrow { op, a, .. } => Operation::Narrow { op, d: slot, a },
            other => other,
        });
        Ok(slot)
    }

    /// Returns the long slot of an operand of 64 bits.
    pub(crate) fn long(&mut self, text: &str, of: Type) -> Result<Slot, String> {
        if let Some(register) = self.register(text) {
            return match register.class {
                Class::Long => Ok(register.slot),
                _ => Err(format!("register `{text}` has another size")),
            };
        }
        if let Some(&address) = self.symbols.get(text) {
            return self.long_number(address);
        }
        let number = number(text, of).ok_or_else(|| format!("`{text}` is no register or number that is known"))?;
        self.long_number(number)
    }

    /// Returns the register for a result of at most 32 bits; for `_`, a temporary slot.
    pub(crate) fn word_result(&mut self, text: &str) -> Result<Slot, String> {
        self.result(text, |class| matches!(class, Class::Half | Class::Word), Class::Word)
    }

    pub(crate) fn long_result(&mut self, text: &str) -> Result<Slot, String> {
        self.result(text, |class| class == Class::Long, Class::Long)
    }

    pub(crate) fn predicate_result(&mut self, text: &str) -> Result<Slot, String> {
        self.result(text, |class| class == Class::Predicate, Class::Predicate)
    }

    fn result(&mut self, text: &str, fits: impl Fn(Class) -> bool, class: Class) -> Result<Slot, String> {
        if text == "_" {
            return self.temporary(class);
        }
        match self.register(text) {
            Some(register) if fits(register.class) => Ok(register.slot),
            Some(_) => Err(format!("register `{text}` has another size")),
            None => Err(format!("`{text}` is no register that is known")),
        }
    }

    /// Returns the slot of a predicate operand, and true if `!` stands before it.
    pub(crate) fn predicate(&self, text: &str) -> Result<(Slot, bool), String> {
        let (name, negate) = text.strip_prefix('!').map_or((text, false), |name| (name.trim(), true));
        match self.register(name) {
            Some(Register { class: Class::Predicate, slot }) => Ok((slot, negate)),
            _ => Err(format!("`{name}` is no predicate")),
        }
    }
}

impl File {
    fn take_new(&mut self) -> Result<Slot, String> {
        let free = std::mem::take(&mut self.free);
        let slot = self.take(1);
        self.free = free;
        slot
    }
}

/// Returns the special register with a name.
fn special(name: &str) -> Option<Special> {
    let axis = |of: fn(u8) -> Special, suffix: &str| {
        let axis = ["x", "y", "z"].iter().position(|&axis| axis == suffix)?;
        Some(of(u8::try_from(axis).ok()?))
    };
    let (base, suffix) = name.split_once('.').unwrap_or((name, ""));
    match base {
        "%tid" => axis(Special::Thread, suffix),
        "%ctaid" => axis(Special::Block, suffix),
        "%ntid" => axis(Special::ThreadCount, suffix),
        "%nctaid" => axis(Special::BlockCount, suffix),
        "%laneid" => Some(Special::Lane),
        "%warpid" => Some(Special::Warp),
        "%nwarpid" => Some(Special::WarpCount),
        "%lanemask_eq" => Some(Special::LaneMask(LaneRelation::Eq)),
        "%lanemask_lt" => Some(Special::LaneMask(LaneRelation::Lt)),
        "%lanemask_le" => Some(Special::LaneMask(LaneRelation::Le)),
        "%lanemask_gt" => Some(Special::LaneMask(LaneRelation::Gt)),
        "%lanemask_ge" => Some(Special::LaneMask(LaneRelation::Ge)),
        "%dynamic_smem_size" => Some(Special::DynamicShared),
        _ => None,
    }
}

/// Returns the bits of a number in the text, as an operand of a type.
pub(crate) fn number(text: &str, of: Type) -> Option<u64> {
    if text == "WARP_SZ" {
        return Some(32);
    }
    if let Some(digits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        let bits = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?;
        return Some(if of == Type::F64 { f64::from(f32::from_bits(bits)).to_bits() } else { u64::from(bits) });
    }
    if let Some(digits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)?;
        let single = u64::from((f64::from_bits(bits) as f32).to_bits());
        return Some(if of.bytes() == 8 { bits } else { single });
    }
    if of.is_float() && text.contains('.') {
        let value: f64 = text.parse().ok()?;
        return match of {
            Type::F64 => Some(value.to_bits()),
            Type::F32 => Some(u64::from((value as f32).to_bits())),
            _ => None,
        };
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.trim_end_matches('U');
    let value = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Some(binary) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2).ok()?
    } else {
        digits.parse().ok()?
    };
    let value = if negative { value.wrapping_neg() } else { value };
    Some(match of.bytes() {
        8 => value,
        4 => value & 0xffff_ffff,
        2 => value & 0xffff,
        _ => value & 0xff,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_forms() {
        assert_eq!(number("0f3F800000", Type::F32), Some(0x3f80_0000));
        assert_eq!(number("0f3F800000", Type::F64), Some(1.0_f64.to_bits()));
        assert_eq!(number("0d3FF0000000000000", Type::F64), Some(1.0_f64.to_bits()));
        assert_eq!(number("-1", Type::S32), Some(0xffff_ffff));
        assert_eq!(number("-1", Type::B16), Some(0xffff));
        assert_eq!(number("0xCA", Type::U32), Some(0xca));
        assert_eq!(number("1.5", Type::F32), Some(u64::from(1.5_f32.to_bits())));
        assert_eq!([number("x", Type::U32), number("0f3F", Type::F32), number("", Type::U32)], [None; 3]);
    }

    #[test]
    fn scopes_hide_and_end() {
        let mut builder = Builder::new();
        builder.declare(".b32 %r<3>").unwrap();
        builder.declare(".b64 x").unwrap();
        builder.open();
        builder.declare(".pred x, y").unwrap();
        assert_eq!(builder.register("x").unwrap().class, Class::Predicate);
        builder.close().unwrap();
        assert_eq!(builder.register("x").unwrap().class, Class::Long);
        assert_eq!(builder.register("%r2").unwrap().slot, builder.register("%r0").unwrap().slot + 2);
        assert_eq!([builder.register("%r3"), builder.register("y")], [None; 2]);
        assert!(builder.declare(".b8 z").is_err());
    }
}

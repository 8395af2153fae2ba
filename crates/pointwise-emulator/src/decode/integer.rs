//! Integer arithmetic and operations on bits.

use super::{
    entry::{Decoded, exactly},
    opcode::Opcode,
    registers::{Builder, Class},
    types::Type,
};
use crate::program::{Logic, Narrow, One, OneLong, Operation, ShiftLong, Three, ThreeLong, Two, TwoLong, Widen};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    match opcode.name {
        "shf" => return funnel(builder, opcode, operands),
        "mul" | "mad" => return multiply(builder, opcode, operands),
        _ => {}
    }
    let of = opcode.take_type().ok_or("its type is not known")?;
    match opcode.name {
        "not" | "neg" | "abs" | "cnot" => one(builder, opcode.name, of, operands),
        "popc" | "clz" | "brev" => count(builder, opcode.name, of, operands),
        "shl" | "shr" => shift(builder, opcode.name, of, operands),
        "bfe" => extract(builder, of, operands),
        "bfi" => {
            let [d, a, b, c, e] = exactly(operands)?;
            only(of, &[Type::B32])?;
            let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
            let (c, e) = (builder.word(c, Type::U32)?, builder.word(e, Type::U32)?);
            let d = builder.word_result(d)?;
            builder.emit(Operation::Insert { d, a, b, c, e });
            Ok(())
        }
        "prmt" => {
            only(of, &[Type::B32])?;
            three(builder, Three::Prmt, operands)
        }
        "lop3" => {
            let [d, a, b, c, table] = exactly(operands)?;
            only(of, &[Type::B32])?;
            let table = super::registers::number(table, Type::U32).and_then(|table| u8::try_from(table).ok());
            let table = table.ok_or("its table is a number from 0 to 255")?;
            three(builder, Three::Lop3(table), &[d, a, b, c])
        }
        _ => two(builder, opcode.name, of, operands),
    }
}

/// Fails if the type is not one of `types`.
pub(super) fn only(of: Type, types: &[Type]) -> Decoded {
    if types.contains(&of) { Ok(()) } else { Err("the emulator does not know it for this type".to_owned()) }
}

pub(super) fn three(builder: &mut Builder, op: Three, operands: &[&str]) -> Decoded {
    let [d, a, b, c] = exactly(operands)?;
    let [a, b, c] = [builder.word(a, Type::B32)?, builder.word(b, Type::B32)?, builder.word(c, Type::B32)?];
    let d = builder.word_result(d)?;
    builder.emit(Operation::Three { op, d, a, b, c });
    Ok(())
}

fn one(builder: &mut Builder, name: &str, of: Type, operands: &[&str]) -> Decoded {
    let [d, a] = exactly(operands)?;
    if of == Type::Pred {
        only_name(name, "not")?;
        let (a, negate) = builder.predicate(a)?;
        let p = builder.predicate_result(d)?;
        builder.emit(Operation::PredicateMove { p, a, negate: !negate });
        return Ok(());
    }
    if name == "cnot" {
        return Err("the emulator does not know this instruction".to_owned());
    }
    if of.bytes() == 8 {
        let a = builder.long(a, of)?;
        let d = builder.long_result(d)?;
        let operation = match name {
            "not" => Operation::TwoLong { op: TwoLong::Xor, d, a, b: builder.long_number(u64::MAX)? },
            "neg" => Operation::TwoLong { op: TwoLong::Sub, d, a: builder.long_number(0)?, b: a },
            _ => Operation::OneLong { op: OneLong::AbsS64, d, a },
        };
        builder.emit(operation);
        return Ok(());
    }
    let half = of.bytes() == 2;
    let a = builder.word(a, of)?;
    let d = builder.word_result(d)?;
    let operation = match name {
        "not" => Operation::Two { op: Two::Xor, d, a, b: builder.word_number(if half { 0xffff } else { u32::MAX })? },
        "neg" => Operation::Two { op: if half { Two::Sub16 } else { Two::Sub }, d, a: builder.word_number(0)?, b: a },
        _ => Operation::One { op: if half { One::AbsS16 } else { One::AbsS32 }, d, a },
    };
    builder.emit(operation);
    Ok(())
}

fn only_name(name: &str, known: &str) -> Decoded {
    if name == known { Ok(()) } else { Err("the emulator does not know it for this type".to_owned()) }
}

/// `popc` and `clz` give a word, `brev` a number of the operand's size.
fn count(builder: &mut Builder, name: &str, of: Type, operands: &[&str]) -> Decoded {
    let [d, a] = exactly(operands)?;
    only(of, &[Type::B32, Type::B64])?;
    if of == Type::B64 {
        let a = builder.long(a, of)?;
        if name == "brev" {
            let d = builder.long_result(d)?;
            builder.emit(Operation::OneLong { op: OneLong::Brev, d, a });
        } else {
            let d = builder.word_result(d)?;
            builder.emit(Operation::Narrow { op: if name == "popc" { Narrow::Popc } else { Narrow::Clz }, d, a });
        }
        return Ok(());
    }
    let a = builder.word(a, of)?;
    let d = builder.word_result(d)?;
    let op = match name {
        "popc" => One::Popc,
        "clz" => One::Clz,
        _ => One::Brev,
    };
    builder.emit(Operation::One { op, d, a });
    Ok(())
}

fn shift(builder: &mut Builder, name: &str, of: Type, operands: &[&str]) -> Decoded {
    let [d, a, n] = exactly(operands)?;
    let left = name == "shl";
    if of.bytes() == 8 {
        let (a, b) = (builder.long(a, of)?, builder.word(n, Type::U32)?);
        let d = builder.long_result(d)?;
        let op = match (left, of.is_signed()) {
            (true, _) => ShiftLong::Shl,
            (false, true) => ShiftLong::ShrS,
            (false, false) => ShiftLong::ShrU,
        };
        builder.emit(Operation::ShiftLong { op, d, a, b, c: b });
        return Ok(());
    }
    let (a, b) = (builder.word(a, of)?, builder.word(n, Type::U32)?);
    let d = builder.word_result(d)?;
    let op = match (left, of.is_signed(), of.bytes()) {
        (true, _, 2) => Two::Shl16,
        (true, _, _) => Two::Shl,
        (false, true, 2) => Two::ShrS16,
        (false, true, _) => Two::ShrS,
        // A 16-bit register is zero-extended.
        (false, false, _) => Two::ShrU,
    };
    builder.emit(Operation::Two { op, d, a, b });
    Ok(())
}

fn extract(builder: &mut Builder, of: Type, operands: &[&str]) -> Decoded {
    let [d, a, b, c] = exactly(operands)?;
    only(of, &[Type::U32, Type::S32, Type::U64, Type::S64])?;
    let (b, c) = (builder.word(b, Type::U32)?, builder.word(c, Type::U32)?);
    if of.bytes() == 8 {
        let a = builder.long(a, of)?;
        let d = builder.long_result(d)?;
        let op = if of.is_signed() { ShiftLong::BfeS } else { ShiftLong::BfeU };
        builder.emit(Operation::ShiftLong { op, d, a, b, c });
    } else {
        let a = builder.word(a, of)?;
        let d = builder.word_result(d)?;
        builder.emit(Operation::Three { op: if of.is_signed() { Three::BfeS } else { Three::BfeU }, d, a, b, c });
    }
    Ok(())
}

fn funnel(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let left = opcode.take("l");
    if !left && !opcode.take("r") {
        return Err("a funnel shift goes `.l` or `.r`".to_owned());
    }
    let wrap = opcode.take("wrap");
    if !wrap && !opcode.take("clamp") {
        return Err("a funnel shift has `.wrap` or `.clamp`".to_owned());
    }
    only(opcode.take_type().ok_or("its type is not known")?, &[Type::B32])?;
    let op = match (left, wrap) {
        (true, true) => Three::ShfLeftWrap,
        (true, false) => Three::ShfLeftClamp,
        (false, true) => Three::ShfRightWrap,
        (false, false) => Three::ShfRightClamp,
    };
    three(builder, op, operands)
}

/// `add`, `sub`, `min`, `max`, `div`, `rem`, `and`, `or`, `xor`.
fn two(builder: &mut Builder, name: &str, of: Type, operands: &[&str]) -> Decoded {
    let [d, a, b] = exactly(operands)?;
    if of == Type::Pred {
        return predicates(builder, name, operands);
    }
    let signed = of.is_signed();
    if of.bytes() == 8 {
        let (a, b) = (builder.long(a, of)?, builder.long(b, of)?);
        let d = builder.long_result(d)?;
        let op = match (name, signed) {
            ("add", _) => TwoLong::Add,
            ("sub", _) => TwoLong::Sub,
            ("min", true) => TwoLong::MinS,
            ("min", false) => TwoLong::MinU,
            ("max", true) => TwoLong::MaxS,
            ("max", false) => TwoLong::MaxU,
            ("div", true) => TwoLong::DivS,
            ("div", false) => TwoLong::DivU,
            ("rem", true) => TwoLong::RemS,
            ("rem", false) => TwoLong::RemU,
            ("and", _) => TwoLong::And,
            ("or", _) => TwoLong::Or,
            _ => TwoLong::Xor,
        };
        builder.emit(Operation::TwoLong { op, d, a, b });
        return Ok(());
    }
    let half = match of.bytes() {
        4 => false,
        2 => true,
        _ => return Err("the emulator does not know it for this type".to_owned()),
    };
    let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
    let d = builder.word_result(d)?;
    // Unsigned 16-bit operands are zero-extended. If the result is, too, the operation on words will do.
    let op = match (name, signed, half) {
        ("add", _, true) => Two::Add16,
        ("add", ..) => Two::Add,
        ("sub", _, true) => Two::Sub16,
        ("sub", ..) => Two::Sub,
        ("min", true, true) => Two::MinS16,
        ("min", true, false) => Two::MinS,
        ("min", ..) => Two::MinU,
        ("max", true, true) => Two::MaxS16,
        ("max", true, false) => Two::MaxS,
        ("max", ..) => Two::MaxU,
        ("div", true, true) => Two::DivS16,
        ("div", true, false) => Two::DivS,
        ("div", false, true) => Two::DivU16,
        ("div", ..) => Two::DivU,
        ("rem", true, true) => Two::RemS16,
        ("rem", true, false) => Two::RemS,
        ("rem", false, true) => Two::RemU16,
        ("rem", ..) => Two::RemU,
        ("and", ..) => Two::And,
        ("or", ..) => Two::Or,
        _ => Two::Xor,
    };
    builder.emit(Operation::Two { op, d, a, b });
    Ok(())
}

fn predicates(builder: &mut Builder, name: &str, operands: &[&str]) -> Decoded {
    let [d, a, b] = exactly(operands)?;
    let op = match name {
        "and" => Logic::And,
        "or" => Logic::Or,
        "xor" => Logic::Xor,
        _ => return Err("the emulator does not know it for this type".to_owned()),
    };
    let a = plain_predicate(builder, a)?;
    let b = plain_predicate(builder, b)?;
    let p = builder.predicate_result(d)?;
    builder.emit(Operation::PredicateTwo { op, p, a, b });
    Ok(())
}

/// Returns the slot of a predicate operand. One with `!` gets a slot of its own for the opposite.
pub(super) fn plain_predicate(builder: &mut Builder, text: &str) -> Decoded<crate::program::Slot> {
    let (a, negate) = builder.predicate(text)?;
    if !negate {
        return Ok(a);
    }
    let p = builder.temporary(Class::Predicate)?;
    builder.emit(Operation::PredicateMove { p, a, negate: true });
    Ok(p)
}

/// `mul` and `mad` with `.lo`, `.hi` or `.wide`.
fn multiply(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let (wide, high) = (opcode.take("wide"), opcode.take("hi"));
    if !wide && !high && !opcode.take("lo") {
        return Err("an integer product has `.lo`, `.hi` or `.wide`".to_owned());
    }
    let of = opcode.take_type().ok_or("its type is not known")?;
    let add = opcode.name == "mad";
    let (factors, addend) = if add {
        let [d, a, b, c] = exactly(operands)?;
        ([d, a, b], Some(c))
    } else {
        (exactly(operands)?, None)
    };
    let [d, a, b] = factors;
    let signed = of.is_signed();
    match (of.bytes(), wide) {
        (8, false) => {
            let (a, b) = (builder.long(a, of)?, builder.long(b, of)?);
            let product = match (high, signed) {
                (false, _) => TwoLong::Mul,
                (true, true) => TwoLong::MulHiS,
                (true, false) => TwoLong::MulHiU,
            };
            let Some(c) = addend else {
                let d = builder.long_result(d)?;
                builder.emit(Operation::TwoLong { op: product, d, a, b });
                return Ok(());
            };
            let c = builder.long(c, of)?;
            let d = builder.long_result(d)?;
            if high {
                let high = builder.temporary(Class::Long)?;
                builder.emit(Operation::TwoLong { op: product, d: high, a, b });
                builder.emit(Operation::TwoLong { op: TwoLong::Add, d, a: high, b: c });
            } else {
                builder.emit(Operation::ThreeLong { op: ThreeLong::Mad, d, a, b, c });
            }
        }
        (4, true) => {
            let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
            if let Some(c) = addend {
                let c = builder.long(c, Type::B64)?;
                let d = builder.long_result(d)?;
                builder.emit(Operation::MadWide { signed, d, a, b, c });
            } else {
                let d = builder.long_result(d)?;
                builder.emit(Operation::Widen { op: if signed { Widen::MulS } else { Widen::MulU }, d, a, b });
            }
        }
        (4 | 2, _) => {
            let half = of.bytes() == 2;
            let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
            let c = addend.map(|c| builder.word(c, if half && wide { Type::B32 } else { of })).transpose()?;
            let d = builder.word_result(d)?;
            let (product, sum) = match (half, wide, high, signed) {
                (true, true, _, true) => (Two::MulWideS16, Two::Add),
                (true, true, _, false) => (Two::Mul, Two::Add),
                (true, false, true, true) => (Two::MulHiS16, Two::Add16),
                (true, false, true, false) => (Two::MulHiU16, Two::Add16),
                (true, false, false, _) => (Two::Mul16, Two::Add16),
                (false, _, true, true) => (Two::MulHiS, Two::Add),
                (false, _, true, false) => (Two::MulHiU, Two::Add),
                (false, _, false, _) => (Two::Mul, Two::Add),
            };
            match c {
                None => builder.emit(Operation::Two { op: product, d, a, b }),
                Some(c) if product == Two::Mul && !half => {
                    builder.emit(Operation::Three { op: Three::Mad, d, a, b, c });
                }
                Some(c) if product == Two::Mul16 => builder.emit(Operation::Three { op: Three::Mad16, d, a, b, c }),
                Some(c) => {
                    let between = builder.temporary(Class::Word)?;
                    builder.emit(Operation::Two { op: product, d: between, a, b });
                    builder.emit(Operation::Two { op: sum, d, a: between, b: c });
                }
            }
        }
        _ => return Err("the emulator does not know it for this type".to_owned()),
    }
    Ok(())
}

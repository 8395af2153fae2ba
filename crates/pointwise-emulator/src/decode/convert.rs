//! `cvt`.

use super::{
    entry::{Decoded, exactly},
    opcode::Opcode,
    registers::{Builder, Class},
    types::Type,
};
use crate::{
    numerics::Rounding,
    program::{Narrow, One, OneLong, Operation, Slot, Two, Widen},
};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let whole = opcode.take_as(whole);
    let rounding = opcode.take_as(super::float::rounding);
    let finite = opcode.take("satfinite");
    let flush = opcode.take("ftz");
    let saturate = opcode.take("sat");
    let to = opcode.take_type().ok_or("the type of its result is not known")?;
    let from = opcode.take_type().ok_or("its type is not known")?;
    if saturate || rounding.is_some_and(|rounding| rounding != Rounding::Nearest) {
        return unknown();
    }
    if flush && !(from == Type::F32 || to == Type::F32) {
        return unknown();
    }
    if let [d, a, b] = *operands {
        return pair(builder, to, from, finite, [d, a, b]);
    }
    let [d, a] = exactly(operands)?;
    match (to, from) {
        (Type::F16x2, Type::Fp8x2(of)) => of_pair(builder, One::F16x2OfFp8x2(of), from, [d, a]),
        (Type::Fp8x2(to), Type::F16x2) if finite => of_pair(builder, One::Fp8x2OfF16x2(to), from, [d, a]),
        _ if finite => unknown(),
        (Type::F32 | Type::F64 | Type::F16 | Type::Bf16, _) if from.is_float() => {
            floats(builder, to, from, whole, flush, [d, a])
        }
        (Type::F32 | Type::F64 | Type::F16 | Type::Bf16, _) if from.is_integer() && whole.is_none() => {
            from_integer(builder, to, from, [d, a])
        }
        _ if to.is_integer() && matches!(from, Type::F32 | Type::F64 | Type::F16 | Type::Bf16) => {
            let whole = whole.ok_or("its rounding to an integer is missing")?;
            to_integer(builder, to, from, whole, flush, [d, a])
        }
        _ if to.is_integer() && from.is_integer() => integers(builder, to, from, [d, a]),
        _ => unknown(),
    }
}

fn unknown<T>() -> Decoded<T> {
    Err("the emulator does not know this conversion".to_owned())
}

/// A rounding to whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Nearest,
    Zero,
    Down,
    Up,
}

fn whole(suffix: &str) -> Option<Whole> {
    match suffix {
        "rni" => Some(Whole::Nearest),
        "rzi" => Some(Whole::Zero),
        "rmi" => Some(Whole::Down),
        "rpi" => Some(Whole::Up),
        _ => None,
    }
}

/// Converts a pair of numbers.
fn of_pair(builder: &mut Builder, op: One, from: Type, [d, a]: [&str; 2]) -> Decoded {
    let a = builder.word(a, from)?;
    let d = builder.word_result(d)?;
    builder.emit(Operation::One { op, d, a });
    Ok(())
}

/// Packs two f32 into a pair of smaller numbers.
fn pair(builder: &mut Builder, to: Type, from: Type, finite: bool, [d, a, b]: [&str; 3]) -> Decoded {
    let op = match (to, from, finite) {
        (Type::F16x2, Type::F32, false) => Two::F16x2OfF32,
        (Type::Bf16x2, Type::F32, false) => Two::Bf16x2OfF32,
        (Type::Fp8x2(to), Type::F32, true) => Two::Fp8x2OfF32(to),
        _ => return unknown(),
    };
    let (a, b) = (builder.word(a, from)?, builder.word(b, from)?);
    let d = builder.word_result(d)?;
    builder.emit(Operation::Two { op, d, a, b });
    Ok(())
}

/// Emits a word from a word, into a new slot.
fn word(builder: &mut Builder, op: One, a: Slot) -> Decoded<Slot> {
    let d = builder.temporary(Class::Word)?;
    builder.emit(Operation::One { op, d, a });
    Ok(d)
}

/// Returns an operand of 16 or 32 bits as f32.
fn single(builder: &mut Builder, from: Type, a: &str, flush: bool) -> Decoded<Slot> {
    let a = builder.word(a, from)?;
    match from {
        Type::F32 if flush => word(builder, One::Flush, a),
        Type::F32 => Ok(a),
        Type::F16 => word(builder, One::F32OfF16, a),
        Type::Bf16 => word(builder, One::F32OfBf16, a),
        _ => unknown(),
    }
}

fn floats(
    builder: &mut Builder,
    to: Type,
    from: Type,
    whole: Option<Whole>,
    flush: bool,
    [d, a]: [&str; 2],
) -> Decoded {
    if from == Type::F64 {
        let mut a = builder.long(a, from)?;
        if let Some(whole) = whole {
            if to != Type::F64 {
                return unknown();
            }
            let d = builder.long_result(d)?;
            builder.emit(Operation::OneLong { op: whole_long(whole), d, a });
            return Ok(());
        }
        let op = match to {
            Type::F32 => Narrow::F32OfF64,
            Type::F16 => Narrow::F16OfF64,
            Type::Bf16 => Narrow::Bf16OfF64,
            _ => {
                let d = builder.long_result(d)?;
                builder.emit(Operation::OneLong { op: OneLong::Move, d, a });
                return Ok(());
            }
        };
        let d = builder.word_result(d)?;
        if flush {
            let between = builder.temporary(Class::Word)?;
            builder.emit(Operation::Narrow { op, d: between, a });
            a = between;
            builder.emit(Operation::One { op: One::Flush, d, a });
        } else {
            builder.emit(Operation::Narrow { op, d, a });
        }
        return Ok(());
    }
    let mut a = single(builder, from, a, flush)?;
    if let Some(whole) = whole {
        a = word(builder, whole_word(whole), a)?;
    }
    if to == Type::F64 {
        let d = builder.long_result(d)?;
        builder.emit(Operation::Widen { op: Widen::F64OfF32, d, a, b: a });
        return Ok(());
    }
    let op = match to {
        Type::F16 => One::F16OfF32,
        Type::Bf16 => One::Bf16OfF32,
        _ => One::Move,
    };
    let d = builder.word_result(d)?;
    builder.emit(Operation::One { op, d, a });
    Ok(())
}

fn whole_word(whole: Whole) -> One {
    match whole {
        Whole::Nearest => One::Nearest,
        Whole::Zero => One::Trunc,
        Whole::Down => One::Floor,
        Whole::Up => One::Ceil,
    }
}

fn whole_long(whole: Whole) -> OneLong {
    match whole {
        Whole::Nearest => OneLong::DNearest,
        Whole::Zero => OneLong::DTrunc,
        Whole::Down => OneLong::DFloor,
        Whole::Up => OneLong::DCeil,
    }
}

/// Returns an integer operand of at most 32 bits, extended to 32.
fn extended(builder: &mut Builder, from: Type, a: &str) -> Decoded<Slot> {
    let slot = builder.word(a, from)?;
    match from {
        Type::S8 => word(builder, One::Signed8, slot),
        Type::S16 => word(builder, One::Signed16, slot),
        Type::U8 | Type::B8 => word(builder, One::Unsigned8, slot),
        _ => Ok(slot),
    }
}

fn from_integer(builder: &mut Builder, to: Type, from: Type, [d, a]: [&str; 2]) -> Decoded {
    let signed = from.is_signed();
    if from.bytes() == 8 {
        let a = builder.long(a, from)?;
        if to == Type::F64 {
            let d = builder.long_result(d)?;
            builder.emit(Operation::OneLong { op: if signed { OneLong::F64OfS64 } else { OneLong::F64OfU64 }, d, a });
            return Ok(());
        }
        if to != Type::F32 {
            return unknown();
        }
        let d = builder.word_result(d)?;
        builder.emit(Operation::Narrow { op: if signed { Narrow::F32OfS64 } else { Narrow::F32OfU64 }, d, a });
        return Ok(());
    }
    let a = extended(builder, from, a)?;
    if to == Type::F64 {
        let d = builder.long_result(d)?;
        builder.emit(Operation::Widen { op: if signed { Widen::F64OfS32 } else { Widen::F64OfU32 }, d, a, b: a });
        return Ok(());
    }
    let op = if signed { One::F32OfS32 } else { One::F32OfU32 };
    if to == Type::F32 {
        let d = builder.word_result(d)?;
        builder.emit(Operation::One { op, d, a });
        return Ok(());
    }
    // 16-bit integers are exact in f32. A larger one would be rounded twice.
    if from.bytes() > 2 {
        return unknown();
    }
    let a = word(builder, op, a)?;
    let d = builder.word_result(d)?;
    builder.emit(Operation::One { op: if to == Type::F16 { One::F16OfF32 } else { One::Bf16OfF32 }, d, a });
    Ok(())
}

fn to_integer(builder: &mut Builder, to: Type, from: Type, whole: Whole, flush: bool, [d, a]: [&str; 2]) -> Decoded {
    let signed = to.is_signed();
    if from == Type::F64 {
        let mut a = builder.long(a, from)?;
        if whole != Whole::Zero {
            let rounded = builder.temporary(Class::Long)?;
            builder.emit(Operation::OneLong { op: whole_long(whole), d: rounded, a });
            a = rounded;
        }
        match to.bytes() {
            8 => {
                let d = builder.long_result(d)?;
                let op = if signed { OneLong::S64OfF64 } else { OneLong::U64OfF64 };
                builder.emit(Operation::OneLong { op, d, a });
            }
            4 => {
                let d = builder.word_result(d)?;
                let op = if signed { Narrow::S32OfF64 } else { Narrow::U32OfF64 };
                builder.emit(Operation::Narrow { op, d, a });
            }
            _ => return unknown(),
        }
        return Ok(());
    }
    let mut a = single(builder, from, a, flush)?;
    if whole != Whole::Zero {
        a = word(builder, whole_word(whole), a)?;
    }
    if to.bytes() == 8 {
        let d = builder.long_result(d)?;
        builder.emit(Operation::Widen { op: if signed { Widen::S64OfF32 } else { Widen::U64OfF32 }, d, a, b: a });
        return Ok(());
    }
    let op = match (to.bytes(), signed) {
        (4, true) => One::S32OfF32,
        (4, false) => One::U32OfF32,
        (2, true) => One::S16OfF32,
        (2, false) => One::U16OfF32,
        (_, true) => One::S8OfF32,
        (_, false) => One::U8OfF32,
    };
    into_register(builder, d, op, a, signed)
}

/// Converts an f32 to an integer of at most 32 bits, in a register of 16 or 32 bits.
fn into_register(builder: &mut Builder, d: &str, op: One, a: Slot, signed: bool) -> Decoded {
    let half = builder.register(d).is_some_and(|register| register.class == Class::Half);
    let result = builder.word_result(d)?;
    match op {
        One::S8OfF32 if half => {
            let wide = word(builder, op, a)?;
            builder.emit(Operation::One { op: One::Unsigned16, d: result, a: wide });
        }
        One::S16OfF32 if !half && signed => {
            let narrow = word(builder, op, a)?;
            builder.emit(Operation::One { op: One::Signed16, d: result, a: narrow });
        }
        _ => builder.emit(Operation::One { op, d: result, a }),
    }
    Ok(())
}

/// Converts between integers.
fn integers(builder: &mut Builder, to: Type, from: Type, [d, a]: [&str; 2]) -> Decoded {
    // The result is the low bits of the narrower type, extended by that type's sign to the size of the register.
    let narrow = if to.bytes() < from.bytes() { to } else { from };
    let register = builder.register(d).ok_or_else(|| format!("`{d}` is no register that is known"))?;
    let source_long = builder.register(a).is_some_and(|register| register.class == Class::Long) || from.bytes() == 8;
    match (source_long, register.class) {
        (true, Class::Long) => {
            let a = builder.long(a, Type::B64)?;
            let op = match (narrow.bytes(), narrow.is_signed()) {
                (8, _) => OneLong::Move,
                (4, true) => OneLong::Signed32,
                (4, false) => OneLong::Unsigned32,
                (2, true) => OneLong::Signed16,
                (2, false) => OneLong::Unsigned16,
                (_, true) => OneLong::Signed8,
                (_, false) => OneLong::Unsigned8,
            };
            builder.emit(Operation::OneLong { op, d: register.slot, a });
        }
        (true, Class::Word | Class::Half) => {
            let a = builder.long(a, Type::B64)?;
            let half = register.class == Class::Half;
            let op = match (narrow.bytes(), narrow.is_signed()) {
                (8 | 4, _) if half => return unknown(),
                (8 | 4, _) => Narrow::Low,
                (2, true) if !half => Narrow::Signed16,
                (2, _) => Narrow::Low16,
                (_, true) if half => Narrow::Signed8To16,
                (_, true) => Narrow::Signed8,
                (_, false) => Narrow::Unsigned8,
            };
            builder.emit(Operation::Narrow { op, d: register.slot, a });
        }
        (false, Class::Long) => {
            let a = builder.word(a, narrow)?;
            let op = match (narrow.bytes(), narrow.is_signed()) {
                (4, true) => Widen::S32,
                (2, true) => Widen::S16,
                (1, true) => Widen::S8,
                _ => Widen::U32,
            };
            // A byte in a 16-bit register may have other bits above.
            let a = if op == Widen::U32 && narrow.bytes() == 1 { word(builder, One::Unsigned8, a)? } else { a };
            builder.emit(Operation::Widen { op, d: register.slot, a, b: a });
        }
        (false, Class::Word | Class::Half) => {
            let half = register.class == Class::Half;
            let a = builder.word(a, from)?;
            let op = match (narrow.bytes(), narrow.is_signed()) {
                (4, _) if half => return unknown(),
                (4, _) => One::Move,
                (2, true) if !half => One::Signed16,
                (2, _) => One::Unsigned16,
                (_, true) if half => One::Signed8To16,
                (_, true) => One::Signed8,
                (_, false) => One::Unsigned8,
            };
            builder.emit(Operation::One { op, d: register.slot, a });
        }
        (_, Class::Predicate) => return unknown(),
    }
    Ok(())
}

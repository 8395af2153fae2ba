//! `mov`, with its packing forms, and `cvta`.

use super::{
    entry::{Decoded, exactly},
    items,
    opcode::Opcode,
    registers::{Builder, Class, SHARED_WINDOW, number},
    types::Type,
};
use crate::program::{Narrow, One, OneLong, Operation, TRUE, Two, TwoLong, Widen};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    if opcode.name == "cvta" {
        return address(builder, opcode, operands);
    }
    let of = opcode.take_type().ok_or("its type is not known")?;
    let [d, a] = exactly(operands)?;
    if let Some(parts) = braced(d) {
        return unpack(builder, of, &parts, a);
    }
    if let Some(parts) = braced(a) {
        return pack(builder, of, d, &parts);
    }
    match (of, of.bytes()) {
        (Type::Pred, _) => {
            let (a, negate) = match number(a, Type::S32) {
                Some(number) => (TRUE, number == 0),
                None => builder.predicate(a)?,
            };
            let p = builder.predicate_result(d)?;
            builder.emit(Operation::PredicateMove { p, a, negate });
        }
        (_, 8) => {
            let a = builder.long(a, of)?;
            let d = builder.long_result(d)?;
            builder.emit(Operation::OneLong { op: OneLong::Move, d, a });
        }
        (_, 2 | 4) => {
            let a = builder.word(a, of)?;
            let d = builder.word_result(d)?;
            builder.emit(Operation::One { op: One::Move, d, a });
        }
        _ => return Err("the emulator does not know it for this type".to_owned()),
    }
    Ok(())
}

/// Returns the parts of `{a, b}`.
pub(super) fn braced(text: &str) -> Option<Vec<&str>> {
    Some(items::operands(text.strip_prefix('{')?.strip_suffix('}')?))
}

/// Returns the type of the parts into which a number of type `of` is unpacked.
fn lanes(of: Type, parts: &[&str]) -> Decoded<Type> {
    match (of.bytes(), parts.len()) {
        (8, 2) => Ok(Type::B32),
        (8, 4) | (4, 2) => Ok(Type::B16),
        _ => Err("the emulator does not know a vector of this shape".to_owned()),
    }
}

fn unpack(builder: &mut Builder, of: Type, parts: &[&str], a: &str) -> Decoded {
    let lane = lanes(of, parts)?;
    if of.bytes() == 8 {
        let a = builder.long(a, of)?;
        for (part, at) in parts.iter().zip(0_u8..).filter(|(part, _)| **part != "_") {
            let op = match (lane, at) {
                (Type::B32, 0) => Narrow::Low,
                (Type::B32, _) => Narrow::High,
                (_, at) => Narrow::Quarter(at),
            };
            let d = builder.word_result(part)?;
            builder.emit(Operation::Narrow { op, d, a });
        }
        return Ok(());
    }
    let a = builder.word(a, of)?;
    let sixteen = builder.word_number(16)?;
    // A part may be the operand itself, so the upper half is taken before the lower one is written.
    let upper = builder.temporary(Class::Word)?;
    builder.emit(Operation::Two { op: Two::ShrU, d: upper, a, b: sixteen });
    if parts[0] != "_" {
        let d = builder.word_result(parts[0])?;
        builder.emit(Operation::One { op: One::Unsigned16, d, a });
    }
    if parts[1] != "_" {
        let d = builder.word_result(parts[1])?;
        builder.emit(Operation::One { op: One::Move, d, a: upper });
    }
    Ok(())
}

fn pack(builder: &mut Builder, of: Type, d: &str, parts: &[&str]) -> Decoded {
    let lane = lanes(of, parts)?;
    let slots = parts.iter().map(|part| builder.word(part, lane)).collect::<Result<Vec<_>, _>>()?;
    if of.bytes() == 4 {
        let d = builder.word_result(d)?;
        builder.emit(Operation::Two { op: Two::Pack16, d, a: slots[0], b: slots[1] });
        return Ok(());
    }
    let d = builder.long_result(d)?;
    let (a, b) = if lane == Type::B32 {
        (slots[0], slots[1])
    } else {
        let (low, high) = (builder.temporary(Class::Word)?, builder.temporary(Class::Word)?);
        builder.emit(Operation::Two { op: Two::Pack16, d: low, a: slots[0], b: slots[1] });
        builder.emit(Operation::Two { op: Two::Pack16, d: high, a: slots[2], b: slots[3] });
        (low, high)
    };
    builder.emit(Operation::Widen { op: Widen::Pack, d, a, b });
    Ok(())
}

/// `cvta`. An address in global memory is a generic address, too; one in shared memory is moved to the shared window.
fn address(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let to = opcode.take("to");
    let shared = opcode.take("shared") || opcode.take("shared::cta");
    if !shared && !opcode.take("global") && !opcode.take("param") {
        return Err("the emulator does not know this address space".to_owned());
    }
    let of = opcode.take_type().ok_or("its type is not known")?;
    if of.bytes() != 8 {
        return Err("the emulator has addresses of 64 bits only".to_owned());
    }
    let [d, a] = exactly(operands)?;
    let a = builder.long(a, of)?;
    let d = builder.long_result(d)?;
    let operation = if shared {
        let b = builder.long_number(SHARED_WINDOW)?;
        Operation::TwoLong { op: if to { TwoLong::Sub } else { TwoLong::Add }, d, a, b }
    } else {
        Operation::OneLong { op: OneLong::Move, d, a }
    };
    builder.emit(operation);
    Ok(())
}

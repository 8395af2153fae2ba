//! Loads, stores, atomic operations and asynchronous copies.

use super::{
    entry::{Decoded, exactly},
    moves::braced,
    opcode::Opcode,
    registers::{Builder, Class, PARAMETER_BASE, Register, number},
    types::Type,
};
use crate::program::{Access, AtomicOperation, NOWHERE, Operation, Slot, Space};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    match opcode.name {
        "ld" | "ldu" | "st" => load_or_store(builder, opcode, operands),
        "atom" | "red" => atomic(builder, opcode, operands),
        "cp" => copy(builder, opcode, operands),
        _ => Err("the emulator does not know this instruction".to_owned()),
    }
}

/// Takes the address space.
fn space(opcode: &mut Opcode<'_>) -> Decoded<Space> {
    let space = opcode.take_as(|suffix| match suffix {
        "global" => Some(Space::Global),
        "shared" | "shared::cta" => Some(Space::Shared),
        "param" => Some(Space::Parameter),
        _ => None,
    });
    match space {
        Some(space) => Ok(space),
        None if opcode.take("local") || opcode.take("const") => {
            Err("the emulator has no local or constant memory".to_owned())
        }
        None => Ok(Space::Generic),
    }
}

/// An address operand: a register and an offset.
struct Address {
    slot: Slot,
    wide: bool,
    offset: i64,
    /// The address itself, if the text gives it.
    known: Option<u64>,
}

/// Reads `[base]`, `[base+8]`, `[base+-8]` or `[8]`.
fn address(builder: &mut Builder, text: &str, space: Space) -> Decoded<Address> {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inside = inside.ok_or_else(|| format!("`{text}` is no address"))?.trim();
    let (base, offset) = match inside.find('+').filter(|&at| at > 0) {
        Some(at) => {
            let offset = number(inside[at + 1..].trim(), Type::S64);
            let offset = offset.ok_or_else(|| format!("`{text}` is no address"))? as i64;
            (inside[..at].trim(), offset)
        }
        None => (inside, 0),
    };
    match builder.register(base) {
        Some(Register { class: Class::Long, slot }) => Ok(Address { slot, wide: true, offset, known: None }),
        Some(Register { class: Class::Word, slot }) if space == Space::Shared => {
            Ok(Address { slot, wide: false, offset, known: None })
        }
        Some(_) => Err(format!("register `{base}` has another size")),
        None => {
            let known = builder.symbols.get(base).copied().or_else(|| number(base, Type::U64));
            let known = known.ok_or_else(|| format!("`{base}` is nothing that is known"))?;
            let slot = builder.long_number(known)?;
            Ok(Address { slot, wide: true, offset, known: Some(known.wrapping_add_signed(offset)) })
        }
    }
}

fn load_or_store(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let space = space(opcode)?;
    opcode.take_hints();
    let count: u8 = if opcode.take("v2") {
        2
    } else if opcode.take("v4") {
        4
    } else {
        1
    };
    let of = opcode.take_type().ok_or("its type is not known")?;
    if of == Type::Pred {
        return Err("memory holds no predicates".to_owned());
    }
    let load = opcode.name != "st";
    let [d, a] = exactly(operands)?;
    let (place, values) = if load { (a, d) } else { (d, a) };
    let address = address(builder, place, space)?;
    let values = match braced(values) {
        Some(values) => values,
        None => vec![values],
    };
    if values.len() != usize::from(count) {
        return Err(format!("{count} registers are expected, not {}", values.len()));
    }
    let mut registers = [0; 4];
    let mut class = None;
    for (register, text) in registers.iter_mut().zip(&values) {
        let (slot, of) = value(builder, text, of, load)?;
        *register = slot;
        // `_` may stand for a register of any size.
        if *text != "_" && class.replace(of).is_some_and(|before| before != of) {
            return Err("the registers of a vector have one size".to_owned());
        }
    }
    let class = class.unwrap_or(Class::Word);
    let access = Box::new(Access {
        space,
        address: address.slot,
        wide: address.wide,
        offset: address.offset,
        size: of.bytes(),
        count,
        signed: of.is_signed(),
        long: class == Class::Long,
        half: class == Class::Half,
        registers,
    });
    match (space, load, address.known) {
        (Space::Parameter, true, Some(at)) => {
            let at = at.checked_sub(PARAMETER_BASE).and_then(|at| u32::try_from(at).ok());
            let inside = |at: &u32| (*at as usize).saturating_add(access.bytes() as usize) <= builder.parameter_bytes;
            let at = at.filter(inside).ok_or("it reads outside of the parameters")?;
            if !at.is_multiple_of(u32::from(access.size)) {
                return Err("its address is no multiple of what it reads".to_owned());
            }
            builder.emit(Operation::LoadParameter { access, at });
        }
        (Space::Parameter, false, _) => return Err("parameters cannot be written".to_owned()),
        (_, true, _) => builder.emit(Operation::Load(access)),
        (_, false, _) => builder.emit(Operation::Store(access)),
    }
    Ok(())
}

/// Returns the register of a loaded or stored element.
fn value(builder: &mut Builder, text: &str, of: Type, load: bool) -> Decoded<(Slot, Class)> {
    let wide = of.bytes() == 8;
    if load && text == "_" {
        let class = if wide { Class::Long } else { Class::Word };
        return Ok((builder.temporary(class)?, class));
    }
    match builder.register(text) {
        Some(Register { class: Class::Predicate, .. }) => Err(format!("`{text}` is a predicate")),
        // A register may be wider than the element.
        Some(Register { class, slot }) => {
            let fits = match class {
                Class::Long => true,
                Class::Word => of.bytes() <= 4,
                _ => of.bytes() <= 2,
            };
            if fits { Ok((slot, class)) } else { Err(format!("register `{text}` has another size")) }
        }
        None if load => Err(format!("`{text}` is no register that is known")),
        None if wide => Ok((builder.long(text, of)?, Class::Long)),
        None => Ok((builder.word(text, of)?, Class::Word)),
    }
}

fn atomic(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let space = space(opcode)?;
    if space == Space::Parameter {
        return Err("parameters cannot be written".to_owned());
    }
    opcode.take_hints();
    let name = opcode.take_as(|suffix| {
        ["add", "min", "max", "and", "or", "xor", "exch", "cas"].into_iter().find(|&name| name == suffix)
    });
    let of = opcode.take_type().ok_or("its type is not known")?;
    let op = match (name.ok_or("its operation is not known")?, of) {
        ("add", Type::U32 | Type::S32 | Type::U64) => AtomicOperation::Add,
        ("add", Type::F32) => AtomicOperation::AddF32,
        ("min", Type::U32 | Type::U64) => AtomicOperation::MinU,
        ("min", Type::S32 | Type::S64) => AtomicOperation::MinS,
        ("max", Type::U32 | Type::U64) => AtomicOperation::MaxU,
        ("max", Type::S32 | Type::S64) => AtomicOperation::MaxS,
        ("and", Type::B32 | Type::B64) => AtomicOperation::And,
        ("or", Type::B32 | Type::B64) => AtomicOperation::Or,
        ("xor", Type::B32 | Type::B64) => AtomicOperation::Xor,
        ("exch", Type::B32 | Type::B64) => AtomicOperation::Exchange,
        ("cas", Type::B32 | Type::B64) => AtomicOperation::CompareSwap,
        _ => return Err("the emulator does not know it for this type".to_owned()),
    };
    let (d, rest) = if opcode.name == "atom" {
        let (d, rest) = operands.split_first().ok_or("operands are missing")?;
        (*d, rest)
    } else {
        ("_", operands)
    };
    let long = of.bytes() == 8;
    let (place, value, second) = if op == AtomicOperation::CompareSwap {
        let [place, compare, value] = exactly(rest)?;
        (place, value, Some(compare))
    } else {
        let [place, value] = exactly(rest)?;
        (place, value, None)
    };
    let address = address(builder, place, space)?;
    let mut operand = |text: &str| if long { builder.long(text, of) } else { builder.word(text, of) };
    let value = operand(value)?;
    let second = second.map_or(Ok(value), operand)?;
    let d = if long { builder.long_result(d)? } else { builder.word_result(d)? };
    let access = Box::new(Access {
        space,
        address: address.slot,
        wide: address.wide,
        offset: address.offset,
        size: of.bytes(),
        count: 1,
        signed: of.is_signed(),
        long,
        half: false,
        registers: [d; 4],
    });
    builder.emit(Operation::Atomic { op, access, value, second });
    Ok(())
}

/// `cp.async` and its waits.
fn copy(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    if !opcode.take("async") {
        return Err("the emulator does not know this instruction".to_owned());
    }
    if opcode.take("commit_group") {
        builder.emit(Operation::CopyCommit);
        return Ok(());
    }
    if opcode.take("wait_all") {
        builder.emit(Operation::CopyCommit);
        builder.emit(Operation::CopyWait { groups: 0 });
        return Ok(());
    }
    if opcode.take("wait_group") {
        let [groups] = exactly(operands)?;
        let groups = groups.parse().map_err(|_| format!("`{groups}` is no number"))?;
        builder.emit(Operation::CopyWait { groups });
        return Ok(());
    }
    opcode.take_hints();
    if !(opcode.take("shared") | opcode.take("shared::cta")) & !opcode.take("global") {
        return Err("the emulator copies from global to shared memory only".to_owned());
    }
    opcode.take("global");
    let (place, from, bytes, source) = match *operands {
        [place, from, bytes] => (place, from, bytes, None),
        [place, from, bytes, source] => (place, from, bytes, Some(source)),
        _ => return Err("3 or 4 operands are expected".to_owned()),
    };
    let size = match bytes {
        "4" => 4_u8,
        "8" => 8,
        "16" => 16,
        _ => return Err("it copies 4, 8 or 16 bytes".to_owned()),
    };
    let to = address(builder, place, Space::Shared)?;
    let from = address(builder, from, Space::Global)?;
    let source = match source {
        Some(source) => builder.word(source, Type::U32)?,
        None => NOWHERE,
    };
    let access = Box::new(Access {
        space: Space::Shared,
        address: to.slot,
        wide: to.wide,
        offset: to.offset,
        size: 4,
        count: size / 4,
        signed: false,
        long: false,
        half: false,
        registers: [0; 4],
    });
    builder.emit(Operation::CopyAsync { access, from: from.slot, from_offset: from.offset, source });
    Ok(())
}

//! Branches, barriers, shuffles, votes and fences.

use super::{
    entry::{Decoded, exactly},
    integer::only,
    opcode::Opcode,
    registers::Builder,
    types::Type,
};
use crate::program::{NOWHERE, Operation, Shuffle, Vote};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    match opcode.name {
        "bra" => {
            opcode.take("uni");
            let [label] = exactly(operands)?;
            let target = u32::try_from(builder.targets.len()).map_err(|error| error.to_string())?;
            builder.targets.push(label.to_owned());
            builder.emit(Operation::Branch { target });
        }
        "brx" => {
            opcode.take("idx");
            opcode.take("uni");
            let [index, name] = exactly(operands)?;
            let a = builder.word(index, Type::U32)?;
            let table = u32::try_from(builder.tables.len()).map_err(|error| error.to_string())?;
            builder.tables.push(name.to_owned());
            builder.emit(Operation::BranchIndexed { table, a });
        }
        "ret" | "exit" => {
            opcode.take("uni");
            builder.emit(Operation::Exit);
        }
        "bar" | "barrier" => barrier(builder, opcode, operands)?,
        "shfl" => shuffle(builder, opcode, operands)?,
        "vote" => vote(builder, opcode, operands)?,
        "activemask" => {
            only(opcode.take_type().ok_or("its type is not known")?, &[Type::B32])?;
            let [d] = exactly(operands)?;
            let d = builder.word_result(d)?;
            builder.emit(Operation::ActiveMask { d });
        }
        "griddepcontrol" => {
            if opcode.take("wait") {
                builder.emit(Operation::WaitForEarlier);
            } else if opcode.take("launch_dependents") {
                builder.emit(Operation::Nothing);
            }
        }
        // Fences do nothing: in the emulator, threads see each other's writes in order.
        _ => {
            opcode.take_hints();
            opcode.take("gl");
            opcode.take("proxy");
            opcode.take("async");
            builder.emit(Operation::Nothing);
        }
    }
    Ok(())
}

fn barrier(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    if opcode.take("warp") {
        opcode.take("sync");
        let [members] = exactly(operands)?;
        let a = builder.word(members, Type::B32)?;
        builder.emit(Operation::WarpBarrier { a });
        return Ok(());
    }
    opcode.take("cta");
    if !opcode.take("sync") {
        return Err("the emulator knows only barriers that wait (`.sync`)".to_owned());
    }
    let aligned = opcode.take("aligned") || opcode.name == "bar";
    let (a, threads) = match *operands {
        [a] => (a, None),
        [a, threads] => (a, Some(threads)),
        _ => return Err("1 or 2 operands are expected".to_owned()),
    };
    let a = builder.word(a, Type::U32)?;
    let threads = threads.map_or(Ok(NOWHERE), |threads| builder.word(threads, Type::U32))?;
    builder.emit(Operation::Barrier { a, threads, aligned });
    Ok(())
}

fn shuffle(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    if !opcode.take("sync") {
        return Err("the emulator knows only shuffles with `.sync`".to_owned());
    }
    let op = opcode.take_as(|suffix| match suffix {
        "up" => Some(Shuffle::Up),
        "down" => Some(Shuffle::Down),
        "bfly" => Some(Shuffle::Butterfly),
        "idx" => Some(Shuffle::Index),
        _ => None,
    });
    let op = op.ok_or("its mode is not known")?;
    only(opcode.take_type().ok_or("its type is not known")?, &[Type::B32])?;
    let [results, a, b, c, members] = exactly(operands)?;
    let (d, p) = match results.split_once('|') {
        Some((d, p)) => (builder.word_result(d.trim())?, builder.predicate_result(p.trim())?),
        None => (builder.word_result(results)?, NOWHERE),
    };
    let (a, b, c) = (builder.word(a, Type::B32)?, builder.word(b, Type::U32)?, builder.word(c, Type::U32)?);
    let members = builder.word(members, Type::B32)?;
    builder.emit(Operation::Shuffle { op, d, p, a, b, c, members });
    Ok(())
}

fn vote(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    if !opcode.take("sync") {
        return Err("the emulator knows only votes with `.sync`".to_owned());
    }
    let op = opcode.take_as(|suffix| match suffix {
        "all" => Some(Vote::All),
        "any" => Some(Vote::Any),
        "uni" => Some(Vote::Uniform),
        "ballot" => Some(Vote::Ballot),
        _ => None,
    });
    let op = op.ok_or("its question is not known")?;
    let of = opcode.take_type().ok_or("its type is not known")?;
    only(of, &[if op == Vote::Ballot { Type::B32 } else { Type::Pred }])?;
    let [result, a, members] = exactly(operands)?;
    let (a, negate) = builder.predicate(a)?;
    let members = builder.word(members, Type::B32)?;
    let (d, p) = if op == Vote::Ballot {
        (builder.word_result(result)?, NOWHERE)
    } else {
        (NOWHERE, builder.predicate_result(result)?)
    };
    builder.emit(Operation::Vote { op, d, p, a, negate, members });
    Ok(())
}

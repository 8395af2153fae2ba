//! `setp`, `set` and `selp`.

use super::{
    entry::{Decoded, exactly},
    integer::plain_predicate,
    opcode::Opcode,
    registers::{Builder, Class},
    types::Type,
};
use crate::program::{Compared, Logic, Operation, Relation, Slot, TRUE};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    match opcode.name {
        "selp" => select(builder, opcode, operands),
        "setp" => predicate(builder, opcode, operands),
        _ => set(builder, opcode, operands),
    }
}

fn select(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let of = opcode.take_type().ok_or("its type is not known")?;
    let [d, a, b, p] = exactly(operands)?;
    let p = plain_predicate(builder, p)?;
    if of.bytes() == 8 {
        let (a, b) = (builder.long(a, of)?, builder.long(b, of)?);
        let d = builder.long_result(d)?;
        builder.emit(Operation::SelectLong { d, a, b, p });
    } else {
        let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
        let d = builder.word_result(d)?;
        builder.emit(Operation::Select { d, a, b, p });
    }
    Ok(())
}

fn relation(suffix: &str) -> Option<Relation> {
    Some(match suffix {
        "eq" => Relation::Eq,
        "ne" => Relation::Ne,
        "lt" | "lo" => Relation::Lt,
        "le" | "ls" => Relation::Le,
        "gt" | "hi" => Relation::Gt,
        "ge" | "hs" => Relation::Ge,
        "equ" => Relation::Equ,
        "neu" => Relation::Neu,
        "ltu" => Relation::Ltu,
        "leu" => Relation::Leu,
        "gtu" => Relation::Gtu,
        "geu" => Relation::Geu,
        "num" => Relation::Num,
        "nan" => Relation::Nan,
        _ => return None,
    })
}

fn logic(suffix: &str) -> Option<Logic> {
    match suffix {
        "and" => Some(Logic::And),
        "or" => Some(Logic::Or),
        "xor" => Some(Logic::Xor),
        _ => None,
    }
}

/// A comparison of two operands into predicates.
struct Comparison<'t> {
    relation: Relation,
    of: Type,
    flush: bool,
    a: &'t str,
    b: &'t str,
    with: Option<(Logic, Slot, bool)>,
}

impl Comparison<'_> {
    fn emit(&self, builder: &mut Builder, p: Slot, q: Slot) -> Decoded {
        let of = match self.of {
            Type::F32 if self.flush => Compared::F32Flushed,
            _ if self.flush => return Err("the emulator does not know `.ftz` for this type".to_owned()),
            Type::F32 => Compared::F32,
            Type::F64 => Compared::F64,
            Type::F16 => Compared::F16,
            Type::Bf16 => Compared::Bf16,
            Type::S64 => Compared::S64,
            Type::U64 | Type::B64 => Compared::U64,
            Type::S32 => Compared::S32,
            Type::S16 => Compared::S16,
            // 16-bit registers are zero-extended.
            Type::U32 | Type::B32 | Type::U16 | Type::B16 => Compared::U32,
            _ => return Err("the emulator does not know it for this type".to_owned()),
        };
        let ordered = matches!(
            self.relation,
            Relation::Eq | Relation::Ne | Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge
        );
        if !ordered && !self.of.is_float() {
            return Err("only floating point numbers are compared so".to_owned());
        }
        let (a, b) = if self.of.bytes() == 8 {
            (builder.long(self.a, self.of)?, builder.long(self.b, self.of)?)
        } else {
            (builder.word(self.a, self.of)?, builder.word(self.b, self.of)?)
        };
        builder.emit(Operation::Compare { of, relation: self.relation, p, q, a, b, with: self.with });
        Ok(())
    }
}

fn predicate(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let relation = opcode.take_as(relation).ok_or("its comparison is not known")?;
    let combine = opcode.take_as(logic);
    let flush = opcode.take("ftz");
    let of = opcode.take_type().ok_or("its type is not known")?;
    let (results, a, b, with) = match combine {
        Some(op) => {
            let [results, a, b, c] = exactly(operands)?;
            let (c, negate) = builder.predicate(c)?;
            (results, a, b, Some((op, c, negate)))
        }
        None => {
            let [results, a, b] = exactly(operands)?;
            (results, a, b, None)
        }
    };
    let (p, q) = match results.split_once('|') {
        Some((p, q)) => (builder.predicate_result(p.trim())?, builder.predicate_result(q.trim())?),
        None => (builder.predicate_result(results)?, TRUE),
    };
    Comparison { relation, of, flush, a, b, with }.emit(builder, p, q)
}

fn set(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let relation = opcode.take_as(relation).ok_or("its comparison is not known")?;
    let flush = opcode.take("ftz");
    let to = opcode.take_type().ok_or("the type of its result is not known")?;
    let of = opcode.take_type().ok_or("its type is not known")?;
    let [d, a, b] = exactly(operands)?;
    if matches!(of, Type::F16x2 | Type::Bf16x2) {
        if flush || !matches!(to, Type::U32 | Type::S32) {
            return Err("the emulator does not know this form".to_owned());
        }
        let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
        let d = builder.word_result(d)?;
        builder.emit(Operation::SetHalves { bf16: of == Type::Bf16x2, relation, d, a, b });
        return Ok(());
    }
    let yes = match to {
        Type::U32 | Type::S32 => u32::MAX,
        Type::F32 => 1.0_f32.to_bits(),
        _ => return Err("the emulator does not know it for this type".to_owned()),
    };
    let d = builder.word_result(d)?;
    let p = builder.temporary(Class::Predicate)?;
    Comparison { relation, of, flush, a, b, with: None }.emit(builder, p, TRUE)?;
    builder.emit(Operation::SetWord { d, p, yes });
    Ok(())
}

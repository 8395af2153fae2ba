//! Floating point arithmetic and the approximate functions.

use super::{
    entry::{Decoded, exactly},
    integer::{only, three},
    opcode::Opcode,
    registers::{Builder, Class},
    types::Type,
};
use crate::{
    numerics::{FloatMode, Rounding, approx::Function},
    program::{FloatOperation, One, OneLong, Operation, Slot, Three, ThreeLong, Two, TwoLong},
};

pub(super) fn decode(builder: &mut Builder, opcode: &mut Opcode<'_>, operands: &[&str]) -> Decoded {
    let approx = opcode.take("approx");
    let full = opcode.take("full");
    let nan = opcode.take("NaN");
    let rounding = opcode.take_as(rounding);
    let mode =
        FloatMode { rounding: rounding.unwrap_or_default(), flush: opcode.take("ftz"), saturate: opcode.take("sat") };
    let of = opcode.take_type().ok_or("its type is not known")?;
    if approx || full {
        only(of, &[Type::F32])?;
        if mode.saturate || rounding.is_some() {
            return Err("an approximate instruction has no rounding or `.sat`".to_owned());
        }
        return approximate(builder, opcode.name, full, mode.flush, operands);
    }
    match (opcode.name, rounding) {
        ("fma" | "div" | "sqrt" | "rcp", None) => Err("its rounding is missing".to_owned()),
        ("copysign" | "neg" | "abs", _) => sign(builder, opcode.name, of, mode, operands),
        _ => match of {
            Type::F32 => single(builder, opcode.name, mode, nan, operands),
            Type::F64 => double(builder, opcode.name, mode, nan, operands),
            _ => halves(builder, opcode.name, of, mode, nan, operands),
        },
    }
}

/// Reads a rounding mode of floating point arithmetic.
pub(super) fn rounding(suffix: &str) -> Option<Rounding> {
    match suffix {
        "rn" => Some(Rounding::Nearest),
        "rz" => Some(Rounding::Zero),
        "rm" => Some(Rounding::Down),
        "rp" => Some(Rounding::Up),
        _ => None,
    }
}

fn unknown<T>() -> Decoded<T> {
    Err("the emulator does not know this form".to_owned())
}

fn approximate(builder: &mut Builder, name: &str, full: bool, flush: bool, operands: &[&str]) -> Decoded {
    let function = match name {
        "div" if full => Function::DivFull,
        "div" => Function::DivApprox,
        _ if full => return unknown(),
        "ex2" => Function::Ex2,
        "lg2" => Function::Lg2,
        "rcp" => Function::Rcp,
        "rsqrt" => Function::Rsqrt,
        "sqrt" => Function::Sqrt,
        "sin" => Function::Sin,
        "cos" => Function::Cos,
        "tanh" => Function::Tanh,
        _ => return unknown(),
    };
    let (d, a, b) = if name == "div" {
        let [d, a, b] = exactly(operands)?;
        (d, builder.word(a, Type::F32)?, builder.word(b, Type::F32)?)
    } else {
        let [d, a] = exactly(operands)?;
        let a = builder.word(a, Type::F32)?;
        (d, a, a)
    };
    let d = builder.word_result(d)?;
    builder.emit(Operation::Approx { function, flush, d, a, b });
    Ok(())
}

/// `neg`, `abs` and `copysign`: operations on the sign bits.
fn sign(builder: &mut Builder, name: &str, of: Type, mode: FloatMode, operands: &[&str]) -> Decoded {
    if mode != (FloatMode { flush: mode.flush, ..FloatMode::default() }) {
        return unknown();
    }
    if name == "copysign" {
        let [d, a, b] = exactly(operands)?;
        if of == Type::F64 {
            let (a, b) = (builder.long(a, of)?, builder.long(b, of)?);
            let d = builder.long_result(d)?;
            builder.emit(Operation::TwoLong { op: TwoLong::DCopysign, d, a, b });
            return Ok(());
        }
        only(of, &[Type::F32])?;
        let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
        let d = builder.word_result(d)?;
        builder.emit(Operation::Two { op: Two::Copysign, d, a, b });
        return Ok(());
    }
    let [d, a] = exactly(operands)?;
    let negate = name == "neg";
    if of == Type::F64 {
        let a = builder.long(a, of)?;
        let d = builder.long_result(d)?;
        let b = builder.long_number(if negate { 1 << 63 } else { u64::MAX >> 1 })?;
        builder.emit(Operation::TwoLong { op: if negate { TwoLong::Xor } else { TwoLong::And }, d, a, b });
        return Ok(());
    }
    let signs = match of {
        Type::F32 => 0x8000_0000,
        Type::F16x2 | Type::Bf16x2 => 0x8000_8000,
        Type::F16 | Type::Bf16 => 0x8000,
        _ => return unknown(),
    };
    let mut a = builder.word(a, of)?;
    if mode.flush {
        only(of, &[Type::F32])?;
        let flushed = builder.temporary(Class::Word)?;
        builder.emit(Operation::One { op: One::Flush, d: flushed, a });
        a = flushed;
    }
    let d = builder.word_result(d)?;
    let b = builder.word_number(if negate { signs } else { !signs })?;
    builder.emit(Operation::Two { op: if negate { Two::Xor } else { Two::And }, d, a, b });
    Ok(())
}

fn single(builder: &mut Builder, name: &str, mode: FloatMode, nan: bool, operands: &[&str]) -> Decoded {
    let of = Type::F32;
    let two = |builder: &mut Builder, plain: Two, op: FloatOperation| -> Decoded {
        let [d, a, b] = exactly(operands)?;
        let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
        let d = builder.word_result(d)?;
        builder.emit(if mode.is_plain() {
            Operation::Two { op: plain, d, a, b }
        } else {
            Operation::Float { op, mode, d, a, b, c: b }
        });
        Ok(())
    };
    let one = |builder: &mut Builder, plain: One, op: FloatOperation| -> Decoded {
        let [d, a] = exactly(operands)?;
        let a = builder.word(a, of)?;
        let d = builder.word_result(d)?;
        builder.emit(if mode.is_plain() {
            Operation::One { op: plain, d, a }
        } else {
            Operation::Float { op, mode, d, a, b: a, c: a }
        });
        Ok(())
    };
    match (name, nan) {
        ("add", false) => two(builder, Two::FAdd, FloatOperation::Add),
        ("sub", false) => two(builder, Two::FSub, FloatOperation::Sub),
        ("mul", false) => two(builder, Two::FMul, FloatOperation::Mul),
        ("div", false) => two(builder, Two::FDiv, FloatOperation::Div),
        ("min", false) => two(builder, Two::FMin, FloatOperation::Min),
        ("max", false) => two(builder, Two::FMax, FloatOperation::Max),
        ("min", true) => two(builder, Two::FMinNan, FloatOperation::MinNan),
        ("max", true) => two(builder, Two::FMaxNan, FloatOperation::MaxNan),
        ("sqrt", false) => one(builder, One::Sqrt, FloatOperation::Sqrt),
        ("rcp", false) => one(builder, One::Rcp, FloatOperation::Rcp),
        // `mad.f32` with a rounding is `fma`.
        ("fma" | "mad", false) if mode.is_plain() => three(builder, Three::Fma, operands),
        ("fma" | "mad", false) => {
            let [d, a, b, c] = exactly(operands)?;
            let [a, b, c] = [builder.word(a, of)?, builder.word(b, of)?, builder.word(c, of)?];
            let d = builder.word_result(d)?;
            builder.emit(Operation::Float { op: FloatOperation::Fma, mode, d, a, b, c });
            Ok(())
        }
        _ => unknown(),
    }
}

fn double(builder: &mut Builder, name: &str, mode: FloatMode, nan: bool, operands: &[&str]) -> Decoded {
    let of = Type::F64;
    if !mode.is_plain() || nan {
        return unknown();
    }
    let two = match name {
        "add" => Some(TwoLong::DAdd),
        "sub" => Some(TwoLong::DSub),
        "mul" => Some(TwoLong::DMul),
        "div" => Some(TwoLong::DDiv),
        "min" => Some(TwoLong::DMin),
        "max" => Some(TwoLong::DMax),
        _ => None,
    };
    if let Some(op) = two {
        let [d, a, b] = exactly(operands)?;
        let (a, b) = (builder.long(a, of)?, builder.long(b, of)?);
        let d = builder.long_result(d)?;
        builder.emit(Operation::TwoLong { op, d, a, b });
        return Ok(());
    }
    if matches!(name, "fma" | "mad") {
        let [d, a, b, c] = exactly(operands)?;
        let [a, b, c] = [builder.long(a, of)?, builder.long(b, of)?, builder.long(c, of)?];
        let d = builder.long_result(d)?;
        builder.emit(Operation::ThreeLong { op: ThreeLong::DFma, d, a, b, c });
        return Ok(());
    }
    let op = match name {
        "sqrt" => OneLong::DSqrt,
        "rcp" => OneLong::DRcp,
        _ => return unknown(),
    };
    let [d, a] = exactly(operands)?;
    let a = builder.long(a, of)?;
    let d = builder.long_result(d)?;
    builder.emit(Operation::OneLong { op, d, a });
    Ok(())
}

/// Arithmetic on f16 and bf16, alone or in pairs. A single number is the lower half of a pair.
fn halves(builder: &mut Builder, name: &str, of: Type, mode: FloatMode, nan: bool, operands: &[&str]) -> Decoded {
    let bf16 = matches!(of, Type::Bf16 | Type::Bf16x2);
    let single = matches!(of, Type::F16 | Type::Bf16);
    if !mode.is_plain() || matches!(of, Type::Fp8x2(_)) {
        return unknown();
    }
    let two = match (name, nan, bf16) {
        ("add", false, false) => Some(Two::AddF16x2),
        ("sub", false, false) => Some(Two::SubF16x2),
        ("mul", false, false) => Some(Two::MulF16x2),
        ("min", false, false) => Some(Two::MinF16x2),
        ("max", false, false) => Some(Two::MaxF16x2),
        ("min", true, false) => Some(Two::MinNanF16x2),
        ("max", true, false) => Some(Two::MaxNanF16x2),
        ("add", false, true) => Some(Two::AddBf16x2),
        ("sub", false, true) => Some(Two::SubBf16x2),
        ("mul", false, true) => Some(Two::MulBf16x2),
        ("min", false, true) => Some(Two::MinBf16x2),
        ("max", false, true) => Some(Two::MaxBf16x2),
        ("min", true, true) => Some(Two::MinNanBf16x2),
        ("max", true, true) => Some(Two::MaxNanBf16x2),
        _ => None,
    };
    let d = operands.first().copied().unwrap_or("");
    let (result, pair) = pair_result(builder, d, single)?;
    if let Some(op) = two {
        let [_, a, b] = exactly(operands)?;
        let (a, b) = (builder.word(a, of)?, builder.word(b, of)?);
        builder.emit(Operation::Two { op, d: pair, a, b });
    } else if name == "fma" {
        let [_, a, b, c] = exactly(operands)?;
        let [a, b, c] = [builder.word(a, of)?, builder.word(b, of)?, builder.word(c, of)?];
        builder.emit(Operation::Three { op: if bf16 { Three::FmaBf16x2 } else { Three::FmaF16x2 }, d: pair, a, b, c });
    } else {
        return unknown();
    }
    if single {
        // The upper halves of the operands are zeros. Their result does not belong in the register.
        builder.emit(Operation::One { op: One::Unsigned16, d: result, a: pair });
    }
    Ok(())
}

fn pair_result(builder: &mut Builder, d: &str, single: bool) -> Decoded<(Slot, Slot)> {
    let result = builder.word_result(d)?;
    let pair = if single { builder.temporary(Class::Word)? } else { result };
    Ok((result, pair))
}

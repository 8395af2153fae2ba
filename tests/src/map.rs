//! Ops of several operands: inputs, what must come out, and calls by definition.

use pointwise::{Accuracy, DType, MapDef, Number, OpInfo, Operand, Result, Strategy, Tensor, TensorViewMut};
use pointwise_cli::formulas;
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{Element, Kind};

use crate::inputs::{self, Random};
use crate::judge::{self, Report};
use crate::with_element;

/// Every op of several operands.
pub fn all() -> impl Iterator<Item = &'static MapDef> {
    pointwise::BINARY.iter().chain(pointwise::GATED).chain(pointwise::TERNARY).chain(pointwise::BACKWARD).copied()
}

/// The element type of operand `k` of an op on `dtype`.
#[must_use]
pub fn operand_type(info: &OpInfo, dtype: DType, k: usize) -> DType {
    if matches!(info.kind, Kind::Select | Kind::SelectGradients) && k == 0 { DType::Bool } else { dtype }
}

/// f32 values at which formulas of two operands turn.
pub const SPECIAL: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    0.1,
    -0.1,
    1.5,
    2.5,
    7.0,
    -7.0,
    10.0,
    100.0,
    -100.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    65504.0,
    57344.0,
    448.0,
    1e5,
    1e20,
    -1e20,
    0.99999994,
    1.0000001,
    16777216.0,
    16777217.0,
    2147483648.0,
    0.3,
    0.7,
    0.499,
    1e-7,
    33.0,
];

/// Values of one type: every code of 8 bits, else special ones and `random` more.
fn values(dtype: DType, random: usize, seed: u64) -> Vec<u8> {
    if dtype.size() == 1 {
        return inputs::every_code(dtype);
    }
    let mut bytes = Vec::new();
    if dtype.is_float() {
        with_element!(dtype, E => for &x in SPECIAL {
            bytes.extend(judge::as_bytes(&<E as Element>::from_f64(f64::from(x))));
        });
    } else {
        let ends = [0, 1, -1, 2, -2, 3, -3, 7, -7, 10, i64::MIN, i64::MAX, i64::from(i32::MIN), i64::from(i32::MAX)];
        for end in ends {
            bytes.extend(&end.to_le_bytes()[..dtype.size()]);
        }
        // The smallest of the narrower types are the upper bytes of i64's.
        bytes.extend(&i64::MIN.to_le_bytes()[8 - dtype.size()..]);
        bytes.extend(&i64::MAX.to_le_bytes()[8 - dtype.size()..]);
    }
    bytes.extend(inputs::mixed(dtype, random, seed));
    bytes
}

/// Operands: all pairs of 8-bit codes, of other types all pairs of special values and 2^14 random ones; of another
/// number of operands 2^16 random choices of the values.
#[must_use]
pub fn operands(info: &OpInfo, dtype: DType, seed: u64) -> Vec<Vec<u8>> {
    let count = info.operands.len();
    let pools: Vec<Vec<u8>> =
        (0..count).map(|k| values(operand_type(info, dtype, k), 1 << 14, seed + 2 * k as u64)).collect();
    let sizes: Vec<usize> = (0..count).map(|k| operand_type(info, dtype, k).size()).collect();
    let mut out = vec![Vec::new(); count];
    let mut push = |indices: &[usize]| {
        for k in 0..count {
            let at = indices[k] * sizes[k];
            out[k].extend_from_slice(&pools[k][at..at + sizes[k]]);
        }
    };
    let lens: Vec<usize> = pools.iter().zip(&sizes).map(|(pool, size)| pool.len() / size).collect();
    let mut random = Random(seed);
    if count == 2 && sizes[0] == sizes[1] {
        let special = if dtype.size() == 1 { lens[0] } else { lens[0] - (1 << 14) };
        for a in 0..special {
            (0..special).for_each(|b| push(&[a, b]));
        }
        if dtype.size() > 1 {
            (special..lens[0]).for_each(|i| push(&[i, special + (random.next_u64() % (1 << 14)) as usize]));
        }
    } else {
        for i in 0..1_u64 << 16 {
            // Special values, which come first, as often as all others.
            let mut pick = |k: usize| {
                let len = if i % 2 == 0 { lens[k].min(64) } else { lens[k] };
                (random.next_u64() % len as u64) as usize
            };
            let indices: Vec<usize> = (0..count).map(&mut pick).collect();
            push(&indices);
        }
    }
    out
}

/// Parameters to test with: the defaults, and another value of each where there are any.
#[must_use]
pub fn sets(info: &OpInfo, dtype: DType) -> Vec<[Number; MAX_PARAMS]> {
    let mut sets = vec![[Number::Default; MAX_PARAMS]];
    if !info.params.is_empty() && dtype != DType::Bool {
        let mut other = [Number::Default; MAX_PARAMS];
        other[0] = if dtype.is_float() { Number::Float(-2.5) } else { Number::Int(3) };
        sets.push(other);
    }
    sets
}

/// Runs the op, whatever its kind, operands broadcast.
///
/// # Errors
/// Those of the library.
pub fn run_into(
    def: &'static MapDef,
    set: &[Number; MAX_PARAMS],
    strategy: Strategy,
    operands: &[Operand<'_>],
    y: TensorViewMut<'_>,
) -> Result<()> {
    match (def.info.kind, operands) {
        (Kind::Binary | Kind::Backward, [a, b]) => def.binary_with(set).strategy(strategy).run_into(*a, *b, y),
        // Operands of their own, and no rule for the weight's shape.
        (_, [a, b]) => def.gated_with(set).strategy(strategy).run_pair_into(*a, *b, y),
        (_, [a, b, c]) => def.ternary_with(set).strategy(strategy).run_into(*a, *b, *c, y),
        _ => unreachable!("two or three operands"),
    }
}

/// Runs the op on whole tensors of one shape.
///
/// # Errors
/// Those of the library.
pub fn run(
    def: &'static MapDef,
    set: &[Number; MAX_PARAMS],
    strategy: Strategy,
    operands: &[Tensor],
) -> Result<Tensor> {
    let last = &operands[operands.len() - 1];
    let mut y = Tensor::zeros(last.device(), def.info.result.of(last.dtype()), last.shape())?;
    let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
    run_into(def, set, strategy, &operands, y.view_mut()?)?;
    Ok(y)
}

/// Compares results with what must come out; says what is wrong.
///
/// # Errors
/// The first element that is wrong, or a bound that is not kept.
///
/// # Panics
/// On parameters the op does not take.
pub fn check(
    def: &MapDef,
    dtype: DType,
    set: &[Number; MAX_PARAMS],
    operands: &[Vec<u8>],
    y: &[u8],
) -> std::result::Result<(), String> {
    let info = &def.info;
    let result = info.result.of(dtype);
    let n = y.len() / result.size();
    let sizes: Vec<usize> = (0..operands.len()).map(|k| operand_type(info, dtype, k).size()).collect();
    let at = |k: usize, i: usize| &operands[k][i * sizes[k]..(i + 1) * sizes[k]];
    let show = |i: usize| (0..operands.len()).map(|k| format!("{:?}", at(k, i))).collect::<Vec<_>>().join(", ");
    if info.kind == Kind::Select {
        return match (0..n)
            .find(|&i| &y[i * sizes[1]..(i + 1) * sizes[1]] != at(if at(0, i)[0] != 0 { 1 } else { 2 }, i))
        {
            None => Ok(()),
            Some(i) => Err(format!("{}: {}", info.name, show(i))),
        };
    }
    if !dtype.is_float() {
        for i in 0..n {
            let operand = |k: usize| if k < operands.len() { integer(dtype, at(k, i)) } else { 0 };
            let alpha = if set[0] == Number::Default { 1 } else { 3 };
            let x = [operand(0), operand(1), operand(2)];
            let expected = formulas::integer(info.name, dtype, x, alpha)
                .ok_or_else(|| format!("{} of {dtype} has nothing to be compared with", info.name))?;
            let got = integer(result, &y[i * result.size()..(i + 1) * result.size()]);
            if wrap(result, expected) != got {
                return Err(format!("{} {dtype} {set:?} of {}: {got}, not {expected}", info.name, show(i)));
            }
        }
        return Ok(());
    }
    if info.kind == Kind::Backward {
        return crate::gradients::check_backward(def, dtype, set, operands, y);
    }
    let oracle = def.oracle_for(dtype, set).expect("the parameters are valid").expect("floats have an oracle");
    with_element!(dtype, E => with_element!(result, R => {
        let mut report = Report::default();
        for i in 0..n {
            let operand = |k: usize| if k < operands.len() { judge::from_bytes::<E>(at(k, i)).to_f64() } else { 0.0 };
            let x = [operand(0), operand(1), operand(2)];
            let got = judge::from_bytes::<R>(&y[i * size_of::<R>()..(i + 1) * size_of::<R>()]);
            let alpha = if set[0] == Number::Default { 1.0 } else { -2.5 };
            let steps = formulas::stepped(info.name, x.map(|x| x as f32), alpha).map(f64::from);
            if info.kind == Kind::Gated {
                // The activation is an f32: its overflow and underflow, and a tie that it is rounded to, are the
                // formula's.
                let activation = oracle([x[0], 1.0, 0.0]) as f32;
                let is_tiny = activation.is_subnormal() || activation == 0.0 && x[0] != 0.0;
                // Of a subnormal activation few digits are left, which the value may blow up.
                if !is_tiny {
                    report.add(x[0], f64::from(activation) * x[1], got, result);
                } else if f64::from(activation) * x[1] != 0.0 && x[1].abs() < 1e30 && got.to_f64().abs() > 1e-7 {
                    return Err(format!("{} {dtype} of {x:?}: {:e}", info.name, got.to_f64()));
                }
                continue;
            }
            if steps.is_none() && info.accuracy != Accuracy::Exact {
                report.add(x[0], oracle(x), got, result);
                continue;
            }
            // f32 steps, or the exact value rounded to f32, and then to the type.
            let exact = || if result.is_float() { f64::from(oracle(x) as f32) } else { oracle(x) };
            // By the trait's name: `half` has a method of the same name, which drops bits below a tie.
            let expected = <R as Element>::from_f64(steps.unwrap_or_else(exact));
            let (a, b) = (expected.to_f64(), got.to_f64());
            if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
                return Err(format!("{} {dtype} {set:?} of {x:?}: {b:e}, not {a:e}", info.name));
            }
        }
        if report.keeps(info.accuracy, result, false) {
            Ok(())
        } else {
            Err(format!("{} {dtype} {set:?}: {report}", info.name))
        }
    }))
}

fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let mut wide = [0_u8; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    wrap(dtype, i128::from(i64::from_le_bytes(wide)))
}

fn wrap(dtype: DType, x: i128) -> i128 {
    match dtype {
        DType::I8 => i128::from(x as i8),
        DType::I16 => i128::from(x as i16),
        DType::I32 => i128::from(x as i32),
        DType::I64 => i128::from(x as i64),
        DType::U8 => i128::from(x as u8),
        _ => i128::from(x != 0),
    }
}

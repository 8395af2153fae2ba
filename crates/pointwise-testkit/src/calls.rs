//! Calls of ops by definition, and checks of their results.

use pointwise::{
    DType, ErrorKind, Number, Operand, Result, Strategy, Tensor, TensorView, TensorViewMut,
    info::{Accuracy, OpInfo},
    kernel::OpDef,
};
use pointwise_core::Element;

use crate::judge::{self, Expected, Report};
use crate::{formulas, gradients, inputs, with_element};

/// The elements of one operand whose type has too many codes to try them all: a prime, which no vector width divides.
const ELEMENTS: usize = 65_537;

/// Returns operands to try an op on, as bytes: [`inputs::codes`] for one operand, [`inputs::tuples`] of their types for
/// several.
#[must_use]
pub fn operands(info: &OpInfo, dtype: DType, seed: u64) -> Vec<Vec<u8>> {
    if info.operands.len() == 1 {
        let codes = inputs::codes(dtype, ELEMENTS, seed);
        // The two codes of bool are repeated, so that they fill vectors and rows.
        return vec![if dtype == DType::Bool { codes.repeat(128) } else { codes }];
    }
    let dtypes: Vec<DType> = (0..info.operands.len()).map(|k| info.operand_type(k, dtype)).collect();
    inputs::tuples(&dtypes, 1 << 16, seed)
}

/// Runs the op, whatever its kind, on operands that are broadcast as they are: also the weight of a channel.
///
/// # Errors
/// Fails if the library refuses the call.
pub fn run_into(
    def: &'static OpDef,
    set: &[Number],
    strategy: Strategy,
    operands: &[Operand<'_>],
    mut results: Vec<TensorViewMut<'_>>,
) -> Result<()> {
    let kernel = def.kernel(set).strategy(strategy);
    if def.info.channel_operands == 0 {
        return kernel.run_into(operands, &mut results);
    }
    // An operand with an element for each channel is broadcast as it is if it has the rank of the others.
    let rank_of = |operand: &Operand<'_>| if let Operand::View(view) = operand { view.shape().rank() } else { 0 };
    let rank = operands.iter().map(rank_of).max().unwrap_or(0).max(2);
    let mut lifted = Vec::new();
    for operand in operands {
        lifted.push(match operand {
            Operand::View(view) => {
                let mut view = *view;
                while view.shape().rank() < rank {
                    view = view.unsqueeze(0)?;
                }
                Operand::View(view)
            }
            number => *number,
        });
    }
    let lines = results.first().map_or(rank, |result| result.shape().rank());
    for _ in 0..rank.saturating_sub(lines) {
        results = results.into_iter().map(|view| view.unsqueeze(0)).collect::<Result<_>>()?;
    }
    kernel.run_into(&lifted, &mut results)
}

/// Runs the op on whole tensors of one shape.
///
/// # Errors
/// Fails if the library refuses the call.
pub fn run(def: &'static OpDef, set: &[Number], strategy: Strategy, operands: &[Tensor]) -> Result<Vec<Tensor>> {
    let value = operands.iter().enumerate().find(|(k, _)| !def.info.is_bool(*k));
    let Some((_, value)) = value else { return Err(judge::wrong_count(&def.info, operands.len())) };
    let mut results = Vec::new();
    for k in 0..def.info.results.len() {
        results.push(Tensor::zeros(value.device(), def.info.result_type(k, value.dtype()), value.shape())?);
    }
    let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
    run_into(def, set, strategy, &operands, results.iter_mut().map(TensorViewMut::from).collect())?;
    Ok(results)
}

/// [`run_into`] with views.
///
/// # Errors
/// Fails if the library refuses the call.
pub fn run_views(
    def: &'static OpDef,
    set: &[Number],
    strategy: Strategy,
    operands: &[TensorView<'_>],
    results: Vec<TensorViewMut<'_>>,
) -> Result<()> {
    let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
    run_into(def, set, strategy, &operands, results)
}

/// Returns the bound of an op's results: exact if they must follow PyTorch's steps, each rounded to f32.
#[must_use]
pub fn accuracy(info: &OpInfo) -> Accuracy {
    if formulas::is_stepped(info.name) { Accuracy::Exact } else { info.accuracy }
}

/// True if [`operands`] are every code of a 16-bit type: then [`Report::keeps`] asks for more.
#[must_use]
pub fn is_whole(info: &OpInfo, dtype: DType) -> bool {
    info.is_unary() && dtype.size() == 2
}

/// Compares each result of an op with the right one, all as bytes.
///
/// # Errors
/// Fails if the op does not take the element type or a parameter, if the number of operands, results or elements in one
/// is wrong, and for integers of an op that [`formulas::integer`] does not know.
pub fn reports(
    def: &OpDef,
    dtype: DType,
    set: &[Number],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> Result<Vec<Report>> {
    let info = &def.info;
    if operands.len() != info.operands.len() || results.len() != info.results.len() {
        return Err(judge::wrong_count(info, operands.len()));
    }
    let typed = operands.iter().enumerate().map(|(k, bytes)| (info.operand_type(k, dtype), &**bytes));
    let all = typed.chain(results.iter().enumerate().map(|(k, y)| (info.result_type(k, dtype), &**y)));
    judge::same_length(&all.collect::<Vec<_>>())?;
    match (info.is_gradient(), results) {
        (false, [y]) if info.is_unary() => Ok(vec![judge::unary(def, dtype, set, &operands[0], y)?]),
        (false, [y]) => Ok(vec![report(def, dtype, set, operands, y)?]),
        (true, [y]) if operands.len() == 2 => Ok(vec![gradients::of_one(def, dtype, set, operands, y)?]),
        _ => gradients::of_several(def, dtype, set, operands, results),
    }
}

fn report(def: &OpDef, dtype: DType, set: &[Number], operands: &[Vec<u8>], y: &[u8]) -> Result<Report> {
    let info = &def.info;
    let oracle = def.oracle(dtype, set)?;
    let call = Call { info, dtype, operands };
    if info.properties.moves {
        return Ok(selected(&call, y));
    }
    let Some(oracle) = oracle.filter(|_| dtype.is_float()) else { return integers(&call, set, y) };
    let result = info.result_type(0, dtype);
    // The parameter of `add` and `sub`, for `formulas`.
    let alpha = match set.first().copied().unwrap_or_default() {
        Number::Float(alpha) => alpha as f32,
        Number::Int(alpha) => alpha as f32,
        _ => 1.0,
    };
    let is_gated = def.takes_halves();
    let mut report = Report::default();
    with_element!(dtype, E => with_element!(result, R => {
        for (i, y) in y.chunks_exact(size_of::<R>()).enumerate() {
            let mut x = [0.0; 3];
            for (k, x) in x.iter_mut().enumerate().take(operands.len()) {
                *x = judge::from_bytes::<E>(call.at(k, i)).to_f64();
            }
            let got = judge::from_bytes::<R>(y);
            let shown = &x[..operands.len().min(3)];
            let expected = if is_gated {
                match gated(oracle.of(&[x[0], 1.0]), x, got.to_f64()) {
                    Some(exact) => exact.into(),
                    None => continue,
                }
            } else if let Some(steps) = formulas::stepped(info.name, x.map(|x| x as f32), alpha) {
                let right = f64::from(steps);
                let is_narrow = dtype != DType::F32;
                let exact = match formulas::is_rounded_once(info.name) {
                    true if is_narrow => f64::from(oracle.of(&x) as f32),
                    true => oracle.of(&x),
                    false => right,
                };
                Expected { right, exact, allowed: 0.0 }
            } else if info.accuracy == Accuracy::Exact && dtype != DType::F32 && result.is_float() {
                // Exact ops of the small types work in f32 and round twice, as PyTorch's.
                f64::from(oracle.of(&x) as f32).into()
            } else {
                oracle.of(&x).into()
            };
            report.add(shown, expected, got, result);
        }
    }));
    Ok(report)
}

/// The operands of a call.
struct Call<'a> {
    info: &'a OpInfo,
    dtype: DType,
    operands: &'a [Vec<u8>],
}

impl Call<'_> {
    /// Returns element `i` of operand `k`.
    fn at(&self, k: usize, i: usize) -> &[u8] {
        let size = self.info.operand_type(k, self.dtype).size();
        self.operands[k].get(i * size..(i + 1) * size).unwrap_or_default()
    }
}

/// Compares results with the elements that the condition chooses, bit by bit.
fn selected(call: &Call<'_>, y: &[u8]) -> Report {
    let mut report = Report::default();
    with_element!(call.dtype, E => for (i, y) in y.chunks_exact(size_of::<E>()).enumerate() {
        let condition = call.at(0, i) != [0];
        let right = call.at(if condition { 1 } else { 2 }, i);
        let [got, exact] = [y, right].map(|bytes| judge::from_bytes::<E>(bytes).to_f64());
        let [a, b] = [1, 2].map(|k| judge::from_bytes::<E>(call.at(k, i)).to_f64());
        report.measured += u64::from(!got.is_nan() && !exact.is_nan());
        report.count(&[f64::from(u8::from(condition)), a, b], y == right, [got, exact]);
    });
    report
}

fn integers(call: &Call<'_>, set: &[Number], y: &[u8]) -> Result<Report> {
    let &Call { info, dtype, operands } = call;
    let result = info.result_type(0, dtype);
    let alpha = match set.first().copied().unwrap_or_default() {
        Number::Int(alpha) => i128::from(alpha),
        _ => 1,
    };
    let mut report = Report::default();
    for (i, y) in y.chunks_exact(result.size()).enumerate() {
        let mut x = [0; 3];
        for (k, x) in x.iter_mut().enumerate().take(operands.len()) {
            *x = judge::integer(dtype, call.at(k, i));
        }
        let right = formulas::integer(info.name, dtype, x, alpha).ok_or_else(|| ErrorKind::Parameter {
            name: "dtype",
            value: dtype.to_string(),
            why: format!("there is no formula of {} on whole numbers to compare with", info.name),
        })?;
        let (right, got) = (judge::wrapped(result, right), judge::integer(result, y));
        report.count(&x.map(|x| x as f64)[..operands.len().min(3)], right == got, [got as f64, right as f64]);
    }
    Ok(report)
}

/// Returns `activation(gate) value`. The activation is an f32: its overflow and rounding belong to the formula. `None`
/// if a subnormal activation, with few digits left, makes any result right: a huge value magnifies its error, and a
/// result near zero has few digits, too.
fn gated(activation: f64, [gate, value, _]: [f64; 3], got: f64) -> Option<f64> {
    let activation = activation as f32;
    let product = f64::from(activation) * value;
    let is_tiny = activation.is_subnormal() || activation == 0.0 && gate != 0.0;
    // If the product vanishes, the last digit of a subnormal number may be left.
    let digit = 4.0 * f64::from(f32::from_bits(1)) * value.abs();
    let is_lost =
        if product == 0.0 { got != 0.0 && got.abs() <= digit } else { value.abs() >= 1e30 || got.abs() <= 1e-7 };
    (!(is_tiny && is_lost)).then_some(product)
}

/// Checks that results are right.
///
/// # Errors
/// Fails if a bound is not kept, or if [`reports`] fails.
pub fn check(
    def: &OpDef,
    dtype: DType,
    set: &[Number],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> std::result::Result<(), String> {
    let info = &def.info;
    let reports = reports(def, dtype, set, operands, results).map_err(|error| error.to_string())?;
    for (k, (name, report)) in info.results.iter().zip(reports).enumerate() {
        if !report.keeps(accuracy(info), info.result_type(k, dtype), is_whole(info, dtype)) {
            return Err(format!("{name} of {} {dtype} {set:?}: {report}", info.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pointwise_core::op::MAX_PARAMS;

    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn i64s(values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    /// Takes an op of each kind with a right result, and with a wrong one.
    #[test]
    fn a_wrong_result_is_a_fault() {
        let floats = [f32s(&[1.0, 7.0]), f32s(&[3.0, -2.0])];
        let whole = [i64s(&[-7, i64::MAX]), i64s(&[2, 1])];
        let select = [vec![0, 1], floats[0].clone(), floats[1].clone()];
        let third = 1.0_f32 / 3.0;
        type Case<'a> = (&'a str, DType, &'a [Vec<u8>], Vec<u8>, Vec<u8>);
        let cases: [Case<'_>; 6] = [
            ("div", DType::F32, &floats, f32s(&[third, -3.5]), f32s(&[third.next_up(), -3.5])),
            ("floor_divide", DType::F32, &floats, f32s(&[0.0, -4.0]), f32s(&[0.0, -3.0])),
            ("add", DType::I64, &whole, i64s(&[-5, i64::MIN]), i64s(&[-5, i64::MAX])),
            ("floor_divide", DType::I64, &whole, i64s(&[-4, i64::MAX]), i64s(&[-3, 0])),
            ("where", DType::F32, &select, f32s(&[3.0, 7.0]), f32s(&[1.0, -2.0])),
            ("silu_and_mul", DType::F32, &floats, f32s(&[2.193_175_8, -13.987_246]), f32s(&[2.193_2, -13.987_246])),
        ];
        let set = [Number::Default; MAX_PARAMS];
        for (name, dtype, operands, right, wrong) in cases {
            let def = pointwise::info::op(name).unwrap();
            let (right, wrong) = ([right], [wrong]);
            assert_eq!(check(def, dtype, &set, operands, &right), Ok(()), "{name}");
            assert!(check(def, dtype, &set, operands, &wrong).is_err(), "{name}");
            assert!(check(def, dtype, &set, &operands[1..], &right).is_err(), "{name}");
            assert!(check(def, dtype, &set, operands, &[]).is_err(), "{name}");
        }
    }
}

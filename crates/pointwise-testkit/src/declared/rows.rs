//! Ops on rows: their results against the formula in f64, and their gradients against its slopes.

use pointwise::info::OpInfo;
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Number, Operand, Tensor};
use pointwise_core::Terms;

use super::close::Bound;
use super::values::{computed, decode, encode, sample};
use crate::judge::ulp_at;
use crate::{Error, Random, params};

/// Rows and elements of each: of one thread, of parts of a warp, of warps, of a block; whole vectors and others; and too long
/// to be held in registers.
const SHAPES: [[usize; 2]; 10] =
    [[3, 1], [5, 8], [7, 17], [4, 64], [9, 128], [2, 1000], [2, 1024], [1, 4096], [2, 5120], [1, 20_000]];

/// The shapes of [`largest_error`].
const FEW: [[usize; 2]; 3] = [[9, 17], [4, 256], [2, 1000]];

/// The shapes of ops whose rows are groups: outer dimension, and groups along the last.
const GROUPS: [[usize; 2]; 4] = [[1, 1], [3, 1], [2, 3], [5, 8]];

/// Returns the shapes of an op's calls, from those of ops on whole rows.
fn shapes(info: &OpInfo, of_rows: &[[usize; 2]]) -> Vec<[usize; 2]> {
    match info.group as usize {
        0 => of_rows.to_vec(),
        group => GROUPS.map(|[outer, groups]| [outer, groups * group]).to_vec(),
    }
}

/// Checks an op on rows in a type on a device, with its default parameters, and returns the largest error of a result in units
/// in its last place, among those where no terms cancel.
///
/// # Errors
/// The first result that is wrong; a call that fails; an element type that the op does not take.
pub fn largest_error(def: &'static OpDef, dtype: DType, device: &Device) -> Result<f64, Error> {
    let set = vec![Number::Default; def.info.params.len()];
    shapes(&def.info, &FEW)
        .into_iter()
        .try_fold(0.0_f64, |worst, shape| Ok(worst.max(one(def, dtype, device, &set, shape, 0)?)))
}

/// Checks an op in a type on a device, with several parameters.
pub(super) fn check(def: &'static OpDef, dtype: DType, device: &Device) -> Result<(), Error> {
    for set in params::several(&def.info, dtype) {
        for (k, shape) in shapes(&def.info, &SHAPES).into_iter().enumerate() {
            // Long rows take an emulator long: two layouts do.
            let turns = if shape[0] * shape[1] > 2000 { k % 2..k % 2 + 1 } else { 0..4 };
            for turn in turns {
                one(def, dtype, device, &set, shape, turn)?;
            }
        }
    }
    Ok(())
}

/// An operand's values, and the steps along the outer dimension and the last.
struct Input {
    values: Vec<f64>,
    tensor: Tensor,
    steps: [usize; 2],
    /// True if it has an element for each row.
    is_once: bool,
    /// True if the tensor is the transposed operand.
    is_turned: bool,
}

/// One call, of tensors of `[outer, last]`. In `turn` 0 all operands have all elements; in others one has those of the last
/// dimension, one those of the outer, and the last is transposed.
fn one(
    def: &'static OpDef,
    dtype: DType,
    device: &Device,
    set: &[Number],
    [outer, last]: [usize; 2],
    turn: usize,
) -> Result<f64, Error> {
    let info = &def.info;
    // The rows along the last dimension, and the elements of each.
    let groups = last.checked_div(info.group as usize).unwrap_or(1);
    let (rows, len) = (outer * groups, last / groups);
    let (mut inputs, mut worst) = (Vec::new(), 0.0_f64);
    // The first operand has all elements, so that the others broadcast to it.
    let whole = (0..info.operands.len()).find(|&k| !info.is_row_operand(k));
    for k in 0..info.operands.len() {
        let (kind, is_once) = ((k + turn) % 4, info.is_row_operand(k));
        let (shape, steps) = match kind {
            _ if is_once && info.group != 0 => (vec![outer, groups], [groups, 1]),
            _ if is_once => (vec![outer], [1, 0]),
            // Weights are one row together, so that their gradients are sums.
            _ if info.is_weight(k) && turn % 2 == 1 => (vec![last], [0, 1]),
            1 if turn > 0 && Some(k) != whole => (vec![last], [0, 1]),
            2 if turn > 0 && Some(k) != whole => (vec![outer, 1], [1, 0]),
            3 if turn > 0 => (vec![last, outer], [1, outer]),
            _ => (vec![outer, last], [last, 1]),
        };
        let of = info.operand_type(k, dtype);
        let numbers: Vec<f64> = (0..shape.iter().product()).map(|i| sample(i, k + turn * 31)).collect();
        let (bytes, values) = encode(of, &numbers);
        let values = computed(info, k, values);
        let is_turned = kind == 3 && turn > 0 && !is_once && shape == [last, outer];
        let tensor = Tensor::from_bytes(device, of, &bytes, shape)?;
        inputs.push(Input { values, tensor, steps, is_once, is_turned });
    }
    let operands = inputs.iter().map(|input| {
        let view = input.tensor.view();
        if input.is_turned { view.transpose(0, 1).map(Operand::View) } else { Ok(Operand::View(view)) }
    });
    let operands = operands.collect::<pointwise::Result<Vec<_>>>()?;
    let results = def.kernel(set).of_type(dtype).run(&operands)?;
    let got: Vec<Vec<f64>> = (0..results.len())
        .map(|k| Ok(decode(info.result_type(k, dtype), &results[k].to_bytes()?)))
        .collect::<pointwise::Result<_>>()?;
    let Some(oracle) = def.row_oracle(dtype, set)? else { return Ok(worst) };
    let is_sum = |k: usize| info.is_weight_result(k) && results[k].shape().dims() != [outer, last];
    let mut sums = vec![vec![Terms::exact(0.0); len]; results.len()];
    let failed = |what: &str, why: String| {
        Error::Wrong(format!("{} of {dtype} on {device}, {what}: {why}{}", info.name, params::shown(info, set)))
    };
    for row in 0..rows {
        let at = |input: &Input| -> Vec<f64> {
            let [outer, along] = input.steps;
            // The first element along the last dimension, and how many.
            let (first, count) = if input.is_once { (row % groups, 1) } else { (row % groups * len, len) };
            let count = if along == 0 { 1 } else { count };
            (0..count).map(|i| input.values[row / groups * outer + (first + i) * along]).collect()
        };
        let x: Vec<Vec<f64>> = inputs.iter().map(at).collect();
        let what = format!("{rows} rows of {len}, layout {turn}, row {row}");
        let of_row = |k: usize| match info.is_row_result(k) {
            true => row..row + 1,
            // Below, of all rows.
            false if is_sum(k) => 0..0,
            false => row * len..(row + 1) * len,
        };
        let got: Vec<&[f64]> = got.iter().enumerate().map(|(k, got)| &got[of_row(k)]).collect();
        let slices: Vec<&[f64]> = x.iter().map(Vec::as_slice).collect();
        let exact = oracle.at(&slices, len);
        let error = compare(info, dtype, &exact, &x, &got).map_err(|why| failed(&what, why))?;
        worst = worst.max(error);
        for (sums, exact) in sums.iter_mut().zip(&exact) {
            for (sum, term) in sums.iter_mut().zip(exact) {
                let size = sum.size + term.size.max(term.value.abs());
                *sum = Terms { size, ..*sum + *term };
            }
        }
    }
    let of_sums: Vec<&[f64]> = got.iter().enumerate().map(|(k, got)| if is_sum(k) { &got[..] } else { &[] }).collect();
    let what = format!("{rows} rows of {len}, layout {turn}, sums");
    // Their operands are those of all rows.
    compare(info, dtype, &sums, &[], &of_sums).map_err(|why| failed(&what, why))?;
    Ok(worst)
}

/// Compares the results of a row with the formula in f64, and returns the largest error in units in the last place, among
/// those where no terms cancel.
///
/// # Errors
/// The first result that is wrong, in words.
fn compare(info: &OpInfo, dtype: DType, exact: &[Vec<Terms>], x: &[Vec<f64>], got: &[&[f64]]) -> Result<f64, String> {
    let mut worst = 0.0_f64;
    for (k, (exact, got)) in exact.iter().zip(got).enumerate() {
        let bound = Bound::of(info, k, dtype);
        for (i, (&terms, &got)) in exact.iter().zip(*got).enumerate() {
            let element: Vec<f64> = x.iter().map(|x| x.get(i).or(x.first()).copied().unwrap_or(0.0)).collect();
            if bound.holds(got, terms.value) {
                let error = (got - terms.value).abs() / ulp_at(bound.dtype, terms.value);
                worst = if error.is_finite() { worst.max(error) } else { worst };
                continue;
            }
            if let Some(why) = bound.wrong(got, terms.value, Some(terms), &element) {
                let result = info.results[k];
                return Err(format!("{result}[{i}] of {element:?} is {got:e}, not {:e}{why}", terms.value));
            }
        }
    }
    Ok(worst)
}

/// The elements of the rows whose slopes are taken.
const LEN: usize = 7;

/// Checks that the gradients of an op are the slopes of its formula, both in f64.
///
/// # Errors
/// The first gradient that is not; a parameter that the op does not take.
pub(super) fn slopes(def: &'static OpDef) -> Result<(), Error> {
    let Some(backward) = def.backward else { return Ok(()) };
    let info = &def.info;
    for set in params::several(info, DType::F32) {
        // A value that is stored in f32 makes steps of its own.
        let (Some(forward), Some(gradients)) =
            (def.row_oracle(DType::F32, &set)?, backward.row_oracle(DType::F32, &set)?)
        else {
            return Ok(());
        };
        let mut random = Random::new(13);
        for _ in 0..8 {
            let mut number = || (0.1 + 2.0 * random.unit()) * if random.unit() < 0.5 { -1.0 } else { 1.0 };
            let x: Vec<Vec<f64>> = (0..info.operands.len())
                .map(|k| {
                    let row = (0..LEN).map(|_| number());
                    // One element at least of a mask is false.
                    let row = row.enumerate().map(|(i, x)| match x {
                        x if info.is_bool(k) => f64::from(u8::from(x > 0.0 && i > 0)),
                        x if !info.operand_has_gradient(k) => x.abs().round(),
                        x => x,
                    });
                    row.take(if info.is_row_operand(k) { 1 } else { LEN }).collect()
                })
                .collect();
            let differentiable: Vec<usize> = (0..info.results.len()).filter(|&k| info.result_has_gradient(k)).collect();
            let grads: Vec<Vec<f64>> = differentiable
                .iter()
                .map(|&k| (0..if info.is_row_result(k) { 1 } else { LEN }).map(|_| number()).collect())
                .collect();
            let value = |x: &[Vec<f64>]| -> f64 {
                let rows: Vec<&[f64]> = x.iter().map(Vec::as_slice).collect();
                let y = forward.at(&rows, LEN);
                let terms = differentiable
                    .iter()
                    .zip(&grads)
                    .flat_map(|(&k, grad)| y[k].iter().zip(grad).map(|(y, grad)| y.value * grad).collect::<Vec<f64>>());
                terms.sum()
            };
            // The gradients read the operands and results that they name.
            let operands: Vec<&[f64]> = x.iter().map(Vec::as_slice).collect();
            let results: Vec<Vec<f64>> =
                forward.at(&operands, LEN).iter().map(|y| y.iter().map(|y| y.value).collect()).collect();
            let read = |name: &&str| {
                let at = |names: &[&str]| names.iter().position(|own| own == name);
                let of_results = || at(info.results).map(|k| &*results[k]);
                at(info.operands).map(|k| operands[k]).or_else(of_results)
            };
            let mut rows: Vec<&[f64]> = grads.iter().map(Vec::as_slice).collect();
            rows.extend(backward.info.operands.iter().skip(grads.len()).filter_map(read));
            let got = gradients.at(&rows, LEN);
            let gradients = (0..info.operands.len()).filter_map(|k| Some((k, &got[info.gradient_of_operand(k)?])));
            for (k, got) in gradients {
                for (i, got) in got.iter().enumerate() {
                    let at = |h: f64| {
                        let mut x = x.clone();
                        x[k][i] += h;
                        value(&x)
                    };
                    let slope = |h: f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                    let (near, far) = (slope(1.0 / 512.0), slope(1.0 / 256.0));
                    let close = |a: f64, b: f64| (a - b).abs() <= 2e-4 * (1.0 + b.abs());
                    if close(near, far) && !close(got.value, near) {
                        return Err(Error::Wrong(format!(
                            "grad_{} of {} is {:.6} in f64 at element {i} of {x:.4?}, but the formula's slope there is \
                             {near:.6}{}",
                            info.operands[k],
                            info.name,
                            got.value,
                            params::shown(info, &set),
                        )));
                    }
                }
            }
        }
    }
    Ok(())
}

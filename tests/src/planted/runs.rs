//! Calls that reach every part of a kernel: sizes, alignments, strides, several vectors a thread, several blocks, numbers
//! as operands, in place. Each gives the bytes that it leaves, those around its result included.

use pointwise::fusion::{Expr, Lazy};
use pointwise::{
    DType, Device, Number, Operand, Philox, Result, Shape, Strategy, Tensor, TensorViewMut,
    kernel::{OpDef, Rng},
    kernels,
};
use pointwise_core::Element;
use pointwise_testkit::layouts::{self, Case, Shaped};
use pointwise_testkit::{Random, calls, inputs, judge, with_element};

/// A call, and what it leaves in memory.
pub type Run = Box<dyn Fn(&Device) -> Result<Vec<u8>> + Send + Sync>;

/// The byte around results.
const GUARD: u8 = 0xA5;
/// The number of elements, and the numbers in front of the first of operand and result.
const SMALL: &[usize] = &[1, 3, 4, 7, 33, 64, 255, 1025, 4096, 4099];
const OFFSETS: &[(usize, usize)] = &[(0, 0), (1, 1), (3, 3), (7, 7), (1, 0), (0, 1), (5, 2), (4, 8)];
/// Several blocks.
const LARGE: &[usize] = &[70_001, 400_003];
/// Bytes of results that fit the emulated device's level-2 cache, and do not beside any operand: all operands then pass
/// through it.
const ROOM: usize = 2_400_000;

/// Elements that lie between a quarter and 4: where formulas take no path for special values.
fn tame(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(n * dtype.size());
    with_element!(dtype, E => for _ in 0..n {
        let x = <E as Element>::from_f64(0.25 + 3.75 * random.unit());
        bytes.extend_from_slice(judge::as_bytes(&x));
    });
    bytes
}

/// The place of a call's elements, for one operand, and its launch.
#[derive(Clone, Copy)]
struct Place {
    n: usize,
    x_at: usize,
    y_at: usize,
    in_place: bool,
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |n, (x_at, y_at)| {
        places.push(Place { n, x_at, y_at, in_place: false });
        if x_at == y_at {
            places.push(Place { n, x_at, y_at, in_place: true });
        }
    };
    for &n in SMALL {
        OFFSETS.iter().for_each(|&at| add(n, at));
    }
    for &n in LARGE {
        [(0, 0), (3, 3), (1, 0)].into_iter().for_each(|at| add(n, at));
    }
    places
}

/// Runs a call from a view of mixed values to a view among guard bytes, or in place.
fn at_place(
    device: &Device,
    (from, to): (DType, DType),
    place: Place,
    run_into: impl FnOnce(&Tensor, TensorViewMut<'_>) -> Result<()>,
    run_inplace: impl FnOnce(TensorViewMut<'_>) -> Result<()>,
) -> Result<Vec<u8>> {
    let Place { n, x_at, y_at, in_place } = place;
    // Every second value is small: another half in place, so that each lane of a vector has large ones.
    let skipped = usize::from(in_place);
    let values = inputs::mixed(from, skipped + x_at + n + 16, 4).split_off(skipped * from.size());
    let mut x = Tensor::from_bytes(device, from, &values, [x_at + n + 16])?;
    if in_place {
        run_inplace(x.view_mut()?.narrow(0, x_at, n)?)?;
        return x.to_bytes();
    }
    let guard = if to == DType::Bool { 1 } else { GUARD };
    let mut y = Tensor::from_bytes(device, to, &vec![guard; (y_at + n + 16) * to.size()], [y_at + n + 16])?;
    run_into(&x, y.view_mut()?.narrow(0, y_at, n)?)?;
    y.to_bytes()
}

/// Calls of a unary op by a strategy.
#[must_use]
pub fn unary(def: &'static OpDef, dtype: DType, strategy: Strategy) -> Vec<Run> {
    let run = |place: Place| -> Run {
        Box::new(move |device| {
            let kernel = def.unary_with(&[]).strategy(strategy);
            let types = (dtype, def.info.result_type(0, dtype));
            let Place { x_at, n, .. } = place;
            let into = |x: &Tensor, y: TensorViewMut<'_>| kernel.run_into(x.view().narrow(0, x_at, n)?, y);
            at_place(device, types, place, into, |x| kernel.run_inplace(x))
        })
    };
    places().into_iter().map(run).collect()
}

/// Calls of a conversion by a strategy.
#[must_use]
pub fn convert(from: DType, to: DType, strategy: Strategy) -> Vec<Run> {
    let run = |place: Place| -> Run {
        Box::new(move |device| {
            let kernel = kernels::to_dtype().strategy(strategy);
            let Place { x_at, n, .. } = place;
            let into = |x: &Tensor, y: TensorViewMut<'_>| kernel.run_into(x.view().narrow(0, x_at, n)?, y);
            at_place(device, (from, to), Place { in_place: false, ..place }, into, |_| Ok(()))
        })
    };
    places().into_iter().filter(|place| !place.in_place).map(run).collect()
}

/// Calls of dropout by vectors, from places whose index is in the middle of a carry, too.
#[must_use]
pub fn dropout(dtype: DType) -> Vec<Run> {
    let drawing = |place: Place, p: f64, from: Philox, is_in_memory: bool| -> Run {
        Box::new(move |device| {
            let memory = Tensor::from_slice(device, &[from.seed, from.offset].map(u64::cast_signed), [2])?;
            let rng = if is_in_memory { Rng::from(&memory) } else { Rng::from(from) };
            let kernel = kernels::dropout(p).strategy(Strategy::RegisterCopy);
            let Place { x_at, n, .. } = place;
            let into = |x: &Tensor, y: TensorViewMut<'_>| kernel.run_into(x.view().narrow(0, x_at, n)?, y, rng);
            at_place(device, (dtype, dtype), place, into, |x| kernel.run_inplace(x, rng))
        })
    };
    let run = |place, p, from| drawing(place, p, from, false);
    let carry = Philox { seed: 0x0123_4567_89AB_CDEF, offset: (1 << 32) - 2 };
    let mut runs = Vec::new();
    // One element, a 1, whose word is the largest that is kept: 1 - p is a number of 24 bits.
    let one = Place { n: 1, x_at: 2, y_at: 2, in_place: false };
    let limit = |seed| Some(Philox::new(seed).word(0)).filter(|word| word & 0xFF == 0xFF && *word < 1 << 31);
    if let Some((seed, word)) = (0..1 << 16).find_map(|seed| Some((seed, limit(seed)?))) {
        let p = 1.0 - (f64::from(word) + 1.0) / 2.0_f64.powi(32);
        runs.extend([false, true].map(|is_in_memory| drawing(one, p, Philox::new(seed), is_in_memory)));
    }
    for place in places() {
        runs.push(run(place, 0.3, Philox::new(5)));
        runs.push(run(place, 0.5, carry));
        if place.n < 2000 {
            [0.0, 1.0, 1e-4].into_iter().for_each(|p| runs.push(run(place, p, carry)));
            [0.5, 1e-4].into_iter().for_each(|p| runs.push(drawing(place, p, carry, true)));
        }
    }
    runs
}

/// Shapes and strides with more elements than [`layouts::cases`], so that a launch has many blocks.
fn large_cases(operands: usize, largest: usize) -> Vec<Case> {
    let whole = || Shaped::WHOLE;
    let ones = |ones: u32| Shaped { ones, ..Shaped::WHOLE };
    let missing = |missing: usize| Shaped { missing, ..Shaped::WHOLE };
    let mut cases = Vec::new();
    let mut add = |shape: &[usize], first: Shaped, last: Shaped, result: Shaped| {
        // The first operand of all lies as `first`, the last as `last`.
        let all = [vec![first; operands - 1], vec![last]].concat();
        cases.push(Case { shape: shape.to_vec(), operands: all, result, seed: 2 * cases.len() as u64 + 1 });
    };
    for n in [70_001, largest] {
        add(&[n], whole(), whole(), whole());
    }
    add(&[70_001], Shaped { offset: 3, ..whole() }, Shaped { offset: 3, ..whole() }, Shaped { offset: 3, ..whole() });
    for n in [1025, 70_001] {
        add(&[n], whole(), ones(1), whole());
        add(&[n], ones(1), whole(), whole());
    }
    for cols in [48, 63, 64, 1024] {
        add(&[701, cols], whole(), missing(1), whole());
        add(&[701, cols], ones(2), whole(), whole());
        add(&[5, 31, 7, cols], whole(), Shaped { missing: 1, ones: 0b010, ..whole() }, whole());
        add(&[5, 31, 7, cols], ones(0b0010), Shaped { missing: 1, ones: 0b010, ..whole() }, whole());
        add(&[3, 5, 2, 7, cols], ones(0b00101), ones(0b01010), whole());
    }
    // Rows with a gap behind each, which do not merge.
    for offset in [16, 32] {
        let gap = || Shaped { offset, ..whole() };
        add(&[1501, 256], gap(), gap(), gap());
        add(&[1501, 256], gap(), missing(1), gap());
        add(&[701, 64], gap(), ones(0b10), gap());
    }
    for rotated in [1, 2, 3] {
        let turned = || Shaped { rotated, ..whole() };
        add(&[37, 53, 61], turned(), whole(), whole());
        add(&[37, 53, 61], whole(), turned(), turned());
        add(&[7, 5, 11, 13, 17], turned(), ones(0b01010), Shaped { rotated: 4, ..whole() });
    }
    for stepped in [1, 2, 3] {
        let every = || Shaped { stepped, ..whole() };
        add(&[301, 67], every(), whole(), whole());
        add(&[301, 64], whole(), every(), every());
    }
    add(&[3; 8], ones(0b1010_1010), ones(0b0101_0101), whole());
    add(&[3; 8], Shaped { rotated: 5, ..whole() }, ones(0b1100_1100), Shaped { rotated: 3, ..whole() });
    cases
}

/// Every case, for an op with so many bytes of results an element. The small ones, which are quick, find most.
fn all_cases(operands: usize, bytes: usize) -> impl Iterator<Item = Case> {
    layouts::cases().into_iter().chain(large_cases(operands, ROOM / bytes + 3))
}

/// A number as an operand: none that `pow` has a kernel of its own for.
fn number_of(dtype: DType) -> Number {
    match dtype {
        DType::Bool => Number::Bool(true),
        _ if dtype.is_float() => Number::Float(2.5),
        _ => Number::Int(7),
    }
}

/// Calls of an op of two operands, each one value along rows that are no whole vectors.
pub fn two_columns(def: &'static OpDef, dtype: DType) -> impl Iterator<Item = Run> {
    [5, 6, 7, 9].into_iter().map(move |width| -> Run {
        Box::new(move |device| {
            let column = |seed| Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, 7, seed), [7, 1]);
            let (a, b) = (column(1)?, column(2)?);
            let operands = [Operand::View(a.expand([7, width])?), Operand::View(b.expand([7, width])?)];
            let mut y = Tensor::zeros(device, dtype, [7, width])?;
            calls::run_into(def, &[], Strategy::Auto, &operands, vec![y.view_mut()?])?;
            y.to_bytes()
        })
    })
}

/// Calls of an op by a strategy, on views of all shapes and strides.
#[must_use]
pub fn strided(def: &'static OpDef, dtype: DType, strategy: Strategy) -> Vec<Run> {
    let bytes = (0..def.info.results.len()).map(|k| def.info.result_type(k, dtype).size()).sum();
    all_cases(def.info.operands.len(), bytes)
        .map(|case| -> Run { Box::new(move |device| layouts::outcome(device, def, dtype, strategy, &case)) })
        .collect()
}

/// Calls of an op of several operands by a strategy, of whichever class the operands allow.
#[must_use]
pub fn several(def: &'static OpDef, dtype: DType, strategy: Strategy) -> Vec<Run> {
    let count = def.info.operands.len();
    let operand_type = move |k: usize| def.info.operand_type(k, dtype);
    let result_types: Vec<DType> = (0..def.info.results.len()).map(|k| def.info.result_type(k, dtype)).collect();
    let mut runs = strided(def, dtype, strategy);
    // Special values, all kinds of values, and those that no formula treats apart; each operand a number once.
    type Values = fn(DType, usize, u64) -> Vec<u8>;
    for (values, n) in [(inputs::mixed as Values, 1031), (tame as Values, 1031), (tame as Values, 70_001)] {
        for number in (0..=count).map(|k| Some(k).filter(|&k| k < count)) {
            for offset in [0, 3] {
                let result_types = result_types.clone();
                runs.push(Box::new(move |device| {
                    let mut tensors = Vec::new();
                    for k in 0..count {
                        let dtype = operand_type(k);
                        let bytes = values(dtype, n + offset, 2 * k as u64 + 2);
                        tensors.push(Tensor::from_bytes(device, dtype, &bytes, [n + offset])?);
                    }
                    let mut operands = Vec::new();
                    for (k, tensor) in tensors.iter().enumerate() {
                        operands.push(if number == Some(k) {
                            Operand::from(number_of(operand_type(k)))
                        } else {
                            Operand::View(tensor.view().narrow(0, offset, n)?)
                        });
                    }
                    let mut results = Vec::new();
                    for &dtype in &result_types {
                        let guards = vec![GUARD; (n + 32) * dtype.size()];
                        results.push(Tensor::from_bytes(device, dtype, &guards, [n + 32])?);
                    }
                    let targets = results.iter_mut().map(|y| y.view_mut()?.narrow(0, offset, n));
                    let targets = targets.collect::<pointwise::Result<Vec<_>>>()?;
                    calls::run_into(def, &[], strategy, &operands, targets)?;
                    Ok(results.iter().map(Tensor::to_bytes).collect::<pointwise::Result<Vec<_>>>()?.concat())
                }));
            }
        }
    }
    runs
}

/// How the rows of a call lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RowsLie {
    /// One after another.
    Dense,
    /// With an element before each.
    Apart,
    /// Each is one element, that of every place in it.
    Once,
}

/// Calls of an op on rows of these lengths that lie so. The floats of every second call are negative.
#[must_use]
pub fn rows(def: &'static OpDef, dtype: DType, lengths: &[usize], lie: RowsLie) -> Vec<Run> {
    let info = &def.info;
    let call = move |rows: usize, len: usize, is_negative: bool| -> Run {
        Box::new(move |device| {
            let mut tensors = Vec::new();
            for k in 0..info.operands.len() {
                let of = info.operand_type(k, dtype);
                let shape = match lie {
                    _ if info.is_row_operand(k) => vec![rows],
                    RowsLie::Dense => vec![rows, len],
                    RowsLie::Apart => vec![rows, len + 1],
                    RowsLie::Once => vec![rows, 1],
                };
                let mut bytes = tame(of, shape.iter().product(), k as u64 + 1);
                if is_negative && of.is_float() {
                    bytes.iter_mut().skip(of.size() - 1).step_by(of.size()).for_each(|byte| *byte ^= 0x80);
                }
                tensors.push(Tensor::from_bytes(device, of, &bytes, shape)?);
            }
            let mut operands = Vec::new();
            for (k, tensor) in tensors.iter().enumerate() {
                operands.push(Operand::View(match lie {
                    _ if info.is_row_operand(k) => tensor.view(),
                    RowsLie::Dense => tensor.view(),
                    RowsLie::Apart => tensor.view().narrow(1, 1, len)?,
                    RowsLie::Once => tensor.view().expand([rows, len])?,
                }));
            }
            let mut results = Vec::new();
            for k in 0..info.results.len() {
                let of = info.result_type(k, dtype);
                let n = if info.is_row_result(k) { rows } else { rows * len };
                results.push(Tensor::from_bytes(device, of, &vec![GUARD; (n + 32) * of.size()], [n + 32])?);
            }
            let mut targets = Vec::new();
            for (k, y) in results.iter_mut().enumerate() {
                let shape = if info.is_row_result(k) { vec![rows] } else { vec![rows, len] };
                targets.push(y.view_mut()?.narrow(0, 16, shape.iter().product())?.reshape(shape)?);
            }
            calls::run_into(def, &[], Strategy::Auto, &operands, targets)?;
            Ok(results.iter().map(Tensor::to_bytes).collect::<Result<Vec<_>>>()?.concat())
        })
    };
    lengths.iter().flat_map(|&len| [call(5, len, false), call(2, len, true)]).collect()
}

/// Calls of gradients of weights, which are one row, on operands of these shapes.
#[must_use]
pub fn sums(def: &'static OpDef, dtype: DType, shapes: &[[usize; 2]]) -> Vec<Run> {
    let info = &def.info;
    let call = move |[rows, len]: [usize; 2], most: usize| -> Run {
        Box::new(move |device| {
            let mut tensors = Vec::new();
            for k in 0..info.operands.len() {
                let shape = if info.is_weight(k) { vec![len] } else { vec![rows, most.min(len)] };
                let bytes = tame(dtype, shape.iter().product(), k as u64 + 1);
                tensors.push(Tensor::from_bytes(device, dtype, &bytes, shape)?);
            }
            let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
            let shapes = def.kernel(&[]).results(&operands)?;
            let guarded = |(dtype, shape): &(DType, Shape)| {
                let n = shape.numel() + 32;
                Tensor::from_bytes(device, *dtype, &vec![GUARD; n * dtype.size()], [n])
            };
            let mut results = shapes.iter().map(guarded).collect::<Result<Vec<_>>>()?;
            let mut targets = Vec::new();
            for (y, (_, shape)) in results.iter_mut().zip(&shapes) {
                targets.push(y.view_mut()?.narrow(0, 16, shape.numel())?.reshape(*shape)?);
            }
            calls::run_into(def, &[], Strategy::Auto, &operands, targets)?;
            Ok(results.iter().map(Tensor::to_bytes).collect::<Result<Vec<_>>>()?.concat())
        })
    };
    // Operands other than weights have all elements, or one for each row.
    shapes.iter().flat_map(|&shape| [call(shape, usize::MAX), call(shape, 1)]).collect()
}

/// Calls of a fused kernel on elements, whose operands are a matrix, a row and a column; and its text. All are of one structure.
#[must_use]
pub fn fused_elements() -> (String, Vec<Run>) {
    let call = |rows: usize, columns: usize| -> Run {
        Box::new(move |device| {
            let [x, row, column] = fused_operands(device, DType::BF16, rows, columns)?;
            into_guarded(device, DType::BF16, &[rows, columns], |y| fused_gate(&x, &row, &column).eval_into(y))
        })
    };
    let text = fused_operands(&Device::cpu(), DType::BF16, 3, 64)
        .and_then(|[x, row, column]| fused_gate(&x, &row, &column).ptx(90))
        .unwrap_or_default();
    (text, [(3, 64), (5, 16), (300, 64), (70, 1032)].into_iter().map(|(rows, columns)| call(rows, columns)).collect())
}

/// Calls of a fused softmax of rows of these lengths, which are of one structure; and its text.
#[must_use]
pub fn fused_rows(lengths: &[usize]) -> (String, Vec<Run>) {
    let call = |rows: usize, len: usize| -> Run {
        Box::new(move |device| {
            let [x, weight, _] = fused_operands(device, DType::F32, rows, len)?;
            into_guarded(device, DType::F32, &[rows, len], |y| fused_softmax(&x, &weight).eval_into(y))
        })
    };
    let text = fused_operands(&Device::cpu(), DType::F32, 3, lengths[0])
        .and_then(|[x, weight, _]| fused_softmax(&x, &weight).ptx(90))
        .unwrap_or_default();
    (text, lengths.iter().flat_map(|&len| [call(3, len), call(2, len)]).collect())
}

fn fused_operands(device: &Device, dtype: DType, rows: usize, columns: usize) -> Result<[Tensor; 3]> {
    let tensor =
        |shape: &[usize], seed| Tensor::from_bytes(device, dtype, &tame(dtype, shape.iter().product(), seed), shape);
    Ok([tensor(&[rows, columns], 1)?, tensor(&[columns], 2)?, tensor(&[rows, 1], 3)?])
}

fn fused_gate<'a>(x: &'a Tensor, row: &'a Tensor, column: &'a Tensor) -> Expr<'a> {
    (x.lazy() - row).silu() * column + x
}

fn fused_softmax<'a>(x: &'a Tensor, weight: &'a Tensor) -> Expr<'a> {
    let x = x.lazy() * weight;
    let e = (&x - x.row_max()).exp();
    &e / e.row_sum()
}

/// Runs a call on a result among guard bytes. Returns all of them.
fn into_guarded(
    device: &Device,
    dtype: DType,
    shape: &[usize],
    run: impl FnOnce(TensorViewMut<'_>) -> Result<()>,
) -> Result<Vec<u8>> {
    let (n, around): (usize, usize) = (shape.iter().product(), 16);
    let all = n + 2 * around;
    let mut y = Tensor::from_bytes(device, dtype, &vec![GUARD; all * dtype.size()], [all])?;
    run(y.view_mut()?.narrow(0, around, n)?.reshape(shape)?)?;
    y.to_bytes()
}

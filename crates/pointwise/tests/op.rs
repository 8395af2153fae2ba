//! `#[op]` on the host: functions, kernel objects, data, gradients. Kernels for these ops are not built: they run on the
//! CPU. The examples' tests run kernels.
#![forbid(unsafe_code)]

use pointwise::info::{Accuracy, ParamKind, declared_ops};
use pointwise::kernel::{At, OpDef};
use pointwise::prelude::*;

/// `x + sin^2(a x) / a`.
#[op(floats, ulp = 8)]
fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
    let s = (a * x).sin();
    x + s * s / a
}

/// Every kind of operand, parameter and result.
#[op(f32, bf16, exact, results(y, is_kept, rest), grad_ulp = 6)]
fn every_kind<T: Real>(
    x: T,
    keep: bool,
    y: T,
    bits: RandomWord,
    #[param(default = 0.5, probability)] p: T,
    #[param(default = -2)] whole: i64,
    #[param(default = true)] flag: bool,
    #[param] limit: Option<T>,
) -> (T, bool, T) {
    let is_kept = keep & bits.is_at_most(u32::MAX / 2);
    let x = if let Some(limit) = limit { x.minimum(limit) } else { x };
    let factor = if flag { T::constant(whole as f64) } else { T::ONE };
    let sum = x * factor + y * p;
    (if is_kept { sum } else { T::ZERO }, is_kept, y)
}

/// Integers wrap.
#[op(floats, ints, exact)]
fn square_sum<T: Num>(a: T, b: T) -> T {
    a * a + b
}

#[op(ints, bool)]
fn differ<T: Bits>(a: T, b: T) -> T {
    a ^ b
}

/// A kink whose gradient is one's own.
#[op(f32, exact, grad = ramp_gradient)]
fn ramp<T: Real>(x: T, #[param(default = 0.0)] at: T) -> T {
    (x - at).maximum(T::ZERO)
}

fn ramp_gradient<T: Real>(grad: T, x: T, at: T) -> T {
    if x >= at { grad } else { T::ZERO }
}

#[op(f32, exact, grad = none)]
fn is_above<T: Real>(x: T, y: T) -> bool {
    x > y
}

/// A gated op with a parameter.
#[op(floats, ulp = 4, gated)]
fn silu_gate<T: Real>(gate: T, value: T, #[param(default = 1.0)] scale: T) -> T {
    scale * gate.silu() * value
}

/// Scale and shift of each channel.
#[op(f32, f16, exact)]
fn affine<T: Real>(#[channel] scale: T, x: T, #[channel] shift: T, keep: bool) -> T {
    if keep { x.mul_add(scale, shift) } else { T::ZERO }
}

/// An op by hand, with a parameter.
#[derive(Clone, Copy)]
struct LeakyRamp<T> {
    slope: T,
}

/// `x`, or a part of it below 0.
#[op(floats, exact, params(slope = 0.25))]
impl<T: Real> UnaryOp<T> for LeakyRamp<T> {
    type Output = T;
    fn apply(self, x: T) -> T {
        if x > T::ZERO { x } else { self.slope * x }
    }
}

#[derive(Clone, Copy)]
struct IsBelow;

#[op(ints, exact)]
impl<T: Num> BinaryOp<T> for IsBelow {
    type Output = bool;
    fn apply(self, a: T, b: T) -> Self::Output {
        a < b
    }
}

/// `x` where a mask says so.
#[op(f32, i32, i64, exact, grad = none)]
fn masked<T: Value>(x: T, keep: bool) -> T {
    if keep { x } else { T::ZERO }
}

/// 0 on and below the diagonal, `fill` above.
#[op(floats, exact)]
fn causal_mask<T: Real>(row: Index, column: Index, #[param(default = -1.0)] fill: T) -> T {
    if column > row { fill } else { T::ZERO }
}

/// The scores of attention with a bias by distance, and `-inf` for positions to come.
#[op(floats, ulp = 2)]
fn causal_scores<T: Real>(score: T, slope: T, row: Index, column: Index) -> T {
    let back = row as i32 - column as i32;
    if back >= 0 { slope.mul_add(T::constant(f64::from(-back)), score) } else { T::constant(f64::NEG_INFINITY) }
}

/// `100 plane + 10 row + column`, where a coin says so.
#[op(i32, exact, grad = none)]
fn numbered<T: Num>(
    x: T,
    bits: RandomWord,
    plane: Index,
    row: Index,
    column: Index,
    #[param(default = true)] all: bool,
) -> T {
    let number = T::whole(i64::from(100 * plane + 10 * row + column));
    if all || bits.bits() >> 31 == 0 { x + number } else { x }
}

#[op(f32, ulp = 1)]
fn ramp_of_planes<T: Real>(
    plane: Index,
    _row: Index,
    column: Index,
    #[param(default = 2)] step: i64,
    #[param] most: Option<T>,
    #[param(default = false)] backwards: bool,
) -> T {
    let at = T::constant(f64::from(column) * step as f64 + 100.0 * f64::from(plane));
    let at = if backwards { -at } else { at };
    if let Some(most) = most { at.minimum(most) } else { at }
}

fn tensor(values: &[f32]) -> Tensor {
    Tensor::from_slice(&Device::cpu(), values, [values.len()]).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

#[test]
fn functions_and_kernel_objects_are_one_op() {
    let mut x = tensor(&[-1.0, 0.5, 2.0]);
    let expected: Vec<f32> = [-1.0_f32, 0.5, 2.0].iter().map(|&x| Snake::formula(x, 0.5)).collect();
    assert_eq!(values(&snake(&x, 0.5).unwrap()), expected);
    assert_eq!(values(&Snake { a: 0.5 }.kernel().run(&[(&x).into()]).unwrap()[0]), expected);
    let mut y = tensor(&[0.0; 3]);
    snake_into(&x, &mut y, 0.5).unwrap();
    assert_eq!(values(&y), expected);
    let default = values(&snake(&x, None).unwrap());
    assert_eq!(default, values(&snake(&x, 1).unwrap()));
    assert_eq!(default, values(&Snake::default().kernel().run(&[(&x).into()]).unwrap()[0]));
    snake_inplace(&mut x, 0.5).unwrap();
    assert_eq!(values(&x), expected);
    assert!(snake(&Tensor::full(&Device::cpu(), 1_i32, [2]).unwrap(), 0.5).unwrap_err().is_dtype());
}

#[test]
fn the_gradient_of_the_formula_is_its_derivative() {
    let x = tensor(&[-1.0, 0.5, 2.0]);
    let gradient = snake_backward(2.0, &x, 0.5).unwrap();
    for (x, gradient) in [-1.0_f32, 0.5, 2.0].into_iter().zip(values(&gradient)) {
        let exact = 2.0 * (1.0 + x.sin());
        assert!((gradient - exact).abs() <= 4.0 * f32::EPSILON * exact.abs(), "{x}: {gradient}, not {exact}");
    }
    let at_the_kink = ramp_backward(3.0, &tensor(&[-1.0, 0.0, 1.0, 2.0]), 1.0).unwrap();
    assert_eq!(values(&at_the_kink), [0.0, 0.0, 3.0, 3.0]);
    assert_eq!(values(&ramp(&tensor(&[0.5, 2.0]), None).unwrap()), [0.5, 2.0]);
    assert!(Differ::def().backward.is_none() && IsAbove::def().backward.is_none());
    let of_floats = SquareSum::def().backward.expect("floats have a gradient");
    assert!(of_floats.info.types.iter().all(|dtype| dtype.is_float()), "integers have no gradient");
}

#[test]
fn operands_parameters_and_results_of_every_kind() {
    let (x, y) = (tensor(&[1.0, 2.0, 3.0, 4.0]), tensor(&[10.0, 20.0, 30.0, 40.0]));
    let keep = Tensor::from_slice(&Device::cpu(), &[true, false, true, true], [4]).unwrap();
    let rng = Philox::new(7);
    let (sum, is_kept, rest) = every_kind(&x, &keep, &y, 0.25, 3, true, 2.5, rng).unwrap();
    let kept: Vec<bool> = [true, false, true, true]
        .iter()
        .enumerate()
        .map(|(i, keep)| keep & (rng.word(i as u64) <= u32::MAX / 2))
        .collect();
    assert_eq!(is_kept.to_vec::<bool>().unwrap(), kept);
    assert_eq!(values(&rest), [10.0, 20.0, 30.0, 40.0]);
    let expected = [5.5, 11.0, 15.0, 17.5];
    for (i, sum) in values(&sum).into_iter().enumerate() {
        assert_eq!(sum, if kept[i] { expected[i] } else { 0.0 });
    }
    // The gradient of `y` is the sum of what both of its results give; nothing flows where nothing is kept.
    let (of_x, of_y) = every_kind_backward(1.0, 2.0, &x, &keep, &y, 0.25, 3, true, None, rng).unwrap();
    for (i, kept) in kept.into_iter().enumerate() {
        assert_eq!((values(&of_x)[i], values(&of_y)[i]), if kept { (3.0, 2.25) } else { (0.0, 2.0) });
    }
    let (mut y1, mut y2, mut y3) =
        (tensor(&[0.0; 4]), Tensor::full(&Device::cpu(), false, [4]).unwrap(), tensor(&[0.0; 4]));
    every_kind_into(&x, &keep, &y, &mut y1, &mut y2, &mut y3, 0.25, 3, true, 2.5, rng).unwrap();
    assert_eq!((values(&y1), y2.to_vec::<bool>().unwrap()), (values(&sum), is_kept.to_vec::<bool>().unwrap()));
    // Seed and offset from memory.
    let place = Tensor::from_slice(&Device::cpu(), &[7_i64, 0], [2]).unwrap();
    let (again, _, _) = every_kind(&x, &keep, &y, 0.25, 3, true, 2.5, &place).unwrap();
    assert_eq!(values(&again), values(&sum));
    assert!(every_kind(&x, &keep, &y, 0.25, 3, true, 2.5, &x).unwrap_err().is_dtype(), "a seed is an i64");
    let unused = snake(&x, 0.5).unwrap();
    let kernel = Snake { a: 0.5 }.kernel().rng(&x);
    assert_eq!(values(&kernel.run(&[(&x).into()]).unwrap()[0]), values(&unused), "an op that draws nothing ignores it");
    assert!(every_kind(&x, &keep, &y, 1.5, 3, true, None, rng).is_err(), "a probability is at most 1");
    assert!(every_kind(&x, &x, &y, 0.5, 3, true, None, rng).unwrap_err().is_dtype(), "the second is a bool");
}

/// Rows of many vectors, whose masks are no longer than they must be.
#[test]
fn a_mask_may_be_broadcast() {
    let cpu = Device::cpu();
    let (rows, columns) = (4, 4000);
    let masks = |i: usize, j: usize| [true, i.is_multiple_of(2), j.is_multiple_of(3), (i + j).is_multiple_of(3), false];
    for (kind, shape) in [[1, 1], [rows, 1], [1, columns], [rows, columns], [1, 1]].into_iter().enumerate() {
        let mask: Vec<bool> = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| masks(i, j)[kind])).collect();
        let mask = Tensor::from_slice(&cpu, &mask, shape).unwrap();
        let number = Operand::from(masks(0, 0)[kind]);
        for dtype in [DType::F32, DType::I32, DType::I64] {
            let x = Tensor::full(&cpu, 3_i32, [rows, columns]).unwrap().to_dtype(dtype).unwrap();
            let check = |keep: Operand<'_>| {
                let y = masked(&x, keep).unwrap().to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
                for (at, y) in y.into_iter().enumerate() {
                    let keep = masks(at / columns, at % columns)[kind];
                    assert_eq!(y, if keep { 3.0 } else { 0.0 }, "element {at} of {dtype}, mask {kind}");
                }
            };
            check(Operand::from(&mask));
            if mask.numel() == 1 {
                check(number);
            }
        }
    }
}

#[test]
fn a_gated_op_takes_the_halves_of_a_tensor_or_two() {
    let gates = [-1.0_f32, 0.5, 2.0, 0.0];
    let values_of = [3.0_f32, -2.0, 1.0, 5.0];
    let expected: Vec<f32> = gates.iter().zip(values_of).map(|(&g, v)| SiluGate::formula(g, v, 2.0)).collect();
    let (gate, value) = (tensor(&gates), tensor(&values_of));
    assert_eq!(values(&silu_gate_pair(&gate, &value, 2.0).unwrap()), expected);
    // Two rows: each has its gates, then its values.
    let both: Vec<f32> = [&gates[..2], &values_of[..2], &gates[2..], &values_of[2..]].concat();
    let x = Tensor::from_slice(&Device::cpu(), &both, [2, 4]).unwrap();
    let y = silu_gate(&x, 2.0).unwrap();
    assert_eq!((y.shape().to_vec(), values(&y)), (vec![2, 2], expected.clone()));
    let mut y = Tensor::zeros(&Device::cpu(), DType::F32, [2, 2]).unwrap();
    silu_gate_into(&x, &mut y, 2.0).unwrap();
    assert_eq!(values(&y), expected);
    assert_eq!(values(&SiluGate { scale: 2.0 }.kernel().run(&x).unwrap()), expected);
    let mut over = tensor(&gates);
    silu_gate_pair_inplace(&mut over, &value, 2.0).unwrap();
    assert_eq!(values(&over), expected);
    let (of_gate, of_value) = silu_gate_pair_backward(1.0, &gate, &value, 2.0).unwrap();
    let grad = tensor(&[1.0; 4]).reshape([2, 2]).unwrap();
    let of_x = values(&silu_gate_backward(&grad, &x, 2.0).unwrap());
    let (of_gate, of_value) = (values(&of_gate), values(&of_value));
    assert_eq!(of_x, [&of_gate[..2], &of_value[..2], &of_gate[2..], &of_value[2..]].concat());
    let odd = silu_gate(&tensor(&[1.0; 3]), None).unwrap_err();
    assert!(odd.to_string().contains("must be even"), "{odd}");
}

#[test]
fn channels_are_those_of_dimension_1() {
    let cpu = Device::cpu();
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&cpu, &x, [2, 3, 2]).unwrap();
    let (scale, shift) = (tensor(&[1.0, 10.0, 100.0]), tensor(&[0.5]));
    let y = affine(&scale, &x, &shift, true).unwrap();
    let expected: Vec<f32> = (0..12).map(|i| [1.0, 10.0, 100.0][i / 2 % 3] * i as f32 + 0.5).collect();
    assert_eq!((y.shape().to_vec(), values(&y)), (vec![2, 3, 2], expected));
    // A condition that is broadcast makes the shape, too; the gradient has the shape of the result.
    let keep = Tensor::from_slice(&cpu, &[true, false], [2, 1, 1]).unwrap();
    let row = Tensor::from_slice(&cpu, &[1.0_f32, 2.0], [2]).unwrap();
    let y = affine(2.0, &row, 0.0, &keep).unwrap();
    assert_eq!((y.shape().to_vec(), values(&y)), (vec![2, 1, 2], vec![2.0, 4.0, 0.0, 0.0]));
    let (of_scale, of_x, of_shift) = affine_backward(1.0, &scale, &x, &shift, true).unwrap();
    assert_eq!(values(&of_scale), values(&x));
    assert_eq!(values(&of_x)[..6], [1.0, 1.0, 10.0, 10.0, 100.0, 100.0]);
    assert_eq!(values(&of_shift), [1.0; 12]);
    let error = affine(&row, &x, 0.0, true).unwrap_err();
    assert!(error.to_string().contains("operand scale of affine beside a shape of [2, 3, 2]"), "{error}");
    assert_eq!(Affine::def().info.channel_operands, 0b101);
}

#[test]
fn an_impl_by_hand_is_an_op() {
    let x = tensor(&[-2.0, 4.0]);
    assert_eq!(values(&leaky_ramp(&x, None).unwrap()), [-0.5, 4.0]);
    assert_eq!(values(&LeakyRamp { slope: 0.5 }.kernel().run(&[(&x).into()]).unwrap()[0]), [-1.0, 4.0]);
    assert_eq!(values(&leaky_ramp_backward(2.0, &x, 0.5).unwrap()), [1.0, 2.0]);
    let info = &LeakyRamp::def().info;
    assert_eq!((info.name, info.operands, info.doc), ("leaky_ramp", &["x"][..], "`x`, or a part of it below 0."));
    let a = Tensor::from_slice(&Device::cpu(), &[1_i32, 5], [2]).unwrap();
    assert_eq!(is_below(&a, 3).unwrap().to_vec::<bool>().unwrap(), [true, false]);
    assert_eq!(LeakyRamp { slope: 0.5_f32 }.apply(-2.0), -1.0);
}

#[test]
fn formulas_take_indices_beside_operands() {
    let cpu = Device::cpu();
    let score = Tensor::full(&cpu, 1.0_f32, [2, 3, 3]).unwrap();
    let slope = Tensor::from_slice(&cpu, &[1.0_f32, 0.5], [2, 1, 1]).unwrap();
    let (y, inf) = (causal_scores(&score, &slope).unwrap(), f32::NEG_INFINITY);
    assert_eq!(values(&y)[..9], [1.0, inf, inf, 0.0, 1.0, inf, -1.0, 0.0, 1.0]);
    assert_eq!(values(&y)[9..], [1.0, inf, inf, 0.5, 1.0, inf, 0.0, 0.5, 1.0]);
    // The gradient knows the places, too.
    let (of_score, of_slope) = causal_scores_backward(&score, &score, &slope).unwrap();
    assert_eq!(values(&of_score)[..9], [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    assert_eq!(values(&of_slope)[..9], [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, -2.0, -1.0, 0.0]);
    // An operand may lie anyhow; the place is that in the result.
    let turned = Tensor::from_slice(&cpu, &[0.0_f32, 1.0, 2.0, 3.0], [2, 2]).unwrap();
    let turned = turned.view().transpose(0, 1).unwrap();
    assert_eq!(values(&causal_scores(turned, 0.0).unwrap()), [0.0, inf, 1.0, 3.0]);
    let mut over = score.copy().unwrap();
    causal_scores_inplace(&mut over, &slope).unwrap();
    assert_eq!(values(&over), values(&y));
    let mut columns = Tensor::zeros(&cpu, DType::F32, [3, 3]).unwrap();
    let columns = columns.view_mut().unwrap().transpose(0, 1).unwrap();
    let error =
        causal_scores_into(score.view().narrow(0, 0, 1).unwrap().reshape([3, 3]).unwrap(), 1.0, columns).unwrap_err();
    assert!(error.to_string().contains("knows its elements' places"), "{error}");

    // Several blocks: in each, the rows begin at other places.
    let x = Tensor::zeros(&cpu, DType::I32, [3, 7, 1000]).unwrap();
    let place = Philox::new(3);
    let got = numbered(&x, None, place).unwrap().to_vec::<i32>().unwrap();
    let number = |i: i32| 100 * (i / 7000) + 10 * (i / 1000 % 7) + i % 1000;
    assert!((0..21_000).map(number).eq(got));
    let got = numbered(&x, false, place).unwrap().to_vec::<i32>().unwrap();
    let drawn = (0..21_000).map(|i| if place.word(i as u64) >> 31 == 0 { number(i) } else { 0 });
    assert!(drawn.eq(got));
    let oracle = CausalScores::def().oracle(DType::F32, &[]).unwrap().unwrap();
    assert_eq!(oracle.at(&[5.0, 2.0], At::new([0; 2], [0, 3, 1])), [1.0]);
}

#[test]
fn elements_are_made_of_their_indices() {
    let cpu = Device::cpu();
    let mask = causal_mask(&cpu, DType::F32, [3, 3], -5.0).unwrap();
    assert_eq!(values(&mask), [0.0, -5.0, -5.0, 0.0, 0.0, -5.0, 0.0, 0.0, 0.0]);
    let mut half = Tensor::zeros(&cpu, DType::BF16, [2, 2, 2]).unwrap();
    causal_mask_into(&mut half, None).unwrap();
    let half: Vec<f32> = half.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_f32).collect();
    assert_eq!(half, [0.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0]);
    let ramp = ramp_of_planes(&cpu, DType::F32, [2, 1, 3], 3, 105.0, false).unwrap();
    assert_eq!(values(&ramp), [0.0, 3.0, 6.0, 100.0, 103.0, 105.0]);
    assert_eq!(
        values(&RampOfPlanes { step: 1, most: None, backwards: true }.kernel().run(&cpu, DType::F32, [2]).unwrap()),
        [0.0, -1.0]
    );
    let def = CausalMask::def();
    assert_eq!((def.info.name, def.info.operands.len(), def.info.types.len()), ("causal_mask", 0, 5));
    assert_eq!(
        def.index_oracle(DType::F32, &[Number::from(7.5)]).unwrap().map(|oracle| oracle.at([0, 1, 2])),
        Some(7.5)
    );
    assert!(causal_mask(&cpu, DType::I32, [2, 2], None).unwrap_err().is_dtype());
    assert!(causal_mask(&cpu, DType::F32, [1, 1, 1, 1], None).is_err());
    assert!(def.kernel(&[]).run(&[]).unwrap_err().to_string().contains("without a shape"));
    assert!(Snake::def().kernel(&[]).generate(&cpu, DType::F32, [2]).unwrap_err().to_string().contains("operands"));
    let mut two = [Tensor::zeros(&cpu, DType::F32, [1]).unwrap(), Tensor::zeros(&cpu, DType::F32, [1]).unwrap()];
    let [a, b] = &mut two;
    assert!(def.kernel(&[]).run_into(&[], &mut [a.into(), b.into()]).is_err());
}

#[test]
fn other_types() {
    let a = Tensor::from_slice(&Device::cpu(), &[16_i8, -3], [2]).unwrap();
    assert_eq!(square_sum(&a, 1).unwrap().to_vec::<i8>().unwrap(), [1, 10]);
    let b = Tensor::from_slice(&Device::cpu(), &[true, false], [2]).unwrap();
    assert_eq!(differ(&b, true).unwrap().to_vec::<bool>().unwrap(), [false, true]);
    assert_eq!(is_above(&tensor(&[1.0, 3.0]), 2.0).unwrap().to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn ops_are_data() {
    let info = &EveryKind::def().info;
    assert_eq!(
        (info.name, info.operands, info.results),
        ("every_kind", &["x", "keep", "y"][..], &["y", "is_kept", "rest"][..])
    );
    assert_eq!((info.bool_operands(), info.bool_results(), info.is_random()), (0b10, 0b10, true));
    assert_eq!(info.types, [DType::F32, DType::BF16]);
    let params: Vec<_> = info.params.iter().map(|param| (param.name, param.default, param.kind)).collect();
    let kinds = [ParamKind::Probability, ParamKind::Whole, ParamKind::Flag, ParamKind::Open];
    let expected = [("p", 0.5), ("whole", -2.0), ("flag", 1.0), ("limit", 0.0)];
    assert_eq!(params, std::array::from_fn::<_, 4, _>(|k| (expected[k].0, expected[k].1, kinds[k])));
    assert_eq!((info.doc, info.accuracy), ("Every kind of operand, parameter and result.", Accuracy::Exact));
    assert_eq!(Snake::def().info.formula.replace(char::is_whitespace, ""), "lets=(a*x).sin();x+s*s/a");
    let backward = EveryKind::def().backward.unwrap();
    assert_eq!(backward.info.operands, ["grad_y", "grad_rest", "x", "keep", "y"]);
    assert_eq!((backward.info.results, backward.info.accuracy), (&["grad_x", "grad_y"][..], Accuracy::Cancels(6.0)));

    let oracle = |def: &'static OpDef| def.oracle(DType::F32, &[0.5.into()]).unwrap();
    assert_eq!(oracle(Snake::def()).unwrap().at(&[2.0], 0), [2.0 + 1.0_f64.sin().powi(2) / 0.5]);
    let names: Vec<_> = declared_ops(env!("CARGO_PKG_NAME")).iter().map(|def| def.info.name).collect();
    assert_eq!(
        names,
        [
            "affine",
            "causal_mask",
            "causal_scores",
            "differ",
            "every_kind",
            "is_above",
            "is_below",
            "leaky_ramp",
            "masked",
            "numbered",
            "ramp",
            "ramp_of_planes",
            "silu_gate",
            "snake",
            "square_sum"
        ]
    );
    assert!(declared_ops("another package").is_empty());
}

/// Without kernels a call on a GPU says what to do.
#[cfg(feature = "emulator")]
#[test]
fn a_gpu_without_kernels_is_an_error() {
    let x = Tensor::from_slice(&Device::emulated().unwrap(), &[1.0_f32], [1]).unwrap();
    let error = snake(&x, 1.0).unwrap_err();
    assert!(error.is_kernel() && error.to_string().contains("pointwise_build::ops"), "{error}");
}

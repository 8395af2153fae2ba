//! Gradients on the CPU: against their formula in f32 steps, against central differences of the ops at f64, and
//! PyTorch's conventions at kinks.

use pointwise::{DType, Device, ErrorKind, Number, Operand, Strategy, Tensor, info::OpInfo, ops};
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{calls, inputs, params};

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

fn tensor(dtype: DType, bytes: &[u8]) -> Tensor {
    Tensor::from_bytes(&Device::cpu(), dtype, bytes, [bytes.len() / dtype.size()]).unwrap()
}

/// All codes of the 16-bit types, with grads that make every result a product and keep most of them in range.
#[test]
fn unary_gradients_keep_their_bounds() {
    let mut failures = Vec::new();
    for dtype in TYPES {
        let (x, is_all) = match dtype {
            DType::F32 => (inputs::mixed(dtype, 1 << 18, 5), false),
            _ => (inputs::codes(dtype, 0, 0), true),
        };
        let n = x.len() / dtype.size();
        for grad in [1.0_f32, -0.761] {
            let grads = Tensor::full(&Device::cpu(), grad, [n]).unwrap();
            let grads = match dtype {
                DType::F16 => Tensor::full(&Device::cpu(), pointwise::f16::from_f32(grad), [n]).unwrap(),
                DType::BF16 => Tensor::full(&Device::cpu(), pointwise::bf16::from_f32(grad), [n]).unwrap(),
                _ => grads,
            };
            let operands = [grads.to_bytes().unwrap(), x.clone()];
            for def in tests::backward() {
                for set in params::sets(&def.info, dtype) {
                    let y = def.binary_with(&set).run(&grads, &tensor(dtype, &x)).unwrap().to_bytes().unwrap();
                    let report = calls::reports(def, dtype, &set, &operands, &[y]).unwrap()[0];
                    println!("{} {dtype} {grad} {:?}: {report}", def.info.name, set[0]);
                    if !report.keeps(def.info.accuracy, dtype, is_all) {
                        failures.push(format!("{} {dtype} {grad} {set:?}: {report}", def.info.name));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn gradients_of_several_operands_keep_their_bounds() {
    let mut failures = Vec::new();
    for dtype in TYPES {
        for def in tests::gradients() {
            let operands = calls::operands(&def.info, dtype, 7);
            let tensors: Vec<Tensor> =
                operands.iter().enumerate().map(|(k, bytes)| tensor(def.info.operand_type(k, dtype), bytes)).collect();
            for set in params::sets(&def.info, dtype) {
                let results = calls::run(def, &set, Strategy::Auto, &tensors).unwrap();
                let results: Vec<Vec<u8>> = results.iter().map(|y| y.to_bytes().unwrap()).collect();
                for (name, report) in
                    def.info.results.iter().zip(calls::reports(def, dtype, &set, &operands, &results).unwrap())
                {
                    println!("{} {name} {dtype}: {report}", def.info.name);
                }
                failures.extend(calls::check(def, dtype, &set, &operands, &results).err());
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// True if an op should have a gradient: its results are as smooth as its operands.
fn is_differentiable(info: &OpInfo) -> bool {
    info.bool_results() == 0 && info.supports(DType::F32)
}

fn forward_name(info: &OpInfo) -> &'static str {
    info.gradient_of.expect("an op of gradients")
}

#[test]
fn every_differentiable_op_has_a_gradient() {
    let forward = || pointwise::info::all().filter(|def| !def.info.is_gradient() && is_differentiable(&def.info));
    let unary: Vec<_> = forward().filter(|def| def.info.is_unary()).collect();
    assert!(unary.len() > 30);
    for def in &unary {
        let (info, name) = (&def.info, format!("{}_backward", def.info.name));
        let backward = def.backward.unwrap_or_else(|| panic!("{name}"));
        assert_eq!((backward.info.name, backward.info.gradient_of), (&*name, Some(info.name)));
        // Those that do not depend on a parameter have none.
        assert!(backward.info.params.is_empty() || backward.info.params == info.params, "{name}");
        assert_eq!(backward.info.types, TYPES);
    }
    assert_eq!(tests::backward().count(), unary.len());
    let several: Vec<_> = forward().filter(|def| !def.info.is_unary()).map(|def| &def.info).collect();
    for info in &several {
        let name = format!("{}_backward", info.name);
        let gradients = pointwise::info::op(&name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(gradients.info.params, info.params, "{name}");
        assert_eq!(gradients.info.types, TYPES);
        let of = |&k: &usize| info.operands[k] != "condition" && !info.shares_gradient(k);
        let wanted: Vec<_> =
            (0..info.operands.len()).filter(of).map(|k| format!("grad_{}", info.operands[k])).collect();
        assert_eq!(gradients.info.results, wanted, "{name}");
    }
    assert_eq!(tests::gradients().count(), several.len());
}

/// Points that are not at a kink of any op, nor within a step of one.
const POINTS: [f64; 12] = [0.312, 0.871, 1.377, 2.183, 2.719, 4.41, -0.287, -0.913, -1.279, -2.227, -2.871, -5.13];

const GRAD: f64 = 1.7;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

/// The derivative by central differences.
fn slope(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-5;
    // A difference of fourth order.
    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)
}

#[test]
fn unary_gradients_are_central_differences() {
    for def in tests::backward() {
        let forward = pointwise::info::op(forward_name(&def.info)).unwrap();
        for set in params::sets(&def.info, DType::F32) {
            let backward = def.oracle(DType::F32, &set).unwrap().unwrap();
            // `round_decimals` has a parameter that its gradient does not depend on.
            let set = if def.info.params.is_empty() { [Number::Default; MAX_PARAMS] } else { set };
            let oracle = forward.oracle(DType::F32, &set).unwrap().unwrap();
            let mut compared = 0;
            for x in POINTS {
                let expected = GRAD * slope(|x| oracle.of(&[x]), x);
                if expected.is_nan() {
                    continue; // outside the domain
                }
                let got = backward.of(&[GRAD, x]);
                assert!(close(got, expected), "{} {set:?} at {x}: {got}, not {expected}", def.info.name);
                compared += 1;
            }
            assert!(compared >= 6, "{}", def.info.name);
        }
    }
}

#[test]
fn gradients_of_several_operands_are_central_differences() {
    for def in tests::gradients() {
        let forward = pointwise::info::op(forward_name(&def.info)).unwrap();
        for set in params::sets(&def.info, DType::F32) {
            let backward = def.oracle(DType::F32, &set).unwrap().unwrap();
            let oracle = forward.oracle(DType::F32, &set).unwrap().unwrap();
            let mut compared = vec![0; def.info.results.len()];
            for (i, j) in (0..POINTS.len()).flat_map(|i| (0..POINTS.len()).map(move |j| (i, j))) {
                let mut x = [POINTS[i], POINTS[j] + 0.017_13, POINTS[(i + 2 * j + 1) % POINTS.len()] - 0.023_71];
                if forward.info.operands[0] == "condition" {
                    x[0] = f64::from(u8::from(i % 2 == 0));
                }
                let mut operands = [0.0; 4];
                for (slot, name) in operands.iter_mut().zip(def.info.operands) {
                    let at = forward.info.operands.iter().position(|operand| operand == name);
                    *slot = at.map_or(GRAD, |at| x[at]);
                }
                let got = backward.at(&operands, 0);
                for (k, name) in def.info.results.iter().enumerate() {
                    let at =
                        (0..forward.info.operands.len()).find(|&at| forward.info.gradient_of_operand(at) == Some(k));
                    let at = at.unwrap();
                    let along = |value: f64| {
                        let mut x = x;
                        x[at] = value;
                        oracle.of(&x)
                    };
                    let expected = GRAD * slope(along, x[at]);
                    if expected.is_nan() {
                        continue;
                    }
                    assert!(close(got[k], expected), "{name} {set:?} at {x:?}: {}, not {expected}", got[k]);
                    compared[k] += 1;
                }
            }
            assert!(compared.iter().all(|&n| n > 60), "{}: {compared:?}", def.info.name);
        }
    }
}

/// One gradient of a unary op.
fn unary(name: &str, params: &[f64], grad: f32, x: f32) -> f32 {
    let def = tests::backward().find(|def| def.info.name == name).unwrap_or_else(|| panic!("{name}"));
    let mut set = [Number::Default; MAX_PARAMS];
    for (slot, value) in set.iter_mut().zip(params) {
        *slot = Number::Float(*value);
    }
    let of = |value: f32| Tensor::from_slice(&Device::cpu(), &[value], [1]).unwrap();
    def.binary_with(&set).run(&of(grad), &of(x)).unwrap().to_vec::<f32>().unwrap()[0]
}

/// The results of PyTorch's backward kernels where a derivative does not exist, and for NaN.
#[test]
fn kinks_are_those_of_pytorch() {
    let nan = f32::NAN;
    for (name, params, x, expected) in [
        ("relu_backward", &[][..], 0.0, 0.0),
        ("relu_backward", &[], nan, 2.0),
        ("abs_backward", &[], 0.0, 0.0),
        ("abs_backward", &[], nan, 0.0),
        ("sign_backward", &[], nan, 0.0),
        ("hardtanh_backward", &[], 1.0, 0.0),
        ("hardtanh_backward", &[], -1.0, 0.0),
        ("hardtanh_backward", &[], nan, 2.0),
        ("hardtanh_backward", &[-2.0, 3.0], 2.5, 2.0),
        ("clamp_backward", &[-1.0, 1.0], 1.0, 2.0),
        ("clamp_backward", &[-1.0, 1.0], -1.0, 2.0),
        ("clamp_backward", &[-1.0, 1.0], 1.5, 0.0),
        ("clamp_backward", &[-1.0, 1.0], nan, 0.0),
        ("hardsigmoid_backward", &[], 3.0, 0.0),
        ("hardsigmoid_backward", &[], -3.0, 0.0),
        ("hardsigmoid_backward", &[], nan, 0.0),
        ("hardswish_backward", &[], 3.0, 2.0),
        ("hardswish_backward", &[], -3.0, 0.0),
        ("hardswish_backward", &[], 0.0, 1.0),
        ("leaky_relu_backward", &[0.25], 0.0, 0.5),
        ("leaky_relu_backward", &[0.25], nan, 0.5),
        ("elu_backward", &[0.5], 0.0, 1.0),
        ("elu_backward", &[-0.5], 0.0, -1.0),
        ("elu_backward", &[], nan, 2.0),
        ("selu_backward", &[], nan, 2.0 * 1.050_701),
        ("softplus_backward", &[2.0, 4.0], 2.5, 2.0),
        ("softplus_backward", &[2.0, 4.0], 0.0, 1.0),
        ("nan_to_num_backward", &[], nan, 0.0),
        ("nan_to_num_backward", &[], f32::INFINITY, 0.0),
        ("nan_to_num_backward", &[], 7.0, 2.0),
        ("sqrt_backward", &[], 0.0, f32::INFINITY),
        ("rsqrt_backward", &[], 0.0, f32::NEG_INFINITY),
        ("log_backward", &[], -2.0, -1.0),
        ("sigmoid_backward", &[], -80.0, 2.0 * 1.804_851_4e-35),
        ("tanh_backward", &[], 20.0, 8.0 * 4.248_354e-18),
        ("mish_backward", &[], 30.0, 2.0),
    ] {
        let got = unary(name, params, 2.0, x);
        let is_near = (got - expected).abs() <= 1e-6 * expected.abs();
        assert!(got == expected || is_near, "{name} {params:?} at {x}: {got}, not {expected}");
    }
    for name in ["silu_backward", "gelu_backward", "gelu_tanh_backward", "mish_backward"] {
        for x in [f32::NEG_INFINITY, f32::INFINITY, nan] {
            assert!(unary(name, &[], 1.0, x).is_nan(), "{name} at {x}");
        }
    }
    for name in ["exp_backward", "sin_backward", "tanh_backward", "softplus_backward", "log1p_backward"] {
        assert!(unary(name, &[], 1.0, nan).is_nan(), "{name}");
    }
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&Device::cpu(), values, [values.len()]).unwrap()
}

fn pair((a, b): (Tensor, Tensor)) -> (Vec<f32>, Vec<f32>) {
    (a.to_vec().unwrap(), b.to_vec().unwrap())
}

#[test]
fn kinks_of_several_operands_are_those_of_pytorch() {
    let grad = f32s(&[2.0, 2.0, 2.0, 2.0]);
    let (a, b) = (f32s(&[1.0, 3.0, 5.0, f32::NAN]), f32s(&[3.0, 3.0, 3.0, 3.0]));
    let maximum = pair(ops::maximum_backward(&grad, &a, &b).unwrap());
    assert_eq!(maximum, (vec![0.0, 1.0, 2.0, 2.0], vec![2.0, 1.0, 0.0, 2.0]));
    let minimum = pair(ops::minimum_backward(&grad, &a, &b).unwrap());
    assert_eq!(minimum, (vec![2.0, 1.0, 0.0, 2.0], vec![0.0, 1.0, 2.0, 2.0]));
    let remainder = pair(ops::remainder_backward(&grad, &f32s(&[7.0, -7.0, 7.0, 6.0]), 2.0).unwrap());
    assert_eq!(remainder, (vec![2.0; 4], vec![-6.0, 8.0, -6.0, -6.0]));
    let (grad_a, grad_b) =
        pair(ops::pow_backward(&grad, &f32s(&[0.0, 0.0, 0.0, -2.0]), &f32s(&[0.0, 2.0, 1.0, 3.0])).unwrap());
    assert_eq!(grad_a, [0.0, 0.0, 2.0, 24.0]);
    assert!(grad_b[..3] == [0.0; 3] && grad_b[3].is_nan());
    let infinite = pair(ops::pow_backward(&grad, 0.0, &f32s(&[-1.0, 0.0, 0.0, 0.0])).unwrap());
    assert_eq!((infinite.0[0], infinite.1[0]), (f32::NEG_INFINITY, f32::NEG_INFINITY));
    let x = f32s(&[0.0, 1.0, 2.0, f32::NAN]);
    let (grad_x, grad_min, grad_max) = ops::clamp_tensor_backward(&grad, &x, 1.0, 1.5).unwrap();
    assert_eq!(grad_x.to_vec::<f32>().unwrap(), [0.0, 2.0, 0.0, 0.0]);
    assert_eq!(grad_min.to_vec::<f32>().unwrap(), [2.0, 0.0, 0.0, 0.0]);
    assert_eq!(grad_max.to_vec::<f32>().unwrap(), [0.0, 0.0, 2.0, 0.0]);
    // Bounds in the wrong order: all of it is max's.
    let (_, grad_min, grad_max) = ops::clamp_tensor_backward(&grad, &x, 3.0, 1.5).unwrap();
    assert_eq!((grad_min.to_vec::<f32>().unwrap(), grad_max.to_vec::<f32>().unwrap()), (vec![0.0; 4], vec![2.0; 4]));
    let condition = Tensor::from_slice(&Device::cpu(), &[true, false, true, false], [4]).unwrap();
    let selected = pair(ops::where_backward(&grad, &condition).unwrap());
    assert_eq!(selected, (vec![2.0, 0.0, 2.0, 0.0], vec![0.0, 2.0, 0.0, 2.0]));
    let filled = ops::masked_fill_backward(&grad, &condition).unwrap();
    assert_eq!(filled.to_vec::<f32>().unwrap(), [0.0, 2.0, 0.0, 2.0]);
    let sub = pair(ops::sub_backward(&grad, 0.5).unwrap());
    assert_eq!(sub, (vec![2.0; 4], vec![-1.0; 4]));
    assert_eq!(pair(ops::div_trunc_backward(&grad).unwrap()), (vec![0.0; 4], vec![0.0; 4]));
    let prelu = pair(ops::prelu_backward(&grad, &f32s(&[-3.0, 0.0, 1.0, f32::NAN]), &f32s(&[0.5])).unwrap());
    assert_eq!((&prelu.0[..], &prelu.1[..3]), (&[1.0, 1.0, 2.0, 1.0][..], &[-6.0, 0.0, 0.0][..]));
    assert!(prelu.1[3].is_nan());
}

/// The operand that gets the gradient of `clamp(x, min, max)` from PyTorch's autograd: x, l (min), h (max) or none. Rows by
/// min, groups by max, letters by x: -inf, -1, 0, 2, inf, NaN.
const CLAMP: &str = "
    xhhhh- xxhhh- xxxhh- xxxxh- xxxxx- ------
    hhhhhh -xhhh- lxxhh- lxxxh- lxxxx- ------
    hhhhhh hhhhhh --xhh- llxxh- llxxx- ------
    hhhhhh hhhhhh hhhhhh ---xh- lllxx- ------
    hhhhhh hhhhhh hhhhhh hhhhhh ----x- ------
    -hhhh- --hhh- ---hh- ----h- ------ ------
";

/// Ties, bounds in the wrong order, infinities and NaN, of x and of the bounds.
#[test]
fn bounds_get_the_gradients_of_pytorch() {
    let values = [f32::NEG_INFINITY, -1.0, 0.0, 2.0, f32::INFINITY, f32::NAN];
    let mut letters = CLAMP.chars().filter(|letter| !letter.is_whitespace());
    let (mut inputs, mut expected) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for at in 0..values.len().pow(3) {
        let [min, max, x] = [at / 36, at / 6 % 6, at % 6].map(|at| values[at]);
        let letter = letters.next().unwrap();
        for (column, value) in inputs.iter_mut().zip([x, min, max]) {
            column.push(value);
        }
        for (column, name) in expected.iter_mut().zip(['x', 'l', 'h']) {
            column.push(if letter == name { 3.0 } else { 0.0 });
        }
    }
    assert!(letters.next().is_none());
    let device = Device::cpu();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let of = |values: &[f32]| f32s(values).to_dtype(dtype).unwrap();
        let [x, min, max] = inputs.each_ref().map(|values| of(values));
        let grad = Tensor::full(&device, 3.0_f32, [values.len().pow(3)]).unwrap().to_dtype(dtype).unwrap();
        let (of_x, of_min, of_max) = ops::clamp_tensor_backward(&grad, &x, &min, &max).unwrap();
        for (k, (got, expected)) in [of_x, of_min, of_max].iter().zip(&expected).enumerate() {
            assert_eq!(got.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap(), *expected, "{dtype}, gradient {k}");
        }
    }
}

/// The operand that gets the gradient of `clamp` with one bound from PyTorch's autograd: x, b (the bound) or none. Rows by
/// the bound, letters by x, both as in [`CLAMP`]; `clamp(x, min)` first, then `clamp(x, max=max)`.
const CLAMP_ONE: [&str; 2] = ["xxxxx- bxxxx- bbxxx- bbbxx- bbbbx- ------", "xbbbb- xxbbb- xxxbb- xxxxb- xxxxx- ------"];

#[test]
fn a_bound_alone_gets_the_gradients_of_pytorch() {
    let values = [f32::NEG_INFINITY, -1.0, 0.0, 2.0, f32::INFINITY, f32::NAN];
    let count = values.len().pow(2);
    let bounds = f32s(&(0..count).map(|at| values[at / 6]).collect::<Vec<_>>());
    let x = f32s(&(0..count).map(|at| values[at % 6]).collect::<Vec<_>>());
    let grad = Tensor::full(&Device::cpu(), 3.0_f32, [count]).unwrap();
    for (letters, is_min) in CLAMP_ONE.into_iter().zip([true, false]) {
        let letters: Vec<char> = letters.chars().filter(|letter| *letter != ' ').collect();
        let expected =
            |name| letters.iter().map(|&letter| if letter == name { 3.0 } else { 0.0 }).collect::<Vec<f32>>();
        let bound = Some(Operand::from(&bounds));
        let (min, max) = if is_min { (bound, None) } else { (None, bound) };
        let (of_x, of_min, of_max) = ops::clamp_backward(&grad, &x, min, max).unwrap();
        assert_eq!((of_min.is_some(), of_max.is_some()), (is_min, !is_min));
        assert_eq!(of_x.to_vec::<f32>().unwrap(), expected('x'), "x, min: {is_min}");
        assert_eq!(of_min.or(of_max).unwrap().to_vec::<f32>().unwrap(), expected('b'), "the bound, min: {is_min}");
    }
    let both = ops::clamp_backward(&grad, &x, &bounds, &bounds).unwrap();
    let (of_x, of_min, of_max) = ops::clamp_tensor_backward(&grad, &x, &bounds, &bounds).unwrap();
    for (a, b) in [(both.0, of_x), (both.1.unwrap(), of_min), (both.2.unwrap(), of_max)] {
        assert_eq!(a.to_bytes().unwrap(), b.to_bytes().unwrap());
    }
    let error = ops::clamp_backward(&grad, &x, None, None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Parameter { .. }), "{error}");
}

#[test]
fn gradients_have_the_broadcast_shape() {
    let device = Device::cpu();
    let a = Tensor::from_slice(&device, &[1.0_f32, 2.0], [2, 1]).unwrap();
    let b = Tensor::from_slice(&device, &[10.0_f32, 20.0, 30.0], [3]).unwrap();
    let grad = Tensor::from_slice(&device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let (grad_a, grad_b) = ops::mul_backward(&grad, &a, &b).unwrap();
    assert_eq!((&**grad_a.shape(), &**grad_b.shape()), (&[2, 3][..], &[2, 3][..]));
    assert_eq!(grad_a.to_vec::<f32>().unwrap(), [10.0, 40.0, 90.0, 40.0, 100.0, 180.0]);
    assert_eq!(grad_b.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 8.0, 10.0, 12.0]);
    // A channel's weight; its gradient has the shape of x.
    let x = Tensor::from_slice(&device, &[-1.0_f32, -2.0, -3.0, 4.0, 5.0, -6.0], [1, 2, 3]).unwrap();
    let weight = Tensor::from_slice(&device, &[0.5_f32, 0.25], [2]).unwrap();
    let grad = Tensor::full(&device, 1.0_f32, [1, 2, 3]).unwrap();
    let (grad_x, grad_weight) = ops::prelu_backward(&grad, &x, &weight).unwrap();
    assert_eq!(grad_x.to_vec::<f32>().unwrap(), [0.5, 0.5, 0.5, 1.0, 1.0, 0.25]);
    assert_eq!(grad_weight.to_vec::<f32>().unwrap(), [-1.0, -2.0, -3.0, 0.0, 0.0, -6.0]);
    let empty = Tensor::zeros(&device, DType::F32, [0, 3]).unwrap();
    assert_eq!(&**ops::mul_backward(&empty, &empty, &b).unwrap().1.shape(), [0, 3]);
}

#[test]
fn gated_gradients_fill_both_halves() {
    let device = Device::cpu();
    for (rows, half) in [(1, 1), (3, 5), (4, 16), (2, 0)] {
        let mixed = |n: usize, seed| inputs::mixed(DType::F32, n, seed);
        let grad = Tensor::from_bytes(&device, DType::F32, &mixed(rows * half, 1), [rows, half]).unwrap();
        let x = Tensor::from_bytes(&device, DType::F32, &mixed(rows * half * 2, 2), [rows, 2 * half]).unwrap();
        let (gate, value) = (x.view().narrow(1, 0, half).unwrap(), x.view().narrow(1, half, half).unwrap());
        for def in tests::gradients().filter(|def| def.takes_halves()) {
            let none = [Number::Default; MAX_PARAMS];
            let operands = [Operand::from(&grad), Operand::View(gate), Operand::View(value)];
            let apart = def.kernel(&none).run(&operands).unwrap();
            let y = def.gated_gradients(&none).run(&grad, &x).unwrap();
            assert_eq!(y.shape(), x.shape());
            let mut inplace = x.copy().unwrap();
            // SAFETY: operand and result are the same elements, which is what is tested; the tensor outlives the view.
            let alias = unsafe {
                let view = inplace.view();
                pointwise::TensorView::from_raw_parts(
                    &device,
                    view.device_ptr(),
                    DType::F32,
                    *view.shape(),
                    view.strides(),
                )
            }
            .unwrap();
            def.gated_gradients(&none).run_into(&grad, alias, &mut inplace).unwrap();
            for (k, part) in apart.iter().enumerate() {
                for y in [&y, &inplace] {
                    let got = y.view().narrow(1, k * half, half).unwrap().to_bytes().unwrap();
                    assert!(pointwise_testkit::judge::same_bits(DType::F32, &got, &part.to_bytes().unwrap()).is_none());
                }
            }
        }
    }
}

#[test]
fn results_may_replace_operands() {
    let device = Device::cpu();
    let n = 1000;
    let of = |seed| Tensor::from_bytes(&device, DType::F32, &inputs::mixed(DType::F32, n, seed), [n]).unwrap();
    let (grad, mut a, mut b) = (of(1), of(2), of(3));
    let (grad_a, grad_b) = ops::div_backward(&grad, &a, &b).unwrap();
    let raw = |tensor: &Tensor| {
        let view = tensor.view();
        // SAFETY: operand and result are the same elements, which is what is tested; the tensor outlives the view.
        unsafe { pointwise::TensorView::from_raw_parts(&device, view.device_ptr(), DType::F32, [n], &[1]) }.unwrap()
    };
    let (x, y) = (raw(&a), raw(&b));
    ops::div_backward_into(&grad, x, y, &mut a, &mut b).unwrap();
    assert!(
        pointwise_testkit::judge::same_bits(DType::F32, &a.to_bytes().unwrap(), &grad_a.to_bytes().unwrap()).is_none()
    );
    assert!(
        pointwise_testkit::judge::same_bits(DType::F32, &b.to_bytes().unwrap(), &grad_b.to_bytes().unwrap()).is_none()
    );
}

#[test]
fn wrong_calls_are_errors() {
    let device = Device::cpu();
    let zeros = |dtype, n: usize| Tensor::zeros(&device, dtype, [n]).unwrap();
    let (x, short) = (zeros(DType::F32, 4), zeros(DType::F32, 3));
    let kind = |result: pointwise::Result<(Tensor, Tensor)>| result.unwrap_err();
    assert!(matches!(kind(ops::mul_backward(&x, &x, &short)).kind(), ErrorKind::Broadcast { .. }));
    assert!(matches!(kind(ops::mul_backward(&x, &x, &zeros(DType::F16, 4))).kind(), ErrorKind::DType { .. }));
    let whole = zeros(DType::I32, 4);
    assert!(matches!(kind(ops::mul_backward(&whole, &whole, &whole)).kind(), ErrorKind::DType { .. }));
    let eight = zeros(DType::F8E4M3, 4);
    assert!(matches!(kind(ops::mul_backward(&eight, &eight, &eight)).kind(), ErrorKind::DType { .. }));
    assert!(matches!(kind(ops::mul_backward(1.0, 2.0, 3.0)).kind(), ErrorKind::Unsupported { .. }));
    assert!(matches!(kind(ops::mul_backward(&x, &x, Number::Default)).kind(), ErrorKind::Parameter { .. }));
    assert!(matches!(kind(ops::where_backward(&x, &x)).kind(), ErrorKind::DType { .. }));
    let channels = Tensor::zeros(&device, DType::F32, [2, 4]).unwrap();
    assert!(matches!(kind(ops::prelu_backward(&channels, &channels, &short)).kind(), ErrorKind::ShapeMismatch { .. }));
    let odd = ops::silu_and_mul_backward(&x, &short).unwrap_err();
    assert!(matches!(odd.kind(), ErrorKind::Unsupported { .. }), "{odd}");
    let rows = Tensor::zeros(&device, DType::F32, [3, 2]).unwrap();
    let large = ops::silu_and_mul_backward(&rows, &x).unwrap_err();
    assert!(matches!(large.kind(), ErrorKind::ShapeMismatch { .. }), "{large}");

    let (mut p, mut q) = (zeros(DType::F32, 4), zeros(DType::F32, 3));
    let error = ops::mul_backward_into(&x, &x, &x, &mut p, &mut q).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShapeMismatch { .. }) && error.to_string().contains("grad_b"), "{error}");
    let mut h = zeros(DType::F16, 4);
    let error = ops::mul_backward_into(&x, &x, &x, &mut p, &mut h).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    let kernel = pointwise::kernels::mul_backward();
    let operands = [Operand::from(&x), Operand::from(&x), Operand::from(&x)];
    let error = kernel.run_into(&operands, &mut [p.view_mut().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("mul_backward with 1 results"), "{error}");
    let error = kernel.run(&operands[..2]).unwrap_err();
    assert!(error.to_string().contains("grad, a, b"), "{error}");
    // Results that share memory, and a result that is part of an operand's.
    let mut both = zeros(DType::F32, 6);
    let alias = both.view();
    // SAFETY: nothing is written: the call is refused.
    let shifted =
        unsafe { pointwise::TensorViewMut::from_raw_parts(&device, alias.device_ptr(), DType::F32, [6], &[1]) }
            .unwrap()
            .narrow(0, 2, 4)
            .unwrap();
    let front = both.view_mut().unwrap().narrow(0, 0, 4).unwrap();
    let error = kernel.run_into(&operands, &mut [front, shifted]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
}

//! The ops against their own formulas in f64, on the CPU and on a GPU or in the emulator; and tests of what is special
//! in each form.

use every_form::ops::{self, ComplexProducts, SquaredRelu};
use pointwise::{DType, Device, Operand, Tensor};

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

/// Returns numbers between -2 and 2.
fn numbers(device: &Device, shape: &[usize], seed: u32) -> Tensor {
    let n: usize = shape.iter().product();
    let number = |i: u32| ((i ^ seed).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 22) as f32 - 2.0;
    Tensor::from_slice(device, &(0..n as u32).map(number).collect::<Vec<_>>(), shape).unwrap()
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

#[test]
fn ops_keep_their_bounds() {
    pointwise_testkit::check_all("every-form", &devices()).unwrap();
}

/// The halves of one tensor give what two tensors give, forward and backward.
#[test]
fn halves_are_a_pair() {
    for device in devices() {
        let x = numbers(&device, &[33, 2 * 72], 1);
        let halves = [0, 72].map(|start| x.view().narrow(1, start, 72).unwrap());
        let (y, pair) = (ops::swish_gate(&x, 1.5).unwrap(), ops::swish_gate_pair(halves[0], halves[1], 1.5).unwrap());
        assert_eq!((y.shape(), values(&y)), (pair.shape(), values(&pair)));
        let grad = ops::swish_gate_backward(&y, &x, 1.5).unwrap();
        let (of_gate, of_value) = ops::swish_gate_pair_backward(&y, halves[0], halves[1], 1.5).unwrap();
        for (start, part) in [(0, of_gate), (72, of_value)] {
            let half = grad.view().narrow(1, start, 72).unwrap().to_tensor().unwrap();
            assert_eq!(values(&half), values(&part), "{device}");
        }
    }
}

#[test]
fn a_gradient_reads_results() {
    for device in devices() {
        let x = numbers(&device, &[5, 40], 3);
        let y = ops::logistic(&x).unwrap();
        let grad = ops::logistic_backward(&x, &y).unwrap();
        for ((grad, x), y) in values(&grad).into_iter().zip(values(&x)).zip(values(&y)) {
            assert!((grad - x * y * (1.0 - y)).abs() <= 1e-6 * x.abs(), "{device}: {grad} at {x}");
        }
        let (sums, largest, totals) = ops::rows::log_of_sum(&x).unwrap();
        let shares = ops::rows::log_of_sum_backward(&sums, &x, &largest, &totals).unwrap();
        // The gradients of a row are the row's, shared out.
        for (row, sum) in values(&shares).chunks(40).zip(values(&sums)) {
            assert!((row.iter().sum::<f32>() - sum).abs() <= 1e-5 * sum.abs(), "{device}: {row:?}, not {sum}");
        }
    }
}

#[test]
fn a_channel_is_of_dimension_1() {
    for device in devices() {
        let x = numbers(&device, &[2, 3, 40], 2);
        let scale = Tensor::from_slice(&device, &[1.0_f32, 2.0, 4.0], [3]).unwrap();
        let y = values(&ops::affine(&x, &scale, 0.5).unwrap());
        for (i, (y, x)) in y.into_iter().zip(values(&x)).enumerate() {
            assert_eq!(y, x.mul_add([1.0, 2.0, 4.0][i / 40 % 3], 0.5), "{device}, element {i}");
        }
    }
}

#[test]
fn a_mask_is_made_of_its_indices() {
    for device in devices() {
        for dtype in [DType::F32, DType::BF16, DType::F8E4M3] {
            let mask = ops::sliding_window(&device, dtype, [2, 21, 48], 3, -1.0).unwrap();
            let mask = values(&pointwise::ops::to_dtype(&mask, DType::F32).unwrap());
            for (i, got) in mask.into_iter().enumerate() {
                let (row, column) = (i as i64 / 48 % 21, i as i64 % 48);
                assert_eq!(got, if (0..3).contains(&(row - column)) { 0.0 } else { -1.0 }, "{device}, {dtype}");
            }
        }
    }
}

/// Two ops of the family in a formula, and the gradient through both.
#[test]
fn a_formula_calls_ops_of_the_family() {
    for device in devices() {
        let x = Tensor::from_slice(&device, &[-1.0_f32, -1.0, 2.0, 2.0], [4]).unwrap();
        let gate = Tensor::from_slice(&device, &[0.0_f32, 3.0, 1.5, -4.0], [4]).unwrap();
        let y = values(&ops::leaky_gate(&x, &gate, 0.5).unwrap());
        let (of_x, of_gate) = ops::leaky_gate_backward(1.0, &x, &gate, 0.5).unwrap();
        for (got, exact) in [
            (y, [-0.25, -0.5, 1.5, 0.0]),
            (values(&of_x), [0.25, 0.5, 0.75, 0.0]),
            (values(&of_gate), [-0.5 / 6.0, 0.0, 2.0 / 6.0, 0.0]),
        ] {
            let is_near = |(got, exact): (&f32, f32)| (got - exact).abs() < 1e-6;
            assert!(got.iter().zip(exact).all(is_near), "{device}: {got:?}, not {exact:?}");
        }
    }
}

#[test]
fn a_struct_of_ones_own_has_parameters() {
    for device in devices() {
        let x = numbers(&device, &[1000], 3);
        let y = values(&ops::squared_relu(&x, 0.5).unwrap());
        assert_eq!(y, values(&SquaredRelu { slope: 0.5 }.kernel().run(&[(&x).into()]).unwrap()[0]));
        let grad = values(&ops::squared_relu_backward(1.0, &x, 0.5).unwrap());
        for ((x, y), grad) in values(&x).into_iter().zip(y).zip(grad) {
            let r = x.max(0.0);
            assert_eq!((y, grad), (0.5 * (r * r), r), "{device}");
        }
    }
}

/// Eight operands, broadcast, four results, and a gradient for each operand.
#[test]
fn products_of_complex_numbers() {
    for device in devices() {
        let x: Vec<Tensor> = (0..8).map(|k| numbers(&device, if k % 2 == 0 { &[37, 19] } else { &[19] }, k)).collect();
        let operands: Vec<Operand<'_>> = x.iter().map(Operand::from).collect();
        let results = ComplexProducts.kernel().run(&operands).unwrap();
        let at = |k: usize, i: usize| f64::from(values(&x[k])[if k.is_multiple_of(2) { i } else { i % 19 }]);
        let product = |k: usize, i: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|part| at(k + part, i));
            (a * c - b * d, a * d + b * c)
        };
        for i in [0, 18, 19, 400, 702] {
            for (k, results) in results.chunks(2).enumerate() {
                let (re, im) = product(4 * k, i);
                assert!((f64::from(values(&results[0])[i]) - re).abs() < 2e-6, "{device}");
                assert!((f64::from(values(&results[1])[i]) - im).abs() < 2e-6, "{device}");
            }
        }
        // d (ab_re + ab_im) / d a_re = b_re + b_im
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|k| &x[k]);
        let grads = ops::complex_products_backward(1.0, 1.0, 0.0, 0.0, a, b, c, d, e, f, g, h).unwrap();
        assert!((f64::from(values(&grads.0)[400]) - (at(2, 400) + at(3, 400))).abs() < 2e-6, "{device}");
        assert_eq!(values(&grads.4)[400], 0.0, "{device}");
    }
}

/// Two steps of `torch.optim.AdamW` (PyTorch 2.11, CPU) on one parameter, 0.5, with the gradients 0.25 and -1.
#[test]
fn adamw_steps_as_torch_does() {
    for device in devices() {
        let one = |value: f32| Tensor::from_slice(&device, &[value], [1]).unwrap();
        let (mut param, mut exp_avg, mut exp_avg_sq) = (one(0.5), one(0.0), one(0.0));
        let mut seen = Vec::new();
        for (t, grad) in [(1, 0.25), (2, -1.0)] {
            let corrections = [1.0 - 0.9_f64.powi(t), (1.0 - 0.999_f64.powi(t)).sqrt()];
            let [lr, decay] = [0.01, 0.1];
            (param, exp_avg, exp_avg_sq) = ops::adamw(
                &param,
                &one(grad),
                &exp_avg,
                &exp_avg_sq,
                lr,
                None,
                None,
                None,
                decay,
                corrections[0],
                corrections[1],
            )
            .unwrap();
            seen.push(values(&param)[0]);
        }
        for (seen, torch) in seen.into_iter().zip(ADAMW) {
            assert!((seen - torch).abs() <= 2.0 * f32::EPSILON, "{device}: {seen}, not {torch}");
        }
    }
}

const ADAMW: [f32; 2] = [0.489_500_02, 0.494_605_54];

#[test]
fn bits_are_shifted_and_masked() {
    let bytes: Vec<u8> = (0..=255).collect();
    for device in devices() {
        let x = Tensor::from_slice(&device, &bytes, [256]).unwrap();
        let (low, high) = ops::nibbles(&x).unwrap();
        let expected: (Vec<u8>, Vec<u8>) = bytes.iter().map(|byte| (byte & 15, byte >> 4)).unzip();
        assert_eq!((low.to_vec::<u8>().unwrap(), high.to_vec::<u8>().unwrap()), expected, "{device}");
        let x = Tensor::from_slice(&device, &bytes.iter().map(|&byte| byte as i8).collect::<Vec<_>>(), [256]).unwrap();
        let high = ops::nibbles(&x).unwrap().1.to_vec::<i8>().unwrap();
        assert!(high.iter().zip(&bytes).all(|(high, byte)| *high == (byte >> 4) as i8), "{device}");
    }
}

//! Ops of several element types: their values in every layout and strategy, the type of a call, and what is refused.

use every_form::ops::mixed::{self, Dequantise, Quantise, Sgd};
use pointwise::kernel::Strategy;
use pointwise::{DType, Device, Operand, Tensor, bf16};

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

fn bytes(device: &Device, n: usize) -> Tensor {
    Tensor::from_slice(device, &(0..n).map(|i| (i * 37 % 256) as u8 as i8).collect::<Vec<_>>(), [n]).unwrap()
}

/// Every length and place in memory, by each strategy: vectors have as many elements as the widest type allows.
#[test]
fn vectors_of_several_types() {
    for device in devices() {
        let (q, scale) = (bytes(&device, 200), Tensor::full(&device, 0.5_f32, [200]).unwrap());
        let all: Vec<f32> = q.to_vec::<i8>().unwrap().into_iter().map(|q| f32::from(q) * 0.5).collect();
        for strategy in [Strategy::Direct, Strategy::ExplicitParallel, Strategy::RegisterCopy, Strategy::Auto] {
            for (start, len) in [(0, 1), (0, 16), (0, 200), (1, 17), (3, 64), (4, 129), (8, 100), (16, 163)] {
                let views = [q.view(), scale.view()].map(|x| Operand::View(x.narrow(0, start, len).unwrap()));
                let kernel = Dequantise.kernel().strategy(strategy);
                for dtype in [DType::F32, DType::BF16] {
                    let y = kernel.clone().of_type(dtype).run(&views).unwrap().remove(0);
                    let y = y.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
                    assert_eq!(y, all[start..][..len], "{device}, {strategy}, {start}, {len}, {dtype}");
                }
            }
        }
    }
}

/// Rows, columns, transposed operands: numbers that bf16 has exactly.
#[test]
fn layouts_of_several_types() {
    for device in devices() {
        let (rows, columns) = (33, 19);
        let q = bytes(&device, rows * columns).reshape([rows, columns]).unwrap();
        let steps = |n: usize| (0..n).map(|i| [0.5_f32, 2.0, 4.0][i % 3]).collect::<Vec<_>>();
        let of_column = Tensor::from_slice(&device, &steps(columns), [columns]).unwrap();
        let of_row = Tensor::from_slice(&device, &steps(rows), [rows, 1]).unwrap();
        let turned = Tensor::from_slice(&device, &steps(rows * columns), [columns, rows]).unwrap();
        let values = q.to_vec::<i8>().unwrap();
        let number = |i: usize| [0.5_f32, 2.0, 4.0][i % 3];
        type Of<'a> = &'a dyn Fn(usize, usize) -> f32;
        let scales: [(Operand<'_>, Of<'_>); 4] = [
            ((&of_column).into(), &|_, column| number(column)),
            ((&of_row).into(), &|row, _| number(row)),
            (turned.view().transpose(0, 1).unwrap().into(), &|row, column| number(column * rows + row)),
            (0.25.into(), &|_, _| 0.25),
        ];
        for (scale, of) in scales {
            let y = mixed::dequantise(&q, scale).unwrap().to_vec::<f32>().unwrap();
            for (i, y) in y.into_iter().enumerate() {
                assert_eq!(y, f32::from(values[i]) * of(i / columns, i % columns), "{device}, element {i}");
            }
        }
    }
}

/// The states stay in f32 where the parameters are bf16, and both are written over their operands.
#[test]
fn a_step_in_place() {
    for device in devices() {
        let n = 1003;
        let start: Vec<bf16> = (0..n).map(|i| bf16::from_f32(i as f32 / 256.0 - 2.0)).collect();
        let mut param = Tensor::from_slice(&device, &start, [n]).unwrap();
        let grad = Tensor::full(&device, bf16::from_f32(1.0), [n]).unwrap();
        let mut velocity = Tensor::zeros(&device, DType::F32, [n]).unwrap();
        let kernel = Sgd { lr: 0.5, momentum: 0.9 }.kernel();
        for _ in 0..3 {
            let operands = [param.view(), velocity.view()].map(|x| x.to_tensor().unwrap());
            let operands = [(&operands[0]).into(), (&grad).into(), (&operands[1]).into()];
            kernel.run_into(&operands, &mut [param.view_mut().unwrap(), velocity.view_mut().unwrap()]).unwrap();
        }
        let velocities = velocity.to_vec::<f32>().unwrap();
        assert!(velocities.iter().all(|v| (v - 2.71).abs() < 1e-6), "{device}: {}", velocities[0]);
        let expected =
            [1.0_f32, 1.9, 2.71].iter().fold(start[700].to_f32(), |x, v| bf16::from_f32(x - 0.5 * v).to_f32());
        assert_eq!(param.to_vec::<bf16>().unwrap()[700].to_f32(), expected, "{device}");
    }
}

/// The gradient by an operand of a fixed type has that type.
#[test]
fn gradients_have_the_types_of_their_operands() {
    for device in devices() {
        let x = Tensor::full(&device, bf16::from_f32(2.0), [3, 64]).unwrap();
        let weight = Tensor::full(&device, 0.5_f32, [64]).unwrap();
        let (of_x, of_weight) = mixed::norm_by_f32_backward(&x, &x, &weight).unwrap();
        assert_eq!([of_x.dtype(), of_weight.dtype()], [DType::BF16, DType::F32]);
        // The normalised value is 1, and the gradient 2.
        assert!(of_weight.to_vec::<f32>().unwrap().iter().all(|grad| (grad - 2.0).abs() < 1e-5), "{device}");
    }
}

#[test]
fn whole_numbers_are_the_nearest() {
    for device in devices() {
        let x = [0.24_f32, 0.25, 0.26, -0.75, 1e9, -1e9, f32::NAN];
        let x = Tensor::from_slice(&device, &x, [7]).unwrap();
        let q = mixed::quantise(&x, 0.5).unwrap().to_vec::<i8>().unwrap();
        assert_eq!(q, [0, 0, 1, -2, 127, -127, 0], "{device}");
        let label = Tensor::from_slice(&device, &[2_i64, -1, 9], [3]).unwrap();
        let rows = Tensor::from_slice(&device, &(0..15).map(|i| i as f32).collect::<Vec<_>>(), [3, 5]).unwrap();
        assert_eq!(mixed::picked(&rows, &label).unwrap().to_vec::<f32>().unwrap(), [2.0, 0.0, 0.0], "{device}");
    }
}

#[test]
fn codes_of_four_bits() {
    for device in devices() {
        let codes: Vec<u8> = (0..=255).collect();
        let codes = Tensor::from_slice(&device, &codes, [4, 64]).unwrap();
        let scale = Tensor::from_slice(&device, &[1.0_f32, 2.0, 0.5, 4.0], [4, 1]).unwrap();
        let scales = [1.0_f32, 2.0, 0.5, 4.0];
        let (upper, lower) = mixed::dequantise_nf4(&codes, &scale).unwrap();
        let nf4 = (mixed::NF4, upper, lower);
        let (lower, upper) = mixed::dequantise_fp4(&codes, &scale).unwrap();
        for (table, upper, lower) in [nf4, (mixed::FP4, upper, lower)] {
            let y = [upper.to_vec::<f32>().unwrap(), lower.to_vec::<f32>().unwrap()].concat();
            for at in 0..256 {
                for (half, code) in [(0, at / 16), (256, at % 16)] {
                    let expected = (table[code] as f32) * scales[at / 64];
                    assert_eq!(y[half + at].to_bits(), expected.to_bits(), "{device}, byte {at}");
                }
            }
        }
    }
}

#[test]
fn the_result_decides_the_type() {
    let cpu = Device::cpu();
    let q = bytes(&cpu, 5);
    assert_eq!(mixed::dequantise(&q, 2.0).unwrap().dtype(), DType::F32);
    let mut y = Tensor::zeros(&cpu, DType::F16, [5]).unwrap();
    mixed::dequantise_into(&q, 2.0, &mut y).unwrap();
    assert_eq!(y.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap()[1], 74.0);
    let plan = Dequantise.kernel().plan(&[(&q).into(), 2.0.into()], &[y.view()]).unwrap();
    assert_eq!(plan.lanes, 4, "f32 is the widest");
}

#[test]
fn other_types_are_refused() {
    let cpu = Device::cpu();
    let (q, x) = (bytes(&cpu, 5), Tensor::zeros(&cpu, DType::F32, [5]).unwrap());
    let message = |result: pointwise::Result<Tensor>| result.unwrap_err().to_string();
    assert!(
        message(mixed::dequantise(&x, &x)).contains("operand q of dequantise"),
        "{}",
        message(mixed::dequantise(&x, &x))
    );
    let half = x.to_dtype(DType::F16).unwrap();
    assert!(message(mixed::dequantise(&q, &half)).contains("f32"));
    assert!(message(mixed::quantise(&q, &x)).contains("i8"));
    assert!(message(mixed::dequantise(300, 2.0)).contains("of numbers alone"));
    let scale = Tensor::full(&cpu, 1.0_f32, [1]).unwrap();
    assert!(message(mixed::dequantise(300, &scale)).contains("300"), "an i8 does not hold it");
    let mut y = Tensor::zeros(&cpu, DType::F32, [5]).unwrap();
    let error =
        Quantise.kernel().run_into(&[(&x).into(), 1.0.into()], &mut [y.view_mut().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("i8"), "{error}");
}

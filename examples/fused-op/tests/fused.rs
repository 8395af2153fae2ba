//! The ops against their formulas in f64: on the CPU, and as kernels on the GPU or, where there is none, in the emulator.

use fused_op::{binary, gated, generator, one_by_one, ops, random, ternary};
use my_fused_kernels::gated::SquaredReluAndMul;
use my_fused_kernels::random::{Jitter, SiluDropoutAdd};
use pointwise::{
    Class, DType, Device, ErrorKind, F8E4M3, Number, Operand, Philox, Strategy, Tensor, Tuner, Variant, bf16,
};
use pointwise_core::{BinaryOp, RandomMapOp};
use pointwise_testkit::Random;

fn devices() -> Vec<Device> {
    Device::for_tests(&fused_op::KERNELS).expect("devices that can be used")
}

/// Numbers between -8 and 8.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| (random.unit() * 16.0 - 8.0) as f32).collect()
}

/// A place whose first words no other test has, in the middle of a carry.
const PLACE: Philox = Philox { seed: 0x0123_4567_89AB_CDEF, offset: (1 << 32) - 2 };

/// `silu_dropout_add` of one element in f64, and the size of its summands.
fn exact(p: f32, [r, g, v]: [f32; 3], index: usize) -> (f64, f64) {
    let operands = [r, g, v].map(f64::from);
    let exact = SiluDropoutAdd { p: f64::from(p) }.apply(operands, PLACE.word(index as u64).into());
    (exact, operands[0].abs() + (exact - operands[0]).abs())
}

fn assert_close(what: &str, got: &[f32], p: f32, operands: [&[f32]; 3]) {
    for (i, &got) in got.iter().enumerate() {
        let (exact, size) = exact(p, operands.map(|x| x[i]), i);
        let bound = 4.0 * f64::from(f32::EPSILON) * size;
        assert!((f64::from(got) - exact).abs() <= bound, "{what}: element {i} is {got:e}, not {exact:e}");
    }
}

#[test]
fn the_fused_formula_keeps_its_bound() {
    for device in devices() {
        // Whole blocks and rests, and enough for every thread of the CPU.
        for n in [0, 1, 3, 4, 5, 8, 17, 255, 1025, 300_001] {
            let [r, g, v] = [1, 2, 3].map(|seed| numbers(n, seed));
            let tensor = |x: &[f32]| Tensor::from_slice(&device, x, [n]).unwrap();
            for p in [0.0, 0.25, 0.1, 1.0] {
                let y = ops::silu_dropout_add(&tensor(&r), &tensor(&g), &tensor(&v), p, PLACE).unwrap();
                let y = y.to_vec::<f32>().unwrap();
                assert_close(&format!("{device}, {n}, p {p}"), &y, p, [&r, &g, &v]);
                if p == 1.0 {
                    assert_eq!(y, r, "everything is dropped");
                }
            }
        }
    }
}

/// A view's index counts, not its address: every offset, number and stride draws the same words.
#[test]
fn words_go_by_the_index_in_the_result() {
    let (rows, cols) = (37, 64);
    let n = rows * cols;
    let [r, g, v] = [4, 5, 6].map(|seed| numbers(n + 16, seed));
    for device in devices() {
        let tensor = |x: &[f32]| Tensor::from_slice(&device, x, [n + 16]).unwrap();
        let (rt, gt, vt) = (tensor(&r), tensor(&g), tensor(&v));
        for strategy in [Strategy::Auto, Strategy::Direct] {
            let kernel = random::kernels::silu_dropout_add(0.25).strategy(strategy);
            // Heads before the first aligned vector, and operands that share no alignment with the result.
            for (from, to) in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (1, 2), (0, 3)] {
                let view = |t: &Tensor, at: usize| t.view().narrow(0, at, n).unwrap().to_tensor().unwrap();
                let mut y = Tensor::full(&device, 7.0_f32, [n + 16]).unwrap();
                let operands = [&rt, &gt, &vt].map(|t| Operand::View(t.view().narrow(0, from, n).unwrap()));
                kernel.run_into(&operands, y.view_mut().narrow(0, to, n).unwrap(), PLACE).unwrap();
                let got = view(&y, to).to_vec::<f32>().unwrap();
                assert_close(&format!("{device}, {from}, {to}"), &got, 0.25, [&r[from..], &g[from..], &v[from..]]);
                let all = y.to_vec::<f32>().unwrap();
                assert!(all[..to].iter().chain(&all[to + n..]).all(|&x| x == 7.0), "wrote outside of the result");
            }
            // A row for all rows, a column for all columns, a number, a transposed operand.
            let shaped = |t: &Tensor, shape: [usize; 2]| -> Tensor {
                let n = shape[0] * shape[1];
                t.view().narrow(0, 0, n).unwrap().reshape(shape).unwrap().to_tensor().unwrap()
            };
            let (matrix, row, column) = (shaped(&rt, [rows, cols]), shaped(&gt, [1, cols]), shaped(&vt, [rows, 1]));
            let y = kernel.run(&[(&matrix).into(), (&row).into(), (&column).into()], PLACE).unwrap();
            let row_of = |i: usize| i / cols;
            let spread_row: Vec<f32> = (0..n).map(|i| g[i % cols]).collect();
            let spread_column: Vec<f32> = (0..n).map(|i| v[row_of(i)]).collect();
            let got = y.to_vec::<f32>().unwrap();
            assert_close(&format!("{device}, broadcast"), &got, 0.25, [&r, &spread_row, &spread_column]);

            let turned = shaped(&gt, [cols, rows]);
            let turned_view = turned.view().transpose(0, 1).unwrap();
            let y = kernel.run(&[(&matrix).into(), turned_view.into(), 2.5.into()], PLACE).unwrap();
            let spread: Vec<f32> = (0..n).map(|i| g[i % cols * rows + row_of(i)]).collect();
            let got = y.to_vec::<f32>().unwrap();
            assert_close(&format!("{device}, transposed"), &got, 0.25, [&r, &spread, &vec![2.5; n]]);
        }
    }
}

#[test]
fn it_drops_what_dropout_drops() {
    let n = 100_003;
    for device in devices() {
        for p in [0.25, 0.1, 1e-4, 0.999] {
            let ones = Tensor::full(&device, 1.0_f32, [n]).unwrap();
            let y = ops::silu_dropout_add(0.0, 20.0, &ones, p, PLACE).unwrap().to_vec::<f32>().unwrap();
            let (_, mask) = pointwise::ops::dropout_with_mask(&ones, p, true, PLACE).unwrap();
            let kept: Vec<bool> = y.iter().map(|&y| y != 0.0).collect();
            assert_eq!(kept, mask.to_vec::<bool>().unwrap(), "{device}, p {p}");
        }
    }
}

/// A `p` that is no f32 counts as the same one for both: as an f64 it would keep an element more here.
#[test]
fn a_probability_is_an_f32() {
    let (n, at, place) = (685_339, 685_338, Philox::new(42));
    for device in devices() {
        let ones = Tensor::full(&device, 1.0_f32, [n]).unwrap();
        let fused = ops::silu_dropout_add(0.0, 20.0, &ones, 0.9, place).unwrap().to_vec::<f32>().unwrap();
        let (_, mask) = pointwise::ops::dropout_with_mask(&ones, 0.9, true, place).unwrap();
        let mask = mask.to_vec::<bool>().unwrap();
        assert!(fused.iter().zip(&mask).all(|(y, &kept)| (*y != 0.0) == kept), "{device}");
        // The word lies between the two thresholds.
        let word = f64::from(place.word(at)) / 2.0_f64.powi(32);
        assert!((word < 1.0 - 0.9) != (word < 1.0 - f64::from(0.9_f32)));
        assert_eq!(mask[at as usize], word < 1.0 - f64::from(0.9_f32), "{device}");
    }
}

/// Thresholds on both sides of an element's word: what lies below its upper half counts, too.
#[test]
fn all_bits_of_a_word_count() {
    let n = 48;
    for device in devices() {
        let ones = Tensor::full(&device, 1.0_f32, [n]).unwrap();
        for i in 0..n {
            // The numbers of 24 bits around it, of which 1 - p is one: at most a half, so that p is one, too.
            let below = PLACE.word(i as u64) >> 8;
            if below >= 1 << 23 {
                continue;
            }
            for (k, is_kept) in [(below, false), (below + 1, true)] {
                let p = 1.0 - k as f32 / (1 << 24) as f32;
                let y = ops::silu_dropout_add(0.0, 20.0, &ones, p, PLACE).unwrap().to_vec::<f32>().unwrap();
                assert_eq!(y[i] != 0.0, is_kept, "{device}, element {i}, p {p}");
                let kept = |j: usize| f64::from(PLACE.word(j as u64)) < f64::from(k) * 256.0;
                assert!((0..n).all(|j| (y[j] != 0.0) == kept(j)), "{device}, p {p}");
            }
        }
    }
}

#[test]
fn one_kernel_is_three_ops() {
    let n = 70_001;
    for device in devices() {
        let [r, g, v] = [7, 8, 9].map(|seed| Tensor::from_slice(&device, &numbers(n, seed), [n]).unwrap());
        let (mut y, mut scratch) =
            (Tensor::zeros(&device, DType::F32, [n]).unwrap(), Tensor::zeros(&device, DType::F32, [n]).unwrap());
        one_by_one(&r, &g, &v, &mut y, &mut scratch, 0.1, PLACE).unwrap();
        let mut fused = r.try_clone().unwrap();
        ops::silu_dropout_add_inplace(&mut fused, &g, &v, 0.1, PLACE).unwrap();
        let sizes: Vec<f32> = r.to_vec().unwrap();
        let dropped: Vec<f32> = scratch.to_vec().unwrap();
        let pairs = fused.to_vec::<f32>().unwrap().into_iter().zip(y.to_vec::<f32>().unwrap());
        for (i, (one, three)) in pairs.enumerate() {
            let size = sizes[i].abs() + dropped[i].abs();
            assert!((one - three).abs() <= 4.0 * f32::EPSILON * size, "{device}, element {i}: {one} and {three}");
        }
    }
}

/// All lanes of the narrower types, their words included.
#[test]
fn noise_of_narrow_types_is_rounded_once() {
    let n = 4_099;
    let x: Vec<f32> = numbers(n, 10).into_iter().map(|x| F8E4M3::from_f32(x).to_f32()).collect();
    for device in devices() {
        let bytes: Vec<u8> = x.iter().map(|&x| F8E4M3::from_f32(x).to_bits()).collect();
        let f8 = Tensor::from_bytes(&device, DType::F8E4M3, &bytes, [n]).unwrap();
        let halves: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
        let half = Tensor::from_slice(&device, &halves, [n]).unwrap();
        for at in [0, 1, 3, 6] {
            let view = |t: &'_ Tensor| -> Tensor { t.view().narrow(0, at, n - at).unwrap().to_tensor().unwrap() };
            let y8 = ops::jitter(&view(&f8), 0.5, PLACE).unwrap().to_bytes().unwrap();
            let mut y16 = half.try_clone().unwrap();
            let target = y16.view_mut().narrow(0, at, n - at).unwrap();
            ops::jitter_inplace(target, 0.5, PLACE).unwrap();
            let y16 = y16.to_vec::<bf16>().unwrap();
            for i in 0..n - at {
                let bits = PLACE.word(i as u64).into();
                let exact = Jitter { width: 0.5_f32 }.apply([x[at + i], 0.0, 0.0], bits);
                assert_eq!(y8[i], F8E4M3::from_f32(exact).to_bits(), "{device}, f8e4m3, element {i} from {at}");
                assert_eq!(y16[at + i], bf16::from_f32(exact), "{device}, bf16, element {i} from {at}");
            }
        }
    }
}

#[test]
fn gated_binary_and_ternary() {
    let (rows, cols) = (33, 40);
    let x = numbers(rows * 2 * cols, 11);
    for device in devices() {
        let t = Tensor::from_slice(&device, &x, [rows, 2 * cols]).unwrap();
        let y = ops::squared_relu_and_mul(&t).unwrap();
        assert_eq!(y.shape(), &[rows, cols]);
        for (i, y) in y.to_vec::<f32>().unwrap().into_iter().enumerate() {
            let (gate, value) = (x[i / cols * 2 * cols + i % cols], x[i / cols * 2 * cols + cols + i % cols]);
            let exact: f64 = SquaredReluAndMul.apply(f64::from(gate), f64::from(value));
            assert!((f64::from(y) - exact).abs() <= 2.0 * f64::from(f32::EPSILON) * exact.abs(), "{device}: {i}");
        }
        let a = Tensor::from_slice(&device, &[-3_i32, 5, i32::MAX], [3]).unwrap();
        assert_eq!(ops::add_relu(&a, 1).unwrap().to_vec::<i32>().unwrap(), [0, 6, 0]);
        let z = Tensor::from_slice(&device, &[1.0_f32, -2.0], [2]).unwrap();
        let y = ops::silu_mul_add(&z, 0.0, &z).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, -2.0]);
    }
}

#[test]
fn a_mask_is_made_of_indices() {
    for device in devices() {
        for (planes, rows, cols) in [(1, 7, 9), (3, 64, 64), (2, 5, 1000)] {
            for dtype in [DType::F32, DType::F16] {
                let y = ops::window_mask(&device, dtype, [planes, rows, cols], 4).unwrap();
                let open = |i: usize| {
                    let (row, column) = (i / cols % rows, i % cols);
                    column <= row && row - column < 4
                };
                let bits = y.to_bytes().unwrap();
                for (i, bytes) in bits.chunks_exact(dtype.size()).enumerate() {
                    let is_zero = bytes.iter().all(|&byte| byte == 0);
                    assert_eq!(is_zero, open(i), "{device}, {dtype}, {planes} x {rows} x {cols}, element {i}");
                }
            }
        }
        // The default window is wider than this.
        let y = ops::window_mask(&device, DType::F32, [2, 2], Number::Default).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, f32::NEG_INFINITY, 0.0, 0.0]);
        assert!(ops::window_mask(&device, DType::F32, [4], 1).is_err());
        assert!(ops::window_mask(&device, DType::I32, [2, 2], 1).unwrap_err().is_dtype());
    }
}

/// A tuner knows ops of one's own, too; what it chooses changes no value.
#[test]
fn tuned_settings_are_used() {
    let n = 1 << 16;
    for device in devices() {
        let x = Tensor::from_slice(&device, &numbers(n, 12), [n]).unwrap();
        let mut y = Tensor::zeros(&device, DType::F32, [n]).unwrap();
        let operands = [Operand::View(x.view()), Operand::View(x.view()), 0.5.into()];
        let kernel = random::kernels::silu_dropout_add(0.25);
        let mut tuner = Tuner::in_memory();
        let choice = tuner.tune_random(&kernel, &operands, &mut y, PLACE);
        if device.is_cpu() {
            assert!(choice.unwrap_err().to_string().starts_with("tuning on the CPU: "));
            continue;
        }
        let choice = choice.unwrap();
        let tuned = kernel.clone().tuned(&tuner);
        let plan = tuned.plan(&operands, &y).unwrap();
        assert_eq!((plan.strategy, plan.threads), (choice.strategy, choice.threads));
        let [plain, tuned] = [&kernel, &tuned].map(|kernel| kernel.run(&operands, PLACE).unwrap().to_bytes().unwrap());
        assert_eq!(plain, tuned);
    }
}

#[test]
fn wrong_calls_are_typed_errors() {
    for device in devices() {
        let x = Tensor::full(&device, 1.0_f32, [4, 6]).unwrap();
        let kernel = random::kernels::silu_dropout_add(0.5);
        let error = kernel.run(&[(&x).into(), (&x).into()], PLACE).unwrap_err();
        assert_eq!(error.to_string(), "silu_dropout_add with 2 operands: it has 3: residual, gate, value");
        let mut y = Tensor::zeros(&device, DType::F32, [6, 4]).unwrap();
        let turned = y.view_mut().transpose(0, 1).unwrap();
        let error = kernel.run_into(&[(&x).into(), (&x).into(), (&x).into()], turned, PLACE).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
        assert!(y.to_vec::<f32>().unwrap().iter().all(|&y| y == 0.0), "nothing is written");
        let integers = Tensor::full(&device, 1_i32, [4]).unwrap();
        assert!(ops::jitter(&integers, 1.0, PLACE).unwrap_err().is_dtype());
        assert!(ops::silu_dropout_add(1.0, 2.0, 3.0, 0.5, PLACE).is_err(), "no tensor decides the type");
    }
}

#[test]
fn every_kernel_was_built_or_none() {
    let maps = random::RANDOM.iter().chain(ternary::TERNARY).chain(binary::BINARY).chain(gated::GATED);
    let mut built = Vec::new();
    for def in maps {
        for &dtype in def.info.types {
            built.extend(Class::ALL.map(|class| (def.entry)(dtype, class).is_some_and(|entry| entry.is_embedded())));
        }
    }
    for def in generator::GENERATORS {
        for &dtype in def.info.types {
            let variants = [Variant::Direct, Variant::RegisterCopy];
            built.extend(variants.map(|variant| (def.entry)(dtype, variant).is_some_and(|entry| entry.is_embedded())));
        }
    }
    assert!(built.iter().all(|&is_built| is_built != fused_op::KERNELS.is_empty()), "{built:?}");
}

/// What a row says of itself: the random word is no operand.
#[test]
fn rows_as_data() {
    let info = &random::definitions::silu_dropout_add.info;
    assert_eq!((info.operands, info.params[0].name), (&["residual", "gate", "value"][..], "p"));
    assert_eq!(generator::definitions::window_mask.info.params[0].default, 1024.0);
}

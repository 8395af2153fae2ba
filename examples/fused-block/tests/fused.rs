//! The ops against their own formulas in f64, on the CPU and on a GPU or in the emulator; and tests that they draw the
//! same as pointwise's dropout, on the CPU and on a GPU.

use fused_block::one_by_one;
use fused_block::ops::{self, SiluDropoutAdd};
use pointwise::{DType, Device, ErrorKind, Operand, Philox, Strategy, Stream, Tensor};

/// A place that no other test uses, where the offset's lower word overflows.
const PLACE: Philox = Philox { seed: 0x0123_4567_89AB_CDEF, offset: (1 << 32) - 2 };

fn devices() -> Vec<Device> {
    let best = Device::best().expect("a GPU that is there works");
    std::iter::once(Device::cpu()).chain(Some(best).filter(Device::is_cuda)).collect()
}

/// Returns numbers between -8 and 8.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    (0..n).map(|i| ((i as u32 ^ seed).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 20) as f32 - 8.0).collect()
}

#[test]
fn ops_keep_their_bounds() {
    let devices = Device::for_tests(pointwise::embed::embedded()).unwrap();
    pointwise_testkit::check_all("fused-block", &devices).unwrap();
}

#[test]
fn it_drops_what_dropout_drops() {
    let n = 100_003;
    for device in devices() {
        for p in [0.25, 0.1, 1e-4, 0.999] {
            let ones = Tensor::full(&device, 1.0_f32, [n]).unwrap();
            let y = ops::silu_dropout_add(0.0, 20.0, &ones, p, PLACE).unwrap().to_vec::<f32>().unwrap();
            let (_, mask) = pointwise::ops::dropout_with_mask(&ones, p, PLACE).unwrap();
            let kept: Vec<bool> = y.iter().map(|&y| y != 0.0).collect();
            assert_eq!(kept, mask.to_vec::<bool>().unwrap(), "{device}, p {p}");
        }
    }
}

/// The backward pass draws the same words as the forward pass.
#[test]
fn the_gradient_drops_what_the_op_drops() {
    let n = 4_099;
    for device in devices() {
        let ones = Tensor::full(&device, 1.0_f32, [n]).unwrap();
        let y = ops::silu_dropout_add(0.0, 20.0, &ones, 0.25, PLACE).unwrap().to_vec::<f32>().unwrap();
        let (of_residual, _, of_value) = ops::silu_dropout_add_backward(2.0, 0.0, 20.0, &ones, 0.25, PLACE).unwrap();
        assert_eq!(of_residual.to_vec::<f32>().unwrap(), vec![2.0; n]);
        for (y, gradient) in y.into_iter().zip(of_value.to_vec::<f32>().unwrap()) {
            assert_eq!(y == 0.0, gradient == 0.0, "{device}: {y}, {gradient}");
        }
    }
}

/// Seed and offset in memory draw the same as in the call, and a graph reads the tensor anew at each launch.
#[test]
fn a_graph_draws_anew_at_each_launch() {
    let n = 4_099;
    let cpu = Device::cpu();
    let ones = |device: &Device| Tensor::full(device, 1.0_f32, [n]).unwrap();
    let is_kept = |y: &Tensor| y.to_vec::<f32>().unwrap().iter().map(|&y| y != 0.0).collect::<Vec<_>>();
    for device in Device::for_tests(pointwise::embed::embedded()).unwrap() {
        let x = ones(&device);
        let mut y = Tensor::zeros(&device, DType::F32, [n]).unwrap();
        let mut place = Tensor::zeros(&device, DType::I64, [2]).unwrap();
        let mut graph = (!device.is_cpu()).then(|| {
            let stream = Stream::new(&device).unwrap();
            let graph = stream.capture(|stream| {
                let kernel = SiluDropoutAdd { p: 0.25 }.kernel().on(stream).rng(&place);
                kernel.run_into(&[0.0.into(), 20.0.into(), (&x).into()], &mut [(&mut y).into()])
            });
            (graph.unwrap(), stream)
        });
        for Philox { seed, offset } in [Philox::new(1), PLACE, Philox { seed: u64::MAX, offset: u64::MAX }] {
            let words = [seed, offset].map(u64::to_ne_bytes).concat();
            place.copy_from_bytes(&words).unwrap();
            match &mut graph {
                Some((graph, stream)) => graph.launch(stream).unwrap(),
                None => ops::silu_dropout_add_into(0.0, 20.0, &x, &mut y, 0.25, &place).unwrap(),
            }
            let expected = ops::silu_dropout_add(0.0, 20.0, &ones(&cpu), 0.25, Philox { seed, offset }).unwrap();
            assert_eq!(is_kept(&y), is_kept(&expected), "{device}, {seed}, {offset}");
            let (_, _, of_value) = ops::silu_dropout_add_backward(2.0, 0.0, 20.0, &x, 0.25, &place).unwrap();
            assert_eq!(is_kept(&of_value), is_kept(&expected), "{device}, {seed}, {offset}: the gradient");
        }
    }
}

/// A view's index counts, not its address: every offset draws the same words.
#[test]
fn words_go_by_the_index_in_the_result() {
    let n = 1_000;
    let x = numbers(n + 16, 4);
    for device in devices() {
        let (x, ones) =
            (Tensor::from_slice(&device, &x, [n + 16]).unwrap(), Tensor::full(&device, 1.0_f32, [n]).unwrap());
        let (_, mask) = pointwise::ops::dropout_with_mask(&ones, 0.25, PLACE).unwrap();
        let mask = mask.to_vec::<bool>().unwrap();
        for strategy in [Strategy::Auto, Strategy::Direct] {
            let kernel = SiluDropoutAdd { p: 0.25 }.kernel().rng(PLACE).strategy(strategy);
            // Heads before the first aligned vector, and operands that share no alignment with the result.
            for (from, to) in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (1, 2), (0, 3)] {
                let mut y = Tensor::full(&device, 7.0_f32, [n + 16]).unwrap();
                let residual = Operand::View(x.view().narrow(0, from, n).unwrap());
                let target = y.view_mut().unwrap().narrow(0, to, n).unwrap();
                kernel.run_into(&[residual, 20.0.into(), (&ones).into()], &mut [target]).unwrap();
                let (y, x) = (y.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
                for i in 0..n {
                    assert_eq!(y[to + i] != x[from + i], mask[i], "{device}, {from}, {to}, element {i}");
                }
                assert!(y[..to].iter().chain(&y[to + n..]).all(|&y| y == 7.0), "wrote outside of the result");
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
        let sizes: Vec<f32> = r.to_vec().unwrap();
        let dropped: Vec<f32> = scratch.to_vec().unwrap();
        let mut fused = r;
        ops::silu_dropout_add_inplace(&mut fused, &g, &v, 0.1_f32, PLACE).unwrap();
        let pairs = fused.to_vec::<f32>().unwrap().into_iter().zip(y.to_vec::<f32>().unwrap());
        for (i, (one, three)) in pairs.enumerate() {
            let size = sizes[i].abs() + dropped[i].abs();
            assert!((one - three).abs() <= 4.0 * f32::EPSILON * size, "{device}, element {i}: {one} and {three}");
        }
    }
}

#[test]
fn wrong_calls_are_typed_errors() {
    for device in devices() {
        let x = Tensor::full(&device, 1.0_f32, [4, 6]).unwrap();
        let kernel = SiluDropoutAdd { p: 0.5 }.kernel();
        let error = kernel.run(&[(&x).into(), (&x).into()]).unwrap_err();
        assert_eq!(error.to_string(), "silu_dropout_add with 2 operands: it has 3: residual, gate, value");
        let mut y = Tensor::zeros(&device, DType::F32, [6, 4]).unwrap();
        let turned = y.view_mut().unwrap().transpose(0, 1).unwrap();
        let error = ops::silu_dropout_add_into(&x, &x, &x, turned, 0.5, PLACE).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
        assert!(y.to_vec::<f32>().unwrap().iter().all(|&y| y == 0.0), "nothing is written");
        assert!(ops::silu_dropout_add(&x, &x, &x, 1.5, PLACE).is_err(), "a probability is at most 1");
        assert!(ops::silu_dropout_add(1.0, 2.0, 3.0, 0.5, PLACE).is_err(), "no tensor decides the type");
    }
}

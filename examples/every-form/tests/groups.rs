//! Rows that are groups of the last dimension: the same bits as the groups one by one, shapes, and what is refused.

use every_form::ops::groups::{self, GroupNormed, GroupQuantised};
use every_form::ops::rows;
use pointwise::{DType, Device, ErrorKind, Operand, Tensor, TensorView};

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

/// Returns numbers between -2 and 2.
fn numbers(device: &Device, dtype: DType, shape: &[usize], seed: u32) -> Tensor {
    let n: usize = shape.iter().product();
    let number = |i: u32| ((i ^ seed).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 22) as f32 - 2.0;
    let x = Tensor::from_slice(device, &(0..n as u32).map(number).collect::<Vec<_>>(), shape).unwrap();
    pointwise::ops::to_dtype(&x, dtype).unwrap()
}

fn bytes(x: &Tensor) -> Vec<u8> {
    x.to_bytes().unwrap()
}

fn reshaped<'a>(x: &'a Tensor, shape: &[usize]) -> TensorView<'a> {
    x.view().reshape(shape).unwrap()
}

#[test]
fn a_group_is_a_row() {
    for device in devices() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let x = numbers(&device, dtype, &[2, 3, 512], 1);
            let (q, scale) = groups::group_quantised(&x).unwrap();
            assert_eq!((q.shape().dims(), q.dtype()), (&[2, 3, 512][..], DType::F8E4M3));
            assert_eq!((scale.shape().dims(), scale.dtype()), (&[2, 3, 4][..], DType::F32));
            // The same of whole rows.
            let (rows, of_rows) = rows::quantised(reshaped(&x, &[2, 3, 4, 128])).unwrap();
            assert_eq!((bytes(&q), bytes(&scale)), (bytes(&rows), bytes(&of_rows)), "{dtype}, {device}");
            // And back: e4m3 has three bits behind the first.
            let y = groups::GroupDequantised.kernel().of_type(DType::F32);
            let y = y.run(&[(&q).into(), (&scale).into()]).unwrap().remove(0);
            let wide = pointwise::ops::to_dtype(&x, DType::F32).unwrap();
            for (x, y) in wide.to_vec::<f32>().unwrap().into_iter().zip(y.to_vec::<f32>().unwrap()) {
                assert!((x - y).abs() <= x.abs() / 16.0 + 1e-4, "{y} of {x}, {dtype}, {device}");
            }
        }
    }
}

#[test]
fn a_weight_has_the_whole_dimension() {
    for device in devices() {
        for dtype in [DType::F32, DType::BF16] {
            let x = numbers(&device, dtype, &[5, 96], 1);
            let [weight, bias] = [2, 3].map(|seed| numbers(&device, dtype, &[96], seed));
            let (y, mean, rstd) = groups::group_normed(&x, &weight, &bias, None).unwrap();
            assert_eq!([y.shape().dims(), mean.shape().dims(), rstd.shape().dims()], [&[5, 96][..], &[5, 3], &[5, 3]]);
            // One group to a row: as if there were no groups.
            let each = [5, 3, 32];
            let (x_each, weight_each, bias_each) =
                (reshaped(&x, &each), reshaped(&weight, &[3, 32]), reshaped(&bias, &[3, 32]));
            let (alone, means, rstds) = groups::group_normed(x_each, weight_each, bias_each, None).unwrap();
            assert_eq!([alone.shape().dims(), means.shape().dims()], [&each[..], &[5, 3, 1]]);
            assert_eq!((bytes(&y), bytes(&mean), bytes(&rstd)), (bytes(&alone), bytes(&means), bytes(&rstds)));

            let (grad_y, grad_mean) = (numbers(&device, dtype, &[5, 96], 4), numbers(&device, dtype, &[5, 3], 5));
            let (grad_x, grad_weight, grad_bias) =
                groups::group_normed_backward(&grad_y, &grad_mean, 0.0, &x, &weight, &bias, None).unwrap();
            let grads = [&grad_x, &grad_weight, &grad_bias];
            assert!(grads.iter().all(|grad| grad.shape().dims() == [5, 96]));
            let (of_x, of_weight, of_bias) = groups::group_normed_backward(
                reshaped(&grad_y, &each),
                reshaped(&grad_mean, &[5, 3, 1]),
                0.0,
                x_each,
                weight_each,
                bias_each,
                None,
            )
            .unwrap();
            assert_eq!(grads.map(bytes), [&of_x, &of_weight, &of_bias].map(bytes), "{dtype}, {device}");
        }
    }
}

#[test]
fn operands_and_results_have_any_outer_strides() {
    for device in devices() {
        let x = numbers(&device, DType::BF16, &[4, 256], 1);
        let (q, scale) = groups::group_quantised(&x).unwrap();
        // Every second row, of a tensor that is there.
        let wide = numbers(&device, DType::BF16, &[8, 256], 1);
        let mut wide_q = Tensor::zeros(&device, DType::F8E4M3, [4, 2, 256]).unwrap();
        let mut wide_scale = Tensor::zeros(&device, DType::F32, [2, 4]).unwrap();
        {
            let x = wide.view().narrow(0, 0, 4).unwrap();
            let q = wide_q.view_mut().unwrap().select(1, 1).unwrap();
            let scale = wide_scale.view_mut().unwrap().transpose(0, 1).unwrap();
            groups::group_quantised_into(x, q, scale).unwrap();
        }
        let got = wide_q.view().select(1, 1).unwrap().to_tensor().unwrap();
        assert_eq!(bytes(&got), bytes(&q));
        let got = wide_scale.view().transpose(0, 1).unwrap().to_tensor().unwrap();
        assert_eq!(bytes(&got), bytes(&scale));
        // Elements that do not lie one after another are copied first; one for all is repeated.
        let turned = numbers(&device, DType::BF16, &[256, 4], 1);
        let straight = turned.view().transpose(0, 1).unwrap().to_tensor().unwrap();
        let of_turned = groups::group_quantised(turned.view().transpose(0, 1).unwrap()).unwrap();
        let of_straight = groups::group_quantised(&straight).unwrap();
        assert_eq!((bytes(&of_turned.0), bytes(&of_turned.1)), (bytes(&of_straight.0), bytes(&of_straight.1)));
        // Over its operand, and without elements.
        let mut y = numbers(&device, DType::F32, &[3, 64], 7);
        let scale = Tensor::from_slice(&device, &[1_i8, 3, -1, 2], [4]).unwrap();
        let apart = groups::group_scaled(&y, &scale).unwrap();
        groups::group_scaled_inplace(&mut y, &scale).unwrap();
        assert_eq!(bytes(&y), bytes(&apart));
        let (q, scale) = groups::group_quantised(&Tensor::zeros(&device, DType::F32, [3, 0]).unwrap()).unwrap();
        assert_eq!((q.shape().dims(), scale.shape().dims()), (&[3, 0][..], &[3, 0][..]));
    }
}

#[test]
fn what_each_group_has_once_is_broadcast() {
    for device in devices() {
        let x = numbers(&device, DType::F32, &[2, 64], 1);
        let of = |shape: &[usize], scales: &[i8]| {
            let scale = Tensor::from_slice(&device, scales, shape).unwrap();
            groups::group_scaled(&x, &scale).unwrap().to_vec::<f32>().unwrap()
        };
        let all = of(&[2, 4], &[2; 8]);
        assert_eq!(all, x.to_vec::<f32>().unwrap().into_iter().map(|x| 2.0 * x).collect::<Vec<_>>());
        assert!(
            of(&[], &[2]) == all && of(&[1], &[2]) == all && of(&[2, 1], &[2; 2]) == all && of(&[4], &[2; 4]) == all
        );
    }
}

#[test]
fn the_last_dimension_is_a_multiple() {
    let cpu = Device::cpu();
    let zeros = |shape: &[usize]| Tensor::zeros(&cpu, DType::F32, shape).unwrap();
    for shape in [&[3, 100][..], &[3, 1], &[]] {
        let error = groups::group_quantised(&zeros(shape)).unwrap_err();
        let ErrorKind::Unsupported { what, advice } = error.kind() else { panic!("{error}") };
        assert!(what.contains("group_quantised of shape") && advice.contains("a multiple of 128"), "{error}");
    }
    let deep = groups::group_quantised(&zeros(&[1, 1, 1, 1, 1, 1, 1, 128])).unwrap_err();
    assert!(deep.to_string().contains("merge some"), "{deep}");
    assert!(groups::group_quantised(&zeros(&[1, 1, 1, 1, 1, 1, 128])).is_ok());
    // Three groups beside two; a result in the shape of the op's rows.
    let scale = Tensor::zeros(&cpu, DType::I8, [3]).unwrap();
    let error = groups::group_scaled(&zeros(&[2, 32]), &scale).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Broadcast { .. }), "{error}");
    let (x, mut q, mut scale) =
        (zeros(&[2, 256]), Tensor::zeros(&cpu, DType::F8E4M3, [2, 2, 128]).unwrap(), zeros(&[2, 2]));
    let error = groups::group_quantised_into(&x, &mut q, &mut scale).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShapeMismatch { .. }), "{error}");
    let mut q = Tensor::zeros(&cpu, DType::F8E4M3, [2, 256]).unwrap();
    let error = groups::group_quantised_into(&x, &mut q, &mut zeros(&[2])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShapeMismatch { .. }), "{error}");
}

#[test]
fn calls_are_planned() {
    let cpu = Device::cpu();
    let x = Tensor::zeros(&cpu, DType::BF16, [4, 512]).unwrap();
    let kernel = GroupQuantised.kernel();
    let operands = [Operand::from(&x)];
    let made = kernel.results(&operands).unwrap();
    assert_eq!((made[0].1.dims(), made[1].1.dims()), (&[4, 512][..], &[4, 4][..]));
    let results: Vec<Tensor> =
        made.into_iter().map(|(dtype, shape)| Tensor::zeros(&cpu, dtype, shape).unwrap()).collect();
    let plan = kernel.plan(&operands, &results.iter().map(Tensor::view).collect::<Vec<_>>()).unwrap();
    // All groups are rows of one dimension.
    assert_eq!((plan.dims, plan.launches, plan.n), (1, 1, 4 * 512));
    assert_eq!(GroupNormed::<f64>::def().info.group, 32);
}

#[test]
fn groups_are_not_fused() {
    let mut graph = pointwise::fusion::Graph::new();
    let x = graph.operand(DType::F32, false).unwrap();
    let error = graph.op(GroupQuantised::def(), &[x], &[]).unwrap_err();
    assert!(error.to_string().contains("reduces over rows"), "{error}");
}

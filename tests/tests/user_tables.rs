//! Tables of a user's, of the kinds that the examples have none of: on the CPU, and by their references.

use pointwise::{DType, Device, Tensor};

/// The ops choose what the family's do not, so that neither the family's formulas nor their references would do.
mod swapped {
    static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("they run on the CPU");

    pointwise_core::select_ops! { swap_ops;
        /// `condition ? b : a`.
        swap: Swap (condition, a, b: Value) -> T, [floats ints bool], Exact => if condition.0 { b } else { a };
    }
    swap_ops!(pointwise::host_select);
}

mod channels {
    static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("they run on the CPU");

    pointwise_core::channel_ops! { scale_ops;
        /// `weight |x|`.
        fold: Fold (x, weight: Real) -> T, [f32 f16], Exact => weight * x.abs();
    }
    scale_ops!(pointwise::host_binary);
}

/// The family's comparisons are of `Num`.
mod truths {
    static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("they run on the CPU");

    pointwise_core::binary_ops! { close_ops;
        /// `|a - b| <= atol`.
        close: Close { atol = 0.5 } (a, b: Real) -> bool, [f32 bf16], Exact => (a - b).abs() <= atol;
    }
    close_ops!(pointwise::host_binary);
}

/// An op with a name of the family's, over the family's kernels, and another result.
mod foreign {
    static KERNELS: &pointwise::embed::Kernels = pointwise::embed::embedded();

    pointwise_core::unary_ops! { foreign_ops;
        /// Whether `x` is positive.
        relu: Relu (x: Real) -> bool, [f32], Exact => x > T::ZERO;
    }
    foreign_ops!(pointwise::host_unary);
}

/// The same with the family's own row, so that the kernels are those of the row.
mod own {
    use pointwise_core::family::unary::Abs;

    static KERNELS: &pointwise::embed::Kernels = pointwise::embed::embedded();

    pointwise::host_unary! {
        /// `|x|`.
        abs: Abs (x: Num) -> T, [f32], Exact => x.abs();
    }
}

mod three {
    static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("they run on the CPU");

    pointwise_core::gradient_ops! { three_ops; Gradients;
        /// One result more than there are halves.
        split: Split (grad, a, b: Real) -> (x, y, z), [f32], Exact => [grad, a, b];
    }
    three_ops!(pointwise::host_gated_gradients);
}

fn f32s(values: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(&Device::cpu(), values, shape).unwrap()
}

#[test]
fn a_select_of_another_order() {
    let condition = Tensor::from_slice(&Device::cpu(), &[true, false, true], [3]).unwrap();
    let (a, b) = (f32s(&[1.0, 2.0, 3.0], &[3]), f32s(&[-0.0, 5.0, 6.0], &[3]));
    let y = swapped::ops::swap_cond(&condition, &a, &b).unwrap().to_vec::<f32>().unwrap();
    let bits: Vec<u32> = y.iter().map(|y| y.to_bits()).collect();
    assert_eq!(bits, [-0.0_f32, 2.0, 6.0].map(f32::to_bits));
    let oracle = swapped::definitions::swap_cond.oracle(DType::F32, &[]).unwrap().unwrap();
    assert_eq!([oracle.of(&[1.0, 7.0, 8.0]), oracle.of(&[0.0, 7.0, 8.0])], [8.0, 7.0]);
}

#[test]
fn a_weight_for_each_channel() {
    let x = f32s(&[1.0, -2.0, 3.0, -4.0], &[1, 2, 2]);
    let y = channels::ops::fold(&x, &f32s(&[10.0, 0.5], &[2])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [10.0, 20.0, 1.5, 2.0]);
    let error = channels::ops::fold(&x, &f32s(&[1.0; 3], &[3])).unwrap_err();
    assert!(error.is_shape(), "{error}");
    let oracle = channels::definitions::fold.oracle(DType::F32, &[]).unwrap().unwrap();
    assert_eq!(oracle.of(&[-3.0, 2.0]), 6.0);
}

#[test]
fn a_truth_of_a_formula_over_real() {
    let (a, b) = (f32s(&[1.0, 2.0, f32::NAN], &[3]), f32s(&[1.5, 3.0, 0.0], &[3]));
    let y = truths::ops::close(&a, &b, pointwise::Number::Default).unwrap();
    assert_eq!(y.to_vec::<bool>().unwrap(), [true, false, false]);
    assert_eq!(truths::ops::close(&a, 2.0, 1.0).unwrap().to_vec::<bool>().unwrap(), [true, true, false]);
    let oracle = truths::definitions::close.oracle(DType::F32, &[]).unwrap().unwrap();
    assert_eq!([oracle.of(&[1.0, 1.5]), oracle.of(&[1.0, 1.75])], [1.0, 0.0]);
}

/// A kernel is one of the op's own row: not of a name alone, which would write f32s to a tensor of bool.
#[test]
fn a_kernel_of_the_same_name_is_not_the_ops() {
    use pointwise::kernel::Class;

    let (foreign, own) = (&foreign::definitions::relu, &own::definitions::abs);
    for class in Class::ALL {
        let entry = foreign.entry(DType::F32, class).unwrap();
        let family = pointwise::info::definitions::relu.entry(DType::F32, class).unwrap();
        assert_eq!(entry.symbol(), family.symbol());
        assert!(!entry.is_embedded(), "{entry:?}");
        let own = own.entry(DType::F32, class).unwrap();
        assert!(
            own.is_embedded() && family.is_embedded() || pointwise::embed::embedded().is_empty(),
            "{own:?} {family:?}"
        );
    }
    let device = Device::best().unwrap();
    let x = Tensor::full(&device, 1.0_f32, [1000]).unwrap();
    let y = foreign::ops::relu(&x);
    if device.is_cpu() {
        assert!(y.unwrap().to_vec::<bool>().unwrap().iter().all(|&y| y));
    } else {
        let error = y.unwrap_err();
        assert!(error.is_kernel() && error.to_string().contains("another row"), "{error}");
    }
}

#[test]
fn halves_take_two_gradients() {
    let (grad, x) = (f32s(&[1.0, 2.0], &[1, 2]), f32s(&[1.0, 2.0, 3.0, 4.0], &[1, 4]));
    let error = three::ops::split(&grad, &x).unwrap_err().to_string();
    assert!(error.contains("split with 2 results") && error.contains("it has 3: x, y, z"), "{error}");
}

#[test]
fn a_row_names_its_element_types_once() {
    use pointwise_core::info::checked_types;

    let panics = |types: &'static [DType]| std::panic::catch_unwind(|| checked_types(types)).is_err();
    assert!(panics(&[]) && panics(&[DType::F32, DType::F16, DType::F32]));
    assert_eq!(checked_types(&[DType::F32, DType::F16]), [DType::F32, DType::F16]);
}

//! Tensors and views on the CPU: elements come out as they went in, for every shape, stride and element type.

use pointwise::{
    DType, Device, ErrorKind, F8E4M3, F8E5M2, Scalar, Shape, Tensor, TensorView, TensorViewMut, bf16, f16,
    tensor::{Overlap, RawPointer, overlap},
};

const CPU: Device = Device::cpu();

fn iota(dims: &[usize]) -> Tensor {
    let data: Vec<i32> = (0..).take(dims.iter().product()).collect();
    Tensor::from_slice(&CPU, &data, dims).unwrap()
}

fn ints(view: &TensorView<'_>) -> Vec<i32> {
    view.to_vec().unwrap()
}

fn round_trip<T: Scalar + PartialEq + std::fmt::Debug>(data: &[T]) {
    let tensor = Tensor::from_slice(&CPU, data, data.len()).unwrap();
    assert_eq!(tensor.dtype(), T::DTYPE);
    assert_eq!(tensor.byte_len(), size_of_val(data));
    assert_eq!(tensor.to_vec::<T>().unwrap(), data);
    assert_eq!(tensor.as_slice::<T>().unwrap(), data);
    let bytes = tensor.to_bytes().unwrap();
    let again = Tensor::from_bytes(&CPU, T::DTYPE, &bytes, data.len()).unwrap();
    assert_eq!(again.to_vec::<T>().unwrap(), data);
    assert_eq!(again.copy().unwrap().to_vec::<T>().unwrap(), data);
    // Every other element, backwards: through the strided copy.
    let step = tensor.view().step(0, 2).unwrap();
    let expected: Vec<T> = data.iter().copied().step_by(2).collect();
    assert_eq!(step.to_vec::<T>().unwrap(), expected);
    let full = Tensor::full(&CPU, data[0], [2, 3]).unwrap();
    assert_eq!(full.to_vec::<T>().unwrap(), vec![data[0]; 6]);
}

#[test]
fn shapes_read_like_lists() {
    let x = iota(&[2, 3]);
    let mut dims = Vec::new();
    for &dim in x.shape() {
        dims.push(dim);
    }
    assert_eq!(dims, [2, 3]);
    assert_eq!(*x.shape(), dims);
    assert_ne!(*x.shape(), vec![2, 3, 1]);
}

#[test]
fn errors_are_kept_and_compared() {
    let x = iota(&[2, 3]);
    let error = x.view().select(2, 0).unwrap_err();
    assert_eq!(error.clone(), error);
    assert_eq!(x.view().select(2, 0).map(|view| view.numel()), Err(error.clone()));
    assert_ne!(x.view().select(0, 2).map(|view| view.numel()), Err(error));
}

#[test]
fn every_dtype_goes_in_and_comes_out() {
    round_trip(&[1.5_f32, -0.0, f32::INFINITY, f32::MIN_POSITIVE, 7.0]);
    round_trip(&[1.5, -2.0, 65504.0].map(f16::from_f32));
    round_trip(&[1.5, -2.0, 3e38].map(bf16::from_f32));
    round_trip(&[0_u8, 0x38, 0xFE, 0x01].map(F8E4M3::from_bits));
    round_trip(&[0_u8, 0x38, 0xFC, 0x01].map(F8E5M2::from_bits));
    round_trip(&[i8::MIN, -1, 0, i8::MAX]);
    round_trip(&[i16::MIN, -1, 0, i16::MAX]);
    round_trip(&[i32::MIN, -1, 0, i32::MAX]);
    round_trip(&[i64::MIN, -1, 0, i64::MAX]);
    round_trip(&[0_u8, 1, 255]);
    round_trip(&[true, false, true]);
}

#[test]
fn bits_of_nan_are_kept() {
    let bits = [0x7FC0_0001_u32, 0xFFA5_5AA5];
    let tensor = Tensor::from_slice(&CPU, &bits.map(f32::from_bits), 2).unwrap();
    assert_eq!(tensor.to_bytes().unwrap(), bits.map(u32::to_ne_bytes).concat());
}

#[test]
fn empty_scalar_and_highest_rank() {
    for dims in [&[0][..], &[0, 3], &[3, 0, 2]] {
        let tensor = Tensor::from_slice::<f32>(&CPU, &[], dims).unwrap();
        assert_eq!((tensor.numel(), tensor.byte_len()), (0, 0));
        assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0_f32; 0]);
        assert_eq!(tensor.as_slice::<f32>().unwrap(), [0.0_f32; 0]);
        assert!(tensor.as_ptr().addr().is_multiple_of(64));
        let (start, end) = tensor.view().span();
        assert_eq!(start, end);
    }
    let scalar = Tensor::from_slice(&CPU, &[7_i32], []).unwrap();
    assert_eq!((scalar.shape().rank(), scalar.numel()), (0, 1));
    assert_eq!(scalar.to_vec::<i32>().unwrap(), [7]);
    assert_eq!(ints(&scalar.view().expand([2, 2]).unwrap()), [7; 4]);
    let eight = Tensor::zeros(&CPU, DType::U8, [1, 2, 1, 2, 1, 2, 1, 2]).unwrap();
    assert_eq!(eight.to_vec::<u8>().unwrap(), [0; 16]);
    let error = Tensor::zeros(&CPU, DType::U8, [1; 9]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::RankTooHigh { rank: 9 });
    let error = eight.view().unsqueeze(0).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::RankTooHigh { rank: 9 });
}

#[test]
fn sizes_that_do_not_fit() {
    let huge = [usize::MAX, 2];
    let error = Tensor::zeros(&CPU, DType::U8, huge).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::SizeOverflow { dims: huge.to_vec() });
    // The elements can be counted, the bytes cannot.
    let error = Tensor::zeros(&CPU, DType::I64, [1 << 61]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::SizeOverflow { dims: vec![1 << 61] });
    assert!(Tensor::full(&CPU, 1_i64, [1 << 61]).is_err());
    assert!(Tensor::full(&CPU, 1_u8, [1 << 62]).unwrap_err().is_out_of_memory());
    // A view repeats as far as you like, but not into memory.
    let one = Tensor::from_slice(&CPU, &[1_i64], 1).unwrap();
    let wide = one.view().expand([1 << 61]).unwrap();
    assert!(matches!(wide.to_vec::<i64>().unwrap_err().kind(), ErrorKind::SizeOverflow { .. }));
    assert!(wide.to_tensor().is_err());
    let one = Tensor::from_slice(&CPU, &[1_u8], 1).unwrap();
    assert!(one.view().expand([1 << 62]).unwrap().to_bytes().unwrap_err().is_out_of_memory());
}

#[test]
fn data_and_shape_must_agree() {
    let error = Tensor::from_slice(&CPU, &[1.0_f32; 5], [2, 3]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DataLength { expected: 6, got: 5, unit: "elements" });
    assert!(error.is_shape());
    let error = Tensor::from_bytes(&CPU, DType::F16, &[0; 5], [3]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DataLength { expected: 6, got: 5, unit: "bytes" });
}

#[test]
fn bytes_that_are_no_bools_are_refused() {
    let error = Tensor::from_bytes(&CPU, DType::Bool, &[0, 1, 2], 3).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::BadBool { at: 2, value: 2 });
    let mut tensor = Tensor::from_bytes(&CPU, DType::Bool, &[0, 1, 1], 3).unwrap();
    assert_eq!(tensor.to_vec::<bool>().unwrap(), [false, true, true]);
    let error = tensor.copy_from_bytes(&[255, 0, 0]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::BadBool { at: 0, value: 255 });
    assert_eq!(tensor.to_vec::<bool>().unwrap(), [false, true, true], "nothing was written");
    tensor.copy_from_bytes(&[1, 0, 0]).unwrap();
    assert_eq!(tensor.to_vec::<bool>().unwrap(), [true, false, false]);
}

#[test]
fn the_element_type_is_checked() {
    let mut tensor = iota(&[4]);
    let wrong = |error: pointwise::Error| {
        assert!(error.is_dtype(), "{error}");
        let expected = ErrorKind::DType { op: String::new(), got: DType::I32, allowed: vec![DType::F32] };
        match (error.kind(), expected) {
            (ErrorKind::DType { got, allowed, .. }, ErrorKind::DType { got: g, allowed: a, .. }) => {
                assert_eq!((*got, allowed), (g, &a));
            }
            (other, _) => panic!("{other:?}"),
        }
    };
    wrong(tensor.to_vec::<f32>().unwrap_err());
    wrong(tensor.as_slice::<f32>().unwrap_err());
    wrong(tensor.as_mut_slice::<f32>().unwrap_err());
    wrong(tensor.copy_from_slice(&[1.0_f32; 4]).unwrap_err());
    wrong(tensor.view_mut().unwrap().as_mut_slice::<f32>().unwrap_err());
}

#[test]
fn reshape_moves_nothing() {
    let tensor = iota(&[2, 6]);
    let at = tensor.as_ptr();
    let tensor = tensor.reshape([3, 4]).unwrap();
    assert_eq!(tensor.as_ptr(), at);
    assert_eq!((tensor.shape().dims(), tensor.strides()), (&[3, 4][..], &[4, 1][..]));
    assert_eq!(tensor.to_vec::<i32>().unwrap(), (0..12).collect::<Vec<_>>());
    assert_eq!(ints(&tensor.view().reshape([2, 2, 3]).unwrap()), (0..12).collect::<Vec<_>>());
    let view = tensor.view().transpose(0, 1).unwrap();
    assert!(matches!(
        view.reshape([12]).unwrap_err().kind(),
        ErrorKind::NotContiguous { what: "what is reshaped", .. }
    ));
    assert!(matches!(tensor.reshape([5]).unwrap_err().kind(), ErrorKind::ShapeMismatch { .. }));
    assert_eq!(iota(&[0, 3]).reshape([7, 0]).unwrap().numel(), 0);
}

#[test]
fn views_reorder() {
    let tensor = iota(&[3, 4]);
    let view = tensor.view();
    assert_eq!(ints(&view.narrow(1, 1, 2).unwrap()), [1, 2, 5, 6, 9, 10]);
    assert_eq!(ints(&view.step(1, 3).unwrap()), [0, 3, 4, 7, 8, 11]);
    assert_eq!(ints(&view.transpose(0, 1).unwrap()), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    assert_eq!(ints(&view.permute(&[1, 0]).unwrap()), ints(&view.transpose(1, 0).unwrap()));
    assert_eq!(ints(&view.select(0, 2).unwrap()), [8, 9, 10, 11]);
    assert_eq!(ints(&view.select(1, 3).unwrap()), [3, 7, 11]);
    let row = view.narrow(0, 1, 1).unwrap();
    assert_eq!(ints(&row.expand([2, 4]).unwrap()), [4, 5, 6, 7, 4, 5, 6, 7]);
    assert_eq!(ints(&row.squeeze(0).unwrap().unsqueeze(1).unwrap().expand([4, 2]).unwrap()), [4, 4, 5, 5, 6, 6, 7, 7]);
    let part = view.narrow(1, 1, 2).unwrap().transpose(0, 1).unwrap();
    let own = part.to_tensor().unwrap();
    assert_eq!(own.shape(), &[2, 3]);
    assert_eq!(own.to_vec::<i32>().unwrap(), [1, 5, 9, 2, 6, 10]);
    // The same through a view to write.
    let mut tensor = iota(&[3, 4]);
    let mut column = tensor.view_mut().unwrap().select(1, 2).unwrap().unsqueeze(0).unwrap().squeeze(0).unwrap();
    assert_eq!(ints(&column.as_view()), [2, 6, 10]);
    assert!(matches!(column.as_mut_slice::<i32>().unwrap_err().kind(), ErrorKind::NotContiguous { .. }));
    let mut row = tensor.view_mut().unwrap().narrow(0, 1, 1).unwrap();
    row.as_mut_slice::<i32>().unwrap().fill(-1);
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11]);
}

#[test]
fn views_refuse_what_is_not_there() {
    let tensor = iota(&[3, 4]);
    let view = tensor.view();
    let parameter = |result: pointwise::Result<TensorView<'_>>| match result.unwrap_err().kind() {
        ErrorKind::Parameter { name, .. } => *name,
        other => panic!("{other:?}"),
    };
    assert_eq!(parameter(view.narrow(1, 3, 2)), "start, len");
    assert_eq!(parameter(view.narrow(1, usize::MAX, 2)), "start, len");
    assert_eq!(parameter(view.narrow(2, 0, 0)), "dim");
    assert_eq!(parameter(view.step(0, 0)), "step");
    assert_eq!(parameter(view.step(0, usize::MAX)), "step");
    assert_eq!(parameter(view.select(0, 3)), "index");
    assert_eq!(parameter(view.permute(&[0])), "order");
    assert_eq!(parameter(view.permute(&[1, 1])), "order");
    assert_eq!(parameter(view.transpose(0, 2)), "d1");
    assert_eq!(parameter(view.squeeze(0)), "dim");
    assert_eq!(parameter(view.unsqueeze(4)), "dim");
    for shape in [&[3, 5][..], &[4]] {
        let error = view.expand(shape).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Parameter { name: "shape", .. }), "{error}");
    }
}

#[test]
fn slices_need_contiguous_views() {
    let tensor = iota(&[3, 4]);
    let view = tensor.view();
    assert_eq!(view.narrow(0, 1, 2).unwrap().as_slice::<i32>().unwrap(), [4, 5, 6, 7, 8, 9, 10, 11]);
    let error = view.narrow(1, 1, 2).unwrap().as_slice::<i32>().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotContiguous { what: "the tensor of a slice", .. }));
    assert!(error.is_shape());
}

#[test]
fn raw_pointers() {
    let data = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let from = |pointer: RawPointer, shape: [usize; 2], strides: &[i64]| {
        // SAFETY: where the call succeeds, shape and strides stay inside `data`.
        unsafe { TensorView::from_raw_parts(&CPU, pointer, DType::F32, shape, strides) }
    };
    let view = from(data.as_ptr().into(), [2, 3], &[3, 1]).unwrap();
    assert_eq!(view.as_slice::<f32>().unwrap(), data);
    // Backwards from the last element.
    let last: RawPointer = data.as_ptr().wrapping_add(5).into();
    let view = from(last, [2, 3], &[-3, -1]).unwrap();
    assert_eq!(view.to_vec::<f32>().unwrap(), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let start = data.as_ptr().addr();
    assert_eq!(view.span(), (start, start + 24));

    let parameter = |result: pointwise::Result<TensorView<'_>>| match result.unwrap_err().kind() {
        ErrorKind::Parameter { name, .. } => *name,
        other => panic!("{other:?}"),
    };
    let misaligned = data.as_ptr().cast::<u8>().wrapping_add(1);
    assert_eq!(parameter(from(misaligned.into(), [1, 2], &[2, 1])), "pointer");
    assert_eq!(parameter(from(std::ptr::null::<f32>().into(), [1, 2], &[2, 1])), "pointer");
    assert_eq!(parameter(from(0_u64.into(), [1, 2], &[2, 1])), "pointer");
    assert_eq!(parameter(from(data.as_ptr().into(), [1, 2], &[1])), "strides");
    assert_eq!(parameter(from(data.as_ptr().into(), [3, 2], &[i64::MAX, 1])), "strides");
    // Without elements nothing is pointed at.
    let empty = from(0_u64.into(), [0, 2], &[2, 1]).unwrap();
    assert_eq!(empty.as_slice::<f32>().unwrap(), [0.0_f32; 0]);
}

#[test]
fn what_is_written_must_not_repeat() {
    let mut data = [0_i32; 6];
    let mut from = |shape: [usize; 2], strides: &[i64]| {
        // SAFETY: where the call succeeds, shape and strides stay inside `data`.
        unsafe { TensorViewMut::from_raw_parts(&CPU, data.as_mut_ptr(), DType::I32, shape, strides) }.map(drop)
    };
    from([2, 3], &[3, 1]).unwrap();
    from([3, 2], &[1, 3]).unwrap();
    for strides in [[0, 1], [1, 1], [2, 1]] {
        let error = from([2, 3], &strides).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Parameter { name: "strides", .. }), "{strides:?}: {error}");
    }
    // A single index repeats nothing.
    from([1, 3], &[0, 1]).unwrap();
}

#[test]
fn overlaps() {
    let tensor = iota(&[4, 4]);
    let all = tensor.view();
    let top = all.narrow(0, 0, 2).unwrap();
    let bottom = all.narrow(0, 2, 2).unwrap();
    assert_eq!(overlap(&all, &all), Overlap::Exact);
    assert_eq!(overlap(&top, &bottom), Overlap::None);
    assert_eq!(overlap(&top, &all), Overlap::Partial);
    assert_eq!(overlap(&top, &all.narrow(0, 1, 2).unwrap()), Overlap::Partial);
    // A square read by columns: the same bytes, in another order.
    assert_eq!(overlap(&all, &all.transpose(0, 1).unwrap()), Overlap::Partial);
    // Another shape of the same elements.
    assert_eq!(overlap(&all, &all.reshape([16]).unwrap()), Overlap::Partial);
    // Interleaved columns share no byte, but what they span meets.
    let even = all.step(1, 2).unwrap();
    let odd = all.narrow(1, 1, 3).unwrap().step(1, 2).unwrap();
    assert_eq!(overlap(&even, &odd), Overlap::Partial);
    assert_eq!(overlap(&all, &iota(&[4, 4]).view()), Overlap::None);
    // Views without elements share nothing, even with themselves.
    let none = all.narrow(0, 1, 0).unwrap();
    assert_eq!(overlap(&none, &none), Overlap::None);
    assert_eq!(overlap(&none, &all), Overlap::None);
    // Elements of another size, from the same address on.
    let data = [0_i32; 4];
    // SAFETY: 8 and 16 bytes of `data`.
    let [short, long] = [DType::I16, DType::I32]
        .map(|dtype| unsafe { TensorView::from_raw_parts(&CPU, data.as_ptr(), dtype, [4], &[1]) }.unwrap());
    assert_eq!([overlap(&short, &long), overlap(&long, &short)], [Overlap::Partial; 2]);
    // The stride of a dimension of one element is of no account.
    let row = all.narrow(0, 1, 1).unwrap();
    let same = all.select(0, 1).unwrap().unsqueeze(0).unwrap();
    assert_eq!(overlap(&row, &same), Overlap::Exact);
}

#[test]
fn copies_between_tensors() {
    let source = iota(&[2, 3]);
    let mut target = Tensor::zeros(&CPU, DType::I32, [2, 3]).unwrap();
    target.copy_from(&source).unwrap();
    assert_eq!(target.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
    let error = target.copy_from(&iota(&[3, 2])).unwrap_err();
    let (expected, got) = (Shape::new(&[2, 3]).unwrap(), Shape::new(&[3, 2]).unwrap());
    assert_eq!(error.kind(), &ErrorKind::ShapeMismatch { what: "copy_from".into(), expected, got });
    let floats = Tensor::zeros(&CPU, DType::F32, [2, 3]).unwrap();
    assert!(target.copy_from(&floats).unwrap_err().is_dtype());
    target.copy_from_slice(&[9; 6]).unwrap();
    assert_eq!(target.to_vec::<i32>().unwrap(), [9; 6]);
    let error = target.copy_from_slice(&[9; 5]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DataLength { expected: 6, got: 5, unit: "elements" });
    let error = target.copy_from_bytes(&[0; 23]).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DataLength { expected: 24, got: 23, unit: "bytes" });
    assert_eq!(source.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn copies_of_views_that_do_not_fit() {
    let (source, mut target) = (iota(&[2, 3]), iota(&[3, 2]));
    let turned = source.view().transpose(0, 1).unwrap();
    turned.copy_into(&mut target).unwrap();
    assert_eq!(target.to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
    let error = source.view().copy_into(&mut target).unwrap_err();
    assert!(error.is_shape());
    assert!(error.to_string().contains("[2, 3]") && error.to_string().contains("[3, 2]"), "{error}");
    let mut floats = Tensor::zeros(&CPU, DType::F32, [3, 2]).unwrap();
    let error = turned.copy_into(&mut floats).unwrap_err();
    assert_eq!(error.to_string(), "copy_into from i32 does not take f32: it takes i32; to_dtype converts");
    let mut shared = iota(&[3, 3]);
    let view = shared.view();
    // SAFETY: the view outlives no tensor, and the call that would read and write it is refused.
    let other = unsafe { TensorView::from_raw_parts(&CPU, view.as_ptr(), DType::I32, [3, 3], &[1, 3]) }.unwrap();
    let error = other.copy_into(&mut shared).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    assert_eq!(shared.to_vec::<i32>().unwrap(), (0..9).collect::<Vec<_>>(), "nothing was written");
}

#[test]
fn tensors_and_views_cross_threads() {
    let tensor = iota(&[8]);
    let view = tensor.view();
    let sum: i32 = std::thread::scope(|scope| {
        let halves = [0, 4].map(|start| scope.spawn(move || ints(&view.narrow(0, start, 4).unwrap())));
        halves.into_iter().flat_map(|half| half.join().unwrap()).sum()
    });
    assert_eq!(sum, 28);
}

#[test]
fn set_zero() {
    let mut tensor = Tensor::from_slice(&Device::cpu(), &[1.5_f32, f32::NAN, -0.0], [3]).unwrap();
    tensor.set_zero().unwrap();
    assert_eq!(tensor.to_bytes().unwrap(), [0; 12]);
    Tensor::empty(&Device::cpu(), DType::Bool, [0]).unwrap().set_zero().unwrap();
}

/// Other code may leave any byte in a bool, and ops read it as true. A Rust `bool` is never made of one.
#[test]
fn any_byte_but_zero_is_true_and_none_becomes_a_rust_bool() {
    let mut bytes = [0_u8, 1, 2, 0x80, 0xff, 0, 3];
    let shape = pointwise::Shape::new(&[7]).unwrap();
    let pointer = bytes.as_mut_ptr();
    // SAFETY: the bytes are there, and nobody else uses them while the view lives.
    let mut x = unsafe { TensorViewMut::from_raw_parts(&CPU, pointer, DType::Bool, shape, &[1]).unwrap() };
    let expected = [false, true, true, true, true, false, true];
    assert_eq!(x.as_view().to_vec::<bool>().unwrap(), expected);
    assert_eq!(x.as_view().to_bytes().unwrap(), [0, 1, 1, 1, 1, 0, 1]);
    assert!(x.as_view().select(0, 4).unwrap().item::<bool>().unwrap());
    let refused = ErrorKind::BadBool { at: 2, value: 2 };
    assert_eq!(x.as_slice::<bool>().unwrap_err().kind(), &refused);
    assert_eq!(x.as_mut_slice::<bool>().unwrap_err().kind(), &refused);
    // A copy of such bytes into a new tensor does not hide them either.
    let copy = x.as_view().to_tensor().unwrap();
    assert_eq!(copy.copy().unwrap().to_vec::<bool>().unwrap(), expected);
    if let Ok(slice) = copy.as_slice::<bool>() {
        assert_eq!(slice, expected);
    }
    // SAFETY: the bytes are exclusively borrowed.
    unsafe { pointer.write_bytes(1, 7) };
    assert_eq!(x.as_mut_slice::<bool>().unwrap(), [true; 7]);
}

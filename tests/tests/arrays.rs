//! ndarray's arrays and safetensors' tensors, which become tensors and come back.

use ndarray::{Array1, Array2, Array3, ArrayD, Axis, IxDyn, array, s};
use pointwise::interop::safetensors::dtype;
use pointwise::{DType, Device, ErrorKind, Tensor, TensorView, TensorViewMut, bf16, kernels, ops};
use safetensors::{Dtype, SafeTensors, serialize, tensor};

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

fn counted(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as f32 - 10.0)
}

#[test]
fn views_of_any_strides_are_read_in_place() {
    let x = counted(6, 8);
    for view in [x.view(), x.t(), x.slice(s![..;2, 1..]), x.slice(s![..;-1, ..;-3]), x.slice(s![2..2, ..])] {
        let expected: Vec<f32> = view.iter().map(|x| -x).collect();
        let negated = ops::neg(TensorView::try_from(view).unwrap()).unwrap();
        assert_eq!((negated.shape().dims(), negated.to_vec::<f32>().unwrap()), (view.shape(), expected));
    }
    // One row for all, and an array without dimensions.
    let row = x.row(1);
    let all = row.broadcast((3, 8)).unwrap();
    let y = ops::add(&Tensor::full(&Device::cpu(), 1.0_f32, [3, 8]).unwrap(), TensorView::try_from(all).unwrap());
    assert_eq!(y.unwrap().to_vec::<f32>().unwrap()[8..16], row.mapv(|x| x + 1.0).to_vec());
    let scalar = ndarray::arr0(2.0_f32);
    assert_eq!(ops::neg(TensorView::try_from(scalar.view()).unwrap()).unwrap().to_vec::<f32>().unwrap(), [-2.0]);
}

#[test]
fn results_go_into_arrays() {
    let x = counted(4, 6);
    let mut y = Array2::from_elem((6, 9), 7.0_f32);
    let target = TensorViewMut::try_from(y.slice_mut(s![.., ..8;2]).reversed_axes()).unwrap();
    kernels::neg().run_into(TensorView::try_from(x.view()).unwrap(), target).unwrap();
    for ((row, column), &y) in y.indexed_iter() {
        let expected = if column % 2 == 0 && column < 8 { -x[[column / 2, row]] } else { 7.0 };
        assert_eq!(y, expected, "{row}, {column}");
    }
    let mut positive = Array1::from_elem(6, false);
    let target = TensorViewMut::try_from(positive.view_mut()).unwrap();
    kernels::gt().run_into(TensorView::try_from(x.row(2)).unwrap(), 3.0, target).unwrap();
    assert_eq!(positive, x.row(2).mapv(|x| x > 3.0));
}

#[test]
fn arrays_are_copied_to_devices_and_back() {
    let x = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| bf16::from_f32((i * 12 + j * 4 + k) as f32));
    let mut turned = x.view();
    turned.swap_axes(0, 2);
    for device in devices() {
        let tensor = Tensor::from_ndarray(&device, turned).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape().dims()), (DType::BF16, &[4, 3, 2][..]));
        assert_eq!(tensor.to_ndarray::<bf16>().unwrap(), turned.to_owned().into_dyn(), "{device}");
        let part = tensor.view().narrow(0, 1, 2).unwrap().to_ndarray::<bf16>().unwrap();
        assert_eq!(part, turned.slice_axis(Axis(0), (1..3).into()).to_owned().into_dyn(), "{device}");
        let empty = Tensor::from_ndarray(&device, Array2::<i64>::zeros((0, 3)).view()).unwrap();
        assert_eq!(empty.to_ndarray::<i64>().unwrap().shape(), [0, 3]);
        let error = tensor.to_ndarray::<f32>().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    }
}

#[test]
fn an_array_of_nine_dimensions_is_refused() {
    let mut x = ArrayD::<f32>::zeros(IxDyn(&[1; 9]));
    let error = TensorView::try_from(x.view()).err().unwrap().to_string();
    assert!(error.contains('9') && error.contains('8'), "{error}");
    assert!(TensorViewMut::try_from(x.view_mut()).is_err());
    assert!(Tensor::from_ndarray(&Device::cpu(), x.view()).is_err());
}

#[test]
fn files_keep_types_shapes_and_bits() {
    for device in devices() {
        for dtype in DType::ALL {
            let bytes: Vec<u8> =
                (0..12 * dtype.size()).map(|i| if dtype == DType::Bool { i % 2 } else { i } as u8).collect();
            let x = Tensor::from_bytes(&device, dtype, &bytes, [3, 1, 4]).unwrap();
            let file = serialize([("x", x.to_safetensors().unwrap())], None).unwrap();
            let file = SafeTensors::deserialize(&file).unwrap();
            let y = Tensor::from_safetensors(&device, &file.tensor("x").unwrap()).unwrap();
            assert_eq!((y.dtype(), y.shape(), y.to_bytes().unwrap()), (dtype, x.shape(), bytes), "{device}");
        }
    }
}

#[test]
fn what_no_op_takes_is_refused() {
    let error = dtype(Dtype::F64).unwrap_err().to_string();
    assert!(error.contains("F64") && error.contains("BF16"), "{error}");
    let of = |dtype, bytes: &'static [u8]| {
        Tensor::from_safetensors(&Device::cpu(), &tensor::TensorView::new(dtype, vec![1], bytes).unwrap())
    };
    assert!(of(Dtype::U16, &[1, 2]).is_err());
    assert!(matches!(of(Dtype::BOOL, &[2]).unwrap_err().kind(), ErrorKind::BadBool { .. }));
    assert_eq!(of(Dtype::I8, &[255]).unwrap().to_ndarray::<i8>().unwrap(), array![-1_i8].into_dyn());
}

//! Bools in memory of other code, on every device: any byte but 0 is true.

use pointwise::tensor::RawPointer;
use pointwise::{DType, Device, Result, Shape, Tensor, TensorView, ops};

/// Bytes as other code may leave them, enough for vectors and a rest.
fn bytes() -> Vec<u8> {
    (0..331_u32).map(|i| if i % 3 == 0 { 0 } else { (i * 37 % 255 + 1) as u8 }).collect()
}

/// The memory of a u8 tensor as bools.
fn as_bools(x: &Tensor) -> TensorView<'_> {
    let pointer = if x.device().is_cpu() { RawPointer::from(x.as_ptr()) } else { RawPointer::from(x.device_ptr()) };
    // SAFETY: as many bytes as the tensor has, borrowed with it; it was filled on the stream that reads them.
    unsafe { TensorView::from_raw_parts(x.device(), pointer, DType::Bool, x.shape(), x.strides()).unwrap() }
}

fn every_second<'a>(x: &TensorView<'a>) -> TensorView<'a> {
    x.narrow(0, 1, 330).unwrap().step(0, 2).unwrap()
}

/// An op of bools.
type Call = fn(&TensorView<'_>, &TensorView<'_>) -> Result<Tensor>;

#[test]
fn any_byte_but_zero_is_true_to_every_op() {
    let calls: [(&str, Call); 19] = [
        ("logical_not", |a, _| ops::logical_not(a)),
        ("logical_and", |a, b| ops::logical_and(a, b)),
        ("logical_or", |a, b| ops::logical_or(a, b)),
        ("bitwise_not", |a, _| ops::bitwise_not(a)),
        ("bitwise_and", |a, b| ops::bitwise_and(a, b)),
        ("bitwise_or", |a, b| ops::bitwise_or(a, b)),
        ("bitwise_xor", |a, b| ops::bitwise_xor(a, b)),
        ("eq", |a, b| ops::eq(a, b)),
        ("ne", |a, b| ops::ne(a, b)),
        ("lt", |a, b| ops::lt(a, b)),
        ("ge", |a, b| ops::ge(a, b)),
        ("add", |a, b| ops::add(a, b)),
        ("mul", |a, b| ops::mul(a, b)),
        ("maximum", |a, b| ops::maximum(a, b)),
        ("minimum", |a, b| ops::minimum(a, b)),
        ("to_dtype f32", |a, _| a.to_dtype(DType::F32)?.to_dtype(DType::Bool)),
        ("to_dtype i64", |a, _| a.to_dtype(DType::I64)?.to_dtype(DType::Bool)),
        ("where", |a, b| ops::where_cond(a, b, a)),
        ("masked_fill", |a, b| ops::masked_fill(a, b, true)),
    ];
    let (a, mut b) = (bytes(), bytes());
    b.rotate_left(1);
    let clean = |bytes: &[u8]| bytes.iter().map(|&byte| byte != 0).collect::<Vec<_>>();
    for device in Device::for_tests(pointwise::embed::embedded()).unwrap() {
        let tensor = |bytes: &[u8]| Tensor::from_bytes(&device, DType::U8, bytes, Shape::new(&[bytes.len()]).unwrap());
        let [any_a, any_b] = [&a, &b].map(|bytes| tensor(bytes).unwrap());
        let [clean_a, clean_b] = [&a, &b].map(|bytes| Tensor::from_slice(&device, &clean(bytes), bytes.len()).unwrap());
        for (name, call) in calls {
            let run = |a: &TensorView<'_>, b: &TensorView<'_>| match call(a, b) {
                Ok(y) => y.to_vec::<bool>().unwrap(),
                Err(error) => panic!("{name} on {device}: {error}"),
            };
            let expected = run(&clean_a.view(), &clean_b.view());
            assert_eq!(run(&as_bools(&any_a), &as_bools(&any_b)), expected, "{name} on {device}");
            // Not a vector's alignment, and strides.
            let [a, b] = [as_bools(&any_a), as_bools(&any_b)].map(|x| every_second(&x));
            let expected = run(&every_second(&clean_a.view()), &every_second(&clean_b.view()));
            assert_eq!(run(&a, &b), expected, "{name} of every second on {device}");
        }
    }
}

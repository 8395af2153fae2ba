//! Tensors as text: laid out as by PyTorch 2.11's `print`, with a shape, and Rust's exponents and bools.

use pointwise::{DType, Device, F8E4M3, F8E5M2, Scalar, Tensor, TensorView, bf16, f16};

const CPU: Device = Device::cpu();

fn of<T: Scalar>(data: &[T], dims: &[usize]) -> Tensor {
    Tensor::from_slice(&CPU, data, dims).unwrap()
}

/// The part between `tensor(` and type, shape and device, which are checked.
fn elements(text: &str, view: &TensorView<'_>) -> String {
    let end = format!(", dtype={}, shape={}, device=cpu)", view.dtype(), view.shape());
    text.strip_prefix("tensor(").and_then(|text| text.strip_suffix(&*end)).expect(text).to_owned()
}

fn shown(view: &TensorView<'_>) -> String {
    elements(&view.to_string(), view)
}

#[test]
fn scalars_and_nothing() {
    assert_eq!(of(&[1.5_f32], &[]).to_string(), "tensor(1.5000, dtype=f32, shape=[], device=cpu)");
    assert_eq!(shown(&of(&[-7_i64], &[]).view()), "-7");
    assert_eq!(shown(&of::<f32>(&[], &[0, 3]).view()), "[]");
    assert_eq!(shown(&of::<f32>(&[], &[2000, 0]).view()), "[]");
}

#[test]
fn every_type() {
    assert_eq!(shown(&of(&[f16::from_f32(0.1), f16::from_f32(-2.0)], &[2]).view()), "[ 0.1000, -2.0000]");
    assert_eq!(shown(&of(&[bf16::from_f32(3.0), bf16::from_f32(-20.0)], &[2]).view()), "[  3., -20.]");
    assert_eq!(shown(&of(&[F8E4M3::from_f32(448.0), F8E4M3::from_f32(f32::NAN)], &[2]).view()), "[448.,  nan]");
    assert_eq!(shown(&of(&[F8E5M2::from_f32(-1.75), F8E5M2::from_f32(0.0)], &[2]).view()), "[-1.7500,  0.0000]");
    assert_eq!(shown(&of(&[i8::MIN, 5], &[2]).view()), "[-128,    5]");
    assert_eq!(shown(&of(&[i16::MIN, 5], &[2]).view()), "[-32768,      5]");
    assert_eq!(shown(&of(&[i32::MAX, 0], &[2]).view()), "[2147483647,          0]");
    // Beyond what an f64 holds.
    assert_eq!(shown(&of(&[i64::MAX, i64::MIN], &[2]).view()), "[ 9223372036854775807, -9223372036854775808]");
    assert_eq!(shown(&of(&[u8::MAX, 0], &[2]).view()), "[255,   0]");
    assert_eq!(shown(&of(&[true, false], &[2]).view()), "[ true, false]");
}

#[test]
fn floats_have_one_form() {
    let of = |data: &[f32]| shown(&of(data, &[data.len()]).view());
    assert_eq!(of(&[0.0, -0.0]), "[0., -0.]".replace("[0.", "[ 0."));
    assert_eq!(of(&[1.0, f32::NEG_INFINITY, f32::NAN]), "[  1., -inf,  nan]");
    assert_eq!(of(&[f32::INFINITY; 2]), "[inf, inf]");
    // Up to three decades, and not beyond 1e-4 and 1e8.
    assert_eq!(of(&[0.5, 500.0]), "[  0.5000, 500.0000]");
    assert_eq!(of(&[0.5, 501.0]), "[5.0000e-1,  5.0100e2]");
    assert_eq!(of(&[1.25e-5, 2e-5]), "[1.2500e-5, 2.0000e-5]");
    assert_eq!(of(&[1.0, 1001.0]), "[1.0000e0, 1.0010e3]");
    assert_eq!(of(&[1.5e8, 3e8]), "[1.5000e8, 3.0000e8]");
    let tensor = self::of(&[1.0_f32 / 3.0], &[1]);
    assert_eq!(elements(&format!("{tensor:.7}"), &tensor.view()), "[0.3333333]");
}

#[test]
fn dimensions_are_brackets() {
    let x = of(&[1, 2, 3, 4, 5, 6, 7, 8], &[2, 2, 2]);
    let indent = " ".repeat("tensor(".len());
    let text = format!("[[[1, 2],\n{indent}  [3, 4]],\n\n{indent} [[5, 6],\n{indent}  [7, 8]]]");
    assert_eq!(shown(&x.view()), text);
    let turned = x.permute(&[2, 1, 0]).unwrap();
    assert_eq!(shown(&turned.select(0, 1).unwrap()), format!("[[2, 6],\n{indent} [4, 8]]"));
    let mut y = of(&[1, 2], &[2]);
    assert_eq!(
        shown(&y.view()),
        y.view_mut().unwrap().to_string().replace("tensor(", "").replace(", dtype=i32, shape=[2], device=cpu)", "")
    );
}

#[test]
fn long_rows_are_broken() {
    let x = of(&(0..40).collect::<Vec<i32>>(), &[40]);
    let text = shown(&x.view());
    let lines: Vec<&str> = text.lines().collect();
    // 73 characters of 4 for each.
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("[ 0,  1,") && lines[0].ends_with(" 17,"), "{text}");
    assert!(lines[1].starts_with("        18, 19,"), "{text}");
    assert!(x.to_string().lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn of_many_elements_those_at_the_edges() {
    let x = of(&(0..1001).collect::<Vec<i32>>(), &[1001]);
    assert_eq!(shown(&x.view()), "[   0,    1,    2, ...,  998,  999, 1000]");
    let all = shown(&x.narrow(0, 0, 1000).unwrap());
    assert_eq!(all.split(',').count(), 1000);
    let x = of(&(0..1200).collect::<Vec<i32>>(), &[400, 3]);
    let indent = " ".repeat("tensor(".len() + 1);
    let row = |i: i32| format!("[{:>4}, {:>4}, {:>4}]", 3 * i, 3 * i + 1, 3 * i + 2);
    let rows = [row(0), row(1), row(2), "...".to_owned(), row(397), row(398), row(399)];
    assert_eq!(shown(&x.view()), format!("[{}]", rows.join(&format!(",\n{indent}"))));
    // No copy of the 2^40 elements is made.
    let repeated = of(&[7_u8], &[]);
    let repeated = repeated.expand([1 << 20, 1 << 20]).unwrap();
    assert_eq!(shown(&repeated).matches("[7, 7, 7, ..., 7, 7, 7]").count(), 6);
}

#[test]
fn any_precision_is_a_text() {
    let x = of(&[f32::from_bits(1), 1.5, f32::NAN, f32::MAX], &[4]);
    let y = of(&[0.1_f32], &[1]);
    let exact = (format!("{x:.149}"), format!("{y:.149}"));
    assert!(exact.1.contains("0.100000001490116119384765625000"), "{}", exact.1);
    assert_eq!((format!("{x:.150}"), format!("{y:.60000}")), exact);
    assert_eq!((format!("{x:.65535}"), format!("{y:.65533}")), exact);
}

#[test]
fn one_element_as_a_number() {
    let x = of(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]);
    assert_eq!(x.select(0, 1).unwrap().select(0, 0).unwrap().item::<f32>().unwrap(), 3.0);
    assert_eq!(of(&[5_i64], &[1, 1]).item::<i64>().unwrap(), 5);
    let error = x.item::<f32>().unwrap_err();
    let expected = "item (takes a tensor of one element; select() makes a view of one): expected shape [], got [2, 2]";
    assert_eq!(error.to_string(), expected);
    assert!(of(&[5_i64], &[1]).item::<i32>().unwrap_err().is_dtype());
    let none = Tensor::zeros(&CPU, DType::F32, [0]).unwrap();
    assert!(none.item::<f32>().unwrap_err().is_shape());
}

#[test]
fn tensors_have_the_views_that_views_have() {
    let x = of(&[1, 2, 3, 4, 5, 6], &[2, 3]);
    let ints = |view: TensorView<'_>| (view.shape().dims().to_vec(), view.to_vec::<i32>().unwrap());
    assert_eq!(ints(x.transpose(0, 1).unwrap()), (vec![3, 2], vec![1, 4, 2, 5, 3, 6]));
    assert_eq!(ints(x.permute(&[1, 0]).unwrap()), (vec![3, 2], vec![1, 4, 2, 5, 3, 6]));
    assert_eq!(ints(x.narrow(1, 1, 2).unwrap()), (vec![2, 2], vec![2, 3, 5, 6]));
    assert_eq!(ints(x.select(1, 0).unwrap()), (vec![2], vec![1, 4]));
    assert_eq!(ints(x.unsqueeze(0).unwrap()), (vec![1, 2, 3], vec![1, 2, 3, 4, 5, 6]));
    let error = x.expand([2, 6]).unwrap_err().to_string();
    let expected = "shape = [2, 6]: shape [2, 3] cannot become that: only dimensions of size 1 are repeated, new ones come in front";
    assert_eq!(error, expected);
}

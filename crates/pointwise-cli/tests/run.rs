//! `pointwise run` on good files.

mod common;

use std::fs;
use std::path::Path;

use common::{Folder, f32s, file, x};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

/// Type, shape and bytes of `y`, the only tensor of the file.
fn read_y(path: &Path) -> (Dtype, Vec<usize>, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.names(), ["y"]);
    let y = file.tensor("y").unwrap();
    (y.dtype(), y.shape().to_vec(), y.data().to_vec())
}

/// Runs an op on the CPU on a file of `x`.
#[track_caller]
fn op(op: &str, input: &[u8], settings: &[&str]) -> (Dtype, Vec<usize>, Vec<u8>) {
    let folder = Folder::new(op);
    folder.write("in.safetensors", input);
    let mut arguments = vec!["run", op, "in.safetensors", "-o", "out.safetensors", "--device", "cpu"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    assert_eq!(folder.run(&arguments).succeeds(), "", "quiet in a pipe");
    assert_eq!(folder.names(), ["in.safetensors", "out.safetensors"]);
    read_y(&folder.path("out.safetensors"))
}

#[test]
fn f32() {
    let input = x("F32", &[2, 2], &f32s(&[-1.0, 0.0, 2.5, f32::INFINITY]));
    let expected = (Dtype::F32, vec![2, 2], f32s(&[0.0, 0.0, 2.5, f32::INFINITY]));
    assert_eq!(op("relu", &input, &[]), expected);
}

#[test]
fn bf16() {
    // 1, -2, 3 in bf16.
    let input = x("BF16", &[3], &[0x80, 0x3F, 0x00, 0xC0, 0x40, 0x40]);
    assert_eq!(op("neg", &input, &[]), (Dtype::BF16, vec![3], vec![0x80, 0xBF, 0x00, 0x40, 0x40, 0xC0]));
}

#[test]
fn f16() {
    // 4 -> 2.
    assert_eq!(op("sqrt", &x("F16", &[1], &[0x00, 0x44]), &[]), (Dtype::F16, vec![1], vec![0x00, 0x40]));
}

#[test]
fn fp8() {
    // 1, -1, NaN.
    let input = x("F8_E4M3", &[3], &[0x38, 0xB8, 0x7F]);
    assert_eq!(op("abs", &input, &[]), (Dtype::F8_E4M3, vec![3], vec![0x38, 0x38, 0x7F]));
    assert_eq!(op("isnan", &input, &[]), (Dtype::BOOL, vec![3], vec![0, 0, 1]));
    assert_eq!(op("neg", &x("F8_E5M2", &[1], &[0x3C]), &[]), (Dtype::F8_E5M2, vec![1], vec![0xBC]));
}

#[test]
fn integers() {
    let bytes: Vec<u8> = [-5_i32, i32::MIN, 7].iter().flat_map(|value| value.to_le_bytes()).collect();
    let expected: Vec<u8> = [5_i32, i32::MIN, 7].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(op("abs", &x("I32", &[3], &bytes), &[]), (Dtype::I32, vec![3], expected));
    assert_eq!(op("bitwise_not", &x("U8", &[2], &[0, 0xF0]), &[]), (Dtype::U8, vec![2], vec![0xFF, 0x0F]));
    assert_eq!(op("neg", &x("I8", &[2], &[1, 0x80]), &[]), (Dtype::I8, vec![2], vec![0xFF, 0x80]));
    assert_eq!(op("sign", &x("I16", &[1], &[0, 0x80]), &[]), (Dtype::I16, vec![1], vec![0xFF, 0xFF]));
    let long = i64::MAX.to_le_bytes();
    assert_eq!(op("relu", &x("I64", &[1], &long), &[]), (Dtype::I64, vec![1], long.to_vec()));
}

#[test]
fn bools() {
    assert_eq!(op("logical_not", &x("BOOL", &[2, 1], &[0, 1]), &[]), (Dtype::BOOL, vec![2, 1], vec![1, 0]));
}

#[test]
fn parameters() {
    let input = x("F32", &[3], &f32s(&[-4.0, 0.5, 9.0]));
    let set = |settings: &[&str], name: &str| op(name, &input, settings).2;
    assert_eq!(set(&["negative_slope=0.25"], "leaky_relu"), f32s(&[-1.0, 0.5, 9.0]));
    assert_eq!(set(&["min=-1", "max=inf"], "clamp"), f32s(&[-1.0, 0.5, 9.0]));
    assert_eq!(set(&["max=none", "min=0"], "clamp"), f32s(&[0.0, 0.5, 9.0]));
    assert!(set(&["min=nan"], "clamp").chunks(4).all(|b| f32::from_le_bytes(b.try_into().unwrap()).is_nan()));
    assert_eq!(set(&["approximate=tanh"], "gelu"), set(&[], "gelu_tanh"));
    assert_eq!(set(&["approximate=none"], "gelu"), set(&[], "gelu"));
    assert_ne!(set(&[], "gelu_tanh"), set(&[], "gelu"));
}

#[test]
fn shapes_without_elements_or_dimensions() {
    assert_eq!(op("exp", &x("F32", &[0, 3], &[]), &[]), (Dtype::F32, vec![0, 3], vec![]));
    assert_eq!(op("exp", &x("F32", &[], &f32s(&[0.0])), &[]), (Dtype::F32, vec![], f32s(&[1.0])));
}

#[test]
fn any_offset_and_other_tensors() {
    // One byte before `x`, a type that no op takes after it, and a header of odd length.
    let mut data = vec![7];
    data.extend(f32s(&[-1.0, 3.0]));
    data.extend([0; 8]);
    let header = r#"{"__metadata__":{"a":"b"},"w":{"dtype":"F64","shape":[1],"data_offsets":[9,17]},
        "x":{"dtype":"F32","shape":[2],"data_offsets":[1,9]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} "#;
    for pad in 0..4 {
        let input = file(&format!("{header}{}", " ".repeat(pad)), &data);
        assert_eq!(op("relu", &input, &[]), (Dtype::F32, vec![2], f32s(&[0.0, 3.0])));
    }
}

#[test]
fn every_strategy_is_taken() {
    let folder = Folder::new("strategies");
    folder.write("in", &x("F8_E4M3", &[4], &[0x38, 0xB8, 0, 0x40]));
    for strategy in ["auto", "direct", "explicit_parallel", "register_copy", "table"] {
        folder.run(&["run", "relu", "in", "-o", strategy, "--strategy", strategy, "--device", "cpu"]).succeeds();
        assert_eq!(read_y(&folder.path(strategy)).2, [0x38, 0, 0, 0x40]);
    }
}

#[test]
fn the_output_may_be_the_input() {
    let folder = Folder::new("in-place");
    let path = folder.write("file", &x("F32", &[1], &f32s(&[4.0])));
    folder.run(&["run", "sqrt", "file", "-o", "file", "--device", "cpu"]).succeeds();
    assert_eq!(read_y(&path).2, f32s(&[2.0]));
    assert_eq!(folder.names(), ["file"]);
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("links");
    folder.write("in", &x("F32", &[1], &f32s(&[4.0])));
    let target = folder.write("target", b"old");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("target", folder.path("link")).unwrap();
    folder.run(&["run", "sqrt", "in", "-o", "link", "--device", "cpu"]).succeeds();
    assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    assert_eq!(read_y(&target).2, f32s(&[2.0]));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    // One to nothing is not replaced by a file.
    std::os::unix::fs::symlink("nowhere", folder.path("dangling")).unwrap();
    let run = folder.run(&["run", "sqrt", "in", "-o", "dangling", "--device", "cpu"]);
    run.fails(1, &["a link to a file that is not there"]);
    assert!(fs::symlink_metadata(folder.path("dangling")).unwrap().is_symlink());
    // A device is written to, not replaced.
    folder.run(&["run", "sqrt", "in", "-o", "/dev/null", "--device", "cpu"]).succeeds();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

//! `pointwise run` of ops of several operands, and of those beside the tables.

mod common;

use std::fs;

use common::{Folder, f32s, file};
use pointwise::{DType, Device, Philox, Tensor, kernel::SinusoidalLayout, kernels, ops};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

/// A tensor of a file: name, type, shape, bytes.
type Given<'a> = (&'a str, &'a str, &'a [usize], Vec<u8>);

fn input(tensors: &[Given<'_>]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.insert((*name).to_owned(), json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }));
        data.extend(bytes);
    }
    file(&json!(header).to_string(), &data)
}

/// Type, shape and bytes of `y`, the only tensor of the result.
type Y = (Dtype, Vec<usize>, Vec<u8>);

fn read_y(folder: &Folder) -> Y {
    let bytes = fs::read(folder.path("out")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.names(), ["y"]);
    let y = file.tensor("y").unwrap();
    (y.dtype(), y.shape().to_vec(), y.data().to_vec())
}

fn call(folder: &Folder, op: &str, file: &[&str], settings: &[&str]) -> common::Done {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    folder.run(
        &["run", op]
            .into_iter()
            .chain(file.iter().copied())
            .chain(["-o", "out", "--device", "cpu"])
            .chain(settings)
            .collect::<Vec<_>>(),
    )
}

#[track_caller]
fn run(op: &str, tensors: &[Given<'_>], settings: &[&str]) -> Y {
    let folder = Folder::new(op);
    folder.write("in", &input(tensors));
    assert_eq!(call(&folder, op, &["in"], settings).succeeds(), "", "quiet in a pipe");
    read_y(&folder)
}

fn floats(values: &[f32], shape: &[usize]) -> Y {
    (Dtype::F32, shape.to_vec(), f32s(values))
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn binary_ops_broadcast() {
    let (a, b) = (f32s(&[1.0, 2.0, -3.0, 4.0]), f32s(&[10.0, 20.0]));
    let tensors = [("b", "F32", &[2][..], b), ("a", "F32", &[2, 2], a), ("other", "F64", &[1], vec![0; 8])];
    assert_eq!(run("add", &tensors, &[]), floats(&[11.0, 22.0, 7.0, 24.0], &[2, 2]));
    assert_eq!(run("add", &tensors, &["alpha=2"]), floats(&[21.0, 42.0, 17.0, 44.0], &[2, 2]));
    assert_eq!(run("sub", &tensors, &["b=1"]), floats(&[0.0, 1.0, -4.0, 3.0], &[2, 2]));
    assert_eq!(run("sub", &tensors, &["a=1", "alpha=0.5"]), floats(&[-4.0, -9.0], &[2]));
    assert_eq!(run("gt", &tensors, &["b=1.5"]), (Dtype::BOOL, vec![2, 2], vec![0, 1, 0, 1]));
    let columns = [("a", "F32", &[2, 1][..], f32s(&[1.0, 2.0])), ("b", "F32", &[3], f32s(&[1.0, 2.0, 3.0]))];
    assert_eq!(run("mul", &columns, &[]), floats(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0], &[2, 3]));
}

#[test]
fn rounding_mode_chooses_the_division() {
    let tensors = [("a", "F32", &[2][..], f32s(&[-7.0, 7.0])), ("b", "F32", &[], f32s(&[2.0]))];
    assert_eq!(run("div", &tensors, &[]), floats(&[-3.5, 3.5], &[2]));
    assert_eq!(run("div", &tensors, &["rounding_mode=none"]), floats(&[-3.5, 3.5], &[2]));
    assert_eq!(run("div", &tensors, &["rounding_mode=trunc"]), floats(&[-3.0, 3.0], &[2]));
    assert_eq!(run("div", &tensors, &["b=-2", "rounding_mode=floor"]), floats(&[3.0, -4.0], &[2]));
    let ints = [("a", "I32", &[2][..], i32s(&[-7, 7]))];
    assert_eq!(run("div", &ints, &["rounding_mode=floor", "b=2"]), (Dtype::I32, vec![2], i32s(&[-4, 3])));
}

#[test]
fn operands_of_different_types_meet() {
    let tensors = [("a", "F32", &[2][..], f32s(&[0.5, 1.0])), ("b", "I32", &[2], i32s(&[1, -2]))];
    assert_eq!(run("add", &tensors, &[]), floats(&[1.5, -1.0], &[2]));
    assert_eq!(run("lt", &tensors, &[]), (Dtype::BOOL, vec![2], vec![1, 0]));
    let ints = [("a", "I32", &[2][..], i32s(&[1, -2])), ("b", "U8", &[2], vec![3, 200])];
    assert_eq!(run("add", &ints, &[]), (Dtype::I32, vec![2], i32s(&[4, 198])));
    assert_eq!(run("div", &ints, &["b=4"]), floats(&[0.25, -0.5], &[2]));
    assert_eq!(run("add", &ints, &["b=0.5"]), floats(&[1.5, -1.5], &[2]));
    assert_eq!(run("sqrt", &[("x", "U8", &[2], vec![4, 9])], &[]), floats(&[2.0, 3.0], &[2]));
}

#[test]
fn a_weight_for_each_channel() {
    let x = ("x", "F32", &[1, 2, 2][..], f32s(&[-1.0, 2.0, -3.0, -4.0]));
    let weight = ("weight", "F32", &[2][..], f32s(&[0.5, 2.0]));
    assert_eq!(run("prelu", &[x.clone(), weight], &[]), floats(&[-0.5, 2.0, -6.0, -8.0], &[1, 2, 2]));
    assert_eq!(run("prelu", &[x], &["weight=0.25"]), floats(&[-0.25, 2.0, -0.75, -1.0], &[1, 2, 2]));
}

#[test]
fn gated_ops_halve_the_last_dimension() {
    let x = ("x", "F32", &[1, 2, 4][..], f32s(&[0.0, 20.0, 5.0, 3.0, -0.0, 40.0, 1.0, 0.5]));
    assert_eq!(run("silu_and_mul", &[x], &[]), floats(&[0.0, 60.0, -0.0, 20.0], &[1, 2, 2]));
    let folder = Folder::new("gated-odd");
    folder.write("in", &input(&[("x", "F32", &[3], f32s(&[1.0; 3]))]));
    call(&folder, "gelu_and_mul", &["in"], &[]).fails(1, &["last dimension"]);
    call(&folder, "gelu_and_mul", &["in"], &["x=1"]).fails(2, &["no parameter \"x\""]);
}

/// The tensors of the result, by name.
#[track_caller]
fn run_several(op: &str, tensors: &[Given<'_>], settings: &[&str], names: &[&str]) -> Vec<Y> {
    let folder = Folder::new(op);
    folder.write("in", &input(tensors));
    call(&folder, op, &["in"], settings).succeeds();
    let bytes = fs::read(folder.path("out")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut found = file.names();
    found.sort_unstable();
    assert_eq!(found, names);
    let of = |name: &&str| file.tensor(name).map(|y| (y.dtype(), y.shape().to_vec(), y.data().to_vec())).unwrap();
    names.iter().map(of).collect()
}

#[test]
fn gradients_have_a_tensor_each() {
    let grad = ("grad", "F32", &[2][..], f32s(&[2.0, 3.0]));
    let (a, b) = (("a", "F32", &[2][..], f32s(&[5.0, 7.0])), ("b", "F32", &[1][..], f32s(&[10.0])));
    let names = ["grad_a", "grad_b"];
    let product = [floats(&[20.0, 30.0], &[2]), floats(&[10.0, 21.0], &[2])];
    assert_eq!(run_several("mul_backward", &[grad.clone(), a.clone(), b], &[], &names), product);
    assert_eq!(run_several("mul_backward", &[grad.clone(), a.clone()], &["b=10"], &names), product);
    let sums = [floats(&[2.0, 3.0], &[2]), floats(&[-4.0, -6.0], &[2])];
    assert_eq!(run_several("sub_backward", std::slice::from_ref(&grad), &["alpha=2"], &names), sums);
    let cond = ("condition", "BOOL", &[2][..], vec![1, 0]);
    let chosen = [floats(&[2.0, 0.0], &[2]), floats(&[0.0, 3.0], &[2])];
    assert_eq!(run_several("where_backward", &[cond, grad.clone()], &[], &names), chosen);
    let x = ("x", "F32", &[2][..], f32s(&[-1.0, 1.0]));
    assert_eq!(run("relu_backward", &[grad, x], &[]), floats(&[0.0, 3.0], &[2]));
    let grad = ("grad", "F32", &[1, 1][..], f32s(&[2.0]));
    let x = ("x", "F32", &[1, 2][..], f32s(&[0.0, 3.0]));
    assert_eq!(run("silu_and_mul_backward", &[grad, x.clone()], &[]), floats(&[3.0, 0.0], &[1, 2]));
    assert_eq!(run("silu_and_mul_backward", &[x], &["grad=2"]), floats(&[3.0, 0.0], &[1, 2]));
}

#[test]
fn ternary_ops() {
    let cond = ("condition", "BOOL", &[2][..], vec![1, 0]);
    let (a, b) = (("a", "F32", &[2, 1][..], f32s(&[1.0, 2.0])), ("b", "F32", &[1][..], f32s(&[9.0])));
    let tensors = [cond, a.clone(), b.clone()];
    assert_eq!(run("where", &tensors, &[]), floats(&[1.0, 9.0, 2.0, 9.0], &[2, 2]));
    assert_eq!(run("where", &tensors, &["b=-inf"]).2, f32s(&[1.0, f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY]));
    assert_eq!(run("where", &tensors, &["condition=false"]), floats(&[9.0, 9.0], &[2, 1]));
    assert_eq!(run("lerp", &[a.clone(), b], &["weight=0.5"]), floats(&[5.0, 5.5], &[2, 1]));
    let x = ("x", "I32", &[3][..], i32s(&[-5, 0, 5]));
    let (min, max) = (("min", "I32", &[3][..], i32s(&[-1, 2, -1])), ("max", "I32", &[1][..], i32s(&[3])));
    let of = |values: &[i32]| (Dtype::I32, vec![3], i32s(values));
    let tensors = [x, min, max];
    assert_eq!(run("clamp", &tensors, &[]), of(&[-1, 2, 3]));
    assert_eq!(run("clamp_tensor", &tensors, &[]), of(&[-1, 2, 3]));
    assert_eq!(run("clamp_tensor", &tensors, &["max=none"]), of(&[-1, 2, 5]));
    assert_eq!(run("clamp_tensor", &tensors, &["min=None", "max=1"]), of(&[-5, 0, 1]));
}

#[test]
fn bounds_are_tensors_numbers_or_missing() {
    let x = ("x", "F32", &[3][..], f32s(&[-5.0, 0.0, 5.0]));
    let (min, max) = (("min", "F32", &[3][..], f32s(&[-1.0, 2.0, -1.0])), ("max", "F32", &[1][..], f32s(&[3.0])));
    let [both, below, above] = [&[x.clone(), min.clone(), max.clone()][..], &[x.clone(), min], &[x.clone(), max]];
    let of = |values: &[f32]| floats(values, &[3]);
    for op in ["clamp", "clamp_tensor"] {
        assert_eq!(run(op, both, &[]), of(&[-1.0, 2.0, 3.0]), "{op}");
        assert_eq!(run(op, below, &[]), of(&[-1.0, 2.0, 5.0]), "{op}");
        assert_eq!(run(op, above, &[]), of(&[-5.0, 0.0, 3.0]), "{op}");
        assert_eq!(run(op, below, &["max=1"]), of(&[-1.0, 1.0, 1.0]), "{op}");
        // A setting goes before a tensor of its name.
        assert_eq!(run(op, both, &["min=none"]), of(&[-5.0, 0.0, 3.0]), "{op}");
        assert_eq!(run(op, both, &["min=-2", "max=none"]), of(&[-2.0, 0.0, 5.0]), "{op}");
        assert_eq!(run(op, both, &["min=-2", "max=1"]), of(&[-2.0, 0.0, 1.0]), "{op}");
        let folder = Folder::new("no-bound");
        folder.write("in", &input(std::slice::from_ref(&x)));
        folder.write("both", &input(both));
        call(&folder, op, &["in"], &[]).fails(2, &["needs one bound at least"]);
        call(&folder, op, &["both"], &["min=none", "max=none"]).fails(2, &["needs one bound at least"]);
    }
}

#[test]
fn no_tensor_with_a_name_that_an_op_knows_is_ignored() {
    let folder = Folder::new("every-name");
    let listed: Value = serde_json::from_str(&folder.run(&["list", "--json"]).succeeds()).unwrap();
    let words = |list: &Value| -> Vec<String> {
        let word = |item: &Value| item.as_str().or(item["name"].as_str()).unwrap().to_owned();
        list.as_array().unwrap().iter().map(word).collect()
    };
    let mut refused = 0;
    for op in listed.as_array().unwrap().iter().filter(|op| op["kind"] != "generator") {
        let (name, kind) = (op["name"].as_str().unwrap(), op["kind"].as_str().unwrap());
        let of = |tensor: &str| -> (&str, &[usize], Vec<u8>) {
            match (tensor, kind) {
                ("condition" | "mask", _) => ("BOOL", &[1, 2], vec![1, 0]),
                ("labels" | "positions", _) => ("I64", &[1], 0_i64.to_le_bytes().to_vec()),
                ("weight", _) => ("F32", &[], f32s(&[0.25])),
                ("min", "unary") => ("F32", &[1], f32s(&[0.5])),
                ("max", "unary") => ("F32", &[1], f32s(&[-0.5])),
                ("grad", "gated_gradients") => ("F32", &[1, 1], f32s(&[1.5])),
                (_, "rope") => ("F32", &[1, 1, 1, 2], f32s(&[-1.5, 2.5])),
                _ if words(&op["types"]).contains(&"f32".to_owned()) => ("F32", &[1, 2], f32s(&[-1.5, 2.5])),
                _ => ("I32", &[1, 2], i32s(&[-1, 2])),
            }
        };
        let mut arguments = words(&op["arguments"]);
        // The others of a rotary op may be left out.
        arguments.truncate(if kind == "rope" { 1 } else { usize::MAX });
        let write = |file: &str, more: Option<&str>| {
            let names = arguments.iter().map(String::as_str).chain(more);
            let tensors = names.map(|tensor| {
                let (dtype, shape, bytes) = of(tensor);
                (tensor, dtype, shape, bytes)
            });
            folder.write(file, &input(&tensors.collect::<Vec<_>>()));
        };
        let needed: &[&str] = match name {
            "clamp" => &["min=-9"],
            "masked_fill" => &["value=9"],
            _ => &[],
        };
        write("in", None);
        call(&folder, name, &["in"], needed).succeeds();
        let plain = fs::read(folder.path("out")).unwrap();
        let mut known = words(&op["parameters"]);
        if kind.starts_with("gated") {
            known.extend(["gate".to_owned(), "value".to_owned()]);
        }
        for tensor in &known {
            write("more", Some(tensor));
            let is_set = needed.iter().any(|set| set.starts_with(tensor));
            let done = call(&folder, name, &["more"], if is_set { &[] } else { needed });
            if name == "clamp" {
                done.succeeds();
                assert_ne!(fs::read(folder.path("out")).unwrap(), plain, "{tensor} is not used");
            } else {
                done.fails(1, &[&format!("more has a tensor {tensor}, but {name} ")]);
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn masked_fill_takes_its_value_from_the_file() {
    let inf = f32::INFINITY;
    let x = ("x", "F32", &[2][..], f32s(&[1.0, 2.0]));
    let mask = ("mask", "BOOL", &[2][..], vec![0, 1]);
    let value = |dtype, shape, bytes| input(&[x.clone(), mask.clone(), ("value", dtype, shape, bytes)]);
    let folder = Folder::new("masked-fill-value");
    for (dtype, bytes, filled) in [
        ("F32", f32s(&[inf]), inf),
        ("BF16", vec![0x80, 0xBF], -1.0),
        ("I64", 3_i64.to_le_bytes().to_vec(), 3.0),
        ("BOOL", vec![1], 1.0),
    ] {
        folder.write("in", &value(dtype, &[], bytes));
        call(&folder, "masked_fill", &["in"], &[]).succeeds();
        assert_eq!(read_y(&folder), floats(&[1.0, filled], &[2]), "{dtype}");
        call(&folder, "masked_fill", &["in"], &["value=9"]).succeeds();
        assert_eq!(read_y(&folder), floats(&[1.0, 9.0], &[2]), "a setting goes first");
    }
    folder.write("in", &value("F32", &[1], f32s(&[1.0])));
    call(&folder, "masked_fill", &["in"], &[]).fails(1, &["does not take value as a tensor with dimensions"]);
}

#[test]
fn masked_fill() {
    let x = ("x", "F32", &[2, 2][..], f32s(&[1.0, 2.0, 3.0, 4.0]));
    let tensors = [x, ("mask", "BOOL", &[2], vec![0, 1])];
    let inf = f32::NEG_INFINITY;
    assert_eq!(run("masked_fill", &tensors, &["value=-inf"]), floats(&[1.0, inf, 3.0, inf], &[2, 2]));
    let folder = Folder::new("masked-fill-faults");
    folder.write("in", &input(&tensors));
    folder.write("floats", &input(&[("x", "F32", &[1], f32s(&[1.0])), ("mask", "F32", &[1], f32s(&[1.0]))]));
    call(&folder, "masked_fill", &["in"], &[]).fails(2, &["masked_fill needs --set value=..."]);
    call(&folder, "masked_fill", &["in"], &["value=x"]).fails(2, &["value=x: not a number"]);
    call(&folder, "masked_fill", &["in"], &["value=1e39"]).fails(2, &["value = 1", "beyond the range of f32"]);
    call(&folder, "masked_fill", &["floats"], &["value=0"]).fails(1, &["does not take f32", "of mask", "bool"]);
    call(&folder, "masked_fill", &["in", "--strategy", "direct"], &["value=0"]).fails(2, &["leave --strategy out"]);
    assert_eq!(folder.names(), ["floats", "in"]);
}

#[test]
fn dropout() {
    let values: Vec<f32> = (1..=100).map(|i| i as f32).collect();
    let tensors = [("x", "F32", &[100][..], f32s(&values))];
    let x = Tensor::from_slice(&Device::cpu(), &values, [100]).unwrap();
    let of = |p: f64, training: bool, seed: u64, offset: u64| {
        let y = kernels::dropout(p).training(training).run(&x, Philox { seed, offset }).unwrap();
        floats(&y.to_vec::<f32>().unwrap(), &[100])
    };
    assert_eq!(run("dropout", &tensors, &[]), of(0.5, true, 0, 0));
    let settings = ["p=0.2", "seed=18446744073709551615", "offset=7"];
    assert_eq!(run("dropout", &tensors, &settings), of(0.2, true, u64::MAX, 7));
    assert_ne!(run("dropout", &tensors, &settings), run("dropout", &tensors, &settings[..2]));
    assert_eq!(run("dropout", &tensors, &["training=False"]), floats(&values, &[100]));
    assert_eq!(run("dropout", &tensors, &["p=1"]), floats(&[0.0; 100], &[100]));
    let folder = Folder::new("dropout-faults");
    folder.write("in", &input(&tensors));
    folder.write("ints", &input(&[("x", "I32", &[1], i32s(&[1]))]));
    for (file, settings, code, words) in [
        ("in", &["p=1.5"][..], 2, "p = 1.5"),
        ("in", &["p=nan"], 2, "p = NaN"),
        ("in", &["p=x"], 2, "p=x: not a number"),
        ("in", &["seed=-1"], 2, "seed=-1: must be a whole number"),
        ("in", &["training=yes"], 2, "training=yes: must be true or false"),
        ("in", &["sede=1"], 2, "did you mean seed?"),
        ("in", &["p=0.1", "p=0.2"], 2, "p is given twice"),
        ("ints", &[], 1, "dropout does not take i32"),
    ] {
        call(&folder, "dropout", &[file], settings).fails(code, &[words]);
    }
    call(&folder, "dropout", &[], &[]).fails(2, &["<IN>"]);
    assert_eq!(folder.names(), ["in", "ints"]);
}

#[test]
fn position_encodings_need_no_file() {
    let folder = Folder::new("encodings");
    let device = Device::cpu();
    call(&folder, "alibi", &[], &["num_heads=3", "seq_len=5", "causal=true", "dtype=bf16"]).succeeds();
    let expected = ops::alibi_causal(&device, DType::BF16, 3, 5).unwrap();
    assert_eq!(read_y(&folder), (Dtype::BF16, vec![3, 5, 5], expected.to_bytes().unwrap()));
    call(&folder, "sinusoidal", &[], &["seq_len=7", "d_model=6", "halves=1"]).succeeds();
    let expected = ops::sinusoidal(&device, DType::F32, 7, 6, SinusoidalLayout::Halves).unwrap();
    assert_eq!(read_y(&folder), (Dtype::F32, vec![7, 6], expected.to_bytes().unwrap()));
    fs::remove_file(folder.path("out")).unwrap();
    for (op, settings, words) in [
        ("alibi", &["num_heads=3"][..], "alibi needs --set seq_len=..."),
        ("alibi", &["num_heads=x", "seq_len=1"], "num_heads=x: must be a size"),
        ("alibi", &["num_heads=1", "seq_len=1", "dtype=i32"], "dtype=i32: must be one of f32, f16"),
        ("sinusoidal", &["seq_len=4294967296", "d_model=2"], "at most 2^31"),
        ("sinusoidal", &["seq_len=2", "d_model=3"], "d_model = 3"),
        ("sinusoidal", &["seq_len=2", "d_model=4", "layout=halves"], "it has seq_len, d_model, halves, dtype"),
    ] {
        call(&folder, op, &[], settings).fails(2, &[words]);
    }
    folder.run(&["run", "alibbi", "-o", "out"]).fails(2, &["did you mean alibi?"]);
    assert!(folder.names().is_empty());
}

#[test]
fn faults() {
    let folder = Folder::new("operand-faults");
    let f =
        |name: &'static str, shape: &'static [usize]| (name, "F32", shape, f32s(&vec![1.0; shape.iter().product()]));
    folder.write("a", &input(&[f("a", &[2])]));
    folder.write("shapes", &input(&[f("a", &[2]), f("b", &[3])]));
    folder.write("types", &input(&[f("a", &[2]), ("b", "I32", &[2], i32s(&[1, 2]))]));
    folder.write("ints", &input(&[("a", "I32", &[2], i32s(&[1, 2]))]));
    folder.write("cond", &input(&[f("condition", &[2]), f("a", &[2]), f("b", &[2])]));
    folder.write("channels", &input(&[f("x", &[2, 3]), f("weight", &[2])]));
    let names = folder.names();
    for (op, file, settings, code, words) in [
        ("add", "a", &[][..], 1, &["a has no tensor b"][..]),
        ("add", "shapes", &[], 1, &["[2]", "[3]"]),
        ("lerp", "types", &["weight=0.5"], 1, &["operand b of lerp", "i32"]),
        ("silu", "types", &[], 1, &["has no tensor x"]),
        ("add", "ints", &["b=1", "alpha=0.5"], 2, &["alpha = 0.5", "give an integer"]),
        ("add", "ints", &["b=x"], 2, &["b=x: not a number"]),
        ("add", "a", &["a=1", "b=2"], 2, &["add of numbers alone"]),
        ("add", "a", &["b=2", "b=3"], 2, &["b is given twice"]),
        ("add", "a", &["c=2"], 2, &["no parameter \"c\"", "it has alpha, a, b"]),
        ("div", "a", &["b=2", "rounding_mode=up"], 2, &["must be none or trunc or floor"]),
        ("bitwise_and", "shapes", &[], 1, &["bitwise_and does not take f32"]),
        ("where", "cond", &[], 1, &["where does not take f32, the element type of condition: it takes bool"]),
        ("where", "cond", &["condition=2"], 2, &["condition = 2"]),
        ("prelu", "channels", &[], 1, &["weight"]),
    ] {
        call(&folder, op, &[file], settings).fails(code, words);
    }
    assert_eq!(folder.names(), names);
}

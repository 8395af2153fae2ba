//! `list`, `doctor`, `tour` and the help.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::Folder;
use pointwise::info::{self, OpInfo};
use pointwise::rope::ROPE;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

/// Every op of the family that takes operands and draws nothing.
fn tables() -> Vec<&'static OpInfo> {
    info::every().map(|def| &def.info).filter(|info| !info.is_random() && !info.is_of_indices()).collect()
}

#[test]
fn list_json_has_every_op() {
    let text = Folder::new("list-json").run(&["list", "--json"]).succeeds();
    let list: Value = serde_json::from_str(&text).unwrap();
    let ops = list.as_array().unwrap();
    for info in tables() {
        let op = ops.iter().find(|op| op["name"] == info.name).unwrap_or_else(|| panic!("no {}", info.name));
        assert_eq!(op["arguments"].as_array().unwrap().len(), info.arguments().len());
        let types: Vec<_> = info.types.iter().map(|dtype| dtype.name()).collect();
        assert_eq!(op["types"], serde_json::json!(types));
        let first = if info.is_of_rows() { "register_copy" } else { "direct" };
        assert_eq!(op["strategies"][0]["name"], first);
        assert!(!op["doc"].as_str().unwrap().is_empty());
        for dtype in info.types {
            let bound = info.accuracy.bound(info.result_type(0, *dtype));
            assert_eq!(op["accuracy"]["ulp"][dtype.name()], bound);
        }
    }
    let named = |name: &str| ops.iter().find(|op| op["name"] == name).unwrap();
    for (name, kind) in [
        ("silu", "unary"),
        ("add", "binary"),
        ("prelu", "channel"),
        ("silu_and_mul", "gated"),
        ("lerp", "ternary"),
        ("where", "select"),
        ("silu_backward", "backward"),
        ("mul_backward", "gradients"),
        ("where_backward", "select_gradients"),
        ("prelu_backward", "channel_gradients"),
        ("silu_and_mul_backward", "gated_gradients"),
        ("softmax", "rows"),
        ("rms_norm_backward", "rows"),
    ] {
        assert_eq!(named(name)["kind"], kind, "{name}");
    }
    assert_eq!(
        named("clamp")["parameters"],
        serde_json::json!([{ "name": "min", "default": null }, { "name": "max", "default": null }])
    );
    assert_eq!(named("leaky_relu")["parameters"][0]["default"], 0.01);
    assert_eq!(named("gelu")["parameters"][0]["values"], serde_json::json!(["none", "tanh"]));
    assert_eq!(named("isnan")["result"], "bool");
    for (name, arguments) in [
        ("silu", &["x"][..]),
        ("add", &["a", "b"]),
        ("prelu", &["x", "weight"]),
        ("silu_and_mul", &["x"]),
        ("where", &["condition", "a", "b"]),
        ("lerp", &["a", "b", "weight"]),
        ("clamp_tensor", &["x", "min", "max"]),
        ("masked_fill", &["x", "mask"]),
        ("rms_norm", &["x", "weight"]),
        ("dropout", &["x"]),
        ("alibi", &[]),
        ("sinusoidal", &[]),
    ] {
        assert_eq!(named(name)["arguments"], serde_json::json!(arguments), "{name}");
    }
    assert_eq!(named("add")["parameters"], serde_json::json!([{ "name": "alpha", "default": 1.0 }]));
    assert_eq!(named("div")["parameters"][0]["values"], serde_json::json!(["none", "trunc", "floor"]));
    assert_eq!(named("eq")["result"], "bool");
    assert_eq!(named("logsumexp")["result"], "row");
    assert_eq!(
        named("dropout")["parameters"][0],
        serde_json::json!({ "name": "p", "default": 0.5, "required": false })
    );
    assert_eq!(named("alibi")["parameters"][0]["required"], true);
    assert_eq!(named("sinusoidal")["accuracy"]["ulp"]["f32"], 3.0);
}

#[test]
fn list_has_a_line_an_op() {
    let text = Folder::new("list").run(&["list"]).succeeds();
    let others = [
        "masked_fill(x, mask, value) ",
        "dropout(x, p=0.5, training=true, seed=0, offset=0) ",
        "alibi(num_heads, seq_len, causal=false, dtype=f32) ",
        "sinusoidal(seq_len, d_model, halves=false, dtype=f32) ",
        "div(a, b, rounding_mode=none|trunc|floor) ",
        "where(condition, a, b) ",
        "sub(a, b, alpha=1) ",
        "gelu_and_mul(x) ",
    ];
    let starts = tables().into_iter().map(|info| format!("{}(", info.name));
    for start in starts.chain(others.map(str::to_owned)) {
        assert_eq!(text.lines().filter(|line| line.starts_with(&start)).count(), 1, "{start} in {text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_fault() {
    let folder = Folder::new("pipe");
    for arguments in [&["list"][..], &["list", "--json"], &["doctor"], &["tour", "--device", "cpu"], &["--help"]] {
        let mut child = folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {errors}");
        assert_eq!(errors, "", "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_fault() {
    let folder = Folder::new("full");
    for arguments in [&["list"][..], &["--help"], &["--version"], &["-h"], &["run", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = folder.command(arguments).stdout(full).output().unwrap();
        common::Done::of(output, arguments).fails(1, &["cannot write to the standard output"]);
    }
}

#[test]
fn doctor_says_what_works() {
    let text = Folder::new("doctor").run(&["doctor"]).succeeds();
    for word in ["pointwise ", "cpu ", "kernels ", "compiler ", "Works: ops on the CPU"] {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

#[test]
fn doctor_says_how_to_get_a_compiler() {
    let folder = Folder::new("doctor-none");
    let output = folder.command(&["doctor"]).env("POINTWISE_DEVICE_RUSTC", "/nowhere/rustc").output().unwrap();
    let text = common::Done::of(output, &["doctor"]).succeeds();
    assert!(text.contains("/nowhere/rustc") && text.contains("rustup component add rust-src"), "{text}");
}

#[test]
fn doctor_says_what_the_loops_may_use() {
    let folder = Folder::new("doctor-cpu");
    let said = |level: &str| {
        let output = folder.command(&["doctor"]).env("POINTWISE_CPU", level).output().unwrap();
        common::Done::of(output, &["doctor"]).succeeds()
    };
    assert!(said("baseline").contains("POINTWISE_CPU=baseline: ops use no newer instructions"));
    assert!(said("sse").contains("To do: POINTWISE_CPU=sse is neither baseline nor avx2"));
}

#[test]
fn tour_checks_every_op() {
    let text = Folder::new("tour").run(&["tour", "--device", "cpu"]).succeeds();
    let row = |name: &str| text.lines().find(|line| line.split_whitespace().next() == Some(name)).map(str::to_owned);
    for info in tables() {
        let row = row(info.name).unwrap_or_else(|| panic!("no row for {}", info.name));
        assert!(row.ends_with(" ok"), "{row}");
    }
    // The ops beside the tables: of every type, and of the five float types.
    let others = [("masked_fill", 11), ("dropout", 5), ("alibi", 5), ("sinusoidal", 5)];
    for (name, _) in others {
        let row = row(name).unwrap_or_else(|| panic!("no row for {name}"));
        assert!(row.ends_with(" ok"), "{row}");
    }
    for def in ROPE {
        let row = row(def.name).unwrap_or_else(|| panic!("no row for {}", def.name));
        assert!(row.ends_with(" ok"), "{row}");
    }
    // RoPE takes three element types.
    let pairs: usize = tables().iter().map(|info| info.types.len()).sum::<usize>() + 3 * ROPE.len();
    let pairs = pairs + others.iter().map(|(_, types)| types).sum::<usize>();
    let summary =
        format!("{} ops, {pairs} op-type pairs, 0 failed, on cpu", tables().len() + others.len() + ROPE.len());
    assert!(text.contains(&summary), "{text}");
}

#[test]
fn help_has_examples() {
    let folder = Folder::new("help");
    for arguments in [&["--help"][..], &["tour", "--help"], &["list", "-h"], &["run", "--help"]] {
        let text = folder.run(arguments).succeeds();
        assert!(text.contains("\n  pointwise "), "{arguments:?}: {text}");
    }
    assert!(folder.run(&["--version"]).succeeds().starts_with("pointwise "));
}

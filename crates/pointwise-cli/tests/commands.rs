//! `list`, `doctor`, `tour` and the help.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::Folder;
use pointwise::rope::ROPE;
use pointwise::UNARY;
use serde_json::Value;

#[test]
fn list_json_has_every_op() {
    let text = Folder::new("list-json").run(&["list", "--json"]).succeeds();
    let list: Value = serde_json::from_str(&text).unwrap();
    let ops = list.as_array().unwrap();
    for def in UNARY {
        let info = &def.info;
        let op = ops.iter().find(|op| op["name"] == info.name).unwrap_or_else(|| panic!("no {}", info.name));
        assert_eq!(op["arguments"], serde_json::json!(["x"]));
        let types: Vec<_> = info.types.iter().map(|dtype| dtype.name()).collect();
        assert_eq!(op["types"], serde_json::json!(types));
        assert_eq!(op["strategies"][0]["name"], "direct");
        assert!(!op["doc"].as_str().unwrap().is_empty());
        for dtype in info.types {
            let bound = info.accuracy.bound(info.result.of(*dtype));
            assert_eq!(op["accuracy"]["ulp"][dtype.name()], bound);
        }
    }
    let named = |name: &str| ops.iter().find(|op| op["name"] == name).unwrap();
    assert_eq!(
        named("clamp")["parameters"],
        serde_json::json!([{ "name": "min", "default": null }, { "name": "max", "default": null }])
    );
    assert_eq!(named("leaky_relu")["parameters"][0]["default"], 0.01);
    assert_eq!(named("gelu")["parameters"][0]["values"], serde_json::json!(["none", "tanh"]));
    assert_eq!(named("isnan")["result"], "bool");
}

#[test]
fn list_has_a_line_an_op() {
    let text = Folder::new("list").run(&["list"]).succeeds();
    for def in UNARY {
        let start = format!("{}(x", def.info.name);
        assert!(text.lines().any(|line| line.starts_with(&start)), "{}", def.info.name);
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
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = folder.command(&["list"]).stdout(full).output().unwrap();
    common::Done::of(output, &["list"]).fails(1, &["cannot write to the standard output"]);
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
fn tour_checks_every_op() {
    let text = Folder::new("tour").run(&["tour", "--device", "cpu"]).succeeds();
    let row = |name: &str| text.lines().find(|line| line.split_whitespace().next() == Some(name)).map(str::to_owned);
    for def in UNARY {
        let row = row(def.info.name).unwrap_or_else(|| panic!("no row for {}", def.info.name));
        assert!(row.ends_with(" ok"), "{row}");
    }
    for def in ROPE {
        let row = row(def.name).unwrap_or_else(|| panic!("no row for {}", def.name));
        assert!(row.ends_with(" ok"), "{row}");
    }
    // RoPE takes three element types.
    let pairs: usize = UNARY.iter().map(|def| def.info.types.len()).sum::<usize>() + 3 * ROPE.len();
    let summary = format!("{} ops, {pairs} op-type pairs, 0 failed, on cpu", UNARY.len() + ROPE.len());
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

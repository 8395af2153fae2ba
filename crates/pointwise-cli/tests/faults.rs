//! Errors of a call and of the data: the exit code, one line, and no file left behind.

mod common;

use std::fs;

use common::{Folder, f32s, file, x};
use proptest::prelude::*;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

fn good() -> Vec<u8> {
    x("F32", &[2], &f32s(&[1.0, -1.0]))
}

/// `run silu` of a file of these bytes fails as the data's fault, with these words.
#[track_caller]
fn data_fault(name: &str, bytes: &[u8], words: &[&str]) {
    let folder = Folder::new(name);
    folder.write("in", bytes);
    folder.run(&["run", "silu", "in", "-o", "out", "--device", "cpu"]).fails(1, words);
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn faults_of_the_call() {
    let folder = Folder::new("call");
    folder.write("in", &good());
    let cases: &[(&[&str], &[&str])] = &[
        (&["run", "sliu", "in", "-o", "out"], &["no op \"sliu\"", "did you mean silu?"]),
        (&["run", "frobnicate", "in", "-o", "out"], &["no op \"frobnicate\" (`pointwise list`"]),
        (&["run", "", "in", "-o", "out"], &["no op \"\""]),
        (&["run", "a\nb", "in", "-o", "out"], &["no op \"a\\nb\""]),
        (&["run", "silu", "in", "-o", "out", "--set", "alpha=1"], &["no parameter \"alpha\"", "it has none"]),
        (&["run", "elu", "in", "-o", "out", "--set", "alhpa=1"], &["did you mean alpha?", "it has alpha"]),
        (&["run", "gelu", "in", "-o", "out", "--set", "approximate=erf"], &["must be none or tanh"]),
        (&["run", "elu", "in", "-o", "out", "--set", "alpha=abc"], &["alpha=abc: not a number"]),
        (&["run", "elu", "in", "-o", "out", "--set", "alpha="], &["NAME=VALUE"]),
        (&["run", "elu", "in", "-o", "out", "--set", "alpha"], &["NAME=VALUE"]),
        (&["run", "elu", "in", "-o", "out", "--set", "=1"], &["NAME=VALUE"]),
        (&["run", "elu", "in", "-o", "out", "--set", "alpha=1", "--set", "alpha=2"], &["alpha is given twice"]),
        (&["run", "silu", "in", "-o", "out", "--strategy", "fast"], &["a strategy is auto, direct"]),
        (&["run", "silu", "in", "-o", "out", "--device", "gpu"], &["cpu, cuda, cuda:N, emulated"]),
        (&["run", "silu", "in", "-o", "out", "--device", "cuda:-1"], &["cpu, cuda, cuda:N, emulated"]),
        (&["run", "silu", "in", "-o", "out", "--deivce", "cpu"], &["'--deivce'", "'--device'"]),
        (&["run", "silu", "in"], &["--output"]),
        (&["run", "silu", "-o", "out"], &["<IN>", "silu"]),
        (&["run", "rope_neox", "-o", "out"], &["<IN>"]),
        (
            &["run", "alibi", "in", "-o", "out", "--set", "num_heads=2", "--set", "seq_len=2"],
            &["alibi makes its tensor from --set alone", "leave in out"],
        ),
        (
            &["run", "sinusoidal", "nowhere", "-o", "out", "--set", "seq_len=2", "--set", "d_model=2"],
            &["leave nowhere out"],
        ),
        (&["run", "silu"], &["--output"]),
        (&["run"], &["<OP>"]),
        (&["frobnicate"], &["frobnicate"]),
        (&["list", "--jsno"], &["'--json'"]),
        (&["tour", "--device", "tpu"], &["cpu, cuda, cuda:N, emulated"]),
        (&["tour", "extra"], &["extra"]),
    ];
    for (arguments, words) in cases {
        folder.run(arguments).fails(2, words);
    }
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn without_a_command_the_help_is_shown() {
    let done = Folder::new("none").run(&[]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("Usage: pointwise"), "{}", done.stderr);
}

#[test]
fn parameters_that_the_type_cannot_hold() {
    let folder = Folder::new("param-type");
    folder.write("in", &x("I8", &[1], &[1]));
    let base = ["run", "clamp", "in", "-o", "out", "--device", "cpu", "--set"];
    folder.run(&[&base[..], &["min=300"]].concat()).fails(2, &["min = 300", "-128 to 127"]);
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new("unreadable");
    fs::create_dir(folder.path("dir")).unwrap();
    folder.run(&["run", "silu", "missing", "-o", "out"]).fails(1, &["cannot read missing"]);
    folder.run(&["run", "silu", "dir", "-o", "out"]).fails(1, &["cannot read dir", "directory"]);
    if cfg!(unix) {
        folder.run(&["run", "silu", "/dev/null", "-o", "out"]).fails(1, &["not a regular file"]);
    }
    assert_eq!(folder.names(), ["dir"]);
}

#[test]
fn files_that_are_not_safetensors() {
    data_fault("empty", b"", &["not a safetensors file", "0 bytes"]);
    data_fault("text", b"just some words, no tensors", &["not a safetensors file"]);
    data_fault("huge-header", &u64::MAX.to_le_bytes(), &["not a safetensors file", "at most"]);
    data_fault("long-header", &1000_u64.to_le_bytes(), &["cut off"]);
    data_fault("no-json", &file("nonsense", &[]), &["header"]);
    data_fault("deep-json", &file(&"[".repeat(100_000), &[]), &["header"]);
    data_fault("too-long", &[good(), vec![0]].concat(), &["bytes", "something behind it"]);
    data_fault("too-short", &good()[..good().len() - 1], &["bytes", "cut off"]);
    let hole = r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    data_fault("hole", &file(hole, &[0; 8]), &["not a safetensors file", "offset"]);
    let short = r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#;
    data_fault("shape", &file(short, &[0; 8]), &["not a safetensors file"]);
    let overflow = r#"{"x":{"dtype":"F32","shape":[4611686018427387904,16],"data_offsets":[0,8]}}"#;
    data_fault("overflow", &file(overflow, &[0; 8]), &["not a safetensors file"]);
    // 2^32 squared is 0 in 64 bits.
    let square = r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#;
    data_fault("square", &file(square, &[]), &["not a safetensors file"]);
    let empty_square = r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}"#;
    data_fault("empty-square", &file(empty_square, &[]), &["not a safetensors file"]);
    let beyond = r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}}"#;
    data_fault("beyond", &file(beyond, &[0; 4]), &["not a safetensors file"]);
    let all = r#"{"x":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#;
    data_fault("all", &file(all, &[0; 4]), &["not a safetensors file"]);
    let backwards = r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#;
    data_fault("backwards", &file(backwards, &[0; 8]), &["not a safetensors file"]);
}

#[test]
fn tensors_that_do_not_serve() {
    let other = r#"{"X":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    data_fault("no-x", &file(other, &[0; 4]), &["no tensor x", "X"]);
    data_fault("no-tensors", &file("{}", &[]), &["no tensor x", "it has none"]);
    data_fault("f64", &x("F64", &[1], &[0; 8]), &["tensor x", "F64", "BF16"]);
    data_fault("u16", &x("U16", &[1], &[0; 2]), &["tensor x", "U16"]);
    data_fault("int", &x("I32", &[1], &[0; 4]), &["silu does not take i32", "f8e5m2"]);
    data_fault("bad-bool", &x("BOOL", &[2], &[1, 2]), &["tensor x", "byte 2 at element 1"]);
    data_fault("rank", &x("F32", &[1; 9], &[0; 4]), &["tensor x", "9 dimensions"]);
    data_fault("zero-huge", &x("F32", &[0, 1 << 62, 1 << 62], &[]), &["too large"]);
    data_fault("zero-square", &x("F32", &[0, 1 << 32, 1 << 32], &[]), &["too large"]);
    data_fault("zero-most", &x("F32", &[0, usize::MAX], &[]), &["too large"]);
}

/// Operands that fit a file, of a result that fits no memory or no address.
#[test]
fn results_that_fit_nowhere() {
    let folder = Folder::new("broadcast");
    let write = |name: &str, shapes: [[usize; 3]; 3]| {
        let names = ["a", "b", "weight"];
        let sizes = shapes.map(|shape| shape.iter().product::<usize>());
        let ends = [sizes[0], sizes[0] + sizes[1], sizes.iter().sum()];
        let tensor = |k: usize| {
            let (name, shape, from) = (names[k], shapes[k], ends[k] - sizes[k]);
            format!(r#""{name}":{{"dtype":"F8_E4M3","shape":{shape:?},"data_offsets":[{from},{}]}}"#, ends[k])
        };
        let header = format!("{{{}}}", [0, 1, 2].map(tensor).join(","));
        folder.write(name, &file(&header, &vec![0; ends[2]]));
    };
    let n = 1 << 22;
    write("cube", [[n, 1, 1], [1, n, 1], [1, 1, n]]);
    folder.run(&["run", "lerp", "cube", "-o", "out", "--device", "cpu"]).fails(1, &["too large to address"]);
    // More than any system lets a program address.
    write("large", [[n, 1, 1], [1, n, 1], [1, 1, 1 << 10]]);
    folder.run(&["run", "lerp", "large", "-o", "out", "--device", "cpu"]).fails(1, &["out of memory"]);
    write("empty", [[0, 1 << 40, 1], [0, 1, 1 << 40], [1, 1, 1]]);
    folder.run(&["run", "lerp", "empty", "-o", "out", "--device", "cpu"]).fails(1, &["too large to address"]);
    write("none", [[0, 3, 1], [0, 1, 5], [1, 1, 1]]);
    folder.run(&["run", "lerp", "none", "-o", "out", "--device", "cpu"]).succeeds();
    assert_eq!(folder.names(), ["cube", "empty", "large", "none", "out"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::new("unwritable");
    folder.write("in", &good());
    fs::create_dir(folder.path("dir")).unwrap();
    folder.run(&["run", "silu", "in", "-o", "dir"]).fails(1, &["cannot write dir", "directory"]);
    folder.run(&["run", "silu", "in", "-o", "dir/.."]).fails(1, &["directory"]);
    folder.run(&["run", "silu", "in", "-o", "nowhere/out"]).fails(1, &["cannot write nowhere/out", "no such folder"]);
    folder.run(&["run", "silu", "in", "-o", "in/out"]).fails(1, &["cannot write in/out"]);
    folder.run(&["run", "silu", "in", "-o", ""]).fails(2, &["--output"]);
    let long = "n".repeat(300);
    folder.run(&["run", "silu", "in", "-o", &long]).fails(1, &["cannot write nnn"]);
    let fixed = folder.write("fixed", b"keep");
    let mut permissions = fs::metadata(&fixed).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&fixed, permissions).unwrap();
    folder.run(&["run", "silu", "in", "-o", "fixed"]).fails(1, &["read-only"]);
    for new in ["new/", "new/."] {
        folder.run(&["run", "silu", "in", "-o", new]).fails(1, &["cannot write new/", "it names a folder"]);
    }
    assert_eq!(fs::read(&fixed).unwrap(), b"keep");
    if cfg!(target_os = "linux") {
        folder.run(&["run", "silu", "in", "-o", "/dev/full", "--device", "cpu"]).fails(1, &["cannot write /dev/full"]);
    }
    assert_eq!(folder.names(), ["dir", "fixed", "in"]);
    assert!(fs::read_dir(folder.path("dir")).unwrap().next().is_none());
}

/// Before an input is opened: it is not there, and that is not what is said.
#[cfg(unix)]
#[test]
fn outputs_are_looked_at_before_the_work() {
    let folder = Folder::new("unwritable-early");
    let fails = |out: &str, words: &[&str]| {
        for op in ["silu", "rope_neox", "dropout"] {
            folder.run(&["run", op, "missing", "-o", out, "--device", "cpu"]).fails(1, words);
        }
    };
    std::os::unix::fs::symlink("gone", folder.path("link")).unwrap();
    fails("link", &["cannot write link", "a link to a file that is not there"]);
    fs::create_dir(folder.path("closed")).unwrap();
    let mut permissions = fs::metadata(folder.path("closed")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path("closed"), permissions).unwrap();
    // Root may write there all the same; nobody may make a file in /proc.
    if fs::write(folder.path("closed/probe"), b"").is_ok() {
        fs::remove_file(folder.path("closed/probe")).unwrap();
    } else {
        fails("closed/out", &["cannot write closed/out"]);
    }
    if cfg!(target_os = "linux") {
        fails("/proc/out", &["cannot write /proc/out"]);
    }
    assert_eq!(folder.names(), ["closed", "link"]);
}

#[test]
fn a_failed_run_keeps_the_old_output() {
    let folder = Folder::new("keeps");
    folder.write("in", &x("F64", &[1], &[0; 8]));
    let out = folder.write("out", b"old");
    folder.run(&["run", "silu", "in", "-o", "out"]).fails(1, &["F64"]);
    assert_eq!(fs::read(out).unwrap(), b"old");
    assert_eq!(folder.names(), ["in", "out"]);
}

#[test]
fn a_file_cut_off_anywhere() {
    let folder = Folder::new("cut");
    let whole = good();
    for length in 0..whole.len() {
        folder.write("in", &whole[..length]);
        folder.run(&["run", "silu", "in", "-o", "out", "--device", "cpu"]).fails(1, &["in is not a safetensors file"]);
        assert_eq!(folder.names(), ["in"], "cut to {length} bytes");
    }
    folder.write("in", &whole);
    folder.run(&["run", "silu", "in", "-o", "out", "--device", "cpu"]).succeeds();
}

#[test]
fn cuda_without_a_driver() {
    let folder = Folder::new("no-driver");
    folder.write("in", &good());
    // An empty search path and no devices: with a driver there is no device, without one no driver.
    let mut command = folder.command(&["run", "silu", "in", "-o", "out", "--device", "cuda:63"]);
    let output = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    common::Done::of(output, &["run", "--device", "cuda:63"]).fails(1, &[]);
    assert_eq!(folder.names(), ["in"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes changed anywhere: the command ends by itself, with a result or one line.
    #[test]
    fn damaged_files(changes in prop::collection::vec((0_usize..100, any::<u8>()), 1..6), cut in 0_usize..120) {
        let folder = Folder::new("damaged");
        let mut bytes = good();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(cut.max(1));
        folder.write("in", &bytes);
        let done = folder.run(&["run", "silu", "in", "-o", "out", "--device", "cpu"]);
        if done.code == 0 {
            prop_assert_eq!(folder.names(), ["in", "out"]);
        } else {
            done.fails(1, &[]);
            prop_assert_eq!(folder.names(), ["in"]);
        }
    }

    /// Any text as a header.
    #[test]
    fn any_header(header in "\\PC{0,60}", data in prop::collection::vec(any::<u8>(), 0..20)) {
        let folder = Folder::new("header");
        folder.write("in", &file(&header, &data));
        folder.run(&["run", "silu", "in", "-o", "out", "--device", "cpu"]).fails(1, &[]);
        prop_assert_eq!(folder.names(), ["in"]);
    }
}

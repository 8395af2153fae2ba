//! `pointwise run` of the RoPE ops.

mod common;

use std::fs;

use common::{Folder, f32s, file, x};
use pointwise::rope::{RopeOperands, rope_op};
use pointwise::{Device, Tensor};
use safetensors::SafeTensors;
use serde_json::json;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

const Q: [f32; 12] = [1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.25, 8.0, 1.5, -2.5, 3.5, 0.0];
const K: [f32; 12] = [0.5, -2.0, 1.0, 4.0, 3.0, 0.5, -0.25, 1.0, 6.0, 7.0, -3.5, 2.0];
const SHAPE: [usize; 4] = [1, 3, 1, 4];

/// A file of q, k and position ids 5, 0, 2.
fn input() -> Vec<u8> {
    let header = json!({
        "q": { "dtype": "F32", "shape": SHAPE, "data_offsets": [0, 48] },
        "k": { "dtype": "F32", "shape": SHAPE, "data_offsets": [48, 96] },
        "position_ids": { "dtype": "I64", "shape": [3], "data_offsets": [96, 120] },
    });
    let ids = [5_i64, 0, 2].iter().flat_map(|id| id.to_le_bytes()).collect();
    file(&header.to_string(), &[f32s(&Q), f32s(&K), ids].concat())
}

#[test]
fn rotates_what_the_file_has() {
    let folder = Folder::new("rope");
    folder.write("in.safetensors", &input());
    let call = ["run", "rope_llama31", "in.safetensors", "-o", "out.safetensors", "--device", "cpu"];
    let settings = ["--set", "rope_theta=500000", "--set", "factor=32", "--set", "pairs=interleaved"];
    assert_eq!(folder.run(&[&call[..], &settings].concat()).succeeds(), "", "quiet in a pipe");

    let device = Device::cpu();
    let [q, k] = [Q, K].map(|values| Tensor::from_slice(&device, &values, SHAPE).unwrap());
    let ids = Tensor::from_slice(&device, &[5_i64, 0, 2], [3]).unwrap();
    let op = rope_op("rope_llama31").unwrap().op().set("rope_theta", "500000").unwrap().set("factor", "32").unwrap();
    let operands = RopeOperands { k: Some(k.view()), position_ids: Some(ids.view()), ..RopeOperands::new(&q) };
    let (q_out, k_out) = op.set("pairs", "interleaved").unwrap().run(&operands).unwrap();
    assert_ne!(q_out.to_vec::<f32>().unwrap(), Q);

    let bytes = fs::read(folder.path("out.safetensors")).unwrap();
    let written = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(written.len(), 2);
    for (name, expected) in [("q", q_out), ("k", k_out.unwrap())] {
        let tensor = written.tensor(name).unwrap();
        assert_eq!((tensor.shape(), tensor.data()), (&SHAPE[..], &expected.to_bytes().unwrap()[..]), "{name}");
    }
}

#[test]
fn faults() {
    let folder = Folder::new("rope-faults");
    folder.write("in.safetensors", &input());
    folder.write("x.safetensors", &x("F32", &[1], &f32s(&[1.0])));
    let run = |input: &str, more: &[&str]| {
        folder.run(&[&["run", "rope_neox", input, "-o", "out.safetensors", "--device", "cpu"], more].concat())
    };
    run("in.safetensors", &["--set", "rope_teta=3"]).fails(2, &["rope_teta", "rope_theta"]);
    run("in.safetensors", &["--set", "offset=3", "--set", "offset=4"]).fails(2, &["twice"]);
    run("in.safetensors", &["--strategy", "direct"]).fails(2, &["--strategy"]);
    // Refused for what the call says, before a file is opened where that can be told.
    for (setting, word) in [
        ("layout=foo", "bshd"),
        ("rope_theta=abc", "rope_theta"),
        ("seq_len=-1", "seq_len"),
        ("short_factor=1;2", "short_factor"),
        ("layer_type=full_attention", "`config`"),
    ] {
        run("nowhere.safetensors", &["--set", setting]).fails(2, &[word]);
    }
    let both = ["--set", "config=nowhere.json", "--set", "factor=2"];
    run("nowhere.safetensors", &both).fails(2, &["`factor`", "`config`"]);
    for setting in ["rotary_dim=3", "rotary_dim=6", "rope_theta=-1", "output_scale=inf", "factor=2", "offset=1"] {
        run("in.safetensors", &["--set", setting]).fails(2, &[setting.split_once('=').unwrap().0]);
    }
    // For what stands in the files.
    run("in.safetensors", &["--set", "layout=thd"]).fails(1, &["[tokens, heads, head_dim]"]);
    run("in.safetensors", &["--set", "config=nowhere.json"]).fails(1, &["nowhere.json"]);
    run("x.safetensors", &[]).fails(1, &["q"]);
    folder.run(&["run", "rope_neo", "in.safetensors", "-o", "out.safetensors"]).fails(2, &["rope_neox"]);
}

/// A file of zeros: q, two of everything unless given, and what else is given by name, type and shape.
fn zeros(given: &[(&str, &str, &[usize])]) -> Vec<u8> {
    let q: (&str, &str, &[usize]) = ("q", "F32", &[2, 2, 2, 2]);
    let q = Some(q).filter(|_| given.iter().all(|(name, ..)| *name != "q"));
    let (mut header, mut end) = (serde_json::Map::new(), 0);
    for (name, dtype, shape) in q.iter().chain(given) {
        let start = end;
        end += shape.iter().product::<usize>() * if *dtype == "I64" { 8 } else { 4 };
        header.insert((*name).to_owned(), json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] }));
    }
    file(&serde_json::Value::from(header).to_string(), &vec![0; end])
}

/// Operands of any rank are refused by name.
#[test]
fn ranks() {
    let folder = Folder::new("rope-ranks");
    let run = |others: &[(&str, &str, &[usize])]| {
        folder.write("in.safetensors", &zeros(others));
        folder.run(&["run", "rope_neox", "in.safetensors", "-o", "out.safetensors", "--device", "cpu"])
    };
    let dims: &[usize] = &[3; 9];
    for rank in [0, 1, 5, 8, 9] {
        for (name, dtype) in [("k", "F32"), ("position_ids", "I64"), ("freqs", "F32")] {
            run(&[(name, dtype, &dims[..rank])]).fails(1, &[name]);
        }
        run(&[("cos", "F32", &dims[..rank]), ("sin", "F32", &dims[..rank])]).fails(1, &["cos"]);
        run(&[("cos", "F32", &[2, 1]), ("sin", "F32", &dims[..rank])]).fails(1, &["sin"]);
        run(&[("q", "F32", &dims[..rank])]).fails(1, &["q"]);
    }
    run(&[("freqs", "F32", &[2, 1])]).succeeds();
    run(&[("q", "F32", &[2, 0, 2, 2])]).succeeds();
}

/// Numbers that are too large, and settings that would go unused, are refused before anything is written.
#[test]
fn settings_are_judged() {
    let folder = Folder::new("rope-settings");
    let run = |op: &str, settings: &[&str]| {
        let settings: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let call = ["run", op, "in.safetensors", "-o", "out.safetensors", "--device", "cpu"];
        folder.run(&[&call[..], &settings].concat())
    };
    folder.write("in.safetensors", &input());
    for lanes in ["18446744073709551614", "2000000000000"] {
        run("rope_longrope", &[&format!("rotary_dim={lanes}")]).fails(2, &["rotary_dim", lanes]);
    }
    folder.write("four.json", br#"{"head_dim": 4}"#);
    folder.write("two.json", br#"{"head_dim": 2}"#);
    run("rope_neox", &["config=two.json"]).fails(1, &["head_dim", "`q`", "2 lanes", "have 4"]);
    for name in ["low_freq_factor", "max_position_embeddings", "mscale", "truncate", "attention_factor"] {
        run("rope_neox", &["config=four.json", &format!("{name}=1")]).fails(2, &[name, "config"]);
    }
    assert!(!folder.names().contains(&"out.safetensors".to_owned()));
    run("rope_neox", &["config=four.json"]).succeeds();
    folder.write("in.safetensors", &zeros(&[("freqs", "F32", &[2, 1])]));
    for setting in ["config=four.json", "rope_theta=500000", "precision=exact", "seq_len=3"] {
        run("rope_neox", &[setting]).fails(2, &[setting.split_once('=').unwrap().0, "freqs"]);
    }
    run("rope_neox", &["rotary_dim=2"]).succeeds();
}

/// The layers of a model whose layers differ.
#[test]
fn layer_types() {
    let folder = Folder::new("rope-layers");
    folder.write("in.safetensors", &input());
    let gemma =
        br#"{"model_type": "gemma3_text", "head_dim": 4, "rope_scaling": {"rope_type": "linear", "factor": 8}}"#;
    folder.write("gemma.json", gemma);
    folder.write("skips.json", br#"{"head_dim": 4, "rope_parameters": {"a": {"rope_theta": 1e4}, "b": null}}"#);
    folder.write("wrong.json", br#"{"head_dim": 4, "rope_theta": -1}"#);
    let run = |settings: &[&str]| {
        let settings: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let call = ["run", "rope_neox", "in.safetensors", "-o", "out.safetensors", "--device", "cpu"];
        folder.run(&[&call[..], &settings].concat())
    };
    run(&["config=gemma.json"]).fails(2, &["layer_type", "full_attention, sliding_attention"]);
    run(&["config=gemma.json", "layer_type=full"]).fails(2, &["layer_type", "full_attention, sliding_attention"]);
    run(&["config=skips.json", "layer_type=b"]).fails(2, &["not rotated"]);
    run(&["config=wrong.json"]).fails(1, &["`rope_theta` is -1"]);
    if cfg!(unix) {
        run(&["config=/dev/zero"]).fails(1, &["config.json at /dev/zero: it is not a regular file"]);
    }
    let [full, sliding] = ["full_attention", "sliding_attention"].map(|layer| {
        run(&["config=gemma.json", &format!("layer_type={layer}")]).succeeds();
        fs::read(folder.path("out.safetensors")).unwrap()
    });
    run(&["rope_theta=10000"]).succeeds();
    assert_eq!(sliding, fs::read(folder.path("out.safetensors")).unwrap());
    assert_ne!(full, sliding);
}

#[test]
fn is_listed() {
    let folder = Folder::new("rope-list");
    let text = folder.run(&["list"]).succeeds();
    let ops: serde_json::Value = serde_json::from_str(&folder.run(&["list", "--json"]).succeeds()).unwrap();
    for name in ["rope_neox", "rope_non_neox", "rope_llama31", "rope_yarn", "rope_longrope"] {
        assert!(text.contains(&format!("\n{name}(q, [k, position_ids, cos, sin, freqs]")), "{text}");
        let op = ops.as_array().unwrap().iter().find(|op| op["name"] == name).unwrap();
        assert_eq!((&op["kind"], &op["arguments"][0]), (&json!("rope"), &json!("q")));
        for name in ["rope_theta", "layer_type"] {
            assert!(op["parameters"].as_array().unwrap().iter().any(|setting| setting["name"] == name));
        }
        // The strategies of `run --strategy`.
        assert_eq!(op["strategies"], json!([]));
    }
}

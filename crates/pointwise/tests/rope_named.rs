//! The named ops: defaults, settings by HF's names, operands.

use pointwise::rope::{
    ROPE, ROPE_SETTINGS, RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopeLayout, RopeOperands, RopePairs,
    RopePrecision, rope_llama31, rope_longrope, rope_neox, rope_non_neox, rope_op, rope_yarn, rope_yarn_inplace,
    rope_yarn_into,
};
use pointwise::{DType, Device, ErrorKind, Tensor};

const SHAPE: [usize; 4] = [1, 5, 2, 16];

fn input() -> Tensor {
    let values: Vec<f32> = (0..160).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_slice(&Device::cpu(), &values, SHAPE).unwrap()
}

/// A config.json that goes away with the test.
struct ConfigFile(std::path::PathBuf);

impl ConfigFile {
    fn new(name: &str, text: &str) -> ConfigFile {
        let path = std::env::temp_dir().join(format!("pointwise-{name}-{}-config.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        ConfigFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn by_kernel(config: &RopeConfig, pairs: RopePairs, offset: i64) -> Vec<f32> {
    let frequencies = RopeFrequencies::new(&Device::cpu(), &config.frequencies(0).unwrap()).unwrap();
    let angles = RopeAngles::Frequencies(&frequencies, RopePrecision::Hf);
    let kernel = RopeKernel::new(angles, pairs).positions(pointwise::rope::RopePositions::Offset(offset));
    kernel.run(&input(), None).unwrap().0.to_vec().unwrap()
}

#[test]
fn functions_are_the_kernel_with_the_ops_frequencies() {
    let x = input();
    let values = |(q, k): (Tensor, Option<Tensor>)| {
        assert!(k.is_none());
        q.to_vec::<f32>().unwrap()
    };
    let default = RopeConfig::default_rope(16, 1e4);
    assert_eq!(values(rope_neox(&x, None, 7).unwrap()), by_kernel(&default, RopePairs::Half, 7));
    assert_eq!(values(rope_non_neox(&x, None, 7).unwrap()), by_kernel(&default, RopePairs::Interleaved, 7));
    let llama = RopeConfig::llama3(16, 1e4);
    assert_eq!(values(rope_llama31(&x, None, 70_000).unwrap()), by_kernel(&llama, RopePairs::Half, 70_000));
    let yarn = RopeConfig::yarn(16, 1e4, 16.0, 4096);
    assert_eq!(values(rope_yarn(&x, None, 0).unwrap()), by_kernel(&yarn, RopePairs::Half, 0));
    let longrope = RopeConfig::longrope(16, 1e4, vec![1.0; 8], vec![1.0; 8], 4096).max_position_embeddings(4096);
    assert_eq!(values(rope_longrope(&x, None, 3).unwrap()), by_kernel(&longrope, RopePairs::Half, 3));
    let (q, k) = rope_neox(&x, Some(x.view()), 1).unwrap();
    assert_eq!(q.to_bytes().unwrap(), k.unwrap().to_bytes().unwrap());
}

#[test]
fn functions_write_where_they_are_told() {
    let x = input();
    let (expected, _) = rope_yarn(&x, Some(x.view()), 5).unwrap();
    let mut outputs = [0, 1].map(|_| Tensor::zeros(&Device::cpu(), x.dtype(), x.shape()).unwrap());
    let [q_out, k_out] = &mut outputs;
    rope_yarn_into(&x, Some(x.view()), &mut *q_out, Some((&mut *k_out).into()), 5).unwrap();
    let mut over = [0, 1].map(|_| x.copy().unwrap());
    let [q, k] = &mut over;
    rope_yarn_inplace(&mut *q, Some((&mut *k).into()), 5).unwrap();
    for y in outputs.iter().chain(&over) {
        assert_eq!(y.to_bytes().unwrap(), expected.to_bytes().unwrap());
    }
    let _clone = over[0].clone();
    assert!(matches!(rope_yarn_inplace(&mut over[0], None, 5).unwrap_err().kind(), ErrorKind::Shared));
}

#[test]
fn settings_reach_the_kernel() {
    let x = input();
    let run = |name: &str, settings: &[(&str, &str)]| {
        let op = settings.iter().fold(rope_op(name).unwrap().op(), |op, (name, value)| op.set(name, *value).unwrap());
        op.run(&RopeOperands::new(&x)).unwrap().0.to_vec::<f32>().unwrap()
    };
    let llama = RopeConfig::llama3(16, 500_000.0).factor(32.0).original_max_position_embeddings(1024);
    let settings =
        [("rope_theta", "500000"), ("factor", "32"), ("original_max_position_embeddings", "1024"), ("offset", "9")];
    assert_eq!(run("rope_llama31", &settings), by_kernel(&llama, RopePairs::Half, 9));
    let yarn = RopeConfig::yarn(16, 1e4, 8.0, 512).truncate(false).beta_fast(16.0).beta_slow(2.0).attention_factor(1.5);
    let settings = [
        ("factor", "8"),
        ("original_max_position_embeddings", "512"),
        ("truncate", "false"),
        ("beta_fast", "16"),
        ("beta_slow", "2"),
        ("attention_factor", "1.5"),
        ("pairs", "interleaved"),
    ];
    assert_eq!(run("rope_yarn", &settings), by_kernel(&yarn, RopePairs::Interleaved, 0));

    // The last position decides which of longrope's lists is used; a given length goes before.
    let lists = [("short_factor", "1,1,1,1,1,1,1,1"), ("long_factor", "2, 2, 2, 2, 2, 2, 2, 2")];
    let at = |more: &[(&str, &str)]| run("rope_longrope", &[&lists[..], more].concat());
    assert_eq!(at(&[("offset", "4091")]), at(&[("offset", "4091"), ("seq_len", "1")]));
    assert_eq!(at(&[("offset", "4092")]), at(&[("offset", "4092"), ("seq_len", "4097")]));
    assert_ne!(at(&[("offset", "4092")]), at(&[("offset", "4092"), ("seq_len", "4096")]));

    // There and back.
    let there = rope_op("rope_neox").unwrap().op().set("precision", "exact").unwrap();
    let (y, _) = there.run(&RopeOperands::new(&x)).unwrap();
    let (back, _) = there.set("direction", "backward").unwrap().run(&RopeOperands::new(&y)).unwrap();
    for (a, b) in back.to_vec::<f32>().unwrap().iter().zip(x.to_vec::<f32>().unwrap()) {
        assert!((a - b).abs() < 1e-6);
    }
    let scaled = run("rope_neox", &[("output_scale", "0.5"), ("rotary_dim", "8"), ("rotated_lanes", "trail")]);
    assert_eq!(scaled[0], 0.5 * x.to_vec::<f32>().unwrap()[0]);
}

#[test]
fn operands_take_the_place_of_frequencies() {
    let device = Device::cpu();
    let x = input();
    let frequencies = RopeConfig::default_rope(16, 1e4).frequencies(0).unwrap();
    let ids = Tensor::from_slice(&device, &[4_i64, 0, 3, 1, 2], [5]).unwrap();
    let (cos, sin) = frequencies.cos_sin(&[0, 1, 2, 3, 4], RopePrecision::Hf);
    let (cos, sin) =
        (Tensor::from_slice(&device, &cos, [5, 8]).unwrap(), Tensor::from_slice(&device, &sin, [5, 8]).unwrap());
    let op = rope_op("rope_neox").unwrap().op();
    let operands = RopeOperands { position_ids: Some(ids.view()), k: Some(x.view()), ..RopeOperands::new(&x) };
    let (fly, _) = op.run(&operands).unwrap();
    let (table, k) = op.run(&RopeOperands { cos: Some(cos.view()), sin: Some(sin.view()), ..operands }).unwrap();
    for (a, b) in fly.to_vec::<f32>().unwrap().iter().zip(table.to_vec::<f32>().unwrap()) {
        assert!((a - b).abs() < 1e-6);
    }
    assert_eq!(k.unwrap().to_bytes().unwrap(), table.to_bytes().unwrap());
    let refused = |operands: &RopeOperands<'_>, word: &str| {
        let message = op.run(operands).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    };
    refused(&RopeOperands { cos: Some(cos.view()), ..operands }, "give both");
    refused(
        &RopeOperands { cos: Some(cos.view()), sin: Some(sin.view()), freqs: Some(cos.view()), ..operands },
        "one kind",
    );
    let message = op.clone().set("offset", "3").unwrap().run(&operands).unwrap_err().to_string();
    assert!(message.contains("position_ids"), "{message}");
}

#[test]
fn three_ids_a_token_go_by_the_configurations_sections() {
    let x = input();
    let text = r#"{"model_type": "qwen2_vl", "hidden_size": 32, "num_attention_heads": 2, "rope_theta": 10000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}"#;
    let file = ConfigFile::new("mrope", text);
    let ids = [[0_i64, 1, 2, 3, 4], [7, 7, 8, 9, 9], [5, 6, 5, 6, 5]];
    let places = Tensor::from_slice(&Device::cpu(), ids.as_flattened(), [3, 1, 5]).unwrap();
    let operands = RopeOperands { position_ids: Some(places.view()), ..RopeOperands::new(&x) };
    let op = rope_op("rope_neox").unwrap().op().set("config", file.path()).unwrap();
    let (ours, _) = op.run(&operands).unwrap();

    let config = RopeConfig::from_path(file.path()).unwrap();
    let tokens: Vec<[i64; 3]> = (0..5).map(|token| [0, 1, 2].map(|axis| ids[axis][token])).collect();
    let axes = config.mrope().unwrap().axes().unwrap();
    let (cos, sin) = config.frequencies(0).unwrap().cos_sin_mrope(&tokens, &axes, RopePrecision::Hf).unwrap();
    let [cos, sin] = [cos, sin].map(|table| Tensor::from_slice(&Device::cpu(), &table, [1, 5, 8]).unwrap());
    let tables = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
    let (theirs, _) = RopeKernel::new(tables, RopePairs::Half).rotary_dim(16).run(&x, None).unwrap();
    for (our, their) in ours.to_vec::<f32>().unwrap().into_iter().zip(theirs.to_vec::<f32>().unwrap()) {
        assert!((our - their).abs() < 3e-7, "{our} {their}");
    }
    // A layout without a batch has axes of two dimensions.
    let flat = places.copy().unwrap().reshape([3, 5]).unwrap();
    let tokens = x.copy().unwrap().reshape([5, 2, 16]).unwrap();
    let thd = op.clone().set("layout", "thd").unwrap();
    let (packed, _) = thd.run(&RopeOperands { position_ids: Some(flat.view()), ..RopeOperands::new(&tokens) }).unwrap();
    assert_eq!(packed.to_bytes().unwrap(), ours.to_bytes().unwrap());
}

/// Ids of two dimensions are a text's where there is a batch: of three entries, too.
#[test]
fn two_dimensions_of_ids_are_batch_and_sequence() {
    let text =
        r#"{"model_type": "qwen2_vl", "head_dim": 16, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}"#;
    let file = ConfigFile::new("mrope-text", text);
    let values: Vec<f32> = (0..3 * 5 * 16).map(|i| (i as f32 * 0.7).sin()).collect();
    let x = Tensor::from_slice(&Device::cpu(), &values, [3, 5, 1, 16]).unwrap();
    let ids: Vec<i64> = (0..15).map(|i| i * 7 % 11).collect();
    let ids = Tensor::from_slice(&Device::cpu(), &ids, [3, 5]).unwrap();
    let with = |op: pointwise::rope::RopeOp, ids: &Tensor, x: &Tensor| {
        op.run(&RopeOperands { position_ids: Some(ids.view()), ..RopeOperands::new(x) }).map(|(q, _)| q)
    };
    let op = || rope_op("rope_neox").unwrap().op();
    let read = || op().set("config", file.path()).unwrap();
    let expected = with(op().set("rope_theta", "1000000").unwrap(), &ids, &x).unwrap();
    assert_eq!(with(read(), &ids, &x).unwrap().to_bytes().unwrap(), expected.to_bytes().unwrap());
    let message = with(read(), &ids, &input()).unwrap_err().to_string();
    assert!(message.contains("position_ids") && message.contains("[3, batch, sequence]"), "{message}");
}

/// The width of a table says how many lanes rotate only where it is a head's, or half of it.
#[test]
fn tables_of_a_part_of_the_head_need_rotary_dim() {
    let x = input();
    let run = |width: usize, rotary_dim: Option<&str>| {
        let table = Tensor::from_slice(&Device::cpu(), &vec![0.5_f32; 5 * width], [5, width]).unwrap();
        let op = rope_op("rope_neox").unwrap().op();
        let op = rotary_dim.into_iter().fold(op, |op, lanes| op.set("rotary_dim", lanes).unwrap());
        let (q, _) = op.run(&RopeOperands { freqs: Some(table.view()), ..RopeOperands::new(&x) })?;
        let (q, x) = (q.to_vec::<f32>()?, x.to_vec::<f32>()?);
        // The first head of a token with other angles than 0: how many lanes are not as they were.
        Ok::<_, pointwise::Error>(q[..16].iter().zip(&x[..16]).filter(|(a, b)| a != b).count())
    };
    assert_eq!((run(16, None).unwrap(), run(8, None).unwrap()), (16, 16));
    let message = run(32, None).unwrap_err().to_string();
    assert!(message.contains("`freqs` contradicts `head_dim`"), "{message}");
    for width in [1, 2, 4, 6, 12] {
        let message = run(width, None).unwrap_err().to_string();
        assert!(message.contains("`rotary_dim` is missing") && message.contains("head_dim (16)"), "{message}");
    }
    assert_eq!((run(4, Some("4")).unwrap(), run(4, Some("8")).unwrap(), run(8, Some("8")).unwrap()), (4, 8, 8));
}

#[test]
fn mistakes_name_the_setting() {
    let x = input();
    let op = || rope_op("rope_neox").unwrap().op();
    assert!(op().set("theta", "1").unwrap_err().to_string().contains("rope_theta"));
    for (name, value) in [
        ("layout", "dbsh"),
        ("pairs", "both"),
        ("rotary_dim", "many"),
        ("rotary_dim", "7"),
        ("rotary_dim", "18"),
        ("offset", "1.5"),
        ("direction", "up"),
        ("precision", "f64"),
        ("rotated_lanes", "middle"),
        ("factor", "2"),
        ("truncate", "perhaps"),
        ("short_factor", "1;2"),
        ("output_scale", "inf"),
        ("config", "no/such/file.json"),
        ("layer_type", "full_attention"),
    ] {
        let message = op().set(name, value).unwrap().run(&RopeOperands::new(&x)).unwrap_err().to_string();
        let named = if name == "config" { "config.json" } else { name };
        assert!(message.contains(named), "{name}={value}: {message}");
    }
    assert!(rope_op("rope").is_none());
    let ints = Tensor::zeros(&Device::cpu(), DType::I32, SHAPE).unwrap();
    assert!(rope_neox(&ints, None, 0).unwrap_err().is_dtype());
}

#[test]
fn lists_are_complete() {
    assert_eq!(ROPE.len(), 5);
    for def in ROPE {
        assert_eq!(rope_op(def.name), Some(def));
        let x = input();
        // Every default that the list shows is what leaving the setting out means.
        let plain = def.op().run(&RopeOperands::new(&x)).unwrap().0.to_bytes().unwrap();
        for setting in ROPE_SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            let name = setting.name;
            let yarn = ["beta_fast", "beta_slow", "truncate"].contains(&name);
            let llama = ["low_freq_factor", "high_freq_factor"].contains(&name);
            if yarn && def.name != "rope_yarn" || llama && def.name != "rope_llama31" {
                continue;
            }
            let set = def.op().set(name, setting.default).unwrap().run(&RopeOperands::new(&x)).unwrap().0;
            assert_eq!(set.to_bytes().unwrap(), plain, "{} {name}", def.name);
        }
    }
    assert_eq!("thd".parse(), Ok(RopeLayout::Thd));
}

#[test]
fn settings_that_would_go_unused_are_refused() {
    let device = Device::cpu();
    let x = input();
    let file = ConfigFile::new("unused", r#"{"head_dim": 16, "rope_theta": 10000.0}"#);
    let table = Tensor::from_slice(&device, &[0.5_f32; 5 * 8], [5, 8]).unwrap();
    let plain = RopeOperands::new(&x);
    let tables = RopeOperands { cos: Some(table.view()), sin: Some(table.view()), ..plain };
    let freqs = RopeOperands { freqs: Some(table.view()), ..plain };
    let op = || rope_op("rope_neox").unwrap().op();
    let refused = |name: &str, other: &str, result: pointwise::Result<(Tensor, Option<Tensor>)>| {
        let message = result.err().unwrap_or_else(|| panic!("{name} beside {other}")).to_string();
        assert!(message.contains(&format!("`{name}` contradicts `{other}`")), "{message}");
    };
    let parameters = ROPE_SETTINGS.iter().map(|setting| setting.name).skip_while(|name| *name != "rope_theta");
    assert_eq!(parameters.clone().count(), 14);
    for name in parameters.clone().chain(["rotary_dim"]) {
        // In whatever order they are given.
        let orders = [[("config", file.path()), (name, "16")], [(name, "16"), ("config", file.path())]];
        for settings in orders {
            let op = settings.iter().fold(op(), |op, (name, value)| op.set(name, *value).unwrap());
            refused(name, "config", op.run(&plain));
        }
    }
    for name in parameters.chain(["config", "layer_type", "precision", "seq_len"]) {
        let op = op().set(name, "16").unwrap();
        refused(name, "cos", op.run(&tables));
        refused(name, "freqs", op.run(&freqs));
    }
    // The others say something beside each.
    for (name, value) in [("precision", "exact"), ("seq_len", "9"), ("offset", "3"), ("direction", "backward")] {
        op().set("config", file.path()).unwrap().set(name, value).unwrap().run(&plain).unwrap();
    }
    for (name, value) in [("rotary_dim", "16"), ("pairs", "interleaved"), ("output_scale", "2"), ("offset", "0")] {
        let op = op().set(name, value).unwrap();
        op.run(&tables).unwrap();
        op.run(&freqs).unwrap();
    }
}

#[test]
fn a_file_of_a_model_with_other_heads_is_refused() {
    let run = |name: &str, text: &str, lanes: usize, rotated: &str| {
        let file = ConfigFile::new(name, text);
        let q = Tensor::zeros(&Device::cpu(), DType::F32, [1, 3, 2, lanes]).unwrap();
        let op = rope_op("rope_neox").unwrap().op().set("config", file.path()).unwrap();
        op.set("rotated_lanes", rotated).unwrap().run(&RopeOperands::new(&q)).map(drop)
    };
    let refused = |name: &str, text: &str, lanes: usize, rotated: &str, words: &str| {
        let message = run(name, text, lanes, rotated).unwrap_err().to_string();
        assert!(message.contains("`head_dim` contradicts `q`") && message.contains(words), "{message}");
    };
    let whole = r#"{"head_dim": 64}"#;
    run("whole", whole, 64, "lead").unwrap();
    refused("whole-of-128", whole, 128, "lead", "heads have 64 lanes, q's have 128");
    refused("whole-of-32", whole, 32, "lead", "heads have 64 lanes, q's have 32");
    // The lanes that rotate may come alone.
    let part = r#"{"head_dim": 64, "rotary_dim": 16}"#;
    run("part", part, 64, "lead").unwrap();
    run("part-alone", part, 16, "lead").unwrap();
    refused("part-of-32", part, 32, "lead", "64 lanes, of which 16 rotate, q's have 32");
    // DeepSeek's come alone, or after those that do not rotate.
    let latent = r#"{"hidden_size": 256, "num_attention_heads": 4, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16}"#;
    run("latent", latent, 16, "lead").unwrap();
    run("latent-whole", latent, 48, "trail").unwrap();
    refused("latent-lead", latent, 48, "lead", "16 lanes (48 with rotated_lanes=trail), q's have 48");
    refused("latent-of-64", latent, 64, "trail", "q's have 64");
}

/// A number that is too large is told so, before anything is as large.
#[test]
fn numbers_are_judged_before_they_count() {
    let x = input();
    let refused = |name: &str, settings: &[(&str, &str)], word: &str| {
        let op = settings.iter().fold(rope_op(name).unwrap().op(), |op, (name, value)| op.set(name, *value).unwrap());
        let message = op.run(&RopeOperands::new(&x)).unwrap_err().to_string();
        assert!(message.contains(&format!("`{word}")), "{settings:?}: {message}");
    };
    for def in ROPE {
        for lanes in ["18446744073709551614", "18446744073709551615", "2000000000000", "0", "-2", "1e3", "nan"] {
            refused(def.name, &[("rotary_dim", lanes)], "rotary_dim");
        }
        for theta in ["nan", "inf", "-1", "0", "1e39", "1e-60"] {
            refused(def.name, &[("rope_theta", theta)], "rope_theta");
        }
        for offset in ["9223372036854775807", "-9223372036854775809"] {
            let message = def.op().set("offset", offset).unwrap().run(&RopeOperands::new(&x)).unwrap_err().to_string();
            assert!(message.contains("offset"), "{message}");
        }
        refused(def.name, &[("seq_len", "-1")], "seq_len");
        def.op().set("seq_len", "18446744073709551615").unwrap().run(&RopeOperands::new(&x)).unwrap();
    }
    for (name, setting) in [
        ("rope_llama31", "factor"),
        ("rope_llama31", "low_freq_factor"),
        ("rope_llama31", "high_freq_factor"),
        ("rope_llama31", "original_max_position_embeddings"),
        ("rope_yarn", "beta_fast"),
        ("rope_yarn", "beta_slow"),
        ("rope_yarn", "mscale"),
        ("rope_yarn", "mscale_all_dim"),
        ("rope_yarn", "attention_factor"),
        ("rope_longrope", "attention_factor"),
        ("rope_longrope", "max_position_embeddings"),
        ("rope_longrope", "short_factor"),
        ("rope_longrope", "long_factor"),
    ] {
        for value in ["nan", "inf", "-1", "1e999"] {
            refused(name, &[(setting, value)], setting);
        }
    }
    // Not finite, or nothing, as a kernel has it.
    for factor in ["1e39", "1e-60"] {
        refused("rope_yarn", &[("attention_factor", factor)], "attention_factor");
    }
    let wide = Tensor::zeros(&Device::cpu(), DType::F32, [1, 1, 1, (1 << 20) + 2]).unwrap();
    for def in ROPE {
        let message = def.op().run(&RopeOperands::new(&wide)).unwrap_err().to_string();
        assert!(message.contains("`head_dim` is 1048578"), "{message}");
    }
}

#[test]
fn numbers_of_a_file_are_judged_before_they_count() {
    let x = input();
    for (i, (text, word)) in [
        (r#"{"head_dim": 8999999999999998}"#, "`head_dim`"),
        (r#"{"head_dim": 18446744073709551614}"#, "`head_dim`"),
        (r#"{"head_dim": -16}"#, "`head_dim`"),
        (r#"{"head_dim": 1e999}"#, "config.json"),
        (r#"{"head_dim": 16, "rotary_dim": 8999999999999998}"#, "`rotary_dim`"),
        (r#"{"hidden_size": 8999999999999998, "num_attention_heads": 1}"#, "`head_dim`"),
        (r#"{"hidden_size": 1, "num_attention_heads": 8999999999999998}"#, "`head_dim`"),
        (r#"{"qk_rope_head_dim": 8999999999999998, "qk_nope_head_dim": 8999999999999998}"#, "`head_dim`"),
        (r#"{"head_dim": 16, "partial_rotary_factor": 1e300}"#, "`partial_rotary_factor`"),
        (r#"{"head_dim": 16, "partial_rotary_factor": -0.5}"#, "`partial_rotary_factor`"),
        (r#"{"head_dim": 16, "max_position_embeddings": 0}"#, "`max_position_embeddings`"),
        (r#"{"head_dim": 16, "rope_scaling": {"mrope_section": [8999999999999998, 1, 1]}}"#, "`mrope_section`"),
        (
            r#"{"head_dim": 16, "original_max_position_embeddings": 4096,
                "rope_scaling": {"rope_type": "longrope", "factor": 2.0, "short_factor": [1], "long_factor": [1]}}"#,
            "`short_factor`",
        ),
        (
            r#"{"head_dim": 16, "max_position_embeddings": 4,
                "rope_scaling": {"rope_type": "dynamic", "factor": 1e308}}"#,
            "`inv_freq",
        ),
        (
            r#"{"head_dim": 16, "max_position_embeddings": 4,
                "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "attention_factor": 1e39}}"#,
            "`attention_factor`",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let file = ConfigFile::new(&format!("numbers-{i}"), text);
        let op = rope_op("rope_neox").unwrap().op().set("config", file.path()).unwrap();
        let result = op.set("seq_len", "18446744073709551615").unwrap().run(&RopeOperands::new(&x));
        let message = result.err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(message.contains(word), "{text}: {message}");
    }
}

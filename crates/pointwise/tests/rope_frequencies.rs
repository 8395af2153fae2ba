//! Frequencies against HF transformers (golden values in `tests/golden`), the published constants, and what a
//! configuration with a mistake is told.

use pointwise::rope::{
    Frequencies, FrequencyRule, FrequencySource, MropeAxis, MropeLayout, MropeSections, RopeConfig, RopeError,
    RopePrecision, RopeType, cos_sin, turns,
};
use serde_json::Value;

fn golden(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn frequencies() -> Value {
    golden(include_str!("../../../tests/golden/rope_frequencies.json"))
}

fn apply() -> Value {
    golden(include_str!("../../../tests/golden/rope_apply.json"))
}

fn floats(hex: &Value) -> Vec<f32> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 8).map(|i| f32::from_bits(u32::from_str_radix(&hex[8 * i..8 * i + 8], 16).unwrap())).collect()
}

fn config(case: &Value) -> RopeConfig {
    let text = case["config"].to_string();
    match case["layer_type"].as_str() {
        Some(layer) => RopeConfig::from_hf_json_layer(&text, layer).unwrap(),
        None => RopeConfig::from_hf_json(&text).unwrap(),
    }
}

#[test]
fn inv_freq_has_transformers_bits() {
    let mut wrong = Vec::new();
    let golden = frequencies();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 30);
    for case in cases {
        let ours = config(case).frequencies(case["seq_len"].as_u64().unwrap()).unwrap();
        let theirs = floats(&case["inv_freq"]);
        let name = case["name"].as_str().unwrap();
        assert_eq!(ours.inv_freq.len(), theirs.len(), "{name}");
        for (i, (our, their)) in ours.inv_freq.iter().zip(&theirs).enumerate() {
            if our.to_bits() != their.to_bits() {
                wrong.push(format!("{name}[{i}]: {our:e} instead of {their:e}"));
            }
            let exact = ours.inv_freq_f64[i];
            let relative = if exact == 0.0 { f64::from(*their) } else { (f64::from(*their) / exact - 1.0).abs() };
            // 2.5e-7 but where Llama 3's blend of two nearly equal terms cancels.
            assert!(relative < 6e-7, "{name}[{i}]: {their:e} is {relative:e} from {exact:e}");
        }
        let factor = case["attention_factor"].as_f64().unwrap();
        assert!((ours.attention_factor / factor - 1.0).abs() < 1e-15, "{name}: {}", ours.attention_factor);
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
}

#[test]
fn cos_and_sin_are_transformers_to_an_ulp() {
    let golden = apply();
    let positions: Vec<i64> = golden["positions"].as_array().unwrap().iter().map(|p| p.as_i64().unwrap()).collect();
    for case in golden["cases"].as_array().unwrap() {
        let config = config(case);
        let name = case["name"].as_str().unwrap();
        let factor = config.frequencies(0).unwrap().attention_factor;
        // GPT-J builds its table in its own way (`1.0 / (10000 ** ...)` of i64), with the same f32 frequencies.
        let (cos, sin) = match name {
            // HF calls Phi-3.5 with the longest position, and so the long factors.
            "phi-3.5-mini" => config.frequencies(1_048_576).unwrap().cos_sin(&positions, RopePrecision::Hf),
            _ => cos_sin(&config, &positions, RopePrecision::Hf).unwrap(),
        };
        for (ours, theirs) in [(cos, floats(&case["cos"])), (sin, floats(&case["sin"]))] {
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (i, (our, their)) in ours.iter().zip(&theirs).enumerate() {
                let distance = our.to_bits().abs_diff(their.to_bits());
                // PyTorch's cosine may be an ULP off, which the rounded product with an attention factor can double.
                let allowed = if factor == 1.0 { 1 } else { 2 };
                assert!(distance <= allowed, "{name}[{i}]: {our:e} instead of {their:e}");
            }
        }
    }
}

#[test]
fn published_constants() {
    let close = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-11, "{got:e}, not {expected:e}");
    let at = |config: &RopeConfig, i: usize| config.frequencies(0).unwrap().inv_freq_f64[i];

    let llama31 = RopeConfig::llama3(128, 500_000.0);
    for (i, expected) in [(29, 2.166570763503e-3), (30, 1.371893567761e-3), (31, 8.567514129196e-4)] {
        close(at(&llama31, i), expected);
    }
    close(at(&llama31, 63), 3.068925988914511e-7);
    close(at(&llama31.clone().factor(32.0), 31), 7.625412033564e-4);
    close(at(&RopeConfig::llama3(64, 500_000.0).factor(32.0), 15), 1.290547928209e-3);

    let gpt_oss = RopeConfig::yarn(64, 150_000.0, 32.0, 4096).truncate(false);
    let (low, high) = gpt_oss.yarn_bounds().unwrap();
    close(low, 8.092779115512402);
    close(high, 17.39802450158856);
    close(gpt_oss.frequencies(0).unwrap().attention_factor, 1.3465735902799727);
    close(at(&gpt_oss, 12), 6.794959489732e-3);
    close(at(&gpt_oss.clone().truncate(true), 12), 7.015713910504e-3);
    close(at(&gpt_oss, 31), 3.0235114281192e-7);

    let deepseek = RopeConfig::yarn(64, 10_000.0, 40.0, 4096).mscale(1.0).mscale_all_dim(1.0);
    assert_eq!(deepseek.yarn_bounds().unwrap(), (10.0, 23.0));
    assert_eq!(deepseek.frequencies(0).unwrap().attention_factor, 1.0);
    close(at(&deepseek, 12), 2.687936011143e-2);
    close(at(&deepseek, 31), 3.333803580408e-6);

    let qwen = RopeConfig::yarn(128, 1e6, 4.0, 32_768);
    assert_eq!(qwen.yarn_bounds().unwrap(), (23.0, 40.0));
    close(at(&qwen, 63), 3.102344401879299e-7);

    // TileOPs' own: other bounds, and up to twice off.
    let (wrong, right) = (RopeConfig::yarn_tileops(128, 1e4, 16.0, 4096), RopeConfig::yarn(128, 1e4, 16.0, 4096));
    assert_eq!((wrong.yarn_bounds().unwrap(), right.yarn_bounds().unwrap()), ((10.0, 23.0), (20.0, 46.0)));
    let ratios: Vec<f64> = (0..64).map(|i| at(&wrong, i) / at(&right, i)).collect();
    let (least, most) = ratios.iter().fold((1.0_f64, 1.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    assert!((least - 0.41).abs() < 0.01 && (most - 2.18).abs() < 0.01, "{least} {most}");

    // The last pair of static NTK is divided by exactly the factor.
    close(at(&RopeConfig::static_ntk(128, 1e4, 4.0), 63) * 4.0, at(&RopeConfig::default_rope(128, 1e4), 63));

    let default = RopeConfig::default_rope(128, 1e4).frequencies(0).unwrap();
    for (i, u) in [(0, 2935890503282001226), (1, 2542376433133839919), (32, 29358905032820012), (63, 339031346221092)] {
        assert_eq!(default.turns[i], u);
        assert!(turns(default.inv_freq_f64[i]).abs_diff(u) <= 200);
    }
}

#[test]
fn longrope_switches_past_the_original_length() {
    let config = RopeConfig::longrope(8, 1e4, vec![1.0; 4], vec![2.0; 4], 4096).max_position_embeddings(131_072);
    let first = |length| config.frequencies(length).unwrap().inv_freq[0];
    assert_eq!((first(0), first(4096), first(4097)), (1.0, 1.0, 0.5));
    // The longest position + 1 decides.
    let cos = |last| cos_sin(&config, &[1, last], RopePrecision::Hf).unwrap().0[0];
    assert_eq!(
        (cos(4095), cos(4096)),
        (config_factor(&config) * 1.0_f32.cos(), config_factor(&config) * 0.5_f32.cos())
    );
}

fn config_factor(config: &RopeConfig) -> f32 {
    config.frequencies(0).unwrap().attention_factor as f32
}

#[test]
fn exact_precision_stays_exact() {
    // f64 at small positions; at large ones the angle by exact integer arithmetic on 128 bits of the frequency 1/2.
    let rule = RopeConfig::default_rope(128, 5e5).frequencies(0).unwrap();
    for position in [0_i64, 1, -1, 4095, 131_071, 1_048_575, -1_048_575] {
        let (cos, sin) = rule.cos_sin(&[position], RopePrecision::Exact);
        for (i, inverse) in rule.inv_freq_f64.iter().enumerate() {
            let angle = position as f64 * inverse;
            assert!((f64::from(cos[i]) - angle.cos()).abs() < 1e-7, "{position} {i}");
            assert!((f64::from(sin[i]) - angle.sin()).abs() < 1e-7, "{position} {i}");
        }
    }
    // A frequency of a quarter turn comes back to the same angles for ever.
    let quarter = std::f64::consts::FRAC_PI_2;
    let rule = pointwise::rope::Frequencies::from_inv_freq_f64(vec![quarter], 1.0).unwrap();
    let (cos, _) = rule.cos_sin(&[1 << 31, (1 << 31) + 2], RopePrecision::Exact);
    assert_eq!((cos[0], cos[1]), (1.0, -1.0));
}

#[test]
fn multimodal_sections() {
    let chunked = MropeSections { sections: [2, 3, 1], layout: MropeLayout::Chunked };
    use MropeAxis::{Height as H, Time as T, Width as W};
    assert_eq!(chunked.axes().unwrap(), [T, T, H, H, H, W]);
    let interleaved = MropeSections { sections: [4, 2, 2], layout: MropeLayout::Interleaved };
    assert_eq!(interleaved.axes().unwrap(), [T, H, W, T, H, W, T, T]);
    for sections in [[usize::MAX, 0, 0], [usize::MAX, 2, 0], [1 << 40, 0, 0]] {
        let error = MropeSections { sections, layout: MropeLayout::Chunked }.axes().unwrap_err();
        assert!(matches!(&error, RopeError::InvalidValue { key, .. } if key == "mrope_section"), "{error}");
    }
    // Whatever the sections are: nothing checks them before they meet frequencies.
    let wrong = |layout| MropeSections { sections: [1, usize::MAX, usize::MAX], layout };
    assert_eq!([0, 1, usize::MAX].map(|index| wrong(MropeLayout::Chunked).axis(index)), [T, H, H]);
    assert_eq!([0, 1, 2, 3].map(|index| wrong(MropeLayout::Interleaved).axis(index)), [T, H, W, T]);
    let rule = RopeConfig::default_rope(12, 1e4).frequencies(0).unwrap();
    let (cos, sin) = rule.cos_sin_mrope(&[[3, 5, 7]], &chunked.axes().unwrap(), RopePrecision::Hf).unwrap();
    for (i, position) in [3, 3, 5, 5, 5, 7].into_iter().enumerate() {
        let (one_cos, one_sin) = rule.cos_sin(&[position], RopePrecision::Hf);
        assert_eq!((cos[i], sin[i]), (one_cos[i], one_sin[i]));
    }
    assert!(matches!(
        rule.cos_sin_mrope(&[[0, 0, 0]], &chunked.axes().unwrap()[1..], RopePrecision::Hf),
        Err(RopeError::ListLength { key: "mrope_section", expected: 6, found: 5 })
    ));
}

#[test]
fn frequencies_made_by_hand_are_checked() {
    let good = RopeConfig::default_rope(4, 1e4).frequencies(0).unwrap();
    assert_eq!(good.frequencies(7).unwrap(), good);
    let length = |frequencies: Frequencies| match frequencies.frequencies(0) {
        Err(RopeError::ListLength { key, expected, found }) => (key, expected, found),
        other => panic!("{other:?}"),
    };
    let none = Frequencies { inv_freq: vec![f32::NAN], inv_freq_f64: vec![], turns: vec![], ..good.clone() };
    assert_eq!(length(none), ("inv_freq_f64", 1, 0));
    assert_eq!(length(Frequencies { inv_freq_f64: vec![1.0; 3], ..good.clone() }), ("inv_freq_f64", 2, 3));
    assert_eq!(length(Frequencies { turns: vec![1], ..good.clone() }), ("turns", 2, 1));
    for (inv_freq, inv_freq_f64, shown) in [
        (vec![1.0, f32::NAN], vec![1.0, 0.5], "`inv_freq[1]` is NaN"),
        (vec![1.0, 0.5], vec![1.0, f64::NAN], "`inv_freq[1]` is NaN"),
        (vec![1.0, f32::INFINITY], vec![1.0, 0.5], "`inv_freq[1]` is inf"),
        (vec![1.0, f32::INFINITY], vec![1.0, 1e39], "`inv_freq[1]` is 1000000000000000000000000000000000000000"),
    ] {
        let error = Frequencies { inv_freq, inv_freq_f64, ..good.clone() }.frequencies(0).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{shown}: ")), "{error}");
    }
}

#[test]
fn a_users_rule() {
    struct Halving;
    impl FrequencyRule for Halving {
        fn rotary_dim(&self) -> usize {
            16
        }
        fn inv_freq(&self, i: usize, _rotary_dim: usize) -> f64 {
            0.5_f64.powi(i as i32)
        }
    }
    let frequencies = Halving.frequencies(0).unwrap();
    assert_eq!(frequencies.inv_freq, [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]);
    assert_eq!(frequencies.rotary_dim(), 16);
}

/// A rule is asked for no more lanes than a head can have.
#[test]
fn a_rule_of_too_many_lanes_is_refused() {
    struct Wide(usize);
    impl FrequencyRule for Wide {
        fn rotary_dim(&self) -> usize {
            self.0
        }
        fn inv_freq(&self, _i: usize, _rotary_dim: usize) -> f64 {
            1.0
        }
    }
    for lanes in [0, 3, (1 << 20) + 2, 2_000_000_000_000, usize::MAX - 1] {
        let message = Wide(lanes).frequencies(0).unwrap_err().to_string();
        assert!(message.contains(&format!("`rotary_dim` is {lanes}")), "{message}");
    }
    assert_eq!(Wide(1 << 20).frequencies(0).unwrap().rotary_dim(), 1 << 20);
}

/// Every mistake is an error whose message names the key.
#[test]
fn mistakes_are_named() {
    let refused = |config: RopeConfig, key: &str| {
        let message = config.validate().unwrap_err().to_string();
        assert!(message.contains(&format!("`{key}`")), "{key}: {message}");
    };
    let yarn = || RopeConfig::yarn(128, 1e4, 4.0, 4096);
    refused(RopeConfig::default_rope(128, 1e4).rotary_dim(63), "rotary_dim");
    refused(RopeConfig::default_rope(128, 1e4).rotary_dim(130), "rotary_dim");
    refused(RopeConfig::default_rope(128, 1e4).rotary_dim(0), "rotary_dim");
    refused(RopeConfig::default_rope(0, 1e4), "head_dim");
    refused(RopeConfig::default_rope(128, 0.0), "rope_theta");
    refused(RopeConfig::default_rope(128, f64::NAN), "rope_theta");
    refused(RopeConfig::default_rope(128, 1e4).factor(2.0), "factor");
    refused(RopeConfig::default_rope(128, 1e4).partial_rotary_factor(1.5), "partial_rotary_factor");
    refused(RopeConfig::default_rope(128, 1e4).partial_rotary_factor(0.5).rotary_dim(32), "rotary_dim");
    refused(RopeConfig::new(RopeType::Linear, 128, 1e4), "factor");
    refused(RopeConfig::new(RopeType::Dynamic, 128, 1e4).factor(2.0), "max_position_embeddings");
    refused(RopeConfig::llama3(128, 1e4).high_freq_factor(1.0), "high_freq_factor");
    refused(RopeConfig::new(RopeType::Llama3, 128, 1e4).factor(8.0), "low_freq_factor");
    refused(yarn().beta_fast(1.0).beta_slow(2.0), "beta_fast");
    refused(yarn().short_factor(vec![1.0; 64]), "short_factor");
    refused(RopeConfig::longrope(128, 1e4, vec![1.0; 64], vec![1.0; 63], 4096).factor(2.0), "long_factor");
    refused(RopeConfig::longrope(128, 1e4, vec![1.0; 64], vec![0.0; 64], 4096).factor(2.0), "long_factor[0]");
    refused(RopeConfig::longrope(128, 1e4, vec![1.0; 64], vec![1.0; 64], 4096), "factor");
    refused(RopeConfig::default_rope(128, 1e4).mrope_section([1, 2, 3], MropeLayout::Chunked), "mrope_section");
    refused(RopeConfig::static_ntk(2, 1e4, 2.0), "rotary_dim");
}

#[test]
fn mistakes_in_a_file_are_named() {
    let refused = |text: &str, key: &str| {
        let message = RopeConfig::from_hf_json(text).unwrap_err().to_string();
        assert!(message.contains(key), "{key}: {message}");
    };
    refused("[]", "config.json");
    refused("{", "config.json");
    refused("{}", "head_dim");
    refused(r#"{"hidden_size": 4096}"#, "num_attention_heads");
    refused(r#"{"hidden_size": 4096, "num_attention_heads": 0}"#, "num_attention_heads");
    refused(r#"{"head_dim": "128"}"#, "head_dim");
    refused(r#"{"head_dim": 128, "rope_scaling": {"rope_type": "spiral"}}"#, "spiral");
    refused(r#"{"head_dim": 128, "rope_scaling": {"rope_type": "linear"}}"#, "`factor`");
    refused(r#"{"head_dim": 128, "rope_scaling": 3}"#, "rope_scaling");
    refused(
        r#"{"head_dim": 128, "rope_theta": 5.0, "rope_parameters": {"rope_type": "default", "rope_theta": 6.0}}"#,
        "`rope_theta`",
    );
    refused(
        r#"{"head_dim": 128, "rope_scaling": {"factor": 2.0}, "rope_parameters": {"factor": 3.0}}"#,
        "rope_scaling.factor",
    );
    let gemma = r#"{"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}}"#;
    refused(gemma, "full_attention, sliding_attention");
    assert_eq!(RopeConfig::hf_layer_types(gemma).unwrap(), ["full_attention", "sliding_attention"]);
    assert_eq!(RopeConfig::from_hf_json_layer(gemma, "sliding_attention").unwrap().rope_type(), RopeType::Default);
    assert!(matches!(RopeConfig::from_hf_json_layer(gemma, "x"), Err(RopeError::LayerType { .. })));
    let skips = r#"{"head_dim": 64, "rope_parameters": {"a": {"rope_theta": 1e4}, "b": null}}"#;
    assert!(matches!(RopeConfig::from_hf_json_layer(skips, "b"), Err(RopeError::NotRotated { .. })));
    assert!(matches!(RopeConfig::from_path("no/such/config.json"), Err(RopeError::Io { .. })));
}

//! RoPE's configurations: Hugging Face's JSON, mutated from good ones or made of its keys, and the builder's.

use pointwise::rope::{MropeLayout, RopeConfig, RopeError, RopePrecision};
use serde_json::{Map, Value, json};

use crate::case::{Case, Outcome};
use crate::random::Random;

/// Configurations that are good.
pub(crate) const GOOD: [&str; 9] = [
    r#"{"model_type":"llama","hidden_size":4096,"num_attention_heads":32,"head_dim":128,
        "max_position_embeddings":131072,"rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3",
        "factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}}"#,
    r#"{"model_type":"qwen3","head_dim":128,"rope_theta":1000000,"max_position_embeddings":131072,
        "rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}"#,
    r#"{"model_type":"phi3","hidden_size":3072,"num_attention_heads":32,"rope_theta":10000.0,
        "max_position_embeddings":131072,"original_max_position_embeddings":4096,
        "partial_rotary_factor":0.08333,"rope_scaling":{"type":"longrope","short_factor":[1.0,1.1,1.2,1.3],
        "long_factor":[1.0,2.0,4.0,8.0]}}"#,
    r#"{"model_type":"qwen2_vl","hidden_size":8192,"num_attention_heads":64,"rope_theta":1000000.0,
        "rope_scaling":{"type":"mrope","mrope_section":[16,24,24]}}"#,
    r#"{"model_type":"deepseek_v3","qk_rope_head_dim":64,"qk_nope_head_dim":128,"hidden_size":7168,
        "num_attention_heads":128,"rope_theta":10000,"rope_scaling":{"type":"yarn","factor":40,
        "beta_fast":32,"beta_slow":1,"mscale":1.0,"mscale_all_dim":1.0,
        "original_max_position_embeddings":4096}}"#,
    r#"{"model_type":"gemma3_text","head_dim":256,"layer_types":["sliding_attention","full_attention"],
        "rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1000000.0},
        "sliding_attention":{"rope_type":"default","rope_theta":10000.0}}}"#,
    r#"{"model_type":"gpt_neox","hidden_size":512,"num_attention_heads":8,"rotary_pct":0.25,
        "rotary_emb_base":10000}"#,
    r#"{"model_type":"qwen3_vl","text_config":{"head_dim":128,"rope_theta":5000000,
        "rope_scaling":{"rope_type":"default","mrope_interleaved":true,"mrope_section":[24,20,20]}}}"#,
    r#"{"model_type":"llama","head_dim":64,"max_position_embeddings":2048,
        "rope_scaling":{"rope_type":"dynamic","factor":2.0}}"#,
];

/// Models whose configurations are read in ways of their own.
const MODELS: [&str; 24] = [
    "",
    "llama",
    "gemma3",
    "gemma3_text",
    "modernbert",
    "olmo3",
    "step3p5",
    "deepseek_v4",
    "deepseek_v3",
    "gptj",
    "codegen",
    "zamba2",
    "phi3",
    "qwen2_vl",
    "qwen3_vl",
    "hunyuan_vl",
    "gpt_oss",
    "mistral4",
    "gemma4",
    "laguna",
    "mimo_v2_flash",
    "jetmoe",
    "moonshine",
    "_text",
];

/// Keys of a model.
const KEYS: [&str; 27] = [
    "head_dim",
    "attention_head_dim",
    "kv_channels",
    "hidden_size",
    "n_embd",
    "num_attention_heads",
    "n_head",
    "rotary_dim",
    "partial_rotary_factor",
    "rotary_pct",
    "rope_pct",
    "rope_theta",
    "rotary_emb_base",
    "global_rope_theta",
    "rope_local_base_freq",
    "local_rope_theta",
    "compress_rope_theta",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "max_position_embeddings",
    "n_positions",
    "original_max_position_embeddings",
    "partial_rotary_factors",
    "global_head_dim",
    "rope_scaling",
    "rope_parameters",
    "text_config",
];

/// Keys of a set of parameters.
const INNER: [&str; 22] = [
    "rope_type",
    "type",
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "truncate",
    "mscale",
    "mscale_all_dim",
    "attention_factor",
    "short_factor",
    "long_factor",
    "mrope_section",
    "xdrope_section",
    "mrope_interleaved",
    "alpha",
    "rope_theta",
    "partial_rotary_factor",
    "full_attention",
    "sliding_attention",
];

const TYPES: [&str; 13] = [
    "default",
    "linear",
    "dynamic",
    "static_ntk",
    "llama3",
    "yarn",
    "yarn_tileops",
    "longrope",
    "su",
    "mrope",
    "proportional",
    "ntk",
    "",
];

const LAYERS: [&str; 6] = ["full_attention", "sliding_attention", "main", "compress", "hybrid", ""];
const SIZES: [u64; 9] = [64, 128, 32, 2, 4, 1, 0, 7, 96];
/// The most lanes that there may be, and more.
const LARGE: [u64; 5] = [1 << 20, (1 << 20) + 2, 1 << 52, 8_999_999_999_999_999, u64::MAX];
const LENGTHS: [u64; 7] = [4096, 8192, 1, 0, 131_072, 8_999_999_999_999_999, u64::MAX];
const NUMBERS: [f64; 20] = [
    1.0,
    0.5,
    2.0,
    1e4,
    5e5,
    8.0,
    32.0,
    0.25,
    0.0,
    -1.0,
    1e-300,
    1e38,
    3.4e38,
    1e39,
    1e300,
    5e-324,
    0.999_999,
    1.000_000_1,
    16.0,
    40.0,
];

/// A size, now and then one that is too large.
fn size(random: &mut Random) -> u64 {
    if random.once_in(20) { random.pick(&LARGE) } else { random.pick(&SIZES) }
}

pub(crate) fn run(case: &mut Case) -> Outcome {
    if case.random.once_in(5) {
        let config = built(&mut case.random);
        return judge(case, config);
    }
    let mut value = match case.random.below(3) {
        0 => object(&mut case.random, &KEYS, 0),
        _ => {
            serde_json::from_str(case.random.pick(&GOOD)).map_err(|error| format!("the fuzzer's own file: {error}"))?
        }
    };
    for _ in 0..case.random.below(4) {
        mutate(&mut case.random, &mut value);
    }
    let mut text = value.to_string().into_bytes();
    if case.random.once_in(8) {
        damage(&mut case.random, &mut text);
    }
    if case.random.once_in(200) {
        let depth = case.random.pick(&[100, 10_000, 100_000]);
        text = case.random.pick(&["[", "{\"text_config\":", "{\"rope_scaling\":"]).repeat(depth).into_bytes();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    case.any(RopeConfig::hf_layer_types(&text))?;
    let config = match case.random.once_in(2) {
        true => RopeConfig::from_hf_json(&text),
        false => RopeConfig::from_hf_json_layer(&text, case.random.pick(&LAYERS)),
    };
    let shown: String = text.chars().take(2000).collect();
    match case.outcome::<_, RopeError>(config)? {
        Some(config) => judge(case, config).map_err(|why| format!("{why}, of {shown}")),
        None => Ok(()),
    }
}

/// Takes a configuration's frequencies, and sees that they can be used.
fn judge(case: &mut Case, config: RopeConfig) -> Outcome {
    let length = case.random.pick(&[0, 1, 4096, 4097, 131_072, 1 << 53, u64::MAX]);
    case.any(config.validate())?;
    case.any(config.yarn_bounds())?;
    let _ = (config.rotary_lanes(), config.mrope(), format!("{config:?}"));
    let Some(frequencies) = case.outcome(config.frequencies(length))? else { return Ok(()) };
    let pairs = frequencies.inv_freq.len();
    let finite = frequencies.inv_freq.iter().all(|x| x.is_finite()) && frequencies.attention_factor.is_finite();
    if !finite || frequencies.turns.len() != pairs || frequencies.inv_freq_f64.len() != pairs {
        return Err(format!("frequencies that cannot be used: {frequencies:?} of {config:?} at {length}"));
    }
    if pairs > 256 {
        return Ok(());
    }
    let precision = case.random.pick(&[RopePrecision::Hf, RopePrecision::Exact]);
    let (cos, sin) = frequencies.cos_sin(&[0, -1, i64::MAX, i64::MIN, 4096], precision);
    // A factor that f32 holds keeps them finite; HF's angles are not where f32 does not hold them.
    let largest = frequencies.inv_freq.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let holds = precision == RopePrecision::Exact || largest < 1e18;
    match cos.iter().chain(&sin).all(|x| x.is_finite()) || !holds {
        true => Ok(()),
        false => Err(format!("a cosine or sine is not finite ({precision:?}), of {config:?} at {length}")),
    }
}

/// A value for a key: one that serves, or not.
fn value(random: &mut Random, key: &str, depth: usize) -> Value {
    if random.once_in(12) {
        return strange(random);
    }
    match key {
        "rope_type" | "type" => json!(random.pick(&TYPES)),
        "model_type" => json!(random.pick(&MODELS)),
        "truncate" | "mrope_interleaved" => json!(random.once_in(2)),
        "short_factor" | "long_factor" => {
            let count = random.pick(&[0, 1, 2, 4, 8, 16, 32, 64]);
            (0..count).map(|_| random.pick(&[1.0, 0.5, 1e-300, 1e300, 2.5, 0.0, -1.0])).collect()
        }
        "mrope_section" | "xdrope_section" => {
            (0..random.pick(&[3, 3, 3, 4, 0])).map(|_| random.pick(&[0, 8, 16, 24, 20, 1, 1 << 52, u64::MAX])).collect()
        }
        "full_attention" | "sliding_attention" | "rope_scaling" | "rope_parameters" if depth < 3 => {
            object(random, &INNER, depth + 1)
        }
        "text_config" if depth < 2 => object(random, &KEYS, depth + 1),
        "hidden_size" | "n_embd" => json!(random.pick(&[512, 4096, 1, 0, 1 << 20, 8_999_999_999_999_999_u64])),
        "num_attention_heads" | "n_head" => json!(random.pick(&[8, 32, 1, 0, 4096])),
        "max_position_embeddings" | "n_positions" | "original_max_position_embeddings" => json!(random.pick(&LENGTHS)),
        key if key.ends_with("_dim") || key == "kv_channels" => json!(size(random)),
        _ => json!(random.pick(&NUMBERS)),
    }
}

/// A value that no key has.
fn strange(random: &mut Random) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!("x\n"),
        json!([]),
        json!({}),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(9e15),
    ];
    random.pick(&all)
}

fn object(random: &mut Random, keys: &[&str], depth: usize) -> Value {
    let mut object = Map::new();
    for _ in 0..1 + random.below(9) {
        let key = random.pick(keys);
        object.insert(key.to_owned(), value(random, key, depth));
    }
    if depth == 0 {
        object.insert("model_type".to_owned(), json!(random.pick(&MODELS)));
        if !random.once_in(4) {
            object.insert("head_dim".to_owned(), json!(random.pick(&[64, 128])));
        }
    }
    Value::Object(object)
}

/// Changes one place: removes a key, gives it another value, adds one, or goes deeper.
fn mutate(random: &mut Random, at: &mut Value) {
    match at {
        Value::Object(object) if !object.is_empty() => {
            let keys: Vec<String> = object.keys().cloned().collect();
            let key = random.pick(&keys);
            match random.below(6) {
                0 => drop(object.remove(&key)),
                1 => {
                    let value = value(random, &key, 1);
                    object.insert(key, value);
                }
                2 => {
                    let keys = [random.pick(&KEYS), random.pick(&INNER), "model_type"];
                    let other = random.pick(&keys);
                    let value = value(random, other, 1);
                    object.insert(other.to_owned(), value);
                }
                _ => object.get_mut(&key).into_iter().for_each(|value| mutate(random, value)),
            }
        }
        Value::Array(list) if !list.is_empty() => match random.below(3) {
            0 => drop(list.pop()),
            1 => list.push(json!(1.0)),
            _ => {
                let at = random.below(list.len());
                mutate(random, &mut list[at]);
            }
        },
        Value::Number(_) => *at = if random.once_in(2) { json!(random.pick(&NUMBERS)) } else { json!(size(random)) },
        other => *other = strange(random),
    }
}

/// Changes, removes or repeats bytes.
pub(crate) fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            _ if bytes.is_empty() => bytes.push(random.word() as u8),
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, random.word() as u8),
            3 => bytes[at] ^= 1 << random.below(8),
            _ => bytes[at] = random.word() as u8,
        }
    }
}

/// A configuration by the builder.
fn built(random: &mut Random) -> RopeConfig {
    let dim = size(random) as usize;
    let theta = random.pick(&[1e4, 5e5, 1.0, 0.0, -1.0, 1e300, 5e-324, f64::NAN, f64::INFINITY]);
    let number = |random: &mut Random| if random.once_in(8) { f64::NAN } else { random.pick(&NUMBERS) };
    let list = |random: &mut Random| -> Vec<f64> {
        let count = random.pick(&[dim.min(128) / 2, 0, 1, 32]);
        (0..count).map(|_| random.pick(&[1.0, 2.0, 4.0, 0.5, 0.0])).collect()
    };
    let (factor, length) = (number(random), random.pick(&LENGTHS));
    let mut config = match random.below(9) {
        0 => RopeConfig::default_rope(dim, theta),
        1 => RopeConfig::linear(dim, theta, factor),
        2 => RopeConfig::dynamic(dim, theta, factor, length),
        3 => RopeConfig::static_ntk(dim, theta, factor),
        4 => RopeConfig::llama3(dim, theta),
        5 => RopeConfig::yarn(dim, theta, factor, length),
        6 => RopeConfig::yarn_tileops(dim, theta, factor, length),
        7 => RopeConfig::longrope(dim, theta, list(random), list(random), length),
        _ => RopeConfig::proportional(dim, theta, factor),
    };
    for _ in 0..random.below(4) {
        config = match random.below(13) {
            0 => config.rotary_dim(size(random) as usize),
            1 => config.partial_rotary_factor(number(random)),
            2 => config.factor(number(random)),
            3 => config.low_freq_factor(number(random)),
            4 => config.high_freq_factor(number(random)),
            5 => config.original_max_position_embeddings(random.pick(&LENGTHS)),
            6 => config.max_position_embeddings(random.pick(&LENGTHS)),
            7 => config.beta_fast(number(random)),
            8 => config.beta_slow(number(random)),
            9 => config.truncate(random.once_in(2)),
            10 => config.mscale(number(random)).mscale_all_dim(number(random)),
            11 => config.attention_factor(number(random)),
            _ => {
                let layout = random.pick(&[MropeLayout::Chunked, MropeLayout::Interleaved]);
                config.mrope_section([0; 3].map(|_| size(random) as usize), layout)
            }
        };
    }
    config
}

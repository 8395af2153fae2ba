//! Settings in files, by serde.

use std::fmt::Debug;

use pointwise::Strategy;
use pointwise::kernel::SinusoidalLayout;
use pointwise::rope::{
    MropeLayout, OutOfRange, RopeConfig, RopeDirection, RopeLayout, RopePairs, RopePrecision, RopeType, RotatedLanes,
};
use serde_json::{Value, from_str, from_value, json, to_string, to_value};

#[track_caller]
fn is_written<T>(x: T, text: &str)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug,
{
    assert_eq!(to_value(&x).unwrap(), Value::from(text));
    assert_eq!(from_value::<T>(Value::from(text)).unwrap(), x);
}

#[test]
fn choices_are_written_by_their_names() {
    for strategy in [Strategy::Auto].into_iter().chain(Strategy::ALL) {
        is_written(strategy, strategy.name());
    }
    for rope_type in RopeType::ALL {
        is_written(rope_type, rope_type.name());
    }
    // The names that `parse` takes.
    for name in ["bshd", "bhsd", "sbhd", "thd", "sd"] {
        is_written(name.parse::<RopeLayout>().unwrap(), name);
    }
    for name in ["half", "interleaved", "interleaved_to_half"] {
        is_written(name.parse::<RopePairs>().unwrap(), name);
    }
    ["lead", "trail"].into_iter().for_each(|name| is_written(name.parse::<RotatedLanes>().unwrap(), name));
    ["exact", "hf"].into_iter().for_each(|name| is_written(name.parse::<RopePrecision>().unwrap(), name));
    ["forward", "backward"].into_iter().for_each(|name| is_written(name.parse::<RopeDirection>().unwrap(), name));
    is_written(OutOfRange::Identity, "identity");
    is_written(SinusoidalLayout::Halves, "halves");
    is_written(MropeLayout::Interleaved, "interleaved");
    let error = from_str::<Strategy>("\"fastest\"").unwrap_err().to_string();
    assert!(error.contains("fastest") && error.contains("register_copy"), "{error}");
}

#[test]
fn configurations_come_back_as_they_were() {
    let configs = [
        RopeConfig::default_rope(64, 10_000.0),
        RopeConfig::llama3(128, 500_000.0).factor(32.0),
        RopeConfig::yarn(96, 1e6, 4.0, 32_768).truncate(false),
        RopeConfig::longrope(8, 1e4, vec![1.0, 1.1, 1.2, 1.3], vec![2.0, 2.5, 3.0, 3.3], 4096)
            .max_position_embeddings(131_072),
        RopeConfig::default_rope(12, 1e4).mrope_section([2, 2, 2], MropeLayout::Interleaved),
    ];
    for config in configs {
        let text = to_string(&config).unwrap();
        let back: RopeConfig = from_str(&text).unwrap();
        assert_eq!(back, config, "{text}");
        assert_eq!(back.frequencies(8192).unwrap(), config.frequencies(8192).unwrap());
    }
    let text = to_value(RopeConfig::linear(64, 1e4, 2.0)).unwrap();
    assert_eq!(text, json!({ "rope_type": "linear", "head_dim": 64, "rope_theta": 1e4, "factor": 2.0 }));
}

#[test]
fn bad_configurations_are_errors() {
    for (text, word) in [
        (json!({ "rope_type": "default", "head_dim": 64 }), "rope_theta"),
        (json!({ "rope_type": "unknown", "head_dim": 64, "rope_theta": 1e4 }), "unknown"),
        (json!({ "rope_type": "default", "head_dim": 64, "rope_theta": 1e4, "extra": 2.0 }), "extra"),
    ] {
        let error = from_value::<RopeConfig>(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    // A value out of range is found when the configuration is used, as for a configuration made in code.
    let odd = json!({ "rope_type": "default", "head_dim": 64, "rope_theta": 1e4, "rotary_dim": 3 });
    assert!(from_value::<RopeConfig>(odd).unwrap().frequencies(16).is_err());
}

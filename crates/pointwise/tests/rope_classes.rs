//! The meaning of a `config.json` for the class of its model: defaults, layers, lanes and sections as in HF
//! transformers 5.17.

use pointwise::rope::{MropeAxis, MropeLayout, RopeConfig, RopeError, RopeType};

fn read(text: &str) -> RopeConfig {
    RopeConfig::from_hf_json(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn layer(text: &str, layer_type: &str) -> RopeConfig {
    RopeConfig::from_hf_json_layer(text, layer_type).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let message = RopeConfig::from_hf_json(text).unwrap_err().to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

/// A file of a model with 64 lanes a head and these sections.
fn with_sections(model_type: &str, more: &str) -> String {
    format!(
        r#"{{"model_type": "{model_type}", "head_dim": 64, "partial_rotary_factor": 1.0,
            "rope_scaling": {{"rope_type": "default", "mrope_section": [12, 10, 10]{more}}}}}"#
    )
}

#[test]
fn the_class_lays_sections_out() {
    let layout = |model_type: &str, more: &str| read(&with_sections(model_type, more)).mrope().unwrap().layout;
    for model_type in [
        "qwen3_vl",
        "qwen3_vl_text",
        "qwen3_vl_moe",
        "qwen3_vl_moe_text",
        "qwen3_5",
        "qwen3_5_text",
        "qwen3_5_moe_text",
        "qwen3_omni_moe_text",
        "qwen3_omni_moe_talker_text",
        "qwen4_exp_text",
        "cosmos3_edge_text",
    ] {
        for more in ["", r#", "interleaved": true"#, r#", "mrope_interleaved": true"#] {
            assert_eq!(layout(model_type, more), MropeLayout::Interleaved, "{model_type}{more}");
        }
        refused(
            &with_sections(model_type, r#", "mrope_interleaved": false"#),
            &["`mrope_interleaved` contradicts `model_type`"],
        );
    }
    for model_type in ["qwen2_vl", "qwen2_5_vl_text", "qwen2_5_omni_text", "glm4v_text", "glm_ocr_text", "paddleocr_vl"]
    {
        assert_eq!(layout(model_type, ""), MropeLayout::Chunked, "{model_type}");
        refused(&with_sections(model_type, r#", "mrope_interleaved": true"#), &["`mrope_interleaved`"]);
    }
    // If the class does not know sections, the file decides.
    assert_eq!(layout("llama", ""), MropeLayout::Chunked);
    assert_eq!(layout("llama", r#", "mrope_interleaved": true"#), MropeLayout::Interleaved);
    let axes = read(&with_sections("qwen3_vl_text", "")).mrope().unwrap().axes().unwrap();
    assert_eq!(axes[..4], [MropeAxis::Time, MropeAxis::Height, MropeAxis::Width, MropeAxis::Time]);
}

#[test]
fn layouts_that_are_not_here_are_refused() {
    for (model_type, advice) in [
        ("ernie4_5_vl_moe_text", "for text leave the sections out"),
        ("ernie4_5_vl_moe", "for text leave the sections out"),
        ("hunyuan_vl_text", "for text leave the sections out"),
        ("cohere_compass_text", "tables"),
    ] {
        let text = with_sections(model_type, "");
        assert!(matches!(RopeConfig::from_hf_json(&text), Err(RopeError::MropeLayout { .. })), "{model_type}");
        refused(&text, &[model_type, advice]);
    }
    refused(
        r#"{"model_type": "hunyuan_vl_text", "head_dim": 128, "rope_scaling": {"xdrope_section": [16, 16, 16, 16]}}"#,
        &["mrope_section"],
    );
    // Their text: ERNIE's and HunYuan's is rotated as any other, Cohere's by frequencies in another order.
    assert_eq!(read(r#"{"model_type": "ernie4_5_vl_moe_text", "head_dim": 128}"#).rope_theta(), 5e5);
    assert!(read(r#"{"model_type": "hunyuan_vl_text", "head_dim": 128}"#).mrope().is_none());
    refused(r#"{"model_type": "cohere_compass_text", "head_dim": 128}"#, &["tables"]);
}

#[test]
fn only_the_full_layers_of_olmo_3_are_stretched() {
    let olmo = r#"{"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000,
        "max_position_embeddings": 65536, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "attention_factor": 1.2079441541679836, "original_max_position_embeddings": 8192}}"#;
    refused(olmo, &["full_attention, sliding_attention"]);
    let (full, sliding) = (layer(olmo, "full_attention"), layer(olmo, "sliding_attention"));
    assert_eq!((full.rope_type(), full.rope_theta()), (RopeType::Yarn, 5e5));
    assert_eq!((sliding.rope_type(), sliding.rope_theta()), (RopeType::Default, 5e5));
    // All layers are alike without it, and need not be told apart.
    let plain = read(r#"{"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32}"#);
    assert_eq!((plain.rope_type(), plain.rope_theta()), (RopeType::Default, 5e5));
    // Step 3's share a base; ModernBERT's are stretched alike.
    let step =
        r#"{"model_type": "step3p5", "rope_theta": 7e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}"#;
    let (full, sliding) = (layer(step, "full_attention"), layer(step, "sliding_attention"));
    assert_eq!((full.rope_type(), full.rope_theta()), (RopeType::Linear, 7e5));
    assert_eq!((sliding.rope_type(), sliding.rope_theta()), (RopeType::Default, 7e5));
    let modern = r#"{"model_type": "modernbert", "head_dim": 64, "rope_scaling": {"type": "linear", "factor": 2.0}}"#;
    assert_eq!(layer(modern, "full_attention").rope_theta(), 1.6e5);
    assert_eq!(layer(modern, "sliding_attention").rope_theta(), 1e4);
    assert_eq!(layer(modern, "sliding_attention").rope_type(), RopeType::Linear);
    let lists = r#"{"model_type": "step3p5", "partial_rotary_factors": [0.5, 1.0]}"#;
    refused(lists, &["`partial_rotary_factors`", "rope_parameters"]);
}

#[test]
fn defaults_of_classes() {
    let theta = |model_type: &str| {
        read(&format!(r#"{{"model_type": "{model_type}", "head_dim": 64, "rope_scaling": {{"type": "default"}}}}"#))
            .rope_theta()
    };
    for (model_type, expected) in [
        ("mllama_text_model", 5e5),
        ("emu3_text_model", 1e6),
        ("qwen2_5_vl_text", 1e6),
        ("hy_v3", 11_158_840.0),
        ("qwen2_5_omni_text", 1e6),
        ("qwen2_5_omni_talker", 1e6),
        ("qwen3_omni_moe_text", 1e6),
        ("qwen3_omni_moe_talker_text", 1e4),
        ("csm", 5e5),
        ("csm_depth_decoder_model", 5e5),
        ("evolla", 5e5),
        ("jina_embeddings_v3", 2e4),
        ("cosmos3_edge_text", 1e8),
        ("paddleocr_vl_text", 5e5),
        ("openai_privacy_filter", 1.5e5),
        ("blt_local_encoder", 5e5),
        ("muse_glimmer_assistant", 5e5),
        // With parameters of their own, these do not have the base of those that they take without.
        ("ministral3", 1e4),
        ("higgs_audio_v2", 1e4),
        ("llama", 1e4),
    ] {
        assert_eq!(theta(model_type), expected, "{model_type}");
    }
    let multimodal = r#"{"model_type": "mllama", "text_config": {"model_type": "mllama_text_model", "head_dim": 128}}"#;
    assert_eq!(read(multimodal).rope_theta(), 5e5);
    let lanes = |model_type: &str| {
        let config =
            read(&format!(r#"{{"model_type": "{model_type}", "hidden_size": 640, "num_attention_heads": 8}}"#));
        (config.head_dim(), config.rotary_lanes())
    };
    for (model_type, expected) in [
        ("moonshine_streaming", (80, 64)),
        ("moonshine", (80, 72)),
        ("bamba", (80, 40)),
        ("solar_open", (128, 128)),
        ("qwen3", (128, 128)),
        ("qwen3_5_text", (256, 64)),
        ("deepseek_v3", (64, 64)),
        ("minicpm3", (32, 32)),
        ("zamba2", (160, 160)),
        ("llama", (80, 80)),
    ] {
        assert_eq!(lanes(model_type), expected, "{model_type}");
    }
    // null says that there is no such number, not that the class may choose it.
    let null = r#"{"model_type": "glm", "head_dim": null, "hidden_size": 640, "num_attention_heads": 8}"#;
    assert_eq!(read(null).head_dim(), 80);
}

/// Some classes take more than a base where a file has no parameters.
#[test]
fn parameters_of_classes() {
    let bare = |model_type: &str| format!(r#"{{"model_type": "{model_type}", "max_position_embeddings": 262144}}"#);
    let ministral = read(&bare("ministral3"));
    let yarn = RopeConfig::yarn(128, 1e6, 16.0, 16_384).beta_fast(32.0).beta_slow(1.0).mscale(1.0).mscale_all_dim(1.0);
    assert_eq!(ministral, yarn.max_position_embeddings(262_144));
    let mistral = read(&bare("mistral4"));
    assert_eq!((mistral.rope_type(), mistral.rope_theta(), mistral.rotary_lanes()), (RopeType::Yarn, 1e4, 64));
    let gpt_oss = read(&bare("gpt_oss"));
    let published = RopeConfig::yarn(64, 150_000.0, 32.0, 4096).truncate(false);
    assert_eq!(gpt_oss.frequencies(0).unwrap(), published.frequencies(0).unwrap());
    assert_eq!(read(&bare("cwm")).rope_type(), RopeType::Llama3);
    assert_eq!(read(r#"{"model_type": "apertus", "head_dim": 128}"#).rope_theta(), 12e6);
    assert_eq!(read(&bare("cosmos3_edge_text")).mrope().unwrap().sections, [24, 20, 20]);
    let (full, sliding) =
        (layer(&bare("mimo_v2_flash"), "full_attention"), layer(&bare("laguna"), "sliding_attention"));
    assert_eq!((full.head_dim(), full.rotary_lanes(), full.rope_theta()), (192, 64, 5e6));
    assert_eq!((sliding.rotary_lanes(), sliding.rope_theta()), (128, 1e4));
    let gemma = layer(&bare("gemma4_unified_text"), "full_attention");
    assert_eq!((gemma.rope_type(), gemma.head_dim(), gemma.rope_theta()), (RopeType::Proportional, 512, 1e6));
    // HF would then ignore the file's base.
    refused(
        r#"{"model_type": "ministral3", "rope_theta": 5000.0}"#,
        &["`rope_theta` contradicts `model_type`", "1000000"],
    );
    assert_eq!(read(r#"{"model_type": "ministral3", "rope_theta": 1e6}"#).rope_type(), RopeType::Yarn);
    let own = r#"{"model_type": "ministral3", "rope_theta": 5000.0, "rope_parameters": {"rope_type": "default"}}"#;
    assert_eq!((read(own).rope_type(), read(own).rope_theta()), (RopeType::Default, 5000.0));
}

/// The share of latent attention is of the whole head; the lanes that rotate are a tensor of their own.
#[test]
fn shares_of_latent_attention() {
    let mistral = |share: f64, plain: u32| {
        format!(
            r#"{{"model_type": "mistral4", "qk_nope_head_dim": {plain}, "qk_rope_head_dim": 64,
                "rope_parameters": {{"rope_type": "default", "partial_rotary_factor": {share}}}}}"#
        )
    };
    assert_eq!(read(&mistral(0.5, 64)).rotary_lanes(), 64);
    assert_eq!(read(&mistral(64.0 / 192.0, 128)).rotary_lanes(), 64);
    refused(&mistral(0.5, 32), &["`partial_rotary_factor` contradicts `qk_rope_head_dim`"]);
}

/// HF's classes rotate by shares: only GPT-J's and CodeGen's read a number of lanes.
#[test]
fn rotary_dim_is_read_where_the_class_reads_it() {
    let gptj =
        |more: &str| read(&format!(r#"{{"model_type": "gptj", "n_embd": 4096, "n_head": 16{more}}}"#)).rotary_lanes();
    assert_eq!((gptj(r#", "rotary_dim": 32"#), gptj(""), gptj(r#", "rotary_dim": null"#)), (32, 64, 256));
    assert_eq!(read(r#"{"model_type": "codegen", "n_embd": 4096, "n_head": 16}"#).rotary_lanes(), 64);
    assert_eq!(read(r#"{"head_dim": 128, "rotary_dim": 64}"#).rotary_lanes(), 64);
    for model_type in ["minimax_m3_vl_text", "minimax_m3_vl", "minimax_m2"] {
        let file = |more: &str| format!(r#"{{"model_type": "{model_type}", "head_dim": 128, "rotary_dim": 64{more}}}"#);
        refused(
            &file(""),
            &["`rotary_dim` contradicts `model_type`", "rotates 128 lanes", "partial_rotary_factor 0.5"],
        );
        assert_eq!(read(&file(r#", "partial_rotary_factor": 0.5"#)).rotary_lanes(), 64);
    }
}

//! The defaults of HF's model classes, for keys that a `config.json` lacks.
//!
//! Source: the configuration classes of HF transformers 5.17 (`default_theta`, the `rope_parameters` of
//! `__post_init__`, the `head_dim` and `qk_rope_head_dim` defaults) and the rotary classes beside them (the layout of
//! `mrope_section`). Every language model is here whose defaults differ from the general ones: base 10,000; the whole
//! head; hidden size over heads; type `default`. Vision encoders, which rotate by row and column, are not.

use serde_json::{Value, json};

use super::MropeLayout;

/// The defaults of one model class.
pub(super) struct Defaults {
    /// Base.
    pub(super) theta: f64,
    /// Base of the sliding-window layers, for models whose layers differ.
    pub(super) local_theta: Option<Local>,
    /// True if `rope_scaling` is for the sliding-window layers too.
    pub(super) scales_local: bool,
    /// Base of the layers with a compressor (DeepSeek-V4).
    pub(super) compressed_theta: Option<f64>,
    /// Share of the head that rotates.
    pub(super) partial_rotary_factor: Option<f64>,
    /// Lanes that rotate, for the classes that count them; no other reads `rotary_dim`.
    pub(super) rotary_dim: Option<u64>,
    /// Lanes of a head.
    pub(super) head_dim: Option<u64>,
    /// Lanes of a head in the full-attention layers, where they differ.
    pub(super) global_head_dim: Option<u64>,
    /// `qk_rope_head_dim` of latent attention.
    pub(super) rope_head_dim: Option<u64>,
    /// Lanes of a head, as a multiple of hidden size over heads.
    pub(super) head_growth: u64,
    /// The class's layout of `mrope_section`; `None` if it does not know the key.
    pub(super) mrope: Option<Mrope>,
}

/// The base of the sliding-window layers.
#[derive(Clone, Copy)]
pub(super) enum Local {
    /// A base of their own.
    Theta(f64),
    /// The base of the other layers.
    Shared,
}

/// The way a class deals the frequencies out to the axes.
#[derive(Clone, Copy)]
pub(super) enum Mrope {
    /// A layout that this crate has.
    Known(MropeLayout),
    /// A layout of its own, for pictures. Text, where the three positions are equal, is as without sections.
    OwnForPictures,
    /// A layout of its own that reorders the frequencies for text, too.
    Own,
}

/// The name of a model: a text model inside a multimodal one has `_text` or `_text_model` at the end.
fn name_of(model_type: &str) -> &str {
    let name = model_type.strip_suffix("_model").filter(|name| name.ends_with("_text")).unwrap_or(model_type);
    name.strip_suffix("_text").unwrap_or(name)
}

/// The defaults by `model_type`.
pub(super) fn of(model_type: &str) -> Defaults {
    let name = name_of(model_type);
    let local_theta = match name {
        "gemma3" | "gemma3n" | "t5gemma2" | "t5gemma2_decoder" | "modernbert" | "modernbert-decoder" => {
            Some(Local::Theta(10_000.0))
        }
        // The file's base is the other layers'.
        "olmo3" => Some(Local::Theta(5e5)),
        "step3p5" | "step3p7" => Some(Local::Shared),
        _ => None,
    };
    Defaults {
        theta: theta(name),
        local_theta,
        scales_local: matches!(name, "modernbert" | "modernbert-decoder"),
        compressed_theta: (name == "deepseek_v4").then_some(1.6e5),
        partial_rotary_factor: partial_rotary_factor(name),
        rotary_dim: matches!(name, "gptj" | "codegen").then_some(64),
        head_dim: head_dim(name),
        global_head_dim: matches!(name, "gemma4" | "gemma4_unified" | "diffusion_gemma").then_some(512),
        rope_head_dim: rope_head_dim(name),
        head_growth: if name == "zamba2" { 2 } else { 1 },
        mrope: mrope(name),
    }
}

fn theta(name: &str) -> f64 {
    match name {
        "cosmos3_edge" => 1e8,
        "apertus" => 12e6,
        "hy_v3" => 11_158_840.0,
        "longcat_flash" => 1e7,
        "minimax_m2" | "minimax_m3_vl" => 5e6,
        "smollm3" => 2e6,
        "gemma3"
        | "gemma3n"
        | "t5gemma2"
        | "t5gemma2_decoder"
        | "qwen2_vl"
        | "qwen2_5_vl"
        | "qwen2_5_omni"
        | "qwen2_5_omni_thinker"
        | "qwen2_5_omni_talker"
        | "qwen3_omni_moe"
        | "qwen3_omni_moe_thinker"
        | "mixtral"
        | "phimoe"
        | "lfm2"
        | "lfm2_moe"
        | "minimax"
        | "solar_open"
        | "cwm"
        | "emu3" => 1e6,
        "qwen3_vl"
        | "qwen3_vl_moe"
        | "llama4"
        | "mllama"
        | "olmo3"
        | "flex_olmo"
        | "ernie4_5"
        | "ernie4_5_moe"
        | "ernie4_5_vl_moe"
        | "paddleocr_vl"
        | "cohere"
        | "bitnet"
        | "csm"
        | "csm_depth_decoder_model"
        | "evolla"
        | "muse_glimmer_assistant"
        | "blt"
        | "blt_local_encoder"
        | "blt_local_decoder"
        | "blt_global_transformer" => 5e5,
        "modernbert" | "modernbert-decoder" => 1.6e5,
        "gpt_oss" | "openai_privacy_filter" => 1.5e5,
        "helium" => 1e5,
        "fuyu" => 25_000.0,
        "jina_embeddings_v3" => 20_000.0,
        "nomic_bert" => 1_000.0,
        _ => 10_000.0,
    }
}

fn partial_rotary_factor(name: &str) -> Option<f64> {
    match name {
        "moonshine" => Some(0.9),
        "phi" | "glm" | "glm4" | "glm4_moe" | "glm4v_moe" | "glmasr_encoder" | "nemotron" | "persimmon" | "fuyu"
        | "recurrent_gemma" | "bamba" => Some(0.5),
        "stablelm" | "gpt_neox" | "qwen3_next" | "qwen3_5" | "qwen3_5_moe" => Some(0.25),
        "deepseek_v4" => Some(0.125),
        _ => None,
    }
}

fn head_dim(name: &str) -> Option<u64> {
    match name {
        "deepseek_v4" => Some(512),
        "gemma" | "gemma2" | "gemma3" | "gemma3n" | "gemma4" | "gemma4_unified" | "diffusion_gemma"
        | "t5_gemma_module" | "t5gemma2" | "t5gemma2_decoder" | "vaultgemma" | "qwen3_next" | "qwen3_5"
        | "qwen3_5_moe" | "qwen4_exp" => Some(256),
        "mimo_v2_flash" => Some(192),
        "afmoe"
        | "cohere2_moe"
        | "cosmos3_edge"
        | "cwm"
        | "dia_encoder"
        | "dia_decoder"
        | "ernie4_5"
        | "glm"
        | "glm4"
        | "helium"
        | "higgs_audio_v2"
        | "hrm"
        | "hy_v3"
        | "jetmoe"
        | "laguna"
        | "llama4"
        | "mellum"
        | "minimax_m2"
        | "minimax_m3_vl"
        | "ministral3"
        | "muse_glimmer"
        | "muse_glimmer_assistant"
        | "paddleocr_vl"
        | "pe_audio_encoder"
        | "pe_audio_video_encoder"
        | "pe_video_encoder"
        | "qwen2_5_omni_talker"
        | "qwen3"
        | "qwen3_omni_moe_talker_code_predictor"
        | "qwen3_vl"
        | "seed_oss"
        | "solar_open"
        | "step3p5"
        | "step3p7"
        | "zaya" => Some(128),
        "timesfm2_5" => Some(80),
        "gpt_oss"
        | "neucodec"
        | "openai_privacy_filter"
        | "qwen2_5_omni_dit"
        | "voxtral_realtime_encoder"
        | "xcodec2" => Some(64),
        _ => None,
    }
}

fn rope_head_dim(name: &str) -> Option<u64> {
    match name {
        "axk1" | "deepseek_v2" | "deepseek_v3" | "deepseek_v32" | "glm4_moe_lite" | "glm_moe_dsa" | "hy_v4"
        | "kimi_linear" | "longcat_flash" | "mistral4" | "youtu" => Some(64),
        "axk2" | "minicpm3" => Some(32),
        _ => None,
    }
}

fn mrope(name: &str) -> Option<Mrope> {
    match name {
        "qwen2_vl"
        | "qwen2_5_vl"
        | "qwen2_5_omni"
        | "qwen2_5_omni_thinker"
        | "qwen2_5_omni_talker"
        | "glm4v"
        | "glm4v_moe"
        | "glm46v"
        | "glm_image"
        | "glm_ocr"
        | "paddleocr_vl" => Some(Mrope::Known(MropeLayout::Chunked)),
        "qwen3_vl"
        | "qwen3_vl_moe"
        | "qwen3_5"
        | "qwen3_5_moe"
        | "qwen3_omni_moe"
        | "qwen3_omni_moe_thinker"
        | "qwen3_omni_moe_talker"
        | "qwen4_exp"
        | "cosmos3_edge" => Some(Mrope::Known(MropeLayout::Interleaved)),
        "ernie4_5_vl_moe" | "hunyuan_vl" => Some(Mrope::OwnForPictures),
        "cohere_compass" => Some(Mrope::Own),
        _ => None,
    }
}

/// The parameters of a class for a file with neither `rope_parameters` nor `rope_scaling`, as they would stand in the
/// file. `None` for a class whose defaults are [`Defaults`] alone.
pub(super) fn parameters(model_type: &str) -> Option<Value> {
    let llama3 = |theta: f64, factor: f64, [low, high]: [f64; 2], original: u64| {
        json!({
            "rope_type": "llama3", "rope_theta": theta, "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": original,
        })
    };
    let mistral = |theta: f64, factor: f64, original: u64| {
        json!({
            "rope_type": "yarn", "rope_theta": theta, "factor": factor, "original_max_position_embeddings": original,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        })
    };
    let part = |theta: f64, share: f64| json!({ "rope_theta": theta, "partial_rotary_factor": share });
    Some(match name_of(model_type) {
        "apertus" => llama3(12e6, 8.0, [1.0, 4.0], 8192),
        "cwm" => llama3(1e6, 16.0, [1.0, 4.0], 8192),
        "higgs_audio_v2" => llama3(5e5, 32.0, [0.125, 0.5], 1024),
        "gpt_oss" | "openai_privacy_filter" => json!({
            "rope_type": "yarn", "rope_theta": 1.5e5, "factor": 32.0, "original_max_position_embeddings": 4096,
            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
        }),
        "ministral3" => mistral(1e6, 16.0, 16_384),
        "mistral4" => mistral(1e4, 128.0, 8192),
        "cosmos3_edge" => json!({ "rope_theta": 1e8, "mrope_section": [24, 20, 20] }),
        "moonshine_streaming" => part(1e4, 0.8),
        "pe_audio_encoder" | "pe_audio_video_encoder" | "pe_video_encoder" => json!({ "rope_theta": 2e4 }),
        "gemma4" | "gemma4_unified" | "diffusion_gemma" => json!({
            "full_attention": { "rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25 },
            "sliding_attention": { "rope_theta": 1e4 },
        }),
        "laguna" => json!({ "full_attention": part(5e5, 0.5), "sliding_attention": part(1e4, 1.0) }),
        "mellum" => {
            json!({ "full_attention": { "rope_theta": 5e5 }, "sliding_attention": { "rope_theta": 1e4 } })
        }
        "mimo_v2_flash" => json!({ "full_attention": part(5e6, 0.334), "sliding_attention": part(1e4, 0.334) }),
        "neomme" => json!({ "full_attention": part(1e6, 0.25), "sliding_attention": part(1e4, 1.0) }),
        "zaya" => json!({ "hybrid": part(5e6, 0.5), "hybrid_sliding": part(1e4, 0.5) }),
        _ => return None,
    })
}

//! What HF's model classes assume when a `config.json` does not say it.
//!
//! Source: the configuration classes of HF transformers 5.17 (`default_theta`, the `partial_rotary_factor` and
//! `head_dim` defaults). Only models whose defaults differ from the general ones (10,000; the whole head; hidden size
//! over heads).

/// The defaults of one model class.
pub(super) struct Defaults {
    /// Base.
    pub(super) theta: f64,
    /// Base of the sliding-window layers, for models that have two.
    pub(super) local_theta: Option<f64>,
    /// Share of the head that rotates.
    pub(super) partial_rotary_factor: Option<f64>,
    /// Lanes of a head.
    pub(super) head_dim: Option<u64>,
    /// Lanes of a head in the full-attention layers, where they differ.
    pub(super) global_head_dim: Option<u64>,
}

/// The defaults by `model_type`; a text model inside a multimodal one has `_text` at the end of its name.
pub(super) fn of(model_type: &str) -> Defaults {
    let name = model_type.strip_suffix("_text").unwrap_or(model_type);
    let theta = match name {
        "minimax_m2" | "minimax_m3_vl" => 5e6,
        "smollm3" => 2e6,
        "apertus" => 12e6,
        "longcat_flash" => 1e7,
        "gemma3" | "gemma3n" | "t5gemma2" | "qwen2_vl" | "qwen2_5_vl" | "mixtral" | "phimoe" | "lfm2" | "lfm2_moe"
        | "minimax" | "solar_open" | "cwm" | "emu3" => 1e6,
        "qwen3_vl" | "qwen3_vl_moe" | "llama4" | "mllama" | "olmo3" | "flex_olmo" | "ernie4_5" | "ernie4_5_moe"
        | "ernie4_5_vl_moe" | "cohere" | "bitnet" => 5e5,
        "modernbert" | "modernbert-decoder" => 1.6e5,
        "gpt_oss" => 1.5e5,
        "helium" => 1e5,
        "fuyu" => 25_000.0,
        "nomic_bert" => 1_000.0,
        _ => 10_000.0,
    };
    let partial_rotary_factor = match name {
        "stablelm" | "gpt_neox" | "qwen3_next" | "qwen3_5" | "qwen3_5_moe" => Some(0.25),
        "phi" | "glm" | "glm4" | "glm4_moe" | "glm4v_moe" | "nemotron" | "persimmon" | "fuyu" | "recurrent_gemma"
        | "solar_open" => Some(0.5),
        _ => None,
    };
    let head_dim = match name {
        "gemma" | "gemma2" | "gemma3" | "gemma3n" | "gemma4" => Some(256),
        _ => None,
    };
    Defaults {
        theta,
        local_theta: matches!(name, "gemma3" | "gemma3n" | "t5gemma2" | "modernbert" | "modernbert-decoder")
            .then_some(10_000.0),
        partial_rotary_factor,
        head_dim,
        global_head_dim: (name == "gemma4").then_some(512),
    }
}

//! Checks of a [`RopeConfig`], each naming the key at fault.

use super::{RopeConfig, RopeError, RopeType};

/// The most lanes of a head.
pub(super) const MOST_LANES: usize = 1 << 20;

pub(super) fn check(config: &RopeConfig) -> Result<(), RopeError> {
    dimensions(config)?;
    positive("rope_theta", Some(config.rope_theta))?;
    if config.rope_theta as f32 == 0.0 || (config.rope_theta as f32).is_infinite() {
        return Err(RopeError::invalid("rope_theta", config.rope_theta, "give a number that fits f32"));
    }
    for (key, value) in [
        ("factor", config.factor),
        ("low_freq_factor", config.low_freq_factor),
        ("high_freq_factor", config.high_freq_factor),
        ("attention_factor", config.attention_factor),
        ("original_max_position_embeddings", config.original_max_position_embeddings.map(|length| length as f64)),
        ("max_position_embeddings", config.max_position_embeddings.map(|length| length as f64)),
        // 0 stands for unset, as in HF.
        ("beta_fast", config.beta_fast.filter(|beta| *beta != 0.0)),
        ("beta_slow", config.beta_slow.filter(|beta| *beta != 0.0)),
    ] {
        positive(key, value)?;
    }
    for (key, value) in [("mscale", config.mscale), ("mscale_all_dim", config.mscale_all_dim)] {
        if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
            return Err(RopeError::invalid(key, value, "give a finite number, 0 or above"));
        }
    }
    strangers(config)?;
    match config.rope_type {
        RopeType::Default | RopeType::Proportional => Ok(()),
        RopeType::Linear => {
            require("factor", config.factor, config, "give the factor to divide positions by").map(drop)
        }
        RopeType::Dynamic => {
            require("factor", config.factor, config, "give the factor of the context's growth")?;
            require("max_position_embeddings", config.max_position_embeddings, config, "give the trained length")?;
            more_than_one_pair(config)
        }
        RopeType::StaticNtk => {
            require("factor", config.factor, config, "give the factor of the context's growth")?;
            more_than_one_pair(config)
        }
        RopeType::Llama3 => llama3(config),
        RopeType::Yarn | RopeType::YarnTileOps => yarn(config),
        RopeType::Longrope => longrope(config),
    }
}

/// Checks the number of lanes, the lanes that rotate, and their sections.
pub(super) fn dimensions(config: &RopeConfig) -> Result<(), RopeError> {
    let head_dim = config.head_dim;
    if head_dim == 0 || head_dim > MOST_LANES {
        let expected = format!("give the lanes of a head, 2 to {MOST_LANES}");
        return Err(RopeError::invalid("head_dim", head_dim, &expected));
    }
    if let Some(share) = config.partial_rotary_factor
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(RopeError::invalid("partial_rotary_factor", share, "give a share above 0 and at most 1"));
    }
    if let (Some(lanes), Some(share)) = (config.rotary_dim, config.partial_rotary_factor) {
        let implied = (head_dim as f64 * share) as usize;
        if lanes != implied && config.rope_type != RopeType::Proportional {
            let detail = format!("{share} of head_dim {head_dim} is {implied}, not {lanes}; give one of the two");
            return Err(RopeError::contradiction("rotary_dim", "partial_rotary_factor", detail));
        }
    }
    if config.rope_type == RopeType::Proportional && config.rotary_dim.is_some_and(|lanes| lanes != head_dim) {
        let detail = "proportional turns the whole head; leave rotary_dim out and give partial_rotary_factor";
        return Err(RopeError::contradiction("rotary_dim", "rope_type", detail));
    }
    // Errors name the key that the user wrote.
    let key = match (config.rotary_dim, config.partial_rotary_factor) {
        (Some(_), _) => "rotary_dim",
        (None, Some(_)) if config.rope_type != RopeType::Proportional => "partial_rotary_factor",
        _ => "head_dim",
    };
    let rotary_dim = config.rotary_lanes();
    if rotary_dim > head_dim {
        return Err(RopeError::contradiction(
            key,
            "head_dim",
            format!("{rotary_dim} of {head_dim} lanes cannot rotate"),
        ));
    }
    if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) {
        let value = format!("{rotary_dim} lanes");
        return Err(RopeError::invalid(key, value, "lanes rotate in pairs; make it an even number above 0"));
    }
    if let Some(mrope) = config.mrope {
        let sum = mrope.sections.iter().try_fold(0usize, |sum, section| sum.checked_add(*section));
        if sum != Some(rotary_dim / 2) {
            let value = format!("{:?}", mrope.sections);
            let expected = format!("its sections must sum to rotary_dim / 2 = {}", rotary_dim / 2);
            return Err(RopeError::invalid("mrope_section", value, &expected));
        }
    }
    Ok(())
}

/// Refuses parameters that the type would ignore: a typing slip would otherwise pass silently.
fn strangers(config: &RopeConfig) -> Result<(), RopeError> {
    use RopeType::{Default, Llama3, Longrope, Proportional, Yarn, YarnTileOps};
    let kind = config.rope_type;
    let yarns = matches!(kind, Yarn | YarnTileOps);
    for (key, given, used) in [
        ("factor", config.factor.is_some(), kind != Default),
        ("low_freq_factor", config.low_freq_factor.is_some(), kind == Llama3),
        ("high_freq_factor", config.high_freq_factor.is_some(), kind == Llama3),
        ("beta_fast", config.beta_fast.is_some(), yarns),
        ("beta_slow", config.beta_slow.is_some(), yarns),
        ("truncate", config.truncate.is_some(), kind == Yarn),
        ("mscale", config.mscale.is_some(), kind == Yarn),
        ("mscale_all_dim", config.mscale_all_dim.is_some(), kind == Yarn),
        ("attention_factor", config.attention_factor.is_some(), yarns || kind == Longrope),
        ("short_factor", config.short_factor.is_some(), kind == Longrope),
        ("long_factor", config.long_factor.is_some(), kind == Longrope),
    ] {
        if given && !used {
            let detail = format!("{kind} does not use it; leave it out or choose another rope_type");
            return Err(RopeError::contradiction(key, "rope_type", detail));
        }
    }
    if config.mrope.is_some() && kind == Proportional {
        return Err(RopeError::contradiction("mrope_section", "rope_type", "proportional has no multimodal form"));
    }
    Ok(())
}

fn llama3(config: &RopeConfig) -> Result<(), RopeError> {
    require("factor", config.factor, config, "8 in Llama 3.1, 32 in Llama 3.2")?;
    let low = require("low_freq_factor", config.low_freq_factor, config, "1 in Llama 3.1")?;
    let high = require("high_freq_factor", config.high_freq_factor, config, "4 in Llama 3.1")?;
    require("original_max_position_embeddings", config.original_length(), config, "8192 in Llama 3.1")?;
    if high <= low {
        let detail = format!("{high} is not above {low}, so there is no range to blend over");
        return Err(RopeError::contradiction("high_freq_factor", "low_freq_factor", detail));
    }
    Ok(())
}

fn yarn(config: &RopeConfig) -> Result<(), RopeError> {
    require("original_max_position_embeddings", config.original_length(), config, "give the trained length")?;
    require(
        "factor",
        config.stretch(),
        config,
        "give it, or both original_max_position_embeddings and max_position_embeddings",
    )?;
    if config.rope_theta <= 1.0 {
        return Err(RopeError::invalid("rope_theta", config.rope_theta, "yarn needs a base above 1"));
    }
    let (fast, slow) = super::formulas::betas(config);
    if fast < slow {
        let detail = format!("{fast} is below {slow}; beta_fast is the larger one (defaults: 32 and 1)");
        return Err(RopeError::contradiction("beta_fast", "beta_slow", detail));
    }
    Ok(())
}

fn longrope(config: &RopeConfig) -> Result<(), RopeError> {
    let pairs = config.rotary_lanes() / 2;
    for (key, list) in [("short_factor", &config.short_factor), ("long_factor", &config.long_factor)] {
        let list = require(key, list.as_ref(), config, "give a list of rotary_dim / 2 divisors")?;
        if list.len() != pairs {
            return Err(RopeError::ListLength { key, expected: pairs, found: list.len() });
        }
        if let Some(bad) = list.iter().position(|x| !(x.is_finite() && *x > 0.0)) {
            let name = format!("{key}[{bad}]");
            return Err(RopeError::invalid(&name, list[bad], "give a finite number above 0"));
        }
    }
    let length = require("original_max_position_embeddings", config.original_length(), config, "4096 in Phi-3.5")?;
    if config.attention_factor.is_none() {
        let factor =
            require("factor", config.stretch(), config, "give it, or max_position_embeddings, or attention_factor")?;
        if factor > 1.0 && length <= 1 {
            let expected = "the attention factor divides by its logarithm; give more than 1";
            return Err(RopeError::invalid("original_max_position_embeddings", length, expected));
        }
    }
    Ok(())
}

fn more_than_one_pair(config: &RopeConfig) -> Result<(), RopeError> {
    if config.rotary_lanes() > 2 {
        return Ok(());
    }
    let expected = "NTK's exponent d/(d-2) needs at least 4 lanes";
    Err(RopeError::invalid("rotary_dim", config.rotary_lanes(), expected))
}

fn require<T>(key: &'static str, value: Option<T>, config: &RopeConfig, hint: &str) -> Result<T, RopeError> {
    value.ok_or_else(|| RopeError::MissingKey { key, hint: format!("{} needs it; {hint}", config.rope_type) })
}

fn positive(key: &str, value: Option<f64>) -> Result<(), RopeError> {
    match value {
        Some(value) if !(value.is_finite() && value > 0.0) => {
            Err(RopeError::invalid(key, value, "give a finite number above 0"))
        }
        _ => Ok(()),
    }
}

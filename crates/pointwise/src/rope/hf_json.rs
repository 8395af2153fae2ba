//! Reads a [`RopeConfig`] from a model's `config.json`.
//!
//! It reads as HF transformers 5.17 does (`RotaryEmbeddingConfigMixin` and the model classes). null counts as absent.
//! `rope_scaling` is the old name of `rope_parameters`, `type` of `rope_type`. If each layer type has its own
//! parameters, they win over those at the top level. The model's class decides which keys count and how sections are
//! laid out. Where HF would silently take one of two values that disagree, this fails.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::hf_defaults::{self, Defaults, Local, Mrope};
use super::hf_keys::{Keys, Object, boolean, list, number, present, to_whole, whole};
use super::{MropeLayout, RopeConfig, RopeError, RopeType};
use crate::files::read_small;

impl RopeConfig {
    /// Reads a model's `config.json` text; for models with one set of parameters.
    ///
    /// # Errors
    ///
    /// [`RopeError::Json`] if it is not a JSON object, [`RopeError::LayerType`] if the parameters differ by layer type
    /// (take [`from_hf_json_layer`](Self::from_hf_json_layer)), [`RopeError::MropeLayout`] if the model has a
    /// multimodal layout of its own, and the errors of [`validate`](Self::validate).
    pub fn from_hf_json(text: &str) -> Result<Self, RopeError> {
        read(text, None)
    }

    /// Reads the parameters of one layer type, for instance `full_attention` or `sliding_attention` (Gemma 3 and 4,
    /// Olmo 3).
    /// A model with one set of parameters has them for every layer type.
    ///
    /// # Errors
    ///
    /// The errors of [`from_hf_json`](Self::from_hf_json). [`RopeError::LayerType`] names the types that the model has;
    /// [`RopeError::NotRotated`] says that the layers of this type take no RoPE.
    pub fn from_hf_json_layer(text: &str, layer_type: &str) -> Result<Self, RopeError> {
        read(text, Some(layer_type))
    }

    /// The layer types that have parameters of their own, sorted; empty for a model with one set.
    ///
    /// # Errors
    ///
    /// [`RopeError::Json`] if the text is not a JSON object.
    pub fn hf_layer_types(text: &str) -> Result<Vec<String>, RopeError> {
        let root = parse(text)?;
        let keys = Keys::of(&root);
        Ok(match parameter_sets(&keys, &hf_defaults::of(keys.model_type()))? {
            Sets::One(_) => Vec::new(),
            Sets::PerLayer(sets) => sets.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Reads a `config.json` file; see [`from_hf_json`](Self::from_hf_json).
    ///
    /// # Errors
    ///
    /// [`RopeError::Io`] if the file cannot be read, is no regular file or has more than 16 MiB; the errors of
    /// [`from_hf_json`](Self::from_hf_json).
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, RopeError> {
        Self::from_hf_json(&load(path.as_ref())?)
    }

    /// Reads one layer type's parameters from a file; see [`from_hf_json_layer`](Self::from_hf_json_layer).
    ///
    /// # Errors
    ///
    /// [`RopeError::Io`] if the file cannot be read, is no regular file or has more than 16 MiB; the errors of
    /// [`from_hf_json_layer`](Self::from_hf_json_layer).
    pub fn from_path_layer(path: impl AsRef<Path>, layer_type: &str) -> Result<Self, RopeError> {
        Self::from_hf_json_layer(&load(path.as_ref())?, layer_type)
    }
}

fn load(path: &Path) -> Result<String, RopeError> {
    let failed = |error: io::Error| RopeError::Io { path: path.display().to_string(), source: error.into() };
    let bytes = read_small(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}

fn parse(text: &str) -> Result<Object, RopeError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err(RopeError::Json { message: "not a JSON object".to_owned() }),
        Err(error) => Err(RopeError::Json { message: error.to_string() }),
    }
}

/// The parameters: one set, or one for each layer type (`None` for a type that is not rotated).
enum Sets {
    One(Object),
    PerLayer(Vec<(String, Option<Object>)>),
}

fn parameter_sets(keys: &Keys<'_>, defaults: &Defaults) -> Result<Sets, RopeError> {
    let scaling = keys.object("rope_scaling")?;
    let parameters = keys.object("rope_parameters")?;
    let nested = |object: &&Object| object.values().any(Value::is_object);
    if let Some(sets) = parameters.or(scaling).filter(nested) {
        return Ok(per_layer(sets));
    }
    if let Some(value) = keys.get(&["partial_rotary_factors"]) {
        let expected = "a list by layers is not read: give rope_parameters, a set for each layer type";
        return Err(RopeError::invalid("partial_rotary_factors", value, expected));
    }
    let set = match (scaling, parameters) {
        (Some(old), Some(new)) => merged(old, new)?,
        (None, None) => match own_parameters(keys)? {
            Some(sets @ Sets::PerLayer(_)) => return Ok(sets),
            Some(Sets::One(set)) => set,
            None => Object::new(),
        },
        (one, other) => one.or(other).cloned().unwrap_or_default(),
    };
    let plain = |theta: f64| Object::from_iter([("rope_theta".to_owned(), Value::from(theta))]);
    let local = match (keys.number(&["rope_local_base_freq", "local_rope_theta"])?, defaults.local_theta) {
        (Some(theta), _) | (None, Some(Local::Theta(theta))) => Some(theta),
        (None, Some(Local::Shared)) => Some(keys.number(THETA)?.unwrap_or(defaults.theta)),
        (None, None) => None,
    };
    if let Some(theta) = local {
        let mut local = plain(theta);
        if defaults.scales_local {
            local.extend(set.clone());
        }
        let mut full = set;
        full.entry("rope_theta").or_insert(Value::from(keys.number(THETA)?.unwrap_or(defaults.theta)));
        let layers = [("full_attention", full), ("sliding_attention", local)];
        return Ok(Sets::PerLayer(layers.map(|(name, set)| (name.to_owned(), Some(set))).into()));
    }
    if let Some(compressed) = keys.number(&["compress_rope_theta"])?.or(defaults.compressed_theta) {
        // DeepSeek-V4: YaRN on the layers with a compressor alone, and without its attention factor.
        let mut compress = set;
        compress.insert("rope_theta".to_owned(), Value::from(compressed));
        if rope_type(&compress, keys.model_type())? == RopeType::Yarn {
            compress.entry("attention_factor").or_insert(Value::from(1.0));
        }
        let main = plain(keys.number(&["rope_theta"])?.unwrap_or(defaults.theta));
        let layers = [("compress", compress), ("main", main)];
        return Ok(Sets::PerLayer(layers.map(|(name, set)| (name.to_owned(), Some(set))).into()));
    }
    Ok(Sets::One(set))
}

/// The sets of an object that has one for each layer type.
fn per_layer(object: &Object) -> Sets {
    let sets = object.iter().filter(|(_, set)| set.is_object() || set.is_null());
    let mut sets: Vec<_> = sets.map(|(name, set)| (name.clone(), set.as_object().cloned())).collect();
    sets.sort_by(|a, b| a.0.cmp(&b.0));
    Sets::PerLayer(sets)
}

/// The class's own parameters for a file without any; `None` if the class has none. HF then ignores the file's base; a
/// base that differs is an error here.
fn own_parameters(keys: &Keys<'_>) -> Result<Option<Sets>, RopeError> {
    let Some(Value::Object(own)) = hf_defaults::parameters(keys.model_type()) else { return Ok(None) };
    let nested = own.values().any(Value::is_object);
    let bases: Vec<_> = if nested {
        own.values().filter_map(|set| set.get("rope_theta")?.as_f64()).collect()
    } else {
        own.get("rope_theta").and_then(Value::as_f64).into_iter().collect()
    };
    if let Some(theta) = keys.number(THETA)?
        && !bases.contains(&theta)
    {
        let detail = format!(
            "without rope_parameters the class of {} has its own, of base {}: give rope_parameters",
            keys.model_type(),
            bases.iter().map(f64::to_string).collect::<Vec<_>>().join(" and ")
        );
        return Err(RopeError::contradiction("rope_theta", "model_type", detail));
    }
    Ok(Some(if nested { per_layer(&own) } else { Sets::One(own) }))
}

/// Merges `rope_scaling` and `rope_parameters` of one file. They must not disagree.
fn merged(old: &Object, new: &Object) -> Result<Object, RopeError> {
    let mut all = new.clone();
    for (key, value) in old {
        match all.get(key) {
            Some(other) if other != value && !other.is_null() && !value.is_null() => {
                let detail = format!("{value} and {other}; keep one of the two");
                return Err(RopeError::contradiction(
                    &format!("rope_scaling.{key}"),
                    &format!("rope_parameters.{key}"),
                    detail,
                ));
            }
            Some(other) if !other.is_null() => {}
            _ => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(all)
}

fn read(text: &str, layer_type: Option<&str>) -> Result<RopeConfig, RopeError> {
    let root = parse(text)?;
    let keys = Keys::of(&root);
    let defaults = hf_defaults::of(keys.model_type());
    let (set, per_layer) = choose(parameter_sets(&keys, &defaults)?, layer_type)?;
    let kind = rope_type(&set, keys.model_type())?;
    let (head_dim, rotary_dim) = dimensions(&keys, &defaults, layer_type.filter(|_| per_layer))?;

    let theta = agreed("rope_theta", number(&set, "rope_theta")?, keys.number(THETA)?, per_layer)?;
    let mut config = RopeConfig::new(kind, head_dim, theta.unwrap_or(defaults.theta));
    let share =
        agreed("partial_rotary_factor", number(&set, "partial_rotary_factor")?, keys.number(SHARE)?, per_layer)?;
    config.partial_rotary_factor = match (share, rotary_dim) {
        (Some(share), None) if is_latent(&keys, &defaults) => whole_head(&keys, head_dim, share)?,
        (None, None) => defaults.partial_rotary_factor,
        (given, _) => given,
    };
    config.rotary_dim = rotary_dim.filter(|_| share.is_none() || keys.get(&["rotary_dim"]).is_some());
    config.plain_lanes = keys.whole(&["qk_nope_head_dim"])?.map(|lanes| lanes as usize);
    config.max_position_embeddings = keys.whole(&["max_position_embeddings", "n_positions"])?;
    config.original_max_position_embeddings = agreed(
        "original_max_position_embeddings",
        whole(&set, "original_max_position_embeddings")?,
        keys.whole(&["original_max_position_embeddings"])?,
        false,
    )?;
    parameters(&mut config, &set)?;
    sections(&mut config, &set, keys.model_type(), defaults.mrope)?;
    config.validate()?;
    no_other_lanes(&keys, &config)?;
    Ok(config)
}

/// Checks a share of latent attention. It is a share of the whole head, but the rotated lanes are a tensor of their own
/// (Mistral 4), and all of them rotate: no share is left.
fn whole_head(keys: &Keys<'_>, lanes: usize, share: f64) -> Result<Option<f64>, RopeError> {
    let plain = keys.whole(&["qk_nope_head_dim"])?.unwrap_or(0);
    if share == 1.0 || ((plain as f64 + lanes as f64) * share).round() == lanes as f64 {
        return Ok(None);
    }
    let detail =
        format!("{lanes} of {plain} + {lanes} lanes rotate, which is not a share of {share}; give the right one");
    Err(RopeError::contradiction("partial_rotary_factor", "qk_rope_head_dim", detail))
}

const THETA: &[&str] = &["rope_theta", "rotary_emb_base", "global_rope_theta"];
const SHARE: &[&str] = &["partial_rotary_factor", "rotary_pct", "rope_pct"];

/// Returns the set to use, and true if it is a layer type's own.
fn choose(sets: Sets, layer_type: Option<&str>) -> Result<(Object, bool), RopeError> {
    let sets = match sets {
        Sets::One(set) => return Ok((set, false)),
        Sets::PerLayer(sets) => sets,
    };
    let available = sets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let chosen = match layer_type {
        None if sets.windows(2).all(|two| two[0].1 == two[1].1) => sets.into_iter().next(),
        None => None,
        Some(wanted) => sets.into_iter().find(|(name, _)| name == wanted),
    };
    match chosen {
        Some((_, Some(set))) => Ok((set, true)),
        Some((layer_type, None)) => Err(RopeError::NotRotated { layer_type }),
        None => Err(RopeError::LayerType { chosen: layer_type.unwrap_or("none").to_owned(), available }),
    }
}

/// The rope type of a set. `rope_type` goes before `type`; Qwen2-VL writes `mrope` into the latter.
fn rope_type(set: &Object, model_type: &str) -> Result<RopeType, RopeError> {
    let name = |key: &str| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        present(set, key)
            .map(|value| text(value).ok_or_else(|| RopeError::invalid(key, value, "give the type's name")))
            .transpose()
    };
    let kind = match (name("rope_type")?, name("type")?) {
        (None, None) => RopeType::Default,
        (Some(only), None) | (None, Some(only)) => only.parse()?,
        (Some(new), Some(old)) => {
            let (kind, old_kind) = (new.parse::<RopeType>()?, old.parse::<RopeType>()?);
            if kind != old_kind && old_kind != RopeType::Default {
                let detail = format!("{new} and {old}; keep the right one");
                return Err(RopeError::contradiction("rope_type", "type", detail));
            }
            kind
        }
    };
    Ok(match kind {
        // The first Phi-3 files call it yarn.
        RopeType::Yarn if matches!(model_type, "phi3" | "phi4_multimodal") && set.contains_key("short_factor") => {
            RopeType::Longrope
        }
        // Hunyuan: a fixed stretch of the base under the name of the dynamic one.
        RopeType::Dynamic if number(set, "alpha")?.is_some_and(|alpha| alpha != 0.0) => RopeType::StaticNtk,
        other => other,
    })
}

/// Head dimension, and the rotary dimension where the file gives it in lanes.
fn dimensions(
    keys: &Keys<'_>,
    defaults: &Defaults,
    layer_type: Option<&str>,
) -> Result<(usize, Option<usize>), RopeError> {
    let own = match layer_type {
        Some("full_attention") => keys.whole(&["global_head_dim"])?.or(defaults.global_head_dim),
        _ => None,
    };
    let names: &[&str] = match keys.model_type() {
        "jetmoe" => &["head_dim", "kv_channels"],
        _ => &["head_dim", "attention_head_dim"],
    };
    let given = own.or(keys.whole(names)?).map(|lanes| lanes as usize);
    // DeepSeek's latent attention: these lanes are a tensor of their own, or the end of the head.
    if let Some(lanes) = keys.whole(&["qk_rope_head_dim"])?.or(defaults.rope_head_dim).map(|lanes| lanes as usize) {
        let head_dim = given.unwrap_or(lanes);
        return Ok((head_dim, Some(lanes).filter(|lanes| *lanes != head_dim)));
    }
    let rotary_dim = rotary_dim(keys, defaults)?;
    let assumed = defaults.head_dim.filter(|_| !names.iter().any(|name| keys.is_null(name)));
    if let Some(head_dim) = given.or(assumed.map(|lanes| lanes as usize)) {
        return Ok((head_dim, rotary_dim));
    }
    let missing = |key, hint: &str| RopeError::MissingKey { key, hint: hint.to_owned() };
    let hint = "give it, or hidden_size and num_attention_heads";
    let width = keys.whole(&["hidden_size", "n_embd"])?.ok_or_else(|| missing("head_dim", hint))?;
    let heads = keys.whole(&["num_attention_heads", "n_head"])?;
    let heads = heads.ok_or_else(|| missing("num_attention_heads", "give it, or head_dim"))?;
    if heads == 0 {
        return Err(RopeError::invalid("num_attention_heads", heads, "give a number above 0, or head_dim"));
    }
    Ok(((width.saturating_mul(defaults.head_growth) / heads) as usize, rotary_dim))
}

/// True if the lanes that rotate are a tensor of their own.
fn is_latent(keys: &Keys<'_>, defaults: &Defaults) -> bool {
    keys.get(&["qk_rope_head_dim"]).is_some() || defaults.rope_head_dim.is_some()
}

/// Reads `rotary_dim` for the classes that use it, and for a file that names no model.
fn rotary_dim(keys: &Keys<'_>, defaults: &Defaults) -> Result<Option<usize>, RopeError> {
    let is_read = defaults.rotary_dim.is_some() || keys.model_type().is_empty();
    let given = keys.whole(&["rotary_dim"])?.filter(|_| is_read);
    let lanes = given.or(defaults.rotary_dim.filter(|_| !keys.is_null("rotary_dim")));
    Ok(lanes.map(|lanes| lanes as usize))
}

/// Refuses a `rotary_dim` other than the number of lanes that the model's class rotates.
fn no_other_lanes(keys: &Keys<'_>, config: &RopeConfig) -> Result<(), RopeError> {
    let (model_type, rotated) = (keys.model_type(), config.rotary_lanes());
    match keys.whole(&["rotary_dim"])? {
        Some(lanes) if lanes != rotated as u64 => {
            let share = lanes as f64 / config.head_dim as f64;
            let detail = format!(
                "the class of {model_type} does not read it, and rotates {rotated} lanes: for {lanes} lanes give \
                 partial_rotary_factor {share}, else leave it out"
            );
            Err(RopeError::contradiction("rotary_dim", "model_type", detail))
        }
        _ => Ok(()),
    }
}

/// Takes over the parameters that the type uses; HF warns about others and goes on.
fn parameters(config: &mut RopeConfig, set: &Object) -> Result<(), RopeError> {
    let kind = config.rope_type;
    if kind != RopeType::Default {
        config.factor = number(set, "factor")?;
    }
    match kind {
        RopeType::StaticNtk => config.factor = number(set, "alpha")?.or(config.factor),
        RopeType::Llama3 => {
            config.low_freq_factor = number(set, "low_freq_factor")?;
            config.high_freq_factor = number(set, "high_freq_factor")?;
        }
        RopeType::Yarn | RopeType::YarnTileOps => {
            config.beta_fast = number(set, "beta_fast")?;
            config.beta_slow = number(set, "beta_slow")?;
            config.attention_factor = number(set, "attention_factor")?;
            if kind == RopeType::Yarn {
                config.mscale = number(set, "mscale")?;
                config.mscale_all_dim = number(set, "mscale_all_dim")?;
                config.truncate = boolean(set, "truncate")?;
            }
        }
        RopeType::Longrope => {
            config.short_factor = list(set, "short_factor")?;
            config.long_factor = list(set, "long_factor")?;
            config.attention_factor = number(set, "attention_factor")?;
        }
        _ => {}
    }
    Ok(())
}

/// Takes over the multimodal sections. The model's class gives their layout; if it does not know them, the file does.
fn sections(config: &mut RopeConfig, set: &Object, model_type: &str, of: Option<Mrope>) -> Result<(), RopeError> {
    let own = |advice: &str| RopeError::MropeLayout { model_type: model_type.to_owned(), advice: advice.to_owned() };
    let tables = "give the kernel tables of its cosines and sines";
    if let Some(Mrope::Own) = of {
        return Err(own(tables));
    }
    let is_own = matches!(of, Some(Mrope::OwnForPictures));
    if is_own && ["mrope_section", "xdrope_section"].iter().any(|key| present(set, key).is_some()) {
        return Err(own(&format!("for text leave the sections out, for pictures {tables}")));
    }
    let Some(value) = present(set, "mrope_section") else { return Ok(()) };
    let wrong = || RopeError::invalid("mrope_section", value, "give three whole numbers");
    let sections = value.as_array().ok_or_else(wrong)?;
    let sections = sections.iter().map(|section| to_whole("mrope_section", section).map(|n| n as usize));
    let sections = sections.collect::<Result<Vec<_>, _>>()?.try_into().map_err(|_| wrong())?;
    let by_key = |interleaved| if interleaved { MropeLayout::Interleaved } else { MropeLayout::Chunked };
    let given = boolean(set, "mrope_interleaved")?.map(by_key);
    let layout = match (of, given) {
        (Some(Mrope::Known(layout)), Some(given)) if given != layout => {
            let detail = format!("the class of {model_type} always has the other layout; leave the key out");
            return Err(RopeError::contradiction("mrope_interleaved", "model_type", detail));
        }
        (Some(Mrope::Known(layout)), _) => layout,
        (_, given) => given.unwrap_or_default(),
    };
    *config = config.clone().mrope_section(sections, layout);
    Ok(())
}

/// Reads a fact that may stand in two places. A layer type's own value goes first; otherwise the two must agree.
fn agreed<T: PartialEq + ToString>(
    key: &str,
    inner: Option<T>,
    outer: Option<T>,
    per_layer: bool,
) -> Result<Option<T>, RopeError> {
    if let (Some(a), Some(b)) = (&inner, &outer)
        && a != b
        && !per_layer
    {
        let detail = format!("{} inside and {} at the top level; keep the right one", a.to_string(), b.to_string());
        return Err(RopeError::contradiction(&format!("rope_parameters.{key}"), key, detail));
    }
    Ok(inner.or(outer))
}

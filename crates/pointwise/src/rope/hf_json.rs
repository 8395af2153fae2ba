//! A [`RopeConfig`] from a model's `config.json`.
//!
//! Read as HF transformers 5.17 does (`RotaryEmbeddingConfigMixin` and the model classes): null counts as absent;
//! `rope_scaling` is the old name of `rope_parameters`, `type` of `rope_type`; parameters inside win over those at the
//! top level where each layer type has its own. Where HF would silently take one of two values that disagree, this
//! reports it.

use std::path::Path;

use serde_json::{Map, Value};

use super::hf_defaults::{self, Defaults};
use super::{MropeLayout, RopeConfig, RopeError, RopeType};

type Object = Map<String, Value>;

impl RopeConfig {
    /// Reads a model's `config.json` text; for models with one set of parameters.
    ///
    /// # Errors
    ///
    /// [`RopeError::Json`] if it is not a JSON object, [`RopeError::LayerType`] if the parameters are per layer type
    /// (take [`from_hf_json_layer`](Self::from_hf_json_layer)), else what [`validate`](Self::validate) reports.
    pub fn from_hf_json(text: &str) -> Result<Self, RopeError> {
        read(text, None)
    }

    /// Reads the parameters of one layer type, for instance `full_attention` or `sliding_attention` (Gemma 3 and 4).
    /// A model with one set of parameters has them for every layer type.
    ///
    /// # Errors
    ///
    /// As [`from_hf_json`](Self::from_hf_json); [`RopeError::LayerType`] names the types that the model has, and
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
        Ok(match parameter_sets(&keys, &keys.defaults())? {
            Sets::One(_) => Vec::new(),
            Sets::PerLayer(sets) => sets.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Reads a `config.json` file; see [`from_hf_json`](Self::from_hf_json).
    ///
    /// # Errors
    ///
    /// [`RopeError::Io`] if it cannot be read, else as there.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, RopeError> {
        Self::from_hf_json(&load(path.as_ref())?)
    }

    /// Reads one layer type's parameters from a file; see [`from_hf_json_layer`](Self::from_hf_json_layer).
    ///
    /// # Errors
    ///
    /// [`RopeError::Io`] if it cannot be read, else as there.
    pub fn from_path_layer(path: impl AsRef<Path>, layer_type: &str) -> Result<Self, RopeError> {
        Self::from_hf_json_layer(&load(path.as_ref())?, layer_type)
    }
}

fn load(path: &Path) -> Result<String, RopeError> {
    std::fs::read_to_string(path)
        .map_err(|error| RopeError::Io { path: path.display().to_string(), message: error.to_string() })
}

fn parse(text: &str) -> Result<Object, RopeError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err(RopeError::Json { message: "not a JSON object".to_owned() }),
        Err(error) => Err(RopeError::Json { message: error.to_string() }),
    }
}

/// The keys of a text model: those of `text_config` in a multimodal file first, then those at the top.
struct Keys<'a> {
    places: Vec<&'a Object>,
}

impl<'a> Keys<'a> {
    fn of(root: &'a Object) -> Self {
        let text = root.get("text_config").and_then(Value::as_object);
        Self { places: text.into_iter().chain([root]).collect() }
    }

    /// The first value under any of the names that is not null.
    fn get(&self, names: &[&str]) -> Option<&'a Value> {
        let find = |place: &&'a Object| names.iter().find_map(|name| present(place, name));
        self.places.iter().find_map(find)
    }

    fn number(&self, names: &[&str]) -> Result<Option<f64>, RopeError> {
        self.get(names).map(|value| to_number(names[0], value)).transpose()
    }

    fn whole(&self, names: &[&str]) -> Result<Option<u64>, RopeError> {
        self.get(names).map(|value| to_whole(names[0], value)).transpose()
    }

    fn object(&self, name: &str) -> Result<Option<&'a Object>, RopeError> {
        let Some(value) = self.get(&[name]) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| RopeError::invalid(name, value, "give an object or null"))?;
        // HF takes an empty object for none.
        Ok(Some(object).filter(|object| !object.is_empty()))
    }

    fn model_type(&self) -> &'a str {
        self.get(&["model_type"]).and_then(Value::as_str).unwrap_or_default()
    }

    fn defaults(&self) -> Defaults {
        hf_defaults::of(self.model_type())
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
        let sets = sets.iter().filter(|(_, set)| set.is_object() || set.is_null());
        let mut sets: Vec<_> = sets.map(|(name, set)| (name.clone(), set.as_object().cloned())).collect();
        sets.sort_by(|a, b| a.0.cmp(&b.0));
        return Ok(Sets::PerLayer(sets));
    }
    let set = match (scaling, parameters) {
        (Some(old), Some(new)) => merged(old, new)?,
        (one, other) => one.or(other).cloned().unwrap_or_default(),
    };
    let plain = |theta: f64| Object::from_iter([("rope_theta".to_owned(), Value::from(theta))]);
    if let Some(local) = keys.number(&["rope_local_base_freq", "local_rope_theta"])?.or(defaults.local_theta) {
        let layers = [("full_attention", set), ("sliding_attention", plain(local))];
        return Ok(Sets::PerLayer(layers.map(|(name, set)| (name.to_owned(), Some(set))).into()));
    }
    if let Some(compressed) = keys.number(&["compress_rope_theta"])? {
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

/// `rope_scaling` and `rope_parameters` of one file, which must not disagree.
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
    let defaults = keys.defaults();
    let (set, per_layer) = choose(parameter_sets(&keys, &defaults)?, layer_type)?;
    let kind = rope_type(&set, keys.model_type())?;
    let (head_dim, rotary_dim) = dimensions(&keys, &defaults, layer_type.filter(|_| per_layer))?;

    let theta = agreed("rope_theta", number(&set, "rope_theta")?, keys.number(THETA)?, per_layer)?;
    let mut config = RopeConfig::new(kind, head_dim, theta.unwrap_or(defaults.theta));
    let share =
        agreed("partial_rotary_factor", number(&set, "partial_rotary_factor")?, keys.number(SHARE)?, per_layer)?;
    config.partial_rotary_factor = match (share, rotary_dim) {
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
    config.validate()?;
    Ok(config)
}

const THETA: &[&str] = &["rope_theta", "rotary_emb_base", "global_rope_theta"];
const SHARE: &[&str] = &["partial_rotary_factor", "rotary_pct", "rope_pct"];

/// The set to use, and whether it is a layer type's own.
fn choose(sets: Sets, layer_type: Option<&str>) -> Result<(Object, bool), RopeError> {
    let sets = match sets {
        Sets::One(set) => return Ok((set, false)),
        Sets::PerLayer(sets) => sets,
    };
    let available = sets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let chosen = match layer_type {
        None if sets.len() == 1 => sets.into_iter().next(),
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
        RopeType::Yarn if model_type == "phi3" && set.contains_key("short_factor") => RopeType::Longrope,
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
    let given = own.or(keys.whole(&["head_dim"])?).map(|lanes| lanes as usize);
    // DeepSeek's latent attention: these lanes are a tensor of their own, or the end of the head.
    if let Some(lanes) = keys.whole(&["qk_rope_head_dim"])?.map(|lanes| lanes as usize) {
        let head_dim = given.unwrap_or(lanes);
        return Ok((head_dim, Some(lanes).filter(|lanes| *lanes != head_dim)));
    }
    let rotary_dim = keys.whole(&["rotary_dim"])?.map(|lanes| lanes as usize);
    if let Some(head_dim) = given.or(defaults.head_dim.map(|lanes| lanes as usize)) {
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
    Ok(((width / heads) as usize, rotary_dim))
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
    if let Some(value) = present(set, "mrope_section") {
        let wrong = || RopeError::invalid("mrope_section", value, "give three whole numbers");
        let sections = value.as_array().ok_or_else(wrong)?;
        let sections = sections.iter().map(|section| to_whole("mrope_section", section).map(|n| n as usize));
        let sections = sections.collect::<Result<Vec<_>, _>>()?.try_into().map_err(|_| wrong())?;
        let interleaved = boolean(set, "mrope_interleaved")?.unwrap_or(false);
        let layout = if interleaved { MropeLayout::Interleaved } else { MropeLayout::Chunked };
        *config = config.clone().mrope_section(sections, layout);
    }
    Ok(())
}

/// One fact that may stand in two places. A layer type's own value goes first; otherwise the two must agree.
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

fn present<'a>(object: &'a Object, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn number(set: &Object, key: &str) -> Result<Option<f64>, RopeError> {
    present(set, key).map(|value| to_number(key, value)).transpose()
}

fn whole(set: &Object, key: &str) -> Result<Option<u64>, RopeError> {
    present(set, key).map(|value| to_whole(key, value)).transpose()
}

fn boolean(set: &Object, key: &str) -> Result<Option<bool>, RopeError> {
    let read = |value: &Value| value.as_bool().ok_or_else(|| RopeError::invalid(key, value, "give true or false"));
    present(set, key).map(read).transpose()
}

fn list(set: &Object, key: &str) -> Result<Option<Vec<f64>>, RopeError> {
    let Some(value) = present(set, key) else { return Ok(None) };
    let entries = value.as_array().ok_or_else(|| RopeError::invalid(key, value, "give a list of numbers"))?;
    entries.iter().map(|entry| to_number(key, entry)).collect::<Result<_, _>>().map(Some)
}

fn to_number(key: &str, value: &Value) -> Result<f64, RopeError> {
    value.as_f64().ok_or_else(|| RopeError::invalid(key, value, "give a number"))
}

fn to_whole(key: &str, value: &Value) -> Result<u64, RopeError> {
    let exact = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    exact.map(|number| number as u64).ok_or_else(|| RopeError::invalid(key, value, "give a whole number"))
}

//! Finds the keys of a `config.json` and reads them as the types they should have. null counts as absent.

use serde_json::{Map, Value};

use super::RopeError;

pub(super) type Object = Map<String, Value>;

/// The keys of a text model: first `text_config` of a multimodal file, then the top level.
pub(super) struct Keys<'a> {
    places: Vec<&'a Object>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(root: &'a Object) -> Self {
        let text = root.get("text_config").and_then(Value::as_object);
        Self { places: text.into_iter().chain([root]).collect() }
    }

    /// The first value under any of the names that is not null.
    pub(super) fn get(&self, names: &[&str]) -> Option<&'a Value> {
        let find = |place: &&'a Object| names.iter().find_map(|name| present(place, name));
        self.places.iter().find_map(find)
    }

    pub(super) fn number(&self, names: &[&str]) -> Result<Option<f64>, RopeError> {
        self.get(names).map(|value| to_number(names[0], value)).transpose()
    }

    pub(super) fn whole(&self, names: &[&str]) -> Result<Option<u64>, RopeError> {
        self.get(names).map(|value| to_whole(names[0], value)).transpose()
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&'a Object>, RopeError> {
        let Some(value) = self.get(&[name]) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| RopeError::invalid(name, value, "give an object or null"))?;
        // HF takes an empty object for none.
        Ok(Some(object).filter(|object| !object.is_empty()))
    }

    pub(super) fn model_type(&self) -> &'a str {
        self.get(&["model_type"]).and_then(Value::as_str).unwrap_or_default()
    }

    /// True if the file has null for this key: then the class's default does not apply.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.places.iter().any(|place| place.get(name).is_some_and(Value::is_null))
    }
}

pub(super) fn present<'a>(object: &'a Object, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

pub(super) fn number(set: &Object, key: &str) -> Result<Option<f64>, RopeError> {
    present(set, key).map(|value| to_number(key, value)).transpose()
}

pub(super) fn whole(set: &Object, key: &str) -> Result<Option<u64>, RopeError> {
    present(set, key).map(|value| to_whole(key, value)).transpose()
}

pub(super) fn boolean(set: &Object, key: &str) -> Result<Option<bool>, RopeError> {
    let read = |value: &Value| value.as_bool().ok_or_else(|| RopeError::invalid(key, value, "give true or false"));
    present(set, key).map(read).transpose()
}

pub(super) fn list(set: &Object, key: &str) -> Result<Option<Vec<f64>>, RopeError> {
    let Some(value) = present(set, key) else { return Ok(None) };
    let entries = value.as_array().ok_or_else(|| RopeError::invalid(key, value, "give a list of numbers"))?;
    entries.iter().map(|entry| to_number(key, entry)).collect::<Result<_, _>>().map(Some)
}

pub(super) fn to_number(key: &str, value: &Value) -> Result<f64, RopeError> {
    value.as_f64().ok_or_else(|| RopeError::invalid(key, value, "give a number"))
}

pub(super) fn to_whole(key: &str, value: &Value) -> Result<u64, RopeError> {
    let exact = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    exact.map(|number| number as u64).ok_or_else(|| RopeError::invalid(key, value, "give a whole number"))
}

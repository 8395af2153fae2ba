//! Settings that are no parameters of a formula: the sizes and the element type of a tensor that is made, the place in a random
//! sequence, the value of `masked_fill`.

use pointwise::{DType, Number, Philox, Tensor};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::file::Source;
use crate::number::{number, truth};
use crate::registry::Op;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    kind: Kind,
    /// The default as text; none where the setting must be given.
    default: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The length of a dimension.
    Size,
    Type,
    /// A whole number of 64 bits.
    Word,
    Flag,
    /// A number, or a tensor without dimensions in the file.
    Number,
}

const fn setting(name: &'static str, kind: Kind, default: Option<&'static str>) -> Setting {
    Setting { name, kind, default }
}

/// Returns the settings of an op, in the order of listings.
pub(crate) fn of(op: Op) -> Vec<Setting> {
    let info = op.info();
    let mut settings: Vec<Setting> = Vec::new();
    for &name in info.shape {
        if settings.iter().all(|setting| setting.name != name) {
            settings.push(setting(name, Kind::Size, None));
        }
    }
    if op.is_masked_fill() {
        settings.push(setting("value", Kind::Number, None));
    }
    if info.is_random() {
        settings.push(setting("training", Kind::Flag, Some("true")));
        settings.push(setting("seed", Kind::Word, Some("0")));
        settings.push(setting("offset", Kind::Word, Some("0")));
    }
    if info.is_of_indices() {
        settings.push(setting("dtype", Kind::Type, Some("f32")));
    }
    settings
}

impl Setting {
    /// `seed=0`, or `seq_len` if it must be given.
    pub(crate) fn shown(&self) -> String {
        match self.default {
            Some(default) => format!("{}={default}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// True if the file may have it.
    pub(crate) fn may_be_in_file(&self) -> bool {
        self.kind == Kind::Number
    }

    /// Its element in `list --json`.
    pub(crate) fn described(&self) -> Value {
        // A number or a bool where it is one; else a word.
        let value = self.default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
        json!({ "name": self.name, "default": value, "required": self.default.is_none() })
    }
}

/// The settings of a call.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    op: Op,
    /// Each setting with the text that was given, or its default.
    texts: Vec<(Setting, Option<String>)>,
}

impl Settings {
    /// Returns the settings of an op at their defaults.
    pub(crate) fn new(op: Op) -> Settings {
        let texts = of(op).into_iter().map(|setting| (setting, setting.default.map(str::to_owned)));
        Settings { op, texts: texts.collect() }
    }

    /// Takes a value. Returns false if the op has no such setting.
    ///
    /// # Errors
    /// Fails for a value that the setting cannot have.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let Some((setting, text)) = self.texts.iter_mut().find(|(setting, _)| setting.name == name) else {
            return Ok(false);
        };
        let setting = *setting;
        *text = Some(value.to_owned());
        match setting.kind {
            Kind::Size => drop(self.size(setting.name)?),
            Kind::Type => drop(self.dtype()?),
            Kind::Word => drop(self.word(setting.name)?),
            Kind::Flag => drop(self.flag(setting.name)?),
            Kind::Number => drop(number(setting.name, value)?),
        }
        Ok(true)
    }

    /// Fails if a setting without a default is missing. `may_be_in_file` lets out those that the file may have.
    ///
    /// # Errors
    /// As said.
    pub(crate) fn check_complete(&self, may_be_in_file: bool) -> Result<()> {
        let is_missing = |(setting, text): &&(Setting, Option<String>)| {
            text.is_none() && !(may_be_in_file && setting.kind == Kind::Number)
        };
        match self.texts.iter().find(is_missing) {
            Some((setting, _)) => {
                Err(Error::Usage(format!("{} needs --set {}=...", self.op.info().name, setting.name)))
            }
            None => Ok(()),
        }
    }

    /// Returns the value of `masked_fill`: given, or a tensor of the file. None for another op.
    ///
    /// # Errors
    /// Fails without a value, and for a tensor with dimensions.
    pub(crate) fn value(&self, file: &mut Source<'_>, device: &pointwise::Device) -> Result<Option<Number>> {
        let Some((setting, text)) = self.texts.iter().find(|(setting, _)| setting.kind == Kind::Number) else {
            return Ok(None);
        };
        let name = setting.name;
        if let Some(text) = text {
            return number(name, text).map(Some);
        }
        if !file.has(name) {
            return self.check_complete(false).map(|()| None);
        }
        let tensor = file.read(&[name], device)?.pop();
        match tensor.filter(|tensor| tensor.shape().rank() == 0) {
            Some(tensor) => element(&tensor).map(Some),
            None => {
                let op = self.op.info().name;
                let why = format!(
                    "{op} does not take {name} as a tensor with dimensions: give --set {name}=..., or leave it out"
                );
                Err(file.refuse(name, &why))
            }
        }
    }

    /// Returns the place in the random sequence.
    ///
    /// # Errors
    /// Fails for text that is no whole number.
    pub(crate) fn place(&self) -> Result<Philox> {
        let word = |name| if self.text(name).is_empty() { Ok(0) } else { self.word(name) };
        Ok(Philox { seed: word("seed")?, offset: word("offset")? })
    }

    /// Returns false if nothing is to be dropped.
    ///
    /// # Errors
    /// Fails for text that is no truth value.
    pub(crate) fn is_training(&self) -> Result<bool> {
        self.flag("training")
    }

    /// Returns the shape to make.
    ///
    /// # Errors
    /// Fails for text that is no size.
    pub(crate) fn shape(&self) -> Result<Vec<usize>> {
        self.op.info().shape.iter().map(|name| self.size(name)).collect()
    }

    /// Returns the element type to make.
    ///
    /// # Errors
    /// Fails for a name that is none of the op's types.
    pub(crate) fn dtype(&self) -> Result<DType> {
        let types = self.op.info().types;
        types.iter().copied().find(|dtype| dtype.name() == self.text("dtype")).ok_or_else(|| {
            let names: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
            self.refuse("dtype", &format!("one of {}", names.join(", ")))
        })
    }

    fn text(&self, name: &str) -> &str {
        let found = self.texts.iter().find(|(setting, _)| setting.name == name);
        found.and_then(|(_, text)| text.as_deref()).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> Result<bool> {
        truth(self.text(name)).ok_or_else(|| self.refuse(name, "true or false"))
    }

    fn word(&self, name: &str) -> Result<u64> {
        self.text(name).parse().map_err(|_| self.refuse(name, "a whole number from 0 to 2^64 - 1"))
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.text(name).parse().map_err(|_| self.refuse(name, "a size: a whole number from 0"))
    }

    fn refuse(&self, name: &str, must: &str) -> Error {
        Error::Usage(format!("{name}={}: must be {must}", self.text(name)))
    }
}

/// Returns the element of a tensor without dimensions.
fn element(tensor: &Tensor) -> Result<Number> {
    Ok(match tensor.dtype() {
        DType::Bool => Number::Bool(tensor.item::<bool>()?),
        dtype if dtype.is_int() => Number::Int(tensor.to_dtype(DType::I64)?.item::<i64>()?),
        _ => Number::Float(tensor.to_dtype(DType::F32)?.item::<f32>()?.into()),
    })
}

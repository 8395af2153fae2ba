//! The errors of a RoPE configuration.

use thiserror::Error;

use crate::error::{FileError, line};

/// The reason why a RoPE configuration was refused. Every message names the key at fault, as HF spells it, and says
/// what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RopeError {
    /// A key that the rope type cannot do without is absent.
    #[error("`{key}` is missing: {hint}")]
    MissingKey {
        /// The key, as HF spells it.
        key: &'static str,
        /// Advice.
        hint: String,
    },
    /// Two keys say different things, or a key does not belong to the rope type.
    #[error("`{}` contradicts `{}`: {}", line(key), line(other), line(detail))]
    Contradiction {
        /// The key at fault.
        key: String,
        /// The key it disagrees with.
        other: String,
        /// The disagreement, and advice.
        detail: String,
    },
    /// A key's value is of the wrong kind or out of range.
    #[error("`{}` is {}: {}", line(key), line(value), line(expected))]
    InvalidValue {
        /// The key, as HF spells it.
        key: String,
        /// The value found.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A list does not have one entry a pair.
    #[error("`{key}` has {found} entries: give {expected}, one for each pair (rotary_dim / 2)")]
    ListLength {
        /// The key, as HF spells it.
        key: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// A rope type that this crate does not know.
    #[error("`rope_type` is {value:?}: give one of {known}")]
    UnknownRopeType {
        /// The name found.
        value: String,
        /// The names known.
        known: String,
    },
    /// The model has one set of parameters for each layer type, and the caller chose no type or an unknown one.
    #[error(
        "`rope_parameters` is per layer type: choose a layer_type of {} (chosen: {})",
        line(available),
        line(chosen)
    )]
    LayerType {
        /// The layer type asked for.
        chosen: String,
        /// The layer types present.
        available: String,
    },
    /// A layer type without rotary embedding (its parameters are null).
    #[error("`rope_parameters.{}` is null: layers of this type are not rotated; skip RoPE for them", line(layer_type))]
    NotRotated {
        /// The layer type.
        layer_type: String,
    },
    /// A model that lays `mrope_section` out in a way that this crate does not have.
    #[error(
        "`mrope_section` has a layout of its own in {}, which is not one of those here: {advice}",
        line(model_type)
    )]
    MropeLayout {
        /// The model's type.
        model_type: String,
        /// Advice.
        advice: String,
    },
    /// The text is not a JSON object.
    #[error("config.json: {}", line(message))]
    Json {
        /// The parser's message, with line and column.
        message: String,
    },
    /// The file could not be read.
    #[error("config.json at {}: {}", line(path), line(&source.to_string()))]
    Io {
        /// The path given.
        path: String,
        /// The system's answer.
        source: FileError,
    },
}

impl From<RopeError> for crate::Error {
    fn from(error: RopeError) -> Self {
        crate::ErrorKind::Rope(error).into()
    }
}

impl RopeError {
    pub(crate) fn invalid(key: &str, value: impl ToString, expected: &str) -> Self {
        Self::InvalidValue { key: key.to_owned(), value: value.to_string(), expected: expected.to_owned() }
    }

    pub(crate) fn contradiction(key: &str, other: &str, detail: impl Into<String>) -> Self {
        Self::Contradiction { key: key.to_owned(), other: other.to_owned(), detail: detail.into() }
    }
}

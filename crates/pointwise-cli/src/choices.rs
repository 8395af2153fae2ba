//! Parameters that are words and choose between ops.

use crate::error::{Error, Result};
use crate::number::truth;

/// A parameter of PyTorch's that is a word and chooses between ops of the registry.
pub(crate) struct Choice {
    /// The op that has the parameter.
    pub(crate) op: &'static str,
    /// The parameter.
    pub(crate) param: &'static str,
    /// Each value and the op it stands for; the first is the default.
    pub(crate) values: &'static [(&'static str, &'static str)],
}

/// The choices of all ops.
pub(crate) const CHOICES: &[Choice] = &[
    Choice { op: "gelu", param: "approximate", values: &[("none", "gelu"), ("tanh", "gelu_tanh")] },
    Choice {
        op: "div",
        param: "rounding_mode",
        values: &[("none", "div"), ("trunc", "div_trunc"), ("floor", "floor_divide")],
    },
    Choice { op: "alibi", param: "causal", values: &[("false", "alibi"), ("true", "alibi_causal")] },
    Choice { op: "sinusoidal", param: "halves", values: &[("false", "sinusoidal"), ("true", "sinusoidal_halves")] },
];

impl Choice {
    /// True if it is one of false and true.
    pub(crate) fn is_flag(&self) -> bool {
        self.values.iter().all(|(word, _)| truth(word).is_some())
    }

    /// Finds the op of a value.
    ///
    /// # Errors
    /// A value that is none of the choice's.
    pub(crate) fn chosen(&self, value: &str) -> Result<&'static str> {
        let is_it = |word: &str| word == value || self.is_flag() && truth(word) == truth(value);
        self.values.iter().find(|(word, _)| is_it(word)).map(|(_, op)| *op).ok_or_else(|| {
            let words: Vec<_> = self.values.iter().map(|(word, _)| *word).collect();
            Error::Usage(format!("{}={value}: must be {}", self.param, words.join(" or ")))
        })
    }
}

/// True if a flag of another op chooses this one.
pub(crate) fn is_of_flag(name: &str) -> bool {
    let flags = CHOICES.iter().filter(|choice| choice.is_flag());
    flags.flat_map(|choice| &choice.values[1..]).any(|(_, op)| *op == name)
}

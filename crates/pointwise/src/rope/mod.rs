//! Rotary position embedding on the host: a model's parameters, its frequencies, its cosines and sines.
//!
//! [`RopeConfig`] holds the parameters under HF's names, built in code or read from a model's `config.json`.
//! [`FrequencySource::frequencies`] turns it into [`Frequencies`]; [`cos_sin`] makes tables of them. Own frequencies need
//! one impl of [`FrequencyRule`].
//!
//! The oracle is HF transformers 5.17 (`modeling_rope_utils.py`); where implementations differ, HF's is the one here.

mod check;
mod config;
mod error;
mod formulas;
mod frequencies;
mod hf_defaults;
mod hf_json;
mod kernel;
mod number;
mod options;
mod positions;
mod rope_type;
mod torch_pow;
mod validate;

pub use config::RopeConfig;
pub use error::RopeError;
pub use frequencies::{Frequencies, FrequencyRule, FrequencySource, turns};
pub use kernel::RopeKernel;
pub(crate) use options::{Pointers, Source};
pub use options::{
    OutOfRange, RopeAngles, RopeDirection, RopeFrequencies, RopeLayout, RopePairs, RopePositions, RotatedLanes,
};
pub use positions::{RopePrecision, cos_sin};
pub use rope_type::{MropeAxis, MropeLayout, MropeSections, RopeType};

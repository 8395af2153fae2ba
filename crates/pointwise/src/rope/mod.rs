//! Rotary position embedding: a model's parameters, its frequencies, and the rotation of q and k.
//!
//! [`RopeConfig`] holds the parameters under HF's names, built in code or read from a model's `config.json`.
//! [`FrequencySource::frequencies`] turns it into [`Frequencies`]; own frequencies need one impl of [`FrequencyRule`].
//! [`RopeKernel`] rotates q and k in one launch: on the fly from [`RopeFrequencies`] on the device, or by tables of
//! angles or of cosines and sines ([`cos_sin`] makes them). [`ROPE`] lists the named ops of the family, [`rope_neox`]
//! and its siblings are the functions.
//!
//! The oracle is HF transformers 5.17 (`modeling_rope_utils.py`). Where implementations differ, this one follows HF.

mod call;
mod check;
mod config;
mod cpu;
mod error;
mod formulas;
mod frequencies;
mod hf_defaults;
mod hf_json;
mod hf_keys;
mod kernel;
mod named;
mod number;
mod options;
mod plan;
mod positions;
mod rope_type;
mod torch_pow;
mod validate;

pub use config::RopeConfig;
pub use error::RopeError;
pub use frequencies::{Frequencies, FrequencyRule, FrequencySource, turns};
pub use kernel::RopeKernel;
pub use named::{
    ROPE, ROPE_ARGUMENTS, ROPE_SETTINGS, RopeDef, RopeOp, RopeOperands, RopeSetting, rope_llama31,
    rope_llama31_inplace, rope_llama31_into, rope_longrope, rope_longrope_inplace, rope_longrope_into, rope_neox,
    rope_neox_inplace, rope_neox_into, rope_non_neox, rope_non_neox_inplace, rope_non_neox_into, rope_op, rope_yarn,
    rope_yarn_inplace, rope_yarn_into,
};
pub use options::{
    OutOfRange, RopeAngles, RopeDirection, RopeFrequencies, RopeLayout, RopePairs, RopePositions, RotatedLanes,
};
pub(crate) use options::{Pointers, Source};
pub use positions::{RopePrecision, cos_sin, cos_sin as rope_cos_sin};
pub use rope_type::{MropeAxis, MropeLayout, MropeSections, RopeType};

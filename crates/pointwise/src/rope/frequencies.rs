//! Makes the frequencies that a kernel uses from a configuration or a user's own rule.

use super::number::{Double, Number};
use super::{RopeConfig, RopeError, formulas, validate};

/// The inverse frequencies of one sequence, in the forms that the kernels take. Each list has `rotary_dim / 2` entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    /// Radians a position, in f32 as HF transformers 5.17 computes them: the same operations in the same order, and
    /// PyTorch's CPU `pow`. They are equal to the bit on an AVX-512 machine for every model tested, elsewhere within 2
    /// ULP (another `pow`). `dynamic` follows HF's functions for a length that is an int. HF's models pass a tensor:
    /// beyond `max_position_embeddings` they compute the base in f32, which changes about one frequency in nine by up
    /// to 2.3e-7 of it.
    pub inv_freq: Vec<f32>,
    /// Radians a position, the exact formula rounded once to f64.
    pub inv_freq_f64: Vec<f64>,
    /// Turns a position in units of 2^-64, from the exact formula: `position · turns` modulo 2^64 is the angle.
    pub turns: Vec<u64>,
    /// Multiplies cosine and sine, and so the rotated lanes only.
    pub attention_factor: f64,
}

impl Frequencies {
    /// Takes frequencies as they are, for instance a checkpoint's `inv_freq` tensor. `rotary_dim` is twice their
    /// number.
    ///
    /// # Errors
    ///
    /// [`RopeError::InvalidValue`] if the list is empty, if a frequency is not finite in f32, or if the attention
    /// factor in f32 is not finite and above 0.
    pub fn from_inv_freq(inv_freq: &[f32], attention_factor: f64) -> Result<Self, RopeError> {
        let exact = inv_freq.iter().map(|inverse| f64::from(*inverse)).collect();
        Self::from_inv_freq_f64(exact, attention_factor)
    }

    /// Like [`from_inv_freq`](Self::from_inv_freq), from f64 numbers.
    ///
    /// # Errors
    ///
    /// The errors of [`from_inv_freq`](Self::from_inv_freq).
    pub fn from_inv_freq_f64(inv_freq: Vec<f64>, attention_factor: f64) -> Result<Self, RopeError> {
        let turns = inv_freq.iter().map(|inverse| turns(*inverse)).collect();
        let rounded = inv_freq.iter().map(|inverse| *inverse as f32).collect();
        Self { inv_freq: rounded, inv_freq_f64: inv_freq, turns, attention_factor }.checked()
    }

    /// Lanes that take part in the rotation: two a frequency.
    pub fn rotary_dim(&self) -> usize {
        2 * self.inv_freq.len()
    }

    fn checked(self) -> Result<Self, RopeError> {
        if self.inv_freq.is_empty() {
            return Err(RopeError::invalid("inv_freq", "empty", "give at least one frequency"));
        }
        let expected = self.inv_freq.len();
        for (key, found) in [("inv_freq_f64", self.inv_freq_f64.len()), ("turns", self.turns.len())] {
            if found != expected {
                return Err(RopeError::ListLength { key, expected, found });
            }
        }
        for (at, (rounded, exact)) in self.inv_freq.iter().zip(&self.inv_freq_f64).enumerate() {
            // Shows the number at fault: the exact one if it does not fit f32, else the rounded one.
            let shown = if (*exact as f32).is_finite() { f64::from(*rounded) } else { *exact };
            if !(rounded.is_finite() && exact.is_finite()) {
                let name = format!("inv_freq[{at}]");
                return Err(RopeError::invalid(&name, shown, "every frequency must be finite in f32"));
            }
        }
        // Kernels take the factor as f32.
        let factor = self.attention_factor as f32;
        if !(factor.is_finite() && factor > 0.0) {
            let expected = "give a finite number above 0 that fits f32";
            return Err(RopeError::invalid("attention_factor", self.attention_factor, expected));
        }
        Ok(self)
    }
}

/// A frequency in fixed-point turns: `round(inv_freq / 2π · 2^64)`, modulo 2^64, to the last unit. 0 if it is not
/// finite.
///
/// Multiplied by a position with wrap-around, this is the angle modulo a turn, without the rounding that a
/// floating-point product has at large positions. For the frequencies of a [`RopeConfig`] take [`Frequencies::turns`],
/// which come from more bits than f64 has.
pub fn turns(inv_freq: f64) -> u64 {
    if inv_freq.is_finite() { Double::of(inv_freq).turns() } else { 0 }
}

/// A user's own frequencies: implement this, and the rule goes wherever a [`RopeConfig`] does.
///
/// ```
/// use pointwise::rope::{FrequencyRule, FrequencySource};
///
/// struct Halving;
/// impl FrequencyRule for Halving {
///     fn rotary_dim(&self) -> usize { 64 }
///     fn inv_freq(&self, i: usize, _rotary_dim: usize) -> f64 { 0.5f64.powi(i as i32) }
/// }
/// assert_eq!(Halving.frequencies(0)?.inv_freq[..3], [1.0, 0.5, 0.25]);
/// # Ok::<(), pointwise::rope::RopeError>(())
/// ```
pub trait FrequencyRule {
    /// The number of lanes that rotate: even.
    fn rotary_dim(&self) -> usize;

    /// Radians a position of pair `i`, `0 <= i < rotary_dim / 2`.
    fn inv_freq(&self, i: usize, rotary_dim: usize) -> f64;

    /// Multiplies cosine and sine.
    fn attention_factor(&self) -> f64 {
        1.0
    }
}

/// A source of frequencies: a [`RopeConfig`], a user's [`FrequencyRule`], or [`Frequencies`] made before.
pub trait FrequencySource {
    /// The frequencies for sequences of up to `seq_len` tokens (largest position + 1). Pass 0 if the length is not
    /// known yet.
    ///
    /// Only `dynamic` and `longrope` depend on the length. A sequence keeps the frequencies it began with: keys rotated
    /// by others do not match. So choose once, by the longest length to come; HF instead recomputes `dynamic` whenever
    /// a sequence passes the longest seen, and Phi drops its cache when `longrope` switches, at the original length +
    /// 1.
    ///
    /// # Errors
    ///
    /// The errors of [`RopeConfig::validate`]; a rule's rotary dimension that is odd, 0 or too large; a number that is
    /// not finite.
    fn frequencies(&self, seq_len: u64) -> Result<Frequencies, RopeError>;
}

impl FrequencySource for RopeConfig {
    fn frequencies(&self, seq_len: u64) -> Result<Frequencies, RopeError> {
        Self::frequencies(self, seq_len)
    }
}

impl RopeConfig {
    /// The frequencies for sequences of up to `seq_len` tokens; see [`FrequencySource::frequencies`].
    ///
    /// # Errors
    ///
    /// The errors of [`validate`](Self::validate); a frequency that is not finite.
    pub fn frequencies(&self, seq_len: u64) -> Result<Frequencies, RopeError> {
        self.validate()?;
        let exact = formulas::inverse_frequencies::<Double>(self, seq_len);
        Frequencies {
            inv_freq: formulas::inverse_frequencies::<f32>(self, seq_len),
            inv_freq_f64: exact.iter().map(|inverse| inverse.value()).collect(),
            turns: exact.iter().map(|inverse| if inverse.value().is_finite() { inverse.turns() } else { 0 }).collect(),
            attention_factor: formulas::attention_factor(self),
        }
        .checked()
    }

    /// The pairs between which YaRN's ramp rises (`low`, `high`), for those who compare implementations. They mean
    /// nothing for types other than the two YaRNs.
    ///
    /// # Errors
    ///
    /// The errors of [`validate`](Self::validate).
    pub fn yarn_bounds(&self) -> Result<(f64, f64), RopeError> {
        self.validate()?;
        Ok(formulas::ramp_bounds(self))
    }
}

impl FrequencySource for Frequencies {
    fn frequencies(&self, _seq_len: u64) -> Result<Frequencies, RopeError> {
        self.clone().checked()
    }
}

impl<R: FrequencyRule + ?Sized> FrequencySource for R {
    fn frequencies(&self, _seq_len: u64) -> Result<Frequencies, RopeError> {
        let rotary_dim = self.rotary_dim();
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) || rotary_dim > validate::MOST_LANES {
            let expected = format!("lanes rotate in pairs; make it even, above 0, at most {}", validate::MOST_LANES);
            return Err(RopeError::invalid("rotary_dim", rotary_dim, &expected));
        }
        let exact = (0..rotary_dim / 2).map(|i| self.inv_freq(i, rotary_dim)).collect();
        Frequencies::from_inv_freq_f64(exact, self.attention_factor())
    }
}

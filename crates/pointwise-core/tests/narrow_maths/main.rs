//! The functions of [`pointwise_core::maths`] for types of 16 and of 8 bits over all their numbers, against f64.
//!
//! For f16 and bf16 a result of [`pointwise_core::maths::half`], rounded to that type, is within 1 ULP of the exact value,
//! and is the exact value rounded for at least 99.5 % of the inputs. For f8e4m3 and f8e5m2 every result of
//! [`pointwise_core::maths::rough`] is the exact value rounded.
//!
//! Both hold for the machine's own operations and for approximate ones that err by as much as the PTX ISA allows, all up
//! or all down. `--nocapture` shows the percentages.

mod functions;
mod pairs;
mod powers;
mod quotients;

use duplicate::duplicate_item;
use pointwise_core::maths::half::Approx;
use pointwise_core::maths::rough::Estimate;
use pointwise_core::{Coarse, DType, Element, F8E4M3, F8E5M2, Rough, bf16, f16};

/// Operations with the largest error of the PTX ISA, always to the same side; subnormals are flushed where they may be.
/// If `EXACT`, the reciprocals of powers of two are exact: 8-bit results need that.
struct Off<const UP: bool, const EXACT: bool = false>;

impl<const UP: bool, const EXACT: bool> Off<UP, EXACT> {
    /// `2^-22`, up or down.
    const ERROR: f64 = if UP { 1.0 / 4_194_304.0 } else { -1.0 / 4_194_304.0 };

    fn relative(exact: f64) -> f32 {
        (exact * (1.0 + Self::ERROR)) as f32
    }

    fn flush(x: f32) -> f32 {
        if x.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(x) } else { x }
    }
}

impl<const UP: bool, const EXACT: bool> Approx for Off<UP, EXACT> {
    fn ex2(x: f32) -> f32 {
        Self::relative(f64::from(x).exp2())
    }

    fn ex2_flush(x: f32) -> f32 {
        Self::flush(Self::ex2(x))
    }

    fn lg2(x: f32) -> f32 {
        let exact = f64::from(x).log2();
        if (0.5..2.0).contains(&x) { (exact + Self::ERROR) as f32 } else { Self::relative(exact) }
    }

    fn lg2_flush(x: f32) -> f32 {
        Self::lg2(Self::flush(x))
    }

    fn rcp(x: f32) -> f32 {
        let exact = 1.0 / f64::from(Self::flush(x));
        let is_power_of_two = x.to_bits() & 0x007F_FFFF == 0;
        Self::flush(if EXACT && is_power_of_two { exact as f32 } else { Self::relative(exact) })
    }

    fn recip(x: f32) -> f32 {
        (1.0 / f64::from(x) * (1.0 + Self::ERROR / 2.0)) as f32
    }

    fn rsq(x: f32) -> f32 {
        Self::relative(1.0 / f64::from(x).sqrt())
    }
}

impl<const UP: bool, const EXACT: bool> Estimate for Off<UP, EXACT> {
    fn quotient(a: f32, b: f32) -> f32 {
        Self::flush(Self::relative(f64::from(Self::flush(a)) / f64::from(Self::flush(b))))
    }
}

/// A narrow type by the bits of its numbers.
struct Type {
    dtype: DType,
    widen: fn(u16) -> f32,
    /// Rounds f32, and f64.
    round: fn(f32) -> u16,
    exact: fn(f64) -> u16,
    /// Bits of the significand.
    digits: i32,
    /// The exponent of the least normal number.
    least: i32,
    /// The number after the largest.
    overflow: f64,
    /// The least percentage of results that are the exact value rounded.
    correct: f64,
}

impl Type {
    /// Returns the bits of all numbers.
    fn codes(&self) -> std::ops::RangeInclusive<u16> {
        0..=u16::MAX >> (16 - 8 * self.dtype.size())
    }
}

const HALF: [Type; 2] = [F16, BF16];
const EIGHT_BITS: [Type; 2] = [E4M3, E5M2];

#[duplicate_item(
    TYPE    Storage   Bits   Compute   digits_  least_  overflow_                              correct_;
    [F16]   [f16]     [u16]  [Coarse]  [11]     [-14]   [65_536.0]                             [99.5];
    [BF16]  [bf16]    [u16]  [Coarse]  [8]      [-126]  [f64::from_bits(0x47f0_0000_0000_0000)]  [99.5];
    [E4M3]  [F8E4M3]  [u8]   [Rough]   [4]      [-6]    [480.0]                                [100.0];
    [E5M2]  [F8E5M2]  [u8]   [Rough]   [3]      [-14]   [65_536.0]                             [100.0];
)]
#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "16 bits need none")]
const TYPE: Type = Type {
    dtype: Storage::DTYPE,
    widen: |code| Storage::from_bits(code as Bits).widen().0,
    round: |x| Storage::narrow(Compute(x)).to_bits().into(),
    exact: |x| <Storage as Element>::from_f64(x).to_bits().into(),
    digits: digits_,
    least: least_,
    overflow: overflow_,
    correct: correct_,
};

/// The result of a comparison over many inputs.
#[derive(Default)]
struct Tally {
    inputs: u32,
    correct: u32,
    worst: f64,
    at: String,
}

impl Tally {
    fn add(&mut self, t: &Type, got: f32, exact: f64, at: impl FnOnce() -> String) {
        self.inputs += 1;
        let (bits, nearest) = ((t.round)(got), (t.exact)(exact));
        let (value, target) = (f64::from((t.widen)(bits)), f64::from((t.widen)(nearest)));
        if bits == nearest || (value.is_nan() && target.is_nan()) {
            self.correct += 1;
            return;
        }
        // An infinite result counts as the next number after the largest if the exact one is finite.
        let value = if value.is_infinite() { t.overflow.copysign(value) } else { value };
        let exponent = exact.abs().max(f64::MIN_POSITIVE).log2().floor().max(f64::from(t.least)) as i32;
        let ulp = 2_f64.powi(exponent - (t.digits - 1));
        // The sign of a zero counts, and every difference of an infinity or NaN.
        let wrong = value.is_nan() || !exact.is_finite() || (value == 0.0 && target == 0.0);
        let error = if wrong { f64::INFINITY } else { (value - exact).abs() / ulp };
        if error > self.worst {
            self.worst = error;
            self.at = at();
        }
    }

    fn check(&self, t: &Type, title: &str, failures: &mut Vec<String>) {
        let percent = 100.0 * f64::from(self.correct) / f64::from(self.inputs);
        let line = format!("{title:26} {percent:8.3} % correct, worst {:.3} ULP {}", self.worst, self.at);
        println!("{line}");
        if percent < t.correct || self.worst > 1.0 {
            failures.push(line);
        }
    }
}

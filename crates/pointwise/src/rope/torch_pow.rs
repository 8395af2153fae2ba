//! `base ** exponent` in f32, to the bit as PyTorch computes it on the CPU.
//!
//! HF builds its frequencies with `torch.pow` on the CPU. That is SLEEF's `powf` (its 1.0-ULP version) for whole vector
//! blocks, and the C library's for the rest of the tensor: blocks of 32 elements on an AVX-512 machine, 16 with AVX2.
//! About one SLEEF result in a hundred differs from the correctly rounded one, and at position 2^20 one ULP of a
//! frequency is 0.06 rad; so equality "to f32's last bits" needs the same arithmetic: a logarithm and an exponential on
//! unevaluated sums of two f32, with these polynomials. The blocks are AVX-512's here; an AVX2 machine's table differs
//! by one ULP in about one of a hundred elements of its tail. The C library's `powf` is taken as correctly rounded (it
//! is not in about one of ten thousand).
//!
//! Source of the algorithm and its coefficients: N. Shibata and F. Petrogalli, "SLEEF: A Portable Vectorized Library of
//! C Standard Mathematical Functions", 2020, and the library's published `logkf` and `expkf` coefficients. The two-f32
//! arithmetic is T. J. Dekker's (1971) with fused multiply-adds.

/// An unevaluated sum `hi + lo` of two f32.
#[derive(Clone, Copy)]
struct Pair {
    hi: f32,
    lo: f32,
}

impl Pair {
    /// `a + b`, exactly.
    fn sum(a: f32, b: f32) -> Self {
        let hi = a + b;
        let b_part = hi - a;
        Self { hi, lo: (a - (hi - b_part)) + (b - b_part) }
    }

    /// `self + b`, for any sizes.
    fn plus(self, b: f32) -> Self {
        let exact = Self::sum(self.hi, b);
        Self { hi: exact.hi, lo: exact.lo + self.lo }
    }

    /// `self + b`, for any sizes.
    fn plus_pair(self, b: Self) -> Self {
        let exact = Self::sum(self.hi, b.hi);
        Self { hi: exact.hi, lo: exact.lo + (self.lo + b.lo) }
    }

    /// `self + b` where `|self| >= |b|`.
    fn plus_smaller(self, b: Self) -> Self {
        let hi = self.hi + b.hi;
        Self { hi, lo: self.hi - hi + b.hi + self.lo + b.lo }
    }

    fn times(self, b: f32) -> Self {
        let hi = self.hi * b;
        Self { hi, lo: self.lo.mul_add(b, self.hi.mul_add(b, -hi)) }
    }

    fn times_pair(self, b: Self) -> Self {
        let hi = self.hi * b.hi;
        let low = self.lo.mul_add(b.hi, self.hi.mul_add(b.hi, -hi));
        Self { hi, lo: self.hi.mul_add(b.lo, low) }
    }

    fn square(self) -> Self {
        let hi = self.hi * self.hi;
        let low = self.hi.mul_add(self.hi, -hi);
        Self { hi, lo: (self.hi + self.hi).mul_add(self.lo, low) }
    }

    fn over(self, b: Self) -> Self {
        let reciprocal = 1.0 / b.hi;
        let hi = self.hi * reciprocal;
        let low = reciprocal.mul_add(self.hi, -hi);
        let rest = (-b.lo).mul_add(reciprocal, (-b.hi).mul_add(reciprocal, 1.0));
        Self { hi, lo: hi.mul_add(rest, self.lo.mul_add(reciprocal, low)) }
    }

    /// The same value with `lo` below half a unit of `hi`.
    fn normalized(self) -> Self {
        let hi = self.hi + self.lo;
        Self { hi, lo: self.hi - hi + self.lo }
    }
}

/// `2^exponent` for an exponent of a normal f32.
fn exp2i(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// Natural logarithm of a positive normal number.
fn ln(x: f32) -> Pair {
    // The mantissa goes into [0.75, 1.5), so that its logarithm is small on both sides of one.
    let exponent = ((x * (1.0f32 / 0.75)).to_bits() >> 23) as i32 - 127;
    let mantissa = x * exp2i(-exponent);
    let t = Pair::sum(-1.0, mantissa).over(Pair::sum(1.0, mantissa));
    let square = t.square();
    let tail = 0.240_320_35_f32.mul_add(square.hi, 0.285_112_68).mul_add(square.hi, 0.400_008);
    let third = Pair { hi: 0.666_666_6_f32, lo: 3.691_838_6e-9 };
    let ln2 = Pair { hi: std::f32::consts::LN_2, lo: -1.904_654_3e-9 };
    let series = square.times_pair(t).times_pair(square.times(tail).plus_pair(third));
    ln2.times(exponent as f32).plus_smaller(Pair { hi: t.hi * 2.0, lo: t.lo * 2.0 }).plus_smaller(series)
}

/// Exponential, rounded to f32.
fn exp(x: Pair) -> f32 {
    let turns = ((x.hi + x.lo) * std::f32::consts::LOG2_E).round_ties_even();
    let rest = x.plus(turns * -0.693_145_75).plus(turns * -1.428_606_8e-6).normalized();
    let series = 0.001_363_246_5_f32
        .mul_add(rest.hi, 0.008_365_969)
        .mul_add(rest.hi, 0.041_671_082)
        .mul_add(rest.hi, 0.166_665_52)
        .mul_add(rest.hi, 0.499_999_85);
    let sum = Pair { hi: 1.0, lo: 0.0 }.plus_smaller(rest.plus_smaller(rest.square().times(series)));
    (sum.hi + sum.lo) * exp2i(turns as i32)
}

/// Elements that PyTorch's vector loop takes at a time on an AVX-512 machine.
const BLOCK: usize = 32;

/// Element `index` of `base ** exponents`, a tensor of `len` elements, as PyTorch rounds it on the CPU.
///
/// Outside the range that RoPE uses (a positive normal base, a result well inside f32's range), it is the correctly
/// rounded power.
pub(super) fn pow(base: f32, exponent: f32, index: usize, len: usize) -> f32 {
    let exact = f64::from(base).powf(f64::from(exponent));
    let in_block = index < len - len % BLOCK;
    if in_block && (f32::MIN_POSITIVE..1e38).contains(&base) && (1e-37..1e37).contains(&exact) {
        exp(ln(base).times(exponent))
    } else {
        exact as f32
    }
}

#[cfg(test)]
mod tests {
    use super::pow;

    #[test]
    fn is_within_one_ulp_of_the_exact_power() {
        for base in [500.0f32, 1e4, 1.5e5, 5e5, 1e6, 1e7, 30527.737] {
            for step in 0..512u16 {
                let exponent = f32::from(step) / 512.0;
                let exact = f64::from(base).powf(f64::from(exponent)) as f32;
                assert!(pow(base, exponent, 0, 32).to_bits().abs_diff(exact.to_bits()) <= 1, "{base} ** {exponent}");
            }
        }
    }
}

//! `erf`, `erfc`, the normal distribution function and `gelu`.

use super::exp::{LN_2_HI, LN_2_LO, LOG2_E, Scaled, add_exponent, exp_poly, exp2_m1_poly, exp2_poly};
use super::prim::{ROUND_MAGIC, at_least, at_most, fma, if_above, recip_normal};

/// The error function, at most 1 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    // |x| < 1: x + x P(x^2), P of degree 6, minimax relative error 2^-29.4.
    let z = x * x;
    let p = fma(z, 7.806_904e-5, -0.000_799_785_3);
    let p = fma(z, p, 0.005_187_162);
    let p = fma(z, p, -0.026_853_347);
    let p = fma(z, p, 0.112_835_79);
    let p = fma(z, p, -0.376_126_26);
    let p = fma(z, p, 0.128_379_17);
    let near = fma(x, p, x);
    // 1 <= |x| < 3.95: 1 - 2^(|x| R(|x|)), R of degree 5 for log2(erfc a) / a, minimax error of the result 2^-28.6. The
    // last product enters the fraction of the exponent without a rounding.
    let b = a.min(3.95);
    let r = fma(b, 0.000_303_238_4, -0.004_592_339_5);
    let r = fma(b, r, 0.032_873_57);
    let r = fma(b, r, -0.151_622_7);
    let r = fma(b, r, -0.917_332_3);
    let r = fma(b, r, -1.628_046_2);
    let t = fma(b, r, ROUND_MAGIC);
    let e = add_exponent(exp2_poly(fma(b, r, ROUND_MAGIC - t)), t);
    let far = (1.0 - e).copysign(x);
    // A NaN fails the comparison: the near form keeps it.
    if_above(a, 1.0, far, near)
}

/// `e^(-a^2 / d + more)` scaled by `2^100`, for `d` 1 or 2 given as `scale = -1 / d`, `a^2 / d <= 120` and a tiny
/// `more`: returns the exponential, and the known tiny part of its relative error.
///
/// The rounding of `a^2` would cause a relative error `a^2` times as large. It is measured and put back.
#[inline(always)]
fn exp_neg_square(a: f32, scale: f32, more: f32) -> (Scaled, f32) {
    let h = a * a;
    let low = fma(a, a, -h);
    let y = h * scale;
    let t = fma(y, LOG2_E, ROUND_MAGIC + 100.0);
    let n = t - (ROUND_MAGIC + 100.0);
    let e = add_exponent(exp_poly(fma(n, -LN_2_HI, y)), t);
    (Scaled(e), fma(n, -LN_2_LO, fma(low, scale, more)))
}

/// A product and the tiny part of it that its rounding lost.
#[derive(Clone, Copy)]
struct Product(f32, f32);

impl Product {
    #[inline(always)]
    fn of(a: f32, b: f32) -> Self {
        let y = a * b;
        Self(y, fma(a, b, -y))
    }

    /// The product with `e (1 + low)`, rounded.
    #[inline(always)]
    fn times_exp(self, (e, low): (Scaled, f32)) -> Scaled {
        Scaled(fma(self.0, e.0, fma(self.0, low, self.1) * e.0))
    }
}

/// `t = 1 / (1 + c a)`, about, and its relative error.
///
/// The tails below are functions of `t` that multiply its error by up to 2.7, so that it has to be put back.
#[inline(always)]
fn tail_variable(a: f32, c: f32) -> (f32, f32) {
    let d = fma(a, c, 1.0);
    let d_low = fma(a, c, 1.0 - d);
    let t = recip_normal(d);
    (t, fma(-d_low, t, fma(-d, t, 1.0)))
}

/// The complementary error function `1 - erf(x)`, at most 3 ulp.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    // erfc a = e^(-a^2) t P(t - T), t = 1 / (1 + 27/64 a), 0 <= a <= 10.2; P of degree 9, minimax relative error
    // 2^-28.3. About the middle of the range, as the sums of a polynomial in t itself round too often near t = 1.
    const T: f32 = 0.552_734_4;
    let a = x.abs().min(10.2);
    let (t, error) = tail_variable(a, 0.421_875);
    let v = t - T;
    let p = fma(v, -0.041_457_918, 0.023_335_638);
    let p = fma(v, p, 0.082_666_09);
    let p = fma(v, p, -0.050_524_12);
    let p = fma(v, p, -0.172_845_94);
    let p = fma(v, p, 0.026_116_323);
    let p = fma(v, p, 0.464_444_37);
    let p = fma(v, p, 0.768_756_33);
    let p = fma(v, p, 0.734_228_7);
    let p = fma(v, p, 0.478_411_47);
    // t P(t) magnifies the error of t: by 1 in the tail, by 2.675 at 0.
    let e = exp_neg_square(a, -1.0, fma(t, 1.675, 1.0) * error);
    let tail = Product::of(p, t).times_exp(e).plain();
    let y = if x < 0.0 { 2.0 - tail } else { tail };
    if x.is_nan() { x } else { y }
}

/// `(t, e, P)`: the normal distribution function of `-a` is `e^(-a^2 / 2) t P`, for `0 <= a <= 14.8`; `e` is the
/// relative error of `t`. The error of `t P` is `1 + 1.687 t` times as large.
#[inline(always)]
fn normal_factor(a: f32) -> (f32, f32, f32) {
    // P(t - T), t = 1 / (1 + 19/64 a); P of degree 9, minimax relative error 2^-27.7. It is taken about T, as in
    // `erfc`.
    const T: f32 = 0.445_800_78;
    let (t, error) = tail_variable(a, 0.296_875);
    let v = t - T;
    let p = fma(v, -0.020_021_861, 0.032_342_4);
    let p = fma(v, p, 0.020_838_208);
    let p = fma(v, p, -0.051_955_547);
    let p = fma(v, p, -0.059_427_623);
    let p = fma(v, p, 0.057_632_122);
    let p = fma(v, p, 0.220_874_82);
    let p = fma(v, p, 0.312_648_92);
    let p = fma(v, p, 0.292_060_2);
    let p = fma(v, p, 0.203_170_17);
    (t, error, p)
}

/// The normal distribution function of `-a`, for `0 <= a <= 14.8`, as the factors of [`Product::times_exp`].
#[inline(always)]
fn normal_tail(a: f32) -> (Product, (Scaled, f32)) {
    let (t, error, p) = normal_factor(a);
    (Product::of(p, t), exp_neg_square(a, -0.5, fma(t, 1.687, 1.0) * error))
}

/// The normal distribution function `erfc(-x / sqrt 2) / 2`, at most 3 ulp.
#[inline(always)]
pub fn normal_cdf(x: f32) -> f32 {
    let (factor, e) = normal_tail(at_most(x.abs(), 14.8));
    let tail = factor.times_exp(e).plain();
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The density of the normal distribution, `e^(-x^2 / 2) / sqrt(2 pi)`, at most 3 ulp. Beside [`normal_cdf`] of the
/// same argument it costs little: compilers compute the exponential once.
#[inline(always)]
pub fn normal_density(x: f32) -> f32 {
    // A NaN is in `low`, if nowhere else.
    let (e, low) = exp_neg_square(at_most(x.abs(), 14.8), -0.5, 0.0);
    fma(e.0, low, e.0) * (0.398_942_3 * Scaled::DOWN)
}

/// `x` times the normal distribution function, at most 3 ulp, with the relative accuracy kept in the negative tail;
/// `-Inf` gives NaN.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    // max(x, 0) - a cdf(-a), a = |x|, and cdf(-a) = 2^(-C a^2) P(t - T), t = 1 / (1 + 9/32 a), C the f32 next to
    // log2(e) / 2; P of degree 10, minimax relative error 2^-28.1 for a <= 14.8, beyond which nothing is left.
    const C: f32 = 0.5 * LOG2_E;
    const T: f32 = 0.405_212_4;
    // Not bounded from below: the error of -Inf is 0 * Inf.
    let a = at_most(x, 14.8).abs();
    let d = fma(a, 0.281_25, 1.0);
    let d_low = fma(a, 0.281_25, 1.0 - d);
    let t = recip_normal(d);
    let error = fma(-d_low, t, fma(-d, t, 1.0));
    let v = t - T;
    let p = fma(v, -0.018_385_23, 0.047_153_194);
    let p = fma(v, p, -0.005_011_662_4);
    let p = fma(v, p, -0.068_301_98);
    let p = fma(v, p, -0.038_678_25);
    let p = fma(v, p, 0.106_566_645);
    let p = fma(v, p, 0.284_139_1);
    let p = fma(v, p, 0.387_537_33);
    let p = fma(v, p, 0.377_026_7);
    let p = fma(v, p, 0.287_385_94);
    let p = fma(v, p, 0.073_897_526);
    // The rounding error of a^2, and the error of t as P magnifies it, enter the exponent.
    let b = a.min(14.8);
    let h = b * b;
    let low = fma(b, b, -h);
    let n_magic = fma(h, -C, ROUND_MAGIC + 100.0);
    let n = n_magic - (ROUND_MAGIC + 100.0);
    let f = fma(low, -C, fma(h, -C, -n));
    let f = fma(fma(t, 1.836_976_8 * LOG2_E, LOG2_E), error, f);
    // a P 2^n (1 + (2^f - 1)): the power of two enters where no number is small, and the rounding error of the product
    // is put back. The magnitude, as P may fall below 0 if a is far beyond its range.
    let power = add_exponent(p, n_magic).abs();
    let q = power * b;
    let lost = fma(power, b, -q);
    let tail = q + fma(q, exp2_m1_poly(f), lost);
    fma(tail, -Scaled::DOWN, at_least(x, -0.0))
}

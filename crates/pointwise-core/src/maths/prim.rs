//! The operations with a different name or a different price on the GPU and on the CPU.
//!
//! Most target-specific code of the crate is here: PTX instructions by inline assembly and `core::f32::math` on
//! `nvptx64`, the methods of `std` elsewhere. Functions on top of it are written once and give the same bits on both.
//! Only results of an estimate (`_estimate`, [`fast_div_wide`]) may differ in the last bit.

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[cfg(target_arch = "nvptx64")]
use core::f32::math;

use duplicate::duplicate_item;

/// The bits of the NaN that PTX instructions return, used on the CPU too so that results compare as bits.
#[cfg(not(target_arch = "nvptx64"))]
const CANONICAL_NAN: u32 = 0x7fff_ffff;

/// `1.5 * 2^23`: adding it to a number of magnitude below `2^22` rounds that to an integer, ties to even, and leaves
/// the integer in the low bits of the sum. That is one full-rate instruction; a rounding instruction is quarter rate.
pub const ROUND_MAGIC: f32 = 12_582_912.0;

/// True on the GPU, where a branch pays that few threads take.
pub const ON_GPU: bool = cfg!(target_arch = "nvptx64");

/// One instruction, or a few in braces, from registers to one register. All have 32 bits unless the call says
/// otherwise: `ptx!("neg.f32 {}, {};", x)`, `ptx!("cvt.f32.f16 {}, {};" => reg32, bits => reg16)`.
#[cfg(target_arch = "nvptx64")]
macro_rules! ptx {
    ($text:literal, $($x:expr),+) => { ptx!($text => reg32, $($x => reg32),+) };
    ($text:literal => $out:ident, $($x:expr => $in:ident),+) => {{
        let y;
        // SAFETY: from registers to a register: no memory, no stack, no side effect.
        unsafe {
            core::arch::asm!($text, out($out) y, $(in($in) $x),+, options(pure, nomem, nostack));
        }
        y
    }};
}
#[cfg(target_arch = "nvptx64")]
pub(crate) use ptx;

/// `a * b` in 64 bits: the lower word, then the upper.
#[inline(always)]
pub fn wide_product(a: u32, b: u32) -> [u32; 2] {
    #[cfg(target_arch = "nvptx64")]
    {
        let (low, high);
        // SAFETY: arithmetic on registers. LLVM makes a product of two 64-bit numbers of a widened one.
        unsafe {
            core::arch::asm!("{{ .reg .b64 p; mul.wide.u32 p, {a}, {b}; mov.b64 {{{l}, {h}}}, p; }}", a = in(reg32) a,
                b = in(reg32) b, l = out(reg32) low, h = out(reg32) high, options(pure, nomem, nostack));
        }
        [low, high]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let product = a as u64 * b as u64;
        [product as u32, (product >> 32) as u32]
    }
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        a.mul_add(b, c)
    }
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma64(a: f64, b: f64, c: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f64::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        a.mul_add(b, c)
    }
}

/// The upper half of the product.
///
/// GPU: one instruction. LLVM would make several of a product of 64 bits.
#[inline(always)]
pub fn upper_half(a: u32, b: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("mul.hi.u32 {}, {}, {};", a, b)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }
}

/// The largest integer not above `a b`, added to [`ROUND_MAGIC`]: it is in the low bits of the sum.
///
/// GPU: one instruction. CPU: the floor of the rounded product, which may be the next integer.
#[inline(always)]
pub fn floor_magic(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("fma.rm.f32 {}, {}, {}, {};", a, b, ROUND_MAGIC)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        (a * b).floor() + ROUND_MAGIC
    }
}

/// `t + a b` rounded down, for `t` an integer added to [`ROUND_MAGIC`] and `|a b| < 1`: `t`, or `t - 1` below it.
///
/// GPU: one instruction.
#[inline(always)]
pub fn step_down(a: f32, b: f32, t: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("fma.rm.f32 {}, {}, {}, {};", a, b, t)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        // By the signs, as the product may underflow.
        let below = (a != 0.0) & ((a < 0.0) != (b < 0.0));
        if below { t - 1.0 } else { t }
    }
}

/// The square root, correctly rounded.
///
/// GPU: has no branch as `sqrt.rn` has, which would make the elements of a thread wait for one another.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        // Powers of 4, and large enough for the residual below to be exact.
        let small = x < f32::from_bits((127 - 96) << 23);
        let c = if small { x * f32::from_bits((127 + 64) << 23) } else { x };
        let y: f32 = ptx!("rsqrt.approx.ftz.f32 {}, {};", c);
        // One Newton step on the exact residual of the approximate root.
        let s = c * y;
        let s = fma(0.5 * y, fma(-s, s, c), s);
        let s = if small { s * f32::from_bits((127 - 32) << 23) } else { s };
        // Zeros and infinity are their own roots.
        if (x == 0.0) | (x == f32::INFINITY) { x } else { s }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        x.sqrt()
    }
}

#[duplicate_item(
    name               text;
    [floor]            ["The largest integer not above `x`."];
    [ceil]             ["The smallest integer not below `x`."];
    [trunc]            ["`x` without its fraction."];
    [round_ties_even]  ["The nearest integer, ties to even."];
)]
#[doc = text]
#[inline(always)]
pub fn name(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        math::name(x)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        x.name()
    }
}

/// Rounds `x` at `decimals` (a whole number) digits behind the point, or before it if negative, as `torch.round` does:
/// `rint(x 10^d) / 10^d` or `rint(x / 10^-d) 10^-d`.
#[inline(always)]
pub fn round_decimals(x: f32, decimals: f32) -> f32 {
    // The default. It is the same for all elements of a call: on the CPU the compiler gives it a loop of its own.
    if !ON_GPU && decimals == 0.0 {
        return round_ties_even(x);
    }
    let scale = power_of_ten(decimals.abs() as u32);
    let before = decimals < 0.0;
    let (into, from) = if before { (1.0, scale) } else { (scale, 1.0) };
    let whole = round_ties_even(div_uniform(x * into, from));
    // The sign of a zero, which `div_uniform` may lose.
    div_uniform(whole * from, into).copysign(x)
}

/// `10^n`, correctly rounded (which `pow` does not promise); infinite from `10^39` on.
#[inline(always)]
fn power_of_ten(n: u32) -> f32 {
    // By the bits of n. Up to 15 this is one product of two exact numbers.
    let factor = |bit: u32, power: f32| if n & bit != 0 { power } else { 1.0 };
    let (a, b) = ((factor(1, 10.0) * factor(2, 100.0)) * factor(4, 1e4), factor(8, 1e8));
    let small = a * b;
    let beyond = || {
        // Sums of two f32, to 48 bits. Up to 38 n has one of the two bits.
        let small_low = fma(a, b, -small);
        let (large, large_low) = if n & 32 == 0 { (1e16, -272_564_220.0) } else { (1e32, -3.318_135_3e24) };
        let product = small * large;
        let low = fma(small, large_low, fma(small_low, large, fma(small, large, -product)));
        if n > 38 { f32::INFINITY } else { product + low }
    };
    rarely(n > 15, beyond, small)
}

/// `a / b` for a `b` that is the same for all elements of a call, at least 1 or infinite; correctly rounded, but for
/// the sign of a zero and for subnormal quotients.
///
/// The correction of Markstein (1990): from the correctly rounded `1 / b`, which is computed once, it makes the
/// correctly rounded quotient.
#[inline(always)]
fn div_uniform(a: f32, b: f32) -> f32 {
    let y = 1.0 / b;
    let q = a * y;
    let corrected = fma(fma(-q, b, a), y, q);
    // Infinity and NaN have no remainder.
    if q.abs() < f32::INFINITY { corrected } else { q }
}

/// The larger of two numbers as `torch.maximum`: NaN if either is NaN, and `+0` above `-0`.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("max.NaN.f32 {}, {}, {};", a, b)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    if a.is_nan() | b.is_nan() { f32::from_bits(CANONICAL_NAN) } else { larger(a, b) }
}

/// The smaller of two numbers as `torch.minimum`: NaN if either is NaN, and `-0` below `+0`.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("min.NaN.f32 {}, {}, {};", a, b)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    if a.is_nan() | b.is_nan() { f32::from_bits(CANONICAL_NAN) } else { smaller(a, b) }
}

/// `minimum(maximum(x, low), high)`.
#[inline(always)]
pub fn clamp(x: f32, low: f32, high: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        minimum(maximum(x, low), high)
    }
    // NaN is looked for once.
    #[cfg(not(target_arch = "nvptx64"))]
    if x.is_nan() | low.is_nan() | high.is_nan() {
        f32::from_bits(CANONICAL_NAN)
    } else {
        smaller(larger(x, low), high)
    }
}

/// The larger of two numbers, `+0` above `-0`; of NaN any bits.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    // The same bits twice, but of two zeros one each: AND keeps the sign only if both have it.
    let (one, other) = (if a > b { a } else { b }, if b > a { b } else { a });
    f32::from_bits(one.to_bits() & other.to_bits())
}

/// The smaller of two numbers, `-0` below `+0`; of NaN any bits.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    let (one, other) = (if a < b { a } else { b }, if b < a { b } else { a });
    f32::from_bits(one.to_bits() | other.to_bits())
}

/// `x`, but not below the non-zero bound `low`; NaN stays NaN. One instruction on the GPU and on x86.
#[inline(always)]
pub fn at_least(x: f32, low: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("max.NaN.f32 {}, {}, {};", x, low)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        if low > x { low } else { x }
    }
}

/// `x`, but not above the non-zero bound `high`; NaN stays NaN. One instruction on the GPU and on x86.
#[inline(always)]
pub fn at_most(x: f32, high: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("min.NaN.f32 {}, {}, {};", x, high)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        if high < x { high } else { x }
    }
}

/// Returns `yes` if `a > b`, else `no`, also for NaN in either. Both are computed: the optimiser takes a GPU's branch
/// for cheap, and would make one of an `if` with a long arm.
#[inline(always)]
pub fn if_above(a: f32, b: f32, yes: f32, no: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let y: f32;
        // SAFETY: two instructions from registers to a register.
        unsafe {
            core::arch::asm!(
                "{{ .reg .pred p; setp.gt.f32 p, {a}, {b}; selp.f32 {y}, {yes}, {no}, p; }}",
                y = out(reg32) y, a = in(reg32) a, b = in(reg32) b, yes = in(reg32) yes, no = in(reg32) no,
                options(pure, nomem, nostack),
            );
        }
        y
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        if a > b { yes } else { no }
    }
}

/// About `1 / b`, within one ulp where `b` and the result are normal.
///
/// GPU: `rcp.approx.ftz`. CPU: a division. Subnormal results are zero on both.
#[inline(always)]
pub fn recip_estimate(b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("rcp.approx.ftz.f32 {}, {};", b)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let y = 1.0 / b;
        if y.abs() < f32::MIN_POSITIVE { 0.0 } else { y }
    }
}

/// [`recip_estimate`] for results that are normal or do not count: the CPU does not check them.
#[inline(always)]
pub fn recip_normal(b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        recip_estimate(b)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        1.0 / b
    }
}

/// Returns the logarithm of special numbers: -Inf for zeros, NaN for negative numbers, infinity and NaN for themselves.
/// The result for other numbers has no meaning.
#[inline(always)]
pub fn log2_special(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        // Scaled, as a negative subnormal would count as zero.
        ptx!("lg2.approx.ftz.f32 {}, {};", x * f32::from_bits((127 + 64) << 23))
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        // Infinity and NaN stay, a negative number becomes Inf - Inf.
        if x == 0.0 { f32::NEG_INFINITY } else { fma(x, f32::INFINITY, f32::INFINITY) }
    }
}

/// About `1 / sqrt(x)`, relative error below `2^-22`; subnormals, zeros, infinities and negative numbers as IEEE
/// `1 / sqrt(x)`.
#[inline(always)]
pub fn rsqrt_estimate(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        ptx!("rsqrt.approx.f32 {}, {};", x)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        1.0 / sqrt(x)
    }
}

/// The reciprocal of a finite normal `b` of magnitude in `2^-120 ..= 2^120`, to half an ulp and little more.
///
/// GPU: `rcp.approx.ftz` and one Newton step. CPU: a division.
#[inline(always)]
pub fn fast_recip(b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let r = recip_estimate(b);
        fma(r, fma(-b, r, 1.0), r)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        1.0 / b
    }
}

/// `a / (b + b_low)` for finite `a`, a finite normal `b` of magnitude in `2^-120 ..= 2^120` and a `b_low` of at most an
/// ulp of `b`, within one ulp. NaN in an operand gives NaN. An infinite one gives NaN on the GPU: callers keep all
/// finite.
///
/// The correction enters through the remainder, so that the rounding made in forming `b` costs no accuracy.
#[inline(always)]
pub fn fast_div_wide(a: f32, b: f32, b_low: f32) -> f32 {
    let r = recip_normal(b);
    let q = a * r;
    fma(fma(-b_low, q, fma(-b, q, a)), r, q)
}

/// Returns `slow()` if `condition` holds, else `fast`.
///
/// For a path that few inputs take. GPU: a branch, so that the slow path costs nothing until a thread takes it. CPU:
/// both are computed and one is selected, so that the loop around still becomes vector code.
#[inline(always)]
pub fn rarely<T: Copy>(condition: bool, slow: impl FnOnce() -> T, fast: T) -> T {
    #[cfg(target_arch = "nvptx64")]
    {
        if condition { slow() } else { fast }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let slow = slow();
        if condition { slow } else { fast }
    }
}

/// Returns `fast` if `condition` holds, as it does for most inputs, else `slow()`. It is [`rarely`] the other way
/// round: a compiler that has been told the condition recognises it (see
/// [`assume_small_angle`](super::assume_small_angle)).
#[inline(always)]
pub fn mostly<T: Copy>(condition: bool, fast: T, slow: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "nvptx64")]
    {
        if condition { fast } else { slow() }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let slow = slow();
        if condition { fast } else { slow }
    }
}

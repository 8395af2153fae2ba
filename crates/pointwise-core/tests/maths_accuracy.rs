//! The largest error of every function of [`pointwise_core::maths`], in ulp against f64.
//!
//! By default each function sees `2^24` bit patterns evenly spread over all of f32 and the neighbourhoods of its hard
//! points. `POINTWISE_EXHAUSTIVE=1` runs all `2^32` patterns instead (about three minutes per function). The test of a
//! function has its name. `--nocapture` shows the errors.

use duplicate::duplicate_item;
use pointwise_core::{Real, maths};

/// The number of inputs that go through a function at a time.
const BLOCK: usize = 4096;

/// A function under test.
struct Function {
    name: &'static str,
    bound: f64,
    run: fn(&[f32], &mut [f32]),
    exact: fn(f64) -> f64,
}

fn in_half_turns(x: f32) -> f32 {
    if x.abs() <= 1.0 { x } else { 0.0 }
}

#[duplicate_item(
    function          ulp    value                       reference;
    [exp]             [1.0]  [maths::exp(x)]             [x.exp()];
    [exp2]            [1.0]  [maths::exp2(x)]            [x.exp2()];
    [expm1]           [1.0]  [maths::expm1(x)]           [x.exp_m1()];
    [expm1_negative]  [1.0]  [maths::single::expm1_negative(x.min(0.0))]  [x.min(0.0).exp_m1()];
    [exp_negative]    [1.0]  [maths::single::exp_negative(x.min(0.0))]  [x.min(0.0).exp()];
    [exp_negative_16] [22.0] [maths::single::exp_negative_16(x.min(0.0))]  [x.min(0.0).exp()];
    [exp_negative_16_above_2_to_minus_24] [6.0]
        [maths::single::exp_negative_16(x.clamp(-16.6, 0.0))]  [x.clamp(f64::from(-16.6_f32), 0.0).exp()];
    [ln]              [1.0]  [maths::ln(x)]              [x.ln()];
    [log2]            [1.0]  [maths::log2(x)]            [x.log2()];
    [log1p]           [1.0]  [maths::log1p(x)]           [x.ln_1p()];
    [sin]             [1.5]  [maths::sin(x)]             [x.sin()];
    [sin_tight]       [0.8]  [if x == 0.0 { x } else { maths::sincos_tight(x).0 }]  [x.sin()];
    [cos_tight]       [0.8]  [maths::sincos_tight(x).1]  [x.cos()];
    [cos]             [1.5]  [maths::cos(x)]             [x.cos()];
    [sinpi]           [2.0]  [maths::sincospi(in_half_turns(x)).0]  [sinpi_exact(if x.abs() <= 1.0 { x } else { 0.0 })];
    [cospi]           [2.0]  [maths::sincospi(in_half_turns(x)).1]
        [sinpi_exact(0.5 - if x.abs() <= 1.0 { x.abs() } else { 0.0 })];
    [tanh]            [2.0]  [maths::tanh(x)]            [x.tanh()];
    [sigmoid]         [2.0]  [maths::sigmoid(x)]         [x.sigmoid()];
    [erf]             [1.0]  [maths::erf(x)]             [Real::erf(x)];
    [erfc]            [3.0]  [maths::erfc(x)]            [libm::erfc(x)];
    [normal_cdf]      [3.0]  [maths::normal_cdf(x)]      [x.normal_cdf()];
    [normal_density]  [3.0]  [maths::normal_density(x)]  [x.normal_density()];
    [gelu]            [3.0]  [maths::gelu(x)]            [Real::gelu(x)];
    [gelu_tanh]       [3.0]  [maths::gelu_tanh(x)]       [x.gelu_tanh()];
    [softplus]        [3.0]  [maths::softplus(x)]        [x.softplus()];
    [silu]            [3.0]  [maths::silu(x)]            [Real::silu(x)];
    [mish]            [3.0]  [maths::mish(x)]            [x.mish()];
    [rsqrt]           [1.0]  [maths::rsqrt(x)]           [1.0 / x.sqrt()];
    [pow_self]        [1.0]  [maths::pow(x, 2.7)]        [x.powf(f64::from(2.7_f32))];
    [pow_large]       [1.0]  [maths::pow(x, -37.25)]     [x.powf(-37.25)];
    [pow_base]        [1.0]  [maths::pow(1.000_37, x)]   [f64::from(1.000_37_f32).powf(x)];
    [pow_ten]         [1.0]  [maths::pow(10.0, x)]       [10_f64.powf(x)];
)]
#[test]
fn function() {
    // Not a closure: `#[inline(always)]` brings the body into the loop that is compiled with FMA.
    #[inline(always)]
    fn body(x: &[f32], y: &mut [f32]) {
        for (&x, y) in x.iter().zip(y) {
            *y = value;
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn body_fma(x: &[f32], y: &mut [f32]) {
        body(x, y);
    }

    fn run(x: &[f32], y: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has both features.
            return unsafe { body_fma(x, y) };
        }
        body(x, y);
    }

    check(&Function { name: stringify!(function), bound: ulp, run, exact: |x| reference });
}

/// `sin(pi x)` for `|x| <= 1.5`, else of 0, exact at multiples of a half.
fn sinpi_exact(x: f64) -> f64 {
    let x = if x.abs() <= 1.5 { x } else { 0.0 };
    let n = (2.0 * x).round();
    let r = (x - 0.5 * n) * std::f64::consts::PI;
    match n.rem_euclid(4.0) as u32 {
        0 => r.sin(),
        1 => r.cos(),
        2 => -r.sin(),
        _ => -r.cos(),
    }
}

/// Returns `|got - exact|` in units of the last place of f32 at `exact`: infinity if only one is NaN or infinite.
/// Numbers overflow as in rounding to nearest.
fn ulp_error(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if nearest.is_nan() || got.is_nan() {
        return if nearest.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if nearest.to_bits() == got.to_bits() && !nearest.is_finite() {
        return 0.0;
    }
    if nearest == 0.0 && got == 0.0 && exact == 0.0 && nearest.to_bits() != got.to_bits() {
        return f64::INFINITY;
    }
    let exponent = ((nearest.to_bits() >> 23 & 0xff) as i32).clamp(1, 254) - 150;
    let ulp = f64::from_bits(((exponent + 1023) as u64) << 52);
    // Infinity counts as the next number after the largest.
    let value = |x: f32| if x.is_infinite() { 2_f64.powi(128).copysign(f64::from(x)) } else { f64::from(x) };
    let exact = if exact.abs() < 2_f64.powi(128) { exact } else { 2_f64.powi(128).copysign(exact) };
    (value(got) - exact).abs() / ulp
}

/// The places where functions change their form, their range ends or their results become subnormal.
const HARD: &[f32] = &[
    0.0,
    1.0,
    2.0,
    0.5,
    0.25,
    0.75,
    1.0e-3,
    0.347,
    0.3466,
    0.47,
    1.0397,
    0.549,
    0.875,
    0.9219,
    3.92,
    3.95,
    5.0,
    5.5,
    8.0,
    9.01,
    10.05,
    17.003,
    17.2,
    17.7,
    18.384,
    19.1,
    10.2,
    11.2,
    13.2,
    14.2,
    14.8,
    16.6,
    17.3,
    20.0,
    87.33,
    88.02,
    88.72,
    89.0,
    103.97,
    104.0,
    110.0,
    120.0,
    126.0,
    127.0,
    128.0,
    129.0,
    149.0,
    150.0,
    151.0,
    std::f32::consts::FRAC_PI_4,
    1.5707964,
    2.3561945,
    std::f32::consts::PI,
    4.712389,
    6.2831855,
    355.0,
    710.0,
    5.0e4,
    1.0e5,
    0.70710677,
    std::f32::consts::SQRT_2,
    0.29289323,
    0.41421357,
    1.1754944e-38,
    3.4028235e38,
    1.7014118e38,
    2.3e38,
    1.0e30,
    1.0e-30,
];

/// Updates the largest error and its place with a block.
fn worst_of(function: &Function, x: &[f32], y: &mut [f32], worst: &mut (f64, f32)) {
    (function.run)(x, y);
    for (&x, &y) in x.iter().zip(&*y) {
        let error = ulp_error(y, (function.exact)(f64::from(x)));
        if error > worst.0 {
            *worst = (error, x);
        }
    }
}

/// Checks that the largest error stays below its bound.
fn check(function: &Function) {
    let exhaustive = std::env::var_os("POINTWISE_EXHAUSTIVE").is_some();
    // 255 and 2^24 share no factor: the low bits of the inputs go through all values too.
    let (step, blocks) = if exhaustive { (1_u32, 1 << 20) } else { (255, 1 << 12) };
    let (mut x, mut y) = (vec![0.0; BLOCK], vec![0.0; BLOCK]);
    let mut worst = (0.0, 0.0);
    for block in 0..blocks {
        for (i, x) in x.iter_mut().enumerate() {
            let index = block * BLOCK as u32 + i as u32;
            let spread = || index.wrapping_mul(step + 1).wrapping_add(index >> 3 & 0xff);
            *x = f32::from_bits(if exhaustive { index } else { spread() });
        }
        worst_of(function, &x, &mut y, &mut worst);
        if !exhaustive && (block as usize) < HARD.len() {
            for sign in [0, 0x8000_0000] {
                let centre = HARD[block as usize].to_bits() | sign;
                for (i, x) in x.iter_mut().enumerate() {
                    *x = f32::from_bits(centre.wrapping_add(i as u32).wrapping_sub(BLOCK as u32 / 2));
                }
                worst_of(function, &x, &mut y, &mut worst);
            }
        }
    }
    println!("{:12} {:.4} ulp at {:e} ({:#010x})", function.name, worst.0, worst.1, worst.1.to_bits());
    assert!(worst.0 <= function.bound, "{} ulp at {:e}", worst.0, worst.1);
}

/// Takes bases near 1 and of any size, with exponents that spread the logarithm of the power over the range of f32.
#[test]
fn pow_of_pairs_stays_below_its_bound() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut worst = (0.0, 0.0_f32, 0.0_f32);
    for i in 0..1_u32 << 22 {
        let bits = random();
        let x = match i & 3 {
            0 => f32::from_bits(bits as u32 & 0x7fff_ffff),
            1 => f32::from_bits(bits as u32 & 0x007f_ffff | 0x3f80_0000),
            2 => f32::from_bits(bits as u32 & 0x007f_ffff | 0x3f00_0000),
            _ => 1.0 + (bits as u32 as i32 as f32) * 2_f32.powi(-31 - (bits >> 59) as i32 % 22),
        };
        let log = f64::from(x).log2();
        if x.is_finite() && log != 0.0 && log.is_finite() {
            let y = (((random() >> 40) as f64 * 2_f64.powi(-24) * 280.0 - 151.0) / log) as f32;
            let error = ulp_error(maths::pow(x, y), f64::from(x).powf(f64::from(y)));
            if error > worst.0 {
                worst = (error, x, y);
            }
        }
    }
    println!("pow of pairs: {worst:?}");
    assert!(worst.0 <= 1.0, "{worst:?}");
}

//! The functions of [`pointwise_core::maths::half`] over all 65,536 inputs of f16 and of bf16: rounded to that type, a
//! result is within 1 ULP of the exact value, and is the exact value rounded for at least 99.5 % of the inputs.
//!
//! Both hold for the machine's own operations and for approximate ones that err by as much as the PTX ISA allows, all
//! up or all down. `--nocapture` shows the percentages.

use pointwise_core::maths::half::{Approx, Native};
use pointwise_core::{BinaryFunction, Element, Real, bf16, convert, f16};

/// Operations with the largest error of the PTX ISA, always to the same side; subnormals are flushed where they may be.
struct Off<const UP: bool>;

impl<const UP: bool> Off<UP> {
    /// `2^-22`, up or down.
    const ERROR: f64 = if UP { 1.0 / 4_194_304.0 } else { -1.0 / 4_194_304.0 };

    fn relative(exact: f64) -> f32 {
        (exact * (1.0 + Self::ERROR)) as f32
    }

    fn flush(x: f32) -> f32 {
        if x.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(x) } else { x }
    }
}

impl<const UP: bool> Approx for Off<UP> {
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
        Self::flush(Self::relative(1.0 / f64::from(Self::flush(x))))
    }

    fn recip(x: f32) -> f32 {
        (1.0 / f64::from(x) * (1.0 + Self::ERROR / 2.0)) as f32
    }

    fn rsq(x: f32) -> f32 {
        Self::relative(1.0 / f64::from(x).sqrt())
    }
}

/// A 16-bit type: its name, widening, rounding of f32 and f64, bits of the significand and the least exponent.
struct Type {
    name: &'static str,
    widen: fn(u16) -> f32,
    round: fn(f32) -> u16,
    exact: fn(f64) -> u16,
    digits: i32,
    least: i32,
    overflow: f64,
}

const TYPES: [Type; 2] = [
    Type {
        name: "f16",
        widen: convert::f16_to_f32,
        round: convert::f32_to_f16,
        exact: convert::f64_to_f16,
        digits: 11,
        least: -14,
        overflow: 65_536.0,
    },
    Type {
        name: "bf16",
        widen: convert::bf16_to_f32,
        round: convert::f32_to_bf16,
        exact: convert::f64_to_bf16,
        digits: 8,
        least: -126,
        // 2^128
        overflow: f64::from_bits(0x47f0_0000_0000_0000),
    },
];

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

    fn check(&self, title: &str, failures: &mut Vec<String>) {
        let percent = 100.0 * f64::from(self.correct) / f64::from(self.inputs);
        let line = format!("{title:26} {percent:8.3} % correct, worst {:.3} ULP {}", self.worst, self.at);
        println!("{line}");
        if percent < 99.5 || self.worst > 1.0 {
            failures.push(line);
        }
    }
}

type Function = (&'static str, fn(f32) -> f32, fn(f64) -> f64);

fn functions<A: Approx>() -> Vec<Function> {
    vec![
        ("exp", A::exp, f64::exp),
        ("exp2", A::exp2, f64::exp2),
        ("expm1", A::expm1, f64::exp_m1),
        ("expm1_negative", |x| A::expm1_negative(-x.abs()), |x| (-x.abs()).exp_m1()),
        ("ln", A::ln, f64::ln),
        ("log1p", A::log1p, f64::ln_1p),
        ("sin", A::sin, f64::sin),
        ("cos", A::cos, f64::cos),
        ("tanh", A::tanh, f64::tanh),
        ("sigmoid", A::sigmoid, sigmoid),
        ("silu", A::silu, |x| x * sigmoid(x)),
        ("erf", A::erf, libm::erf),
        ("normal_cdf", A::normal_cdf, normal_cdf),
        ("normal_density", A::normal_density, |x| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()),
        ("gelu", A::gelu, |x| x * normal_cdf(x)),
        ("gelu_tanh", A::gelu_tanh, |x| {
            x * sigmoid(2.0 * std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x))
        }),
        ("softplus", A::softplus, |x| if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }),
        ("mish", A::mish, |x| {
            let w = x.min(100.0).exp();
            let n = w * (w + 2.0);
            if x.is_nan() { x } else { x * (n / (n + 2.0)) }
        }),
        (
            "mish_derivative",
            |x| if is_cancelled(x.into()) { 0.0 } else { A::mish_derivative(x) },
            |x| {
                let w = x.min(100.0).exp();
                let n = w * (w + 2.0);
                let y = n / (n + 2.0) + x * (4.0 * w * (w + 1.0) / (n + 2.0).powi(2));
                if x.is_infinite() {
                    f64::NAN
                } else if is_cancelled(x) {
                    0.0
                } else {
                    y
                }
            },
        ),
        // The exponential by itself overflows f32, as in PyTorch.
        (
            "times_exp",
            |x| A::times_exp(0.7, x),
            |x| f64::from(0.7_f32) * if x > 88.73 { f64::INFINITY } else { x.exp() },
        ),
        ("times_sigmoid", |x| A::times_sigmoid(0.7, x), |x| f64::from(0.7_f32) * sigmoid(x)),
        ("rsqrt", A::rsqrt, |x| 1.0 / x.sqrt()),
        ("recip", A::recip, f64::recip),
    ]
}

/// True where the two terms of the derivative of mish cancel: for the two numbers next to its zero, and below -98,
/// where its zeros have either sign.
fn is_cancelled(x: f64) -> bool {
    (x + 1.1924).abs() < 0.001 || (x < -98.0 && x.is_finite())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn sweep<A: Approx>(operations: &str) {
    let mut failures = Vec::new();
    for (name, f, exact) in functions::<A>() {
        for t in &TYPES {
            let mut tally = Tally::default();
            for bits in 0..=u16::MAX {
                let x = (t.widen)(bits);
                tally.add(t, f(x), exact(f64::from(x)), || format!("at {x:e}"));
            }
            tally.check(&format!("{name} {} {operations}", t.name), &mut failures);
            assert!(name != "recip" || tally.correct == tally.inputs, "{operations}: {} of {}", tally.correct, t.name);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn native() {
    sweep::<Native>("native");
}

#[test]
fn approximations_too_large() {
    sweep::<Off<true>>("up");
}

#[test]
fn approximations_too_small() {
    sweep::<Off<false>>("down");
}

/// C99 `pow` on a grid of pairs: bases of every exponent, exponents of every size with short and long significands. At
/// most one result in 10,000 differs from the exact one rounded, and only because it is rounded to f32 first.
fn powers<A: Approx>(operations: &str) {
    let mut failures = Vec::new();
    for t in &TYPES {
        let mut tally = Tally::default();
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let bases = (0..=u16::MAX).step_by(97).map(t.widen).chain(special);
        for a in bases {
            // Exponents from the whole type, and small ones, whose results are neither 0 nor infinite.
            let small = (-120..=120).map(|i| (t.widen)((t.round)(i as f32 * 0.37)));
            let whole = (-40..=40).map(|i| i as f32);
            let far = (0..=u16::MAX).step_by(641).map(t.widen);
            for b in far.chain(small).chain(whole).chain(special) {
                tally.add(t, A::pow(a, b), f64::from(a).powf(f64::from(b)), || format!("at {a:e}, {b:e}"));
            }
        }
        tally.check(&format!("pow {} {operations}", t.name), &mut failures);
        assert!(
            tally.inputs - tally.correct <= tally.inputs / 10_000 && tally.worst < 0.5002,
            "{operations}, {}",
            t.name
        );
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn pow_native() {
    powers::<Native>("native");
}

#[test]
fn pow_with_approximations_off() {
    powers::<Off<true>>("up");
    powers::<Off<false>>("down");
}

/// Checks the short path of a power, corrected by `Value::signed`: if it holds, the power equals the result to the bit,
/// or lies between the bounds if it has bounds. And it holds for numbers of plain sizes.
fn signs<T: Real>(widen: impl Fn(u32) -> T, bounded: bool) {
    let plain: Vec<T> = [0.25, 0.5, 1.0, 1.5, 3.0, 7.0, -0.25, -1.0, -1.5, -3.0, 0.0, -0.0].map(T::constant).to_vec();
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, -1e-40, 4_194_303.0, 1e30, -16_777_217.0];
    let all: Vec<T> =
        (0..4096_u32).map(|i| widen(i.wrapping_mul(0x0010_1041))).chain(special.map(T::constant)).collect();
    let pairs = all.iter().flat_map(|&a| plain.iter().map(move |&b| (a, b)));
    let swapped = all.iter().flat_map(|&b| plain.iter().map(move |&a| (a, b)));
    for (a, b) in pairs.chain(swapped).chain(plain.iter().flat_map(|&a| plain.iter().map(move |&b| (a, b)))) {
        let signed = a.signed(b, BinaryFunction::Power);
        let is_plain = plain.contains(&a) && plain.contains(&b) && !(a == T::ZERO && b == T::ZERO);
        assert!(signed.holds || !is_plain, "{:e}, {:e}", a.to_f64(), b.to_f64());
        if !signed.holds {
            continue;
        }
        let short = a.short(b, BinaryFunction::Power);
        // In f32 the path does not hold for a negative base either.
        assert!(short.holds || signed.is_zero || !bounded && a < T::ZERO, "{:e}, {:e}", a.to_f64(), b.to_f64());
        let bounds = if signed.is_zero { [signed.of_zero; 2] } else { short.bounds };
        let [low, high] = bounds.map(|y| (y.to_f64() as f32).to_bits() | signed.sign);
        let exact = a.pow(b).to_f64() as f32;
        let [low, high] = [low, high].map(f32::from_bits);
        let within = if bounded { low.min(high) <= exact && exact <= low.max(high) } else { low == exact };
        let same_sign = low.is_sign_negative() == exact.is_sign_negative();
        assert!(
            (low.is_nan() && exact.is_nan()) || (within && same_sign),
            "{:e}, {:e}: {low:e}, {high:e}, {exact:e}",
            a.to_f64(),
            b.to_f64()
        );
    }
}

#[test]
fn signs_of_powers() {
    signs(|bits| <f32 as Element>::widen(f32::from_bits(bits)), false);
    signs(|bits| f16::from_bits(bits as u16).widen(), true);
    signs(|bits| bf16::from_bits(bits as u16).widen(), true);
}

/// Checks both gradients of a power on the grid of [`powers`], where the power is a normal f32, zero, infinite or NaN.
fn power_gradients<A: Approx>(operations: &str) {
    let mut failures = Vec::new();
    for t in &TYPES {
        let mut tallies = [Tally::default(), Tally::default()];
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let near_one = (-40..=40).map(|i| (t.widen)(((t.round)(1.0) as i32 + i) as u16));
        for a in (0..=u16::MAX).step_by(97).map(t.widen).chain(near_one).chain(special) {
            let small = (-120..=120).map(|i| (t.widen)((t.round)(i as f32 * 0.37)));
            let whole = (-40..=40).map(|i| i as f32);
            let far = (0..=u16::MAX).step_by(641).map(t.widen);
            for b in far.chain(small).chain(whole).chain(special) {
                // From there on exponents count as even, but an exponent less 1 need not be even.
                if a.is_sign_negative() && b.abs() >= 65536.0 {
                    continue;
                }
                let power = |by: f32| f64::from(f64::from(a).powf(f64::from(by)) as f32);
                let is_zero = a == 0.0 && b >= 0.0;
                let by_exponent = if is_zero { 0.0 } else { power(b) * f64::from(a).ln() };
                let exact = [(power(b - 1.0), f64::from(b) * power(b - 1.0)), (power(b), by_exponent)];
                let got = A::pow_gradients(a, b);
                for ((tally, got), (power, exact)) in tallies.iter_mut().zip([got.0, got.1]).zip(exact) {
                    if !(power as f32).is_subnormal() {
                        tally.add(t, got, exact, || format!("at {a:e}, {b:e}"));
                    }
                }
            }
        }
        for (name, tally) in ["base", "exponent"].iter().zip(&tallies) {
            tally.check(&format!("power by {name} {} {operations}", t.name), &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn power_gradients_native() {
    power_gradients::<Native>("native");
}

#[test]
fn power_gradients_with_approximations_off() {
    power_gradients::<Off<true>>("up");
    power_gradients::<Off<false>>("down");
}

/// Checks that quotients of random operands and of all perfect squares round to the same as by correctly rounded steps.
fn quotients_by_roots<A: Approx>(operations: &str) {
    for ty in TYPES {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let squares = (0..=u16::MAX).filter(|&code| {
            let x = (ty.widen)(code);
            x >= 0.0 && x.sqrt() * x.sqrt() == x
        });
        let squares: Vec<u16> = squares.collect();
        assert!(squares.len() > 64, "{}", ty.name);
        for i in 0..1 << 22 {
            let (a, x) = (next() as u16, next());
            let x = if i % 4 == 0 { squares[x as usize % squares.len()] } else { x as u16 };
            let (a, x) = ((ty.widen)(a), (ty.widen)(x));
            let (got, expected) = (A::over_twice_sqrt(a, x), a / (x.sqrt() * 2.0));
            let same = (ty.round)(got) == (ty.round)(expected) || got.is_nan() && expected.is_nan();
            assert!(same, "{operations}, {}: {a:e} over the root of {x:e} is {got:e}, not {expected:e}", ty.name);
        }
    }
}

#[test]
fn quotients_by_roots_are_those_of_the_steps() {
    quotients_by_roots::<Native>("native");
    quotients_by_roots::<Off<true>>("too large");
    quotients_by_roots::<Off<false>>("too small");
}

/// Compares a quotient of two f16 with the one that is rounded correctly in f32.
fn compare_quotient<A: Approx>(a: u16, b: u16) {
    let (x, y) = (convert::f16_to_f32(a), convert::f16_to_f32(b));
    let (got, expected) = (A::quotient_of_f16(x, y), x / y);
    let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
    assert!(same, "{x:e} / {y:e} is {expected:e}, not {got:e}");
}

/// Checks quotients of all significands, near 1 and with exponents all over the range, and of the numbers at its ends.
fn quotients_of_f16<A: Approx>() {
    for a in 0..1_u32 << 10 {
        for b in 0..1_u32 << 10 {
            compare_quotient::<A>((0x3C00 | a) as u16, (0x3C00 | b) as u16);
            // The six bits above, from subnormal numbers to infinities and NaN.
            let above = (a.wrapping_mul(0x9E37_79B9) ^ b.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0xC2B2_AE35);
            compare_quotient::<A>((above >> 26 << 10 | a) as u16, (above >> 20 << 10 | b) as u16);
        }
    }
    let ends = [0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF];
    for (a, b) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))) {
        for signs in 0..4 {
            compare_quotient::<A>(a | signs << 15, b | (signs >> 1) << 15);
        }
    }
}

#[test]
fn quotients_of_f16_are_rounded_correctly_in_f32() {
    quotients_of_f16::<Native>();
    quotients_of_f16::<Off<true>>();
    quotients_of_f16::<Off<false>>();
}

/// Checks quotients of every f16 and numbers that came with a call, either way.
fn quotients_by_numbers<A: Approx>() {
    let mut state = 1_u64;
    for k in 0..64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Any significand, exponents from -60 to 59; at last the ends of this range, zero and infinity.
        let number = f32::from_bits((127 - 60 + (state >> 40) as u32 % 120) << 23 | (state >> 41) as u32 & 0x7F_FFFF);
        let number = [2_f32.powi(60), 2_f32.powi(-60), 0.0, f32::INFINITY].get(63 - k).copied().unwrap_or(number);
        for bits in 0..=u16::MAX {
            let x = convert::f16_to_f32(bits);
            for (a, b) in [(x, number), (number, x), (x, -number)] {
                let (got, expected) = (A::quotient_of_f16(a, b), a / b);
                let round = |x: f32| [convert::f32_to_f16(x), convert::f32_to_f16(x.trunc())];
                let same = round(got) == round(expected) || got.is_nan() && expected.is_nan();
                assert!(same, "{a:e} / {b:e} is {expected:e}, not {got:e}");
            }
        }
    }
}

#[test]
fn quotients_of_f16_by_numbers_round_to_the_same() {
    quotients_by_numbers::<Native>();
    quotients_by_numbers::<Off<true>>();
    quotients_by_numbers::<Off<false>>();
}

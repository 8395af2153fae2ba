//! Dual numbers: the gradients of the family's ops against hand-written gradients and central differences, the rules of
//! functions, kinks, and formulas that mix everything.
//!
//! `--nocapture` shows the largest errors by hand and derived.

mod rules;

use pointwise_core::op::Word;
use pointwise_core::{Accuracy, Coarse, DType, Dual, Element, Num, RandomWord, Real, Stepped, Value, bf16, f16};
use rules::{Rule, Three};

/// Well-mixed 64-bit numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number between two.
    fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const SPECIAL: [f32; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -1.5,
    2.0,
    3.0,
    -3.0,
    2.999_999_8,
    20.0,
    20.000_002,
    -20.0,
    88.72,
    -87.4,
    -104.0,
    1e-45,
    -1e-40,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Returns operands: special values in all places, small halves of whole numbers, which are often equal, and numbers of
/// moderate and of any size.
fn operands(random: &mut Random, i: usize) -> Three<f32> {
    std::array::from_fn(|k| {
        let code = random.next();
        match i % 4 {
            0 => SPECIAL[(code % 24) as usize],
            1 if k == 0 || code & 1 == 0 => ((code >> 60) as f32 - 8.0) / 2.0,
            1 | 2 => random.within(-16.0, 16.0) as f32,
            _ => f32::from_bits(code as u32),
        }
    })
}

/// Returns a gradient of moderate size; some are 0 or 1.
fn seed(random: &mut Random, i: usize) -> f32 {
    match i % 16 {
        0 => 0.0,
        1 => 1.0,
        2..8 => random.within(-1024.0, 1024.0) as f32,
        _ => random.within(0.5, 2.0) as f32,
    }
}

/// A type whose results are compared.
#[derive(Clone, Copy)]
struct Grid {
    dtype: DType,
    digits: i32,
    least: i32,
    largest: f64,
}

const F32: Grid = Grid { dtype: DType::F32, digits: 24, least: -126, largest: f32::MAX as f64 };
const F16: Grid = Grid { dtype: DType::F16, digits: 11, least: -14, largest: 65504.0 };
const BF16: Grid = Grid { dtype: DType::BF16, digits: 8, least: -126, largest: 3.389e38 };

impl Grid {
    /// Returns the distance from `exact` to `got`, in ULP: 0 if the exact value is too large, and infinity if NaN or an
    /// infinity stands for a number, or the other way round.
    fn distance(self, got: f64, exact: f64, allowed: f64) -> f64 {
        if got.is_nan() || exact.is_nan() {
            return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if exact.abs() > self.largest / 4.0 {
            return if exact.is_infinite() && got != exact && got.abs() < self.largest / 1e6 {
                f64::INFINITY
            } else {
                0.0
            };
        }
        if (got - exact).abs() <= allowed {
            return 0.0;
        }
        let exponent = (exact.abs().max(f64::MIN_POSITIVE).log2().floor() as i32).max(self.least);
        (got - exact).abs() / 2_f64.powi(exponent - (self.digits - 1))
    }
}

/// Returns the factor of derivative `k`.
fn scale(rule: &Rule, k: usize, grad: f64, x: Three<f64>) -> f64 {
    match rule.name {
        "silu_and_mul" | "gelu_and_mul" | "gelu_tanh_and_mul" if k == 0 => grad * x[1],
        "pow" => grad * x[1].abs().max(104.0),
        _ => grad,
    }
}

/// Returns the error beside the bound: for terms that cancel, and for a subnormal factor times a huge one.
fn allowed(rule: &Rule, grid: Grid, k: usize, grad: f64, x: Three<f64>) -> f64 {
    let smallest = f64::from(f32::from_bits(1));
    let lost = match rule.info.accuracy {
        Accuracy::Exact => 0.0,
        Accuracy::Ulp(ulp) => f64::from(ulp) * smallest,
        Accuracy::Cancels(_) => 512.0 * smallest,
    };
    let slack = if x[0].abs() < 4.0 { rule.info.accuracy.slack(grid.dtype) } else { 0.0 };
    let allowed = (slack + lost) * scale(rule, k, grad, x).abs();
    if allowed.is_finite() { allowed } else { 0.0 }
}

/// The comparison of an op's two ways in one type.
#[derive(Clone, Copy, Default)]
struct Comparison {
    by_hand: f64,
    derived: f64,
    /// The operands where the derived gradient is worst.
    at: (f64, Three<f64>),
    /// Results with different bits; every NaN is the same.
    other_bits: usize,
    results: usize,
    /// Results that are not finite by hand, and differ when derived.
    overflows_otherwise: usize,
}

fn compare<E: Element>(
    rule: &Rule,
    grid: Grid,
    count: usize,
    ways: [&dyn Fn(E, Three<E>) -> Three<E>; 2],
) -> Comparison {
    let (mut random, mut found) = (Random(7), Comparison::default());
    for i in 0..count {
        let x = operands(&mut random, i).map(|x| E::from_f64(f64::from(x)));
        let grad = E::from_f64(f64::from(seed(&mut random, i / 4)));
        let (wide, wide_grad) = (x.map(E::to_f64), grad.to_f64());
        let exact = (rule.by_hand.f64)(wide_grad, wide);
        let [by_hand, derived] = ways.map(|way| way(grad, x).map(E::to_f64));
        for k in 0..rule.operands {
            let allowed = allowed(rule, grid, k, wide_grad, wide);
            let [of_hand, off] = [by_hand[k], derived[k]].map(|got| grid.distance(got, exact[k], allowed));
            let same = derived[k].to_bits() == by_hand[k].to_bits() || derived[k].is_nan() && by_hand[k].is_nan();
            // If the steps overflow in f32 but not in f64, there is no distance: then both ways must overflow.
            if of_hand.is_finite() && off > found.derived {
                (found.derived, found.at) = (off, (wide_grad, wide));
            }
            if of_hand.is_finite() {
                found.by_hand = found.by_hand.max(of_hand);
            } else {
                found.overflows_otherwise += usize::from(!same);
            }
            found.other_bits += usize::from(!same);
            found.results += 1;
        }
    }
    found
}

/// [`compare`] for a type of 16 bits.
fn compare_half<E: Element<Compute = Coarse>>(rule: &Rule, grid: Grid) -> Comparison {
    let [by_hand, derived] = [&rule.by_hand, &rule.derived]
        .map(|way| move |grad: E, x: Three<E>| (way.half)(grad.widen(), x.map(E::widen)).map(E::narrow));
    compare(rule, grid, 40_000, [&by_hand, &derived])
}

/// Rows whose gradients differ by more than rounding from the derived ones, and why:
/// - `elu`, `selu`: PyTorch has `grad` for NaN, where a formula gives NaN;
/// - `hardswish`: the formula overflows where its derivative does not, and `x + 3` is rounded;
/// - `hardsigmoid`: 0 for NaN, and `x + 3` is rounded;
/// - `nan_to_num`: `grad * 0` for infinities, which is NaN where `grad` is infinite;
/// - `lerp`: for each operand one branch of the formula rounds more often.
const OTHERWISE: [&str; 6] = ["elu", "selu", "hardswish", "hardsigmoid", "nan_to_num", "lerp"];

/// Rows that round differently, as their formula has other steps.
const ROUNDED_OTHERWISE: [&str; 4] = ["softplus", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"];

#[test]
fn derived_gradients_are_as_accurate_as_those_by_hand() {
    println!("| op | f32 by hand | derived | f16 by hand | derived | bf16 by hand | derived | other bits |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut failures = Vec::new();
    for rule in rules::all() {
        let of = compare::<f32>(&rule, F32, 40_000, [&rule.by_hand.f32, &rule.derived.f32]);
        let all = [of, compare_half::<f16>(&rule, F16), compare_half::<bf16>(&rule, BF16)];
        let bits: Vec<String> =
            all.iter().map(|c| format!("{:.3}%", 100.0 * c.other_bits as f64 / c.results as f64)).collect();
        let figures: Vec<String> = all.iter().map(|c| format!("{:.2} | {:.2}", c.by_hand, c.derived)).collect();
        println!("| {} | {} | {} |", rule.name, figures.join(" | "), bits.join(" "));
        if OTHERWISE.contains(&rule.name) {
            if all.iter().all(|c| c.other_bits == 0) {
                failures.push(format!("{} differs nowhere", rule.name));
            }
            continue;
        }
        for (c, grid) in all.iter().zip([F32, F16, BF16]) {
            let bound = f64::from(rule.info.accuracy.bound(grid.dtype));
            if c.derived > c.by_hand.max(bound) + 1e-6 {
                failures.push(format!("{} {}: {} at {:?}", rule.name, grid.dtype, c.derived, c.at));
            }
            if c.overflows_otherwise != 0 && rule.info.accuracy == Accuracy::Exact {
                failures.push(format!("{} {}: {} overflow otherwise", rule.name, grid.dtype, c.overflows_otherwise));
            }
            if !ROUNDED_OTHERWISE.contains(&rule.name) && c.other_bits != 0 {
                failures.push(format!("{} {}: {} other bits", rule.name, grid.dtype, c.other_bits));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The oracle's own gradients.
#[test]
fn in_f64_both_ways_agree() {
    let mut random = Random(3);
    for rule in rules::all().iter().filter(|rule| !OTHERWISE.contains(&rule.name)) {
        for i in 0..20_000 {
            let x = operands(&mut random, i).map(f64::from);
            let grad = f64::from(seed(&mut random, i / 4));
            let [by_hand, derived] = [&rule.by_hand, &rule.derived].map(|way| (way.f64)(grad, x));
            for k in 0..rule.operands {
                let (a, b) = (by_hand[k], derived[k]);
                // Far below the range of f32 a factor may be subnormal.
                let close = (a - b).abs() <= 1e-13 * a.abs().max(1e-250);
                assert!(a == b || a.is_nan() && b.is_nan() || close, "{} {k}: {a} {b} at {grad} {x:?}", rule.name);
            }
        }
    }
}

/// Returns the derivative of `f` at `x` by operand `k`, by central differences with two steps; `None` if these
/// disagree.
fn difference(f: &dyn Fn(Three<f64>) -> f64, x: Three<f64>, k: usize) -> Option<f64> {
    let by = |step: f64| {
        let at = |sign: f64| {
            let mut moved = x;
            moved[k] += sign * step;
            (moved[k], f(moved))
        };
        let ((low, before), (high, after)) = (at(-1.0), at(1.0));
        (after - before) / (high - low)
    };
    let step = x[k].abs().max(0.25) / 1024.0;
    let (coarse, fine) = (by(step), by(step / 2.0));
    let agree = (coarse - fine).abs() <= 1e-4 * fine.abs().max(1e-3);
    // The error of both is a multiple of the step's square.
    agree.then_some((4.0 * fine - coarse) / 3.0)
}

/// Compares a gradient function with central differences. Returns the share of places that were compared.
fn check(
    name: &str,
    value: &dyn Fn(Three<f64>) -> f64,
    gradient: &dyn Fn(Three<f64>) -> Three<f64>,
    low: Three<f64>,
) -> f64 {
    let (mut random, mut compared, mut total) = (Random(11), 0, 0);
    for _ in 0..4_000 {
        let x = low.map(|low| random.within(low, 5.0));
        let gradients = gradient(x);
        for (k, &got) in gradients.iter().enumerate() {
            total += 1;
            let Some(expected) = difference(value, x, k) else { continue };
            if expected.is_finite() {
                compared += 1;
                let error = (got - expected).abs() / expected.abs().max(1e-2).max(value(x).abs() * 1e-3);
                assert!(error < 1e-6, "{name} by operand {k} at {x:?}: {got}, not {expected}");
            }
        }
    }
    f64::from(compared) / f64::from(total)
}

#[test]
fn gradients_are_derivatives() {
    for rule in rules::all() {
        let low = match rule.name {
            "log" | "sqrt" | "rsqrt" | "reciprocal" | "div" | "pow" | "remainder" | "div_trunc" | "floor_divide" => {
                [0.1; 3]
            }
            "log1p" => [-0.9; 3],
            _ => [-5.0; 3],
        };
        let share = check(rule.name, &rule.value, &|x| (rule.derived.f64)(1.0, x), low);
        assert!(share > 0.8, "{}: {share}", rule.name);
    }
}

/// Checks the functions of [`Real`] that are no op by themselves.
#[test]
fn rules_of_functions_are_derivatives() {
    fn at<T: Real>(which: usize, [x, y, z]: Three<T>) -> T {
        match which {
            0 => x.normal_cdf(),
            1 => x.normal_density(),
            2 => x.times_exp(y),
            3 => x.times_sigmoid(y),
            4 => x.over_twice_sqrt(y * y + T::ONE),
            5 => (x * x + T::ONE).pow_gradients(y).0,
            6 => (x * x + T::ONE).pow_gradients(y).1,
            7 => x.mish_derivative(),
            8 => x.exp_m1_negative(),
            9 => x.mul_add(y, z),
            10 => x.mul_add(y, x) * x.mul_add(x, y),
            11 => x.if_above(y, z * x, y - z),
            12 => (x / (y * y + T::ONE)) / (z + x * x + T::constant(8.0)),
            13 => x.in_range(),
            14 => (x * y).remainder(z * x + T::constant(40.0)),
            15 => x.maximum(y).minimum(z * x),
            16 => x.hardtanh(y, z) * x.clamp(z, y),
            17 => (x * y).relu() - z.abs() * x.floor(),
            18 => x.dropout(y * T::constant(0.1), RandomWord::from(0x0100_0000)),
            _ => x.scaled_add(y, z) - y.silu() * z.gelu() + x.gelu_tanh() * y.mish().softplus(),
        }
    }
    for which in 0..20 {
        let low = if which == 8 { [-5.0; 3] } else { [-4.0; 3] };
        let gradient = |x: Three<f64>| {
            let y = at(which, std::array::from_fn(|k| Dual::<f64, 3>::variable(x[k], k, 1.0)));
            [y.gradient(0), y.gradient(1), y.gradient(2)]
        };
        let share = check(&format!("function {which}"), &|x| at(which, x), &gradient, low);
        assert!(share > 0.75, "function {which}: {share}");
    }
}

/// A formula with tangents has the same values as without.
#[test]
fn values_are_those_of_the_formula() {
    let mut random = Random(5);
    for rule in rules::all() {
        for i in 0..2_000 {
            let x = operands(&mut random, i).map(f64::from);
            let (plain, constant) = ((rule.value)(x), (rule.constant)(x));
            assert!(
                plain.to_bits() == constant.to_bits() || plain.is_nan() && constant.is_nan(),
                "{} {x:?}",
                rule.name
            );
        }
    }
    for i in 0..10_000 {
        let x = operands(&mut random, i)[0];
        let y = Dual::<f32, 1>::variable(x, 0, 1.0);
        let same =
            |a: f32, b: Dual<f32, 1>| assert!(a.to_bits() == b.value().to_bits() || a.is_nan(), "{x:e}: {a:e}, {b:?}");
        same(Real::tanh(x), y.tanh());
        same(Real::sigmoid(x), y.sigmoid());
        same(Real::softplus(x), y.softplus());
        same(Real::erf(x), y.erf());
        same(Real::mish(x), y.mish());
        same(Real::recip(x), y.recip());
    }
}

fn f32s<const N: usize>(f: impl Fn(Dual<f32, 3>) -> Dual<f32, 3>, at: [f32; N]) -> [f32; N] {
    at.map(|x| f(Dual::variable(x, 0, 3.0)).gradient(0))
}

#[test]
fn kinks_are_pytorchs() {
    let c = |x: f32| Dual::<f32, 3>::constant(x);
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!(f32s(|x| x.relu(), [-1.0, -0.0, 0.0, 1e-45, inf, nan]), [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
    assert_eq!(f32s(|x| x.abs(), [-1.0, -0.0, 0.0, 1.0, nan]), [-3.0, 0.0, 0.0, 3.0, 0.0]);
    assert_eq!(f32s(|x| x.clamp(c(-1.0), c(1.0)), [-2.0, -1.0, 0.0, 1.0, 2.0, nan]), [0.0, 3.0, 3.0, 3.0, 0.0, 0.0]);
    assert_eq!(f32s(|x| x.hardtanh(c(-1.0), c(1.0)), [-2.0, -1.0, 0.0, 1.0, 2.0, nan]), [0.0, 0.0, 3.0, 0.0, 0.0, 3.0]);
    assert_eq!(f32s(|x| x.maximum(c(1.0)), [0.0, 1.0, 2.0, nan]), [0.0, 1.5, 3.0, 3.0]);
    assert_eq!(f32s(|x| c(1.0).minimum(x), [0.0, 1.0, 2.0, nan]), [3.0, 1.5, 0.0, 3.0]);
    assert_eq!(f32s(|x| x.maximum(x), [0.0, -0.0, 2.0]), [3.0; 3]);
    for step in [Num::floor, Num::ceil, Num::trunc, Num::round_ties_even] {
        let step: fn(Dual<f32, 3>) -> Dual<f32, 3> = step;
        assert_eq!(f32s(step, [-1.0, 0.5, 1.0, nan]), [0.0; 4]);
        assert!(!step(Dual::variable(0.5, 0, 1.0)).has_gradient(0));
    }
    // A zero times an infinite tangent does not arise.
    assert_eq!(f32s(|x| x * c(0.0) + c(inf), [1.0]), [0.0]);
    assert_eq!(f32s(|x| x.gelu_tanh(), [1e18, 40.0]), [3.0; 2]);
    assert_eq!(f32s(|x| x.pow(c(0.0)), [0.0, 1.0, inf]), [0.0; 3]);
    let power = c(0.0).pow(Dual::variable(2.0, 1, 3.0));
    assert_eq!((power.gradient(0), power.gradient(1)), (0.0, 0.0));
    // Equal bounds, and bounds in the wrong order: the upper one is the result.
    for (low, high) in [(1.0, 1.0), (2.0, 1.0)] {
        let y =
            Dual::<f32, 3>::variable(1.0, 0, 3.0).hardtanh(Dual::variable(low, 1, 3.0), Dual::variable(high, 2, 3.0));
        assert_eq!([y.value(), y.gradient(0), y.gradient(1), y.gradient(2)], [1.0, 0.0, 0.0, 3.0]);
    }
}

#[test]
fn absent_tangents_stay_absent() {
    type D = Dual<f32, 2>;
    let (x, y) = (D::variable(2.0, 0, 1.0), D::variable(f32::INFINITY, 1, 1.0));
    let has = |d: D| [d.has_gradient(0), d.has_gradient(1)];
    assert_eq!(
        [has(x), has(y), has(x * y), has(D::constant(1.0))],
        [[true, false], [false, true], [true, true], [false; 2]]
    );
    assert_eq!([has(x.exp() * x), has(y.floor() + x), has(x.if_above(y, x, x))], [[true, false]; 3]);
    assert_eq!([has(<D as Real>::constant(3.0)), has(D::from_word(x.to_word()))], [[false; 2]; 2]);
    assert_eq!([has(D::uniform(RandomWord::from(9))), has(D::variable(1.0, 2, 1.0)), has(D::ZERO)], [[false; 2]; 3]);
    // There is no derivative by y, though y is infinite.
    let z = x * x + D::constant(0.0) * D::constant(f32::INFINITY);
    assert_eq!((z.gradient(0), z.gradient(1), z.gradient(2), z.has_gradient(7)), (4.0, 0.0, 0.0, false));
    assert_eq!(D::from_word(x.to_word()).value(), 2.0);
    // Comparisons compare the values.
    assert!(x < y && x == D::constant(2.0) && x.truth() && y.is_infinite() && !(x - y).is_nan() && (y - y).is_nan());
    // No operand at all, and the most that an op can have.
    assert_eq!(Dual::<f32, 0>::constant(2.0).sqrt().value(), 2_f32.sqrt());
    let all: [Dual<f64, 8>; 8] = std::array::from_fn(|k| Dual::variable(k as f64 + 1.0, k, 1.0));
    let product = all.into_iter().fold(Dual::ONE, |product, x| product * x);
    assert!((0..8).all(|k| (product.gradient(k) - 40320.0 / (k as f64 + 1.0)).abs() < 1e-9));
}

#[test]
fn random_words_keep_what_dropout_keeps() {
    for word in [0, 1 << 30, 3 << 30, u32::MAX] {
        let bits = RandomWord::from(word);
        let (kept, x) = (Real::dropout(1.0_f32, 0.5, bits), Dual::<f32, 1>::variable(5.0, 0, 3.0));
        let y = x.dropout(Dual::constant(0.5), bits);
        assert_eq!((y.value(), y.gradient(0)), (5.0 * kept, 3.0 * kept));
        assert_eq!(kept, if word < 1 << 31 { 2.0 } else { 0.0 });
        // NaN and infinities become 0, too.
        let gone = Dual::<f32, 1>::variable(f32::NAN, 0, f32::INFINITY).dropout(Dual::ONE, bits);
        assert_eq!((gone.value(), gone.gradient(0)), (0.0, 0.0));
    }
}

/// Five operands, and something of everything.
fn mixed<T: Real>([a, b, c, d, e]: [T; 5]) -> T {
    let gate = if a > b { a.silu() * c.mul_add(d, b) } else { (b - a).tanh() / (c * c + T::ONE) };
    let bounded = (d * T::constant(1.5)).clamp(-T::ONE, c.abs() + T::ONE);
    let tail = (e * e + T::constant(0.5)).pow(b * T::constant(0.25)) * a.normal_cdf();
    let chosen = d.if_above(e, gate.maximum(bounded), gate - tail.ln_1p());
    let noise = chosen.dropout(T::constant(0.25), RandomWord::from(12345)) + e.floor() * a.sin();
    noise + tail.sqrt() * c.relu() - (d / (e.exp() + T::ONE)).erf()
}

#[test]
fn a_formula_of_five_operands() {
    let mut random = Random(17);
    let (mut compared, mut worst) = (0, 0.0_f64);
    for _ in 0..5_000 {
        let x: [f64; 5] = std::array::from_fn(|_| f64::from(random.within(-3.0, 3.0) as f32));
        let dual = mixed(std::array::from_fn(|k| Dual::<f64, 5>::variable(x[k], k, 1.0)));
        let single = mixed(std::array::from_fn(|k| Dual::<f32, 5>::variable(x[k] as f32, k, 1.0)));
        let half = mixed(std::array::from_fn(|k| Dual::<Coarse, 5>::variable(Coarse(x[k] as f32), k, Coarse(1.0))));
        assert!((dual.value() - mixed(x)).abs() <= 1e-12, "{x:?}");
        for k in 0..5 {
            let of = |at: Three<f64>| {
                let mut operands = x;
                operands[k] = at[0];
                mixed(operands)
            };
            let Some(expected) = difference(&of, [x[k], 0.0, 0.0], 0) else { continue };
            compared += 1;
            let got = dual.gradient(k);
            assert!((got - expected).abs() < 2e-5 * expected.abs().max(1.0), "{k} at {x:?}: {got}, not {expected}");
            let off = (f64::from(single.gradient(k)) - got).abs() / got.abs().max(1.0);
            worst = worst.max(off);
            assert!((f64::from(half.gradient(k).0) - got).abs() < 2e-3 * got.abs().max(1.0), "{k} at {x:?}");
        }
    }
    assert!(compared > 20_000, "{compared}");
    assert!(worst < 2e-5, "{worst}");
}

/// A dual number is a compute type, so there are dual numbers of dual numbers.
#[test]
fn second_derivatives() {
    type Second = Dual<Dual<f64, 1>, 1>;
    let second = |f: fn(Second) -> Second, x: f64| {
        f(Dual::variable(Dual::variable(x, 0, 1.0), 0, Dual::ONE)).gradient(0).gradient(0)
    };
    for x in [0.3_f64, 1.0, 2.5] {
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-12, "{got}, not {expected} at {x}");
        close(second(|x| x * x * x, x), 6.0 * x);
        close(second(|x| x.ln(), x), -1.0 / (x * x));
        close(second(|x| x.tanh(), x), -2.0 * x.tanh() / x.cosh().powi(2));
        close(second(|x| x.pow(<Second as Real>::constant(3.0)), x), 6.0 * x);
        close(second(|x| x.sin().recip(), x), (1.0 + x.cos().powi(2)) / x.sin().powi(3));
    }
}

/// Steps in f32 with exact functions, as in the tests of rows.
#[test]
fn with_exact_functions_the_steps_are_those_by_hand() {
    let mut random = Random(23);
    for rule in rules::all() {
        if OTHERWISE.contains(&rule.name) || ROUNDED_OTHERWISE.contains(&rule.name) {
            continue;
        }
        for i in 0..5_000 {
            let (x, grad) = (operands(&mut random, i).map(Stepped), Stepped(seed(&mut random, i / 4)));
            let (by_hand, derived) = ((rule.by_hand.stepped)(grad, x), (rule.derived.stepped)(grad, x));
            for k in 0..rule.operands {
                let (a, b) = (by_hand[k].0, derived[k].0);
                assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{} {k}: {a:e} {b:e}", rule.name);
            }
        }
    }
}

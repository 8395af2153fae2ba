//! Angles in fixed point, and position encodings by them, against f64.

use pointwise_core::family::generator::{Alibi, AlibiCausal, Sinusoidal, SinusoidalHalves, alibi_slope};
use pointwise_core::maths::phase::{exp2_f64, multiple, phase_of_exp2, sincos_phase, sincos_phase_coarse};
use pointwise_core::op::{GROUP, RUN};
use pointwise_core::{DescribedOp, GeneratorOp};

fn ulp(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2.0_f64.powi(exponent.max(-126) - 23)
}

#[test]
fn powers_of_two() {
    for i in -4000..4000 {
        let x = f64::from(i) * 0.017_3;
        let exact = x.exp2();
        assert!((exp2_f64(x) - exact).abs() <= exact * 2.0_f64.powi(-50), "{x}");
    }
    for n in -30..30 {
        assert_eq!(exp2_f64(f64::from(n)), 2.0_f64.powi(n));
    }
}

#[test]
fn phases_of_frequencies() {
    for i in 0..=1000 {
        let exponent = -13.3 * f64::from(i) / 1000.0;
        let exact = exponent.exp2() / std::f64::consts::TAU * 2.0_f64.powi(64);
        let error = (phase_of_exp2(exponent) as f64 - exact).abs();
        assert!(error <= exact * 2.0_f64.powi(-47), "{exponent}: {error} of {exact}");
    }
}

#[test]
fn sine_and_cosine_of_a_phase() {
    let mut worst = 0.0_f64;
    // The worst relative error of the coarse functions, beyond a fixed part.
    let mut coarse = 0.0_f64;
    let mut check = |phase: u64| {
        // The nearest quarter turn is taken off exactly: f64 has too few bits for the whole phase.
        let quarter = phase.wrapping_add(1 << 61) >> 62;
        let angle = (phase << 2) as i64 as f64 * 2.0_f64.powi(-64) * std::f64::consts::FRAC_PI_2;
        let (s, c) = angle.sin_cos();
        let (s, c) = [(s, c), (c, -s), (-s, -c), (-c, s)][quarter as usize & 3];
        let (sin, cos) = sincos_phase(phase);
        for (got, exact) in [(sin, s), (cos, c)] {
            worst = worst.max((f64::from(got) - exact).abs() / ulp(exact));
        }
        let (sin, cos) = sincos_phase_coarse(phase);
        for (got, exact) in [(sin, s), (cos, c)] {
            coarse = coarse.max(((f64::from(got) - exact).abs() - 2.0_f64.powi(-31)) / exact.abs());
        }
    };
    for i in 0..200_000_u64 {
        check(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // Near the axes, and near the eighths of a turn.
        check(((i % 8) << 61).wrapping_add(i * i).wrapping_sub(1 << 30));
        check(((i % 8) << 61).wrapping_add(i << 40));
    }
    println!("worst error: {worst:.2} ulp; coarse 2^{:.2}", coarse.log2());
    assert!(coarse <= 2.0_f64.powi(-22), "2^{}", coarse.log2());
    assert!(worst <= 3.0, "{worst} ulp");
    assert_eq!(sincos_phase(0), (0.0, 1.0));
    assert_eq!(sincos_phase(1 << 62).0, 1.0);
    assert_eq!(sincos_phase(1 << 63).1, -1.0);
    assert_eq!(sincos_phase_coarse(0), (0.0, 1.0));
}

#[test]
fn multiples_wrap() {
    for i in 0..10_000_u64 {
        let (a, b) = (i.wrapping_mul(0x9E37_79B9) as u32, i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        assert_eq!(multiple(a, b), u64::from(a).wrapping_mul(b));
    }
}

/// Returns the element of a row in its group, after another group, in a result of 16 bits.
fn in_group<O: GeneratorOp>(op: O, column: u32, row: u32) -> f32 {
    let (mut column, mut value) = (op.column(0, column), f32::NAN);
    for at in (row & !(GROUP - 1)).saturating_sub(GROUP)..=row {
        if at % GROUP == 0 {
            column = op.begin_group(column, at);
        }
        (value, column) = op.next_of_group(column, at);
    }
    value
}

#[test]
fn sinusoidal_against_f64_up_to_two_to_the_31() {
    for d_model in [2_u32, 6, 64, 512, 4096] {
        let op = Sinusoidal::new(d_model);
        let halves = SinusoidalHalves::from_words(op.words(d_model));
        for pair in (0..d_model / 2).step_by((d_model as usize / 64).max(1)) {
            let w = 10_000_f64.powf(-2.0 * f64::from(pair) / f64::from(d_model));
            for p in [0, 1, 2, 3, 100, 4095, 65_537, 131_071, 1_000_003, 1 << 24, (1 << 24) + 1, (1 << 31) - 1] {
                let angle = f64::from(p) * w;
                // f64 rounds the angle, and our frequency has its own error.
                let slack = angle * 2.0_f64.powi(-46);
                for (column, split, exact) in
                    [(2 * pair, pair, angle.sin()), (2 * pair + 1, pair + d_model / 2, angle.cos())]
                {
                    let got = op.element(op.column(0, column), p);
                    let error = (f64::from(got) - exact).abs();
                    assert!(error <= 3.0 * ulp(exact) + slack, "{p} of {pair} in {d_model}: {got}, {exact}");
                    assert_eq!(halves.element(halves.column(0, split), p), got);
                    let slack = slack + 2.0_f64.powi(-22);
                    for coarse in [in_group(op, column, p), in_group(halves, split, p)] {
                        let error = (f64::from(coarse) - exact).abs();
                        assert!(error <= slack, "{p} of {pair} in {d_model}, coarse: {coarse}, {exact}");
                    }
                }
            }
        }
    }
}

/// A row of 8 bits is made from the one before. The errors of a run add up to far less than the rounding to 8 bits.
#[test]
fn runs_of_rows_keep_their_bound() {
    let mut worst = 0.0_f64;
    for d_model in [2_u32, 16, 512] {
        let op = Sinusoidal::new(d_model);
        let halves = SinusoidalHalves::from_words(op.words(d_model));
        for pair in 0..d_model / 2 {
            let w = 10_000_f64.powf(-2.0 * f64::from(pair) / f64::from(d_model));
            for begin in (0..2_000).chain([(1 << 24) / RUN, (1 << 30) / RUN]).map(|run| run * RUN) {
                let mut columns = [op.column(0, 2 * pair), op.column(0, 2 * pair + 1)].map(|c| op.begin(c, begin));
                let mut apart = [pair, pair + d_model / 2].map(|c| halves.begin(halves.column(0, c), begin));
                for row in begin..begin + RUN {
                    let angle = f64::from(row) * w;
                    for (k, exact) in [angle.sin(), angle.cos()].into_iter().enumerate() {
                        let (got, other);
                        (got, columns[k]) = op.next(columns[k], row);
                        (other, apart[k]) = halves.next(apart[k], row);
                        assert_eq!(got, other);
                        worst = worst.max((f64::from(got) - exact).abs() - angle * 2.0_f64.powi(-46));
                    }
                }
            }
        }
    }
    println!("worst error in a run: 2^{:.2}", worst.log2());
    assert!(worst <= 2.0_f64.powi(-18), "2^{}", worst.log2());
}

#[test]
fn slopes_by_the_paper() {
    let slopes = |heads| (0..heads).map(|head| alibi_slope(heads, head).unwrap()).collect::<Vec<_>>();
    assert_eq!(slopes(1), [2.0_f64.powi(-8)]);
    assert_eq!(slopes(2), [2.0_f64.powi(-4), 2.0_f64.powi(-8)]);
    assert_eq!(slopes(8), (1..=8).map(|i| 2.0_f64.powi(-i)).collect::<Vec<_>>());
    let twelve: Vec<f64> = (1..=8).map(f64::from).chain([0.5, 1.5, 2.5, 3.5]).map(|e| (-e).exp2()).collect();
    for (got, exact) in slopes(12).iter().zip(&twelve) {
        assert!((got - exact).abs() <= exact * 1e-15, "{got} {exact}");
    }
    // 3 heads: the slopes of 2 heads, then the first of 4.
    assert_eq!(slopes(3), [2.0_f64.powi(-4), 2.0_f64.powi(-8), 2.0_f64.powi(-2)]);
    assert_eq!((alibi_slope(4, 4), alibi_slope(0, 0)), (None, None));
    assert!(alibi_slope(u32::MAX, u32::MAX - 1).unwrap() < 1.0);
}

#[test]
fn alibi_is_rounded_once() {
    for heads in [1_u32, 5, 12, 32, 100] {
        let (op, causal) = (Alibi::new(heads), AlibiCausal(Alibi::new(heads)));
        for head in 0..heads {
            let slope = alibi_slope(heads, head).unwrap();
            for (i, j) in [(0, 0), (7, 7), (1, 0), (0, 1), (5, 1000), (123_457, 3), (3, 123_457)] {
                let exact = -slope * (f64::from(i) - f64::from(j)).abs();
                let got = op.element(op.column(head, j), i);
                assert!((f64::from(got) - exact).abs() <= 0.501 * ulp(exact), "{heads} {head} {i} {j}");
                let expected = if j > i { f32::NEG_INFINITY } else { got };
                assert_eq!(causal.element(causal.column(head, j), i), expected);
                let (of_8_bits, _) = op.next(op.column(head, j), i);
                assert!((f64::from(of_8_bits) - exact).abs() <= 1.001 * ulp(exact), "{heads} {head} {i} {j}, 8 bits");
                assert!(of_8_bits.is_sign_negative() == (i != j), "{heads} {head} {i} {j}, 8 bits");
                let expected = if j > i { f32::NEG_INFINITY } else { of_8_bits };
                assert_eq!(causal.next(causal.column(head, j), i).0, expected);
            }
        }
    }
}

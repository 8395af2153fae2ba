//! Formulas of the family at single values.

use pointwise::ops::{Hardsigmoid, Lerp};

const INF: f32 = f32::INFINITY;
const MAX: f32 = f32::MAX;
const NAN: f32 = f32::NAN;

/// PyTorch's formula is `min(max(x + 3, 0), 6) * f32(1/6)`, to the bit.
#[test]
fn hardsigmoid_has_the_bits_of_pytorch() {
    for i in 0..1_u32 << 20 {
        for x in [f32::from_bits(i.wrapping_mul(4099)), i as f32 / 65_536.0 - 8.0] {
            if !x.is_nan() {
                let plain = (x + 3.0).clamp(0.0, 6.0) * (1.0_f64 / 6.0) as f32;
                assert_eq!(Hardsigmoid::formula(x).to_bits(), plain.to_bits(), "{x:e}");
            }
        }
    }
}

/// The formula has the two forms of `torch.lerp`.
#[test]
fn lerp_meets_its_ends() {
    let values = [0.0, 1.0, -1.0, 0.1, 3.5e-45, -7.0e37, 1.0e30, -2.5, 16_777_216.0_f32];
    for a in values {
        for b in values {
            assert_eq!(Lerp::formula(a, b, 0.0), a, "lerp({a}, {b}, 0)");
            assert_eq!(Lerp::formula(a, b, 1.0), b, "lerp({a}, {b}, 1)");
        }
    }
    for (a, b, w, expected) in [
        (2.0, 4.0, 0.5, 3.0),
        (2.0, 4.0, 2.0, 6.0),
        (2.0, 4.0, -1.0, 0.0),
        (INF, INF, 0.3, NAN),
        (1.0, INF, 0.3, INF),
        (1.0, INF, 0.7, NAN),
        (INF, 1.0, 0.7, INF),
        (MAX, -MAX, 0.3, -INF),
        (-0.0, -0.0, 0.3, 0.0),
        (NAN, 1.0, 0.0, NAN),
    ] {
        // `+ 0.0`: PyTorch fixes the sign of a zero difference only in the listed case.
        let got = Lerp::formula(a, b, w) + 0.0;
        assert!(
            got.to_bits() == f32::to_bits(expected) || got.is_nan() && expected.is_nan(),
            "lerp({a}, {b}, {w}): {got}"
        );
    }
}

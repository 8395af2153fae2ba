//! f64 operations that differ from Rust's own.

/// Returns the smaller number, -0 before +0; if one is NaN, the other one.
#[inline(always)]
pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b {
        a
    } else if b < a {
        b
    } else {
        f64::from_bits(a.to_bits() | b.to_bits())
    }
}

/// Returns the larger number, +0 before -0; if one is NaN, the other one.
#[inline(always)]
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b {
        a
    } else if b > a {
        b
    } else {
        f64::from_bits(a.to_bits() & b.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_maximum() {
        assert_eq!([min(1.0, 2.0), min(f64::NAN, 2.0), min(1.0, f64::NAN)], [1.0, 2.0, 1.0]);
        assert_eq!([max(1.0, 2.0), max(f64::NAN, 2.0), max(1.0, f64::NAN)], [2.0, 2.0, 1.0]);
        assert!(min(0.0, -0.0).is_sign_negative() && max(-0.0, 0.0).is_sign_positive());
    }
}

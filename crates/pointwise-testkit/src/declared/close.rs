//! Compares a result with its bound.

use pointwise::DType;
use pointwise::element::Format;
use pointwise::info::{Accuracy, OpInfo};
use pointwise_core::{Element, Terms};

use crate::judge::ulp_at;
use crate::with_element;

/// The bound of a result.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) accuracy: Accuracy,
    /// The type of the result.
    pub(super) dtype: DType,
    /// True if the formula computes floats, and the result is whole numbers.
    is_converted: bool,
}

/// The product of two numbers of these magnitudes is a normal number of f32: from 2^-63 to below 2^64.
const NEAR: std::ops::Range<f64> = 1.0 / 9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0;

impl Bound {
    /// The bound of a result of type `dtype`, of an op of that type.
    pub(super) fn new(accuracy: Accuracy, dtype: DType) -> Bound {
        Bound { accuracy, dtype, is_converted: false }
    }

    /// The bound of result `k` of an op on elements of type `dtype`.
    pub(super) fn of(info: &OpInfo, k: usize, dtype: DType) -> Bound {
        let is_converted = info.stored_result(k).is_some_and(|fixed| !fixed.is_float());
        Bound { is_converted, ..Bound::new(info.accuracy, info.result_type(k, dtype)) }
    }

    /// True if a result is right by the exact one alone: within the bound, or the same strange value.
    pub(super) fn holds(self, got: f64, exact: f64) -> bool {
        let Bound { dtype, .. } = self;
        if self.is_converted {
            return got == converted(exact, dtype);
        }
        if !dtype.is_float() {
            return got == exact;
        }
        let nearest = with_element!(dtype, E => E::from_f64(exact).to_f64());
        if got == nearest || got.is_nan() && nearest.is_nan() {
            return true;
        }
        let largest = Format::of(dtype).largest;
        // f32 overflows before the element type does.
        let is_beyond = exact.abs() > largest * 0.95 && got.abs() >= largest * 0.9 && got * exact > 0.0;
        is_beyond && exact.is_finite() || (got - exact).abs() <= self.tolerance(exact)
    }

    /// The bound. Rounded to f32 first, half an ULP of a narrower type may be a little more.
    fn tolerance(self, exact: f64) -> f64 {
        f64::from(self.accuracy.bound(self.dtype)) * ulp_at(self.dtype, exact) * (1.0 + 1e-3)
    }

    /// Returns the fault of a result that does not [hold](Bound::holds), if it has one. `x` are the operands.
    ///
    /// If terms cancel, the bound counts from their size. If a step leaves the normal numbers of f32 because operands are huge or
    /// tiny, any result passes.
    pub(super) fn wrong(self, got: f64, exact: f64, terms: Option<Terms>, x: &[f64]) -> Option<String> {
        let terms = terms.unwrap_or(Terms::exact(exact));
        if self.is_converted {
            // A step that rounds to a whole number may find its neighbour.
            let is_near = (got - converted(exact, self.dtype)).abs() <= 1.0 && self.accuracy != Accuracy::Exact;
            return (!is_near).then(String::new);
        }
        if !self.dtype.is_float() {
            // Integers wrap, which f64 does not; nor has it all of 64 bits.
            let (bits, least) = match self.dtype {
                DType::U8 => (8, 0.0),
                DType::I64 => (53, f64::NEG_INFINITY),
                dtype => (8 * dtype.size() as i32 - 1, f64::NEG_INFINITY),
            };
            let most = 2.0_f64.powi(bits);
            let mut steps = x.iter().chain([&terms.peak, &terms.low]);
            let wraps = self.dtype != DType::Bool && steps.any(|x| x.abs() >= most - 1.0 || *x < least);
            return (!wraps).then(String::new);
        }
        let (distance, tolerance) = ((got - exact).abs(), self.tolerance(exact));
        if distance <= tolerance + self.slack(exact, terms.size) {
            return None;
        }
        let overflows = terms.peak > f64::from(f32::MAX);
        if (overflows || terms.vanishes) && x.iter().any(|x| *x != 0.0 && !NEAR.contains(&x.abs())) {
            return None;
        }
        // The functions of narrow types take subnormal numbers for 0, or keep a few of their bits.
        if terms.vanishes && self.dtype != DType::F32 && distance <= exact.abs() {
            return None;
        }
        Some(if overflows {
            format!(": a step of the formula is {:e}, which f32 does not hold", terms.peak)
        } else if terms.vanishes && !distance.is_finite() {
            ": a step of the formula is so small that it may count as 0".to_owned()
        } else if distance.is_finite() {
            let (ulp, bound) = (distance / ulp_at(self.dtype, exact), self.accuracy.bound(self.dtype));
            format!(": that is {ulp:.3} ULP of {}, of which {bound} are allowed", self.dtype)
        } else {
            String::new()
        })
    }

    /// The error that is allowed beside the bound, where terms of some size cancel.
    fn slack(self, exact: f64, size: f64) -> f64 {
        let (Accuracy::Ulp(ulp) | Accuracy::Cancels(ulp)) = self.accuracy else { return 0.0 };
        if size <= 2.0 * exact.abs() {
            return 0.0;
        }
        match self.dtype {
            DType::F32 => f64::from(ulp.max(2.0)) * (size * f64::from(f32::EPSILON)),
            DType::F16 | DType::BF16 => size / 262_144.0,
            _ => size / 65_536.0,
        }
    }
}

/// Returns the whole number that a float becomes, by the rules of [`pointwise_core::cast`].
fn converted(exact: f64, dtype: DType) -> f64 {
    if dtype == DType::U8 {
        return f64::from((exact as i64) as u8);
    }
    with_element!(dtype, E => E::from_f64(exact).to_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = f32::EPSILON as f64;

    fn wrong(accuracy: Accuracy, dtype: DType, got: f64, size: f64) -> bool {
        let bound = Bound::new(accuracy, dtype);
        let terms = Terms { size, peak: size, ..Terms::exact(1.0) };
        !bound.holds(got, 1.0) && bound.wrong(got, 1.0, Some(terms), &[1.0]).is_some()
    }

    #[test]
    fn what_is_not_close_is_told() {
        use Accuracy::{Exact, Ulp};
        let bad = |accuracy, dtype, got| wrong(accuracy, dtype, got, 1.0);
        assert!(!bad(Exact, DType::F32, 1.0 + STEP / 2.0) && bad(Exact, DType::F32, 1.0 + STEP));
        assert!(!bad(Ulp(2.0), DType::F32, 1.0 + 2.0 * STEP) && bad(Ulp(2.0), DType::F32, 1.0 + 3.0 * STEP));
        assert!(bad(Ulp(2.0), DType::BF16, 1.1) && bad(Ulp(2.0), DType::F32, f64::NAN) && bad(Exact, DType::I32, 2.0));
    }

    #[test]
    fn terms_that_cancel_count() {
        let (near, far) = (1.0 + 10.2 * STEP, 1.0 + 200.0 * STEP);
        assert!(wrong(Accuracy::Ulp(8.0), DType::F32, near, 2.0));
        assert!(!wrong(Accuracy::Ulp(8.0), DType::F32, near, 3.0) && wrong(Accuracy::Ulp(8.0), DType::F32, far, 3.0));
        assert!(!wrong(Accuracy::Ulp(8.0), DType::F32, far, 100.0));
        assert!(wrong(Accuracy::Exact, DType::F32, near, 100.0), "an exact op has no terms");
    }

    #[test]
    fn overflow_is_excused_by_operands() {
        let bound = Bound::new(Accuracy::Ulp(4.0), DType::F32);
        let terms = Some(Terms { size: 1.0, peak: 1e39, ..Terms::exact(1.0) });
        let why = bound.wrong(f64::NAN, 1.0, terms, &[89.0]).unwrap();
        assert!(why.contains("1e39, which f32 does not hold"), "{why}");
        assert_eq!(bound.wrong(f64::NAN, 1.0, terms, &[0.0, 1e30]), None);
        assert_eq!(bound.wrong(f64::NAN, 1.0, terms, &[1e-30]), None);
        let terms = Some(Terms { vanishes: true, ..Terms::exact(f64::INFINITY) });
        assert_eq!(bound.wrong(f64::NAN, f64::INFINITY, terms, &[f64::INFINITY, 1e-44]), None);
        let why = bound.wrong(f64::NAN, 1.0, terms, &[30.0]).unwrap();
        assert!(why.contains("so small that it may count as 0"), "{why}");
        assert!(bound.holds(f64::INFINITY, 1e39) && !bound.holds(f64::NEG_INFINITY, 1e39));
        assert!(!bound.holds(f64::NAN, f64::INFINITY) && bound.holds(f64::NAN, f64::NAN));
    }
}

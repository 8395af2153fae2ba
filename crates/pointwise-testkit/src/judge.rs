//! Compares results with exact values: distances in ULP, and the bounds of ops.

use std::fmt;

use pointwise::element::{Format, is_fp8};
use pointwise::{
    DType, Error, ErrorKind, Number, Result,
    info::{Accuracy, OpInfo},
    kernel::OpDef,
};
use pointwise_core::{Element, Value};

use crate::with_element;

/// The comparison of an op's results in one type with the exact ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Elements compared. Elements whose operand f64 cannot hold are left out.
    pub compared: u64,
    /// Results that are not the exact value correctly rounded.
    pub not_rounded: u64,
    /// The largest distance from the exact value of a result that is not correctly rounded, in ULP of its type; 0 if
    /// all are.
    pub worst_ulp: f64,
    /// The operands of that result, up to three.
    pub worst_at: [f64; 3],
    /// The result there, and the exact value.
    pub worst: [f64; 2],
    /// Results with a distance: numbers where a number is right.
    pub measured: u64,
    /// The sum of their distances, in ULP; at most half an ULP from each correctly rounded result.
    pub ulp_sum: f64,
    /// The number of operands in [`Report::worst_at`].
    operands: usize,
}

/// The right result for one element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The value whose rounding to the result's type is right.
    pub(crate) right: f64,
    /// The value that distances are measured from.
    pub(crate) exact: f64,
    /// The error that does not count.
    pub(crate) allowed: f64,
}

impl From<f64> for Expected {
    fn from(exact: f64) -> Expected {
        Expected { right: exact, exact, allowed: 0.0 }
    }
}

impl Report {
    /// Returns the report of two parts together.
    #[must_use]
    pub fn merge(self, other: Report) -> Report {
        let worse = if other.worst_ulp > self.worst_ulp { other } else { self };
        Report {
            compared: self.compared + other.compared,
            not_rounded: self.not_rounded + other.not_rounded,
            measured: self.measured + other.measured,
            ulp_sum: self.ulp_sum + other.ulp_sum,
            ..worse
        }
    }

    /// Returns the mean distance from the exact value, in ULP; 0 without results.
    #[must_use]
    pub fn mean_ulp(&self) -> f64 {
        self.ulp_sum / self.measured.max(1) as f64
    }

    /// True if results of type `result` keep the op's bound. `with_share` asks for more of 16-bit types if every code
    /// was compared: all but one of 200 must be correctly rounded.
    #[must_use]
    pub fn keeps(&self, accuracy: Accuracy, result: DType, with_share: bool) -> bool {
        let share = match (accuracy, result) {
            (Accuracy::Exact, _) => 0.0,
            _ if is_fp8(result) => 0.0,
            (Accuracy::Ulp(_) | Accuracy::Cancels(_), DType::F16 | DType::BF16) if with_share => 0.005,
            _ => 1.0,
        };
        let allowed = (self.compared as f64 * share).floor() as u64;
        // Half an ULP and the oracle's own error.
        self.worst_ulp <= f64::from(accuracy.bound(result)) + 1e-6 && self.not_rounded <= allowed
    }

    /// Counts the result `y` of operands `x`.
    pub(crate) fn add<R: Element>(&mut self, x: &[f64], expected: Expected, y: R, result: DType) {
        let got = y.to_f64();
        let Expected { right, exact, allowed } = expected;
        if !result.is_float() {
            // Two's complement wraps.
            let wrapped = (right as i128).to_le_bytes();
            let is_right =
                if result == DType::Bool { right == got } else { as_bytes(&y) == &wrapped[..size_of::<R>()] };
            return self.count(x, is_right, [got, right]);
        }
        let nearest = R::from_f64(right).to_f64();
        let same = nearest == got && nearest.is_sign_negative() == got.is_sign_negative();
        if got.is_nan() || nearest.is_nan() {
            return self.count(x, nearest.is_nan() && got.is_nan(), [got, exact]);
        }
        let distance = apart(got, exact, nearest, result);
        self.measured += 1;
        self.ulp_sum += distance;
        let ulp = if same {
            0.0
        } else if got == nearest && allowed == 0.0 {
            // Zeros of different sign have no distance, and are still not the same.
            f64::INFINITY
        } else if (got - exact).abs() <= allowed {
            0.0
        } else {
            distance
        };
        self.note(x, same, ulp, [got, exact]);
    }

    /// Counts a result that is right or wrong.
    pub(crate) fn count(&mut self, x: &[f64], is_right: bool, worst: [f64; 2]) {
        self.note(x, is_right, if is_right { 0.0 } else { f64::INFINITY }, worst);
    }

    fn note(&mut self, x: &[f64], is_right: bool, ulp: f64, worst: [f64; 2]) {
        self.compared += 1;
        self.not_rounded += u64::from(!is_right);
        if ulp > self.worst_ulp {
            self.operands = x.len().min(3);
            self.worst_at = std::array::from_fn(|k| x.get(k).copied().unwrap_or(0.0));
            (self.worst_ulp, self.worst) = (ulp, worst);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.worst_ulp > 0.0 {
            let x: Vec<String> = self.worst_at[..self.operands].iter().map(|x| format!("{x:e}")).collect();
            let ([got, exact], ulp) = (self.worst, self.worst_ulp);
            let ulp = if ulp.is_finite() { format!("{ulp:.4} ULP") } else { "wrong".to_owned() };
            write!(f, "{ulp} at {}: {got:e}, not {exact:e}; ", x.join(", "))?;
        }
        write!(f, "{} of {} not correctly rounded", self.not_rounded, self.compared)
    }
}

/// Compares results `y` of type `result` with the exact values: floats with the value correctly rounded, integers with
/// the whole number, wrapped. A missing result, or one too many, is wrong. [`Report::worst_at`] holds the element's
/// index.
#[must_use]
pub fn compare(result: DType, y: &[u8], exact: impl IntoIterator<Item = f64>) -> Report {
    with_element!(result, R => {
        let mut report = Report::default();
        let (mut results, mut exact) = (y.chunks(size_of::<R>()), exact.into_iter());
        loop {
            let at = [report.compared as f64];
            match (results.next(), exact.next()) {
                (Some(y), Some(exact)) => report.add(&at, exact.into(), from_bytes::<R>(y), result),
                (None, None) => return report,
                (y, exact) => {
                    let got = y.map_or(f64::NAN, |y| from_bytes::<R>(y).to_f64());
                    report.count(&at, false, [got, exact.unwrap_or(f64::NAN)]);
                }
            }
        }
    })
}

/// Compares the results `y` of an op of one operand on `x`, both as bytes, with its formula at f64.
///
/// # Errors
/// Fails if the op does not take the element type or a parameter, or if there are not as many results as operands.
pub fn unary(def: &OpDef, dtype: DType, params: &[Number], x: &[u8], y: &[u8]) -> Result<Report> {
    let result = def.info.result_type(0, dtype);
    let oracle = def.oracle(dtype, params)?;
    same_length(&[(dtype, x), (result, y)])?;
    let mut report = Report::default();
    with_element!(dtype, E => with_element!(result, R => {
        for (code, y) in x.chunks_exact(size_of::<E>()).zip(y.chunks_exact(size_of::<R>())) {
            let (x, y) = (from_bytes::<E>(code), from_bytes::<R>(y));
            let Some(oracle) = &oracle else {
                // An op on bits has no formula at f64.
                let (x, got) = (integer(dtype, code), y.to_f64());
                let right = crate::formulas::unary_integer(def.info.name, dtype, x);
                let is_right = right.is_some_and(|right| as_bytes(&y) == &right.to_le_bytes()[..size_of::<R>()]);
                report.count(&[x as f64], is_right, [got, right.map_or(f64::NAN, |right| right as f64)]);
                continue;
            };
            let wide = x.to_f64();
            let exact = oracle.of(&[wide]);
            if !dtype.is_float() && !is_exact(integer(dtype, code), wide, exact) {
                continue;
            }
            report.add(&[wide], exact.into(), y, result);
        }
    }));
    Ok(report)
}

/// Returns the error that tells how many operands an op has.
pub(crate) fn wrong_count(info: &OpInfo, got: usize) -> Error {
    let why = format!("{} has {}: {}", info.name, info.operands.len(), info.operands.join(", "));
    ErrorKind::Parameter { name: "operands", value: got.to_string(), why }.into()
}

/// Fails unless operands and results have the same number of elements.
pub(crate) fn same_length(tensors: &[(DType, &[u8])]) -> Result<()> {
    let lengths: Vec<usize> = tensors.iter().map(|(dtype, bytes)| bytes.len() / dtype.size()).collect();
    match lengths.iter().find(|&&length| length != lengths[0]) {
        None => Ok(()),
        Some(other) => {
            let why = format!("operands and results must have as many elements: the first has {}", lengths[0]);
            Err(ErrorKind::Parameter { name: "elements", value: other.to_string(), why }.into())
        }
    }
}

/// True if f64 holds an integer and the formula's result of it: at most 53 bits, or the operand's bits. Beyond that f64
/// rounds, where integers wrap.
fn is_exact(x: i128, wide: f64, exact: f64) -> bool {
    wide as i128 == x && (exact.abs() <= 9e15 || exact.abs() == wide.abs())
}

/// Returns the distance of a float result from the exact value, in ULP of its type; 0 if it is correctly rounded.
#[must_use]
pub fn distance(dtype: DType, exact: f64, result: &[u8]) -> f64 {
    compare(dtype, result, [exact]).worst_ulp
}

/// Returns the distance between two elements, in ULP at the second; infinite if only one is NaN.
#[must_use]
pub fn ulp_apart(dtype: DType, a: &[u8], b: &[u8]) -> f64 {
    with_element!(dtype, E => {
        let (a, b) = (from_bytes::<E>(a).to_f64(), from_bytes::<E>(b).to_f64());
        match (a.is_nan(), b.is_nan()) {
            (true, true) => 0.0,
            (false, false) if dtype.is_float() => apart(a, b, b, dtype),
            (false, false) => (a - b).abs(),
            _ => f64::INFINITY,
        }
    })
}

/// Returns the distance between two numbers, in ULP of a type at `nearest`.
fn apart(got: f64, exact: f64, nearest: f64, dtype: DType) -> f64 {
    // Infinity counts as the next number after the largest; a type without infinities saturates.
    let Format { largest, has_infinity, .. } = Format::of(dtype);
    let beyond = if has_infinity { largest + ulp_at(dtype, largest) } else { largest };
    let finite = |value: f64| if value.abs() > beyond { beyond.copysign(value) } else { value };
    (finite(got) - finite(exact)).abs() / ulp_at(dtype, nearest)
}

/// Returns the unit in the last place of a float type at `value`. A value above the type's largest counts as the
/// largest.
#[must_use]
pub fn ulp_at(dtype: DType, value: f64) -> f64 {
    let Format { largest, digits, least, .. } = Format::of(dtype);
    let magnitude = value.abs().min(largest);
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(least);
    f64::from_bits(((exponent - digits + 1023) as u64) << 52)
}

/// Wraps a whole number to a type's bits, in two's complement. For bool it is 1 unless the number is 0.
pub(crate) fn wrapped(dtype: DType, x: i128) -> i128 {
    match dtype {
        DType::I8 => i128::from(x as i8),
        DType::I16 => i128::from(x as i16),
        DType::I32 => i128::from(x as i32),
        DType::U8 => i128::from(x as u8),
        DType::Bool => i128::from(x != 0),
        _ => i128::from(x as i64),
    }
}

/// Reads an element of an integer type or bool.
pub(crate) fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let mut wide = [0_u8; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    wrapped(dtype, i128::from(i64::from_le_bytes(wide)))
}

/// Reads an element from its bytes. Missing bytes are 0.
#[must_use]
pub fn from_bytes<E: Element>(bytes: &[u8]) -> E {
    let mut whole = [0_u8; 8];
    let len = bytes.len().min(size_of::<E>()).min(8);
    whole[..len].copy_from_slice(&bytes[..len]);
    // SAFETY: an element type is a plain number of at most 8 bytes, valid for every bit pattern (`Bool` reads any byte).
    unsafe { whole.as_ptr().cast::<E>().read_unaligned() }
}

/// Returns an element's bytes.
#[must_use]
pub fn as_bytes<E: Element>(x: &E) -> &[u8] {
    // SAFETY: an element type is a plain number without padding, borrowed for as long as its bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(x).cast::<u8>(), size_of::<E>()) }
}

/// Returns the index of the first element that differs in two results: it has different bits, unless both are NaN, or
/// it is missing in one.
#[must_use]
pub fn same_bits(dtype: DType, a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    with_element!(dtype, E => {
        let size = size_of::<E>();
        let differs = |(a, b): (&[u8], &[u8])| {
            a != b && !(from_bytes::<E>(a).widen().is_nan() && from_bytes::<E>(b).widen().is_nan())
        };
        let first = a.chunks(size).zip(b.chunks(size)).position(differs);
        first.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len()) / size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    #[test]
    fn distances() {
        let of = |exact: f64, got: f32| distance(DType::F32, exact, &got.to_le_bytes());
        assert_eq!(of(1.0, 1.0_f32.next_up()), 1.0);
        assert_eq!(of(f64::from(f32::from_bits(1)), 0.0), 1.0);
        assert_eq!(of(f64::from(f32::MAX), f32::INFINITY), 1.0);
        assert_eq!(of(1.0 + 1e-9, 1.0), 0.0, "correctly rounded");
        assert!(of(1.0, f32::NAN).is_infinite() && of(0.0, -0.0).is_infinite());
        let [a, b] = [448.0, 416.0].map(|x| pointwise::F8E4M3::from_f32(x).to_bits());
        assert_eq!(ulp_apart(DType::F8E4M3, &[a], &[b]), 1.0);
        assert_eq!(
            [1.0, 1e-40, 1e300].map(|x| ulp_at(DType::BF16, x)),
            [2_f64.powi(-7), 2_f64.powi(-133), 2_f64.powi(120)]
        );
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let exact = [0.0, 1.0, 2.0];
        let report = |dtype, y: &[u8]| compare(dtype, y, exact);
        let good = report(DType::F32, &f32s(&[0.0, 1.0, 2.0]));
        assert!(good.keeps(Accuracy::Exact, DType::F32, false) && good.to_string() == "0 of 3 not correctly rounded");
        let off = report(DType::F32, &f32s(&[0.0, 1.0_f32.next_up(), 2.0]));
        assert!(off.keeps(Accuracy::Ulp(1.0), DType::F32, false) && !off.keeps(Accuracy::Ulp(0.9), DType::F32, false));
        assert!(!off.keeps(Accuracy::Exact, DType::F32, false));
        assert_eq!(off.to_string(), "1.0000 ULP at 1e0: 1.0000001192092896e0, not 1e0; 1 of 3 not correctly rounded");
        let half: Vec<u8> =
            [0.0, 1.000_976_6, 2.0].iter().flat_map(|&x| pointwise::f16::from_f32(x).to_le_bytes()).collect();
        let half = report(DType::F16, &half);
        assert!(half.keeps(Accuracy::Ulp(1.0), DType::F16, false) && !half.keeps(Accuracy::Ulp(1.0), DType::F16, true));
        assert!(!report(DType::I8, &[0, 1, 3]).keeps(Accuracy::Exact, DType::I8, false));
        assert!(compare(DType::Bool, &[0, 1], [0.0, 1.0]).keeps(Accuracy::Exact, DType::Bool, false));
        for y in [&[-0.0, 1.0, 2.0][..], &[0.0, 1.0], &[0.0, 1.0, 2.0, 3.0]] {
            assert!(!report(DType::F32, &f32s(y)).keeps(Accuracy::Ulp(4.0), DType::F32, false), "{y:?}");
        }
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(wrapped(DType::I8, 128), -128);
        assert_eq!(wrapped(DType::U8, -1), 255);
        assert_eq!(wrapped(DType::Bool, 2), 1);
        assert_eq!(wrapped(DType::I64, 1 << 63), i128::from(i64::MIN));
        assert!(is_exact(1 << 62, 2_f64.powi(62), -(2_f64.powi(62))) && !is_exact(1 << 62, 2_f64.powi(62), 1e18));
    }

    #[test]
    fn bits_of_nan_do_not_count() {
        let [a, b] = [f32s(&[1.0, f32::NAN]), f32s(&[1.0, -f32::NAN])];
        assert_eq!(same_bits(DType::F32, &a, &b), None);
        assert_eq!(same_bits(DType::I32, &a, &b), Some(1));
        assert_eq!(same_bits(DType::F32, &a, &b[..4]), Some(1));
        assert_eq!(from_bytes::<i32>(&[1]), 1);
    }
}

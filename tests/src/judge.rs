//! Results against the oracle.

use pointwise::{Accuracy, DType, Number, UnaryDef};
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{Element, Value};

use crate::with_element;

/// How the results of one op in one type compare with the exact ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Elements compared; those whose operand f64 cannot hold are not.
    pub compared: u64,
    /// Results that are not the exact value correctly rounded.
    pub not_rounded: u64,
    /// The largest distance from the exact value of a result that is not correctly rounded, in ULP of its type; 0 if
    /// all are.
    pub worst_ulp: f64,
    /// The operands of that.
    pub worst_at: [f64; 3],
    /// Results that are numbers where a number must come out: those of which a distance can be told.
    pub measured: u64,
    /// The sum of their distances, in ULP; half of an ULP at most from each that is correctly rounded.
    pub ulp_sum: f64,
}

impl Report {
    /// The report of two parts.
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

    /// The mean distance from the exact value, in ULP; 0 of no result.
    #[must_use]
    pub fn mean_ulp(&self) -> f64 {
        self.ulp_sum / self.measured.max(1) as f64
    }

    /// Whether the op's bound is kept. `all_codes` says that every code of a 16-bit type was compared, so that the
    /// share of correctly rounded results can be judged.
    #[must_use]
    pub fn keeps(&self, accuracy: Accuracy, result: DType, all_codes: bool) -> bool {
        let share = match (accuracy, result) {
            (Accuracy::Exact, _) | (_, DType::F8E4M3 | DType::F8E5M2) => 0.0,
            (Accuracy::Ulp(_) | Accuracy::Cancels(_), DType::F16 | DType::BF16) if all_codes => 0.005,
            _ => 1.0,
        };
        let allowed = (self.compared as f64 * share).floor() as u64;
        // Half an ULP and the oracle's own error.
        self.worst_ulp <= f64::from(accuracy.bound(result)) + 1e-6 && self.not_rounded <= allowed
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.4} ULP at {:e}, {} of {} not correctly rounded",
            self.worst_ulp, self.worst_at[0], self.not_rounded, self.compared
        )
    }
}

/// Compares the results `y` of an op on `x`, both as bytes.
///
/// # Panics
/// On parameters the op does not take.
#[must_use]
pub fn unary(def: &UnaryDef, dtype: DType, params: &[Number; MAX_PARAMS], x: &[u8], y: &[u8]) -> Report {
    let result = def.info.result.of(dtype);
    let oracle = def.oracle_for(dtype, params).expect("the parameters are valid");
    with_element!(dtype, E => with_element!(result, R => {
        let mut report = Report::default();
        let (xs, ys) = (x.chunks_exact(size_of::<E>()), y.chunks_exact(size_of::<R>()));
        assert_eq!(xs.len(), ys.len());
        for (x, y) in xs.zip(ys) {
            let x: E = from_bytes(x);
            let wide = x.to_f64();
            // f64 has 53 bits.
            if dtype == DType::I64 && wide.abs() > 9e15 {
                continue;
            }
            let exact = oracle.map_or_else(|| bit_formula(def.info.name, dtype, wide), |oracle| oracle(wide));
            report.add(wide, exact, from_bytes::<R>(y), result);
        }
        report
    }))
}

/// The ops that have no formula in f64.
fn bit_formula(name: &str, dtype: DType, x: f64) -> f64 {
    match (name, dtype) {
        ("bitwise_not", DType::Bool) => 1.0 - x,
        ("bitwise_not", DType::U8) => 255.0 - x,
        ("bitwise_not", _) => -1.0 - x,
        _ => panic!("{name} has neither an oracle nor a formula here"),
    }
}

impl Report {
    pub(crate) fn add<R: Element>(&mut self, x: f64, exact: f64, y: R, result: DType) {
        self.add_at([x, 0.0, 0.0], exact, y, result);
    }

    /// Counts the result `y` of several operands.
    pub(crate) fn add_at<R: Element>(&mut self, x: [f64; 3], exact: f64, y: R, result: DType) {
        self.add_within(x, exact, y, result, 0.0);
    }

    /// As `add_at`, where an error of `allowed` does not count.
    pub(crate) fn add_within<R: Element>(&mut self, x: [f64; 3], exact: f64, y: R, result: DType, allowed: f64) {
        self.compared += 1;
        let got = y.to_f64();
        let (right, ulp) = if result.is_float() {
            let nearest = R::from_f64(exact).to_f64();
            let same = nearest == got && nearest.is_sign_negative() == got.is_sign_negative();
            let right = same || nearest.is_nan() && got.is_nan();
            if !got.is_nan() && !nearest.is_nan() {
                let distance = apart(got, exact, nearest, result);
                self.measured += 1;
                self.ulp_sum += distance;
                let ulp = if right {
                    0.0
                } else if got == nearest && allowed == 0.0 {
                    // Zeros of different sign are no distance apart, and still not the same.
                    f64::INFINITY
                } else if (got - exact).abs() <= allowed {
                    0.0
                } else {
                    distance
                };
                (right, ulp)
            } else {
                (right, if right { 0.0 } else { f64::INFINITY })
            }
        } else {
            let right = wrap(exact, result) == got;
            (right, if right { 0.0 } else { f64::INFINITY })
        };
        self.not_rounded += u64::from(!right);
        if ulp > self.worst_ulp {
            (self.worst_ulp, self.worst_at) = (ulp, x);
        }
    }
}

/// How far a float result lies from the exact value, in ULP of its type; 0 for the exact value correctly rounded.
#[must_use]
pub fn distance(dtype: DType, exact: f64, result: &[u8]) -> f64 {
    with_element!(dtype, E => {
        let mut report = Report::default();
        report.add(exact, exact, from_bytes::<E>(result), dtype);
        report.worst_ulp
    })
}

/// An integer as two's complement wraps it.
fn wrap(exact: f64, dtype: DType) -> f64 {
    let wide = exact as i128;
    match dtype {
        DType::I8 => f64::from(wide as i8),
        DType::I16 => f64::from(wide as i16),
        DType::I32 => f64::from(wide as i32),
        DType::I64 => wide as i64 as f64,
        DType::U8 => f64::from(wide as u8),
        _ => exact,
    }
}

/// How far two numbers lie apart, in ULP of a type at `nearest`.
fn apart(got: f64, exact: f64, nearest: f64, dtype: DType) -> f64 {
    // Infinity counts as the next number after the largest; f8e4m3 has none and saturates.
    let beyond = largest(dtype) + if dtype == DType::F8E4M3 { 0.0 } else { ulp_at(largest(dtype), dtype) };
    let finite = |value: f64| if value.abs() > beyond { beyond.copysign(value) } else { value };
    (finite(got) - finite(exact)).abs() / ulp_at(nearest, dtype)
}

/// How far two elements are apart, in ULP at the second; infinite where one alone is NaN.
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

fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7F7F_0000)),
        DType::F8E4M3 => 448.0,
        DType::F8E5M2 => 57344.0,
        _ => f64::from(f32::MAX),
    }
}

/// The unit in the last place of a type at `value`.
fn ulp_at(value: f64, dtype: DType) -> f64 {
    // Stored significand bits, least exponent of a normal number.
    let (digits, least) = match dtype {
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F8E4M3 => (3, -6),
        DType::F8E5M2 => (2, -14),
        _ => (23, -126),
    };
    let magnitude = value.abs().min(largest(dtype));
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(least);
    f64::from_bits(((exponent - digits + 1023) as u64) << 52)
}

/// An element from its bytes.
///
/// # Panics
/// On another number of bytes than the element's.
#[must_use]
pub fn from_bytes<E: Element>(bytes: &[u8]) -> E {
    assert_eq!(bytes.len(), size_of::<E>());
    // SAFETY: an element type is a plain number, valid for every bit pattern (`Bool` reads any byte), and as long as
    // the slice.
    unsafe { bytes.as_ptr().cast::<E>().read_unaligned() }
}

/// An element's bytes.
#[must_use]
pub fn as_bytes<E: Element>(x: &E) -> &[u8] {
    // SAFETY: an element type is a plain number without padding, borrowed for as long as its bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(x).cast::<u8>(), size_of::<E>()) }
}

/// Whether two results are the same bits, or both NaN.
///
/// # Panics
/// On buffers of different length.
#[must_use]
pub fn same_bits(dtype: DType, a: &[u8], b: &[u8]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    if a == b {
        return None;
    }
    with_element!(dtype, E => {
        let size = size_of::<E>();
        a.chunks_exact(size).zip(b.chunks_exact(size)).position(|(a, b)| {
            a != b && !(from_bytes::<E>(a).widen().is_nan() && from_bytes::<E>(b).widen().is_nan())
        })
    })
}

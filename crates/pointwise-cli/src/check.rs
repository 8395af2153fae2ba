//! Results against the exact values.

use pointwise::{Accuracy, DType};
use pointwise_core::convert;

/// A tensor's elements as numbers.
pub(crate) enum Elements {
    /// Of a float type: f64 has them all.
    Float(Vec<f64>),
    /// Of an integer type or bool.
    Whole(Vec<i64>),
}

impl Elements {
    /// From the elements' bytes, in the machine's order.
    pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Elements {
        fn each<const N: usize, T>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|&chunk| of(chunk)).collect()
        }
        match dtype {
            DType::F32 => Elements::Float(each(bytes, |b| f64::from(f32::from_ne_bytes(b)))),
            DType::F16 => Elements::Float(each(bytes, |b| f64::from(convert::f16_to_f32(u16::from_ne_bytes(b))))),
            DType::BF16 => Elements::Float(each(bytes, |b| f64::from(convert::bf16_to_f32(u16::from_ne_bytes(b))))),
            DType::F8E4M3 => Elements::Float(each(bytes, |[b]| f64::from(convert::e4m3_to_f32(b)))),
            DType::F8E5M2 => Elements::Float(each(bytes, |[b]| f64::from(convert::e5m2_to_f32(b)))),
            DType::I8 => Elements::Whole(each(bytes, |b| i64::from(i8::from_ne_bytes(b)))),
            DType::I16 => Elements::Whole(each(bytes, |b| i64::from(i16::from_ne_bytes(b)))),
            DType::I32 => Elements::Whole(each(bytes, |b| i64::from(i32::from_ne_bytes(b)))),
            DType::I64 => Elements::Whole(each(bytes, i64::from_ne_bytes)),
            DType::U8 | DType::Bool => Elements::Whole(each(bytes, |[b]| i64::from(b))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Elements::Float(values) => values.len(),
            Elements::Whole(values) => values.len(),
        }
    }

    /// The element as f64. Exact for every sample of the tour.
    pub(crate) fn number(&self, at: usize) -> f64 {
        match self {
            Elements::Float(values) => values[at],
            Elements::Whole(values) => values[at] as f64,
        }
    }

    /// Whether both have the same elements; NaN is equal to NaN, and -0 is not equal to 0.
    pub(crate) fn same(&self, other: &Elements) -> bool {
        match (self, other) {
            (Elements::Float(a), Elements::Float(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
            }
            (Elements::Whole(a), Elements::Whole(b)) => a == b,
            _ => false,
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Operands by name, for messages.
pub(crate) type Operands<'a> = [(&'static str, &'a Elements)];

/// `a = 1.0, b = 2.0`.
pub(crate) fn show(operands: &Operands<'_>, at: usize) -> String {
    let each = operands.iter().map(|(name, elements)| match elements {
        Elements::Float(values) => format!("{name} = {:?}", values[at]),
        Elements::Whole(values) => format!("{name} = {}", values[at]),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What the comparison of an op's results came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// The largest error, in ULP; `None` where every result is the correctly rounded value.
    pub(crate) error: Option<f64>,
    /// What the results break, in a sentence.
    pub(crate) fault: Option<String>,
}

impl Verdict {
    /// Of results that cannot be compared.
    pub(crate) fn broken(fault: impl Into<String>) -> Verdict {
        Verdict { error: None, fault: Some(fault.into()) }
    }
}

/// The share of correctly rounded results that 16-bit types are promised where a bound is wider.
const ROUNDED_SHARE: f64 = 0.995;

/// Compares results of type `dtype` with the exact values, one for each element of the operands.
pub(crate) fn compare(dtype: DType, accuracy: Accuracy, got: &Elements, exact: &[f64], x: &Operands<'_>) -> Verdict {
    if got.len() != exact.len() {
        return Verdict::broken(format!("{} results for {} elements", got.len(), exact.len()));
    }
    match got {
        Elements::Float(got) => compare_floats(dtype, accuracy, got, exact, x),
        Elements::Whole(got) => {
            let wanted: Vec<i64> = exact.iter().map(|&value| wrap(dtype, value as i128)).collect();
            compare_whole(got, &wanted, x)
        }
    }
}

/// Compares integers or bools with the right ones.
pub(crate) fn compare_whole(got: &[i64], wanted: &[i64], x: &Operands<'_>) -> Verdict {
    if got.len() != wanted.len() {
        return Verdict::broken(format!("{} results for {} elements", got.len(), wanted.len()));
    }
    let wrong: Vec<usize> = (0..got.len()).filter(|&at| got[at] != wanted[at]).collect();
    let total = got.len();
    let fault = wrong.first().map(|&at| {
        let (x, got, wanted) = (show(x, at), got[at], wanted[at]);
        format!("{} of {total} results are wrong; the first: {x} gives {got}, not {wanted}", wrong.len())
    });
    Verdict { error: None, fault }
}

fn compare_floats(dtype: DType, accuracy: Accuracy, got: &[f64], exact: &[f64], x: &Operands<'_>) -> Verdict {
    let bound = accuracy.bound(dtype);
    let (format, total) = (Format::of(dtype), got.len());
    let (mut worst, mut worst_at, mut wrong, mut off) = (0.0_f64, 0, 0, 0);
    for (at, (&got, &exact)) in got.iter().zip(exact).enumerate() {
        let nearest = round(dtype, exact);
        if same(got, nearest) {
            continue;
        }
        off += 1;
        let error = format.ulp_error(got, exact, nearest);
        // A bound of half a unit is a promise of the nearest value; the errors of the f64 value itself must not decide.
        wrong += usize::from(bound <= 0.5 || error > f64::from(bound));
        if error > worst {
            (worst, worst_at) = (error, at);
        }
    }
    let fault = if wrong > 0 {
        let (x, got, exact) = (show(x, worst_at), got[worst_at], exact[worst_at]);
        let error = if worst.is_finite() { format!(" ({worst:.2} ULP)") } else { String::new() };
        let worst = format!("{x} gives {got:?}, not {exact:?}{error}");
        Some(format!("{wrong} of {total} results beyond {bound} ULP; the worst: {worst}"))
    } else if dtype.size() == 2 && (off as f64) > (1.0 - ROUNDED_SHARE) * total as f64 {
        let share = ROUNDED_SHARE * 100.0;
        Some(format!("{off} of {total} results are not correctly rounded; {share} % should be"))
    } else {
        None
    };
    Verdict { error: (off > 0).then_some(worst), fault }
}

/// The whole number in two's complement of the type's bits; for bool, whether it is not 0.
pub(crate) fn wrap(dtype: DType, value: i128) -> i64 {
    match dtype {
        DType::I8 => i64::from(value as i8),
        DType::I16 => i64::from(value as i16),
        DType::I32 => i64::from(value as i32),
        DType::U8 => i64::from(value as u8),
        DType::Bool => i64::from(value != 0),
        _ => value as i64,
    }
}

/// The value of a float type that is nearest.
fn round(dtype: DType, value: f64) -> f64 {
    f64::from(match dtype {
        DType::F16 => convert::f16_to_f32(convert::f64_to_f16(value)),
        DType::BF16 => convert::bf16_to_f32(convert::f64_to_bf16(value)),
        DType::F8E4M3 => convert::e4m3_to_f32(convert::f64_to_e4m3(value)),
        DType::F8E5M2 => convert::e5m2_to_f32(convert::f64_to_e5m2(value)),
        _ => value as f32,
    })
}

/// Where a float type's values lie.
struct Format {
    mantissa_bits: i32,
    /// Exponents of the smallest normal and of the largest values.
    min: i32,
    max: i32,
}

impl Format {
    fn of(dtype: DType) -> Format {
        let (mantissa_bits, min, max) = match dtype {
            DType::F16 => (10, -14, 15),
            DType::BF16 => (7, -126, 127),
            DType::F8E4M3 => (3, -6, 8),
            DType::F8E5M2 => (2, -14, 15),
            _ => (23, -126, 127),
        };
        Format { mantissa_bits, min, max }
    }

    /// `|got - exact|` in units of the last place at the exact value. Infinite where only one is NaN, and for a zero of
    /// the wrong sign. An infinity counts as the number after the largest.
    fn ulp_error(&self, got: f64, exact: f64, nearest: f64) -> f64 {
        if got.is_nan() || nearest.is_nan() || (got == 0.0 && nearest == 0.0) {
            return if same(got, nearest) { 0.0 } else { f64::INFINITY };
        }
        let top = 2_f64.powi(self.max + 1);
        let exponent = if nearest == 0.0 { self.min } else { (nearest.abs().min(top).log2().floor()) as i32 };
        let ulp = 2_f64.powi(exponent.clamp(self.min, self.max) - self.mantissa_bits);
        (got.clamp(-top, top) - exact.clamp(-top, top)).abs() / ulp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_units_of_the_last_place() {
        let f32s = Format::of(DType::F32);
        let next = f64::from(1.0_f32.next_up());
        assert_eq!(f32s.ulp_error(next, 1.0, 1.0), 1.0);
        assert_eq!(f32s.ulp_error(0.0, f64::from(f32::from_bits(1)), f64::from(f32::from_bits(1))), 1.0);
        assert_eq!(f32s.ulp_error(f64::INFINITY, f64::from(f32::MAX), f64::from(f32::MAX)), 1.0);
        assert!(f32s.ulp_error(f64::NAN, 1.0, 1.0).is_infinite());
        assert!(f32s.ulp_error(-0.0, 0.0, 0.0).is_infinite());
        assert_eq!(Format::of(DType::F8E4M3).ulp_error(448.0, 416.0, 416.0), 1.0);
    }

    #[test]
    fn a_wrong_result_is_a_fault() {
        let x = Elements::Float(vec![0.0, 1.0, 2.0]);
        let x = [("x", &x)];
        let exact = [0.0, 1.0, 2.0];
        let good = Elements::Float(exact.to_vec());
        assert!(compare(DType::F32, Accuracy::Exact, &good, &exact, &x).fault.is_none());
        let off = Elements::Float(vec![0.0, f64::from(1.0_f32.next_up()), 2.0]);
        let verdict = compare(DType::F32, Accuracy::Ulp(1.0), &off, &exact, &x);
        assert!(verdict.fault.is_none() && verdict.error == Some(1.0));
        let more = compare(DType::F32, Accuracy::Ulp(0.9), &off, &exact, &x);
        assert!(more.fault.unwrap().starts_with("1 of 3 results beyond 0.9 ULP"));
        let fault = compare(DType::F32, Accuracy::Exact, &off, &exact, &x).fault.unwrap();
        assert!(fault.starts_with("1 of 3 results beyond 0.5 ULP; the worst: x = 1.0 gives"), "{fault}");
        let share = compare(DType::F16, Accuracy::Ulp(1.0), &Elements::Float(vec![0.0, 1.0009765625, 2.0]), &exact, &x);
        assert!(share.fault.unwrap().contains("not correctly rounded"));
        let whole = Elements::Whole(vec![0, 1, 3]);
        assert!(compare(DType::I32, Accuracy::Exact, &whole, &exact, &x).fault.is_some());
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(wrap(DType::I8, 128), -128);
        assert_eq!(wrap(DType::U8, -1), 255);
        assert_eq!(wrap(DType::Bool, 2), 1);
        assert_eq!(wrap(DType::I64, 1 << 63), i64::MIN);
    }
}

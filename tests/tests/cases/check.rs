//! The expected results of a case: the CPU's.

use pointwise::{DType, Device, Tensor, info::Accuracy};
use pointwise_core::Element;
use pointwise_testkit::{judge, with_element};

use super::ops::Case;

/// The CPU's results of a case, and how close a device must come.
pub(crate) struct Expected {
    results: Vec<(DType, Vec<u8>)>,
    accuracy: Accuracy,
    floor: f64,
}

impl Expected {
    /// Computes the results for one of the two sets of inputs.
    pub(crate) fn new(case: &Case, set: usize) -> Result<Expected, libtest_mimic::Failed> {
        let outputs = Expected::run(case, set)?;
        let results = outputs.iter().map(|y| Ok((y.dtype(), y.to_bytes()?))).collect::<pointwise::Result<_>>()?;
        Ok(Expected { results, accuracy: case.accuracy, floor: case.floor })
    }

    /// The case on the CPU.
    pub(crate) fn run(case: &Case, set: usize) -> Result<Vec<Tensor>, libtest_mimic::Failed> {
        let cpu = Device::cpu();
        let (inputs, mut outputs) = (case.inputs(&cpu, set)?, case.outputs(&cpu)?);
        (case.prepare)(&cpu, None)?(&inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Exact ops, integers and masks: the same bits. Others: both keep their bound, so twice the bound.
    pub(crate) fn check(&self, outputs: &[Tensor]) -> Result<(), String> {
        for (k, ((dtype, expected), output)) in self.results.iter().zip(outputs).enumerate() {
            let got = output.to_bytes().map_err(|error| error.to_string())?;
            let is_exact = self.accuracy == Accuracy::Exact || !dtype.is_float();
            if is_exact {
                if let Some(at) = judge::same_bits(*dtype, &got, expected) {
                    return Err(format!("result {k}: element {at} has other bits than the CPU's"));
                }
                continue;
            }
            let ulp = 2.0 * f64::from(self.accuracy.bound(*dtype));
            with_element!(*dtype, E => {
                let size = size_of::<E>();
                for (at, (got, expected)) in got.chunks_exact(size).zip(expected.chunks_exact(size)).enumerate() {
                    let (a, b) = (judge::from_bytes::<E>(got).to_f64(), judge::from_bytes::<E>(expected).to_f64());
                    let (epsilon, least) = steps(*dtype);
                    let bound = ulp * (epsilon * a.abs().max(b.abs()).max(self.floor)).max(least);
                    let same = a == b || a.is_nan() && b.is_nan();
                    // The bound of an infinity beside a number is infinite, too.
                    let close = (a - b).abs() <= bound && a.is_finite() && b.is_finite();
                    if !(same || close) {
                        return Err(format!("result {k}: element {at} is {a:e}, on the CPU {b:e}"));
                    }
                }
            });
        }
        Ok(())
    }
}

/// The relative step of a float type, and its smallest number.
fn steps(dtype: DType) -> (f64, f64) {
    let (digits, least) = match dtype {
        DType::F16 => (10, -24),
        DType::BF16 => (7, -133),
        DType::F8E4M3 => (3, -9),
        DType::F8E5M2 => (2, -16),
        _ => (23, -149),
    };
    (2.0_f64.powi(-digits), 2.0_f64.powi(least))
}

/// Bytes that are no result of any case: a bool can be nothing but 0 or 1, and half of a mask is 0.
pub(crate) fn poison(output: &Tensor) -> Vec<u8> {
    vec![if output.dtype() == DType::Bool { 1 } else { 0xA5 }; output.byte_len()]
}

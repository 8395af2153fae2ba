//! The tour's verdicts: the outcome of an op on an element type.

use pointwise::{DType, Device, Tensor, info::Accuracy};
use pointwise_testkit::{Report, judge};

use crate::error::{Error, Result};

/// The outcome of the comparison of an op's results.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// The largest error, in ULP; `None` where every result is the correctly rounded value.
    pub(crate) error: Option<f64>,
    /// The rule that the results break, in a sentence.
    pub(crate) fault: Option<String>,
}

impl Verdict {
    /// The verdict on results that are wrong or cannot be compared.
    pub(crate) fn broken(fault: impl Into<String>) -> Verdict {
        Verdict { error: None, fault: Some(fault.into()) }
    }

    /// The verdict on results of type `result`. Most results of 16 bits must be correctly rounded.
    pub(crate) fn of(report: &Report, accuracy: Accuracy, result: DType) -> Verdict {
        let fault = (!report.keeps(accuracy, result, true))
            .then(|| format!("beyond {} ULP, or too often not correctly rounded: {report}", accuracy.bound(result)));
        Verdict { error: (report.not_rounded > 0).then_some(report.worst_ulp), fault }
    }

    /// The verdict of two.
    pub(crate) fn and(self, other: Verdict) -> Verdict {
        let error = self.error.into_iter().chain(other.error).reduce(f64::max);
        Verdict { error, fault: self.fault.or(other.fault) }
    }
}

/// The outcome of an op on a type.
pub(crate) struct Case {
    pub(crate) dtype: DType,
    pub(crate) verdict: Verdict,
}

/// The faults found, in words.
pub(crate) fn faults_of(name: &str, cases: Vec<Case>) -> impl Iterator<Item = String> {
    cases
        .into_iter()
        .filter_map(move |Case { dtype, verdict }| verdict.fault.map(|fault| format!("{name} of {dtype}: {fault}")))
}

/// Runs an op and judges its results' bytes, one tensor behind the other. If the op refuses, it is at fault.
///
/// # Errors
/// The errors of the judge and the device.
pub(crate) fn guarded(
    run: impl Fn() -> Result<Vec<Tensor>>,
    device: &Device,
    dtype: DType,
    judge: impl FnOnce(&[u8]) -> Result<Verdict>,
) -> Result<Case> {
    match twice(run, device) {
        Ok(results) => {
            let mut got = Vec::new();
            for result in &results {
                got.extend(result.to_bytes()?);
            }
            Ok(Case { dtype, verdict: judge(&got)? })
        }
        Err(error) => Ok(Case { dtype, verdict: Verdict::broken(error.to_string()) }),
    }
}

/// The results of two calls, which must be the same.
fn twice(run: impl Fn() -> Result<Vec<Tensor>>, device: &Device) -> Result<Vec<Tensor>> {
    let run = || -> Result<Vec<Tensor>> {
        let y = run()?;
        device.synchronize()?;
        Ok(y)
    };
    let first = run()?;
    let second = run()?;
    for (first, second) in first.iter().zip(&second) {
        if judge::same_bits(first.dtype(), &first.to_bytes()?, &second.to_bytes()?).is_some() {
            return Err(Error::Failed("two runs on the same operands gave different results".to_owned()));
        }
    }
    Ok(first)
}

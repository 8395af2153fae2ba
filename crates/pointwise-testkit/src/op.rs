//! [`Op`]: an op, and the checks of its results.

use pointwise::{DType, Device, Number, Result, Strategy, Tensor, info::OpInfo, kernel::OpDef};

use crate::{Report, calls, formulas, params};

/// An op, whatever its number of operands and results.
#[derive(Clone, Copy, Debug)]
pub struct Op(&'static OpDef);

impl From<&'static OpDef> for Op {
    fn from(def: &'static OpDef) -> Op {
        Op(def)
    }
}

/// The error of a check.
#[derive(Debug)]
pub enum Error {
    /// The library refused a call.
    Library(pointwise::Error),
    /// Results are beyond the op's bound, in words.
    Wrong(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Library(error) => error.fmt(f),
            Error::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<pointwise::Error> for Error {
    fn from(error: pointwise::Error) -> Error {
        Error::Library(error)
    }
}

impl Op {
    /// Returns the row.
    #[must_use]
    pub fn info(self) -> &'static OpInfo {
        &self.0.info
    }

    /// Returns operands to try it on, as bytes: every code of the small types, special and random values of the others.
    #[must_use]
    pub fn operands(self, dtype: DType, seed: u64) -> Vec<Vec<u8>> {
        calls::operands(self.info(), dtype, seed)
    }

    /// Runs the op on operands of one shape, given as bytes. Returns each result as bytes.
    ///
    /// # Errors
    /// Fails if the library refuses the call.
    pub fn run(
        self,
        device: &Device,
        dtype: DType,
        set: &[Number],
        strategy: Strategy,
        operands: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>> {
        let tensors = operands.iter().enumerate().map(|(k, bytes)| {
            let dtype = self.info().operand_type(k, dtype);
            Tensor::from_bytes(device, dtype, bytes, [bytes.len() / dtype.size()])
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        calls::run(self.0, set, strategy, &tensors)?.iter().map(Tensor::to_bytes).collect()
    }

    /// Compares each result with the formula at f64. Gradients are compared with the formula whose steps are all f32:
    /// their bounds refer to it.
    ///
    /// # Errors
    /// Fails if the op does not take the element type or a parameter, or has other operands or results.
    pub fn judge(self, dtype: DType, set: &[Number], operands: &[Vec<u8>], results: &[Vec<u8>]) -> Result<Vec<Report>> {
        calls::reports(self.0, dtype, set, operands, results)
    }

    /// True if a report of the op's results is within its bound. A report of every code of a 16-bit type must keep more
    /// ([`Report::keeps`]).
    #[must_use]
    pub fn keeps(self, report: &Report, dtype: DType) -> bool {
        let info = self.info();
        let accuracy = if formulas::is_stepped(info.name) { pointwise::info::Accuracy::Exact } else { info.accuracy };
        report.keeps(accuracy, info.result_type(0, dtype), calls::is_whole(info, dtype))
    }

    /// Runs the op on a device, in every element type, with its defaults and with other parameters, and compares all
    /// results.
    ///
    /// # Errors
    /// Fails at the first results beyond the op's bound, or if the library refuses a call.
    pub fn check(self, device: &Device) -> std::result::Result<(), Error> {
        let info = self.info();
        for &dtype in info.types {
            let operands = self.operands(dtype, 2);
            for set in params::sets(info, dtype) {
                let results = self.run(device, dtype, &set, Strategy::Auto, &operands)?;
                for report in self.judge(dtype, &set, &operands, &results)? {
                    if !self.keeps(&report, dtype) {
                        let what = format!("{} of {dtype} with {set:?} on {device}: {report}", info.name);
                        return Err(Error::Wrong(what));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn ops_of_every_kind_are_checked() {
        let device = Device::cpu();
        for name in ["silu", "isnan", "add", "where", "silu_and_mul", "lerp", "exp_backward", "mul_backward"] {
            Op::from(pointwise::info::op(name).unwrap()).check(&device).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let add = Op::from(pointwise::info::op("add").unwrap());
        let set: [Number; 0] = [];
        let error = add.run(&Device::cpu(), DType::F32, &set, Strategy::Auto, &[vec![0; 4]]).unwrap_err();
        assert!(error.to_string().contains("add with 1 operands: it has 2: a, b"), "{error}");
        let x = 1.0_f32.to_le_bytes().to_vec();
        let report = add.judge(DType::F32, &set, &[x.clone(), x.clone()], from_ref(&x)).unwrap()[0];
        assert!(!add.keeps(&report, DType::F32));
        assert!(report.to_string().contains("at 1e0, 1e0: 1e0, not 2e0"), "{report}");
        assert!(add.judge(DType::F32, &set, from_ref(&x), from_ref(&x)).is_err());
    }
}

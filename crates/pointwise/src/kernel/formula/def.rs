//! The definition of an op.

use pointwise_core::formula::{Formula, MAX_INPUTS, MAX_OUTPUTS, OpData, ParamWords};
use pointwise_core::{DType, Element, OpInfo, row};

use super::call::Kernel;
use super::gated::GatedGradientsKernel;
use super::words;
use crate::Number;
use crate::cpu::{FormulaFn, formula};
use crate::embed::Kernels;
use crate::error::Result;
use crate::kernel::{Class, Entry, Made, check};

/// The formula at a compute type of references: operands (a bool as 0 or 1), parameters, the random word of the element.
pub type OracleFn = fn(&[f64; MAX_INPUTS], &ParamWords, u32) -> [f64; MAX_OUTPUTS];

/// An op in one element type: its loop and its kernels.
#[derive(Debug)]
pub struct Typed {
    dtype: DType,
    source: u64,
    row: u64,
    cpu: FormulaFn,
    entries: [Entry; Class::ALL.len()],
}

impl Typed {
    /// The op `O` on elements `E`. `symbols` name its kernels in `kernels`, in the order of [`Class::ALL`]; `source` is
    /// the hash of the text that they were compiled from.
    #[must_use]
    pub const fn new<E, O, const N: usize, const R: usize>(
        symbols: [&'static str; Class::ALL.len()],
        source: u64,
        kernels: &'static Kernels,
    ) -> Typed
    where
        E: Element,
        O: OpData + Formula<E::Compute, N, R>,
    {
        let row = row::of_formula::<E, O, N, R>(source);
        let [flat, rows, strided] = symbols;
        Typed {
            dtype: E::DTYPE,
            source,
            row,
            cpu: formula::<E, O, N, R>,
            entries: [
                Entry::new(flat, row, kernels),
                Entry::new(rows, row, kernels),
                Entry::new(strided, row, kernels),
            ],
        }
    }
}

/// An op as the host knows it: what `#[op]` makes of a function, and a table of a row.
#[derive(Debug)]
pub struct OpDef {
    /// Name, operands, results, parameters, types, bounds.
    pub info: OpInfo,
    types: &'static [Typed],
    oracle: Option<OracleFn>,
    stepped: Option<OracleFn>,
    /// The op that gives its gradients, if it has any.
    pub backward: Option<&'static OpDef>,
    #[expect(dead_code, reason = "that it is there says who made the definition")]
    made: Made,
}

impl OpDef {
    /// The op whose data are `info`. `oracle` is the formula in f64, `None` for an op that floats do not have; `stepped`
    /// rounds every step to f32, `None` where nobody asks for that.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: `types` are not all of the op that `info` is the data of.
    ///
    /// # Safety
    /// It is the value of a static: of a definition that can be moved, safe code could replace parts.
    #[must_use]
    #[track_caller]
    pub const unsafe fn new(
        info: OpInfo,
        types: &'static [Typed],
        oracle: Option<OracleFn>,
        stepped: Option<OracleFn>,
        backward: Option<&'static OpDef>,
    ) -> OpDef {
        let mut k = 0;
        while k < types.len() {
            row::check_data(&info, types[k].source, types[k].row);
            k += 1;
        }
        // SAFETY: the types have been checked against the data; the caller's contract.
        OpDef { info, types, oracle, stepped, backward, made: unsafe { Made::of_a_row() } }
    }

    /// The op with parameters, in the order of [`OpInfo::params`]; those that are left out have their defaults.
    pub fn kernel(&'static self, params: &[Number]) -> Kernel<'static> {
        Kernel::new(self, params)
    }

    /// The gradients of a gated op with parameters.
    pub fn gated_gradients(&'static self, params: &[Number]) -> GatedGradientsKernel {
        GatedGradientsKernel(Kernel::new(self, params))
    }

    /// The loop for elements of a type.
    pub(super) fn cpu(&self, dtype: DType) -> Result<FormulaFn> {
        Ok(self.typed(dtype)?.cpu)
    }

    /// The kernel of a class for elements of a type.
    ///
    /// # Errors
    /// A type that the op does not take.
    pub fn entry(&self, dtype: DType, class: Class) -> Result<&Entry> {
        Ok(&self.typed(dtype)?.entries[class as usize])
    }

    fn typed(&self, dtype: DType) -> Result<&Typed> {
        let found = self.types.iter().find(|typed| typed.dtype == dtype);
        found.ok_or_else(|| check::wrong_dtype(&self.info, dtype))
    }

    /// The formula in f64 for elements of type `dtype`: of operands (a bool as 0 or 1) and the element's random word;
    /// `None` for an op that floats do not have.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle(&self, dtype: DType, params: &[Number]) -> Result<Option<Oracle>> {
        check::dtype(&self.info, dtype)?;
        let words = words::oracle_params(&self.info, params, dtype)?;
        let results = self.info.results.len();
        Ok(self.oracle.map(|formula| Oracle { formula, words, results }))
    }

    /// As [`OpDef::oracle`], for elements that are f64 themselves: parameters are as they were given.
    ///
    /// # Errors
    /// A parameter that the op does not take.
    pub fn double(&self, params: &[Number]) -> Result<Option<Oracle>> {
        let words = words::exact_params(&self.info, params)?;
        let results = self.info.results.len();
        Ok(self.oracle.map(|formula| Oracle { formula, words, results }))
    }

    /// As [`OpDef::oracle`], with operands, parameters and every step rounded to f32 once: what the bound of a family's
    /// gradient is about. `None` for other ops.
    ///
    /// # Errors
    /// As [`OpDef::oracle`].
    pub fn stepped(&self, dtype: DType, params: &[Number]) -> Result<Option<Oracle>> {
        check::dtype(&self.info, dtype)?;
        let words = words::params(&self.info, params, dtype)?;
        let results = self.info.results.len();
        Ok(self.stepped.map(|formula| Oracle { formula, words, results }))
    }
}

/// The formula of an op at a compute type of references, with the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    formula: OracleFn,
    words: ParamWords,
    results: usize,
}

impl Oracle {
    /// The results of operands (a bool as 0 or 1, one that is missing as 0) and the element's random word.
    #[must_use]
    pub fn at(&self, operands: &[f64], bits: u32) -> Vec<f64> {
        let mut all = [0.0; MAX_INPUTS];
        for (operand, x) in all.iter_mut().zip(operands) {
            *operand = *x;
        }
        (self.formula)(&all, &self.words, bits)[..self.results].to_vec()
    }
}

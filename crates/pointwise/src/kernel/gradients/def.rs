//! The definitions of gradients.

use pointwise_core::op::{MAX_OPERANDS, MAX_RESULTS, Words};
use pointwise_core::{DType, OpInfo};

use super::call::Call;
use super::{GatedGradientsKernel, GradientsKernel};
use crate::Number;
use crate::cpu::GradientsFn;
use crate::error::Result;
use crate::kernel::{Class, Entry, Made, check, scalar};

/// The gradients of an op of several operands as the host knows them. Made by
/// [`host_gradients!`](crate::host_gradients) and its siblings from a row of a table of gradients.
#[derive(Debug)]
pub struct GradientDef {
    /// The row.
    pub info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub cpu: fn(DType) -> Option<GradientsFn>,
    /// The kernel of a class for elements of a type; `None` where there is none.
    pub entry: fn(DType, Class) -> Option<&'static Entry>,
    /// The formula in f64, a condition as 0 or 1.
    pub oracle: fn([f64; MAX_OPERANDS], Words) -> [f64; MAX_RESULTS],
    /// The formula with every step rounded to f32 once.
    pub stepped: fn([f32; MAX_OPERANDS], Words) -> [f32; MAX_RESULTS],
    /// That all of this is of one row.
    #[doc(hidden)]
    pub made: Made,
}

impl GradientDef {
    /// The op with parameters, in the order of [`OpInfo::params`](crate::info::OpInfo::params).
    pub fn gradients_with(&'static self, params: &[Number]) -> GradientsKernel {
        GradientsKernel(Call::new(self, params))
    }

    /// The gradients of a gated op with parameters.
    pub fn gated_gradients_with(&'static self, params: &[Number]) -> GatedGradientsKernel {
        GatedGradientsKernel(Call::new(self, params))
    }

    /// The formula in f64, for elements of type `dtype`.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle_for(
        &self,
        dtype: DType,
        params: &[Number],
    ) -> Result<impl Fn([f64; MAX_OPERANDS]) -> [f64; MAX_RESULTS] + Copy + use<>> {
        check::dtype(&self.info, dtype)?;
        let words = scalar::oracle_params(&self.info, params, dtype)?;
        let oracle = self.oracle;
        Ok(move |x| oracle(x, words))
    }

    /// The formula with every step rounded to f32 once, for elements of type `dtype`: what the bound is about.
    ///
    /// # Errors
    /// As [`GradientDef::oracle_for`].
    pub fn stepped_for(
        &self,
        dtype: DType,
        params: &[Number],
    ) -> Result<impl Fn([f32; MAX_OPERANDS]) -> [f32; MAX_RESULTS] + Copy + use<>> {
        check::dtype(&self.info, dtype)?;
        let words = scalar::params(&self.info, params, dtype)?;
        let stepped = self.stepped;
        Ok(move |x| stepped(x, words))
    }
}

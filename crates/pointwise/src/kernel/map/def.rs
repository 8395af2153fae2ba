//! The definitions of ops of several operands.

use pointwise_core::op::Words;
use pointwise_core::{DType, Kind, OpInfo};

use crate::Number;
use crate::cpu::MapFn;
use crate::error::Result;
use crate::kernel::{Class, Entry, Lookup, Made, bits_of, check, scalar};

/// An op of two or three operands as the host knows it. Made by [`host_binary!`](crate::host_binary) and its siblings
/// from a row of an op table.
#[derive(Debug)]
pub struct MapDef {
    /// The row.
    pub info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub cpu: fn(DType) -> Option<MapFn>,
    /// The kernel of a class for elements of a type; `None` where there is none.
    pub entry: fn(DType, Class) -> Option<&'static Entry>,
    /// Where the table of all results is kept, of two operands of a type of one byte.
    pub lookup: fn(DType) -> Option<&'static Lookup>,
    /// The formula in f64 (a bool result as 0 or 1); `None` for ops on bits alone.
    pub oracle: Option<fn([f64; 3], Words) -> f64>,
    /// The formula with every step rounded to f32 once, of binary ops on floats alone: what the bound of a gradient is
    /// about.
    pub stepped: Option<fn([f32; 2], Words) -> f32>,
    /// That all of this is of one row.
    #[doc(hidden)]
    pub made: Made,
}

impl MapDef {
    /// The formula in f64, for elements of a tensor of type `dtype`: the exact result to f64's accuracy, not yet
    /// rounded to the result's type, a bool as 0 or 1. `None` for ops on bits alone.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle_for(
        &self,
        dtype: DType,
        params: &[Number],
    ) -> Result<Option<impl Fn([f64; 3]) -> f64 + Copy + use<>>> {
        check::dtype(&self.info, dtype)?;
        let words = scalar::oracle_params(&self.info, params, dtype)?;
        Ok(self.oracle.map(|oracle| move |x| oracle(x, words)))
    }

    /// [`MapDef::stepped`] with parameters, for elements of a tensor of type `dtype`.
    ///
    /// # Errors
    /// As [`MapDef::oracle_for`].
    pub fn stepped_for(
        &self,
        dtype: DType,
        params: &[Number],
    ) -> Result<Option<impl Fn([f32; 2]) -> f32 + Copy + use<>>> {
        check::dtype(&self.info, dtype)?;
        let words = scalar::params(&self.info, params, dtype)?;
        Ok(self.stepped.map(|stepped| move |x| stepped(x, words)))
    }

    /// The element type whose kernels and loops serve `dtype`: another of the same width where bits are but moved.
    pub(super) fn carrier(&self, dtype: DType) -> DType {
        if self.info.kind == Kind::Select { bits_of(dtype) } else { dtype }
    }
}

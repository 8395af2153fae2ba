//! The items that the expansion of `#[op]` names, and the list of the ops that it made.

use pointwise_core::formula::{Formula, MAX_INPUTS, MAX_OUTPUTS, OpData, ParamWords};
use pointwise_core::{At, Stepped, Terms, Value};

use super::{Kernel, OpDef};
use crate::error::Result;
use crate::kernel::{Operand, check};
use crate::tensor::Tensor;

/// A compute type of references, which numbers are converted to.
pub trait Reference: Value {
    /// A number, rounded to the type.
    fn of(number: f64) -> Self;
    /// Exact.
    fn number(self) -> f64;
}

impl Reference for f64 {
    fn of(number: f64) -> f64 {
        number
    }
    fn number(self) -> f64 {
        self
    }
}

impl Reference for Stepped {
    fn of(number: f64) -> Stepped {
        Stepped(number as f32)
    }
    fn number(self) -> f64 {
        f64::from(self.0)
    }
}

impl Reference for Terms {
    fn of(number: f64) -> Terms {
        Terms::exact(number)
    }
    fn number(self) -> f64 {
        self.value
    }
}

/// The formula of `O` at the compute type `C`, as [`OracleFn`](super::OracleFn).
pub fn oracle<C, O, const N: usize, const R: usize>(
    operands: &[f64; MAX_INPUTS],
    words: &ParamWords,
    at: At<'_>,
) -> [f64; MAX_OUTPUTS]
where
    C: Reference,
    O: OpData + Formula<C, N, R>,
{
    reference::<C, O, N, R>(operands, words, at).map(C::number)
}

/// The formula of `O` at the compute type `C`.
pub fn reference<C, O, const N: usize, const R: usize>(
    operands: &[f64; MAX_INPUTS],
    words: &ParamWords,
    at: At<'_>,
) -> [C; MAX_OUTPUTS]
where
    C: Reference,
    O: OpData + Formula<C, N, R>,
{
    let values: [C; N] = std::array::from_fn(|k| C::of(operands[k]));
    let truths: [bool; N] = std::array::from_fn(|k| operands[k] != 0.0);
    let (of_type, of_bool) = O::from_words(words).apply(values, truths, at);
    let is_bool = |k: usize| O::INFO.bool_results() >> k & 1 == 1;
    let result = |k: usize| if is_bool(k) { C::of(u8::from(of_bool[k]).into()) } else { of_type[k] };
    std::array::from_fn(|k| if k < R { result(k) } else { C::ZERO })
}

/// The result of an op that has one. Unlike [`Kernel::run`] it needs no vector.
///
/// # Errors
/// Those of [`Kernel::run`].
pub fn result(kernel: &Kernel<'_>, operands: &[Operand<'_>]) -> Result<Tensor> {
    kernel.run_single(operands)
}

/// The results of an op that has `R`.
///
/// # Errors
/// Those of [`Kernel::run`].
pub fn results<const R: usize>(kernel: &Kernel<'_>, operands: &[Operand<'_>]) -> Result<[Tensor; R]> {
    let info = &kernel.def().info;
    let results = kernel.run(operands)?;
    <[Tensor; R]>::try_from(results).map_err(|results| check::wrong_count(info, "results", info.results, results.len()))
}

/// An op that `#[op]` made, in the list of all that are linked into the program.
#[derive(Debug)]
pub struct Declared {
    def: &'static OpDef,
    place: Place,
}

/// The place of an op in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The package's name.
    pub package: &'static str,
    /// The module's path.
    pub module: &'static str,
    /// The line in the module's file.
    pub line: u32,
}

impl Declared {
    /// Returns an op.
    pub const fn new(def: &'static OpDef, place: Place) -> Declared {
        Declared { def, place }
    }
}

/// Returns the ops of a package, or those of the family, in the order of the source. The family is a package of its own,
/// whatever the program's tests are called.
pub(crate) fn in_order(package: Option<&str>) -> Vec<(Place, &'static OpDef)> {
    let ops = inventory::iter::<Declared>.into_iter().map(|declared| (declared.place, declared.def));
    let mut ops: Vec<_> = ops
        .filter(|(place, def)| match package {
            Some(package) => !def.info.properties.of_family && place.package == package,
            None => def.info.properties.of_family,
        })
        .collect();
    ops.sort_by_key(|(place, _)| *place);
    ops
}

inventory::collect!(Declared);

/// The ops that `#[op]` made in a package which is linked into the program, sorted by name: those of the package at hand
/// are `declared_ops(env!("CARGO_PKG_NAME"))`.
pub fn declared_ops(package: &str) -> Vec<&'static OpDef> {
    let mut ops: Vec<&'static OpDef> = in_order(Some(package)).into_iter().map(|(_, def)| def).collect();
    ops.sort_by_key(|def| def.info.name);
    ops
}

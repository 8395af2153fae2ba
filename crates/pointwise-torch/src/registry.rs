//! The ops as this crate needs them: names, operands, parameters and results as data, and one function that runs any.
//!
//! All contact with pointwise's registries and definition types is in this file.

use pointwise::info::{Domain, Each, ParamInfo, ParamKind, all, declared_ops, every};
use pointwise::kernel::{At, OpDef, Rng};
use pointwise::{
    DType, Number, Operand, Result, Stream, TensorViewMut,
    error::{Error, ErrorKind},
};
use serde_json::Value;

use crate::abi::Element;

/// An op.
#[derive(Debug)]
pub(crate) struct OpSpec {
    /// Its name, unique in its list.
    pub(crate) name: String,
    /// True if it is of rows: the last dimension, or groups of it.
    pub(crate) of_rows: bool,
    /// The elements of a row that is a group of neighbours along the last dimension; 0 where the row is that dimension.
    pub(crate) group: i64,
    /// The tensors it reads, in order. If there are none, the shape comes with the call.
    pub(crate) operands: Vec<OperandSpec>,
    /// Its parameters, in order.
    pub(crate) params: Vec<ParamSpec>,
    /// The tensors it writes, in order.
    pub(crate) results: Vec<ResultSpec>,
    /// The element types that it takes.
    pub(crate) dtypes: &'static [DType],
    /// True if integers and bool are converted to a float type first.
    pub(crate) int_to_float: bool,
    /// True if operands of different types are converted to a common one.
    pub(crate) promotes: bool,
    /// True if a bool operand is an error, whatever the other one is.
    pub(crate) refuses_bool: bool,
    /// True if its results depend on no operand.
    pub(crate) is_constant: bool,
    /// The random words that it takes, by the elements that share each.
    pub(crate) random: &'static [Each],
    /// How many indices of its elements it takes.
    pub(crate) indices: u8,
    /// True if it can run in f64 on the CPU.
    pub(crate) has_oracle: bool,
    /// True if it is pointwise's own: its name says what it computes.
    pub(crate) is_family: bool,
    /// The documentation.
    pub(crate) doc: &'static str,
    /// The op that gives its gradients, if it has any.
    pub(crate) backward: Option<String>,
    /// The op on the host. A gated op on two tensors has the op on halves here.
    pub(crate) def: &'static OpDef,
}

/// An operand of an op.
#[derive(Debug)]
pub(crate) struct OperandSpec {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its element type, if it does not depend on that of the call.
    pub(crate) dtype: Option<DType>,
    /// Its elements beside the call's.
    pub(crate) domain: Domain,
    /// True if it may be a number.
    pub(crate) takes_number: bool,
    /// True if the gradient of the operand before it is its own, too.
    pub(crate) shares_gradient: bool,
}

/// A result of an op.
#[derive(Debug)]
pub(crate) struct ResultSpec {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its elements beside the call's.
    pub(crate) domain: Domain,
    /// Its element type, if it does not depend on that of the call.
    pub(crate) dtype: Option<DType>,
    /// True if it is for the gradient alone.
    pub(crate) is_kept: bool,
    /// The operand that is the weight whose gradient it is.
    pub(crate) weight: Option<usize>,
}

impl OperandSpec {
    /// Its element type in a call on elements of a type.
    pub(crate) fn element(&self, element: Element) -> Element {
        self.dtype.map_or(element, Element::Of)
    }
}

impl ResultSpec {
    /// Its element type in a call on elements of a type.
    pub(crate) fn element(&self, element: Element) -> Element {
        self.dtype.map_or(element, Element::Of)
    }
}

/// A parameter of an op.
#[derive(Debug)]
pub(crate) struct ParamSpec {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its type.
    pub(crate) kind: NumberKind,
    /// Its default; none where that depends on the element type or is "none".
    pub(crate) default: Option<Value>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// A number.
    Float,
    /// A number or none.
    OptionalFloat,
    /// A whole number.
    Int,
    /// True or false.
    Bool,
}

/// The ops of pointwise itself.
pub(crate) fn family() -> Vec<OpSpec> {
    // PyTorch's dropout gives no mask.
    let is_public = |def: &&OpDef| def.info.name != "dropout_with_mask";
    let mut ops: Vec<OpSpec> = every().filter(is_public).map(op).collect();
    ops.extend(all().filter(|def| def.takes_halves()).map(pair));
    ops.iter_mut().for_each(|op| op.is_family = true);
    ops
}

/// The ops that `#[op]` made in a package.
pub(crate) fn of_package(package: &str) -> Vec<OpSpec> {
    let mut ops = Vec::new();
    for def in declared_ops(package).into_iter().flat_map(|def| std::iter::once(def).chain(def.backward)) {
        ops.push(op(def));
        ops.extend(Some(def).filter(|def| def.takes_halves()).map(pair));
    }
    ops
}

fn param(info: &ParamInfo) -> ParamSpec {
    let of_type = info.default.is_infinite() || info.default == f64::MAX || info.default == f64::MIN;
    let kind = match info.kind {
        ParamKind::Whole => NumberKind::Int,
        ParamKind::Flag => NumberKind::Bool,
        ParamKind::Open => NumberKind::OptionalFloat,
        _ if of_type => NumberKind::OptionalFloat,
        _ => NumberKind::Float,
    };
    let default = match kind {
        NumberKind::OptionalFloat => None,
        NumberKind::Int => Some(info.whole.into()),
        NumberKind::Float | NumberKind::Bool => Some(info.default.into()),
    };
    ParamSpec { name: info.name, kind, default }
}

/// An op by its data.
fn op(def: &'static OpDef) -> OpSpec {
    let info = &def.info;
    let count = info.arguments().len();
    // As in PyTorch, conditions and gradients are no numbers, and no operand is one beside what has other elements.
    let are_alike = !info.is_of_rows() && (0..count).all(|k| info.argument_domain(k) == Domain::Elements);
    let takes_numbers = are_alike && count > 1 && (!info.is_gradient() || info.outputs().len() > 1);
    // PyTorch's functions of three tensors take weights and bounds as numbers, but not their first operand.
    let is_tensor_first = info.properties.of_family && info.bool_operands() == 0 && count == 3 && !info.is_gradient();
    let operands = info.arguments().iter().enumerate().map(|(k, &name)| OperandSpec {
        name,
        dtype: info.fixed_operand(k),
        domain: info.argument_domain(k),
        takes_number: takes_numbers && !info.is_bool(k) && name != "grad" && !(is_tensor_first && k == 0),
        shares_gradient: info.shares_gradient(k),
    });
    let results = info.outputs().iter().enumerate().map(|(k, &name)| ResultSpec {
        name,
        domain: info.output_domain(k),
        dtype: info.fixed_result(k),
        is_kept: info.is_kept_result(k),
        weight: info.weight_of(k),
    });
    OpSpec {
        name: info.name.to_owned(),
        of_rows: info.is_of_rows(),
        group: info.group.into(),
        operands: operands.collect(),
        params: info.params.iter().map(param).collect(),
        results: results.collect(),
        dtypes: info.types,
        int_to_float: info.properties.int_to_float,
        promotes: info.promotes(),
        refuses_bool: info.properties.refuses_bool,
        is_constant: info.properties.constant,
        random: info.random,
        indices: info.indices,
        has_oracle: def.has_oracle() && !info.has_stored(),
        is_family: false,
        doc: info.doc,
        backward: def.backward.map(|def| def.info.name.to_owned()),
        def,
    }
}

/// A gated op, or its gradients, of tensors of their own instead of the halves of one.
fn pair(def: &'static OpDef) -> OpSpec {
    let info = &def.info;
    let backward = |forward| format!("{forward}_pair_backward");
    let name = info.gradient_of.map_or_else(|| format!("{}_pair", info.name), backward);
    let operand =
        |name| OperandSpec { name, dtype: None, domain: Domain::Elements, takes_number: false, shares_gradient: false };
    let operands = info.operands.iter().map(|&name| operand(name));
    let result = |name| ResultSpec { name, domain: Domain::Elements, dtype: None, is_kept: false, weight: None };
    let results = info.results.iter().map(|&name| result(name));
    OpSpec {
        name,
        operands: operands.collect(),
        results: results.collect(),
        backward: def.backward.map(|_| backward(info.name)),
        ..op(def)
    }
}

/// A formula in f64: of operands, and a random word or indices, its results.
pub(crate) type Formula = dyn Fn(&[f64], At<'static>, &mut [f64]);

/// Where a call of an op reads and writes, and what with.
pub(crate) struct Call<'a, 'b> {
    /// The operands, in the order of [`OpSpec::operands`]: of one element type, bools apart.
    pub(crate) operands: &'a [Operand<'b>],
    /// The parameters, in the order of [`OpSpec::params`].
    pub(crate) params: &'a [Number],
    /// The place in a random sequence.
    pub(crate) rng: Rng<'b>,
    /// The stream, on a CUDA device.
    pub(crate) stream: Option<&'a Stream>,
}

impl OpSpec {
    /// The parameters of a call that gives none.
    pub(crate) fn defaults(&self) -> Vec<Number> {
        vec![Number::Default; self.params.len()]
    }

    /// Returns the sizes of the f32 tensor that a call needs meanwhile, if it needs one.
    ///
    /// # Errors
    /// Fails as the op does.
    pub(crate) fn workspace(&self, call: &Call<'_, '_>) -> Result<Option<Vec<i64>>> {
        if self.results.iter().all(|result| result.weight.is_none()) {
            return Ok(None);
        }
        let shape = self.def.kernel(call.params).workspace(call.operands)?;
        Ok(shape.map(|shape| shape.iter().map(|size| *size as i64).collect()))
    }

    /// Runs the op.
    ///
    /// # Errors
    /// Those of the op.
    pub(crate) fn call(
        &self,
        call: &Call<'_, '_>,
        results: &mut [TensorViewMut<'_>],
        workspace: Option<TensorViewMut<'_>>,
    ) -> Result<()> {
        let kernel = self.def.kernel(call.params).rng(call.rng);
        let kernel = match call.stream {
            Some(stream) => kernel.on(stream),
            None => kernel,
        };
        match workspace {
            Some(workspace) => kernel.run_into_with(call.operands, results, workspace),
            None => kernel.run_into(call.operands, results),
        }
    }

    /// True if it computes the gradients of another op.
    pub(crate) fn is_gradient(&self) -> bool {
        self.def.info.is_gradient()
    }

    /// True if new results lie as the operands do: they have the shape that these broadcast to, without rows or halves.
    pub(crate) fn is_of_elements(&self) -> bool {
        !self.of_rows && self.operands.iter().all(|operand| operand.domain != Domain::Halves)
    }

    /// True if it draws random words.
    pub(crate) fn is_random(&self) -> bool {
        !self.random.is_empty()
    }

    /// True if elements share a random word.
    pub(crate) fn shares_words(&self) -> bool {
        self.random.iter().any(|each| *each != Each::Element)
    }

    /// True if it knows its elements' places in the result.
    pub(crate) fn has_place(&self) -> bool {
        self.is_random() || self.indices > 0
    }

    /// True if an element's place is more than its index in the result: merged dimensions would have other places.
    pub(crate) fn knows_dimensions(&self) -> bool {
        self.indices > 0 || self.shares_words()
    }

    /// The formula in f64, of operands (a bool as 0 or 1), and a random word or indices.
    ///
    /// # Errors
    /// A parameter that the op does not take; an op without such a formula.
    pub(crate) fn double(&self, params: &[Number]) -> Result<Box<Formula>> {
        let none = || {
            Error::from(ErrorKind::Unsupported {
                what: format!("{} of float64", self.name),
                advice: "convert its operands to float32".to_owned(),
            })
        };
        let formula = self.def.double(params)?.ok_or_else(none)?;
        Ok(Box::new(move |x, at, y| y.copy_from_slice(&formula.at(x, at))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_in_the_list() {
        let ops = family();
        let find = |name: &str| ops.iter().find(|op| op.name == name);
        for op in &ops {
            let backward = op.backward.as_deref().map(|name| find(name).unwrap_or_else(|| panic!("{name}")));
            assert!(backward.is_none_or(OpSpec::is_gradient), "{}", op.name);
            assert!(!op.is_gradient() || op.backward.is_none(), "{}", op.name);
        }
        let pair = find("silu_and_mul_pair").unwrap();
        assert_eq!(pair.backward.as_deref(), Some("silu_and_mul_pair_backward"));
        assert!(find("dropout").unwrap().backward.is_some() && find("isnan").unwrap().backward.is_none());
    }
}

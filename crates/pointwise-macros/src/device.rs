//! The parts of an op on the device: its entries for each element type.

use proc_macro2::TokenStream;
use quote::quote;

use crate::common::Form;
use crate::entries::Entries;
use crate::generator::Generated;
use crate::signature::{Op, OpKind, Value};
use crate::words::Type;

/// All entries, which exist for the device alone.
pub(crate) fn items(op: &Op) -> TokenStream {
    let abi = quote!(extern "gpu-kernel");
    if op.kind == OpKind::Generator {
        let generated = generated(op);
        return op.types.iter().map(|&each| generated.entries(each, &abi)).collect();
    }
    let forms = Form::all(op);
    forms
        .iter()
        .map(|form| types(form).into_iter().map(|each| made(op, form).entries(each, &abi)).collect::<TokenStream>())
        .collect()
}

/// The element types of the kernels: an op that moves elements has one for each width.
pub(crate) fn types(form: &Form) -> Vec<Type> {
    if form.moves() { vec![Type::I8, Type::I16, Type::I32, Type::I64] } else { form.types.clone() }
}

/// The element types that bodies are made for: one for each compute type. Those of 8-bit floats are computed as those of 16
/// bits. Ops that know their elements' places, reduce over rows, or convert elements have none.
fn bodies(op: &Op, form: &Form) -> Vec<Type> {
    let is_stored = form.operands.iter().chain(&form.results).any(Value::is_stored);
    if op.has_place() || op.kind == OpKind::Rows || is_stored {
        return Vec::new();
    }
    let types = types(form);
    let halves = [Type::BF16, Type::F16].into_iter().find(|each| types.contains(each));
    let is_half = |each: &Type| matches!(each, Type::F16 | Type::BF16);
    types.into_iter().filter(|each| !each.is_fp8() && !is_half(each)).chain(halves).collect()
}

/// An op or its gradients.
pub(crate) fn made(op: &Op, form: &Form) -> Entries {
    Entries {
        root: quote!(::pointwise),
        op: op.symbol(),
        symbol: format!("formula_{}", form.name),
        type_name: form.type_name.clone(),
        is_generic: form.is_generic(),
        operands: form.operands.iter().map(|operand| operand.fixed).collect(),
        results: form.results.iter().map(|result| result.fixed).collect(),
        words: form.words(),
        has_place: op.has_place(),
        is_of_rows: op.kind == OpKind::Rows,
        weights: form.results.iter().map(|result| result.is_weight).collect(),
        bodies: bodies(op, form),
        source: source(),
    }
}

/// A generator.
pub(crate) fn generated(op: &Op) -> Generated {
    Generated {
        root: quote!(::pointwise),
        op: op.symbol(),
        symbol: format!("formula_{}", op.symbol()),
        this: Form::of(op).at(&quote!(f32)),
        words: Form::of(op).words(),
        source: source(),
    }
}

fn source() -> TokenStream {
    quote!(::pointwise::__private::source(::core::option_env!("POINTWISE_SOURCE")))
}

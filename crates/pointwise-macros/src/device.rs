//! What an op becomes on the device: its entries for each element type.

use proc_macro2::TokenStream;
use quote::quote;

use crate::common::Form;
use crate::generator::Generated;
use crate::made::Made;
use crate::signature::{Op, OpKind};

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
        .map(|form| op.types.iter().map(|&each| made(op, form).entries(each, &abi)).collect::<TokenStream>())
        .collect()
}

/// An op or its gradients.
pub(crate) fn made(op: &Op, form: &Form) -> Made {
    Made {
        root: quote!(::pointwise),
        symbol: format!("formula_{}", form.name),
        type_name: form.type_name.clone(),
        is_generic: op.is_generic(),
        adapter: None,
        operands: form.operands.iter().map(|operand| operand.is_bool).collect(),
        results: form.results.iter().map(|result| result.is_bool).collect(),
        words: op.words(),
        is_random: op.is_random(),
        source: source(),
    }
}

/// A generator.
pub(crate) fn generated(op: &Op) -> Generated {
    Generated {
        root: quote!(::pointwise),
        symbol: format!("formula_{}", op.symbol()),
        this: Form::of(op).at(op, &quote!(f32)),
        words: op.words(),
        source: source(),
    }
}

fn source() -> TokenStream {
    quote!(::pointwise::__private::source(::core::option_env!("POINTWISE_SOURCE")))
}

//! The gradients of an op, as an op of its own: by dual numbers, or by a function of the user's.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::common::{Form, RANDOM_WORDS, arguments_of_gradient, core, dimensions, hidden, implementation, pattern};
use crate::rows;
use crate::signature::{Argument, Op, OpKind, ParamKind};

/// The formula of the gradients: its operands are the gradients of the `T` results, then the operands of the op that it
/// reads; its results are the gradients of the `T` operands.
pub(crate) fn items(op: &Op) -> TokenStream {
    if op.kind == OpKind::Rows {
        return match op.gradient() {
            Some(function) => rows::gradient_by(op, function),
            None => rows::gradient(op),
        };
    }
    let form = Form::gradient_of(op);
    let body = match op.gradient() {
        Some(function) => {
            let names: Vec<Ident> = (0..form.results.len()).map(|k| hidden(&format!("y{k}"))).collect();
            let (pattern, arguments) = (pattern(&names), arguments_of_gradient(op));
            let falses = names.iter().map(|_| quote!(false));
            quote! {
                let #pattern = #function(#(#arguments),*);
                ([#(#names),*], [#(#falses),*])
            }
        }
        None => derived(op, &form),
    };
    implementation(&form, body)
}

/// The formula at dual numbers. The tangents of a single result begin as its gradient; of several results, each has its
/// own derivatives, which its gradient is multiplied with.
fn derived(op: &Op, form: &Form) -> TokenStream {
    let core = core();
    let (values, truths) = (hidden("values"), hidden("truths"));
    let (type_name, ident) = (&op.type_name, &op.generic.ident);
    let tangents = form.results.len();
    let dual = quote!(#core::dual::Dual::<#ident, #tangents>);
    let grads: Vec<usize> = (0..op.results.iter().filter(|result| result.has_gradient()).count()).collect();
    let seed = match &*grads {
        [single] => quote!(#values[#single]),
        _ => quote!(<#ident as #core::Value>::ONE),
    };
    let (mut at, mut variable) = (grads.len(), 0_usize);
    let mut indices = dimensions(op).iter();
    let mut words = RANDOM_WORDS.iter().map(|name| hidden(name));
    let arguments = op.arguments.iter().map(|argument| match argument {
        Argument::Operand(value) => {
            let k = at;
            let is_saved = op.is_saved(&value.name);
            at += usize::from(is_saved);
            if value.is_bool() {
                return if is_saved { quote!(#truths[#k]) } else { quote!(false) };
            }
            // The gradient does not depend on an operand that it does not read.
            let saved = if is_saved { quote!(#values[#k]) } else { quote!(<#ident as #core::Value>::ONE) };
            if !value.has_gradient() {
                return quote!(#dual::constant(#saved));
            }
            variable += 1;
            let tangent = variable - 1;
            quote!(#dual::variable(#saved, #tangent, #seed))
        }
        Argument::Bits(_) => {
            let word = words.next();
            quote!(#word)
        }
        Argument::Index => {
            let index = indices.next().map(|name| hidden(name));
            quote!(#index)
        }
        Argument::Row(_) => unreachable!("rows have gradients of their own"),
        Argument::Param(param) => {
            let (name, default) = (&param.name, &param.default);
            if !op.is_saved(name) {
                return match param.kind {
                    ParamKind::Number | ParamKind::Probability => {
                        quote!(#dual::constant(<#ident as #core::Real>::constant((#default) as f64)))
                    }
                    ParamKind::Open => quote!(::core::option::Option::None),
                    ParamKind::Whole | ParamKind::Flag => quote!(#default),
                };
            }
            match param.kind {
                ParamKind::Number | ParamKind::Probability => quote!(#dual::constant(self.#name)),
                ParamKind::Open => quote!(self.#name.map(#dual::constant)),
                ParamKind::Whole | ParamKind::Flag => quote!(self.#name),
            }
        }
    });
    let results: Vec<Ident> = (0..op.results.len()).map(|k| hidden(&format!("y{k}"))).collect();
    let of_type: Vec<&Ident> =
        op.results.iter().zip(&results).filter(|(result, _)| result.has_gradient()).map(|(_, y)| y).collect();
    let pattern = pattern(&results);
    let gradients = (0..tangents).map(|k| match &*of_type {
        [single] => quote!(#single.gradient(#k)),
        several => {
            let terms = several.iter().zip(&grads).map(|(y, grad)| quote!(#values[#grad] * #y.gradient(#k)));
            quote!(#(#terms)+*)
        }
    });
    let falses = (0..tangents).map(|_| quote!(false));
    quote! {
        let #pattern = #type_name::formula(#(#arguments),*);
        ([#(#gradients),*], [#(#falses),*])
    }
}

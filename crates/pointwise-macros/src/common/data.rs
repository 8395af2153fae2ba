//! The data of an op: the impl of the trait that has them, with the way to the op's parameters.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::{Form, core, dimensions, hidden};
use crate::signature::{Argument, Op, OpKind, Param, ParamKind, Value};

/// Returns the impl that has the data of an op, and makes the op of the parameters of a launch.
pub(super) fn implementation(op: &Op, form: &Form) -> TokenStream {
    let core = core();
    let generic = hidden("T");
    let generics = form.is_generic().then(|| quote!(<#generic: #core::Word>));
    let this = form.at(&quote!(#generic));
    let (name, all_words) = match op.kind {
        OpKind::Generator => ("DescribedOp", quote!(#core::Words)),
        _ => ("OpData", quote!(&#core::ParamWords)),
    };
    let name = Ident::new(name, Span::call_site());
    let (info, words, value) = (info(op, form), hidden("words"), value(form));
    quote! {
        #[allow(unused_parens, unused_variables, clippy::needless_update, clippy::unnecessary_cast)]
        impl #generics #core::#name for #this {
            const INFO: #core::OpInfo = #info;

            #[inline(always)]
            fn from_words(#words: #all_words) -> Self {
                #value
            }
        }
    }
}

/// Returns the op's `OpInfo`.
fn info(op: &Op, form: &Form) -> TokenStream {
    let core = core();
    let Form { name, doc, accuracy, .. } = form;
    let kind = Ident::new(form.kind, Span::call_site());
    let gradient_of = match &form.gradient_of {
        Some(name) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    let (tensors, results) = (tensors(op, form), names(&form.results));
    let is_generator = op.kind == OpKind::Generator;
    let (random, indices) = (random(op), if is_generator { 0 } else { op.indices() as u8 });
    let dimensions = dimensions(op).iter().filter(|_| is_generator).map(|name| format!("{name}s"));
    let params = form.params.iter().map(param);
    let types = form.types.iter().map(|each| Ident::new(each.dtype(), Span::call_site()));
    let formula = op.formula.to_string();
    let properties = op.is_of_family.then(|| properties(op, form));
    quote! {
        #core::OpInfo {
            name: #name,
            kind: #core::Kind::#kind,
            gradient_of: #gradient_of,
            #tensors
            random: &[#(#random),*],
            indices: #indices,
            results: &[#(#results),*],
            shape: &[#(#dimensions),*],
            params: &[#(#params),*],
            types: &[#(#core::DType::#types),*],
            accuracy: #core::Accuracy::#accuracy,
            doc: #doc,
            formula: #formula,
            #properties
            ..#core::OpInfo::FORMULA
        }
    }
}

/// Returns the fields of `OpInfo` for tensors: the names of operands, fixed types, and which tensors are of channels, rows
/// or weights.
fn tensors(op: &Op, form: &Form) -> TokenStream {
    let Form { operands, results, .. } = form;
    let [operand_types, result_types] = [operands, results].map(|values| fixed_types(values));
    let (operand_names, channel_operands) = (names(operands), bits(operands, |operand| operand.is_channel));
    let of_rows = (form.kind == "Rows").then(|| {
        let [operands, results] = [operands, results].map(|values| bits(values, |value| value.is_row));
        quote!(row_operands: #operands, row_results: #results,)
    });
    let group = Some(op.group).filter(|group| *group != 0).map(|group| quote!(group: #group,));
    let of_weights = operands.iter().any(|operand| operand.is_weight).then(|| {
        let [operands, results] = [operands, results].map(|values| bits(values, |value| value.is_weight));
        quote!(weight_operands: #operands, weight_results: #results,)
    });
    let shared = bits(operands, |operand| op.shares_gradient(&operand.name));
    let shared = (shared != 0).then(|| quote!(shared_gradients: #shared,));
    let kept = bits(results, |result| result.is_kept);
    let kept = (kept != 0).then(|| quote!(kept_results: #kept,));
    quote! {
        operands: &[#(#operand_names),*],
        operand_types: &[#(#operand_types),*],
        result_types: &[#(#result_types),*],
        channel_operands: #channel_operands,
        #of_rows
        #group
        #of_weights
        #shared
        #kept
    }
}

fn names(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| value.name.to_string()).collect()
}

/// Returns bit `k` for value `k` where `is_set` is true.
fn bits(values: &[Value], is_set: impl Fn(&Value) -> bool) -> u16 {
    values.iter().enumerate().map(|(k, value)| u16::from(is_set(value)) << k).sum()
}

/// Returns the element types that are not the op's; none if all tensors have that.
fn fixed_types(values: &[Value]) -> Vec<TokenStream> {
    if values.iter().all(|value| value.fixed.is_none()) {
        return Vec::new();
    }
    let core = core();
    let of = |value: &Value| match value.fixed {
        Some(each) => {
            let dtype = Ident::new(each.dtype(), Span::call_site());
            quote!(::core::option::Option::Some(#core::DType::#dtype))
        }
        None => quote!(::core::option::Option::None),
    };
    values.iter().map(of).collect()
}

/// Returns which elements share each random word.
fn random(op: &Op) -> Vec<TokenStream> {
    let core = core();
    let of = |argument: &Argument| match argument {
        Argument::Bits(each) => {
            let each = Ident::new(&format!("{each:?}"), Span::call_site());
            Some(quote!(#core::Each::#each))
        }
        _ => None,
    };
    op.arguments.iter().filter_map(of).collect()
}

/// Returns the `ParamInfo` of a parameter.
fn param(param: &Param) -> TokenStream {
    let core = core();
    let (name, default) = (param.name.to_string(), &param.default);
    let kind = Ident::new(&format!("{:?}", param.kind), Span::call_site());
    let default = match param.kind {
        ParamKind::Whole => return quote!(#core::ParamInfo::whole(#name, #default)),
        ParamKind::Open => quote!(0.0),
        ParamKind::Flag => quote!((#default) as u8 as f64),
        ParamKind::Number | ParamKind::Probability => quote!((#default) as f64),
    };
    quote!(#core::ParamInfo { kind: #core::ParamKind::#kind, ..#core::ParamInfo::number(#name, #default) })
}

/// Returns the fields that ops of the family have.
fn properties(op: &Op, form: &Form) -> TokenStream {
    let core = core();
    let properties = form.properties.iter().map(property);
    let pairs = op.family.pairs.iter().filter(|_| form.gradient_of.is_none()).map(|(each, power)| {
        let dtype = Ident::new(each.dtype(), Span::call_site());
        quote!((#core::DType::#dtype, #power))
    });
    quote! {
        properties: {
            let mut properties = #core::Properties { of_family: true, ..#core::Properties::NONE };
            #(#properties)*
            properties
        },
        pairs_pay: &[#(#pairs),*],
    }
}

/// The assignment of a property to `properties`.
fn property(word: &Ident) -> TokenStream {
    let core = core();
    let some = |field: &str, ty: &str, variant: &str| {
        let [field, ty, variant] = [field, ty, variant].map(|name| Ident::new(name, word.span()));
        quote!(properties.#field = ::core::option::Option::Some(#core::#ty::#variant);)
    };
    match word.to_string().as_str() {
        "quotient" => some("function", "BinaryFunction", "Quotient"),
        "truncated_quotient" => some("function", "BinaryFunction", "TruncatedQuotient"),
        "floored_quotient" => some("function", "BinaryFunction", "FlooredQuotient"),
        "modulo" => some("function", "BinaryFunction", "Modulo"),
        "power" => some("function", "BinaryFunction", "Power"),
        "clears_sign" => some("sign", "SignChange", "Clear"),
        "flips_sign" => some("sign", "SignChange", "Flip"),
        _ => quote!(properties.#word = true;),
    }
}

/// Returns the struct of the parameters that are in `words`.
fn value(form: &Form) -> TokenStream {
    let type_name = &form.type_name;
    if form.params.is_empty() {
        return quote!(#type_name);
    }
    let mut at = 0;
    let fields = form.params.iter().map(|param| {
        let (name, value) = (&param.name, from_words(param.kind, at));
        at += param.kind.words();
        quote!(#name: #value)
    });
    quote!(#type_name { #(#fields,)* })
}

/// Returns the parameter whose first word is number `at`.
fn from_words(kind: ParamKind, at: usize) -> TokenStream {
    let (core, words, next) = (core(), hidden("words"), at + 1);
    match kind {
        ParamKind::Number | ParamKind::Probability => quote!(#core::Word::from_word(#words[#at])),
        ParamKind::Whole => quote!(#words[#at] as i64),
        ParamKind::Flag => quote!(#words[#at] != 0),
        ParamKind::Open => quote! {
            if #words[#at] != 0 {
                ::core::option::Option::Some(#core::Word::from_word(#words[#next]))
            } else {
                ::core::option::Option::None
            }
        },
    }
}

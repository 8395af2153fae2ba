//! What an op becomes on the device: an entry for each element type and class.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::common::{Form, core, hidden};
use crate::signature::{Op, Value};
use crate::words::Type;

/// The classes, in the order of `Class::ALL`.
pub(crate) const CLASSES: [&str; 3] = ["flat", "rows", "strided"];

/// The name of an entry.
pub(crate) fn symbol(op: &str, each: Type, class: &str) -> String {
    format!("formula_{op}_{}_{class}", each.name())
}

/// The hash of the sources, which the builder passes to both compilations.
pub(crate) fn source() -> TokenStream {
    quote!(::pointwise::__private::source(::core::option_env!("POINTWISE_SOURCE")))
}

/// All entries, which exist for the device alone.
pub(crate) fn items(op: &Op) -> TokenStream {
    let mut items = TokenStream::new();
    for form in Form::all(op) {
        for &each in &op.types {
            for class in CLASSES {
                items.extend(entry(op, &form, each, class));
            }
        }
    }
    items
}

/// One entry, and the comment in the module that binds it to its op. An older target may have it the same.
fn entry(op: &Op, form: &Form, each: Type, class: &str) -> TokenStream {
    let core = core();
    let symbol = symbol(&form.name, each, class);
    let inherits = if each.is_fp8() { "fp8" } else { "plain" };
    // Two attributes: the host's compiler would warn of the cfg that it does not know.
    let is_there = quote!(#[cfg(target_arch = "nvptx64")] #[cfg(not(pointwise_inherits = #inherits))]);
    let (operands, results) = form.counts();
    let tensors = operands + results;
    let element_name = Ident::new(each.name(), proc_macro2::Span::call_site());
    let element = quote!(#core::element::ty::#element_name);
    let this = form.at(op, &quote!(<#element as #core::Element>::Compute));
    let numbered = |name: &str, count: usize| (0..count).map(|k| hidden(&format!("{name}{k}"))).collect::<Vec<_>>();
    let element_of = |value: &Value| if value.is_bool { quote!(#core::element::Bool) } else { element.clone() };
    let (x, y) = (numbered("x", operands), numbered("y", results));
    let (x_types, y_types) = (form.operands.iter().map(element_of), form.results.iter().map(element_of));
    let given = numbered("w", operands);
    let params = numbered("p", op.params().map(|param| param.kind.words()).sum());
    let zeros = (params.len()..8).map(|_| quote!(0));
    let random = op.is_random();
    let draw = if random { quote!(draw) } else { quote!(#core::Draw::NONE) };
    let draw_parameter = random.then(|| quote!(draw: #core::Draw,));
    let lanes = quote!({ #core::formula::lanes(::core::mem::size_of::<#element>(), #tensors) });
    let launch = quote!(#core::launch);
    let (places, steps, call) = match class {
        "flat" => (
            quote!(n: u64, head: u32,),
            quote!(),
            quote! {
                flat::<#element, #this, #operands, #results, #lanes>(&tensors, n, head, op)
            },
        ),
        _ => {
            let (splits, lanes) =
                if class == "rows" { (quote!(ROW_SPLITS), lanes) } else { (quote!(SPLITS), quote!(1)) };
            let splits = quote!({ #launch::#splits });
            (
                quote!(items: u32,),
                quote!(steps: #launch::Steps<#tensors, #splits>,),
                quote! {
                    tiled::<#element, #this, #operands, #results, #tensors, #lanes, #splits>(&tensors, &steps, items, op)
                },
            )
        }
    };
    let (comment, source) = (format!("// row of {symbol}: {{word}}"), source());
    let function = format_ident!("__{symbol}");
    quote! {
        #is_there
        ::core::arch::global_asm!(
            #comment,
            word = const { #core::row::of_formula::<#element, #this, #operands, #results>(#source) },
        );

        #is_there
        #[doc(hidden)]
        // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
        #[allow(improper_gpu_kernel_arg, clippy::too_many_arguments)]
        #[unsafe(export_name = #symbol)]
        unsafe extern "gpu-kernel" fn #function(
            #(#y: *mut #y_types,)* #(#x: *const #x_types,)* #places mode: u64, #(#given: u64,)* #(#params: u64,)*
            #steps #draw_parameter
        ) {
            let op = <#this as #core::OpData>::from_words(&[#(#params,)* #(#zeros,)*]);
            let tensors = ::pointwise::__private::formula::Tensors::<#operands, #results> {
                results: [#(#y.cast()),*],
                operands: [#(#x.cast()),*],
                words: [#(#given),*],
                mode,
                draw: #draw,
            };
            // SAFETY: the template's contract is this entry's own; the host checks it before the launch.
            unsafe { ::pointwise::__private::formula::#call }
        }
    }
}

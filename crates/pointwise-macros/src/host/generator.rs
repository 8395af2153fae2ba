//! The parts of an op without operands on the host.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{Call, docs, kernel_set, numbers, place};
use crate::common::{Form, INDICES, arguments, hidden};
use crate::device::generated;
use crate::signature::Op;

/// `NAME::def()` and `NAME { .. }.kernel()`, with the static that they give out.
pub(super) fn definition(op: &Op, kernels: &TokenStream) -> TokenStream {
    let (vis, type_name) = (&op.vis, &op.type_name);
    let [def, types] = ["OP", "TYPES"].map(hidden);
    let (own, params) = (Form::of(op).own(), numbers(op));
    let count = op.types.len();
    let typed = generated(op).types(&op.types, &hidden("KERNELS").to_token_stream());
    let oracle = oracle(op);
    let kernels = kernel_set(kernels);
    let place = place();
    let at_f32 = Form::of(op).at(&quote!(f32));
    quote! {
        const _: () = {
            #kernels
            static #types: [::pointwise::__private::GeneratorTyped; #count] = #typed;
            static #def: ::pointwise::kernel::OpDef =
                ::pointwise::kernel::OpDef::of_indices::<#at_f32>(&#types, ::core::option::Option::Some(#oracle));

            ::pointwise::__private::inventory::submit! {
                ::pointwise::__private::Declared::new(&#def, #place)
            }

            #[allow(dead_code)]
            impl #own {
                /// The op as data.
                #vis fn def() -> &'static ::pointwise::kernel::OpDef {
                    &#def
                }

                /// The op with these parameters and launch settings.
                #vis fn kernel(self) -> ::pointwise::kernel::GeneratorKernel {
                    #type_name::def().generator_with(&[#(#params),*])
                }
            }
        };
    }
}

/// The formula in f64, as a closure of indices and words.
fn oracle(op: &Op) -> TokenStream {
    let type_name = &op.type_name;
    let core = crate::common::core();
    let [plane, row, column] = INDICES.map(hidden);
    let this = Form::of(op).at(&quote!(f64));
    let call = arguments(op);
    // The arguments name the struct as `self`, which a closure has not.
    let trait_name = hidden("AtF64");
    quote! {{
        trait #trait_name {
            fn at(self, at: [u32; 3]) -> f64;
        }
        impl #trait_name for #this {
            #[allow(unused_variables)]
            fn at(self, [#plane, #row, #column]: [u32; 3]) -> f64 {
                #type_name::formula::<f64>(#(#call),*)
            }
        }
        fn oracle(at: [u32; 3], words: #core::Words) -> f64 {
            #trait_name::at(<#this as #core::DescribedOp>::from_words(words), at)
        }
        oracle
    }}
}

/// The functions `NAME` and `NAME_into`.
pub(super) fn functions(op: &Op) -> Vec<TokenStream> {
    let form = Form::of(op);
    let call = Call::of(op, &form);
    let (vis, name, into) = (&op.vis, &op.name, format_ident!("{}_into", op.name));
    let (docs, numbers, kernel) = (docs(op, &form), call.numbers(), call.kernel());
    let shape = match op.indices() {
        3 => "The shape is (planes, rows, columns), or (rows, columns) for one plane.",
        2 => "The shape is (rows, columns), or (planes, rows, columns) for equal planes.",
        _ => "The shape is (columns), or one of two or three dimensions, of equal rows.",
    };
    let doc_into = format!("[`{name}()`], written to a tensor that is there.");
    vec![
        quote! {
            #docs
            ///
            #[doc = #shape]
            ///
            /// # Errors
            /// Another number of dimensions, an element type or a number that the op does not take, a missing kernel, out
            /// of memory.
            #[allow(dead_code)]
            #vis fn #name(
                device: &::pointwise::Device,
                dtype: ::pointwise::DType,
                shape: impl ::pointwise::tensor::IntoShape,
                #numbers
            ) -> ::pointwise::Result<::pointwise::Tensor> {
                #kernel.generate(device, dtype, shape)
            }
        },
        quote! {
            #[doc = #doc_into]
            ///
            /// # Errors
            /// Those of the op; a tensor that is not contiguous.
            #[allow(dead_code)]
            #vis fn #into<'b>(
                y: impl ::core::convert::Into<::pointwise::TensorViewMut<'b>>, #numbers
            ) -> ::pointwise::Result<()> {
                #kernel.run_into(&[], &mut [y.into()])
            }
        },
    ]
}

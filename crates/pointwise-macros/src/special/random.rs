//! Dropout.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{Place, element};
use crate::entry::{Class, Entry};
use crate::words::{FLOATS, Type};

/// The strategies, as the functions of `pointwise_device::random`, and the classes of their kernels.
const STRATEGIES: [(&str, Class); 2] = [("explicit_parallel", Class::Direct), ("register_copy", Class::Vectors)];

/// The kernel of a strategy, which writes the mask, too, or does not.
fn symbol(each: Type, mask: bool, strategy: &str) -> String {
    format!("{}_dropout_{}_{strategy}", if mask { "random_mask" } else { "random" }, each.name())
}

/// The struct for elements of a type.
fn this(core: &TokenStream, element: &TokenStream) -> TokenStream {
    quote!(#core::family::random::Dropout<<#element as #core::Element>::Compute>)
}

/// The word of a kernel.
fn word(core: &TokenStream, element: &TokenStream, class: Class) -> TokenStream {
    let this = this(core, element);
    class.word(core, &quote!(#core::row::of_random::<#element, #this>()))
}

/// The entries. All have one signature, the mask's pointer included.
pub(crate) fn entries(Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let of_type = |each: Type| {
        let element = element(&core, each);
        let this = this(&core, &element);
        let lanes = quote!({ 16 / ::core::mem::size_of::<#element>() });
        let of_kernel = |(mask, (strategy, class)): (bool, (&str, Class))| {
            let function = format_ident!("{strategy}");
            let is_vector = class == Class::Vectors;
            let vectors = is_vector.then(|| quote!(, { #root::random::elements(#lanes) }, #lanes));
            Entry {
                root,
                abi: given,
                symbol: &symbol(each, mask, strategy),
                op: "dropout",
                vectors: quote!([#is_vector; 2]),
                barriers: None,
                is_fp8: each.is_fp8(),
                word: word(&core, &element, class),
                slots: None,
                parameters: quote! {
                    x: *const #element, y: *mut #element, mask: *mut #core::element::Bool, n: u64, head: u32,
                    blocks: #core::Blocks, p0: u64, p1: u64,
                },
                prepare: quote!(let op = <#this as #core::DescribedOp>::from_words([p0, p1, 0, 0]);),
                call: quote! {
                    #root::random::#function::<#element, #this, #mask #vectors>(x, y, mask, n, head, &blocks, op)
                },
            }
            .into_token_stream()
        };
        let kernels = [false, true].into_iter().flat_map(|mask| STRATEGIES.map(|strategy| (mask, strategy)));
        kernels.map(of_kernel).collect::<TokenStream>()
    };
    FLOATS.into_iter().map(of_type).collect()
}

/// Functions that find loops and kernels: `loops` of a type, `kernels` of a type with or without a mask.
pub(crate) fn functions(Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let (mut loops, mut kernels) = (TokenStream::new(), TokenStream::new());
    for each in FLOATS {
        let (element, dtype) = (element(&core, each), format_ident!("{}", each.dtype()));
        let this = this(&core, &element);
        loops.extend(quote! {
            #core::DType::#dtype => ::core::option::Option::Some(cpu::random::<#element, #this>),
        });
        for mask in [false, true] {
            let entries = STRATEGIES.map(|(strategy, class)| {
                let (symbol, word) = (symbol(each, mask, strategy), word(&core, &element, class));
                quote!(#root::kernel::Entry::new(#symbol, #word, &#given))
            });
            kernels.extend(quote! {
                (#core::DType::#dtype, #mask) => {
                    static ENTRIES: [#root::kernel::Entry; 2] = [#(#entries),*];
                    ::core::option::Option::Some(&ENTRIES)
                }
            });
        }
    }
    quote! {
        pub(super) fn loops(dtype: #core::DType) -> ::core::option::Option<cpu::RandomFn> {
            match dtype {
                #loops
                _ => ::core::option::Option::None,
            }
        }
        pub(super) fn kernels(
            dtype: #core::DType,
            mask: bool,
        ) -> ::core::option::Option<&'static [#root::kernel::Entry; 2]> {
            match (dtype, mask) {
                #kernels
                _ => ::core::option::Option::None,
            }
        }
    }
}

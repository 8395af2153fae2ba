//! The conversions between element types: all pairs of different types, and an integer to itself for each width, which
//! copies elements of any type.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{Place, element};
use crate::entry::Entry;
use crate::words::Type;

/// The classes of kernels.
const CLASSES: [&str; 2] = ["flat", "strided"];

fn pairs() -> impl Iterator<Item = (Type, Type)> {
    let copies = [Type::I8, Type::I16, Type::I32, Type::I64];
    let all = Type::ALL.into_iter().flat_map(|from| Type::ALL.map(|to| (from, to)));
    all.filter(move |(from, to)| from != to || copies.contains(from))
}

fn symbol(from: Type, to: Type, class: &str) -> String {
    format!("convert_{}_{}_{class}", from.name(), to.name())
}

/// The entries.
pub(crate) fn entries(Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let of_pair = |(from, to): (Type, Type)| {
        let (a, b) = (element(&core, from), element(&core, to));
        let this = quote!(#core::cast::Convert<#a, #b>);
        // The wider of the two has vectors of 16 bytes: neighbouring threads then make neighbouring accesses on both
        // sides.
        let widest = if from.size() > to.size() { &a } else { &b };
        let lanes = quote!({ 16 / ::core::mem::size_of::<#widest>() });
        let of_class = |class: &str| {
            let symbol = symbol(from, to, class);
            let [loads, stores] = [from.size() >= to.size(), to.size() >= from.size()].map(|is| is && class == "flat");
            let vectors = quote!([#loads, #stores]);
            let (places, steps, call) = if class == "flat" {
                (
                    quote!(n: u64, head: u32,),
                    quote!(),
                    quote!(flat::<#a, #b, #this, 1, 1, #lanes>(&tensors, n, head, op)),
                )
            } else {
                (
                    quote!(items: u32,),
                    quote!(groups: #core::launch::Groups<2>,),
                    quote!(grouped::<#a, #b, #this, 1, 1, 2, 1>(&tensors, &groups, items, op)),
                )
            };
            Entry {
                root,
                abi: given,
                symbol: &symbol,
                op: "to_dtype",
                vectors,
                barriers: None,
                is_fp8: from.is_fp8() || to.is_fp8(),
                word: quote!(#core::row::of_symbol(#symbol)),
                slots: None,
                parameters: quote!(y: *mut #b, x: *const #a, #places mode: u32, #steps),
                prepare: quote! {
                    let tensors = #root::__private::formula::Tensors::of_one(x.cast(), y.cast(), mode);
                    let op = <#this as #core::OpData>::from_words(&[0; 8]);
                },
                call: quote!(#root::__private::formula::#call),
            }
            .into_token_stream()
        };
        CLASSES.map(of_class).into_iter().collect::<TokenStream>()
    };
    pairs().map(of_pair).collect()
}

/// The functions `cpu` and `entries`, which find the loop and the kernels of a pair: by single elements, and by vectors.
pub(crate) fn functions(Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let dtypes = |(from, to): (Type, Type)| {
        let (from, to) = (format_ident!("{}", from.dtype()), format_ident!("{}", to.dtype()));
        quote!((#core::DType::#from, #core::DType::#to))
    };
    let loops = pairs().map(|(from, to)| {
        let (pair, a, b) = (dtypes((from, to)), element(&core, from), element(&core, to));
        quote!(#pair => ::core::option::Option::Some(#root::cpu::formula::<#a, #b, #core::cast::Convert<#a, #b>, 1, 1>))
    });
    let kernels = pairs().map(|(from, to)| {
        let pair = dtypes((from, to));
        let [flat, strided] = CLASSES.map(|class| {
            let symbol = symbol(from, to, class);
            quote!(#root::kernel::Entry::new(#symbol, #core::row::of_symbol(#symbol), &#given))
        });
        quote! {
            #pair => {
                static ENTRIES: [#root::kernel::Entry; 2] = [#strided, #flat];
                ::core::option::Option::Some(&ENTRIES)
            }
        }
    });
    quote! {
        pub(crate) fn cpu(from: #core::DType, to: #core::DType) -> ::core::option::Option<#root::cpu::FormulaFn> {
            match (from, to) {
                #(#loops,)*
                _ => ::core::option::Option::None,
            }
        }

        pub(crate) fn entries(
            from: #core::DType,
            to: #core::DType,
        ) -> ::core::option::Option<&'static [#root::kernel::Entry; 2]> {
            match (from, to) {
                #(#kernels,)*
                _ => ::core::option::Option::None,
            }
        }
    }
}

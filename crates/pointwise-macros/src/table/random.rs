//! Ops with a random word for each element that have kernels of their own: dropout.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{Listed, Place, element, static_entry};
use crate::entry::Entry;
use crate::words::Type;

/// The strategies, as the functions of `pointwise_device::random` and the variants of `Variant` on the host.
const STRATEGIES: [(&str, &str); 2] = [("explicit_parallel", "ExplicitParallel"), ("register_copy", "RegisterCopy")];

/// Whether there is a mask, and the strategy, of each kernel.
fn kinds() -> impl Iterator<Item = (bool, (&'static str, &'static str))> {
    [false, true].into_iter().flat_map(|mask| STRATEGIES.map(|strategy| (mask, strategy)))
}

/// The kernel of a strategy, which writes the mask, too, or does not.
fn symbol(row: &Listed, each: Type, mask: bool, strategy: &str) -> String {
    format!("{}_{}_{}_{strategy}", if mask { "random_mask" } else { "random" }, row.name, each.name())
}

/// The entries. All have one signature, the mask's pointer included.
pub(crate) fn entries(rows: &[Listed], Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let of_type = |row: &Listed, each: Type| {
        let (element, type_name) = (element(&core, each), &row.type_name);
        let this = quote!(#type_name<<#element as #core::Element>::Compute>);
        let lanes = quote!({ 16 / ::core::mem::size_of::<#element>() });
        let of_kernel = |(mask, (strategy, _))| {
            let function = format_ident!("{strategy}");
            let vectors = (strategy == "register_copy").then(|| quote!(, { #root::random::elements(#lanes) }, #lanes));
            Entry {
                root,
                abi: given,
                symbol: &symbol(row, each, mask, strategy),
                is_fp8: each.is_fp8(),
                word: quote!(#core::row::of_random::<#element, #this>()),
                parameters: quote! {
                    x: *const #element, y: *mut #element, mask: *mut #core::element::Bool, n: u64, head: u32,
                    blocks: #core::Blocks, p0: u64, p1: u64,
                },
                prepare: quote!(let op = <#this as #core::TableOp>::from_words([p0, p1, 0, 0]);),
                call: quote! {
                    #root::random::#function::<#element, #this, #mask #vectors>(x, y, mask, n, head, &blocks, op)
                },
            }
            .into_token_stream()
        };
        kinds().map(of_kernel).collect::<TokenStream>()
    };
    rows.iter().flat_map(|row| row.types.iter().map(move |&each| of_type(row, each))).collect()
}

/// The definitions, by name.
pub(crate) fn definitions(rows: &[Listed], Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let of_row = |row: &Listed| {
        let Listed { name, type_name, types } = row;
        let (mut loops, mut kernels) = (TokenStream::new(), TokenStream::new());
        for &each in types {
            let (element, dtype) = (element(&core, each), format_ident!("{}", each.dtype()));
            let this = quote!(#type_name<<#element as #core::Element>::Compute>);
            loops.extend(quote! {
                #core::DType::#dtype => ::core::option::Option::Some(#root::cpu::random::<#element, #this>),
            });
            for (mask, (strategy, variant)) in kinds() {
                let (symbol, variant) = (symbol(row, each, mask, strategy), format_ident!("{variant}"));
                let entry = static_entry(root, given, &symbol, &quote!(#core::row::of_random::<#element, #this>()));
                kernels.extend(quote! {
                    (#core::DType::#dtype, #root::kernel::Variant::#variant, #mask) => #entry
                });
            }
        }
        quote! {
            #[allow(non_upper_case_globals)]
            pub(super) static #name: #root::kernel::RandomDef = #root::kernel::RandomDef {
                info: <#type_name<f32> as #core::TableOp>::INFO,
                cpu: |dtype| match dtype {
                    #loops
                    _ => ::core::option::Option::None,
                },
                entry: |dtype, variant, mask| match (dtype, variant, mask) {
                    #kernels
                    _ => ::core::option::Option::None,
                },
            };
        }
    };
    rows.iter().map(of_row).collect()
}

//! The kernels that look results up in a table of pairs, which serve every op of two operands of one byte.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::Place;
use crate::entry::Entry;

/// The entries: along flat tensors, and along rows.
pub(crate) fn entries(Place { root, given }: &Place) -> TokenStream {
    let core = quote!(#root::__private::core);
    let entry = |symbol: &str, places: TokenStream, steps: TokenStream, call: TokenStream| {
        Entry {
            root,
            abi: given,
            symbol,
            op: "lookup_pairs",
            vectors: quote!([true; 2]),
            barriers: None,
            is_fp8: false,
            word: quote!(#core::row::of_symbol(#symbol)),
            slots: None,
            parameters: quote! {
                y: *mut u8, a: *const u8, b: *const u8, #places mode: u32, table: *const u8, #steps
            },
            prepare: quote!(let tensors = #root::lookup::Tensors { operands: [a, b], result: y, mode, table };),
            call: quote!(#root::lookup::#call),
        }
        .into_token_stream()
    };
    let flat = entry("binary_lookup_pairs_flat", quote!(n: u64, head: u32,), quote!(), quote!(flat(&tensors, n, head)));
    let rows = entry(
        "binary_lookup_pairs_rows",
        quote!(items: u32,),
        quote!(steps: #core::launch::Steps<3, { #core::launch::ROW_SPLITS }>,),
        quote!(rows(&tensors, &steps, items)),
    );
    quote!(#flat #rows)
}

//! The position encodings: generators whose formulas, `GeneratorOp`s, share the work of a column.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::Place;
use crate::generator::Generated;
use crate::words::FLOATS;

/// The name in symbols and the struct of each, in `pointwise_core::family::generator`.
const GENERATORS: [(&str, &str); 4] = [
    ("alibi", "Alibi"),
    ("alibi_causal", "AlibiCausal"),
    ("sinusoidal", "Sinusoidal"),
    ("sinusoidal_halves", "SinusoidalHalves"),
];

/// Words of the parameters of each generator: as many as the largest has.
const WORDS: usize = 2;

fn generated((name, type_name): (&str, &str), root: &TokenStream) -> Generated {
    let this = format_ident!("{type_name}");
    let this = quote!(#root::__private::core::family::generator::#this);
    let symbol = format!("generator_{name}");
    Generated { root: root.clone(), op: name.to_owned(), symbol, this, words: WORDS, source: quote!(0) }
}

/// The entries.
pub(crate) fn entries(Place { root, given }: &Place) -> TokenStream {
    let of_generator = |generator| {
        let generated = generated(generator, root);
        FLOATS.into_iter().map(|each| generated.entries(each, given)).collect::<TokenStream>()
    };
    GENERATORS.into_iter().map(of_generator).collect()
}

/// The definitions, by name.
pub(crate) fn definitions(Place { root, given }: &Place) -> TokenStream {
    let definitions = GENERATORS.into_iter().map(|generator| {
        let (name, list) = (format_ident!("{}", generator.0), format_ident!("TYPES_OF_{}", generator.0));
        let generated = generated(generator, root);
        let (count, typed, this) = (FLOATS.len(), generated.types(&FLOATS, given), &generated.this);
        quote! {
            static #list: [#root::__private::GeneratorTyped; #count] = #typed;
            pub(super) static #name: #root::kernel::GeneratorDef =
                #root::kernel::GeneratorDef::new::<#this>(&#list, ::core::option::Option::None);
        }
    });
    quote!(#(#[allow(non_upper_case_globals)] #definitions)*)
}

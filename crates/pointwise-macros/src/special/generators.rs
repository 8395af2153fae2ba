//! The position encodings: generators whose formulas, `GeneratorOp`s, share the work of a column.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::Place;
use crate::generator::Generated;
use crate::words::FLOATS;

/// A generator.
struct Generator {
    name: &'static str,
    /// Its struct in `pointwise_core::family::generator`.
    type_name: &'static str,
    /// The host's function of its shapes.
    sizes: &'static str,
}

const fn generator(name: &'static str, type_name: &'static str, sizes: &'static str) -> Generator {
    Generator { name, type_name, sizes }
}

const GENERATORS: [Generator; 4] = [
    generator("alibi", "Alibi", "alibi_sizes"),
    generator("alibi_causal", "AlibiCausal", "alibi_sizes"),
    generator("sinusoidal", "Sinusoidal", "sinusoidal_sizes"),
    generator("sinusoidal_halves", "SinusoidalHalves", "sinusoidal_sizes"),
];

/// Words of the parameters of each generator: as many as the largest has.
const WORDS: usize = 2;

fn generated(generator: &Generator, root: &TokenStream) -> Generated {
    let Generator { name, type_name, .. } = generator;
    let this = format_ident!("{type_name}");
    let this = quote!(#root::__private::core::family::generator::#this);
    let (op, symbol) = ((*name).to_owned(), format!("generator_{name}"));
    Generated { root: root.clone(), op, symbol, this, words: WORDS, source: quote!(0) }
}

/// The entries.
pub(crate) fn entries(Place { root, given }: &Place) -> TokenStream {
    let of_generator = |generator| {
        let generated = generated(generator, root);
        FLOATS.into_iter().map(|each| generated.entries(each, given)).collect::<TokenStream>()
    };
    GENERATORS.iter().map(of_generator).collect()
}

/// The definitions by name, and `ALL` of them.
pub(crate) fn definitions(Place { root, given }: &Place) -> TokenStream {
    let definitions = GENERATORS.iter().map(|generator| {
        let (name, list) = (format_ident!("{}", generator.name), format_ident!("TYPES_OF_{}", generator.name));
        let (generated, sizes) = (generated(generator, root), format_ident!("{}", generator.sizes));
        let (count, typed, this) = (FLOATS.len(), generated.types(&FLOATS, given), &generated.this);
        quote! {
            static #list: [#root::__private::GeneratorTyped; #count] = #typed;
            pub(super) static #name: #root::kernel::OpDef =
                #root::kernel::OpDef::of_shapes::<#this>(
                    &#list,
                    ::core::option::Option::None,
                    ::core::option::Option::Some(#sizes),
                );
        }
    });
    let (count, names) = (GENERATORS.len(), GENERATORS.iter().map(|each| format_ident!("{}", each.name)));
    quote! {
        #(#[allow(non_upper_case_globals)] #definitions)*
        pub(super) static ALL: [&#root::kernel::OpDef; #count] = [#(&#names),*];
    }
}

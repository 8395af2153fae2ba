//! The table of generators, whose formulas are written by hand: `Generator; name: Type [element types]; ..`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token, bracketed};

use crate::generator::Generated;
use crate::words::Type;

/// Words of the parameters of each: those of the one that has most.
const WORDS: usize = 2;

pub(crate) struct Generators {
    rows: Vec<Row>,
}

struct Row {
    name: Ident,
    type_name: Ident,
    types: Vec<Type>,
}

impl Generators {
    /// Whether such a table follows.
    pub(crate) fn are_next(input: ParseStream<'_>) -> bool {
        input.fork().parse::<Ident>().is_ok_and(|kind| kind == "Generator")
    }

    fn generated(row: &Row, root: &TokenStream) -> Generated {
        let this = &row.type_name;
        // The words of a row are its source.
        let (symbol, source) = (format!("generator_{}", row.name), quote!(0));
        Generated { root: root.clone(), symbol, this: quote!(#this), words: WORDS, source }
    }

    /// On the device: the entries.
    pub(crate) fn entries(&self, root: &TokenStream, abi: &TokenStream) -> TokenStream {
        let of_row = |row: &Row| {
            let generated = Self::generated(row, root);
            row.types.iter().map(|&each| generated.entries(each, abi)).collect::<TokenStream>()
        };
        self.rows.iter().map(of_row).collect()
    }

    /// On the host: the module `definitions`.
    pub(crate) fn host(&self, root: &TokenStream, kernels: &TokenStream) -> TokenStream {
        let definitions = self.rows.iter().map(|row| {
            let Row { name, type_name, types } = row;
            let (count, list) = (types.len(), format_ident!("TYPES_OF_{name}"));
            let typed = Self::generated(row, root).types(types, kernels);
            quote! {
                static #list: [#root::__private::GeneratorTyped; #count] = #typed;
                // SAFETY: it is the value of a static.
                pub static #name: #root::kernel::GeneratorDef = unsafe {
                    #root::kernel::GeneratorDef::new::<#type_name>(&#list, ::core::option::Option::None)
                };
            }
        });
        quote! {
            /// The definitions of the ops, by name.
            #[allow(non_upper_case_globals)]
            pub mod definitions {
                use super::*;
                #(#definitions)*
            }
        }
    }
}

impl Parse for Generators {
    fn parse(input: ParseStream<'_>) -> Result<Generators> {
        input.parse::<Ident>()?;
        input.parse::<Token![;]>()?;
        let mut rows = Vec::new();
        while !input.is_empty() {
            let name = input.parse()?;
            input.parse::<Token![:]>()?;
            let type_name = input.parse()?;
            let (words, mut types) = (input_of(input)?, Vec::new());
            for word in &words {
                let named = Type::named(&word.to_string()).ok_or_else(|| Error::new(word.span(), "no element type"))?;
                types.extend_from_slice(named);
            }
            input.parse::<Token![;]>()?;
            rows.push(Row { name, type_name, types });
        }
        Ok(Generators { rows })
    }
}

/// The words in brackets.
fn input_of(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let inside;
    bracketed!(inside in input);
    let mut words = Vec::new();
    while !inside.is_empty() {
        words.push(inside.parse()?);
    }
    Ok(words)
}

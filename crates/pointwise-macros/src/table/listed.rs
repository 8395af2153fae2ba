//! Tables of ops whose formulas are written by hand: their rows, and what generators become.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token, bracketed};

use super::Place;
use crate::generator::Generated;
use crate::words::Type;

/// `name: Type [element types];`.
pub(crate) struct Listed {
    pub(crate) name: Ident,
    pub(crate) type_name: Ident,
    pub(crate) types: Vec<Type>,
}

/// The rows of a table, after its kind.
pub(crate) fn rows(input: ParseStream<'_>) -> Result<Vec<Listed>> {
    let mut rows = Vec::new();
    while !input.is_empty() {
        rows.push(input.parse()?);
    }
    Ok(rows)
}

impl Parse for Listed {
    fn parse(input: ParseStream<'_>) -> Result<Listed> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let type_name = input.parse()?;
        let inside;
        bracketed!(inside in input);
        let mut types = Vec::new();
        while !inside.is_empty() {
            let word: Ident = inside.parse()?;
            let named = Type::named(&word.to_string()).ok_or_else(|| Error::new(word.span(), "no element type"))?;
            types.extend_from_slice(named);
        }
        input.parse::<Token![;]>()?;
        Ok(Listed { name, type_name, types })
    }
}

/// Words of the parameters of each generator: those of the one that has most.
const WORDS: usize = 2;

fn generated(row: &Listed, root: &TokenStream) -> Generated {
    let this = &row.type_name;
    // The words of a row are its source.
    let (symbol, source) = (format!("generator_{}", row.name), quote!(0));
    Generated { root: root.clone(), symbol, this: quote!(#this), words: WORDS, source }
}

/// The entries of generators.
pub(crate) fn generator_entries(rows: &[Listed], Place { root, given }: &Place) -> TokenStream {
    let of_row = |row: &Listed| {
        let generated = generated(row, root);
        row.types.iter().map(|&each| generated.entries(each, given)).collect::<TokenStream>()
    };
    rows.iter().map(of_row).collect()
}

/// The module `definitions` of generators.
pub(crate) fn generators(rows: &[Listed], Place { root, given }: &Place) -> TokenStream {
    let definitions = rows.iter().map(|row| {
        let Listed { name, type_name, types } = row;
        let (count, list) = (types.len(), format_ident!("TYPES_OF_{name}"));
        let typed = generated(row, root).types(types, given);
        quote! {
            static #list: [#root::__private::GeneratorTyped; #count] = #typed;
            pub static #name: #root::kernel::GeneratorDef =
                #root::kernel::GeneratorDef::new::<#type_name>(&#list, ::core::option::Option::None);
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

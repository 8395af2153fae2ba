//! Rows of tables, as the visitors of tables pass them on: what they become on the device and on the host.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Result, bracketed, parenthesized};

use crate::made::Made;
use crate::words::Type;

/// `($crate) (given) [documentation] kind name Op first [element types and words] [operands] [results] [parameters]`;
/// `first` is `bool` where the first operand is one.
pub(crate) struct Row {
    made: Made,
    name: Ident,
    types: Vec<Type>,
    /// What the visitor gives besides the row.
    given: TokenStream,
    /// Literals, one a line.
    docs: Vec<TokenTree>,
}

impl Parse for Row {
    fn parse(input: ParseStream<'_>) -> Result<Row> {
        let (root, given);
        parenthesized!(root in input);
        parenthesized!(given in input);
        let root = root.parse()?;
        let given = given.parse()?;
        let docs;
        bracketed!(docs in input);
        let docs: TokenStream = docs.parse()?;
        let [kind, name, type_name, first]: [Ident; 4] = [input.parse()?, word(input)?, input.parse()?, input.parse()?];
        let [sets, operands, results, params] = [idents(input)?, idents(input)?, idents(input)?, idents(input)?];
        Ok(Row {
            made: Made {
                root,
                symbol: format!("{kind}_{name}"),
                type_name,
                is_generic: !params.is_empty(),
                operands: (0..operands.len()).map(|k| k == 0 && first == "bool").collect(),
                results: vec![false; results.len()],
                words: params.len(),
                is_random: false,
                // The words of a row are its source.
                source: quote!(0),
            },
            name,
            types: sets.iter().filter_map(|set| Type::named(&set.to_string())).flatten().copied().collect(),
            given,
            docs: docs.into_iter().collect(),
        })
    }
}

/// A name, which may be a keyword.
fn word(input: ParseStream<'_>) -> Result<Ident> {
    Ident::parse_any(input)
}

/// Names in brackets.
fn idents(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let content;
    bracketed!(content in input);
    let tokens: TokenStream = content.parse()?;
    Ok(tokens
        .into_iter()
        .filter_map(|token| if let TokenTree::Ident(ident) = token { Some(ident) } else { None })
        .collect())
}

impl Row {
    /// The entries.
    pub(crate) fn entries(&self) -> TokenStream {
        self.types.iter().map(|&each| self.made.entries(each, &self.given)).collect()
    }

    /// The static of the definition. Its kernels are in the static that the visitor gives.
    pub(crate) fn definition(&self) -> TokenStream {
        let Row { made, name, types, given, docs } = self;
        let root = &made.root;
        let count = types.len();
        let list = format_ident!("TYPES_OF_{name}");
        let (typed, info) = (made.types(types, given), made.info());
        let (oracle, stepped) =
            (made.reference(&quote!(f64)), made.reference(&quote!(#root::__private::core::Stepped)));
        quote! {
            static #list: [#root::__private::Typed; #count] = #typed;
            #(#[doc = #docs])*
            // SAFETY: it is the value of a static.
            pub static #name: #root::__private::OpDef = unsafe {
                #root::__private::OpDef::new(#info, &#list, #oracle, #stepped, ::core::option::Option::None)
            };
        }
    }
}

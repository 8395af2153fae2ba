//! Rows of tables, as the visitors of tables pass them on: what they become on the device and on the host.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Result, bracketed, parenthesized};

use crate::made::Made;
use crate::words::Type;

/// `($crate) (given) [documentation] kind name definition Op Bound first adapter [element types and words] [operands]
/// [results] [parameters]`; `first` is `bool` where the first operand is one, `adapter` is `plain` where the op is a
/// formula itself. Results are `T`, `bool`, or the names of several in parentheses.
pub(crate) struct Row {
    made: Made,
    /// Of the static.
    definition: Ident,
    /// What the formula asks of the compute type.
    bound: Ident,
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
        let [kind, name, definition, type_name]: [Ident; 4] =
            [input.parse()?, word(input)?, word(input)?, input.parse()?];
        let [bound, first, adapter]: [Ident; 3] = [input.parse()?, input.parse()?, input.parse()?];
        let [sets, operands, results, params] = [idents(input)?, idents(input)?, idents(input)?, idents(input)?];
        Ok(Row {
            made: Made {
                root,
                symbol: format!("{kind}_{name}"),
                type_name,
                is_generic: !params.is_empty(),
                adapter: (adapter != "plain").then_some(adapter),
                operands: (0..operands.len()).map(|k| k == 0 && first == "bool").collect(),
                results: results.iter().map(|result| result == "bool").collect(),
                words: params.len(),
                is_random: false,
                // The words of a row are its source.
                source: quote!(0),
            },
            definition,
            bound,
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

/// Names in brackets, which may stand in parentheses there.
fn idents(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let content;
    bracketed!(content in input);
    let tokens: TokenStream = content.parse()?;
    Ok(names(tokens))
}

fn names(tokens: TokenStream) -> Vec<Ident> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) => vec![ident],
            TokenTree::Group(group) => names(group.stream()),
            _ => Vec::new(),
        })
        .collect()
}

impl Row {
    /// The entries.
    pub(crate) fn entries(&self) -> TokenStream {
        self.types.iter().map(|&each| self.made.entries(each, &self.given)).collect()
    }

    /// The static of the definition. Its kernels are in the static that the visitor gives.
    pub(crate) fn definition(&self) -> TokenStream {
        let Row { made, definition, bound, types, given, docs } = self;
        let root = &made.root;
        let count = types.len();
        let list = format_ident!("TYPES_OF_{definition}");
        let (typed, info) = (made.types(types, given), made.info());
        let none = quote!(::core::option::Option::None);
        let reference = |is_there: bool, ty: TokenStream| if is_there { made.reference(&ty) } else { none.clone() };
        // Floats have no bits. What is rounded step by step are floats alone.
        let oracle = reference(bound != "Bits", quote!(f64));
        let stepped = reference(bound == "Real", quote!(#root::__private::core::Stepped));
        quote! {
            static #list: [#root::__private::Typed; #count] = #typed;
            #(#[doc = #docs])*
            // SAFETY: it is the value of a static.
            pub static #definition: #root::__private::OpDef = unsafe {
                #root::__private::OpDef::new(#info, &#list, #oracle, #stepped, #none)
            };
        }
    }
}

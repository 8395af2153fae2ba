//! What a table is in the core: types, formulas, data.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, Result};

use super::{Kind, Outcome, Row, SPECIAL, Table};
use crate::words::Type;

/// Of `name Kind; rows`: the ops' types with their formulas and data, the list `OPS`, and the macro `name` that hands the rows
/// to a visitor. Of rows whose ops are written by hand, the macro alone.
pub(crate) fn declare(input: TokenStream) -> Result<TokenStream> {
    let mut tokens = input.into_iter();
    let Some(TokenTree::Ident(name)) = tokens.next() else {
        return Err(Error::new(Span::call_site(), "a table begins with the name of its macro"));
    };
    let rows: TokenStream = tokens.collect();
    let visitor = visitor(&name, &rows);
    let kind = rows.clone().into_iter().next().map(|kind| kind.to_string());
    if kind.is_some_and(|kind| SPECIAL.contains(&kind.as_str())) {
        return Ok(visitor);
    }
    let table: Table = syn::parse2(rows.clone())?;
    let ops = table.rows.iter().map(|row| row.declaration(&table)).collect::<Result<TokenStream>>()?;
    let infos = table.rows.iter().map(|row| {
        let this = row.at(&quote!(f32));
        if table.kind.arity().is_some() {
            quote!(<#this as crate::TableOp>::INFO)
        } else {
            quote!(<#this as crate::OpData>::INFO)
        }
    });
    Ok(quote! {
        #ops

        /// The ops of this table, in its order.
        pub const OPS: &[crate::OpInfo] = &[#(#infos),*];

        #visitor
    })
}

/// The macro that hands rows on.
fn visitor(name: &Ident, rows: &TokenStream) -> TokenStream {
    quote! {
        /// Hands the rows of this table to a visitor macro: `table!(path::to::visitor)`.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #name {
            ($($visitor:ident)::+) => { $($visitor)::+! { #rows } };
        }
    }
}

impl Row {
    fn declaration(&self, table: &Table) -> Result<TokenStream> {
        let Row { docs, type_name, .. } = self;
        let params = self.parameters();
        let derive = quote!(#(#docs)* #[derive(Clone, Copy, Debug)]);
        let declared = if params.is_empty() {
            quote!(#derive pub struct #type_name;)
        } else {
            let about = self.params.iter().map(|(name, default)| {
                format!("The parameter `{name}`; default {}.", quote!(#default).to_string().replace(' ', ""))
            });
            quote!(#derive pub struct #type_name<T> { #(#[doc = #about] pub #params: T,)* })
        };
        let formula = self.formula(table.kind);
        let info = self.info(table)?;
        let this = self.at(&quote!(T));
        let generic = (!params.is_empty()).then(|| quote!(<T: crate::op::Word>));
        let value = if params.is_empty() {
            quote!(#type_name)
        } else {
            let at = 0..params.len();
            quote!(#type_name { #(#params: T::from_word(words[#at])),* })
        };
        let data = if table.kind.arity().is_some() {
            quote! {
                impl #generic crate::TableOp for #this {
                    const INFO: crate::OpInfo = #info;
                    #[inline(always)]
                    #[allow(unused_variables)] // of an op without parameters
                    fn from_words(words: crate::Words) -> Self {
                        #value
                    }
                }
            }
        } else {
            quote! {
                impl #generic crate::OpData for #this {
                    const INFO: crate::OpInfo = #info;
                    #[inline(always)]
                    #[allow(unused_variables)] // of an op without parameters
                    fn from_words(words: &crate::ParamWords) -> Self {
                        #value
                    }
                }
            }
        };
        Ok(quote!(#declared #formula #data))
    }

    /// The impl of the op's trait.
    fn formula(&self, kind: Kind) -> TokenStream {
        let Row { operands, bound, formula, .. } = self;
        let this = self.at(&quote!(T));
        let params = self.parameters();
        let params = quote!(#(let #params = self.#params;)*);
        let Some((arity, _)) = kind.arity() else {
            let (count, results) = (operands.len(), self.results.count());
            let condition = &operands[0];
            let condition = kind.has_condition().then(|| quote!(let #condition = crate::Logic(truths[0]);));
            return quote! {
                impl<T: crate::#bound> crate::Formula<T, #count, #results> for #this {
                    #[inline(always)]
                    #[allow(unused_variables)] // a gradient may be constant
                    fn apply(
                        self,
                        [#(#operands),*]: [T; #count],
                        truths: [bool; #count],
                        _: crate::RandomWord<'_>,
                    ) -> ([T; #results], [bool; #results]) {
                        #condition
                        #params
                        (#formula, [false; #results])
                    }
                }
            };
        };
        let out = if self.results.is_bool() { quote!(bool) } else { quote!(T) };
        let (op_trait, first) = match arity {
            "Select" => (quote!(TernaryOp<T, crate::Logic>), quote!(crate::Logic)),
            arity => {
                let name = format_ident!("{arity}Op");
                (quote!(#name<T>), quote!(T))
            }
        };
        let types = (0..operands.len()).map(|k| if k == 0 { first.clone() } else { quote!(T) });
        quote! {
            impl<T: crate::#bound> crate::#op_trait for #this {
                type Output = #out;
                #[inline(always)]
                #[allow(unused_variables)] // a gradient may not depend on the operand
                fn apply(self, #(#operands: #types),*) -> #out {
                    #params
                    #formula
                }
            }
        }
    }

    /// The op's data.
    fn info(&self, table: &Table) -> Result<TokenStream> {
        let (kind, name) = (&table.kind_name, self.name.unraw().to_string());
        let (accuracy, formula) = (&self.accuracy, &self.formula);
        let operands = self.operands.iter().map(ToString::to_string);
        let results = match &self.results {
            Outcome::Named(names) => names.iter().map(ToString::to_string).collect(),
            _ => vec!["y".to_owned()],
        };
        let result = format_ident!("{}", if self.results.is_bool() { "Bool" } else { "Same" });
        let params = self.params.iter().map(|(name, default)| {
            let name = name.to_string();
            quote!(crate::ParamInfo::number(#name, #default as f64))
        });
        let types = self.types().into_iter().map(|each| format_ident!("{}", each.dtype()));
        let docs = self.docs.iter().map(|doc| match &doc.meta {
            syn::Meta::NameValue(doc) => Ok(&doc.value),
            other => Err(Error::new_spanned(other, "a row has documentation, and no other attribute")),
        });
        let docs = docs.collect::<Result<Vec<_>>>()?;
        let words = self.words.iter().map(word).collect::<Result<TokenStream>>()?;
        Ok(quote! {{
            #[allow(unused_imports)]
            use crate::Accuracy::*;
            #[allow(unused_mut)] // without words there is nothing to set
            let mut info = crate::OpInfo {
                name: #name,
                kind: crate::Kind::#kind,
                operands: &[#(#operands),*],
                bool_operands: crate::Kind::#kind.bool_operands(),
                bool_results: crate::ResultType::#result.bits(),
                channel_operands: crate::Kind::#kind.channel_operands(),
                results: &[#(#results),*],
                params: &[#(#params),*],
                types: crate::info::checked_types(&[#(crate::DType::#types),*]),
                result: crate::ResultType::#result,
                accuracy: #accuracy,
                doc: concat!(#(#docs, "\n"),*),
                formula: crate::__text!(#formula),
                ..crate::OpInfo::FORMULA
            };
            #words
            info
        }})
    }
}

/// What a word of the column of element types sets; nothing for a type.
fn word(word: &Ident) -> Result<TokenStream> {
    let text = word.to_string();
    if Type::named(&text).is_some() {
        return Ok(TokenStream::new());
    }
    let function = |name: &str| {
        let name = format_ident!("{name}");
        quote!(info.properties.function = Some(crate::BinaryFunction::#name);)
    };
    Ok(match text.as_str() {
        "int_to_float" => quote!(info.int_to_float = true;),
        "angle" | "few_registers" | "truths" | "constant" | "factor_alpha" | "refuses_bool" | "copies_ints"
        | "whole_parameter" => quote!(info.properties.#word = true;),
        "quotient" => function("Quotient"),
        "truncated_quotient" => function("TruncatedQuotient"),
        "floored_quotient" => function("FlooredQuotient"),
        "modulo" => function("Modulo"),
        "power" => function("Power"),
        "clears_sign" => quote!(info.properties.sign = Some(crate::SignChange::Clear);),
        "flips_sign" => quote!(info.properties.sign = Some(crate::SignChange::Flip);),
        _ => return Err(Error::new(word.span(), "no element type, no set of them, and no word of `Properties`")),
    })
}

//! What a table is to those that visit it: entries on the device; definitions, kernel objects and functions on the host.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Result, Token, parenthesized};

use super::Kind::{Gated, GatedGradients, Select, Unary};
use super::listed::{self, Listed};
use super::{Outcome, Row, SPECIAL, Table, conversions, lookup, random, rope};
use crate::made::Made;
use crate::words::Type;

/// `(root) (given) Kind; rows`: what a visitor passes on.
pub(crate) struct Visited {
    place: Place,
    rows: Rows,
}

/// Where a table is visited.
pub(crate) struct Place {
    /// The crate in whose `__private` the expansion finds what it names.
    pub(crate) root: TokenStream,
    /// The entries' `extern "gpu-kernel"`, or the static of the kernels.
    pub(crate) given: TokenStream,
}

enum Rows {
    Formulas(Table),
    Generators(Vec<Listed>),
    Random(Vec<Listed>),
    Conversions,
    Rope,
    Lookup,
}

/// A table of formulas, and what its visitor passes on.
struct Formulas<'a> {
    root: &'a TokenStream,
    given: &'a TokenStream,
    table: &'a Table,
}

impl Parse for Visited {
    fn parse(input: ParseStream<'_>) -> Result<Visited> {
        let (root, given);
        parenthesized!(root in input);
        parenthesized!(given in input);
        let place = Place { root: root.parse()?, given: given.parse()? };
        let kind = input.fork().parse::<Ident>()?.to_string();
        if !SPECIAL.contains(&kind.as_str()) {
            return Ok(Visited { place, rows: Rows::Formulas(input.parse()?) });
        }
        input.parse::<Ident>()?;
        input.parse::<Token![;]>()?;
        let rows = match kind.as_str() {
            "Generator" => Rows::Generators(listed::rows(input)?),
            "Random" => Rows::Random(listed::rows(input)?),
            "Conversions" => Rows::Conversions,
            "Rope" => Rows::Rope,
            _ => Rows::Lookup,
        };
        Ok(Visited { place, rows })
    }
}

impl Visited {
    /// On the device: the entries.
    pub(crate) fn entries(&self) -> TokenStream {
        let Visited { place, rows } = self;
        match rows {
            Rows::Formulas(table) => Formulas { root: &place.root, given: &place.given, table }.entries(),
            Rows::Generators(rows) => listed::generator_entries(rows, place),
            Rows::Random(rows) => random::entries(rows, place),
            Rows::Conversions => conversions::entries(place),
            Rows::Rope => rope::entries(place),
            Rows::Lookup => lookup::entries(place),
        }
    }

    /// On the host: of formulas the modules `definitions`, `kernels` and `ops`, and the list `OPS` of the definitions; of
    /// generators the module `definitions`; of random ops the definitions; else functions that find loops and kernels.
    pub(crate) fn host(&self) -> TokenStream {
        let Visited { place, rows } = self;
        match rows {
            Rows::Formulas(table) => Formulas { root: &place.root, given: &place.given, table }.host(),
            Rows::Generators(rows) => listed::generators(rows, place),
            Rows::Random(rows) => random::definitions(rows, place),
            Rows::Conversions => conversions::functions(place),
            Rows::Rope => rope::function(place),
            Rows::Lookup => quote!(::core::compile_error! { "the host's lookups are no table: kernel/lookup.rs" }),
        }
    }
}

/// The type of elements in the core crate.
pub(crate) fn element(core: &TokenStream, each: Type) -> TokenStream {
    let name = Ident::new(each.name(), Span::call_site());
    quote!(#core::element::ty::#name)
}

/// A kernel on the host, as `Some` of a reference to a static.
pub(crate) fn static_entry(root: &TokenStream, kernels: &TokenStream, symbol: &str, word: &TokenStream) -> TokenStream {
    quote! {{
        static ENTRY: #root::kernel::Entry = #root::kernel::Entry::new(#symbol, #word, &#kernels);
        ::core::option::Option::Some(&ENTRY)
    }}
}

impl Formulas<'_> {
    fn made(&self, row: &Row) -> Made {
        let kind = self.table.kind;
        Made {
            root: self.root.clone(),
            symbol: format!("{}_{}", kind.symbol(), row.name.unraw()),
            type_name: row.type_name.clone(),
            is_generic: !row.params.is_empty(),
            adapter: kind.arity().map(|(arity, _)| format_ident!("{arity}")),
            operands: (0..row.operands.len()).map(|k| k == 0 && kind.has_condition()).collect(),
            results: vec![row.results.is_bool(); row.results.count()],
            words: row.params.len(),
            is_random: false,
            // The words of a row are its source.
            source: quote!(0),
        }
    }

    /// The element types of its kernels. What moves elements does so for those of a width.
    fn types(&self, row: &Row) -> Vec<Type> {
        if self.table.kind == Select { vec![Type::I8, Type::I16, Type::I32, Type::I64] } else { row.types() }
    }

    fn entries(&self) -> TokenStream {
        let of_row = |row: &Row| {
            let made = self.made(row);
            self.types(row).into_iter().map(move |each| made.entries(each, self.given)).collect::<TokenStream>()
        };
        self.table.rows.iter().map(of_row).collect()
    }

    fn host(&self) -> TokenStream {
        let root = self.root;
        let rows = &self.table.rows;
        let definitions = rows.iter().map(|row| self.definition(row));
        let kernels = rows.iter().map(|row| self.kernel(row));
        let functions = rows.iter().map(|row| self.functions(row));
        let names = rows.iter().map(|row| self.name(row));
        quote! {
            /// The definitions of the ops, by name.
            #[allow(non_upper_case_globals)]
            pub mod definitions {
                #[allow(unused_imports)]
                use super::*;
                #(#definitions)*
            }

            /// Every op of the table, in its order.
            pub static OPS: &[&#root::kernel::OpDef] = &[#(&definitions::#names),*];

            /// The ops as kernel objects, whose strategy, threads and stream can be set.
            pub mod kernels {
                #(#kernels)*
            }

            /// The ops as functions.
            pub mod ops {
                #(#functions)*
            }
        }
    }

    /// The name of a row's functions. `where` is a keyword.
    fn name(&self, row: &Row) -> Ident {
        if self.table.kind == Select { format_ident!("{}_cond", row.name.unraw()) } else { row.name.clone() }
    }

    /// The static of a definition.
    fn definition(&self, row: &Row) -> TokenStream {
        let (root, kernels, name, made) = (self.root, self.given, self.name(row), self.made(row));
        let types = self.types(row);
        let (count, list) = (types.len(), format_ident!("TYPES_OF_{name}"));
        let (typed, info, docs) = (made.types(&types, kernels), made.info(), &row.docs);
        let none = quote!(::core::option::Option::None);
        let reference = |is_there: bool, ty: TokenStream| if is_there { made.reference(&ty) } else { none.clone() };
        // Floats have no bits. What is rounded step by step are floats alone.
        let oracle = reference(row.bound != "Bits", quote!(f64));
        let stepped = reference(row.bound == "Real", quote!(#root::__private::core::Stepped));
        quote! {
            static #list: [#root::__private::Typed; #count] = #typed;
            #(#docs)*
            pub static #name: #root::__private::OpDef =
                #root::__private::OpDef::new(#info, &#list, #oracle, #stepped, #none, #none);
        }
    }

    /// The function that makes a kernel object.
    fn kernel(&self, row: &Row) -> TokenStream {
        let (root, docs, name, params) = (self.root, &row.docs, self.name(row), row.parameters());
        let [kernel, with] = self.table.kind.kernel().map(|name| format_ident!("{name}"));
        quote! {
            #(#docs)*
            #[must_use]
            pub fn #name(#(#params: impl ::core::convert::Into<#root::Number>),*) -> #root::kernel::#kernel {
                super::definitions::#name.#with(&[#(#params.into()),*])
            }
        }
    }

    /// The functions of an op.
    fn functions(&self, row: &Row) -> TokenStream {
        let (root, kind, name) = (self.root, self.table.kind, self.name(row));
        let (docs, params) = (&row.docs, row.parameters());
        let [kernel, _] = kind.kernel();
        let kernel = if kernel == "GradientsKernel" { "Kernel" } else { kernel };
        let [run, run_into, run_inplace] = ["run", "run_into", "run_inplace"].map(|method| {
            let text = format!(" As [`{kernel}::{method}`](crate::kernel::{kernel}::{method}).");
            quote!(#[doc = ""] #[doc = " # Errors"] #[doc = #text])
        });
        let numbers = quote!(#(#params: impl ::core::convert::Into<#root::Number>,)*);
        let of_kernel = quote!(super::kernels::#name(#(#params),*));
        let (tensor, target) = (quote!(impl ::core::convert::Into<#root::TensorView<'a>>), |lifetime: &str| {
            let lifetime = syn::Lifetime::new(lifetime, Span::call_site());
            quote!(impl ::core::convert::Into<#root::TensorViewMut<#lifetime>>)
        });
        let operand = |lifetime: &str| {
            let lifetime = syn::Lifetime::new(lifetime, Span::call_site());
            quote!(impl ::core::convert::Into<#root::Operand<#lifetime>>)
        };
        let (x, grad, y) = (format_ident!("x"), format_ident!("grad"), format_ident!("y"));
        // Operands with their types.
        let operands: Vec<(&Ident, TokenStream)> = match kind {
            Unary | Gated => vec![(&x, tensor)],
            GatedGradients => vec![(&grad, operand("'a")), (&x, tensor)],
            _ => row.operands.iter().map(|name| (name, operand("'a"))).collect(),
        };
        let (names, declared): (Vec<&Ident>, Vec<TokenStream>) =
            operands.into_iter().map(|(name, ty)| (name, quote!(#name: #ty))).unzip();
        let [into, inplace] = ["into", "inplace"].map(|ending| format_ident!("{}_{ending}", name.unraw()));
        let [doc_into, doc_inplace] =
            ["into a tensor that is there", "over its first operand"].map(|how| format!(" [`{name}`] {how}."));
        if let (Outcome::Named(results), false) = (&row.results, kind == GatedGradients) {
            let (tensors, targets) = (results.iter().map(|_| quote!(#root::Tensor)), target("'b"));
            let doc_into = format!(" [`{name}`] into tensors that are there.");
            let count = results.len();
            return quote! {
                #(#docs)*
                #[doc = ""]
                #[doc = " Every gradient has the shape that the operands broadcast to; that of a broadcast operand is to be"]
                #[doc = " summed over the dimensions along which it was."]
                #run
                pub fn #name<'a>(#(#declared,)* #numbers) -> #root::Result<(#(#tensors),*)> {
                    let [#(#results),*] = #root::__private::results::<#count>(&#of_kernel, &[#(#names.into()),*])?;
                    Ok((#(#results),*))
                }

                #[doc = #doc_into]
                #run_into
                pub fn #into<'a, 'b>(#(#declared,)* #(#results: #targets,)* #numbers) -> #root::Result<()> {
                    #of_kernel.run_into(&[#(#names.into()),*], &mut [#(#results.into()),*])
                }
            };
        }
        let result = target("'b");
        let has_inplace = !row.results.is_bool() && !matches!(kind, Gated | Select | GatedGradients);
        let over = has_inplace.then(|| {
            let (first, others) = (names[0], &row.operands[1..]);
            let (ty, other) = (target("'a"), operand("'b"));
            let lifetime = (!others.is_empty()).then(|| quote!(, 'b));
            let doc = if others.is_empty() { format!(" [`{name}`] in place.") } else { doc_inplace.clone() };
            quote! {
                #[doc = #doc]
                #run_inplace
                pub fn #inplace<'a #lifetime>(#first: #ty, #(#others: #other,)* #numbers) -> #root::Result<()> {
                    #of_kernel.run_inplace(#first, #(#others),*)
                }
            }
        });
        quote! {
            #(#docs)*
            #run
            pub fn #name<'a>(#(#declared,)* #numbers) -> #root::Result<#root::Tensor> {
                #of_kernel.run(#(#names),*)
            }

            #[doc = #doc_into]
            #run_into
            pub fn #into<'a, 'b>(#(#declared,)* #y: #result, #numbers) -> #root::Result<()> {
                #of_kernel.run_into(#(#names,)* #y)
            }

            #over
        }
    }
}

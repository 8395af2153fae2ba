//! Tables of ops, and what their rows become: in the core, on the device, on the host.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Result, Token, braced, bracketed, parenthesized};

use crate::made::Made;
use crate::words::Type;

/// The kind of a table's ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unary,
    Binary,
    Channel,
    Backward,
    Gated,
    Ternary,
    Select,
    Gradients,
    SelectGradients,
    ChannelGradients,
    GatedGradients,
}

use Kind::*;

const KINDS: [(&str, Kind); 11] = [
    ("Unary", Unary),
    ("Binary", Binary),
    ("Channel", Channel),
    ("Backward", Backward),
    ("Gated", Gated),
    ("Ternary", Ternary),
    ("Select", Select),
    ("Gradients", Gradients),
    ("SelectGradients", SelectGradients),
    ("ChannelGradients", ChannelGradients),
    ("GatedGradients", GatedGradients),
];

impl Kind {
    /// The trait of its ops, which is also the adapter that makes formulas of them; `None` where they are formulas.
    fn arity(self) -> Option<&'static str> {
        match self {
            Unary => Some("Unary"),
            Binary | Channel | Backward | Gated => Some("Binary"),
            Ternary => Some("Ternary"),
            Select => Some("Select"),
            _ => None,
        }
    }

    /// How many operands its ops have, where that is one number.
    fn operands(self) -> Option<usize> {
        match self.arity()? {
            "Unary" => Some(1),
            "Binary" => Some(2),
            _ => Some(3),
        }
    }

    /// Whether the first operand is a condition.
    fn has_condition(self) -> bool {
        matches!(self, Select | SelectGradients)
    }

    /// What the names of its kernels begin with.
    fn symbol(self) -> &'static str {
        match self {
            Unary => "unary",
            Binary | Channel | Backward | Gated => "binary",
            Ternary => "ternary",
            Select => "select",
            _ => "gradients",
        }
    }

    /// Its kernel object, and the method of a definition that makes it.
    fn kernel(self) -> [&'static str; 2] {
        match self {
            Unary => ["UnaryKernel", "unary_with"],
            Binary | Channel | Backward => ["BinaryKernel", "binary_with"],
            Gated => ["GatedKernel", "gated_with"],
            Ternary | Select => ["TernaryKernel", "ternary_with"],
            GatedGradients => ["GatedGradientsKernel", "gated_gradients"],
            _ => ["GradientsKernel", "kernel"],
        }
    }
}

/// `Kind; rows`.
pub(crate) struct Table {
    kind_name: Ident,
    kind: Kind,
    rows: Vec<Row>,
}

/// Documentation, then `name: Type { parameter = default, .. } (operands: Bound) -> result, [element types and words],
/// accuracy => formula;`.
struct Row {
    docs: Vec<Attribute>,
    name: Ident,
    type_name: Ident,
    params: Vec<(Ident, Expr)>,
    operands: Vec<Ident>,
    /// What the formula asks of the compute type.
    bound: Ident,
    results: Outcome,
    words: Vec<Ident>,
    accuracy: Expr,
    formula: Expr,
}

/// What a formula gives.
enum Outcome {
    OfType,
    Bool,
    Named(Vec<Ident>),
}

impl Parse for Table {
    fn parse(input: ParseStream<'_>) -> Result<Table> {
        let kind_name: Ident = input.parse()?;
        let kind = KINDS.iter().find(|(name, _)| kind_name == name);
        let &(_, kind) = kind.ok_or_else(|| Error::new(kind_name.span(), "no kind of ops"))?;
        input.parse::<Token![;]>()?;
        let mut rows = Vec::new();
        while !input.is_empty() {
            rows.push(Row::parse(input, kind)?);
        }
        Ok(Table { kind_name, kind, rows })
    }
}

impl Row {
    fn parse(input: ParseStream<'_>, kind: Kind) -> Result<Row> {
        let docs = Attribute::parse_outer(input)?;
        let name = Ident::parse_any(input)?;
        input.parse::<Token![:]>()?;
        let type_name = input.parse()?;
        let params = if input.peek(syn::token::Brace) {
            let inside;
            braced!(inside in input);
            let pairs = Punctuated::<_, Token![,]>::parse_terminated_with(&inside, |pair| {
                let name: Ident = pair.parse()?;
                pair.parse::<Token![=]>()?;
                Ok((name, pair.parse::<Expr>()?))
            })?;
            pairs.into_iter().collect()
        } else {
            Vec::new()
        };
        let inside;
        parenthesized!(inside in input);
        let operands: Vec<Ident> =
            Punctuated::<Ident, Token![,]>::parse_separated_nonempty(&inside)?.into_iter().collect();
        inside.parse::<Token![:]>()?;
        let bound = inside.parse()?;
        if kind.operands().is_some_and(|count| count != operands.len()) {
            return Err(Error::new(name.span(), "the op has another number of operands than those of its table"));
        }
        input.parse::<Token![->]>()?;
        let results = Outcome::parse(input)?;
        input.parse::<Token![,]>()?;
        let inside;
        bracketed!(inside in input);
        let mut words = Vec::new();
        while !inside.is_empty() {
            words.push(inside.parse()?);
        }
        input.parse::<Token![,]>()?;
        let accuracy = input.parse()?;
        input.parse::<Token![=>]>()?;
        let formula = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Row { docs, name, type_name, params, operands, bound, results, words, accuracy, formula })
    }

    /// The op's type at a compute type.
    fn at(&self, ty: &TokenStream) -> TokenStream {
        let name = &self.type_name;
        if self.params.is_empty() { quote!(#name) } else { quote!(#name<#ty>) }
    }

    fn parameters(&self) -> Vec<&Ident> {
        self.params.iter().map(|(name, _)| name).collect()
    }

    /// The element types.
    fn types(&self) -> Vec<Type> {
        self.words.iter().filter_map(|word| Type::named(&word.to_string())).flatten().copied().collect()
    }
}

impl Outcome {
    fn parse(input: ParseStream<'_>) -> Result<Outcome> {
        if input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            let names = Punctuated::<Ident, Token![,]>::parse_terminated(&inside)?;
            return Ok(Outcome::Named(names.into_iter().collect()));
        }
        let out: Ident = input.parse()?;
        match out.to_string().as_str() {
            "T" => Ok(Outcome::OfType),
            "bool" => Ok(Outcome::Bool),
            _ => Err(Error::new(out.span(), "a result is `T`, the type of the operands, or `bool`")),
        }
    }

    fn count(&self) -> usize {
        if let Outcome::Named(names) = self { names.len() } else { 1 }
    }

    fn is_bool(&self) -> bool {
        matches!(self, Outcome::Bool)
    }
}

/// In the core: the ops' types with their formulas and data, the list `OPS`, and the macro `name` that hands the rows to a
/// visitor.
pub(crate) fn declare(name: &Ident, rows: TokenStream) -> Result<TokenStream> {
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

        /// Hands the rows of this table to a visitor macro: `table!(path::to::visitor)`.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #name {
            ($($visitor:ident)::+) => { $($visitor)::+! { #rows } };
        }
    })
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
        let Some(arity) = kind.arity() else {
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

/// `(root) (given) Kind; rows`: what a visitor passes on. `root` is the crate in whose `__private` the expansion finds what
/// it names; `given` is the entries' `extern "gpu-kernel"`, or the static of the kernels.
pub(crate) struct Visited {
    root: TokenStream,
    given: TokenStream,
    table: Table,
}

impl Parse for Visited {
    fn parse(input: ParseStream<'_>) -> Result<Visited> {
        let (root, given);
        parenthesized!(root in input);
        parenthesized!(given in input);
        Ok(Visited { root: root.parse()?, given: given.parse()?, table: input.parse()? })
    }
}

impl Visited {
    fn made(&self, row: &Row) -> Made {
        let kind = self.table.kind;
        Made {
            root: self.root.clone(),
            symbol: format!("{}_{}", kind.symbol(), row.name.unraw()),
            type_name: row.type_name.clone(),
            is_generic: !row.params.is_empty(),
            adapter: kind.arity().map(|arity| format_ident!("{arity}")),
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

    /// On the device: the entries.
    pub(crate) fn entries(&self) -> TokenStream {
        let of_row = |row: &Row| {
            let made = self.made(row);
            self.types(row).into_iter().map(move |each| made.entries(each, &self.given)).collect::<TokenStream>()
        };
        self.table.rows.iter().map(of_row).collect()
    }

    /// On the host: the modules `definitions`, `kernels` and `ops`, and the list `OPS` of the definitions.
    pub(crate) fn host(&self) -> TokenStream {
        let root = &self.root;
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
        let (root, kernels, name, made) = (&self.root, &self.given, self.name(row), self.made(row));
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
            // SAFETY: it is the value of a static.
            pub static #name: #root::__private::OpDef = unsafe {
                #root::__private::OpDef::new(#info, &#list, #oracle, #stepped, #none)
            };
        }
    }

    /// The function that makes a kernel object.
    fn kernel(&self, row: &Row) -> TokenStream {
        let (root, docs, name, params) = (&self.root, &row.docs, self.name(row), row.parameters());
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
        let (root, kind, name) = (&self.root, self.table.kind, self.name(row));
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

/// The name of a table's macro, and the rest.
pub(crate) fn split(input: TokenStream) -> Result<(Ident, TokenStream)> {
    let mut tokens = input.into_iter();
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Ok((name, tokens.collect())),
        _ => Err(Error::new(Span::call_site(), "a table begins with the name of its macro")),
    }
}

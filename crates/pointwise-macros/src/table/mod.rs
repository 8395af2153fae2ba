//! Tables of ops: their rows, what these become in the core (`declare.rs`), on the device and on the host (`visited.rs`).
//! What has kernels of its own has a file of its own.

mod conversions;
mod declare;
mod listed;
mod lookup;
mod random;
mod rope;
mod visited;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Result, Token, braced, bracketed, parenthesized};

pub(crate) use declare::declare;
use listed::Listed;
pub(crate) use rope::symbols as rope_symbols;
pub(crate) use visited::Visited;
use visited::{Place, element, static_entry};

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

/// The kinds of what has kernels of its own.
const SPECIAL: [&str; 5] = ["Generator", "Random", "Conversions", "Rope", "Lookup"];

impl Kind {
    /// The trait of its ops, which is also the adapter that makes formulas of them, and their number of operands; `None`
    /// where they are formulas, of any number.
    fn arity(self) -> Option<(&'static str, usize)> {
        match self {
            Unary => Some(("Unary", 1)),
            Binary | Channel | Backward | Gated => Some(("Binary", 2)),
            Ternary => Some(("Ternary", 3)),
            Select => Some(("Select", 3)),
            _ => None,
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
        if kind.arity().is_some_and(|(_, count)| count != operands.len()) {
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

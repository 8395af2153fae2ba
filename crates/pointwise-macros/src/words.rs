//! The words of the attribute.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitFloat, LitInt, LitStr, Path, Result, Token, parenthesized};

/// The words of `#[op(..)]`.
pub(crate) struct Words {
    /// Element types as written: each with the word that named it.
    pub(crate) types: Vec<(Type, Span)>,
    pub(crate) accuracy: Option<Accuracy>,
    pub(crate) grad_ulp: Option<(f32, Span)>,
    pub(crate) grad: Grad,
    /// The element types of the gradient.
    pub(crate) grad_types: Option<Vec<(Type, Span)>>,
    /// The documentation of the gradient.
    pub(crate) grad_doc: Option<LitStr>,
    /// The arguments that the gradient reads.
    pub(crate) saves: Option<Vec<Ident>>,
    /// The operands that the formula reads as a result alone, their sum.
    pub(crate) through: Option<Through>,
    /// The names of the results, with the element types that are fixed.
    pub(crate) results: Option<Vec<TypedName>>,
    /// The elements of a row that is a group, and where they stand.
    pub(crate) group: Option<(u32, Span)>,
    /// The place of `gated`.
    pub(crate) gated: Option<Span>,
    /// The parameters of an op by hand, and where they stand.
    pub(crate) params: Option<(Vec<(Ident, Expr)>, Span)>,
    /// True if the op belongs to the family.
    pub(crate) is_of_family: bool,
    /// The words that only the family has.
    pub(crate) family: FamilyWords,
    /// The attribute's place, for errors on words that are missing.
    pub(crate) span: Span,
}

/// `__hints(..)`, `__rules(..)`, `__grad(..)`, `__rewrite(..)` and `__pairs(..)`.
#[derive(Default)]
pub(crate) struct FamilyWords {
    /// The fields of `Properties` that are set.
    pub(crate) properties: Vec<Ident>,
    /// The same of the gradient.
    pub(crate) grad_properties: Vec<Ident>,
    /// The bound of a gradient whose terms do not cancel.
    pub(crate) grad_accuracy: Option<Accuracy>,
    /// The function of `__family::rewrites` that may run something simpler.
    pub(crate) rewrite: Option<Ident>,
    /// The element types, and the power of two of elements from which on a table of all pairs is faster.
    pub(crate) pairs: Vec<(Type, LitInt)>,
    /// The place of the first of these words.
    pub(crate) span: Option<Span>,
}

/// A result's name, and its element type and where that stands, if it is fixed.
pub(crate) type TypedName = (Ident, Option<(Type, Span)>);

/// `through(sum = x + residual)`.
pub(crate) struct Through {
    /// The result.
    pub(crate) sum: Ident,
    /// The operands, in their order.
    pub(crate) terms: [Ident; 2],
}

/// The largest error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Accuracy {
    Exact,
    Ulp(f32),
}

/// The source of the gradient.
pub(crate) enum Grad {
    /// The formula, by dual numbers.
    Derived,
    /// There is none.
    None,
    /// A function.
    Function(Path),
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    F32,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    I8,
    I16,
    I32,
    I64,
    U8,
    Bool,
}

use Type::*;

pub(crate) const FLOATS: [Type; 5] = [F32, F16, BF16, F8E4M3, F8E5M2];
const INTS: [Type; 5] = [I8, I16, I32, I64, U8];
const KNOWN: &str = "element types (floats, ints, bool, f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8), exact, \
                     ulp = NUMBER, grad_ulp = NUMBER, grad = none, grad = FUNCTION, grad_types(TYPE, ..), grad_doc = \
                     \"TEXT\", saves(NAME, ..), through(NAME = NAME + NAME), results(NAME, ..), row = NUMBER, gated, params(NAME = VALUE, ..)";

impl Type {
    pub(crate) const ALL: [Type; 11] = [F32, F16, BF16, F8E4M3, F8E5M2, I8, I16, I32, I64, U8, Bool];

    /// Those that a word names.
    pub(crate) fn named(word: &str) -> Option<&'static [Type]> {
        Some(match word {
            "floats" => &FLOATS,
            "ints" => &INTS,
            "f32" => &[F32],
            "f16" => &[F16],
            "bf16" => &[BF16],
            "f8e4m3" => &[F8E4M3],
            "f8e5m2" => &[F8E5M2],
            "i8" => &[I8],
            "i16" => &[I16],
            "i32" => &[I32],
            "i64" => &[I64],
            "u8" => &[U8],
            "bool" => &[Bool],
            _ => return None,
        })
    }

    /// The name in symbols, and of the type in `pointwise_core::element::ty`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            F32 => "f32",
            F16 => "f16",
            BF16 => "bf16",
            F8E4M3 => "f8e4m3",
            F8E5M2 => "f8e5m2",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            Bool => "bool",
        }
    }

    /// The variant of `DType`.
    pub(crate) fn dtype(self) -> &'static str {
        match self {
            F32 => "F32",
            F16 => "F16",
            BF16 => "BF16",
            F8E4M3 => "F8E4M3",
            F8E5M2 => "F8E5M2",
            I8 => "I8",
            I16 => "I16",
            I32 => "I32",
            I64 => "I64",
            U8 => "U8",
            Bool => "Bool",
        }
    }

    /// Its bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            I64 => 8,
            F32 | I32 => 4,
            F16 | BF16 | I16 => 2,
            F8E4M3 | F8E5M2 | I8 | U8 | Bool => 1,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        FLOATS.contains(&self)
    }

    pub(crate) fn is_int(self) -> bool {
        INTS.contains(&self)
    }

    pub(crate) fn is_fp8(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2)
    }

    /// True if any byte is an element.
    pub(crate) fn is_byte(self) -> bool {
        self.is_fp8() || matches!(self, I8 | U8)
    }
}

impl Parse for Words {
    fn parse(input: ParseStream<'_>) -> Result<Words> {
        let mut words = Words::none();
        while !input.is_empty() {
            let word: Ident = input
                .parse()
                .map_err(|error| Error::new(error.span(), format!("a word of #[op] is one of: {KNOWN}")))?;
            words.read(input, &word)?;
            if input.is_empty() {
                break;
            }
            input
                .parse::<Token![,]>()
                .map_err(|error| Error::new(error.span(), "write a comma between the words of #[op]"))?;
        }
        Ok(words)
    }
}

impl Words {
    /// Returns the words of an empty attribute.
    fn none() -> Words {
        Words {
            types: Vec::new(),
            accuracy: None,
            grad_ulp: None,
            grad: Grad::Derived,
            grad_types: None,
            grad_doc: None,
            saves: None,
            through: None,
            results: None,
            group: None,
            gated: None,
            params: None,
            is_of_family: false,
            family: FamilyWords::default(),
            span: Span::call_site(),
        }
    }

    /// Reads what stands behind a word, and keeps it.
    fn read(&mut self, input: ParseStream<'_>, word: &Ident) -> Result<()> {
        match word.to_string().as_str() {
            "exact" | "ulp" => {
                one_bound(self.accuracy, word)?;
                self.accuracy = Some(accuracy(input, word)?);
            }
            "grad_ulp" => once(&mut self.grad_ulp, word, || Ok((number(input, word)?, word.span())))?,
            "grad" => {
                not_twice(word, !matches!(self.grad, Grad::Derived))?;
                self.grad = grad(input, word)?;
            }
            "grad_types" => once(&mut self.grad_types, word, || grad_types(input, word))?,
            "grad_doc" => once(&mut self.grad_doc, word, || {
                equals(input, word, "\"..\"")?;
                input.parse()
            })?,
            "saves" => {
                once(&mut self.saves, word, || names(input, word, "the arguments that the gradient reads: `saves(x)`"))?
            }
            "through" => once(&mut self.through, word, || through(input, word))?,
            "results" => once(&mut self.results, word, || typed_names(input, word))?,
            "row" => once(&mut self.group, word, || group(input, word))?,
            "gated" => once(&mut self.gated, word, || Ok(word.span()))?,
            "params" => once(&mut self.params, word, || params(input, word))?,
            "__hints" | "__rules" | "__grad" | "__rewrite" | "__pairs" => self.family.read(input, word)?,
            _ => self.add_types(word)?,
        }
        Ok(())
    }

    /// Adds the element types that a word names.
    fn add_types(&mut self, word: &Ident) -> Result<()> {
        let Some(types) = Type::named(&word.to_string()) else {
            return Err(Error::new(word.span(), format!("`{word}` is no word of #[op], which are: {KNOWN}")));
        };
        for &each in types {
            if self.types.iter().any(|(earlier, _)| *earlier == each) {
                let why = format!("the element type {} is named twice: remove it here", each.name());
                return Err(Error::new(word.span(), why));
            }
            self.types.push((each, word.span()));
        }
        Ok(())
    }
}

impl FamilyWords {
    /// Reads what stands behind a word of the family, and keeps it.
    fn read(&mut self, input: ParseStream<'_>, word: &Ident) -> Result<()> {
        self.span.get_or_insert(word.span());
        match word.to_string().as_str() {
            "__rewrite" => self.rewrite = names(input, word, "a function")?.pop(),
            "__pairs" => self.read_pairs(input)?,
            "__grad" => self.read_grad(input)?,
            _ => self.properties.extend(names(input, word, "the properties")?),
        }
        Ok(())
    }

    /// Reads `(i8 = 23, ..)` of `__pairs`.
    fn read_pairs(&mut self, input: ParseStream<'_>) -> Result<()> {
        for (name, power) in values(input, |pair| named_value::<LitInt>(pair, "23"))? {
            let Some(&[each]) = Type::named(&name.to_string()) else {
                return Err(Error::new(name.span(), format!("`{name}` is no element type")));
            };
            self.pairs.push((each, power));
        }
        Ok(())
    }

    /// Reads `(exact, moves, ..)` of `__grad`.
    fn read_grad(&mut self, input: ParseStream<'_>) -> Result<()> {
        let inside;
        parenthesized!(inside in input);
        while !inside.is_empty() {
            let word: Ident = inside.parse()?;
            match word.to_string().as_str() {
                "exact" | "ulp" => self.grad_accuracy = Some(accuracy(&inside, &word)?),
                _ => self.grad_properties.push(word),
            }
            inside.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }
}

/// Refuses a word that is there already.
fn not_twice(word: &Ident, is_there: bool) -> Result<()> {
    if is_there { Err(Error::new(word.span(), format!("`{word}` stands here twice: remove one"))) } else { Ok(()) }
}

/// Keeps the value of a word that may be there once.
fn once<V>(kept: &mut Option<V>, word: &Ident, value: impl FnOnce() -> Result<V>) -> Result<()> {
    not_twice(word, kept.is_some())?;
    *kept = Some(value()?);
    Ok(())
}

fn one_bound(earlier: Option<Accuracy>, word: &Ident) -> Result<()> {
    match earlier {
        None => Ok(()),
        Some(_) => {
            Err(Error::new(word.span(), "an op has one bound, `exact` or `ulp = NUMBER`: remove one of the two"))
        }
    }
}

/// Reads the bound that is `exact` or `ulp = NUMBER`.
fn accuracy(input: ParseStream<'_>, word: &Ident) -> Result<Accuracy> {
    if word == "exact" { Ok(Accuracy::Exact) } else { Ok(Accuracy::Ulp(number(input, word)?)) }
}

/// Reads the value of `grad`.
fn grad(input: ParseStream<'_>, word: &Ident) -> Result<Grad> {
    equals(input, word, "none` or `grad = FUNCTION")?;
    let path: Path = input.parse().map_err(|error| {
        let why = "`grad` is `none` or the path of a function, such as `grad = snake_gradients`";
        Error::new(error.span(), why)
    })?;
    Ok(if path.is_ident("none") { Grad::None } else { Grad::Function(path) })
}

/// Reads the element types of `grad_types(f32, bf16)`.
fn grad_types(input: ParseStream<'_>, word: &Ident) -> Result<Vec<(Type, Span)>> {
    let mut types = Vec::new();
    for word in names(input, word, "the element types of the gradient: `grad_types(f32, bf16)`")? {
        let Some(named) = Type::named(&word.to_string()) else {
            return Err(Error::new(word.span(), format!("`{word}` is no element type")));
        };
        types.extend(named.iter().map(|each| (*each, word.span())));
    }
    Ok(types)
}

/// Reads the result and the terms of `through(sum = x + residual)`.
fn through(input: ParseStream<'_>, word: &Ident) -> Result<Through> {
    if !input.peek(syn::token::Paren) {
        let why = "write the result and its terms: `through(sum = x + residual)`";
        return Err(Error::new(word.span(), why));
    }
    let inside;
    parenthesized!(inside in input);
    let sum: Ident = inside.parse()?;
    inside.parse::<Token![=]>()?;
    let first = inside.parse()?;
    inside.parse::<Token![+]>()?;
    Ok(Through { sum, terms: [first, inside.parse()?] })
}

/// Reads the fields and defaults of `params(slope = 0.01)`, and returns the place of the word, too.
fn params(input: ParseStream<'_>, word: &Ident) -> Result<(Vec<(Ident, Expr)>, Span)> {
    if !input.peek(syn::token::Paren) {
        let why = "write the fields that are parameters, with their defaults: `params(slope = 0.01)`";
        return Err(Error::new(word.span(), why));
    }
    Ok((values(input, |pair| named_value(pair, "0.01"))?, word.span()))
}

/// Reads names with values in brackets, each by `one`.
fn values<V>(input: ParseStream<'_>, one: fn(ParseStream<'_>) -> Result<(Ident, V)>) -> Result<Vec<(Ident, V)>> {
    let inside;
    parenthesized!(inside in input);
    Ok(Punctuated::<_, Token![,]>::parse_terminated_with(&inside, one)?.into_iter().collect())
}

/// Reads `slope = 0.01`; `example` is a value that an error shows.
fn named_value<V: Parse>(input: ParseStream<'_>, example: &str) -> Result<(Ident, V)> {
    let name: Ident = input.parse()?;
    equals(input, &name, example)?;
    Ok((name, input.parse()?))
}

/// The names in brackets behind a word.
fn names(input: ParseStream<'_>, word: &Ident, what: &str) -> Result<Vec<Ident>> {
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(word.span(), format!("write {what}")));
    }
    let names;
    parenthesized!(names in input);
    Ok(names.parse_terminated(Ident::parse, Token![,])?.into_iter().collect())
}

/// The names in `results(q: f8e4m3, scale)`, with the types that stand there.
fn typed_names(input: ParseStream<'_>, word: &Ident) -> Result<Vec<TypedName>> {
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(word.span(), "write the names of the results: `results(y, mask)`"));
    }
    let names;
    parenthesized!(names in input);
    let one = |names: ParseStream<'_>| {
        let name: Ident = names.parse()?;
        if names.parse::<Option<Token![:]>>()?.is_none() {
            return Ok((name, None));
        }
        let word: Ident = names.parse()?;
        match Type::named(&word.to_string()) {
            Some(&[each]) if each != Bool => Ok((name, Some((each, word.span())))),
            _ => {
                let why =
                    format!("`{word}` is no type of numbers: f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64 or u8");
                Err(Error::new(word.span(), why))
            }
        }
    };
    Ok(Punctuated::<_, Token![,]>::parse_terminated_with(&names, one)?.into_iter().collect())
}

fn equals(input: ParseStream<'_>, word: &Ident, value: &str) -> Result<()> {
    match input.parse::<Option<Token![=]>>()? {
        Some(_) => Ok(()),
        None => Err(Error::new(word.span(), format!("`{word}` has a value: write `{word} = {value}`"))),
    }
}

/// The elements that a group may have.
const GROUPS: std::ops::RangeInclusive<u32> = 16..=1024;

/// The value of `row`, and its place.
fn group(input: ParseStream<'_>, word: &Ident) -> Result<(u32, Span)> {
    equals(input, word, "128")?;
    let why =
        "`row` is the number of neighbours in a group of the last dimension, from 16 to 1024, such as `row = 128`";
    let literal: LitInt = input.parse().map_err(|error| Error::new(error.span(), why))?;
    match literal.base10_parse() {
        Ok(group) if GROUPS.contains(&group) => Ok((group, literal.span())),
        _ => Err(Error::new(literal.span(), why)),
    }
}

/// The value of `ulp` and `grad_ulp`.
fn number(input: ParseStream<'_>, word: &Ident) -> Result<f32> {
    equals(input, word, "8")?;
    let why = || format!("`{word}` is a positive number of units in the last place, such as `{word} = 8`");
    let ahead = input.lookahead1();
    let (value, span) = if ahead.peek(LitInt) {
        let literal: LitInt = input.parse()?;
        (literal.base10_parse::<u32>().map(|value| value as f32), literal.span())
    } else if ahead.peek(LitFloat) {
        let literal: LitFloat = input.parse()?;
        (literal.base10_parse::<f32>(), literal.span())
    } else {
        return Err(Error::new(input.span(), why()));
    };
    match value {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err(Error::new(span, why())),
    }
}

#[cfg(test)]
mod tests {
    use super::Type;
    use pointwise_core::DType;

    #[test]
    fn types_are_those_of_the_core() {
        let found = Type::ALL.map(|each| (each.name(), each.size(), each.is_float()));
        assert_eq!(found, DType::ALL.map(|dtype| (dtype.name(), dtype.size(), dtype.is_float())));
    }
}

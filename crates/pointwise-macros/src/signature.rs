//! An op as the attribute and the function say it together, and what is wrong with them.

mod arguments;
mod function;
mod gradient;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Ident, Item, ItemFn, ItemImpl, Result, ReturnType, Type, TypeParam, Visibility};

use crate::rows::Ask;
use crate::words::{self, Accuracy, FamilyWords, Grad, Through, Words};
use crate::{body, by_hand, rows};

use arguments::{arguments, per_row, value};
use function::{Bound, check_function, generic, type_name, types};

/// Limits with the same numbers as in `pointwise_core`.
const MAX_RESULTS: usize = 4;
const MAX_WORDS_OF_GENERATORS: usize = 4;

/// An op: the words and the signature, checked.
pub(crate) struct Op {
    /// The name of the function.
    pub(crate) name: Ident,
    /// The name of the struct.
    pub(crate) type_name: Ident,
    pub(crate) vis: Visibility,
    /// The documentation's attributes.
    pub(crate) docs: Vec<Attribute>,
    /// The function as it becomes `formula`: without the attributes of arguments.
    pub(crate) function: ItemFn,
    /// The formula as it was written, of which the data have the text.
    pub(crate) formula: TokenStream,
    /// The impl of an op by hand, whose struct is there.
    pub(crate) by_hand: Option<ItemImpl>,
    pub(crate) kind: OpKind,
    /// The generic type, with its bounds.
    pub(crate) generic: TypeParam,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) results: Vec<Value>,
    /// The questions that a formula asks its row, in the order of evaluation.
    pub(crate) asks: Vec<Ask>,
    /// The elements of a row that is a group; 0 where it is the last dimension.
    pub(crate) group: u32,
    pub(crate) types: Vec<words::Type>,
    pub(crate) accuracy: Accuracy,
    /// The largest error of a gradient, whose terms may cancel.
    pub(crate) grad_accuracy: f32,
    grad: Grad,
    /// The element types of the gradient; none if there is no gradient.
    pub(crate) grad_types: Vec<words::Type>,
    pub(crate) grad_doc: Option<String>,
    /// The arguments that the gradient reads; all of them without a list.
    saves: Option<Vec<Ident>>,
    /// The operands that the formula reads as a result alone.
    pub(crate) through: Option<Through>,
    /// True if a bound says that every type is a float.
    is_real: bool,
    /// True if f64 has what the bounds ask for.
    pub(crate) has_oracle: bool,
    /// True if the op belongs to the family.
    pub(crate) is_of_family: bool,
    pub(crate) family: FamilyWords,
}

/// How its operands go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// They are broadcast.
    Elementwise,
    /// They are the halves of one tensor, or two.
    Gated,
    /// There are none: elements are made of their indices.
    Generator,
    /// They are broadcast, and the formula reduces over the last dimension, or groups of it.
    Rows,
}

/// A tensor of the formula.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) name: Ident,
    /// True if it has one element for each channel.
    pub(crate) is_channel: bool,
    /// True if it has one element for each row.
    pub(crate) is_row: bool,
    /// True if it is a row that serves all rows.
    pub(crate) is_weight: bool,
    /// Its element type, if that is not the op's.
    pub(crate) fixed: Option<words::Type>,
    /// True for a result of a fixed type that the gradient reads: it is for that alone, and has no gradient of its own.
    pub(crate) is_kept: bool,
}

impl Value {
    pub(crate) fn is_bool(&self) -> bool {
        self.fixed == Some(words::Type::Bool)
    }

    /// True if its type is fixed and no bool: elements are converted.
    pub(crate) fn is_stored(&self) -> bool {
        self.fixed.is_some() && !self.is_bool()
    }

    /// True if gradients have its type.
    pub(crate) fn has_gradient(&self) -> bool {
        !self.is_kept && self.fixed.is_none_or(|each| gradient::TYPES.contains(&each))
    }
}

/// The elements that share a random word, as `pointwise_core::Each` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Each {
    Element,
    Sample,
    Channel,
    Row,
}

/// An argument of the function, in its place.
pub(crate) enum Argument {
    Operand(Value),
    /// A random word, by what has one of its own.
    Bits(Each),
    /// An index of the element in the result.
    Index,
    /// The row, by the name that it has in the formula.
    Row(Ident),
    Param(Param),
}

/// A number that comes with a call.
#[derive(Clone)]
pub(crate) struct Param {
    pub(crate) name: Ident,
    pub(crate) kind: ParamKind,
    /// There unless it is `None`.
    pub(crate) default: Option<Box<Expr>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    Number,
    Probability,
    Whole,
    Flag,
    Open,
}

impl ParamKind {
    pub(crate) fn words(self) -> usize {
        if self == ParamKind::Open { 2 } else { 1 }
    }

    /// True if its type mentions the generic one.
    pub(crate) fn is_generic(self) -> bool {
        matches!(self, ParamKind::Number | ParamKind::Probability | ParamKind::Open)
    }
}

impl Op {
    /// Reads a function, or an impl of an op trait.
    pub(crate) fn new(words: Words, item: Item) -> Result<Op> {
        if let (Some(span), false) = (words.family.span, words.is_of_family) {
            return Err(Error::new(span, "this word is for the ops of the family: remove it"));
        }
        match item {
            Item::Fn(function) => {
                if let Some((_, span)) = words.params {
                    let why =
                        "the parameters of a function are arguments of it: write `#[param(default = 0.01)] slope: T`";
                    return Err(Error::new(span, why));
                }
                let statements = &function.block.stmts;
                let formula = quote!(#(#statements)*);
                Op::of_function(words, function, formula, None)
            }
            Item::Impl(item) => {
                let (function, formula) = by_hand::function(&words, &item)?;
                Op::of_function(words, function, formula, Some(item))
            }
            other => Err(Error::new(other.span(), "an op is a function, or an impl of UnaryOp, BinaryOp or TernaryOp")),
        }
    }

    /// Makes the op of its words and its function.
    fn of_function(words: Words, mut function: ItemFn, formula: TokenStream, by_hand: Option<ItemImpl>) -> Result<Op> {
        let signature = Signature::of(&words, &mut function)?;
        let asks = signature.asks(&function)?;
        body::check(&function.block, &signature.generic.ident, &signature.arguments, signature.bound.only_floats())?;
        let accuracy = accuracy(&words, &signature.types)?;
        let grad_accuracy = gradient::accuracy(&words, accuracy)?;
        let grad_types = gradient::types(&words, &signature)?;
        gradient::check_saves(&words, &signature)?;
        if let Some(through) = &words.through {
            gradient::check_through(&words, through, &signature)?;
        }
        let (docs, others) = std::mem::take(&mut function.attrs).into_iter().partition(|it| it.path().is_ident("doc"));
        function.attrs = others;
        let Signature { name, type_name, generic, bound, types, arguments, results, kind } = signature;
        Ok(Op {
            name,
            type_name,
            vis: function.vis.clone(),
            docs,
            function,
            formula,
            by_hand,
            kind,
            generic,
            arguments,
            results,
            asks,
            group: words.group.map_or(0, |(group, _)| group),
            types,
            accuracy,
            grad_accuracy,
            grad: words.grad,
            grad_types,
            grad_doc: words.grad_doc.map(|doc| doc.value()),
            saves: words.saves,
            through: words.through,
            is_real: bound.only_floats(),
            has_oracle: bound.has_floats(),
            is_of_family: words.is_of_family,
            family: words.family,
        })
    }

    pub(crate) fn operands(&self) -> impl Iterator<Item = &Value> {
        operands(&self.arguments)
    }

    pub(crate) fn params(&self) -> impl Iterator<Item = &Param> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Param(param) => Some(param),
            _ => None,
        })
    }

    /// True if the formula draws a random word, or takes indices beside operands.
    pub(crate) fn has_place(&self) -> bool {
        self.is_random() || self.indices() > 0 && self.kind != OpKind::Generator
    }

    pub(crate) fn is_random(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(argument, Argument::Bits(_)))
    }

    /// How many of an element's indices a generator takes.
    pub(crate) fn indices(&self) -> usize {
        self.arguments.iter().filter(|argument| matches!(argument, Argument::Index)).count()
    }

    /// The name in symbols and data.
    pub(crate) fn symbol(&self) -> String {
        self.name.unraw().to_string()
    }

    pub(crate) fn has_gradient(&self) -> bool {
        !self.grad_types.is_empty()
    }

    /// True if the gradient reads an argument.
    pub(crate) fn is_saved(&self, name: &Ident) -> bool {
        !self.is_term(name) && self.saves.as_ref().is_none_or(|saved| saved.contains(name))
    }

    /// True if the formula reads an operand as a part of a result alone.
    pub(crate) fn is_term(&self, name: &Ident) -> bool {
        self.through.as_ref().is_some_and(|through| through.terms.contains(name))
    }

    /// True if an operand has the gradient of the operand before it.
    pub(crate) fn shares_gradient(&self, name: &Ident) -> bool {
        self.through.as_ref().is_some_and(|through| through.terms[1] == *name)
    }

    /// Returns the results that the gradient reads.
    pub(crate) fn saved_results(&self) -> impl Iterator<Item = &Value> {
        let is_named = |result: &Value| {
            self.saves.as_ref().is_some_and(|saved| saved.contains(&result.name))
                || self.through.as_ref().is_some_and(|through| through.sum == result.name)
        };
        self.results.iter().filter(move |result| is_named(result))
    }

    /// True if every type that the bound allows is a float.
    pub(crate) fn is_real(&self) -> bool {
        self.is_real
    }

    /// The function that is the gradient, if it is not derived.
    pub(crate) fn gradient(&self) -> Option<&syn::Path> {
        match &self.grad {
            Grad::Function(path) => Some(path),
            _ => None,
        }
    }
}

impl Argument {
    /// Returns its name, if it is an operand or a parameter.
    fn name(&self) -> Option<&Ident> {
        match self {
            Argument::Operand(value) => Some(&value.name),
            Argument::Param(param) => Some(&param.name),
            Argument::Bits(_) | Argument::Index | Argument::Row(_) => None,
        }
    }
}

/// The parts of the signature, as far as the words have their say.
struct Signature {
    name: Ident,
    type_name: Ident,
    generic: TypeParam,
    bound: Bound,
    types: Vec<words::Type>,
    arguments: Vec<Argument>,
    results: Vec<Value>,
    kind: OpKind,
}

impl Signature {
    /// Reads the signature, and takes the attributes of arguments from it.
    fn of(words: &Words, function: &mut ItemFn) -> Result<Signature> {
        check_function(function)?;
        let name = function.sig.ident.clone();
        let type_name = type_name(&name)?;
        let generic = generic(function)?;
        if type_name == generic.ident {
            let why =
                format!("the struct of this op would be called `{type_name}`, as the generic type: rename the op");
            return Err(Error::new(name.span(), why));
        }
        let bound = Bound::of(&generic)?;
        let types = types(words, bound, &name)?;
        let arguments = arguments(function, &generic.ident)?;
        let has_row = arguments.iter().any(|argument| matches!(argument, Argument::Row(_)));
        let mut results = results(function, &generic.ident, words.results.as_deref(), has_row)?;
        for result in &mut results {
            let is_saved = words.saves.iter().flatten().any(|saved| *saved == result.name);
            result.is_kept = is_saved && result.is_stored();
        }
        let kind = kind(words, &arguments, &results, &types)?;
        let signature = Signature { name, type_name, generic, bound, types, arguments, results, kind };
        signature.check_floats(words)?;
        Ok(signature)
    }

    fn operands(&self) -> impl Iterator<Item = &Value> {
        operands(&self.arguments)
    }

    /// Refuses other types than floats where the formula is computed in floats.
    fn check_floats(&self, words: &Words) -> Result<()> {
        let stored = self.operands().chain(&self.results).find(|value| value.is_stored());
        if let (Some(value), Some((each, _))) = (stored, words.types.iter().find(|(each, _)| !each.is_float())) {
            let why = format!(
                "an element of another type is converted to the type of floats that the formula is computed in, which \
                 {} is not: remove it from the op's types",
                each.name()
            );
            return Err(Error::new(value.name.span(), why));
        }
        if self.kind == OpKind::Rows && !self.bound.only_floats() {
            let why = format!("an op on rows is of floats: write `{}: Real`", self.generic.ident);
            return Err(Error::new(self.generic.span(), why));
        }
        Ok(())
    }

    /// Finds the questions that the formula asks its row.
    fn asks(&self, function: &ItemFn) -> Result<Vec<Ask>> {
        let row = self.arguments.iter().find_map(|argument| match argument {
            Argument::Row(name) => Some(name),
            _ => None,
        });
        match row {
            Some(row) => rows::asks(&function.block, row, self.operands().any(|operand| operand.is_row)),
            None => Ok(Vec::new()),
        }
    }
}

/// Returns the largest error that the words say, or that integers and bools have.
fn accuracy(words: &Words, types: &[words::Type]) -> Result<Accuracy> {
    match words.accuracy {
        Some(accuracy) => Ok(accuracy),
        None if !types.iter().any(|each| each.is_float()) => Ok(Accuracy::Exact),
        None => {
            let why = "say how accurate the op is: `exact`, or the largest error in f32 as `ulp = 8`";
            Err(Error::new(words.span, why))
        }
    }
}

/// Returns the operands among arguments.
fn operands(arguments: &[Argument]) -> impl Iterator<Item = &Value> {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Operand(value) => Some(value),
        _ => None,
    })
}

/// Returns the words that parameters among arguments take.
fn words_of_params(arguments: &[Argument]) -> usize {
    let of = |argument: &Argument| match argument {
        Argument::Param(param) => param.kind.words(),
        _ => 0,
    };
    arguments.iter().map(of).sum()
}

/// Returns the kind that the signature and the words say together.
fn kind(words: &Words, arguments: &[Argument], results: &[Value], types: &[words::Type]) -> Result<OpKind> {
    let bits = arguments.iter().any(|argument| matches!(argument, Argument::Bits(_)));
    let has_row = arguments.iter().any(|argument| matches!(argument, Argument::Row(_)));
    if let (Some((_, span)), false) = (words.group, has_row) {
        return Err(Error::new(span, "`row` is for an op that asks its row: add `row: Row<T>`, or remove the word"));
    }
    if let Some(span) = words.gated {
        let are_plain = operands(arguments).all(|operand| operand.fixed.is_none() && !operand.is_channel);
        let has_index = arguments.iter().any(|argument| matches!(argument, Argument::Index));
        let has_place = bits || has_index;
        if operands(arguments).count() != 2
            || !are_plain
            || has_place
            || results.len() != 1
            || results[0].fixed.is_some()
        {
            let why = "a gated op has two operands, gate and value, and one result, all of the generic type, and neither a \
                       random word nor indices";
            return Err(Error::new(span, why));
        }
        return Ok(OpKind::Gated);
    }
    if has_row {
        return of_rows(words, bits, arguments, results);
    }
    let has_index = arguments.iter().any(|argument| matches!(argument, Argument::Index));
    if !has_index || operands(arguments).next().is_some() {
        return Ok(OpKind::Elementwise);
    }
    let refuse = |span: Span, why: &str| Err(Error::new(span, why));
    if bits {
        return refuse(words.span, "an op without operands draws no random words");
    }
    match results {
        [result] if result.fixed.is_none() => {}
        _ => return refuse(words.span, "an op without operands has one result, of the generic type"),
    }
    if types.iter().any(|each| !each.is_float()) {
        return refuse(words.span, "an op without operands has results of floats alone");
    }
    if words_of_params(arguments) > MAX_WORDS_OF_GENERATORS {
        let why = "the parameters of an op without operands take at most 4 words together, an Option two";
        return refuse(words.span, why);
    }
    if let (Grad::Function(_), _) | (_, Some(_)) = (&words.grad, words.grad_ulp) {
        return refuse(words.span, "an op without operands has no gradient: remove `grad` and `grad_ulp`");
    }
    Ok(OpKind::Generator)
}

/// Checks an op on rows.
fn of_rows(words: &Words, bits: bool, arguments: &[Argument], results: &[Value]) -> Result<OpKind> {
    if bits || arguments.iter().any(|argument| matches!(argument, Argument::Index)) {
        return Err(Error::new(words.span, "an op on rows has neither random words nor indices"));
    }
    for argument in arguments {
        if let Argument::Operand(operand) = argument
            && operand.is_channel
        {
            return Err(Error::new(operand.name.span(), "an op on rows has no channels: remove `#[channel]`"));
        }
        if let (Argument::Operand(operand), Some(_)) = (argument, words.group)
            && operand.is_weight
        {
            let why = "a weight is one row that serves all rows, but each group has elements of its own: remove `#[weight]`; the \
                       operand then has a gradient for each element of the result, which the caller sums";
            return Err(Error::new(operand.name.span(), why));
        }
    }
    if let Some((_, span)) = words.types.iter().find(|(each, _)| !each.is_float()) {
        return Err(Error::new(*span, "an op on rows is of floats alone: remove the other types"));
    }
    if let Some(result) = results.iter().find(|result| result.is_bool() && result.is_row) {
        return Err(Error::new(result.name.span(), "a result for each row is a number"));
    }
    Ok(OpKind::Rows)
}

fn results(
    function: &ItemFn,
    generic: &Ident,
    names: Option<&[words::TypedName]>,
    has_row: bool,
) -> Result<Vec<Value>> {
    let output = &function.sig.output;
    let wants = format!("an op returns `{generic}` or `bool`, or a tuple of 2 to 4 of these");
    let types: Vec<&Type> = match output {
        ReturnType::Default => {
            return Err(Error::new(function.sig.paren_token.span.close(), format!("{wants}: write `-> {generic}`")));
        }
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) => tuple.elems.iter().collect(),
            single => vec![single],
        },
    };
    let is_tuple = matches!(output, ReturnType::Type(_, ty) if matches!(**ty, Type::Tuple(_)));
    if let Some(excess) = types.get(MAX_RESULTS) {
        return Err(Error::new(excess.span(), "an op has at most 4 results: split it in two"));
    }
    if is_tuple && types.len() < 2 {
        return Err(Error::new(output.span(), wants));
    }
    if let Some(names) = names
        && names.len() != types.len()
    {
        let span = names.first().map_or_else(|| output.span(), |(name, _)| name.span());
        let why = format!("`results` names {}, and the function returns {}", names.len(), types.len());
        return Err(Error::new(span, why));
    }
    let mut results: Vec<Value> = Vec::new();
    for (k, ty) in types.iter().enumerate() {
        let (ty, is_row) = match per_row(ty) {
            Some(_) if !has_row => {
                let why = format!("a result of each row is of an op that has a row: add `row: Row<{generic}>`");
                return Err(Error::new(ty.span(), why));
            }
            Some(inner) => (inner, true),
            None => (*ty, false),
        };
        let is_bool = value(ty, generic).ok_or_else(|| Error::new(ty.span(), &wants))?;
        let fixed = names.and_then(|names| names[k].1);
        if let Some((_, span)) = fixed.filter(|_| is_bool) {
            return Err(Error::new(span, "this result is a `bool`: remove the type"));
        }
        let name = match names {
            Some(names) => names[k].0.clone(),
            None if types.len() == 1 => Ident::new("y", Span::call_site()),
            None => format_ident!("y{k}"),
        };
        if results.iter().any(|earlier| earlier.name == name) {
            return Err(Error::new(name.span(), format!("another result is called `{name}`, too")));
        }
        let fixed = if is_bool { Some(words::Type::Bool) } else { fixed.map(|(each, _)| each) };
        results.push(Value { name, is_channel: false, is_row, is_weight: false, fixed, is_kept: false });
    }
    Ok(results)
}

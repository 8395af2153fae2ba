//! The function: its operands, parameters and results, and what is wrong with it.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, GenericParam, Ident, Item, ItemFn, ItemImpl, Lit, Pat,
    PatType, PathArguments, Result, ReturnType, Safety, Type, TypeParam, TypeParamBound, Visibility,
};

use crate::rows::Ask;
use crate::words::{self, Accuracy, FamilyWords, Grad, Through, Words};
use crate::{body, by_hand, rows};

/// What `pointwise_core::formula` has the same numbers for.
const MAX_OPERANDS: usize = 8;
const MAX_RESULTS: usize = 4;
const MAX_WORDS: usize = 8;
const MAX_WORDS_OF_GENERATORS: usize = 4;
const MAX_INDICES: usize = 3;
const MAX_RANDOM_WORDS: usize = 2;

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
    /// What a formula asks its row, in the order of evaluation.
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
        !self.is_kept && self.fixed.is_none_or(|each| GRADIENTS.contains(&each))
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

    /// Whether its type mentions the generic one.
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

    fn of_function(words: Words, mut function: ItemFn, formula: TokenStream, by_hand: Option<ItemImpl>) -> Result<Op> {
        check_function(&function)?;
        let name = function.sig.ident.clone();
        let type_name = type_name(&name)?;
        let generic = generic(&function)?;
        if type_name == generic.ident {
            let why =
                format!("the struct of this op would be called `{type_name}`, as the generic type: rename the op");
            return Err(Error::new(name.span(), why));
        }
        let bound = Bound::of(&generic)?;
        let types = types(&words, bound, &name)?;
        let arguments = arguments(&mut function, &generic.ident)?;
        let has_row = arguments.iter().any(|argument| matches!(argument, Argument::Row(_)));
        let mut results = results(&function, &generic.ident, words.results.as_deref(), has_row)?;
        for result in &mut results {
            let is_saved = words.saves.iter().flatten().any(|saved| *saved == result.name);
            result.is_kept = is_saved && result.is_stored();
        }
        let kind = kind(&words, &arguments, &results, &types)?;
        let stored = operands(&arguments).chain(&results).find(|value| value.is_stored());
        if let (Some(value), Some((each, _))) = (stored, words.types.iter().find(|(each, _)| !each.is_float())) {
            let why = format!(
                "an element of another type is converted to the type of floats that the formula is computed in, which \
                 {} is not: remove it from the op's types",
                each.name()
            );
            return Err(Error::new(value.name.span(), why));
        }
        if kind == OpKind::Rows && !bound.only_floats() {
            let why = format!("an op on rows is of floats: write `{}: Real`", generic.ident);
            return Err(Error::new(generic.span(), why));
        }
        let row = arguments.iter().find_map(|argument| match argument {
            Argument::Row(name) => Some(name),
            _ => None,
        });
        let asks = match row {
            Some(row) => rows::asks(&function.block, row, operands(&arguments).any(|operand| operand.is_row))?,
            None => Vec::new(),
        };
        body::check(&function.block, &generic.ident, &arguments, bound.only_floats())?;
        let has_floats = types.iter().any(|each| each.is_float());
        let accuracy = match words.accuracy {
            Some(accuracy) => accuracy,
            None if !has_floats => Accuracy::Exact,
            None => {
                let why = "say how accurate the op is: `exact`, or the largest error in f32 as `ulp = 8`";
                return Err(Error::new(words.span, why));
            }
        };
        if let (Grad::None, Some((_, span))) = (&words.grad, words.grad_ulp) {
            return Err(Error::new(span, "the op has no gradient: remove `grad_ulp` or `grad = none`"));
        }
        let grad_accuracy = words.grad_ulp.map_or_else(
            || match accuracy {
                Accuracy::Ulp(ulp) => (2.0 * ulp).max(4.0),
                Accuracy::Exact => 4.0,
            },
            |(ulp, _)| ulp,
        );
        let grad_types = grad_types(&words, kind, bound, &types, (&arguments, &results))?;
        if let (Grad::Function(path), true) = (&words.grad, grad_types.is_empty()) {
            let why = "a gradient has results of type f32, f16 or bf16: add one of them to the op's types, or name others as \
                       `grad_types(..)`";
            return Err(Error::new(path.span(), why));
        }
        if !grad_types.is_empty() {
            check_gradient_names(&arguments, &results)?;
            if let Some(operand) = operands(&arguments).find(|operand| operand.is_row && operand.has_gradient()) {
                let why = "a gradient by an operand of each row is a sum over the row, which is not derived: write `grad = \
                           none`, or make it an operand of each element, which may have a last dimension of 1";
                return Err(Error::new(operand.name.span(), why));
            }
            let weights = || operands(&arguments).filter(|operand| operand.is_weight);
            if let Some(weight) = weights().find(|weight| !weight.has_gradient()) {
                let why = "a weight has a gradient, which elements of this type have not: remove `#[weight]`";
                return Err(Error::new(weight.name.span(), why));
            }
            let is_saved = |weight: &Value| words.saves.as_ref().is_none_or(|saved| saved.contains(&weight.name));
            if let Some(weight) = weights().find(|weight| !is_saved(weight)) {
                let why = "the gradient of a weight has the weight's shape: name it in `saves(..)`, too";
                return Err(Error::new(weight.name.span(), why));
            }
        }
        for saved in words.saves.iter().flatten() {
            if arguments.iter().any(|argument| argument.name() == Some(saved)) {
                continue;
            }
            if !results.iter().any(|result| result.name == *saved) {
                let why = format!("`{saved}` is no operand, parameter or result of the op");
                return Err(Error::new(saved.span(), why));
            }
            if kind == OpKind::Gated || !matches!(words.grad, Grad::Function(_)) {
                let why = "a result is read by a gradient that is a function, of an op that is not gated: add `grad = \
                           FUNCTION`, or remove this name";
                return Err(Error::new(saved.span(), why));
            }
        }
        if let Some(through) = &words.through {
            check_through(&words, through, kind, &arguments, &results)?;
        }
        let (docs, others) = std::mem::take(&mut function.attrs).into_iter().partition(|it| it.path().is_ident("doc"));
        function.attrs = others;
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

/// Checks `through(sum = x + residual)`.
fn check_through(
    words: &Words,
    Through { sum, terms }: &Through,
    kind: OpKind,
    arguments: &[Argument],
    results: &[Value],
) -> Result<()> {
    if kind != OpKind::Rows || !matches!(words.grad, Grad::Derived) {
        return Err(Error::new(sum.span(), "`through` is for a derived gradient of an op on rows: remove it"));
    }
    if !results.iter().any(|result| result.name == *sum && !result.is_row && result.fixed.is_none()) {
        let why = format!("`{sum}` is no result for each element that has the op's element type");
        return Err(Error::new(sum.span(), why));
    }
    let operands: Vec<&Value> = operands(arguments).collect();
    let is_plain = |value: &Value| !value.is_row && !value.is_weight && value.fixed.is_none();
    if !operands.windows(2).any(|pair| pair.iter().zip(terms).all(|(it, term)| it.name == *term && is_plain(it))) {
        let why = "the terms are two operands, one after the other, with an element for each of the result";
        return Err(Error::new(terms[0].span(), why));
    }
    match words.saves.iter().flatten().find(|saved| terms.contains(saved) || *saved == sum) {
        Some(saved) => {
            Err(Error::new(saved.span(), format!("the gradient reads `{sum}` by `through`: remove this name")))
        }
        None => Ok(()),
    }
}

/// The types that gradients have: fp8 tensors hold gradients only together with a scale, which is no elementwise result.
const GRADIENTS: [words::Type; 3] = [words::Type::F32, words::Type::F16, words::Type::BF16];

/// Returns the element types of the op's gradient; none if it has no gradient.
fn grad_types(
    words: &Words,
    kind: OpKind,
    bound: Bound,
    types: &[words::Type],
    (arguments, results): (&[Argument], &[Value]),
) -> Result<Vec<words::Type>> {
    // What is rounded to fewer bits on purpose has no derivative.
    let is_quantised = results.iter().any(|result| result.is_stored() && !result.is_kept && !result.has_gradient());
    let is_differentiable = bound.has_floats()
        && kind != OpKind::Generator
        && !is_quantised
        && results.iter().any(Value::has_gradient)
        && operands(arguments).any(Value::has_gradient);
    if matches!(words.grad, Grad::None) || !is_differentiable {
        return Ok(Vec::new());
    }
    let Some(named) = &words.grad_types else {
        return Ok(types.iter().copied().filter(|each| GRADIENTS.contains(each)).collect());
    };
    match named.iter().find(|(each, _)| !each.is_float() || !types.contains(each)) {
        Some((each, span)) => {
            Err(Error::new(*span, format!("{} is no float type of the op: remove it here", each.name())))
        }
        None => Ok(named.iter().map(|(each, _)| *each).collect()),
    }
}

/// Returns the operands among arguments.
fn operands(arguments: &[Argument]) -> impl Iterator<Item = &Value> {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Operand(value) => Some(value),
        _ => None,
    })
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
    let words_of_params: usize = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Param(param) => param.kind.words(),
            _ => 0,
        })
        .sum();
    if words_of_params > MAX_WORDS_OF_GENERATORS {
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

/// The operands of the gradients are the gradients of the results, then the op's own: all have a name of their own.
fn check_gradient_names(arguments: &[Argument], results: &[Value]) -> Result<()> {
    let results: Vec<&Value> = results.iter().filter(|result| result.has_gradient()).collect();
    let is_taken = |name: &Ident| match &*results {
        [_] => name == "grad",
        several => several.iter().any(|result| *name == format!("grad_{}", result.name)),
    };
    for argument in arguments {
        if let Argument::Operand(operand) = argument
            && is_taken(&operand.name)
        {
            let why = format!(
                "`{}` is what the gradient of a result is called: rename the operand, or write `grad = none`",
                operand.name
            );
            return Err(Error::new(operand.name.span(), why));
        }
    }
    Ok(())
}

fn check_function(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    let refuse =
        |span: Span, what: &str| Err(Error::new(span, format!("a formula is a plain function: remove {what}")));
    if let Some(token) = &sig.constness {
        return refuse(token.span(), "`const`");
    }
    if let Some(token) = &sig.asyncness {
        return refuse(token.span(), "`async`");
    }
    match &sig.safety {
        Safety::Unsafe(token) => return refuse(token.span(), "`unsafe`"),
        Safety::Safe(token) => return refuse(token.span(), "`safe`"),
        Safety::Default => {}
    }
    if let Some(abi) = &sig.abi {
        return refuse(abi.span(), "`extern`");
    }
    if let Some(variadic) = &sig.variadic {
        return refuse(variadic.span(), "the variadic arguments");
    }
    if let Some(clause) = &sig.generics.where_clause {
        return Err(Error::new(clause.span(), "write the bound where the type is declared: `<T: Real>`"));
    }
    Ok(())
}

/// `bias_gelu` as `BiasGelu`.
fn type_name(name: &Ident) -> Result<Ident> {
    let text = name.unraw().to_string();
    let plain = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if !plain || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        let why = "the name of an op is also that of its kernels: write it in lower-case ASCII letters, digits and `_`, \
                   beginning with a letter";
        return Err(Error::new(name.span(), why));
    }
    let mut camel = String::new();
    for part in text.split('_') {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    Ok(Ident::new(&camel, name.span()))
}

const WANTS_GENERIC: &str = "a formula is generic over one type with a bound: `fn name<T: Real>(..)`; the bounds are Real \
                             (floats), Num (floats, integers), Bits (integers, bool) and Value (all)";

fn generic(function: &ItemFn) -> Result<TypeParam> {
    let params = &function.sig.generics.params;
    let mut found = None;
    for param in params {
        match param {
            GenericParam::Type(param) if found.is_none() => found = Some(param.clone()),
            other => return Err(Error::new(other.span(), WANTS_GENERIC)),
        }
    }
    found.ok_or_else(|| Error::new(function.sig.ident.span(), WANTS_GENERIC))
}

/// The types that the bounds allow.
#[derive(Clone, Copy)]
struct Bound {
    floats: bool,
    ints: bool,
    bools: bool,
}

impl Bound {
    fn of(generic: &TypeParam) -> Result<Bound> {
        let (mut all, mut is_known) = (Bound { floats: true, ints: true, bools: true }, false);
        for bound in &generic.bounds {
            let TypeParamBound::Trait(bound) = bound else { continue };
            let Some(last) = bound.path.segments.last() else { continue };
            let (floats, ints, bools) = match last.ident.to_string().as_str() {
                "Real" => (true, false, false),
                "Num" => (true, true, false),
                "Bits" => (false, true, true),
                "Value" => (true, true, true),
                _ => continue,
            };
            is_known = true;
            all = Bound { floats: all.floats & floats, ints: all.ints & ints, bools: all.bools & bools };
        }
        if is_known { Ok(all) } else { Err(Error::new(generic.span(), WANTS_GENERIC)) }
    }

    fn has_floats(self) -> bool {
        self.floats
    }

    fn only_floats(self) -> bool {
        self.floats && !self.ints && !self.bools
    }

    fn allows(self, each: words::Type) -> bool {
        match each {
            _ if each.is_float() => self.floats,
            _ if each.is_int() => self.ints,
            _ => self.bools,
        }
    }
}

fn types(words: &Words, bound: Bound, name: &Ident) -> Result<Vec<words::Type>> {
    if words.types.is_empty() {
        let why = format!("say which element types {name} has, such as `#[op(floats, ulp = 8)]`");
        return Err(Error::new(words.span, why));
    }
    for &(each, span) in &words.types {
        // A bool has some of the functions of `Num`: PyTorch's `add` is an `or`.
        let is_family_bool = words.is_of_family && each == words::Type::Bool && bound.ints;
        if !bound.allows(each) && !is_family_bool {
            let (has, wider) = match (bound.floats, bound.ints, bound.bools) {
                (true, false, _) => ("floats alone (Real)", if each.is_int() { "Num" } else { "Value" }),
                (true, true, _) => ("floats and integers (Num)", "Value"),
                _ => ("integers and bool (Bits)", "Value"),
            };
            let why = format!(
                "the bound of the function's type has {has}, which {} is not one of: remove the type, or write the \
                 formula for `T: {wider}`",
                each.name()
            );
            return Err(Error::new(span, why));
        }
    }
    Ok(words.types.iter().map(|(each, _)| *each).collect())
}

fn arguments(function: &mut ItemFn, generic: &Ident) -> Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    let (mut operands, mut words, mut names) = (0, 0, BTreeSet::new());
    let (mut bits, mut has_value, mut has_channel, mut row, mut indices) = (0, false, false, None, 0);
    for input in &mut function.sig.inputs {
        let argument = match input {
            FnArg::Receiver(receiver) => {
                let why =
                    "a formula is a function of its operands, in a module: move it out of the `impl`, without `self`";
                return Err(Error::new(receiver.span(), why));
            }
            FnArg::Typed(argument) => argument,
        };
        let is_channel = take_word(argument, "channel")?;
        let is_weight = take_word(argument, "weight")?;
        let stored = take_stored(argument)?;
        let each = take_each(argument)?;
        let name = match &*argument.pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => pattern.ident.clone(),
            other => return Err(Error::new(other.span(), "an argument of an op has a name: write `x: T`")),
        };
        if !names.insert(name.to_string()) {
            return Err(Error::new(name.span(), format!("another argument is called `{name}`, too")));
        }
        let settings = take_param(argument)?;
        let of_row = per_row(&argument.ty);
        let ty = of_row.unwrap_or(&argument.ty);
        let is_operand = value(ty, generic).is_some() && settings.is_none();
        if let (Some(span), false) = (is_channel, is_operand && of_row.is_none()) {
            return Err(Error::new(span, "`#[channel]` is for operands of elements: remove it here"));
        }
        let is_bool = value(ty, generic) == Some(true);
        if let (Some(span), false) = (is_weight, is_operand && !is_bool && of_row.is_none()) {
            return Err(Error::new(span, format!("`#[weight]` is for operands of type {generic}: remove it here")));
        }
        if let (Some((_, span)), true) = (stored, !is_operand || is_bool) {
            let why = format!("`#[stored(..)]` is for operands of type {generic}: remove it here");
            return Err(Error::new(span, why));
        }
        let is_random = is_last_segment(&argument.ty, "RandomWord");
        if let (Some((_, span)), false) = (each, is_random) {
            return Err(Error::new(span, "`#[each(..)]` is for random words: remove it here"));
        }
        if let Some(settings) = settings {
            let param = param(name, argument, settings, generic)?;
            words += param.kind.words();
            if words > MAX_WORDS {
                let why = "parameters take at most 8 words together, an Option two: pass the rest as operands, which may \
                           be numbers, too";
                return Err(Error::new(param.name.span(), why));
            }
            arguments.push(Argument::Param(param));
        } else if is_random {
            bits += 1;
            if bits > MAX_RANDOM_WORDS {
                return Err(Error::new(
                    argument.span(),
                    "a formula takes at most 2 random words: remove this argument",
                ));
            }
            arguments.push(Argument::Bits(each.map_or(Each::Element, |(each, _)| each)));
        } else if is_last_segment(&argument.ty, "Row") {
            if row.replace(name.clone()).is_some() {
                return Err(Error::new(argument.span(), "an element has one row: remove this argument"));
            }
            arguments.push(Argument::Row(name));
        } else if is_last_segment(&argument.ty, "Index") {
            indices += 1;
            if indices > MAX_INDICES {
                return Err(Error::new(name.span(), "an element has at most 3 indices: plane, row and column"));
            }
            arguments.push(Argument::Index);
        } else {
            if !is_operand {
                return Err(not_an_operand(argument, &name, generic));
            }
            // The type of an op whose operands all have their own is that of its results.
            has_value |= !is_bool && is_channel.is_none() && of_row.is_none();
            has_channel |= is_channel.is_some();
            operands += 1;
            if operands > MAX_OPERANDS {
                return Err(Error::new(name.span(), "an op has at most 8 operands: split it in two"));
            }
            arguments.push(Argument::Operand(Value {
                name,
                is_channel: is_channel.is_some(),
                is_row: of_row.is_some(),
                is_weight: is_weight.is_some(),
                fixed: if is_bool { Some(words::Type::Bool) } else { stored.map(|(each, _)| each) },
                is_kept: false,
            }));
        }
    }
    if let (Some(operand), None) = (self::operands(&arguments).find(|operand| operand.is_row), &row) {
        let why = format!("an operand of each row is of an op that has a row: add `row: Row<{generic}>`");
        return Err(Error::new(operand.name.span(), why));
    }
    if let (Some(operand), None) = (self::operands(&arguments).find(|operand| operand.is_weight), &row) {
        let why = format!("`#[weight]` is for an op that has a row: add `row: Row<{generic}>`, or remove it");
        return Err(Error::new(operand.name.span(), why));
    }
    if !has_value && (operands > 0 || indices == 0) {
        let why = if has_channel {
            format!(
                "one operand of type {generic} at least has no `#[channel]`: the channels are those of its dimension 1"
            )
        } else {
            format!("an op has an operand of type {generic} at least, whose element type is the op's")
        };
        return Err(Error::new(function.sig.paren_token.span.join(), why));
    }
    Ok(arguments)
}

fn not_an_operand(argument: &PatType, name: &Ident, generic: &Ident) -> Error {
    const WHOLE: [&str; 12] = ["i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize"];
    let is_whole = WHOLE.iter().any(|name| is_last_segment(&argument.ty, name));
    let param = match () {
        () if is_whole => format!("#[param(default = 1)] {name}: i64"),
        () if is_option_of(&argument.ty, generic) => format!("#[param] {name}: Option<{generic}>"),
        () => format!("#[param(default = 1.0)] {name}: {generic}"),
    };
    let why = format!(
        "an operand is `{generic}` or `bool`, a random word `RandomWord`, an index `Index`, a row `Row<{generic}>`; a number that comes with the call is a parameter: \
         write `{param}`"
    );
    Error::new(argument.ty.span(), why)
}

/// What stands in `#[param(..)]`.
struct Settings {
    span: Span,
    default: Option<Expr>,
    is_probability: Option<Span>,
}

/// Takes an attribute of one word, such as `#[channel]`, from an argument.
fn take_word(argument: &mut PatType, word: &str) -> Result<Option<Span>> {
    let mut found = None;
    for attribute in argument.attrs.extract_if(.., |attribute| attribute.path().is_ident(word)) {
        if found.is_some() {
            return Err(Error::new(attribute.span(), format!("`#[{word}]` stands here twice: remove one")));
        }
        if attribute.meta.require_path_only().is_err() {
            return Err(Error::new(attribute.span(), format!("`#[{word}]` stands alone: remove what is in it")));
        }
        found = Some(attribute.span());
    }
    Ok(found)
}

/// Takes the attribute `#[stored(TYPE)]` from an argument: its element type, and where that stands.
fn take_stored(argument: &mut PatType) -> Result<Option<(words::Type, Span)>> {
    let mut found = None;
    for attribute in argument.attrs.extract_if(.., |attribute| attribute.path().is_ident("stored")) {
        if found.is_some() {
            return Err(Error::new(attribute.span(), "`#[stored]` stands here twice: remove one"));
        }
        let word: Ident = attribute
            .parse_args()
            .map_err(|_| Error::new(attribute.span(), "say the element type: `#[stored(f32)]`"))?;
        match words::Type::named(&word.to_string()) {
            Some(&[each]) if each != words::Type::Bool => found = Some((each, word.span())),
            Some(&[_]) => {
                return Err(Error::new(word.span(), "an operand of bools has the type `bool`: remove `#[stored]`"));
            }
            _ => {
                let why =
                    format!("`{word}` is no element type: f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64 or u8");
                return Err(Error::new(word.span(), why));
            }
        }
    }
    Ok(found)
}

/// Takes the attribute `#[each(sample)]` from an argument: the elements that share the random word, and where that stands.
fn take_each(argument: &mut PatType) -> Result<Option<(Each, Span)>> {
    const HOW: &str =
        "say which elements share the random word: `#[each(sample)]`, `#[each(channel)]` or `#[each(row)]`";
    let mut found = None;
    for attribute in argument.attrs.extract_if(.., |attribute| attribute.path().is_ident("each")) {
        if found.is_some() {
            return Err(Error::new(attribute.span(), "`#[each]` stands here twice: remove one"));
        }
        let word: Ident = attribute.parse_args().map_err(|_| Error::new(attribute.span(), HOW))?;
        let each = match &*word.to_string() {
            "sample" => Each::Sample,
            "channel" => Each::Channel,
            "row" => Each::Row,
            _ => return Err(Error::new(word.span(), HOW)),
        };
        found = Some((each, word.span()));
    }
    Ok(found)
}

/// Takes the attribute `#[param(..)]` from an argument.
fn take_param(argument: &mut PatType) -> Result<Option<Settings>> {
    let mut found = None;
    for attribute in std::mem::take(&mut argument.attrs) {
        if !attribute.path().is_ident("param") {
            let why = "of attributes, an argument of an op has `#[param(default = ..)]`, `#[stored(..)]`, `#[each(..)]`, \
                 `#[channel]` or `#[weight]`";
            return Err(Error::new(attribute.span(), why));
        }
        if found.is_some() {
            return Err(Error::new(attribute.span(), "`#[param]` stands here twice: remove one"));
        }
        let mut settings = Settings { span: attribute.span(), default: None, is_probability: None };
        if !matches!(attribute.meta, syn::Meta::Path(_)) {
            if let syn::Meta::List(list) = &attribute.meta
                && let Ok(value) = syn::parse2::<ExprLit>(list.tokens.clone())
            {
                let why = format!("say that it is the default: `#[param(default = {})]`", list.tokens);
                return Err(Error::new(value.span(), why));
            }
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("default") {
                    settings.default = Some(meta.value()?.parse()?);
                    Ok(())
                } else if meta.path.is_ident("probability") {
                    settings.is_probability = Some(meta.path.span());
                    Ok(())
                } else {
                    Err(meta.error("a word of #[param] is `default = VALUE` or `probability`"))
                }
            })?;
        }
        found = Some(settings);
    }
    Ok(found)
}

fn param(name: Ident, argument: &PatType, settings: Settings, generic: &Ident) -> Result<Param> {
    let Settings { span, default, is_probability } = settings;
    let kind = match value(&argument.ty, generic) {
        Some(false) if is_probability.is_some() => ParamKind::Probability,
        Some(false) => ParamKind::Number,
        Some(true) => ParamKind::Flag,
        None if is_last_segment(&argument.ty, "i64") => ParamKind::Whole,
        None if is_option_of(&argument.ty, generic) => ParamKind::Open,
        None => {
            let why = format!("a parameter is `{generic}`, `i64`, `bool` or `Option<{generic}>`");
            return Err(Error::new(argument.ty.span(), why));
        }
    };
    if let Some(span) = is_probability.filter(|_| kind != ParamKind::Probability) {
        return Err(Error::new(span, format!("a probability is of type `{generic}`")));
    }
    let is_none = |value: &Expr| matches!(value, Expr::Path(path) if path.path.is_ident("None"));
    let default = match (kind, default) {
        (ParamKind::Open, None) => None,
        (ParamKind::Open, Some(value)) if is_none(&value) => None,
        (ParamKind::Open, Some(value)) => {
            return Err(Error::new(value.span(), format!("an `Option<{generic}>` is `None` by default: remove this")));
        }
        (_, Some(value)) => {
            check_default(&value, kind, &name)?;
            Some(Box::new(value))
        }
        (_, None) => {
            let example = match kind {
                ParamKind::Whole => "1",
                ParamKind::Flag => "false",
                ParamKind::Probability => "0.5, probability",
                _ => "1.0",
            };
            let why = format!("say what `{name}` is where a call leaves it out: `#[param(default = {example})]`");
            return Err(Error::new(span, why));
        }
    };
    Ok(Param { name, kind, default })
}

/// Checks a default that is a literal.
fn check_default(value: &Expr, kind: ParamKind, name: &Ident) -> Result<()> {
    let literal = match value {
        Expr::Unary(unary) => &*unary.expr,
        other => other,
    };
    let Expr::Lit(ExprLit { lit, .. }) = literal else { return Ok(()) };
    let (fits, wants) = match kind {
        ParamKind::Whole => (matches!(lit, Lit::Int(_)), "a whole number, such as `1`"),
        ParamKind::Flag => (matches!(lit, Lit::Bool(_)), "`true` or `false`"),
        _ => (matches!(lit, Lit::Int(_) | Lit::Float(_)), "a number, such as `1.0`"),
    };
    if fits { Ok(()) } else { Err(Error::new(lit.span(), format!("the default of `{name}` is {wants}"))) }
}

/// Whether an operand's or result's type is bool; `None` if it is neither bool nor the generic type.
fn value(ty: &Type, generic: &Ident) -> Option<bool> {
    let Type::Path(path) = ty else { return None };
    if path.qself.is_some() {
        return None;
    }
    let name = path.path.get_ident()?;
    if name == generic {
        return Some(false);
    }
    (name == "bool").then_some(true)
}

/// The type in `PerRow<..>`.
fn per_row(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "PerRow")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

fn is_last_segment(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn is_option_of(ty: &Type, generic: &Ident) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last().filter(|last| last.ident == "Option") else { return false };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let mut arguments = arguments.args.iter();
    matches!((arguments.next(), arguments.next()), (Some(GenericArgument::Type(ty)), None) if value(ty, generic) == Some(false))
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

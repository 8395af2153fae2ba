//! The arguments of the function: operands, parameters, random words, indices, the row.

use std::collections::BTreeSet;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Pat, PatType, PathArguments, Result, Type,
};

use super::{Argument, Each, Param, ParamKind, Value, operands, words_of_params};
use crate::words;

/// Limits with the same numbers as in `pointwise_core::formula`.
const MAX_OPERANDS: usize = 8;
const MAX_WORDS: usize = 8;
const MAX_INDICES: usize = 3;
const MAX_RANDOM_WORDS: usize = 2;

/// Returns the arguments of the function, and takes their attributes from it.
pub(super) fn arguments(function: &mut ItemFn, generic: &Ident) -> Result<Vec<Argument>> {
    let (mut arguments, mut names) = (Vec::new(), BTreeSet::new());
    for input in &mut function.sig.inputs {
        let written = match input {
            FnArg::Receiver(receiver) => {
                let why =
                    "a formula is a function of its operands, in a module: move it out of the `impl`, without `self`";
                return Err(Error::new(receiver.span(), why));
            }
            FnArg::Typed(written) => written,
        };
        let marks = Marks::take(written)?;
        let name = match &*written.pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => pattern.ident.clone(),
            other => return Err(Error::new(other.span(), "an argument of an op has a name: write `x: T`")),
        };
        if !names.insert(name.to_string()) {
            return Err(Error::new(name.span(), format!("another argument is called `{name}`, too")));
        }
        let settings = take_param(written)?;
        marks.check(written, settings.is_some(), generic)?;
        let argument = match settings {
            Some(settings) => Argument::Param(param(name.clone(), written, settings, generic)?),
            None => marks.argument(name.clone(), written, generic)?,
        };
        check_limit(&arguments, &argument, written, &name)?;
        arguments.push(argument);
    }
    check_row(&arguments, generic)?;
    check_has_value(&arguments, function, generic)?;
    Ok(arguments)
}

/// The attributes of an argument that is no parameter, each with its place.
struct Marks {
    channel: Option<Span>,
    weight: Option<Span>,
    stored: Option<(words::Type, Span)>,
    each: Option<(Each, Span)>,
}

impl Marks {
    /// Takes the attributes from an argument.
    fn take(argument: &mut PatType) -> Result<Marks> {
        Ok(Marks {
            channel: take_word(argument, "channel")?,
            weight: take_word(argument, "weight")?,
            stored: take_stored(argument)?,
            each: take_each(argument)?,
        })
    }

    /// Refuses attributes of another kind of argument.
    fn check(&self, argument: &PatType, is_param: bool, generic: &Ident) -> Result<()> {
        let of_row = per_row(&argument.ty);
        let of_value = value(of_row.unwrap_or(&argument.ty), generic).filter(|_| !is_param);
        let (is_operand, is_number) = (of_value.is_some(), of_value == Some(false));
        if let (Some(span), false) = (self.channel, is_operand && of_row.is_none()) {
            return Err(Error::new(span, "`#[channel]` is for operands of elements: remove it here"));
        }
        if let (Some(span), false) = (self.weight, is_number && of_row.is_none()) {
            return Err(Error::new(span, format!("`#[weight]` is for operands of type {generic}: remove it here")));
        }
        if let (Some((_, span)), false) = (self.stored, is_number) {
            let why = format!("`#[stored(..)]` is for operands of type {generic}: remove it here");
            return Err(Error::new(span, why));
        }
        if let (Some((_, span)), false) = (self.each, is_last_segment(&argument.ty, "RandomWord")) {
            return Err(Error::new(span, "`#[each(..)]` is for random words: remove it here"));
        }
        Ok(())
    }

    /// Returns an argument that is no parameter, by its type.
    fn argument(self, name: Ident, argument: &PatType, generic: &Ident) -> Result<Argument> {
        if is_last_segment(&argument.ty, "RandomWord") {
            return Ok(Argument::Bits(self.each.map_or(Each::Element, |(each, _)| each)));
        }
        if is_last_segment(&argument.ty, "Row") {
            return Ok(Argument::Row(name));
        }
        if is_last_segment(&argument.ty, "Index") {
            return Ok(Argument::Index);
        }
        let of_row = per_row(&argument.ty);
        let Some(is_bool) = value(of_row.unwrap_or(&argument.ty), generic) else {
            return Err(not_an_operand(argument, &name, generic));
        };
        Ok(Argument::Operand(Value {
            name,
            is_channel: self.channel.is_some(),
            is_row: of_row.is_some(),
            is_weight: self.weight.is_some(),
            fixed: if is_bool { Some(words::Type::Bool) } else { self.stored.map(|(each, _)| each) },
            is_kept: false,
        }))
    }
}

/// Refuses an argument that is one more than an op may have of its kind.
fn check_limit(before: &[Argument], argument: &Argument, written: &PatType, name: &Ident) -> Result<()> {
    let count = |is: fn(&Argument) -> bool| before.iter().filter(|&it| is(it)).count();
    let (span, why) = match argument {
        Argument::Param(param) if words_of_params(before) + param.kind.words() > MAX_WORDS => (
            name.span(),
            "parameters take at most 8 words together, an Option two: pass the rest as operands, which may be numbers, too",
        ),
        Argument::Bits(_) if count(|it| matches!(it, Argument::Bits(_))) == MAX_RANDOM_WORDS => {
            (written.span(), "a formula takes at most 2 random words: remove this argument")
        }
        Argument::Row(_) if count(|it| matches!(it, Argument::Row(_))) == 1 => {
            (written.span(), "an element has one row: remove this argument")
        }
        Argument::Index if count(|it| matches!(it, Argument::Index)) == MAX_INDICES => {
            (name.span(), "an element has at most 3 indices: plane, row and column")
        }
        Argument::Operand(_) if operands(before).count() == MAX_OPERANDS => {
            (name.span(), "an op has at most 8 operands: split it in two")
        }
        _ => return Ok(()),
    };
    Err(Error::new(span, why))
}

/// Refuses operands that are of rows in an op that has none.
fn check_row(arguments: &[Argument], generic: &Ident) -> Result<()> {
    if arguments.iter().any(|argument| matches!(argument, Argument::Row(_))) {
        return Ok(());
    }
    if let Some(operand) = operands(arguments).find(|operand| operand.is_row) {
        let why = format!("an operand of each row is of an op that has a row: add `row: Row<{generic}>`");
        return Err(Error::new(operand.name.span(), why));
    }
    if let Some(operand) = operands(arguments).find(|operand| operand.is_weight) {
        let why = format!("`#[weight]` is for an op that has a row: add `row: Row<{generic}>`, or remove it");
        return Err(Error::new(operand.name.span(), why));
    }
    Ok(())
}

/// Refuses operands none of which has an element of the generic type for each of the result.
fn check_has_value(arguments: &[Argument], function: &ItemFn, generic: &Ident) -> Result<()> {
    // The type of an op whose operands all have their own is that of its results.
    let is_value = |operand: &Value| !operand.is_bool() && !operand.is_channel && !operand.is_row;
    let is_of_indices =
        operands(arguments).next().is_none() && arguments.iter().any(|argument| matches!(argument, Argument::Index));
    if is_of_indices || operands(arguments).any(is_value) {
        return Ok(());
    }
    let why = if operands(arguments).any(|operand| operand.is_channel) {
        format!("one operand of type {generic} at least has no `#[channel]`: the channels are those of its dimension 1")
    } else {
        format!("an op has an operand of type {generic} at least, whose element type is the op's")
    };
    Err(Error::new(function.sig.paren_token.span.join(), why))
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

/// The words in `#[param(..)]`.
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

/// Returns true for an operand or result of type bool, false for the generic type, `None` for any other.
pub(super) fn value(ty: &Type, generic: &Ident) -> Option<bool> {
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
pub(super) fn per_row(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "PerRow")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

pub(super) fn is_last_segment(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

pub(super) fn is_option_of(ty: &Type, generic: &Ident) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last().filter(|last| last.ident == "Option") else { return false };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let mut arguments = arguments.args.iter();
    matches!((arguments.next(), arguments.next()), (Some(GenericArgument::Type(ty)), None) if value(ty, generic) == Some(false))
}

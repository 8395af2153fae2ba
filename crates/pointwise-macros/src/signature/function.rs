//! The function itself: what it may be, its generic type, and the element types.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, GenericParam, Ident, ItemFn, Result, Safety, TypeParam, TypeParamBound};

use crate::words::{self, Words};

pub(super) fn check_function(function: &ItemFn) -> Result<()> {
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
pub(super) fn type_name(name: &Ident) -> Result<Ident> {
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

pub(super) fn generic(function: &ItemFn) -> Result<TypeParam> {
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
pub(super) struct Bound {
    floats: bool,
    ints: bool,
    bools: bool,
}

impl Bound {
    pub(super) fn of(generic: &TypeParam) -> Result<Bound> {
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

    pub(super) fn has_floats(self) -> bool {
        self.floats
    }

    pub(super) fn only_floats(self) -> bool {
        self.floats && !self.ints && !self.bools
    }

    pub(super) fn allows(self, each: words::Type) -> bool {
        match each {
            _ if each.is_float() => self.floats,
            _ if each.is_int() => self.ints,
            _ => self.bools,
        }
    }
}

pub(super) fn types(words: &Words, bound: Bound, name: &Ident) -> Result<Vec<words::Type>> {
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

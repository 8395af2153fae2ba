//! The gradient, as the words say it of a signature.

use syn::spanned::Spanned;
use syn::{Error, Ident, Result};

use super::{OpKind, Signature, Value};
use crate::words::{Accuracy, Grad, Through, Type, Words};

/// The types that gradients have: fp8 tensors hold gradients only together with a scale, which is no elementwise result.
pub(super) const TYPES: [Type; 3] = [Type::F32, Type::F16, Type::BF16];

/// Returns the largest error of a gradient, whose terms may cancel.
pub(super) fn accuracy(words: &Words, accuracy: Accuracy) -> Result<f32> {
    if let (Grad::None, Some((_, span))) = (&words.grad, words.grad_ulp) {
        return Err(Error::new(span, "the op has no gradient: remove `grad_ulp` or `grad = none`"));
    }
    Ok(match (words.grad_ulp, accuracy) {
        (Some((ulp, _)), _) => ulp,
        (None, Accuracy::Ulp(ulp)) => (2.0 * ulp).max(4.0),
        (None, Accuracy::Exact) => 4.0,
    })
}

/// Returns the element types of the op's gradient; none if it has no gradient.
pub(super) fn types(words: &Words, signature: &Signature) -> Result<Vec<Type>> {
    let types = types_if_any(words, signature)?;
    if let (Grad::Function(path), true) = (&words.grad, types.is_empty()) {
        let why = "a gradient has results of type f32, f16 or bf16: add one of them to the op's types, or name others as \
                   `grad_types(..)`";
        return Err(Error::new(path.span(), why));
    }
    if !types.is_empty() {
        check_names(signature)?;
        check_rows(words, signature)?;
    }
    Ok(types)
}

/// Returns the element types that are named, or that the op has with a gradient.
fn types_if_any(words: &Words, signature: &Signature) -> Result<Vec<Type>> {
    let Signature { results, types, .. } = signature;
    // A result that is rounded to fewer bits on purpose has no derivative.
    let is_quantised = results.iter().any(|result| result.is_stored() && !result.is_kept && !result.has_gradient());
    let is_differentiable = signature.bound.has_floats()
        && signature.kind != OpKind::Generator
        && !is_quantised
        && results.iter().any(Value::has_gradient)
        && signature.operands().any(Value::has_gradient);
    if matches!(words.grad, Grad::None) || !is_differentiable {
        return Ok(Vec::new());
    }
    let Some(named) = &words.grad_types else {
        return Ok(types.iter().copied().filter(|each| TYPES.contains(each)).collect());
    };
    match named.iter().find(|(each, _)| !each.is_float() || !types.contains(each)) {
        Some((each, span)) => {
            Err(Error::new(*span, format!("{} is no float type of the op: remove it here", each.name())))
        }
        None => Ok(named.iter().map(|(each, _)| *each).collect()),
    }
}

/// Refuses an operand that has the name of a result's gradient, which is an operand of the gradients, too.
fn check_names(signature: &Signature) -> Result<()> {
    let results: Vec<&Value> = signature.results.iter().filter(|result| result.has_gradient()).collect();
    let is_taken = |name: &Ident| match &*results {
        [_] => name == "grad",
        several => several.iter().any(|result| *name == format!("grad_{}", result.name)),
    };
    match signature.operands().find(|operand| is_taken(&operand.name)) {
        Some(Value { name, .. }) => {
            let why = format!(
                "`{name}` is what the gradient of a result is called: rename the operand, or write `grad = none`"
            );
            Err(Error::new(name.span(), why))
        }
        None => Ok(()),
    }
}

/// Refuses operands of rows, and weights, whose gradients have no kernel.
fn check_rows(words: &Words, signature: &Signature) -> Result<()> {
    if let Some(operand) = signature.operands().find(|operand| operand.is_row && operand.has_gradient()) {
        let why = "a gradient by an operand of each row is a sum over the row, which is not derived: write `grad = \
                   none`, or make it an operand of each element, which may have a last dimension of 1";
        return Err(Error::new(operand.name.span(), why));
    }
    let weights = || signature.operands().filter(|operand| operand.is_weight);
    if let Some(weight) = weights().find(|weight| !weight.has_gradient()) {
        let why = "a weight has a gradient, which elements of this type have not: remove `#[weight]`";
        return Err(Error::new(weight.name.span(), why));
    }
    let is_saved = |weight: &Value| words.saves.as_ref().is_none_or(|saved| saved.contains(&weight.name));
    if let Some(weight) = weights().find(|weight| !is_saved(weight)) {
        let why = "the gradient of a weight has the weight's shape: name it in `saves(..)`, too";
        return Err(Error::new(weight.name.span(), why));
    }
    Ok(())
}

/// Refuses names in `saves(..)` that the gradient cannot read.
pub(super) fn check_saves(words: &Words, signature: &Signature) -> Result<()> {
    let is_argument = |name: &Ident| signature.arguments.iter().any(|argument| argument.name() == Some(name));
    for saved in words.saves.iter().flatten().filter(|saved| !is_argument(saved)) {
        if !signature.results.iter().any(|result| result.name == *saved) {
            let why = format!("`{saved}` is no operand, parameter or result of the op");
            return Err(Error::new(saved.span(), why));
        }
        if signature.kind == OpKind::Gated || !matches!(words.grad, Grad::Function(_)) {
            let why = "a result is read by a gradient that is a function, of an op that is not gated: add `grad = \
                       FUNCTION`, or remove this name";
            return Err(Error::new(saved.span(), why));
        }
    }
    Ok(())
}

/// Checks `through(sum = x + residual)`.
pub(super) fn check_through(words: &Words, through: &Through, signature: &Signature) -> Result<()> {
    let Through { sum, terms } = through;
    if signature.kind != OpKind::Rows || !matches!(words.grad, Grad::Derived) {
        return Err(Error::new(sum.span(), "`through` is for a derived gradient of an op on rows: remove it"));
    }
    let results = &signature.results;
    if !results.iter().any(|result| result.name == *sum && !result.is_row && result.fixed.is_none()) {
        let why = format!("`{sum}` is no result for each element that has the op's element type");
        return Err(Error::new(sum.span(), why));
    }
    let operands: Vec<&Value> = signature.operands().collect();
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

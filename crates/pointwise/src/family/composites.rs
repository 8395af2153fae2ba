//! PyTorch functions that run several ops, or an op with other arguments: `add` and `sub` without their factor, `clamp`,
//! `masked_fill`, `group_norm`, and those whose arguments choose the op.

use super::bound::Bound;
use crate::Number;
use crate::error::{Error, ErrorKind, Result};
use crate::family::formulas::{Maximum, Minimum, layer_norm};
use crate::family::kernels;
use crate::kernel::{OpDef, Operand};
use crate::number::integer_range;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use duplicate::duplicate_item;
use pointwise_core::{DType, OpInfo, ParamInfo};

/// An argument of a PyTorch function that is a word or a flag, and chooses between ops of the family.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The function, and the op of the first value.
    pub op: &'static str,
    /// The argument.
    pub param: &'static str,
    /// Each value and the op that it chooses; the first is the default. A flag has the values `false` and `true`.
    pub values: &'static [(&'static str, &'static str)],
}

/// The arguments of all functions that choose between ops.
pub static CHOICES: [Choice; 4] = [
    Choice { op: "gelu", param: "approximate", values: &[("none", "gelu"), ("tanh", "gelu_tanh")] },
    Choice {
        op: "div",
        param: "rounding_mode",
        values: &[("none", "div"), ("trunc", "div_trunc"), ("floor", "floor_divide")],
    },
    Choice { op: "alibi", param: "causal", values: &[("false", "alibi"), ("true", "alibi_causal")] },
    Choice { op: "sinusoidal", param: "halves", values: &[("false", "sinusoidal"), ("true", "sinusoidal_halves")] },
];

impl Choice {
    /// True if the values are `false` and `true`.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.values.iter().all(|(value, _)| matches!(*value, "false" | "true"))
    }

    /// Finds the op that a value chooses.
    #[must_use]
    pub fn chosen(&self, value: &str) -> Option<&'static str> {
        self.values.iter().find(|(known, _)| *known == value).map(|(_, op)| *op)
    }

    /// True if a value that is not the default chooses this op.
    pub(super) fn chooses_besides(&self, op: &str) -> bool {
        self.values[1..].iter().any(|(_, chosen)| *chosen == op)
    }
}

// `add` and `sub` without their factor, which PyTorch takes only by name.

#[duplicate_item(name formula; [add] ["a + b"]; [sub] ["a - b"])]
#[doc = concat!("`", formula, "` of tensors and numbers, broadcast; [`kernels::", stringify!(name), "`] takes a factor of \
    `b` (`alpha`).")]
///
/// # Errors
/// The errors of [`BinaryKernel::run`](crate::kernel::BinaryKernel::run).
pub fn name<'a>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
    kernels::name(Number::Default).run(a, b)
}

#[duplicate_item(name op; [add_into] [add]; [sub_into] [sub])]
#[doc = concat!("[`", stringify!(op), "`] into a tensor that is there.")]
///
/// # Errors
/// The errors of [`BinaryKernel::run_into`](crate::kernel::BinaryKernel::run_into).
pub fn name<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'a>>,
    y: impl Into<TensorViewMut<'b>>,
) -> Result<()> {
    kernels::op(Number::Default).run_into(a, b, y)
}

#[duplicate_item(name op; [add_inplace] [add]; [sub_inplace] [sub])]
#[doc = concat!("[`", stringify!(op), "`] over its first operand.")]
///
/// # Errors
/// The errors of [`BinaryKernel::run_inplace`](crate::kernel::BinaryKernel::run_inplace).
pub fn name<'a, 'b>(a: impl Into<TensorViewMut<'a>>, b: impl Into<Operand<'b>>) -> Result<()> {
    kernels::op(Number::Default).run_inplace(a, b)
}

/// The kernel that `clamp` runs.
enum Clamp<'a> {
    Numbers(Number, Number),
    One(&'static OpDef, Operand<'a>),
    Both(Operand<'a>, Operand<'a>),
}

impl<'a> Clamp<'a> {
    fn new(min: Bound<'a>, max: Bound<'a>) -> Result<Clamp<'a>> {
        let number = |bound: Option<Operand<'a>>| match bound {
            Some(Operand::View(_)) => None,
            Some(Operand::Number(number)) => Some(number),
            None => Some(Number::Default),
        };
        match (min.0, max.0) {
            (None, None) => Err(no_bound()),
            (min, max) if let (Some(min), Some(max)) = (number(min), number(max)) => Ok(Clamp::Numbers(min, max)),
            (Some(min), Some(max)) => Ok(Clamp::Both(min, max)),
            (Some(min), None) => Ok(Clamp::One(Maximum::def(), min)),
            (None, Some(max)) => Ok(Clamp::One(Minimum::def(), max)),
        }
    }
}

#[cold]
fn no_bound() -> Error {
    ErrorKind::Parameter {
        name: "min, max",
        value: "None, None".to_owned(),
        why: "clamp needs at least one bound".to_owned(),
    }
    .into()
}

/// `min(max(x, min), max)`, so `max` where `min > max`. A bound is a number, a tensor or `None`; tensors are broadcast.
/// NaN in any gives NaN.
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 3.0, 9.0], [3])?;
/// assert_eq!(ops::clamp(&x, None, 6.0)?.to_vec::<f32>()?, [-1.0, 3.0, 6.0]);
/// let low = Tensor::from_slice(&Device::cpu(), &[0.0_f32, 4.0, 0.0], [3])?;
/// assert_eq!(ops::clamp(&x, &low, None)?.to_vec::<f32>()?, [0.0, 4.0, 9.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
///
/// # Errors
/// Fails without a bound. The errors of [`UnaryKernel::run`](crate::kernel::UnaryKernel::run) or, if a bound is a
/// tensor, of [`TernaryKernel::run`](crate::kernel::TernaryKernel::run).
pub fn clamp<'a>(x: impl Into<TensorView<'a>>, min: impl Into<Bound<'a>>, max: impl Into<Bound<'a>>) -> Result<Tensor> {
    let x = x.into();
    match Clamp::new(min.into(), max.into())? {
        Clamp::Numbers(min, max) => kernels::clamp(min, max).run(x),
        Clamp::One(def, bound) => def.binary_with(&[]).run(x, bound),
        Clamp::Both(min, max) => kernels::clamp_tensor().run(x, min, max),
    }
}

/// [`clamp`] into an existing tensor.
///
/// # Errors
/// The errors of [`clamp`]; another shape, device or element type of `y`.
pub fn clamp_into<'a, 'b>(
    x: impl Into<TensorView<'a>>,
    min: impl Into<Bound<'a>>,
    max: impl Into<Bound<'a>>,
    y: impl Into<TensorViewMut<'b>>,
) -> Result<()> {
    let x = x.into();
    match Clamp::new(min.into(), max.into())? {
        Clamp::Numbers(min, max) => kernels::clamp(min, max).run_into(x, y),
        Clamp::One(def, bound) => def.binary_with(&[]).run_into(x, bound, y),
        Clamp::Both(min, max) => kernels::clamp_tensor().run_into(x, min, max, y),
    }
}

/// [`clamp`] in place; the bounds broadcast to the shape of `x`.
///
/// # Errors
/// The errors of [`clamp_into`].
pub fn clamp_inplace<'a, 'b>(
    x: impl Into<TensorViewMut<'a>>,
    min: impl Into<Bound<'b>>,
    max: impl Into<Bound<'b>>,
) -> Result<()> {
    match Clamp::new(min.into(), max.into())? {
        Clamp::Numbers(min, max) => kernels::clamp(min, max).run_inplace(x),
        Clamp::One(def, bound) => def.binary_with(&[]).run_inplace(x, bound),
        Clamp::Both(min, max) => kernels::clamp_tensor().run_inplace(x, min, max),
    }
}

/// The gradients of [`clamp`]: for `x`, and for `min` and `max` if these are tensors, each of the shape that all are
/// broadcast to. Like PyTorch's autograd, a tie counts as x's, and a NaN anywhere gives 0 to all.
///
/// # Errors
/// The errors of [`clamp`], for f32, f16 and bf16.
pub fn clamp_backward<'a>(
    grad: impl Into<TensorView<'a>>,
    x: impl Into<TensorView<'a>>,
    min: impl Into<Bound<'a>>,
    max: impl Into<Bound<'a>>,
) -> Result<(Tensor, Option<Tensor>, Option<Tensor>)> {
    let (grad, x, min, max) = (Operand::View(grad.into()), Operand::View(x.into()), min.into(), max.into());
    let run = |x, min, max| {
        let results = kernels::clamp_tensor_backward().run(&[grad, x, min, max])?;
        <[Tensor; 3]>::try_from(results).map_err(|results| {
            Error::from(ErrorKind::Unsupported {
                what: format!("clamp_tensor_backward with {} results", results.len()),
                advice: "it has three; please report this".to_owned(),
            })
        })
    };
    let open = Operand::Number(Number::Float(f64::NEG_INFINITY));
    let of_tensor = |bound: Operand<'_>, gradient| matches!(bound, Operand::View(_)).then_some(gradient);
    match (Clamp::new(min, max)?, min.0, max.0) {
        (Clamp::Numbers(min, max), ..) => Ok((kernels::clamp_backward(min, max).run(grad, x)?, None, None)),
        (Clamp::Both(min, max), ..) => {
            let [of_x, of_min, of_max] = run(x, min, max)?;
            Ok((of_x, of_tensor(min, of_min), of_tensor(max, of_max)))
        }
        (Clamp::One(_, bound), None, _) => {
            let [of_x, _, of_max] = run(x, open, bound)?;
            Ok((of_x, None, Some(of_max)))
        }
        (Clamp::One(_, bound), Some(_), _) => {
            // With infinity as the other bound, an infinite min would give nothing to either. But max(x, min) is also
            // min bounded from below by x: if `min <= x` the gradient is x's, else the bound's.
            let [of_x, _, of_min] = run(bound, open, x)?;
            Ok((of_x, Some(of_min), None))
        }
    }
}

/// [`clamp_backward`] for bounds that are numbers, into an existing tensor.
///
/// # Errors
/// The errors of [`BinaryKernel::run_into`](crate::kernel::BinaryKernel::run_into).
pub fn clamp_backward_into<'a, 'b>(
    grad: impl Into<Operand<'a>>,
    x: impl Into<Operand<'a>>,
    min: impl Into<Number>,
    max: impl Into<Number>,
    y: impl Into<TensorViewMut<'b>>,
) -> Result<()> {
    kernels::clamp_backward(min, max).run_into(grad, x, y)
}

/// [`clamp_backward`] for bounds that are numbers, over `grad`.
///
/// # Errors
/// The errors of [`BinaryKernel::run_inplace`](crate::kernel::BinaryKernel::run_inplace).
pub fn clamp_backward_inplace<'a, 'b>(
    grad: impl Into<TensorViewMut<'a>>,
    x: impl Into<Operand<'b>>,
    min: impl Into<Number>,
    max: impl Into<Number>,
) -> Result<()> {
    kernels::clamp_backward(min, max).run_inplace(grad, x)
}

/// `masked_fill`, which runs the kernels of `where`, as data.
pub static MASKED_FILL: OpInfo = OpInfo {
    name: "masked_fill",
    operands: &["x", "mask", "value"],
    operand_types: &[None, Some(DType::Bool)],
    types: &DType::ALL,
    doc: "`mask ? value : x`, x and mask broadcast both ways; the value is converted to x's type, which must hold it.\n",
    formula: "if mask { value } else { x }",
    ..OpInfo::FORMULA
};

/// A fill value as an element of type `dtype`, by PyTorch's rules: a float must be in the range if it is finite; an
/// integer takes a float in its range, which is cut towards zero, u8 also the integers -255 to -1, which wrap; bool is
/// whether it is not 0.
fn fill_number(value: Number, dtype: DType) -> Result<Number> {
    let refuse = |why: String| ErrorKind::Parameter { name: "value", value: value.to_string(), why }.into();
    let info = ParamInfo::number("value", 0.0);
    if value == Number::Default {
        return Err(refuse("a fill value has no default".to_owned()));
    }
    if value.is_beyond(&info, dtype) {
        return Err(refuse(format!("is beyond the range of {dtype}; infinity is not")));
    }
    Ok(match value {
        _ if dtype == DType::Bool => Number::Bool(value.to_f64(&info) != 0.0),
        Number::Int(low @ -255..=-1) if dtype == DType::U8 => Number::Int(low + 256),
        Number::Float(x) if dtype.is_int() => {
            let (low, high) = integer_range(dtype);
            // 2^63 is exact in f64, the largest i64 is not.
            if !(x >= low as f64 && x <= high as f64 && x < i64::MAX as f64) {
                return Err(refuse(format!("{dtype} takes a number from {low} to {high}, which is then cut")));
            }
            Number::Int(x as i64)
        }
        value => value,
    })
}

/// Returns the fill value of `masked_fill`: a number, or a tensor without dimensions, converted to `dtype` and kept in
/// `converted`.
fn fill_value<'a>(value: Operand<'a>, dtype: DType, converted: &'a mut Option<Tensor>) -> Result<Operand<'a>> {
    match value {
        Operand::Number(number) => Ok(Operand::Number(fill_number(number, dtype)?)),
        Operand::View(view) if view.shape().rank() > 0 => Err(ErrorKind::ShapeMismatch {
            what: "the value of masked_fill, a number or a tensor without dimensions".to_owned(),
            expected: Shape::SCALAR,
            got: *view.shape(),
        }
        .into()),
        Operand::View(view) if view.dtype() != dtype => Ok(Operand::from(&*converted.insert(view.to_dtype(dtype)?))),
        Operand::View(_) => Ok(value),
    }
}

/// `mask ? value : x`, x and mask broadcast both ways; bits of x pass through. The value, a number or a tensor without
/// dimensions, is converted to x's type. Floats take infinities, NaN and finite numbers in their range. Integers take
/// numbers in their range, cut towards zero; u8 also -255 to -1, which wrap. bool takes any number.
///
/// # Errors
/// A mask that is not bool; a value with dimensions, or one that the type cannot hold; the errors of
/// [`TernaryKernel::run`](crate::kernel::TernaryKernel::run).
pub fn masked_fill<'a>(
    x: impl Into<TensorView<'a>>,
    mask: impl Into<TensorView<'a>>,
    value: impl Into<Operand<'a>>,
) -> Result<Tensor> {
    let x = x.into();
    let mut converted = None;
    kernels::where_cond().run(mask.into(), fill_value(value.into(), x.dtype(), &mut converted)?, x)
}

/// [`masked_fill`] into an existing tensor.
///
/// # Errors
/// The errors of [`masked_fill`] and [`TernaryKernel::run_into`](crate::kernel::TernaryKernel::run_into).
pub fn masked_fill_into<'a, 'b>(
    x: impl Into<TensorView<'a>>,
    mask: impl Into<TensorView<'a>>,
    value: impl Into<Operand<'a>>,
    y: impl Into<TensorViewMut<'b>>,
) -> Result<()> {
    let x = x.into();
    let mut converted = None;
    kernels::where_cond().run_into(mask.into(), fill_value(value.into(), x.dtype(), &mut converted)?, x, y)
}

/// [`masked_fill`] over x, whose shape the mask must broadcast to.
///
/// # Errors
/// The errors of [`masked_fill_into`].
pub fn masked_fill_inplace<'a, 'b>(
    x: impl Into<TensorViewMut<'a>>,
    mask: impl Into<TensorView<'b>>,
    value: impl Into<Operand<'b>>,
) -> Result<()> {
    let x = x.into();
    let mut converted = None;
    let value = fill_value(value.into(), x.dtype(), &mut converted)?;
    kernels::where_cond().run_over_last(mask.into(), value, x)
}

/// The gradient of [`masked_fill`]: `mask ? 0 : grad`, broadcast.
///
/// # Errors
/// The errors of [`masked_fill`].
pub fn masked_fill_backward<'a>(grad: impl Into<TensorView<'a>>, mask: impl Into<TensorView<'a>>) -> Result<Tensor> {
    masked_fill(grad, mask, 0)
}

/// Returns `x` of shape `(N, C, ..)`, normalized over each of `num_groups` groups of its channels, times `weight` plus `bias`, which
/// have an element for each channel or are numbers. Each group is a row of [`layer_norm`](crate::ops::layer_norm). Source:
/// `torch.nn.functional.group_norm`.
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[1.0_f32, 3.0, 10.0, 30.0], [1, 4, 1])?;
/// let y = ops::group_norm(&x, 2, 1.0, 0.0, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
///
/// # Errors
/// Fails for fewer than two dimensions, for channels that are no multiple of the groups, and for a weight or bias of another
/// shape than `(C)`; the errors of [`layer_norm`](crate::ops::layer_norm).
pub fn group_norm<'a>(
    x: impl Into<TensorView<'a>>,
    num_groups: usize,
    weight: impl Into<Operand<'a>>,
    bias: impl Into<Operand<'a>>,
    eps: impl Into<Number>,
) -> Result<Tensor> {
    let x = x.into();
    let &[batch, channels, ref places @ ..] = x.shape().dims() else {
        return Err(no_groups(num_groups, "x has a dimension of samples and one of channels"));
    };
    if num_groups == 0 || !channels.is_multiple_of(num_groups) {
        return Err(no_groups(num_groups, &format!("give a divisor of the number of channels, {channels}")));
    }
    let (each, places) = (channels / num_groups, places.iter().product::<usize>());
    let (shape, len) = (*x.shape(), each * places);
    let copy;
    let rows = match x.reshape([batch, num_groups, len]) {
        Ok(rows) => rows,
        // The elements of a group do not lie one after another.
        Err(_) => {
            copy = x.to_dtype(x.dtype())?;
            copy.view().reshape([batch, num_groups, len])?
        }
    };
    // An element of the weight for each of a row.
    let spread = |operand: Operand<'a>, what: &str| -> Result<Spread> {
        let view = match operand {
            Operand::Number(number) => return Ok(Spread::Number(number)),
            Operand::View(view) => view,
        };
        let expected = Shape::new(&[channels])?;
        if *view.shape() != expected {
            let (what, got) = (format!("the {what} of group_norm"), *view.shape());
            return Err(ErrorKind::ShapeMismatch { what, expected, got }.into());
        }
        let view = view.reshape([num_groups, each, 1])?.expand([num_groups, each, places])?;
        Ok(Spread::Elements(view.to_dtype(view.dtype())?.reshape([num_groups, len])?))
    };
    let (weight, bias) = (spread(weight.into(), "weight")?, spread(bias.into(), "bias")?);
    layer_norm(rows, weight.operand(), bias.operand(), eps)?.reshape(shape)
}

/// The weight or the bias of [`group_norm`].
enum Spread {
    Number(Number),
    Elements(Tensor),
}

impl Spread {
    fn operand(&self) -> Operand<'_> {
        match self {
            Spread::Number(number) => Operand::Number(*number),
            Spread::Elements(tensor) => tensor.into(),
        }
    }
}

#[cold]
fn no_groups(groups: usize, why: &str) -> Error {
    ErrorKind::Parameter { name: "num_groups", value: groups.to_string(), why: why.to_owned() }.into()
}

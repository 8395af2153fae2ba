//! The attribute [`macro@op`]: one function becomes an op of pointwise. Use it as `pointwise::op`.

mod body;
mod by_hand;
mod common;
mod device;
mod entries;
mod entry;
mod generator;
mod gradient;
mod host;
mod pack;
mod rows;
mod signature;
mod special;
#[cfg(test)]
mod tests;
mod words;

use proc_macro2::TokenStream;
use signature::Op;
use special::Visited;
use words::Words;

/// Makes an op of a function, or of an impl of an op trait.
///
/// ```ignore
/// use pointwise::prelude::*;
///
/// /// `x + sin^2(a x) / a` (Ziyin et al. 2020).
/// #[op(floats, ulp = 8)]
/// pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
///     let s = (a * x).sin();
///     x + s * s / a
/// }
/// ```
///
/// # The function
///
/// It is generic over one type with a bound: `Real` (floats), `Num` (floats and integers), `Bits` (integers and bool) or
/// `Value` (all).
///
/// * An operand is `T` or `bool`. There are 1 to 8, and one at least is `T`. One with `#[channel]` has one element for each
///   entry of dimension 1 of the others, or one for all.
/// * An operand with `#[stored(TYPE)]` has this element type, whatever the op's is: f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32,
///   i64 or u8. It is a `T` of the formula, converted; the op is of floats.
/// * An operand of an op on rows with `#[weight]` is a row that serves all rows. Its gradient is summed over the rows, in f32, if a
///   call gives it so.
/// * One argument or two may be `RandomWord`: a random word for each element, the second independent of the first. With
///   `#[each(sample)]`, `#[each(channel)]` or `#[each(row)]` the elements of a sample (one index of the first dimension), of a
///   channel (of the first two) or of a row (all along the last) share the word.
/// * One argument may be `Row<T>`: the formula then reduces over the last dimension of its operands, by `row.sum(v)`,
///   `row.mean(v)`, `row.max(v)` and `row.min(v)`, at most three together, none of them under a branch. `row.len()` is the
///   number of elements, `row.index()` the element's place, and `row.stored(v)` a value rounded to the element type. An operand
///   `PerRow<T>` has one element for each row.
/// * Up to three arguments may be `Index`: `column`, or `row` and `column`, or `plane`, `row` and `column` of the element in the
///   result. An op without operands makes a tensor of floats of them alone.
/// * An argument with `#[param(default = ..)]` is a parameter, a number that comes with the call: `T`, `i64`, `bool`, or
///   `Option<T>`, which is `None` by default. `#[param(default = 0.1, probability)]` takes numbers from 0 to 1. Parameters
///   take 8 words of 64 bits together; an `Option<T>` takes two.
/// * It returns `T` or `bool`, or a tuple of 2 to 4 of these. With a row, `PerRow<T>` is a result that each row has once: its
///   shape has no last dimension, or one of groups.
///
/// # The formula
///
/// It calls the methods of its bound's trait, functions beside it, other formulas (`Snake::formula(x, a)`) and the
/// ops of the family on elements, by `use pointwise::formulas;`: `formulas::elu(x, T::constant(1.0))`. A number is
/// `T::constant(0.5)`, in a formula of integers `T::whole(15)`.
///
/// # The words of the attribute
///
/// | Word | Meaning |
/// |---|---|
/// | `floats`, `ints`, `bool`, `f32`, `f16`, `bf16`, `f8e4m3`, `f8e5m2`, `i8`, `i16`, `i32`, `i64`, `u8` | the element types |
/// | `exact` | floats are correctly rounded in f32, and rounded once more to narrower types |
/// | `ulp = 8` | the largest error in f32, in units in the last place |
/// | `grad_ulp = 16` | the same of the gradients; by default twice `ulp`, at least 4 |
/// | `grad = none` | the op has no gradient |
/// | `grad = function` | the gradient is this function, of the gradients of the float results, then all arguments; where the op has a `Row<T>`, it has a `Place<T>` |
/// | `saves(x, a)` | the operands and parameters that the gradient reads; by default all |
/// | `saves(x, y)` | also results that a gradient by a function reads, its last arguments; one of a fixed type is for the gradient alone |
/// | `through(sum = x + residual)` | of an op on rows: the formula reads these operands as that result alone. The gradient reads it in their place, and `grad_x` is that of both |
/// | `grad_types(f32)` | the element types of the gradient; by default f32, f16 and bf16, as far as the op has them |
/// | `grad_doc = "text"` | the documentation of the gradient |
/// | `results(y, mask)` | the names of several results; by default `y0`, `y1`, .. |
/// | `results(q: i8, state: f32)` | also their element types, which are no bools; by default the op's |
/// | `row = 128` | a row is a group of 128 neighbours along the last dimension, which is a multiple of it; 16 to 1,024 |
/// | `gated` | the two operands are the halves of one tensor, or two tensors |
/// | `params(slope = 0.01)` | of an `impl`: the fields that are parameters, with their defaults |
///
/// # What it makes
///
/// `snake` above becomes the struct `Snake { a }` with the formula as `Snake::formula`, `Snake::def()` (the op as data) and
/// `Snake { a: 0.5 }.kernel()` (the op with launch settings), and the functions `snake(&x, 0.5)`, `snake_into(&x, &mut y, 0.5)`,
/// `snake_inplace(&mut x, 0.5)`, `snake_backward(&grad, &x, 0.5)`. The last argument of a random op is the place to draw from: a
/// `Philox`, or a tensor that has seed and offset.
///
/// For a gated op `NAME`, `NAME_into` and `NAME_backward` take the tensor of both halves; `NAME_pair` and its like take two
/// tensors. An op without operands has `NAME(&device, dtype, shape, ..)` and `NAME_into(&mut y, ..)`.
///
/// # An impl
///
/// If a struct of the module is the op, the attribute stands on its impl of `UnaryOp`, `BinaryOp` or `TernaryOp`,
/// generic over the type as a function is. The functions have the struct's name in lower case.
///
/// Its kernels are those that `pointwise_build::ops` compiled in the package's build script. Without them the op runs on
/// the CPU, and a call on a GPU says what is missing.
#[proc_macro_attribute]
pub fn op(words: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let words = syn::parse(words);
    words
        .and_then(|words| expand(words, function.into(), pack::find))
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

/// [`macro@op`] for the ops of the family, whose kernels are one pack, with hints to templates and PyTorch's rules.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn family_op(words: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let words = syn::parse(words).map(|words| Words { is_of_family: true, ..words });
    words
        .and_then(|words| expand(words, function.into(), |_| pack::Pack::empty("")))
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

/// The function of an op of the family alone, in `pointwise_core::formulas`. The words have no say there.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn family_formula(_words: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse(function).map_or_else(syn::Error::into_compile_error, common::callable).into()
}

/// The items that an op becomes; `pack` finds its kernels by its name.
fn expand(words: Words, function: TokenStream, pack: impl FnOnce(&str) -> pack::Pack) -> syn::Result<TokenStream> {
    let op = Op::new(words, syn::parse2(function)?)?;
    let pack = pack(&op.symbol());
    if let Some(why) = pack.no_op {
        return Err(syn::Error::new(op.name.span(), why));
    }
    let mut items = common::items(&op);
    items.extend(op.has_gradient().then(|| gradient::items(&op)));
    items.extend(device::items(&op));
    items.extend(host::items(&op, pack));
    Ok(items)
}

/// The entries of kernels that are templates of their own, on the device.
#[doc(hidden)]
#[proc_macro]
pub fn entries(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse::<Visited>(input).map_or_else(syn::Error::into_compile_error, |special| special.entries()).into()
}

/// Their definitions, or the functions that find them, on the host.
#[doc(hidden)]
#[proc_macro]
pub fn host(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse::<Visited>(input).map_or_else(syn::Error::into_compile_error, |special| special.host()).into()
}

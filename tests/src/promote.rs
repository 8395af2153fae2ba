//! Calls of operands of different types, against calls of operands that were converted by definition.

use pointwise::{DType, Device, Operand, Tensor, TensorView, ops};
use pointwise_testkit::{inputs, judge};

use crate::convert::expected;

type Outcome = std::result::Result<(), String>;
type Call = fn(Operand<'_>, Operand<'_>) -> pointwise::Result<Tensor>;

/// An op, and whether integers and bool become f32 in it.
const OPS: &[(&str, Call, bool)] = &[
    ("add", |a, b| ops::add(a, b), false),
    ("mul", |a, b| ops::mul(a, b), false),
    ("div", |a, b| ops::div(a, b), true),
    ("maximum", |a, b| ops::maximum(a, b), false),
    ("lt", |a, b| ops::lt(a, b), false),
    ("logical_and", |a, b| ops::logical_and(a, b), false),
];

/// A tensor converted on the host.
fn by_hand(x: TensorView<'_>, to: DType) -> pointwise::Result<Tensor> {
    let bytes: Vec<u8> =
        x.to_bytes()?.chunks_exact(x.dtype().size()).flat_map(|element| expected(x.dtype(), to, element)).collect();
    Tensor::from_bytes(x.device(), to, &bytes, x.shape())
}

/// Runs ops of a matrix of type `a` and a row of type `b`, both ways, on whole tensors and on views, into a new tensor
/// and in place.
///
/// # Errors
/// The first wrong result, in words; the errors of the library.
pub fn check(device: &Device, a: DType, b: DType) -> Outcome {
    let Some(met) = a.promote_types(b) else {
        return Ok(());
    };
    cases(device, a, b, met).map_err(|error| error.to_string())?
}

fn cases(device: &Device, a: DType, b: DType, met: DType) -> pointwise::Result<Outcome> {
    let (rows, cols) = (37, 48);
    let x = Tensor::from_bytes(device, a, &inputs::mixed(a, rows * cols, 2), [rows, cols])?;
    let y = Tensor::from_bytes(device, b, &inputs::mixed(b, cols, 4), [cols])?;
    for &(name, run, is_float) in OPS {
        let met = if is_float && !met.is_float() { DType::F32 } else { met };
        for x in [x.view(), x.view().narrow(1, 1, cols - 5)?] {
            let y = y.view().narrow(0, 0, x.shape()[1])?;
            let (xm, ym) = (by_hand(x, met)?, by_hand(y, met)?);
            for (got, wanted) in [
                (run(Operand::from(x), Operand::from(y))?, run(Operand::from(&xm), Operand::from(&ym))?),
                (run(Operand::from(y), Operand::from(x))?, run(Operand::from(&ym), Operand::from(&xm))?),
            ] {
                let same = got.dtype() == wanted.dtype() && got.shape() == wanted.shape();
                if !same || judge::same_bits(got.dtype(), &got.to_bytes()?, &wanted.to_bytes()?).is_some() {
                    return Ok(Err(format!("{name} of {a} and {b}: {got:?} is not {wanted:?}")));
                }
            }
        }
    }
    // In place: the result is converted back where PyTorch allows it.
    let sum = ops::add(&by_hand(x.view(), met)?, &by_hand(y.view(), met)?)?;
    let mut target = x.copy()?;
    match (ops::add_inplace(&mut target, &y), met.can_cast(a)) {
        (Ok(()), true) => {
            let wanted = by_hand(sum.view(), a)?;
            if judge::same_bits(a, &target.to_bytes()?, &wanted.to_bytes()?).is_some() {
                return Ok(Err(format!("add of {b} to {a} in place is wrong")));
            }
        }
        (Err(error), false) if error.is_dtype() => {}
        (result, _) => return Ok(Err(format!("add of {b} to {a} in place: {result:?}"))),
    }
    Ok(Ok(()))
}

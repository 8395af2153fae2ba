//! Ops in f64 on the CPU: the formula that checks the kernels, element by element. It is what `gradcheck` needs, and no
//! fast path.

use pointwise::{Number, Philox};

use crate::aligned::Aligned;
use crate::call::say;
use crate::layout::{self, Item};
use crate::registry::OpSpec;

/// Reads an element.
///
/// # Safety
/// `data` is a bool or an f64.
unsafe fn read(data: *const u8, is_bool: bool) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { if is_bool { f64::from(u8::from(*data != 0)) } else { data.cast::<f64>().read_unaligned() } }
}

/// Writes an element.
///
/// # Safety
/// As [`read`].
unsafe fn write(data: *mut u8, is_bool: bool, value: f64) {
    // SAFETY: the caller's promise.
    unsafe { if is_bool { *data = u8::from(value != 0.0) } else { data.cast::<f64>().write_unaligned(value) } }
}

/// Runs an op in f64.
///
/// # Errors
/// An op without a formula in f64, or parameters that it does not take.
///
/// # Safety
/// The items are tensors of the CPU, of f64 (bools apart), with the call's dimensions.
pub(crate) unsafe fn run(op: &OpSpec, call: &mut Aligned, params: &[Number], rng: Philox) -> Result<(), String> {
    let formula = op.double(params).map_err(say)?;
    let Aligned { sizes, items, operands, tensors } = call;
    let mut index = 0;
    let (mut x, mut y) = (vec![0.0; operands.len()], vec![0.0; items.len() - *tensors]);
    layout::each(1, sizes, items, &mut |sizes, items| {
        for i in 0..sizes.first().copied().unwrap_or(1) {
            let at = |item: &Item| {
                let step = item.strides.first().copied().unwrap_or(0);
                item.data.wrapping_offset((step * i) as isize * item.size as isize)
            };
            for (x, operand) in x.iter_mut().zip(&*operands) {
                *x = match operand {
                    // SAFETY: the caller's promise.
                    Ok(k) => unsafe { read(at(&items[*k]), items[*k].is_bool) },
                    Err(number) => *number,
                };
            }
            let bits = if op.is_random { rng.word(index) } else { 0 };
            index += 1;
            formula(&x, bits, &mut y);
            for (item, y) in items[*tensors..].iter().zip(&y) {
                // SAFETY: the caller's promise.
                unsafe { write(at(item), item.is_bool, *y) };
            }
        }
        Ok(())
    })
}

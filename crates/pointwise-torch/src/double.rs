//! Ops in f64 on the CPU: the formula that checks the kernels, element by element. It is what `gradcheck` needs, and no
//! fast path.

use pointwise::{Number, Philox};

use crate::layout::{self, Item};
use crate::registry::OpSpec;

/// Reads an element: a bool has one byte, others are f64.
///
/// # Safety
/// `data` is such an element.
unsafe fn read(data: *const u8, size: usize) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { if size == 1 { f64::from(u8::from(*data != 0)) } else { data.cast::<f64>().read_unaligned() } }
}

/// Writes an element.
///
/// # Safety
/// As [`read`].
unsafe fn write(data: *mut u8, size: usize, value: f64) {
    // SAFETY: the caller's promise.
    unsafe { if size == 1 { *data = u8::from(value != 0.0) } else { data.cast::<f64>().write_unaligned(value) } }
}

/// Runs an op in f64. `items` are the operands that are tensors, then the results; `numbers` has a number for each operand
/// that is none.
///
/// # Errors
/// An op without a formula in f64, or parameters that it does not take.
///
/// # Safety
/// The items are tensors of the CPU, of elements that [`read`] and [`write`] take, with the call's dimensions.
pub(crate) unsafe fn run(
    op: &OpSpec,
    sizes: &[i64],
    items: &mut [Item],
    numbers: &[Option<f64>],
    params: &[Number],
    rng: Philox,
) -> Result<(), String> {
    let formula = op.double(params).map_err(|e| e.to_string())?;
    let mut next = 0;
    let operands: Vec<Result<usize, f64>> = (numbers.iter())
        .map(|number| match number {
            Some(number) => Err(*number),
            None => {
                next += 1;
                Ok(next - 1)
            }
        })
        .collect();
    let tensors = next;
    let mut index = 0;
    let (mut x, mut y) = (vec![0.0; operands.len()], vec![0.0; items.len() - tensors]);
    layout::each(1, sizes, items, &mut |sizes, items| {
        for i in 0..sizes.first().copied().unwrap_or(1) {
            let at = |item: &Item| {
                let step = item.strides.first().copied().unwrap_or(0);
                item.data.wrapping_offset((step * i) as isize * item.size as isize)
            };
            for (x, operand) in x.iter_mut().zip(&operands) {
                *x = match operand {
                    // SAFETY: the caller's promise.
                    Ok(k) => unsafe { read(at(&items[*k]), items[*k].size) },
                    Err(number) => *number,
                };
            }
            let bits = if op.is_random { rng.word(index) } else { 0 };
            index += 1;
            formula(&x, bits, &mut y);
            for (item, y) in items[tensors..].iter().zip(&y) {
                // SAFETY: the caller's promise.
                unsafe { write(at(item), item.size, *y) };
            }
        }
        Ok(())
    })
}

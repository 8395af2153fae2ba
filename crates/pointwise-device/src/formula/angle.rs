//! Vectors of formulas with a sine or cosine: without the reduction of large angles, unless one is large.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::maths::{SMALL_ANGLE, assume_small_angle};
use pointwise_core::{Element, Word};

use super::operand::{arguments, fetch};
use super::{Loaded, Places, Tensors, behind, finish_lanes, finish_values};
use crate::packed::{Packed, unroll};
use crate::thread;

/// True if the formula takes the sine or cosine of its last operand, a float.
pub(super) const fn serves<E: Element, O: OpData>() -> bool {
    E::DTYPE.is_float() && O::INFO.properties.angle
}

/// Returns the number in a float's compute type.
#[inline(always)]
fn number<T: Word>(x: T) -> f32 {
    f32::from_bits(x.to_word() as u32)
}

/// Computes a vector, or its first element: all lanes at once if their angles are small, else one by one. The long path
/// is there once. With a copy for each lane the driver would take milliseconds to compile it.
///
/// # Safety
/// The conditions of [`super::work`].
#[inline(always)]
pub(super) unsafe fn run<E, F, O, const N: usize, const R: usize, const V: usize, const IN_ROWS: bool>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: Places<N, R>,
    is_vector: bool,
    loaded: &[Loaded; N],
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let (values, truths) = arguments::<E, O, N, V>(loaded, &tensors.words);
    let mut small = true;
    unroll!(i < V => { small &= number(values[i][N - 1]).abs() <= SMALL_ANGLE; });
    // SAFETY: the caller's contract. What is stored is no operand of another element.
    unsafe {
        if small {
            unroll!(i < V => { assume_small_angle(number(values[i][N - 1])); });
            finish_values::<E, F, O, N, R, V>(tensors, values, truths, at.results, is_vector, op);
            return;
        }
        let len = if is_vector { V as u32 } else { 1 };
        let mut i = 0;
        while i < len {
            thread::no_unrolling();
            let at = behind::<N, R, IN_ROWS>(tensors, mode, at, i);
            let one = fetch::<E, O, N, R, 1>(tensors, mode, &at);
            finish_lanes::<E, F, O, N, R, 1>(tensors, &one, at.results, true, op);
            i += 1;
        }
    }
}

//! The formula of one element over registers. Nothing launches it: fusion at run time takes the text of its code.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::{Value, Word};

use crate::packed::{Packed, unroll};
use crate::thread;

/// Returns a word of the parameters. It is opaque, so that it is loaded by an instruction of its own: the compiler would choose between
/// the addresses of parameters, and a copy of the code has none.
#[inline(always)]
pub fn loaded(word: u64) -> u64 {
    thread::worked_out_here(word)
}

/// Computes one element. Operands are words of the compute type, a bool is 0 or 1. Result `k` is the word at `y + k`; of types
/// below 64 bits its lower half is written.
///
/// # Safety
/// `y` is valid for writing `R` words.
#[inline(always)]
pub unsafe fn body<E, O, const N: usize, const R: usize>(y: *mut u64, words: [u64; N], op: O)
where
    E: Packed,
    O: OpData + Formula<E::Compute, N, R>,
{
    let (mut values, mut truths) = ([<E::Compute as Value>::ZERO; N], [false; N]);
    unroll!(at most 12: k < N => {
        // Opaque, as in `loaded`.
        let is_bool = const { O::INFO.bool_operands() } >> k & 1 == 1;
        let word = if size_of::<E>() == 8 && !is_bool {
            thread::worked_out_here(words[k])
        } else {
            thread::opaque(words[k] as u32) as u64
        };
        if is_bool {
            truths[k] = word != 0;
        } else {
            values[k] = E::Compute::from_word(word);
        }
    });
    let (of_type, of_bool) = op.apply(values, truths, 0.into());
    unroll!(at most 8: k < R => {
        // SAFETY: the caller's contract.
        unsafe {
            let at = y.add(k);
            if const { O::INFO.bool_results() } >> k & 1 == 1 {
                at.cast::<u32>().write(of_bool[k] as u32);
            } else if size_of::<E>() == 8 {
                at.write(of_type[k].to_word());
            } else {
                at.cast::<u32>().write(of_type[k].to_word() as u32);
            }
        }
    });
}

//! The kernel of generators: `y[plane, row, column] = op(plane, row, column)`.
//!
//! A thread has `V` neighbouring columns, whose common part it computes once, and several rows. A block is `2^shift`
//! threads wide and as high as the rest of its threads allow. Its rows lie one below another, so that the stores of a
//! warp are neighbours. For 8 bits a thread's own rows lie one below another instead: see [`GeneratorOp::next`]. For 16
//! bits they come in groups.

use pointwise_core::op::{GROUP, RUN};
use pointwise_core::{GeneratorOp, Value, Word};

use crate::packed::{self, Packed, unroll};
use crate::thread;

/// The shape of the tensor, and of the grid of blocks that covers it.
#[derive(Clone, Copy)]
pub struct Grid {
    /// Rows of a plane.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Blocks side by side.
    pub across: u32,
    /// Blocks one below another in a plane.
    pub down: u32,
    /// log2 of the threads of a block side by side.
    pub shift: u32,
    /// Rows of a thread; for 16 bits a multiple of [`GROUP`], for 8 bits a power of two up to [`RUN`].
    pub each: u32,
}

/// # Safety
/// `y` is valid for the elements of all planes that the launch has blocks for, and aligned to `V` of them; `columns` is
/// a multiple of `V`, and `columns + 2^shift V` and `rows + each * threads` fit 32 bits.
#[inline(always)]
pub unsafe fn fill<E, O, const V: usize>(y: *mut E, grid: Grid, op: O)
where
    E: Packed,
    O: GeneratorOp,
{
    let block = thread::block_idx_x();
    // Neither is 0; said here, so that no panic is compiled in.
    let (side, depth) = (grid.across.max(1), grid.down.max(1));
    let (above, across) = (block / side, block % side);
    let (plane, down) = (above / depth, above % depth);
    let (x, line) = (thread::thread_idx_x() & ((1 << grid.shift) - 1), thread::thread_idx_x() >> grid.shift);
    let column = ((across << grid.shift) + x) * V as u32;
    if column >= grid.columns {
        return;
    }
    let mut columns = [op.column(plane, column); V];
    unroll!(i < V => { columns[i] = op.column(plane, column + i as u32); });
    let height = thread::block_dim_x() >> grid.shift;
    // A thread's rows of 32 bits lie a block's height apart, and so do its groups of 16-bit rows. Rows of 8 bits follow
    // each other.
    let (in_runs, in_groups) = const { (size_of::<E>() == 1, size_of::<E>() == 2) };
    let at_once = if in_groups { GROUP } else { 1 };
    let apart = if in_runs { 1 } else { at_once * height };
    let start = if in_runs { line * grid.each } else { at_once * line };
    let mut row = down * height * grid.each + start;
    if in_runs && row < grid.rows {
        let mut before = row & !(RUN - 1);
        unroll!(i < V => { columns[i] = op.begin(columns[i], before); });
        while before < row {
            unroll!(i < V => { (_, columns[i]) = op.next(columns[i], before); });
            before += 1;
        }
    }
    let start = (plane as u64 * grid.rows as u64 + row as u64) * grid.columns as u64 + column as u64;
    let mut y = y.wrapping_add(start as usize);
    for _ in 0..grid.each / at_once {
        if in_groups && row < grid.rows {
            unroll!(i < V => { columns[i] = op.begin_group(columns[i], row); });
        }
        unroll!(if at most 4: k < at_once as usize => {
            if row + k as u32 >= grid.rows {
                return;
            }
            let mut lanes = [E::Compute::ZERO; V];
            unroll!(i < V => {
                let value;
                if in_runs {
                    (value, columns[i]) = op.next(columns[i], row);
                } else if in_groups {
                    (value, columns[i]) = op.next_of_group(columns[i], row + k as u32);
                } else {
                    value = op.element(columns[i], row);
                }
                lanes[i] = lane::<E>(value);
            });
            let target = y.wrapping_add(k * grid.columns as usize);
            // SAFETY: plane, row and column are inside the tensor; the caller's contract.
            unsafe {
                if O::IS_BOUNDED {
                    packed::store_by::<E, V>(target, lanes, E::pack_bounded);
                } else {
                    packed::store::<E, V>(target, lanes);
                }
            }
        });
        row += apart;
        y = y.wrapping_add(apart as usize * grid.columns as usize);
    }
}

/// Returns an f32 as the compute type, which for floats has the same bits.
#[inline(always)]
fn lane<E: Packed>(value: f32) -> E::Compute {
    E::Compute::from_word(value.to_word())
}

//! `y[plane, row, column] = op(plane, row, column)`.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use pointwise_core::op::{GROUP, RUN, Words};
use pointwise_core::{DType, DescribedOp, Element, GeneratorOp, Word};

use super::level::{Loop, at_best};
use super::parallel::{Shared, TASK, tasks};

/// `(y, plane, row, rows, columns, parameters)`: rows `row .. row + rows` of a plane, written to `y`.
///
/// # Safety
/// `y` is aligned to its elements and valid for `rows * columns` of them.
pub type GeneratorFn = unsafe fn(*mut u8, u32, u32, u32, u32, Words);

/// Columns prepared at a time.
const BLOCK: usize = 256;

/// The op `O` in elements `E`.
///
/// # Safety
/// The contract of [`GeneratorFn`] holds.
pub unsafe fn generator<E, O>(y: *mut u8, plane: u32, row: u32, rows: u32, columns: u32, words: Words)
where
    E: Element<Compute: Word>,
    O: DescribedOp + GeneratorOp,
{
    let of = PhantomData::<(E, O)>;
    // SAFETY: the caller's contract.
    unsafe { at_best(Run::<E, O> { y, plane, row, rows, columns, words, of }) }
}

/// Rows of a plane.
struct Run<E, O> {
    y: *mut u8,
    plane: u32,
    row: u32,
    rows: u32,
    columns: u32,
    words: Words,
    of: PhantomData<(E, O)>,
}

/// # Safety
/// The contract of [`GeneratorFn`] holds.
impl<E, O> Loop for Run<E, O>
where
    E: Element<Compute: Word>,
    O: DescribedOp + GeneratorOp,
{
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Run { y, plane, row, rows, columns, words, .. } = self;
        let op = O::from_words(words);
        let y = y.cast::<E>();
        // A short row does not pay for all of it.
        let mut prepared = [const { MaybeUninit::uninit() }; BLOCK];
        let mut start = 0;
        while start < columns {
            let len = (columns - start).min(BLOCK as u32);
            let block = &mut prepared[..len as usize];
            for (i, column) in block.iter_mut().enumerate() {
                column.write(op.column(plane, start + i as u32));
            }
            // SAFETY: each is written just above.
            let common = unsafe { block.assume_init_mut() };
            let write = |at: u32, i: usize, value: f32| {
                let place = (at - row) as usize * columns as usize + start as usize + i;
                // An f32 as the compute type, which for floats is one of the same bits.
                let value = E::narrow(E::Compute::from_word(value.to_word()));
                // SAFETY: the element lies in the rows given; the caller's contract.
                unsafe { y.add(place).write(value) };
            };
            match size_of::<E>() {
                1 => in_runs(RUN, common, row, rows, |c, at| op.begin(c, at), |c, at| op.next(c, at), write),
                2 => in_runs(
                    GROUP,
                    common,
                    row,
                    rows,
                    |c, at| op.begin_group(c, at),
                    |c, at| op.next_of_group(c, at),
                    write,
                ),
                _ => {
                    for at in row..row + rows {
                        for (i, &column) in common.iter().enumerate() {
                            write(at, i, op.element(column, at));
                        }
                    }
                }
            }
            start += len;
        }
    }
}

/// Writes rows that are made from the first of each run of `length`, a power of two: from the beginning of the run that
/// the first row is in.
#[inline(always)]
fn in_runs<C: Copy>(
    length: u32,
    columns: &mut [C],
    row: u32,
    rows: u32,
    begin: impl Fn(C, u32) -> C,
    next: impl Fn(C, u32) -> (f32, C),
    write: impl Fn(u32, usize, f32),
) {
    for at in row & !(length - 1)..row + rows {
        if at % length == 0 {
            columns.iter_mut().for_each(|column| *column = begin(*column, at));
        }
        for (i, column) in columns.iter_mut().enumerate() {
            let value;
            (value, *column) = next(*column, at);
            if at >= row {
                write(at, i, value);
            }
        }
    }
}

/// Runs `op` over planes of rows and columns of elements of type `dtype`, in parallel.
///
/// # Safety
/// `y` is aligned to its elements and valid for all of them.
pub(crate) unsafe fn run_generator(
    op: GeneratorFn,
    y: *mut u8,
    [planes, rows, columns]: [u32; 3],
    dtype: DType,
    words: Words,
) {
    let y = Shared(y);
    let Tasks { planes: together, rows: each } = Tasks::of(planes, rows, columns);
    let in_a_plane = rows.div_ceil(each) as usize;
    let run = |task: usize| {
        let (first, row) = ((task / in_a_plane) as u32 * together, (task % in_a_plane) as u32 * each);
        for plane in first..first + together.min(planes - first) {
            let start = (i64::from(plane) * i64::from(rows) + i64::from(row)) * i64::from(columns);
            // SAFETY: the rows are inside the tensor, and no other task's; the caller's contract.
            unsafe { op(y.at(dtype.offset(start) as usize), plane, row, each.min(rows - row), columns, words) };
        }
    };
    tasks(planes.div_ceil(together) as usize * in_a_plane, run);
}

/// The part of one task: rows of a plane, or several whole planes if they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tasks {
    planes: u32,
    rows: u32,
}

impl Tasks {
    fn of(planes: u32, rows: u32, columns: u32) -> Tasks {
        let each = (TASK / (columns as usize).max(1)).clamp(1, (rows as usize).max(1)) as u32;
        let plane = (rows as usize * columns as usize).max(1);
        let planes = (TASK / plane).clamp(1, (planes as usize).max(1)) as u32;
        Tasks { planes: if each < rows { 1 } else { planes }, rows: each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three tasks, the last of them shorter.
    #[test]
    fn many_small_planes() {
        let heads = 20_001;
        let slopes = crate::ops::alibi_slopes(heads).unwrap();
        let y = crate::ops::alibi(&crate::Device::cpu(), crate::DType::F32, heads, 2).unwrap();
        let expected = slopes.iter().flat_map(|slope| [0.0, -slope, -slope, 0.0]);
        assert!(y.to_vec::<f32>().unwrap().into_iter().eq(expected));
    }

    #[test]
    fn a_task_has_enough_elements() {
        let task = TASK as u32;
        for (shape, planes, rows) in [
            ([1 << 24, 1, 1], task, 1),
            ([1 << 24, 2, 4], task / 8, 2),
            ([3, 2, 4], 3, 2),
            ([32, 4096, 4096], 1, task / 4096),
            ([1, task, 1], 1, task),
            ([1, 2 * task, 1], 1, task),
            ([7, 1, u32::MAX], 1, 1),
            ([0, 0, 0], 1, 1),
            ([5, 0, 3], 5, 1),
            ([5, 3, 0], 5, 3),
        ] {
            assert_eq!(Tasks::of(shape[0], shape[1], shape[2]), Tasks { planes, rows }, "{shape:?}");
        }
    }
}

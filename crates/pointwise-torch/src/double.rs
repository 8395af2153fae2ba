//! Ops in f64 on the CPU, block by block: arithmetic in loops that vectorise, all others by the formula that checks the
//! kernels, element by element. It is what `gradcheck` needs; functions have no fast path.

use pointwise::Number;
use pointwise::kernel::{At, Draw, Rng};
use pointwise::prelude::Num;
use serde_json::Value;

use crate::abi::Element;
use crate::aligned::{Aligned, With};
use crate::layout::{self, Item};
use crate::operand::real;
use crate::registry::{OpSpec, ParamSpec};
use crate::view::say;

/// Elements of a block. The nearest cache holds a block of an operand and of a result together.
const BLOCK: usize = 512;

/// A block of an operand or of a result; a bool is 0 or 1.
type Column = [f64; BLOCK];

/// The most operands of [`arithmetic`].
const MOST: usize = 2;

/// The result of as many elements of each operand.
type Arithmetic = fn(&[&[f64]], &mut [f64]);

fn one(x: &[&[f64]], y: &mut [f64], f: impl Fn(f64) -> f64) {
    if let [a] = x {
        y.iter_mut().zip(*a).for_each(|(y, a)| *y = f(*a));
    }
}

fn two(x: &[&[f64]], y: &mut [f64], f: impl Fn(f64, f64) -> f64) {
    if let [a, b] = x {
        y.iter_mut().zip(a.iter().zip(*b)).for_each(|(y, (a, b))| *y = f(*a, *b));
    }
}

/// An op of one instruction, or a choice. Its result equals the formula's to the bit.
fn arithmetic(op: &OpSpec, params: &[Number]) -> Option<Arithmetic> {
    // A factor is multiplied with one rounding: that is a function.
    let has_default = |(given, param): (&Number, &ParamSpec)| {
        let default = param.default.as_ref().and_then(Value::as_f64);
        real(*given, default) == default
    };
    if !op.is_family || !params.iter().zip(&op.params).all(has_default) {
        return None;
    }
    Some(match op.name.as_str() {
        "add" => |x, y| two(x, y, |a, b| a + b),
        "sub" => |x, y| two(x, y, |a, b| a - b),
        "mul" => |x, y| two(x, y, |a, b| a * b),
        "div" => |x, y| two(x, y, |a, b| a / b),
        "neg" => |x, y| one(x, y, |x| -x),
        "abs" => |x, y| one(x, y, f64::abs),
        "reciprocal" => |x, y| one(x, y, |x| 1.0 / x),
        "sqrt" => |x, y| one(x, y, f64::sqrt),
        "relu" => |x, y| one(x, y, Num::relu),
        "maximum" => |x, y| two(x, y, Num::maximum),
        "minimum" => |x, y| two(x, y, Num::minimum),
        _ => return None,
    })
}

/// Element `i` of a row.
fn at(item: &Item, i: usize) -> *mut u8 {
    let step = item.strides.first().copied().unwrap_or(0) as isize;
    item.data.wrapping_offset(step * i as isize * item.element.size() as isize)
}

/// True if a row is one element after another, or has one alone.
fn is_dense(item: &Item, count: usize) -> bool {
    item.element == Element::F64 && (count == 1 || item.strides.first() == Some(&1))
}

/// Reads elements of a row, from `start`.
///
/// # Safety
/// The elements are bools or f64.
unsafe fn load(item: &Item, start: usize, to: &mut [f64]) {
    // SAFETY: the caller's promise; an f64 need not be aligned.
    unsafe {
        if is_dense(item, to.len()) {
            std::ptr::copy_nonoverlapping(at(item, start), to.as_mut_ptr().cast(), size_of_val(to));
            return;
        }
        for (i, to) in to.iter_mut().enumerate() {
            let from = at(item, start + i);
            *to = if item.element == Element::F64 {
                from.cast::<f64>().read_unaligned()
            } else {
                f64::from(u8::from(*from != 0))
            };
        }
    }
}

/// Writes elements of a row, from `start`.
///
/// # Safety
/// The elements are bools or f64.
unsafe fn store(item: &Item, start: usize, from: &[f64]) {
    // SAFETY: the caller's promise; an f64 need not be aligned.
    unsafe {
        if is_dense(item, from.len()) {
            std::ptr::copy_nonoverlapping(from.as_ptr().cast(), at(item, start), size_of_val(from));
            return;
        }
        for (i, from) in from.iter().enumerate() {
            let to = at(item, start + i);
            if item.element == Element::F64 {
                to.cast::<f64>().write_unaligned(*from)
            } else {
                *to = u8::from(*from != 0.0)
            }
        }
    }
}

/// True if elements of a row, from `start`, are one f64 after another where an f64 may lie.
fn is_slice(item: &Item, start: usize, count: usize) -> bool {
    is_dense(item, count) && at(item, start).cast::<f64>().is_aligned()
}

/// Runs arithmetic on some elements of a row, from `start`. `x` and `y` are for what does not lie as a slice; columns of
/// numbers are filled already.
///
/// # Safety
/// The items are of bools or f64 and have these elements; there are as many columns as operands.
unsafe fn block(
    arithmetic: Arithmetic,
    items: &[Item],
    operands: &[Result<usize, Number>],
    tensors: usize,
    start: usize,
    length: usize,
    (x, y): (&mut [Column], &mut Column),
) {
    let Some(result) = items.get(tensors) else { return };
    let to = at(result, start).addr();
    let mut is_apart = is_slice(result, start, length);
    for (column, operand) in x.iter_mut().zip(operands) {
        let Ok(k) = operand else { continue };
        if is_slice(&items[*k], start, length) {
            let from = at(&items[*k], start).addr();
            is_apart &= from.abs_diff(to) >= length * size_of::<f64>();
        } else {
            // SAFETY: the caller's promise.
            unsafe { load(&items[*k], start, &mut column[..length]) };
        }
    }
    let mut given = [&[][..]; MOST];
    for ((given, column), operand) in given.iter_mut().zip(&*x).zip(operands) {
        *given = match operand {
            Ok(k) if is_slice(&items[*k], start, length) => {
                // SAFETY: so many f64 lie there, aligned; what is written meanwhile is apart, or no memory of a tensor.
                unsafe { std::slice::from_raw_parts(at(&items[*k], start).cast(), length) }
            }
            _ => &column[..length],
        };
    }
    let given = &given[..operands.len().min(MOST)];
    if is_apart {
        // SAFETY: so many f64 lie there, aligned, and no operand shares memory with them.
        arithmetic(given, unsafe { std::slice::from_raw_parts_mut(at(result, start).cast(), length) });
    } else {
        arithmetic(given, &mut y[..length]);
        // SAFETY: the caller's promise; the operands are not read any more.
        unsafe { store(result, start, &y[..length]) };
    }
}

/// Runs an op in f64.
///
/// # Errors
/// Another device than the CPU; an op without a formula in f64, or parameters that it does not take.
///
/// # Safety
/// The items are tensors of the call's device, of f64 (bools apart), with the call's dimensions; they are alive, and nobody
/// writes to them meanwhile.
pub(crate) unsafe fn run(call: Aligned, with: &With<'_>) -> Result<(), String> {
    let With { op, device, params, rng, .. } = *with;
    if !device.is_cpu() {
        return Err(format!("{} of float64 on CUDA: use torch's op, or convert to float32", op.name));
    }
    let Rng::Philox(rng) = rng else { return Err(format!("the seed of {} is not on the CPU", op.name)) };
    let formula = op.double(params).map_err(say)?;
    let arithmetic = arithmetic(op, params);
    let Aligned { sizes, mut items, operands, tensors } = call;
    let numbers =
        operands.iter().map(|operand| operand.map_or_else(|number| real(number, None).unwrap_or(0.0), |_| 0.0));
    let mut x: Vec<Column> = numbers.map(|number| [number; BLOCK]).collect();
    let mut y = vec![[0.0; BLOCK]; items.len() - tensors];
    let (mut given, mut made) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    let shape: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
    let draw = Draw { blocks: rng.blocks(), ..Draw::of(op.random, &shape) };
    let mut element = 0_u64;
    layout::each(1, &sizes, &mut items, &mut |sizes, items| {
        let count = sizes.first().map_or(1, |count| *count as usize);
        for start in (0..count).step_by(BLOCK) {
            let length = BLOCK.min(count - start);
            if let (Some(arithmetic), [y]) = (arithmetic, &mut y[..])
                && operands.len() <= MOST
            {
                // SAFETY: the caller's promise.
                unsafe { block(arithmetic, items, &operands, tensors, start, length, (&mut x, y)) };
                continue;
            }
            for (x, operand) in x.iter_mut().zip(&operands) {
                if let Ok(k) = operand {
                    // SAFETY: the caller's promise.
                    unsafe { load(&items[*k], start, &mut x[..length]) };
                }
            }
            for i in 0..length {
                given.iter_mut().zip(&x).for_each(|(given, x)| *given = x[i]);
                let at = if op.has_place() { At::of(&draw, element) } else { 0.into() };
                element += 1;
                formula(&given, at, &mut made);
                y.iter_mut().zip(&made).for_each(|(y, made)| y[i] = *made);
            }
            for (item, y) in items[tensors..].iter().zip(&y) {
                // SAFETY: the caller's promise.
                unsafe { store(item, start, &y[..length]) };
            }
        }
        Ok(())
    })
}

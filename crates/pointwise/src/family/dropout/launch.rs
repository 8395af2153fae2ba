//! A call of dropout: on the CPU, or as one launch, a copy or a fill.
//!
//! Its kernels compare the random words of two elements at a time with one threshold. A formula with a random word could do the
//! same, and takes 1.3 to 1.7 times as long (`docs/notebook/generators.md`).

use std::ptr::null_mut;

use pointwise_core::family::random::Dropout;
use pointwise_core::launch::NEIGHBOURS;
use pointwise_core::op::Words;
use pointwise_core::{DType, Philox, Word, philox};

use super::cpu::{Part, RandomFn, run_random};
use crate::cuda::{self, Context};
use crate::error::{ErrorKind, Result};
use crate::kernel::choice::Params;
use crate::kernel::{Class, Entry, Kernel, KernelPlan, OwnCall, OwnKernels, Strategy, check, convert, params};
use crate::tensor::{TensorView, byte_len};

/// Bytes of a vector.
const VECTOR: usize = 16;
/// CUDA's limit on the x dimension of a grid.
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// At most so many threads a block with vectors: more have not enough registers.
const MOST_THREADS: u32 = 512;

/// The loops and kernels of dropout, without a mask or with one.
#[derive(Debug)]
pub(super) struct Kernels {
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub(super) cpu: fn(DType) -> Option<RandomFn>,
    /// The kernels for elements of a type, by single elements and by vectors, with a mask or without; `None` where there are none.
    pub(super) entries: fn(DType, bool) -> Option<&'static [Entry; 2]>,
    pub(super) has_mask: bool,
}

/// The work of a call.
enum Mode {
    /// Everything is kept, unchanged.
    Keep,
    /// Nothing is kept.
    Drop,
    Draw(Words),
}

impl Mode {
    /// Returns the work for a probability, which is an f32 as a formula's parameter is: so a fused op with dropout in it drops the
    /// same elements.
    fn of(p: f32) -> Mode {
        match p {
            0.0 => Mode::Keep,
            1.0 => Mode::Drop,
            p => {
                let Dropout { last_kept, scale } = Dropout::<f32>::new(p);
                Mode::Draw([u64::from(last_kept), scale.to_word(), 0, 0])
            }
        }
    }
}

/// A grid of dropout's.
#[derive(Clone, Copy, Debug)]
struct Cover {
    vectors: bool,
    replaced: Option<&'static str>,
    threads: u32,
    blocks: u32,
    head: u32,
    n: u64,
}

/// The memory of a call.
#[derive(Clone, Copy)]
struct Memory<'a> {
    x: &'a TensorView<'a>,
    y: *mut u8,
    /// Null where no mask is asked for.
    mask: *mut u8,
}

/// Fails if a call of dropout on elements of a type launches no kernel.
pub(super) fn check_draws(kernel: &Kernel<'_>, dtype: DType) -> Result<()> {
    let info = &kernel.def.info;
    check::dtype(info, dtype)?;
    match Mode::of(probability(&params::words(info, &kernel.params, dtype)?)) {
        Mode::Draw(_) => Ok(()),
        Mode::Keep | Mode::Drop => Err(ErrorKind::Unsupported {
            what: format!("tuning {} that draws nothing", info.name),
            advice: "give a probability between 0 and 1, with training".to_owned(),
        }
        .into()),
    }
}

fn probability(words: &[u64]) -> f32 {
    words.first().map_or(0.0, |&word| f32::from_word(word))
}

impl OwnKernels for Kernels {
    unsafe fn run(&self, call: &OwnCall<'_>) -> Result<()> {
        let ([Some(x)], [y, ..]) = (call.operands, call.pointers) else { return Ok(()) };
        let mode = Mode::of(probability(call.words));
        let x = match call.results {
            [Some(result), ..] if !x.is_contiguous() => {
                // The elements are not read if none is kept.
                if !matches!(mode, Mode::Drop) {
                    // The result, which is contiguous, is apart from it then.
                    // SAFETY: the caller's contract.
                    unsafe { copy(call, x, result, *y)? };
                }
                *result
            }
            _ => *x,
        };
        let mask = if self.has_mask { call.pointers[1] } else { null_mut() };
        let (n, memory) = (x.numel(), Memory { x: &x, y: *y, mask });
        if n == 0 {
            return Ok(());
        }
        let Some(context) = x.device().context() else {
            // SAFETY: the caller's contract; `x` is contiguous, as the results are.
            return unsafe { self.on_cpu(call, &mode, memory) };
        };
        if let Mode::Draw(words) = mode {
            // SAFETY: as above.
            return unsafe { self.launch(call, context, memory, words) };
        }
        let Kernel { settings, rng, .. } = call.kernel;
        let held = settings.hold(context, [&x].into_iter().chain(rng.view()), call.results.iter().flatten())?;
        let (to, bytes) = (y.addr() as u64, byte_len(x.dtype(), x.shape())?);
        // SAFETY: the caller's contract; the copy is one of disjoint memory.
        unsafe {
            match mode {
                Mode::Keep if to != x.device_ptr() => cuda::copy_within(&held, to, x.device_ptr(), bytes)?,
                Mode::Drop => cuda::fill(&held, to, 0, bytes)?,
                _ => {}
            }
            if !mask.is_null() {
                cuda::fill(&held, mask.addr() as u64, u8::from(matches!(mode, Mode::Keep)), n)?;
            }
        }
        Ok(())
    }

    fn plan(&self, call: &OwnCall<'_>) -> Result<KernelPlan> {
        let address = |k: usize| call.results.get(k).copied().flatten().map(|view| view.address());
        let info = &call.kernel.def.info;
        let [Some(x)] = call.operands else { return Err(check::wrong_count(info, "operands", info.operands, 0)) };
        // Elements in another order are copied to the result first.
        let x = call.results[0].as_ref().filter(|_| !x.is_contiguous()).unwrap_or(x);
        let cover = cover(call.kernel, x, address(0).unwrap_or(0), address(1).filter(|_| self.has_mask))?;
        Ok(KernelPlan {
            class: if cover.vectors { Class::Flat } else { Class::Strided },
            row: None,
            strategy: if cover.vectors { Strategy::RegisterCopy } else { Strategy::ExplicitParallel },
            replaced: cover.replaced,
            dims: 1,
            threads: cover.threads,
            lanes: if cover.vectors { VECTOR / call.dtype.size() } else { 1 },
            group: if cover.vectors { 1 } else { NEIGHBOURS },
            head: cover.head,
            launches: usize::from(cover.n > 0),
            n: cover.n,
        })
    }

    fn entries(&self, dtype: DType) -> Option<&'static [Entry; 2]> {
        (self.entries)(dtype, self.has_mask)
    }

    /// The mask is, whose elements are bytes.
    fn is_apart(&self, k: usize) -> bool {
        k > 0
    }
}

impl Kernels {
    /// # Safety
    /// The tensors are contiguous, and valid for the elements of `x`, those of the results for writing; `y` is equal to or disjoint
    /// from `x`, the mask disjoint from both.
    unsafe fn on_cpu(&self, call: &OwnCall<'_>, mode: &Mode, memory: Memory<'_>) -> Result<()> {
        let Memory { x, y, mask } = memory;
        let (n, dtype) = (x.numel(), x.dtype());
        let bytes = byte_len(dtype, x.shape())?;
        // SAFETY: the caller's contract; equal or disjoint memory is what `copy` may have, too.
        unsafe {
            match mode {
                Mode::Draw(words) => {
                    let none = || check::no_kernel(&call.kernel.def.info, x.dtype());
                    let run = (self.cpu)(x.dtype()).ok_or_else(none)?;
                    let philox: Philox = call.kernel.rng.on_cpu()?;
                    run_random(run, Part { x: x.as_ptr(), y, mask, start: 0, n, philox, words: *words }, dtype);
                    return Ok(());
                }
                Mode::Keep => y.copy_from(x.as_ptr(), bytes),
                Mode::Drop => y.write_bytes(0, bytes),
            }
            if !mask.is_null() {
                mask.write_bytes(u8::from(matches!(mode, Mode::Keep)), n);
            }
        }
        Ok(())
    }

    /// # Safety
    /// The contract of [`OwnKernels::run`]; `x` is contiguous.
    unsafe fn launch(
        &self,
        call: &OwnCall<'_>,
        context: &'static Context,
        memory: Memory<'_>,
        words: Words,
    ) -> Result<()> {
        let Memory { x, y, mask } = memory;
        let Kernel { def, settings, rng, .. } = call.kernel;
        let cover = cover(call.kernel, x, y.addr(), self.has_mask.then(|| mask.addr()))?;
        let entries = self.entries(x.dtype()).ok_or_else(|| check::no_kernel(&def.info, x.dtype()))?;
        let function = entries[usize::from(cover.vectors)].function(context)?;
        let addresses = [x.device_ptr(), y.addr() as u64, mask.addr() as u64];
        // SAFETY: the caller's contract.
        let blocks = unsafe { rng.blocks() };
        let mut params = Params::default();
        addresses.iter().for_each(|address| params.push(address));
        params.push(&cover.n);
        params.push(&cover.head);
        params.push(&blocks);
        words[..2].iter().for_each(|word| params.push(word));
        let held = settings.hold(context, [x].into_iter().chain(rng.view()), call.results.iter().flatten())?;
        // SAFETY: the parameters are those of every entry of dropout; cover and caller vouch for the memory.
        unsafe { cuda::launch(function, cover.blocks, cover.threads, &held, params.pointers(None)) }
    }
}

/// Copies the elements of `x` to `y`, whose first one is at `target`.
///
/// # Safety
/// `y` has the type, shape and device of `x`, and shares no memory with it; it may be written through `target`.
unsafe fn copy(call: &OwnCall<'_>, x: &TensorView<'_>, y: &TensorView<'_>, target: *mut u8) -> Result<()> {
    let kernel = call.kernel.of(convert::to(x.dtype()));
    let Some(own) = kernel.def.own() else { return Ok(()) };
    let (operands, results, pointers) = ([Some(*x)], [Some(*y)], [target]);
    let call = OwnCall { kernel: &kernel, operands: &operands, results: &results, pointers: &pointers, ..*call };
    // SAFETY: the caller's contract.
    unsafe { own.run(&call) }
}

/// The kernel for an operand, and a result and a mask at these addresses.
fn cover(kernel: &Kernel<'_>, x: &TensorView<'_>, y: usize, mask: Option<usize>) -> Result<Cover> {
    let n = x.numel() as u64;
    let lanes = philox::elements(VECTOR / x.dtype().size());
    let head = head(x, (y, mask), lanes);
    let (mut strategy, mut threads) = (kernel.settings.strategy, kernel.settings.threads);
    let lies = if head.is_ok() { Class::Flat } else { Class::Strided };
    if let (Strategy::Auto, Some(tuned), None) = (strategy, &kernel.tuned, mask)
        && let Some(choice) = tuned.find(x.device(), x.dtype(), lies, n)
    {
        (strategy, threads) = choice;
    }
    let (vectors, replaced) = match (strategy, head) {
        (Strategy::ExplicitParallel, _) => (false, None),
        (Strategy::Direct, _) => (false, Some("four elements share their random bits")),
        (_, Err(why)) => (false, Some(why)),
        (Strategy::Table, Ok(_)) => (true, Some("a random op has no table")),
        (_, Ok(_)) => (true, None),
    };
    let (head, each) = match head {
        Ok(head) if vectors => (head.min(n), lanes as u64),
        _ => (0, NEIGHBOURS as u64),
    };
    let (threads, work) =
        if vectors { (threads.min(MOST_THREADS), (n - head) / each) } else { (threads, n.div_ceil(each)) };
    let strategy = if vectors { Strategy::RegisterCopy } else { Strategy::ExplicitParallel };
    Ok(Cover {
        vectors,
        replaced: replaced.filter(|_| kernel.settings.strategy != Strategy::Auto),
        threads,
        // The first block takes head and rest, also where there is no vector.
        blocks: grid(work.div_ceil(u64::from(threads)).max(1), n, strategy, threads)?,
        head: head as u32,
        n,
    })
}

/// The number of elements before one that is aligned for vectors in the operand, the result and the mask, of which a
/// thread has `lanes` elements.
///
/// # Errors
/// Why there is none.
fn head(x: &TensorView<'_>, (y, mask): (usize, Option<usize>), lanes: usize) -> Result<u64, &'static str> {
    let dtype = x.dtype();
    // Addresses are multiples of their element's size, so there is one candidate below the vector's length.
    let head = (VECTOR - x.address() % VECTOR) % VECTOR / dtype.size();
    if !(y + dtype.offset(head as i64) as usize).is_multiple_of(VECTOR) {
        return Err("no element is 16-byte aligned in both tensors");
    }
    if mask.is_some_and(|mask| !(mask + head.min(x.numel())).is_multiple_of(lanes)) {
        return Err("the mask is not aligned as the operand is");
    }
    // The index of a thread has 32 bits.
    if x.numel() as u64 / lanes as u64 >= u64::from(u32::MAX - MOST_THREADS) {
        return Err("2^32 vectors and more take 64-bit indices");
    }
    Ok(head as u64)
}

/// The blocks of a grid for `n` elements.
///
/// # Errors
/// More than a grid can have.
fn grid(blocks: u64, n: u64, strategy: Strategy, threads: u32) -> Result<u32> {
    if blocks > MAX_BLOCKS {
        return Err(ErrorKind::Unsupported {
            what: format!("{n} elements with strategy {strategy} and {threads} threads a block"),
            advice: "a grid has at most 2^31 - 1 blocks: take another strategy, more threads, or views of a part each"
                .to_owned(),
        }
        .into());
    }
    Ok(blocks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_fewer_blocks_than_2_to_31() {
        let blocks = |blocks| grid(blocks, 1, Strategy::RegisterCopy, 256);
        assert_eq!(blocks(MAX_BLOCKS).unwrap(), (1 << 31) - 1);
        assert!(blocks(MAX_BLOCKS + 1).is_err());
    }
}

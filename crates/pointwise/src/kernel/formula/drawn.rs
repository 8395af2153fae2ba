//! Dropout: its loops and kernels, and a call of checked tensors on the CPU, or as one launch, a copy or a fill.
//!
//! Its kernels compare the random words of two elements at a time with one threshold. A formula with a random word could do the
//! same, and takes 1.4 to 1.9 times as long (`docs/notebook/generators.md`).

use std::ffi::c_void;
use std::ptr::null_mut;

use pointwise_core::family::random::Dropout;
use pointwise_core::launch::NEIGHBOURS;
use pointwise_core::op::Words;
use pointwise_core::{DType, Philox, Word, philox};

use super::Kernel;
use super::call::{CheckedOperands, Results};
use crate::cpu::{self, RandomFn};
use crate::cuda::{self, Context};
use crate::error::{ErrorKind, Result};
use crate::kernel::grid::grid;
use crate::kernel::{Class, Entry, KernelPlan, Strategy, check, promote};
use crate::tensor::{Tensor, TensorView};

/// Bytes of a vector.
const VECTOR: usize = 16;
/// At most so many threads a block with vectors: more have not enough registers.
const MOST_THREADS: u32 = 512;

/// The loops and kernels of dropout, without and with a mask.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub(crate) cpu: fn(DType) -> Option<RandomFn>,
    /// The kernels for elements of a type, by single elements and by vectors, with a mask or without; `None` where there are none.
    pub(crate) entries: fn(DType, bool) -> Option<&'static [Entry; 2]>,
}

impl Drawn {
    /// The kernel for elements of a type.
    pub(super) fn entry(&self, dtype: DType, has_mask: bool, vectors: bool) -> Option<&'static Entry> {
        (self.entries)(dtype, has_mask).map(|entries| &entries[usize::from(vectors)])
    }
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

impl Kernel<'_> {
    /// Fails if a call of dropout on elements of a type launches no kernel.
    pub(crate) fn check_draws(&self, dtype: DType) -> Result<()> {
        let info = &self.def.info;
        check::dtype(info, dtype)?;
        match Mode::of(self.probability(&crate::kernel::params::words(info, &self.params, dtype)?)) {
            Mode::Draw(_) => Ok(()),
            Mode::Keep | Mode::Drop => Err(ErrorKind::Unsupported {
                what: format!("tuning {} that draws nothing", info.name),
                advice: "give a probability between 0 and 1, with training".to_owned(),
            }
            .into()),
        }
    }

    fn probability(&self, words: &[u64]) -> f32 {
        words.first().map_or(0.0, |&word| f32::from_word(word))
    }

    /// Runs dropout.
    ///
    /// # Safety
    /// The contract of [`Kernel::write`]; operands, results, settings and the place to draw from are checked.
    pub(super) unsafe fn write_drawn<const N: usize, const T: usize>(
        &self,
        drawn: &Drawn,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let (Some(x), y) = (ready.views[0], targets.pointers[0]) else { return Ok(()) };
        let mut copy = None;
        let x = self.in_order(x, &mut copy)?;
        let mask = if self.def.info.results.len() > 1 { targets.pointers[1] } else { null_mut() };
        let (n, memory) = (x.numel(), Memory { x: &x, y, mask });
        if n == 0 {
            return Ok(());
        }
        let mode = Mode::of(self.probability(&ready.words));
        let Some(context) = x.device().context() else {
            // SAFETY: the caller's contract; `x` is contiguous, as the results are.
            return unsafe { self.on_cpu(drawn, &mode, memory, self.rng.on_cpu()?) };
        };
        if let Mode::Draw(words) = mode {
            // SAFETY: as above.
            return unsafe { self.launch_drawn(drawn, context, memory, targets, words) };
        }
        let views = || targets.views.iter().flatten();
        let held = self.settings.hold(context, [&x].into_iter().chain(self.rng.view()), views())?;
        let (to, bytes) = (y.addr() as u64, n * x.dtype().size());
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

    /// Returns `x`, or its elements one after another in `copy`, which a call that is captured cannot make.
    fn in_order<'a>(&self, x: TensorView<'a>, copy: &'a mut Option<Tensor>) -> Result<TensorView<'a>> {
        if x.is_contiguous() {
            return Ok(x);
        }
        promote::refuse_captured(self.stream(), || {
            let what = format!("{} of x that is not contiguous, in a call that is captured", self.def.info.name);
            (what, "copy x with to_tensor() before the capture")
        })?;
        Ok(copy.insert(promote::convert(&x, x.dtype(), self.stream())?).view())
    }

    /// # Safety
    /// The tensors are contiguous, and valid for the elements of `x`, those of the results for writing; `y` is equal to or disjoint
    /// from `x`, the mask disjoint from both.
    unsafe fn on_cpu(&self, drawn: &Drawn, mode: &Mode, memory: Memory<'_>, rng: Philox) -> Result<()> {
        let Memory { x, y, mask } = memory;
        let (n, size) = (x.numel(), x.dtype().size());
        // SAFETY: the caller's contract; equal or disjoint memory is what `copy` may have, too.
        unsafe {
            match mode {
                Mode::Draw(words) => {
                    let run = (drawn.cpu)(x.dtype()).ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?;
                    cpu::run_random(run, (x.as_ptr(), y, mask), n, size, rng, *words);
                    return Ok(());
                }
                Mode::Keep => y.copy_from(x.as_ptr(), n * size),
                Mode::Drop => y.write_bytes(0, n * size),
            }
            if !mask.is_null() {
                mask.write_bytes(u8::from(matches!(mode, Mode::Keep)), n);
            }
        }
        Ok(())
    }

    /// # Safety
    /// The contract of [`Kernel::write_drawn`]; `x` is contiguous.
    unsafe fn launch_drawn<const T: usize>(
        &self,
        drawn: &Drawn,
        context: &'static Context,
        memory: Memory<'_>,
        targets: &Results<'_, T>,
        words: Words,
    ) -> Result<()> {
        let Memory { x, y, mask } = memory;
        let has_mask = !mask.is_null();
        let cover = self.cover_drawn(x, y.addr(), has_mask.then(|| mask.addr()))?;
        let entry = drawn.entry(x.dtype(), has_mask, cover.vectors);
        let function = entry.ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?.function(context)?;
        let (mut source, mut target, mut flags) = (x.device_ptr(), y.addr() as u64, mask.addr() as u64);
        let (mut n, mut head) = (cover.n, cover.head);
        // SAFETY: the caller's contract.
        let mut blocks = unsafe { self.rng.blocks() };
        let [mut p0, mut p1, ..] = words;
        let mut params: [*mut c_void; 8] = [
            (&raw mut source).cast(),
            (&raw mut target).cast(),
            (&raw mut flags).cast(),
            (&raw mut n).cast(),
            (&raw mut head).cast(),
            (&raw mut blocks).cast(),
            (&raw mut p0).cast(),
            (&raw mut p1).cast(),
        ];
        let held =
            self.settings.hold(context, [x].into_iter().chain(self.rng.view()), targets.views.iter().flatten())?;
        // SAFETY: the parameters are those of every entry of dropout; cover and caller vouch for the memory.
        unsafe { cuda::launch(function, cover.blocks, cover.threads, &held, &mut params) }
    }

    /// The launch of a call that draws, for results at these addresses.
    pub(super) fn plan_drawn<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<KernelPlan> {
        let address = |k: usize| targets.views.get(k).copied().flatten().map(|view| view.address());
        let has_mask = self.def.info.results.len() > 1;
        let info = &self.def.info;
        let x = ready.views[0].ok_or_else(|| check::wrong_count(info, "operands", info.operands, 0))?;
        let cover = self.cover_drawn(&x, address(0).unwrap_or(0), address(1).filter(|_| has_mask))?;
        Ok(KernelPlan {
            class: if cover.vectors { Class::Flat } else { Class::Strided },
            row: None,
            strategy: if cover.vectors { Strategy::RegisterCopy } else { Strategy::ExplicitParallel },
            replaced: cover.replaced,
            dims: 1,
            threads: cover.threads,
            lanes: if cover.vectors { VECTOR / ready.dtype.size() } else { 1 },
            group: if cover.vectors { 1 } else { NEIGHBOURS },
            head: cover.head,
            launches: usize::from(cover.n > 0),
            n: cover.n,
        })
    }

    /// The kernel for an operand, and a result and a mask at these addresses.
    fn cover_drawn(&self, x: &TensorView<'_>, y: usize, mask: Option<usize>) -> Result<Cover> {
        let n = x.numel() as u64;
        let lanes = philox::elements(VECTOR / x.dtype().size());
        let head = head(x, (y, mask), lanes);
        let (mut strategy, mut threads) = (self.settings.strategy, self.settings.threads);
        let lies = if head.is_ok() { Class::Flat } else { Class::Strided };
        if let (Strategy::Auto, Some(tuned), None) = (strategy, &self.tuned, mask)
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
            replaced: replaced.filter(|_| self.settings.strategy != Strategy::Auto),
            threads,
            // The first block takes head and rest, also where there is no vector.
            blocks: grid(work.div_ceil(u64::from(threads)).max(1), n, strategy, threads)?,
            head: head as u32,
            n,
        })
    }
}

/// The number of elements before one that is aligned for vectors in the operand, the result and the mask, of which a
/// thread has `lanes` elements.
///
/// # Errors
/// Why there is none.
fn head(x: &TensorView<'_>, (y, mask): (usize, Option<usize>), lanes: usize) -> Result<u64, &'static str> {
    let size = x.dtype().size();
    // Addresses are multiples of their element's size, so there is one candidate below the vector's length.
    let head = (VECTOR - x.address() % VECTOR) % VECTOR / size;
    if !(y + head * size).is_multiple_of(VECTOR) {
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

//! A call of dropout, whose tensors are checked: on the CPU, or as one launch, a copy or a fill.

use std::ffi::c_void;
use std::ptr::null_mut;

use pointwise_core::Philox;
use pointwise_core::op::Words;

use super::{DropoutKernel, Mode};
use crate::cpu;
use crate::cuda::{self, Context, Held};
use crate::error::Result;
use crate::kernel::{Rng, check};
use crate::tensor::TensorView;

impl DropoutKernel {
    /// # Safety
    /// `x` is contiguous, `y` and `mask` are valid for writing as many elements, of its type and of bool, on the same
    /// device; `y` is equal to or disjoint from `x`, `mask` disjoint from both.
    pub(super) unsafe fn execute(
        &self,
        mode: &Mode,
        x: &TensorView<'_>,
        (y, result): (*mut u8, &TensorView<'_>),
        mask: Option<(*mut u8, TensorView<'_>)>,
        rng: &Rng<'_>,
    ) -> Result<()> {
        self.settings.check(x.device())?;
        let results = [result].into_iter().chain(mask.as_ref().map(|(_, mask)| mask));
        rng.check(self.def.info.name, x.device(), results.clone())?;
        let n = x.numel();
        if n == 0 {
            return Ok(());
        }
        let mask_pointer = mask.as_ref().map_or(null_mut(), |(pointer, _)| *pointer);
        let Some(context) = x.device().context() else {
            // SAFETY: the caller's contract.
            return unsafe { self.on_cpu(mode, x, y, mask_pointer, rng.on_cpu()?) };
        };
        let hold = || self.settings.hold(context, [x].into_iter().chain(rng.view()), results);
        let (to, flags) = (y.addr() as u64, mask_pointer.addr() as u64);
        let bytes = n * x.dtype().size();
        if let Mode::Draw(words) = mode {
            // SAFETY: the caller's contract.
            return unsafe { self.launch(context, x, y, mask_pointer, hold, rng, words) };
        }
        let held = hold()?;
        // SAFETY: the caller's contract; the copy is one of disjoint memory.
        unsafe {
            match mode {
                Mode::Keep if to != x.device_ptr() => cuda::copy_within(&held, to, x.device_ptr(), bytes)?,
                Mode::Drop => cuda::fill(&held, to, 0, bytes)?,
                _ => {}
            }
            if mask.is_some() {
                cuda::fill(&held, flags, u8::from(matches!(mode, Mode::Keep)), n)?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`DropoutKernel::execute`]; `mask` may be null.
    unsafe fn on_cpu(&self, mode: &Mode, x: &TensorView<'_>, y: *mut u8, mask: *mut u8, rng: Philox) -> Result<()> {
        let (n, size) = (x.numel(), x.dtype().size());
        // SAFETY: the caller's contract; equal or disjoint memory is what `copy` may have, too.
        unsafe {
            match mode {
                Mode::Draw(words) => {
                    let run = (self.def.cpu)(x.dtype()).ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?;
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
    /// As [`DropoutKernel::execute`]; `hold` takes the stream of the call, `mask` may be null. The tensor to draw from, if
    /// it is one, is checked.
    #[allow(clippy::too_many_arguments)]
    unsafe fn launch<'s>(
        &'s self,
        context: &'static Context,
        x: &TensorView<'_>,
        y: *mut u8,
        mask: *mut u8,
        hold: impl FnOnce() -> Result<Held<'s>>,
        rng: &Rng<'_>,
        words: &Words,
    ) -> Result<()> {
        let mask = (!mask.is_null()).then_some(mask);
        let plan = self.plan_for(x, y.addr(), mask.map(|mask| mask.addr()))?;
        let entry = (self.def.entry)(x.dtype(), plan.variant, mask.is_some())
            .ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?;
        let function = entry.function(context)?;
        let (mut source, mut target) = (x.device_ptr(), y.addr() as u64);
        let mut flags = mask.map_or(0, |mask| mask.addr() as u64);
        let (mut n, mut head) = (plan.n, plan.head);
        // SAFETY: the caller's contract.
        let mut blocks = unsafe { rng.blocks() };
        let [mut p0, mut p1, ..] = *words;
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
        // SAFETY: the parameters are those of every random entry; plan and caller vouch for the memory.
        unsafe { cuda::launch(function, plan.blocks, plan.threads, &hold()?, &mut params) }
    }
}

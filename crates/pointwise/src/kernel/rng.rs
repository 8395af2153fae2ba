//! The place that a call of a random op draws from.

use pointwise_core::{Blocks, DType, Philox};

use super::check;
use crate::Device;
use crate::error::{ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, overlap};

/// The place that a random op draws from: seed and offset, in the call or in memory.
///
/// A tensor of shape (2) and type i64, contiguous and on the call's device, holds the bits of [`Philox::seed`] and of
/// [`Philox::offset`]. The kernel reads them when it runs. So a CUDA graph draws other words at each launch, if the
/// tensor is written in between; with a [`Philox`], a graph repeats the words of its capture.
///
/// ```
/// use pointwise::{Device, Philox, Tensor, ops};
///
/// let cpu = Device::cpu();
/// let x = Tensor::full(&cpu, 1.0_f32, [100])?;
/// let place = Tensor::from_slice(&cpu, &[42_i64, 7], [2])?;
/// let y = ops::dropout(&x, 0.5, &place)?;
/// assert_eq!(y.to_vec::<f32>()?, ops::dropout(&x, 0.5, Philox::new(42).at(7))?.to_vec::<f32>()?);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Rng<'a> {
    /// Comes with the call.
    Philox(Philox),
    /// Layout in memory.
    Memory(TensorView<'a>),
}

impl From<Philox> for Rng<'_> {
    fn from(place: Philox) -> Self {
        Rng::Philox(place)
    }
}

impl<'a> From<&'a Tensor> for Rng<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Rng::Memory(tensor.view())
    }
}

impl<'a> From<TensorView<'a>> for Rng<'a> {
    fn from(view: TensorView<'a>) -> Self {
        Rng::Memory(view)
    }
}

impl<'a> From<&'a TensorView<'_>> for Rng<'a> {
    fn from(view: &'a TensorView<'_>) -> Self {
        Rng::Memory(view.into())
    }
}

impl Default for Rng<'_> {
    fn default() -> Self {
        Rng::Philox(Philox::default())
    }
}

impl<'a> Rng<'a> {
    /// The tensor, if it is one.
    pub(crate) fn view(&self) -> Option<&TensorView<'a>> {
        match self {
            Rng::Philox(_) => None,
            Rng::Memory(view) => Some(view),
        }
    }

    /// Checks the tensor for a call of `op` on `device`, whose results are written meanwhile.
    ///
    /// # Errors
    /// Another element type, shape or device; strides; memory that a result shares.
    pub(crate) fn check<'r, 'v: 'r>(
        &self,
        op: &str,
        device: &Device,
        results: impl IntoIterator<Item = &'r TensorView<'v>>,
    ) -> Result<()> {
        let Some(view) = self.view() else { return Ok(()) };
        let what = || format!("the seed and offset of {op}");
        if view.dtype() != DType::I64 {
            return Err(ErrorKind::DType { op: what(), got: view.dtype(), allowed: vec![DType::I64] }.into());
        }
        check::output(what, view, (DType::I64, DType::I64), &Shape::new(&[2])?, device)?;
        view.layout().require_contiguous("the tensor of a seed and an offset")?;
        if results.into_iter().any(|result| overlap(view, result) != Overlap::None) {
            return Err(ErrorKind::Overlap { what: format!("{} and an output", what()) }.into());
        }
        Ok(())
    }

    /// Seed and offset of a call on the CPU, whose tensor is checked.
    ///
    /// # Errors
    /// A tensor that is not checked.
    pub(crate) fn on_cpu(&self) -> Result<Philox> {
        match self {
            Rng::Philox(place) => Ok(*place),
            Rng::Memory(view) => {
                let words = view.as_slice::<i64>()?;
                let [seed, offset] = [0, 1].map(|k| words.get(k).map_or(0, |word| word.cast_unsigned()));
                Ok(Philox { seed, offset })
            }
        }
    }

    /// Returns the place as kernels take it.
    ///
    /// # Safety
    /// A tensor is checked, on the kernels' device, and used on their stream.
    pub(crate) unsafe fn blocks(&self) -> Blocks {
        match self {
            Rng::Philox(place) => place.blocks(),
            // SAFETY: two elements of 64 bits are there, as the caller says; they are aligned, as those of all views.
            Rng::Memory(view) => unsafe { Blocks::in_memory(view.device_ptr()) },
        }
    }
}

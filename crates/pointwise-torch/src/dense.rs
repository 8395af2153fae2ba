//! Copies of operands whose rows are not contiguous, in memory of torch's allocator.
//!
//! pointwise copies such operands itself, to memory of its own. A call that is captured cannot allocate that, but torch can.

use pointwise::{Device, Stream, kernels};

use crate::abi::{Api, Element};
use crate::layout::{self, Item};
use crate::operand::Known;
use crate::registry::OpSpec;
use crate::tensor::{Raw, Tensor, overlap};
use crate::view::{RANK, say, view, view_mut};

/// The copies of a call's operands.
pub(crate) struct Copies(Vec<Option<Tensor>>);

impl Copies {
    /// Copies the operands that an op on rows does not take as they lie. Returns none if it takes all.
    ///
    /// # Errors
    /// Out of memory; errors of a launch.
    ///
    /// # Safety
    /// All tensors are alive, and nobody writes to them meanwhile but in the order of `stream`.
    pub(crate) unsafe fn new(
        api: &Api,
        op: &OpSpec,
        known: &[Known<'_>],
        results: &[Raw<'_>],
        device: &Device,
        stream: Option<&Stream>,
    ) -> Result<Option<Copies>, String> {
        if !op.of_rows || !known.iter().any(|known| turned(known).is_some()) {
            return Ok(None);
        }
        let mut copies = Vec::with_capacity(known.len());
        for known in known {
            // pointwise judges operands that share memory with results.
            let raw = turned(known).filter(|raw| !results.iter().any(|result| overlap(raw, result)));
            // SAFETY: the caller's promise.
            copies.push(raw.map(|raw| unsafe { copy(api, raw, device, stream) }).transpose()?);
        }
        Ok(Some(Copies(copies)))
    }

    /// Returns the operands with copies in the place of those that were copied.
    ///
    /// # Errors
    /// Errors of torch.
    pub(crate) fn operands<'a>(&'a self, api: &Api, known: &[Known<'a>]) -> Result<Vec<Known<'a>>, String> {
        let each = self.0.iter().zip(known);
        each.map(|(copy, known)| copy.as_ref().map_or(Ok(*known), |copy| copy.raw(api).map(Known::Tensor))).collect()
    }
}

/// Returns the memory of an operand in which the elements of a row do not lie one after another. (f64 has no kernels that care.)
fn turned<'a, 'b>(known: &'a Known<'b>) -> Option<&'a Raw<'b>> {
    match known {
        Known::Tensor(raw) if raw.element != Element::F64 => {
            let is_dense = match (raw.sizes.last(), raw.strides.last()) {
                (Some(size), Some(stride)) => *size == 1 || matches!(stride, 0 | 1),
                _ => true,
            };
            Some(raw).filter(|_| !is_dense)
        }
        _ => None,
    }
}

/// Copies a tensor of any number of dimensions to a contiguous one.
///
/// # Safety
/// The tensor is alive, and nobody writes to it meanwhile but in the order of `stream`.
unsafe fn copy(api: &Api, raw: &Raw<'_>, device: &Device, stream: Option<&Stream>) -> Result<Tensor, String> {
    let strides = layout::contiguous(raw.sizes);
    let copy = Tensor::empty(api, raw.sizes, &strides, raw.element, raw.place)?;
    let item = |data, strides: &[i64]| Item { data, element: raw.element, strides: strides.to_vec() };
    let (mut sizes, mut items) = (raw.sizes.to_vec(), [item(raw.data, raw.strides), item(copy.data(api)?, &strides)]);
    layout::merge(&mut sizes, &mut items);
    let kernel = kernels::to_dtype();
    let kernel = stream.map_or_else(|| kernel.clone(), |stream| kernel.clone().on(stream));
    layout::each(RANK, &sizes, &mut items, &mut |sizes, items| {
        let [from, to] = items else { return Ok(()) };
        // SAFETY: the caller's promise; the items are parts of the tensor.
        let from = unsafe { view(device, from.data, from.element, sizes, &from.strides) }?;
        // SAFETY: parts of a new tensor, which torch's allocator gives to later work of this stream alone once it is dropped.
        let to = unsafe { view_mut(device, to.data, to.element, sizes, &to.strides) }?;
        kernel.run_into(from, to).map_err(say)
    })?;
    Ok(copy)
}

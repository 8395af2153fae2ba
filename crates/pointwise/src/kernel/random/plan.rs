//! From the tensors of a call of dropout to the kernel and its grid.

use pointwise_core::launch::NEIGHBOURS;
use pointwise_core::philox;

use super::DropoutKernel;
use crate::error::Result;
use crate::kernel::grid::grid;
use crate::kernel::{Plan, Strategy, Variant};
use crate::tensor::TensorView;
use crate::tuner::Layout;

/// Bytes of a vector.
const VECTOR: usize = 16;
/// At most so many threads a block with vectors: more have not enough registers.
const MOST_THREADS: u32 = 512;

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

impl DropoutKernel {
    /// The kernel for an operand, and a result and a mask at these addresses.
    pub(super) fn plan_for(&self, x: &TensorView<'_>, y: usize, mask: Option<usize>) -> Result<Plan> {
        let n = x.numel() as u64;
        let lanes = philox::elements(VECTOR / x.dtype().size());
        let head = head(x, (y, mask), lanes);
        let (mut strategy, mut threads) = (self.settings.strategy, self.settings.threads);
        if let (Strategy::Auto, Some(tuned), None) = (strategy, &self.tuned, mask)
            && let Some(choice) = tuned.find(x.device(), x.dtype(), Layout::aligned(head.is_ok()), n)
        {
            (strategy, threads) = choice;
        }
        let (variant, replaced) = match (strategy, head) {
            (Strategy::ExplicitParallel, _) => (Variant::ExplicitParallel, None),
            (Strategy::Direct, _) => (Variant::ExplicitParallel, Some("four elements share their random bits")),
            (_, Err(why)) => (Variant::ExplicitParallel, Some(why)),
            (Strategy::Table, Ok(_)) => (Variant::RegisterCopy, Some("a random op has no table")),
            (_, Ok(_)) => (Variant::RegisterCopy, None),
        };
        let (head, each) = match (variant, head) {
            (Variant::RegisterCopy, Ok(head)) => (head.min(n), lanes as u64),
            _ => (0, NEIGHBOURS as u64),
        };
        let is_vector = variant == Variant::RegisterCopy;
        let (threads, work) =
            if is_vector { (threads.min(MOST_THREADS), (n - head) / each) } else { (threads, n.div_ceil(each)) };
        Ok(Plan {
            strategy: variant.strategy(),
            replaced: replaced.filter(|_| self.settings.strategy != Strategy::Auto),
            variant,
            threads,
            // The first block takes head and rest, also where there is no vector.
            blocks: grid(work.div_ceil(u64::from(threads)).max(1), n, variant.strategy(), threads)?,
            head: head as u32,
            vectors_per_thread: if is_vector { (lanes * x.dtype().size() / VECTOR) as u32 } else { 1 },
            n,
        })
    }
}

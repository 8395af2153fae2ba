//! From addresses, types and a wish to a [`Plan`].

use pointwise_core::launch::{GROUP, MAX_ITEMS, TABLE_THREADS, TABLE_VECTORS};
use pointwise_core::{DType, Properties, ResultType};

use super::strategy::{Plan, Strategy, Variant};
use crate::error::{ErrorKind, Result};

/// Bytes of a vector.
const VECTOR: usize = 16;
/// CUDA's limit on the x dimension of a grid.
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// The most vectors of a thread.
pub(crate) const MAX_STEPS: u32 = 64;
/// From this many vectors on a thread takes two where the result is narrower than the operand, or the formula of middle
/// length, and four where it is long in f32. Else one is the fastest: more threads wait for memory at the same time
/// (H200).
const SEVERAL_MIN: u64 = 1 << 23;
/// From this many on, where the result's vector is a quarter of the operand's, and the operand does not pass through
/// the cache.
const TWO_NARROW_MIN: u64 = 1 << 16;
/// From this many on two of f32 where the formula is long, but for sines and cosines: a thread waits for memory while it
/// computes.
const TWO_LONG_MIN: u64 = 1 << 19;
/// As [`TWO_LONG_MIN`], of 16 bits; of sines and cosines from [`TWO_ANGLE_HALF_MIN`] on.
const TWO_LONG_HALF_MIN: u64 = 1 << 21;
const TWO_ANGLE_HALF_MIN: u64 = 1 << 22;
/// Threads that are resident on a multiprocessor of sm_80, sm_90 or sm_100, of kernels with at most 32 registers.
pub(super) const RESIDENT: u64 = 2048;
/// Fewer elements than this do not pay for a table in each block.
const TABLE_MIN: u64 = 1 << 14;

/// A unary call, as far as it decides the plan.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) dtype: DType,
    pub(super) result: ResultType,
    pub(super) n: u64,
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    /// Vectors of a thread of `register_copy`, from 1 to [`MAX_STEPS`]; `None` leaves it open.
    pub(super) vectors: Option<u32>,
    /// What the op's row says of its formula.
    pub(super) properties: Properties,
    /// Bytes, as [`super::cache_room`] has it.
    pub(super) room: u64,
}

/// A strategy that can serve the call, and its grid; of single elements, a thread of which has a group, the blocks of the
/// first launch.
///
/// # Errors
/// More elements than a grid can have threads for.
pub(super) fn plan(call: &Call) -> Result<Plan> {
    let wished = match call.strategy {
        Strategy::Auto => automatic(call),
        strategy => strategy,
    };
    let head = aligned_head(call);
    let (variant, replaced) = match wished {
        Strategy::Direct => (Variant::Strided, None),
        _ if head.is_none() => (Variant::Strided, Some("no element is 16-byte aligned in both tensors")),
        Strategy::Table if has_table(call.dtype, call.result) => (Variant::Table, None),
        // Its index counts vectors and single elements in 32 bits, of the first vector behind a thread's last one, too.
        _ if call.n / lanes(call.dtype) as u64 >= u64::from(u32::MAX - MAX_STEPS * 1024) => {
            (Variant::Strided, Some("2^32 vectors and more take several launches"))
        }
        Strategy::Table => (Variant::RegisterCopy, Some("only fp8 with an fp8 result has a table")),
        Strategy::ExplicitParallel => (Variant::RegisterCopy, Some("unary ops have vectors or single elements")),
        _ => (Variant::RegisterCopy, None),
    };
    let head = head.filter(|_| variant != Variant::Strided).unwrap_or(0).min(call.n);
    let threads = if variant == Variant::Table { TABLE_THREADS } else { call.threads };
    let vectors = (call.n - head) / lanes(call.dtype) as u64;
    let streams = variant == Variant::RegisterCopy && passes(call);
    let per_thread = match (variant, call.vectors) {
        (Variant::RegisterCopy, None) => per_thread(call, vectors, streams),
        (Variant::RegisterCopy, Some(vectors)) => vectors,
        _ => 1,
    };
    let blocks = match variant {
        Variant::RegisterCopy => {
            // The first block takes head and rest, also where there is no vector.
            vectors.div_ceil(u64::from(threads * per_thread)).max(1)
        }
        // One block more: the one behind the last whole one also takes head and rest.
        Variant::Table => vectors / (u64::from(TABLE_THREADS) * TABLE_VECTORS as u64) + 1,
        _ => call.n.min(MAX_ITEMS - 1).div_ceil(GROUP as u64).div_ceil(u64::from(threads)),
    };
    Ok(Plan {
        strategy: variant.strategy(),
        replaced: replaced.filter(|_| call.strategy != Strategy::Auto),
        variant,
        threads,
        blocks: grid(blocks, call.n, variant.strategy(), threads)?,
        head: head as u32,
        vectors_per_thread: per_thread,
        streams,
        n: call.n,
    })
}

/// Whether a unary op of this result has a table for operands of type `dtype`.
pub(super) fn has_table(dtype: DType, result: ResultType) -> bool {
    matches!(dtype, DType::F8E4M3 | DType::F8E5M2) && result == ResultType::Same
}

/// The blocks of a grid for `n` elements.
///
/// # Errors
/// More than a grid can have.
pub(super) fn grid(blocks: u64, n: u64, strategy: Strategy, threads: u32) -> Result<u32> {
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

/// Whether the operand passes through the level-2 cache: it is wider than the result, which has room there, alone.
fn passes(call: &Call) -> bool {
    let (size, result) = (call.dtype.size() as u64, call.result.of(call.dtype).size() as u64);
    result < size && (call.n.saturating_mul(result)..call.n.saturating_mul(result + size)).contains(&call.room)
}

/// Vectors of a thread, of so many; `streams` says whether the operand passes through the cache.
fn per_thread(call: &Call, vectors: u64, streams: bool) -> u32 {
    let (size, result) = (call.dtype.size(), call.result.of(call.dtype).size());
    let Properties { long, long_half, middle_single, middle_half, angle, .. } = call.properties;
    let two = match size {
        _ if 4 * result <= size && !streams => TWO_NARROW_MIN,
        _ if result < size => SEVERAL_MIN,
        // Without the reduction no longer than others. 2^24 sines take 36.3 us, with two 37.2; 2^28 501, 509, with four
        // 514 (H200).
        4 if angle => return 1,
        4 if long && vectors >= SEVERAL_MIN => return 4,
        4 if long => TWO_LONG_MIN,
        2 if angle => TWO_ANGLE_HALF_MIN,
        2 if long || long_half => TWO_LONG_HALF_MIN,
        4 if middle_single => SEVERAL_MIN,
        2 if middle_half => SEVERAL_MIN,
        _ => return 1,
    };
    1 + u32::from(vectors >= two)
}

/// The measured defaults (H200, `docs/performance.md`): vectors, and for large fp8 tensors the table.
fn automatic(call: &Call) -> Strategy {
    let has_table = call.n >= TABLE_MIN && has_table(call.dtype, call.result);
    if has_table { Strategy::Table } else { Strategy::RegisterCopy }
}

/// Elements of a vector of the operand.
fn lanes(dtype: DType) -> usize {
    VECTOR / dtype.size()
}

/// The number of elements before one that is aligned for vectors in both tensors; `None` where there is none.
fn aligned_head(call: &Call) -> Option<u64> {
    let size = call.dtype.size();
    let result_size = call.result.of(call.dtype).size();
    // Addresses are multiples of their element's size, so there is one candidate below the vector's length.
    let head = (VECTOR - call.x % VECTOR) % VECTOR / size;
    let result_vector = lanes(call.dtype) * result_size;
    (call.y + head * result_size).is_multiple_of(result_vector.min(VECTOR)).then_some(head as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(x: usize, y: usize, n: u64, strategy: Strategy) -> Call {
        let (dtype, result) = (DType::BF16, ResultType::Same);
        Call {
            x,
            y,
            dtype,
            result,
            n,
            strategy,
            threads: 256,
            vectors: None,
            properties: Properties::NONE,
            room: 36 << 20,
        }
    }

    #[test]
    fn aligned_tensors_take_vectors() {
        let plan = plan(&call(4096, 8192, 1 << 20, Strategy::Auto)).unwrap();
        assert_eq!((plan.strategy, plan.head, plan.blocks), (Strategy::RegisterCopy, 0, 512));
    }

    #[test]
    fn a_common_offset_becomes_a_head() {
        let plan = plan(&call(4096 + 6, 8192 + 6, 1000, Strategy::RegisterCopy)).unwrap();
        assert_eq!((plan.strategy, plan.head, plan.replaced), (Strategy::RegisterCopy, 5, None));
    }

    #[test]
    fn different_offsets_are_served_element_by_element() {
        let plan = plan(&call(4096 + 6, 8192, 1000, Strategy::RegisterCopy)).unwrap();
        assert_eq!((plan.strategy, plan.variant, plan.head), (Strategy::Direct, Variant::Strided, 0));
        assert!(plan.replaced.is_some());
    }

    #[test]
    fn a_predicate_stores_shorter_vectors() {
        let mut predicate = call(4096, 8192 + 8, 1000, Strategy::RegisterCopy);
        predicate.result = ResultType::Bool;
        // 8 bf16 give 8 bytes of bool.
        assert_eq!(plan(&predicate).unwrap().head, 0);
        predicate.y = 8192 + 4;
        assert_eq!(plan(&predicate).unwrap().variant, Variant::Strided);
    }

    #[test]
    fn the_operand_of_a_predicate_passes_by_a_result_that_has_room_alone() {
        let same = call(4096, 8192, 1 << 23, Strategy::Auto);
        assert!(!plan(&same).unwrap().streams);
        let with = |n, room| {
            let call = Call { dtype: DType::F32, result: ResultType::Bool, n, room, ..same };
            let Plan { streams, vectors_per_thread, .. } = plan(&call).unwrap();
            (streams, vectors_per_thread)
        };
        let n = 1 << 23;
        assert_eq!([n - 1, n, 5 * n - 1, 5 * n].map(|room| with(n, room).0), [false, true, true, false]);
        // What passes has a thread for each vector.
        assert_eq!((with(n, n).1, with(n, 0).1), (1, 2));
    }

    #[test]
    fn a_head_is_never_longer_than_the_tensor() {
        let plan = plan(&call(4096 + 2, 8192 + 2, 3, Strategy::RegisterCopy)).unwrap();
        assert_eq!((plan.head, plan.blocks), (3, 1));
    }

    #[test]
    fn threads_of_large_calls_take_several_vectors_of_long_formulas() {
        let per_thread = |dtype, properties, n| {
            let call = Call { dtype, properties, ..call(4096, 8192, n, Strategy::Auto) };
            plan(&call).unwrap().vectors_per_thread
        };
        let short = Properties::NONE;
        let (middle_single, middle_half) =
            (Properties { middle_single: true, ..short }, Properties { middle_half: true, ..short });
        let (long, long_half) = (Properties { long: true, ..short }, Properties { long_half: true, ..short });
        let angle = Properties { angle: true, ..long };
        assert_eq!([DType::F32, DType::BF16].map(|dtype| per_thread(dtype, short, 1 << 32)), [1, 1]);
        assert_eq!([1 << 25, 1 << 26].map(|n| per_thread(DType::BF16, middle_half, n)), [1, 2]);
        assert_eq!([1 << 24, 1 << 25, 1 << 32].map(|n| per_thread(DType::F32, middle_single, n)), [1, 2, 2]);
        assert_eq!([long_half, middle_half].map(|other| per_thread(DType::F32, other, 1 << 32)), [1, 1]);
        assert_eq!(per_thread(DType::BF16, middle_single, 1 << 32), 1);
        assert_eq!([1 << 20, 1 << 21, 1 << 25].map(|n| per_thread(DType::F32, long, n)), [1, 2, 4]);
        for half in [long, long_half] {
            assert_eq!([1 << 23, 1 << 24, 1 << 28].map(|n| per_thread(DType::BF16, half, n)), [1, 2, 2]);
        }
        assert_eq!([1 << 24, 1 << 25].map(|n| per_thread(DType::BF16, angle, n)), [1, 2]);
        assert_eq!([1 << 21, 1 << 25].map(|n| per_thread(DType::F32, angle, n)), [1, 1]);
        // The words of a row do not exclude each other.
        let log = Properties { middle_single: true, ..long_half };
        assert_eq!([DType::F32, DType::BF16].map(|dtype| per_thread(dtype, log, 1 << 24)), [1, 2]);
        assert_eq!([DType::F32, DType::BF16].map(|dtype| per_thread(dtype, log, 1 << 25)), [2, 2]);
        let mut four = call(4096, 8192, 1 << 20, Strategy::Auto);
        four.vectors = Some(4);
        assert_eq!(plan(&four).unwrap().blocks, 128);
    }

    #[test]
    fn more_vectors_than_32_bits_can_count_are_read_element_by_element() {
        let vectors = (1 << 32) - 1 - u64::from(MAX_STEPS) * 1024;
        let planned = |n| {
            let plan = plan(&call(4096, 8192, n, Strategy::RegisterCopy)).unwrap();
            (plan.strategy, plan.replaced.is_some())
        };
        assert_eq!(planned(8 * vectors - 1), (Strategy::RegisterCopy, false));
        assert_eq!(planned(8 * vectors), (Strategy::Direct, true));
    }

    #[test]
    fn a_grid_has_fewer_blocks_than_2_to_31() {
        let blocks = |blocks| grid(blocks, 1, Strategy::RegisterCopy, 256);
        assert_eq!(blocks(MAX_BLOCKS).unwrap(), (1 << 31) - 1);
        assert!(blocks(MAX_BLOCKS + 1).is_err());
    }

    #[test]
    fn single_elements_have_no_head() {
        let plan = plan(&call(4096 + 6, 8192 + 6, 1000, Strategy::Direct)).unwrap();
        assert_eq!((plan.variant, plan.head, plan.replaced, plan.blocks), (Variant::Strided, 0, None, 1));
    }

    #[test]
    fn a_strategy_of_other_kinds_is_replaced() {
        let plan = plan(&call(4096 + 6, 8192 + 6, 1000, Strategy::ExplicitParallel)).unwrap();
        assert_eq!((plan.variant, plan.head, plan.replaced.is_some()), (Variant::RegisterCopy, 5, true));
    }

    #[test]
    fn tables_are_for_fp8() {
        let bf16 = plan(&call(4096, 8192, 1 << 20, Strategy::Table)).unwrap();
        assert_eq!(bf16.strategy, Strategy::RegisterCopy);
        let mut fp8 = call(4096, 8192, 1 << 20, Strategy::Auto);
        fp8.dtype = DType::F8E4M3;
        let fp8 = plan(&fp8).unwrap();
        assert_eq!((fp8.strategy, fp8.threads, fp8.blocks), (Strategy::Table, 128, 129));
        // Its vectors are as long.
        let apart = Call { dtype: DType::F8E4M3, ..call(4096, 8192 + 1, 1 << 20, Strategy::Table) };
        assert_eq!(plan(&apart).unwrap().variant, Variant::Strided);
    }
}

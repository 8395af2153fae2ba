//! Tables of all results of an op of one or two operands of one byte each: which calls take one, and how those of pairs
//! are made.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use pointwise_core::formula::ParamWords;
use pointwise_core::launch::{CODES_THREADS, CODES_VECTORS, LOOKUPS, PAIRS, PAIRS_THREADS, pair_slot};
use pointwise_core::{DType, Draw, OpInfo, row};

use super::RESIDENT;
use super::{Class, Entry, OpDef};
use crate::Stream;
use crate::cpu::{Source, Target};
use crate::cuda::{self, Context, SLOTS};
use crate::element::is_fp8;
use crate::error::Result;

/// The kernels, which serve every op.
static FLAT: Entry = Entry::with_shared(LOOKUPS[0], row::of_symbol(LOOKUPS[0]), crate::embed::embedded(), PAIRS);
static ROWS: Entry = Entry::with_shared(LOOKUPS[1], row::of_symbol(LOOKUPS[1]), crate::embed::embedded(), PAIRS);

/// The bytes of a block's shared memory beside its table.
const RESERVED: usize = 1024;

/// The table of an op in one element type, on each device. Made when it is first asked for, it stays until the process
/// ends: graphs may hold its address.
#[derive(Debug)]
pub struct Lookup {
    tables: [AtomicU64; SLOTS],
}

impl Lookup {
    /// No table yet.
    #[must_use]
    pub const fn new() -> Lookup {
        Lookup { tables: [const { AtomicU64::new(0) }; SLOTS] }
    }

    /// The table's address; `None` where there is none and it is not the time to make one: while a stream is captured.
    ///
    /// # Errors
    /// Out of memory, or the driver's.
    #[inline]
    pub(super) fn address(
        &self,
        context: &'static Context,
        stream: Option<&Stream>,
        (def, dtype): (&OpDef, DType),
    ) -> Result<Option<u64>> {
        match self.tables[context.slot].load(Ordering::Acquire) {
            0 => self.make(context, stream, (def, dtype)),
            address => Ok(Some(address)),
        }
    }

    #[cold]
    fn make(
        &self,
        context: &'static Context,
        stream: Option<&Stream>,
        (def, dtype): (&OpDef, DType),
    ) -> Result<Option<u64>> {
        if !FLAT.is_embedded() || stream.map_or(Ok(false), Stream::is_capturing)? {
            return Ok(None);
        }
        let Some(table) = results(def, dtype) else {
            return Ok(None);
        };
        let _loading = context.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &self.tables[context.slot];
        match slot.load(Ordering::Acquire) {
            0 => {}
            address => return Ok(Some(address)),
        }
        let kept = cuda::keep(context, &table)?;
        slot.store(kept.unwrap_or(0), Ordering::Release);
        Ok(kept)
    }
}

impl Default for Lookup {
    fn default() -> Self {
        Lookup::new()
    }
}

/// The results of all pairs by the CPU's loop, each where the kernels look for it; `None` where there is no loop.
fn results(def: &OpDef, dtype: DType) -> Option<Vec<u8>> {
    if !serves(&def.info, dtype) {
        return None;
    }
    let op = def.cpu(dtype).ok()?;
    let codes: [u8; 256] = std::array::from_fn(|code| code as u8);
    let mut row = [0_u8; 256];
    let mut table = vec![0; PAIRS];
    for a in 0..=u8::MAX {
        let of = |pointer, step| Source { pointer, step, word: None };
        let operands = [of(&raw const a, 0), of(codes.as_ptr(), 1)];
        let results = [Target { pointer: row.as_mut_ptr(), step: 1 }];
        // SAFETY: elements of one byte: one `a`, 256 codes, 256 results, none of them in another; the op has two
        // operands and one result, as `serves` says.
        unsafe { op(&operands, &results, codes.len(), &ParamWords::default(), &Draw::NONE) };
        for (b, &result) in codes.iter().zip(&row) {
            table[usize::from(pair_slot(a, *b))] = result;
        }
    }
    Some(table)
}

/// The kernel of a class.
pub(super) fn entry(class: Class) -> Option<&'static Entry> {
    match class {
        Class::Flat => Some(&FLAT),
        Class::Rows => Some(&ROWS),
        Class::Strided => None,
    }
}

/// From how many elements on a table of codes, which every block makes, is faster than the formula.
pub(super) const CODES_PAY_FROM: u64 = 1 << 14;

/// Blocks of a launch of so many vectors that looks codes up: the one behind the last whole one takes single elements.
pub(super) fn code_blocks(vectors: u64) -> u32 {
    (vectors / (u64::from(CODES_THREADS) * CODES_VECTORS as u64)) as u32 + 1
}

/// True if kernels make tables of all codes of elements of type `dtype`: of one operand of fp8, with a result of its type.
pub(super) fn serves_codes(info: &OpInfo, dtype: DType) -> bool {
    info.operands.len() == 1
        && info.results.len() == 1
        && info.bool_operands() | info.bool_results() == 0
        && !info.has_place()
        && is_fp8(dtype)
}

/// True if an op has tables of all pairs in elements of type `dtype`: it has two operands and no parameters, and any byte
/// is an element.
pub(super) fn serves(info: &OpInfo, dtype: DType) -> bool {
    info.operands.len() == 2
        && info.bool_operands() == 0
        && info.results.len() == 1
        && info.params.is_empty()
        && !info.has_place()
        && dtype.size() == 1
        && dtype != DType::Bool
}

/// Returns the number of elements from which on a table is faster than the formula. Filling the blocks' tables costs as much as
/// about 2^24 elements take to move; an op gains by it what its formula costs more than the memory does (`table_bandwidth`
/// measures it; `docs/tuning.md`).
pub(super) fn pays_from(info: &OpInfo, dtype: DType) -> Option<u64> {
    let found = info.pairs_pay.iter().find(|(each, _)| *each == dtype && serves(info, dtype));
    found.map(|(_, power)| 1 << power)
}

/// Blocks of a launch of so many vectors: as many as the device has room for at a time, so that each fills its table
/// once.
pub(super) fn blocks(multiprocessors: u32, shared_bytes: usize, vectors: u64) -> u32 {
    let together = (shared_bytes / (PAIRS + RESERVED)).clamp(1, (RESIDENT / u64::from(PAIRS_THREADS)) as usize) as u64;
    vectors.div_ceil(u64::from(PAIRS_THREADS)).clamp(1, u64::from(multiprocessors.max(1)) * together) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Add, FloorDivide, GeluAndMul, Lerp, Mul, Pow};
    use crate::{Device, Tensor};

    #[test]
    fn a_table_has_the_results_of_all_pairs() {
        let device = Device::cpu();
        for (def, dtype) in
            [(Pow::def(), DType::F8E4M3), (GeluAndMul::def(), DType::F8E5M2), (FloorDivide::def(), DType::I8)]
        {
            let name = def.info.name;
            assert!(serves(&def.info, dtype) && def.has_table(dtype));
            let table = results(def, dtype).unwrap();
            let codes: Vec<u8> = (0..=255).collect();
            let a = Tensor::from_bytes(&device, dtype, &codes, [256, 1]).unwrap();
            let b = Tensor::from_bytes(&device, dtype, &codes, [256]).unwrap();
            let expected = def.gated_with(&[]).run_pair(&a, &b).unwrap().to_bytes().unwrap();
            for (a, b) in (0..=255_u8).flat_map(|a| (0..=255_u8).map(move |b| (a, b))) {
                let at = usize::from(a) * 256 + usize::from(b);
                assert_eq!(table[usize::from(pair_slot(a, b))], expected[at], "{name} of {a} and {b}");
            }
        }
    }

    #[test]
    fn ops_with_parameters_and_wider_types_have_none() {
        assert!(
            !serves(&Add::def().info, DType::F8E4M3)
                && !serves(&Pow::def().info, DType::F16)
                && !serves(&Mul::def().info, DType::Bool)
        );
        assert!(!serves(&Lerp::def().info, DType::F8E4M3) && !Pow::def().has_table(DType::BF16));
        assert_eq!(pays_from(&Mul::def().info, DType::F8E4M3), None);
    }

    #[test]
    fn a_multiprocessor_has_as_many_blocks_as_tables_fit() {
        let many = 1 << 24;
        assert_eq!(blocks(132, 228 << 10, many), 3 * 132);
        assert_eq!(blocks(108, 164 << 10, many), 2 * 108);
        assert_eq!(blocks(84, 100 << 10, many), 84);
        assert_eq!((blocks(132, 228 << 10, 0), blocks(132, 228 << 10, 513)), (1, 2));
    }
}

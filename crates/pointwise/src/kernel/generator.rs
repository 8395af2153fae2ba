//! Ops without operands: tensors that are made of their indices. Their loops and kernels, and the way of a call.

use pointwise_core::op::{GROUP, RUN, Words};
use pointwise_core::row::{self, EntryClass, of_class};
use pointwise_core::{DType, DescribedOp, Element, GeneratorOp, OpInfo, Word};

use super::RESIDENT;
use super::choice::Params;
use super::{Class, Entry, Kernel, KernelPlan, Strategy, check, params};
use crate::Device;
use crate::cpu::{self, GeneratorFn};
use crate::cuda;
use crate::embed::Kernels;
use crate::error::{ErrorKind, Result};
use crate::shape::{IntoShape, Shape};
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// The formula of a generator in f64, of plane, row and column and the parameters.
pub type GeneratorOracle = fn([u32; 3], Words) -> f64;

/// Returns planes, rows and columns of a shape, and the words of the op's parameters that follow from these.
///
/// # Errors
/// Fails for a shape that the op does not make.
pub(crate) type SizesFn = fn(&Shape) -> Result<([usize; 3], Words)>;

/// A generator in one element type: its loop and its kernels.
#[derive(Debug)]
pub struct GeneratorTyped {
    dtype: DType,
    source: u64,
    row: u64,
    cpu: GeneratorFn,
    direct: Entry,
    vectors: Entry,
}

impl GeneratorTyped {
    /// The op `O` on elements `E`. `symbols` name its kernels in `kernels`, by single elements and by vectors; `source`
    /// is the hash of the text that they were compiled from.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: the data of `O` contradict its types.
    #[must_use]
    #[track_caller]
    pub const fn new<E, O>(symbols: [&'static str; 2], source: u64, kernels: &'static Kernels) -> GeneratorTyped
    where
        E: Element<Compute: Word>,
        O: DescribedOp + GeneratorOp,
    {
        let row = row::of_generator::<E, O>(source);
        let [direct, vectors] = symbols;
        GeneratorTyped {
            dtype: E::DTYPE,
            source,
            row,
            cpu: cpu::generator::<E, O>,
            direct: Entry::new(direct, of_class(row, EntryClass::Direct), kernels),
            vectors: Entry::new(vectors, of_class(row, EntryClass::Vectors), kernels),
        }
    }
}

/// The loops and kernels of an op without operands.
#[derive(Debug)]
pub(in crate::kernel) struct Indices {
    /// The rows of a thread in a large tensor: [`GeneratorOp::ROWS`].
    rows: [u32; 3],
    types: &'static [GeneratorTyped],
    pub(in crate::kernel) oracle: Option<GeneratorOracle>,
    /// Checks the shape, where the op has parameters that follow from it.
    pub(in crate::kernel) sizes: Option<SizesFn>,
}

impl Indices {
    /// Returns the loops and kernels of the op `O`.
    #[track_caller]
    pub(in crate::kernel) const fn new<O: DescribedOp + GeneratorOp>(
        types: &'static [GeneratorTyped],
        oracle: Option<GeneratorOracle>,
        sizes: Option<SizesFn>,
    ) -> Indices {
        let mut k = 0;
        while k < types.len() {
            row::check_generator::<O>(types[k].dtype, types[k].source, types[k].row);
            k += 1;
        }
        Indices { rows: O::ROWS, types, oracle, sizes }
    }

    fn typed(&self, info: &OpInfo, dtype: DType) -> Result<&GeneratorTyped> {
        self.types.iter().find(|typed| typed.dtype == dtype).ok_or_else(|| check::wrong_dtype(info, dtype))
    }

    /// The kernel for elements of a type, by vectors or by single elements.
    pub(in crate::kernel) fn entry(&self, info: &OpInfo, dtype: DType, vectors: bool) -> Result<&Entry> {
        let typed = self.typed(info, dtype)?;
        Ok(if vectors { &typed.vectors } else { &typed.direct })
    }
}

/// The formula of an op without operands in f64, with the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub struct IndexOracle {
    pub(in crate::kernel) formula: GeneratorOracle,
    pub(in crate::kernel) words: Words,
}

impl IndexOracle {
    /// Returns the element of a plane, a row and a column.
    #[must_use]
    pub fn at(&self, at: [u32; 3]) -> f64 {
        (self.formula)(at, self.words)
    }
}

/// An op without operands with its parameters and launch settings: `kernels::alibi`, `kernels::sinusoidal`, or one that `#[op]`
/// made.
///
/// ```
/// use pointwise::{DType, Device, Strategy, kernels, kernel::SinusoidalLayout};
///
/// let kernel = kernels::sinusoidal(SinusoidalLayout::Interleaved).strategy(Strategy::RegisterCopy);
/// let y = kernel.run(&Device::cpu(), DType::F32, [1, 4])?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeneratorKernel(pub(crate) Kernel<'static>);

impl GeneratorKernel {
    /// As [`Kernel::generate`].
    ///
    /// # Errors
    /// The errors of [`Kernel::generate`].
    pub fn run(&self, device: &Device, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        self.0.generate(device, dtype, shape)
    }

    /// The tensor of the shape of `y`, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph can
    /// capture it.
    ///
    /// # Errors
    /// As [`GeneratorKernel::run`], and a view that is not contiguous.
    pub fn run_into<'a>(&self, y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        self.0.run_into(&[], &mut [y.into()])
    }

    /// Plans the launch of [`GeneratorKernel::run_into`] on a CUDA device for this tensor.
    ///
    /// # Errors
    /// Fails as [`GeneratorKernel::run_into`] does.
    pub fn plan<'a>(&self, y: impl Into<TensorViewMut<'a>>) -> Result<KernelPlan> {
        self.0.plan(&[], &[y.into().as_view()])
    }
}

/// The call of a generator: planes, rows and columns, and the op's parameters.
struct Call {
    sizes: [u32; 3],
    words: Words,
}

/// How a grid covers it: blocks side by side and below one another, log2 of a block's width, rows of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cover {
    across: u32,
    down: u32,
    shift: u32,
    each: u32,
    blocks: u32,
    threads: u32,
    /// Elements of a vector, or 1.
    lanes: u32,
}

/// The most rows or columns: indices, and the block behind the last, fit 32 bits.
const MAX_SIZE: usize = 1 << 31;
/// In a large tensor, a thread that has one column has at least so many rows.
const ROWS_OF_SINGLES: u32 = 16;
/// One in so many of the threads that a device has at once suffices for a thread to have all its rows.
const SPARE: u64 = 16;
/// The least of a run: a thread begins it, and walks to its rows.
const MIN_OF_A_RUN: u32 = 4;
/// At most so many threads a block with vectors: more have not enough registers.
const MOST_THREADS: u32 = 512;
/// CUDA's limit on the x dimension of a grid.
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// Threads that keep a device busy, where it is not known: a large one's.
const BUSY: u64 = 132 * RESIDENT;

/// Returns an error for a shape that an op without operands does not make.
#[cold]
pub(crate) fn wrong_shape(shape: &Shape, why: &str) -> crate::Error {
    ErrorKind::Parameter { name: "shape", value: shape.to_string(), why: why.to_owned() }.into()
}

/// Returns planes, rows and columns of a shape.
fn planes(shape: &Shape) -> Result<[usize; 3]> {
    match shape[..] {
        [planes, rows, columns] => Ok([planes, rows, columns]),
        [rows, columns] => Ok([1, rows, columns]),
        [columns] => Ok([1, 1, columns]),
        _ => Err(wrong_shape(shape, "a generator's shape is (planes, rows, columns), (rows, columns) or (columns)")),
    }
}

impl Kernel<'_> {
    /// Makes a new tensor of an op without operands. The shape is (planes, rows, columns), (rows, columns) or (columns); ALiBi's
    /// is (num_heads, seq_len, seq_len), that of a sinusoidal encoding (seq_len, d_model).
    ///
    /// # Errors
    /// An op that has operands; an element type or a parameter that the op does not take; another number of dimensions, an ALiBi
    /// that is not square, an odd `d_model`, a dimension beyond 2^31; a stream of another device, bad launch settings, a
    /// missing kernel, out of memory, the driver's.
    pub fn generate(&self, device: &Device, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        let info = &self.def.info;
        if self.def.indices().is_none() {
            return Err(check::wrong_count(info, "operands", info.operands, 0));
        }
        let shape = shape.into_shape()?;
        self.generated(dtype, &shape)?;
        let mut y = Tensor::empty(device, dtype, shape)?;
        self.run_into(&[], &mut [y.view_mut()?])?;
        Ok(y)
    }

    /// [`Kernel::run_into`] of an op without operands.
    pub(super) fn generate_into(&self, indices: &Indices, y: &mut TensorViewMut<'_>) -> Result<()> {
        let call = self.checked_generated(&y.as_view())?;
        if y.numel() == 0 {
            return Ok(());
        }
        let target = y.as_mut_ptr()?;
        let (dtype, device) = (y.dtype(), *y.device());
        let Some(context) = device.context() else {
            let run = indices.typed(&self.def.info, dtype)?.cpu;
            // SAFETY: the tensor is exclusively borrowed, contiguous and of these sizes.
            unsafe { cpu::run_generator(run, target, call.sizes, dtype, call.words) };
            return Ok(());
        };
        let busy = u64::from(context.info.multiprocessors) * RESIDENT;
        let cover = self.cover(indices, &call, dtype, target.addr(), busy)?;
        let function = indices.entry(&self.def.info, dtype, cover.lanes > 1)?.function(context)?;
        let target = target.addr() as u64;
        let [_, rows, columns] = call.sizes;
        let Cover { across, down, shift, each, .. } = cover;
        // The driver reads as many as the entry has parameters.
        let mut params = Params::default();
        params.push(&target);
        [&rows, &columns, &across, &down, &shift, &each].into_iter().for_each(|size| params.push(size));
        call.words.iter().for_each(|word| params.push(word));
        let held = self.settings.hold(context, [], [&y.as_view()])?;
        // SAFETY: the parameters are those of every generator's entry; the cover is one of this tensor, which is
        // borrowed until the call is queued, and noted as used on its stream.
        unsafe { cuda::launch(function, cover.blocks, cover.threads, &held, params.pointers(None)) }
    }

    /// [`Kernel::plan`] of an op without operands.
    pub(super) fn plan_generated(&self, indices: &Indices, y: &TensorView<'_>) -> Result<KernelPlan> {
        let call = self.checked_generated(y)?;
        let busy = y.device().info().map_or(BUSY, |info| u64::from(info.multiprocessors) * RESIDENT);
        let cover = self.cover(indices, &call, y.dtype(), y.address(), busy)?;
        let is_vector = cover.lanes > 1;
        let replaced = match self.settings.strategy {
            Strategy::ExplicitParallel | Strategy::Table => Some("an op without operands has no such kernel"),
            Strategy::RegisterCopy if !is_vector => Some("rows are no whole, aligned vectors"),
            _ => None,
        };
        Ok(KernelPlan {
            class: if is_vector { Class::Rows } else { Class::Strided },
            row: None,
            strategy: if is_vector { Strategy::RegisterCopy } else { Strategy::Direct },
            replaced,
            dims: 3,
            threads: cover.threads,
            lanes: cover.lanes as usize,
            group: 1,
            head: 0,
            launches: usize::from(y.numel() > 0),
            n: y.numel() as u64,
        })
    }

    /// Checks the tensor to be written, and the settings of a launch for it.
    fn checked_generated(&self, y: &TensorView<'_>) -> Result<Call> {
        let call = self.generated(y.dtype(), y.shape())?;
        y.layout().require_contiguous("the output of an op without operands")?;
        self.settings.check(y.device())?;
        Ok(call)
    }

    /// Checks type and shape.
    fn generated(&self, dtype: DType, shape: &Shape) -> Result<Call> {
        let info = &self.def.info;
        check::dtype(info, dtype)?;
        let (sizes, words) = match self.def.indices().and_then(|indices| indices.sizes) {
            Some(sizes) => sizes(shape)?,
            None => {
                let [a, b, c, d, ..] = params::words(info, &self.params, DType::F32)?;
                (planes(shape)?, [a, b, c, d])
            }
        };
        if sizes.iter().any(|&size| size > MAX_SIZE) {
            return Err(wrong_shape(shape, "a dimension of a generator is at most 2^31"));
        }
        Ok(Call { sizes: sizes.map(|size| size as u32), words })
    }

    /// A grid that covers the tensor, for a device with `busy` threads at once.
    fn cover(&self, indices: &Indices, call: &Call, dtype: DType, address: usize, busy: u64) -> Result<Cover> {
        let [planes, rows, columns] = call.sizes;
        let vector = 16 / dtype.size() as u32;
        let fits = columns.is_multiple_of(vector) && address.is_multiple_of(16);
        let is_vector = fits && matches!(self.settings.strategy, Strategy::Auto | Strategy::RegisterCopy);
        let lanes = if is_vector { vector } else { 1 };
        let width = columns / lanes;
        let block = if is_vector { self.settings.threads.min(MOST_THREADS) } else { self.settings.threads };
        // As wide as a row, if that is a divisor of the block; narrower where it wastes an eighth less of the threads.
        let padded = |shift: u32| u64::from(width.div_ceil(1 << shift)) << shift;
        let widest = block.trailing_zeros().min(width.next_power_of_two().trailing_zeros());
        let shift = (3..widest).rev().fold(
            widest,
            |best, shift| {
                if padded(shift) * 8 < padded(best) * 7 { shift } else { best }
            },
        );
        let height = block >> shift;
        let threads = padded(shift) * u64::from(rows) * u64::from(planes);
        let wanted = indices.rows[dtype.size().ilog2().min(2) as usize].clamp(1, RUN);
        let wanted = if is_vector { wanted } else { wanted.max(ROWS_OF_SINGLES) };
        let deepest = u64::from(rows.div_ceil(height)).clamp(1, u64::from(wanted));
        let mut each = (threads / (busy / SPARE).max(1)).clamp(1, deepest) as u32;
        if dtype.size() == 1 {
            // A part of a run, of which the beginning costs more than the rows: see GeneratorOp::next.
            each = each.next_power_of_two().clamp(MIN_OF_A_RUN, RUN);
        } else if dtype.size() == 2 {
            each = each.next_multiple_of(GROUP);
        }
        let (across, down) = (width.div_ceil(1 << shift), rows.div_ceil(height * each));
        let blocks = u64::from(across) * u64::from(down) * u64::from(planes);
        if blocks > MAX_BLOCKS {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of {rows} rows and {columns} columns in {planes} planes", self.def.info.name),
                advice: "a grid has at most 2^31 - 1 blocks: take more threads, or views of a part each".to_owned(),
            }
            .into());
        }
        Ok(Cover { across, down, shift, each, blocks: blocks as u32, threads: block, lanes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::SinusoidalLayout;
    use crate::kernels;

    fn cover(kernel: &GeneratorKernel, call: &Call, dtype: DType, address: usize, busy: u64) -> Cover {
        kernel.0.cover(kernel.0.def.indices().unwrap(), call, dtype, address, busy).unwrap()
    }

    /// Every element is covered once, by the arithmetic of the kernel.
    #[test]
    fn a_cover_is_complete() {
        for columns in [1_u32, 2, 3, 8, 31, 32, 33, 96, 100, 768, 1000, 4096] {
            for rows in [1_u32, 2, 7, 100] {
                let settings = [(32, 1), (96, 1), (256, 1), (1024, 100_000)];
                let types = [DType::F32, DType::BF16, DType::F8E4M3];
                for ((threads, busy), dtype) in settings.into_iter().flat_map(|s| types.map(|dtype| (s, dtype))) {
                    let kernel = kernels::alibi().threads(threads).strategy(Strategy::Direct);
                    let call = Call { sizes: [2, rows, columns], words: Words::default() };
                    let cover = cover(&kernel, &call, dtype, 4096, busy);
                    assert!(dtype != DType::BF16 || cover.each.is_multiple_of(GROUP));
                    assert!(dtype != DType::F8E4M3 || cover.each.is_power_of_two() && cover.each <= RUN);
                    let height = threads >> cover.shift;
                    assert_eq!(height << cover.shift, threads, "a block is a rectangle");
                    let mut seen = vec![0_u8; (2 * rows * columns) as usize];
                    for block in 0..cover.blocks {
                        let (above, across) = (block / cover.across, block % cover.across);
                        let (plane, down) = (above / cover.down, above % cover.down);
                        for thread in 0..threads {
                            let column = (across << cover.shift) + (thread & ((1 << cover.shift) - 1));
                            for k in 0..cover.each {
                                let line = thread >> cover.shift;
                                let row = match dtype {
                                    DType::F32 => down * height * cover.each + line + k * height,
                                    DType::BF16 => {
                                        down * height * cover.each + GROUP * (line + k / GROUP * height) + k % GROUP
                                    }
                                    _ => (down * height + line) * cover.each + k,
                                };
                                if column < columns && row < rows {
                                    seen[((plane * rows + row) * columns + column) as usize] += 1;
                                }
                            }
                        }
                    }
                    assert!(seen.iter().all(|&times| times == 1), "{rows} x {columns}, {threads} threads: {cover:?}");
                }
            }
        }
    }

    #[test]
    fn vectors_where_rows_are_whole_ones() {
        let of = |columns| Call { sizes: [1, 4096, columns], words: Words::default() };
        let cover = |threads, columns, address| {
            let kernel = kernels::sinusoidal(SinusoidalLayout::Interleaved).threads(threads);
            cover(&kernel, &of(columns), DType::F16, address, BUSY)
        };
        assert_eq!(cover(128, 512, 4096).lanes, 8);
        assert_eq!(cover(128, 516, 4096).lanes, 1);
        assert_eq!(cover(128, 512, 4098).lanes, 1);
        assert_eq!(cover(1024, 512, 4096).threads, MOST_THREADS);
        assert_eq!(cover(1024, 512, 4098).threads, 1024);
        // 96 vectors: three blocks of 32 side by side rather than one of 128.
        let three = cover(128, 768, 4096);
        assert_eq!((three.shift, three.across), (5, 3));
    }
}

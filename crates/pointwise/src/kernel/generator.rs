//! Tensors made of their indices: their definitions, and the kernel object.

use std::ffi::c_void;
use std::ops::Deref;

use pointwise_core::family::generator::{Alibi, Sinusoidal};
use pointwise_core::op::{GROUP, RUN, Words};
use pointwise_core::{DType, Element, GeneratorOp, OpInfo, TableOp, Word, row};

use super::grid::RESIDENT;
use super::params::{self, Params};
use super::{Entry, Facts, LaunchSettings, Plan, Strategy, Variant, check};
use crate::cpu::{self, GeneratorFn};
use crate::cuda;
use crate::embed::Kernels;
use crate::error::{ErrorKind, Result};
use crate::shape::{IntoShape, Shape};
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Device, Number};

/// A generator as the host knows it: what `#[op]` makes of a function of indices, and a table of a row.
#[derive(Debug)]
pub struct GeneratorDef {
    facts: Facts,
    /// The rows of a thread in a large tensor: [`GeneratorOp::ROWS`].
    rows: [u32; 3],
    types: &'static [GeneratorTyped],
    oracle: Option<GeneratorOracle>,
}

impl Deref for GeneratorDef {
    type Target = Facts;
    #[inline]
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// The formula of a generator in f64, of plane, row and column and the parameters.
pub type GeneratorOracle = fn([u32; 3], Words) -> f64;

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
    /// In a constant, so that it does not compile: a kernel's name says another variant; the data of `O` contradict its types.
    #[must_use]
    #[track_caller]
    pub const fn new<E, O>(symbols: [&'static str; 2], source: u64, kernels: &'static Kernels) -> GeneratorTyped
    where
        E: Element<Compute: Word>,
        O: TableOp + GeneratorOp,
    {
        let row = row::of_generator::<E, O>(source);
        let [direct, vectors] = symbols;
        row::check_class(direct, "direct");
        row::check_class(vectors, "vectors");
        GeneratorTyped {
            dtype: E::DTYPE,
            source,
            row,
            cpu: cpu::generator::<E, O>,
            direct: Entry::new(direct, row, kernels),
            vectors: Entry::new(vectors, row, kernels),
        }
    }
}

/// Where a sinusoidal encoding has its sines and cosines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum SinusoidalLayout {
    /// Column `2 i` the sine, column `2 i + 1` the cosine of frequency `i` (Vaswani et al.).
    #[default]
    Interleaved,
    /// Column `i` the sine, column `d_model / 2 + i` the cosine of frequency `i`.
    Halves,
}

/// What is generated.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Alibi,
    Sinusoidal,
    /// An op of `#[op]`: any planes of rows and columns.
    Planes(Params),
}

/// A generator with its launch settings: `kernels::alibi`, `kernels::sinusoidal`, or one that `#[op]` made.
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
pub struct GeneratorKernel {
    def: &'static GeneratorDef,
    encoding: Encoding,
    pub(super) settings: LaunchSettings,
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
    variant: Variant,
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

impl GeneratorDef {
    /// The op `O` in some element types. `oracle` is its formula in f64.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: `types` are not all of `O`.
    #[must_use]
    #[track_caller]
    pub const fn new<O: TableOp + GeneratorOp>(
        types: &'static [GeneratorTyped],
        oracle: Option<GeneratorOracle>,
    ) -> GeneratorDef {
        let mut k = 0;
        while k < types.len() {
            row::check_generator::<O>(types[k].dtype, types[k].source, types[k].row);
            k += 1;
        }
        GeneratorDef { facts: Facts { info: O::INFO, backward: None }, rows: O::ROWS, types, oracle }
    }

    fn typed(&self, dtype: DType) -> Result<&GeneratorTyped> {
        let found = self.types.iter().find(|typed| typed.dtype == dtype);
        found.ok_or_else(|| check::wrong_dtype(&self.info, dtype))
    }

    /// The kernel for elements of a type, by vectors or by single elements.
    ///
    /// # Errors
    /// A type that the op does not have.
    pub fn entry(&self, dtype: DType, variant: Variant) -> Result<&Entry> {
        let typed = self.typed(dtype)?;
        Ok(if variant == Variant::RegisterCopy { &typed.vectors } else { &typed.direct })
    }

    /// The formula in f64 for elements of type `dtype`, of plane, row and column; `None` for one of pointwise's own, which
    /// are tested otherwise.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle(&self, dtype: DType, params: &[Number]) -> Result<Option<impl Fn([u32; 3]) -> f64>> {
        check::dtype(&self.info, dtype)?;
        let [a, b, c, d, ..] = params::oracle_words(&self.info, &Params::new(params), DType::F32)?;
        Ok(self.oracle.map(|oracle| move |at| oracle(at, [a, b, c, d])))
    }

    /// ALiBi's bias.
    pub(crate) fn alibi(&'static self) -> GeneratorKernel {
        self.of(Encoding::Alibi)
    }

    /// The sinusoidal encoding.
    pub(crate) fn sinusoidal(&'static self) -> GeneratorKernel {
        self.of(Encoding::Sinusoidal)
    }

    /// The op with parameters, in the order of [`OpInfo::params`]; those that are left out have their defaults.
    pub fn kernel(&'static self, params: &[Number]) -> GeneratorKernel {
        self.of(Encoding::Planes(Params::new(params)))
    }

    fn of(&'static self, encoding: Encoding) -> GeneratorKernel {
        GeneratorKernel { def: self, encoding, settings: LaunchSettings::new() }
    }
}

impl GeneratorKernel {
    /// Name, types, documentation.
    pub fn info(&self) -> &'static OpInfo {
        &self.def.info
    }

    /// A new tensor of the encoding: ALiBi's shape is (num_heads, seq_len, seq_len), the sinusoidal one's
    /// (seq_len, d_model), another op's (planes, rows, columns), (rows, columns) or (columns).
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take, another number of dimensions, an ALiBi that is not
    /// square, an odd `d_model`, a dimension beyond 2^31, a stream of another device, bad launch settings, a missing
    /// kernel, out of memory, the driver's.
    pub fn run(&self, device: &Device, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape()?;
        self.call(dtype, &shape)?;
        let mut y = Tensor::empty(device, dtype, shape)?;
        self.run_into(&mut y)?;
        Ok(y)
    }

    /// The encoding of the shape of `y`, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph
    /// can capture it.
    ///
    /// # Errors
    /// As [`GeneratorKernel::run`], and a view that is not contiguous.
    pub fn run_into<'a>(&self, y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        let mut y = y.into();
        let call = self.checked(&y.as_view())?;
        if y.numel() == 0 {
            return Ok(());
        }
        let target = y.as_mut_ptr()?;
        let (dtype, device) = (y.dtype(), *y.device());
        let Some(context) = device.context() else {
            let run = self.def.typed(dtype)?.cpu;
            // SAFETY: the tensor is exclusively borrowed, contiguous and of these sizes.
            unsafe { cpu::run_generator(run, target, call.sizes, dtype.size(), call.words) };
            return Ok(());
        };
        let cover = self.cover(&call, dtype, target.addr(), u64::from(context.info.multiprocessors) * RESIDENT)?;
        let function = self.def.entry(dtype, cover.variant)?.function(context)?;
        let mut target = target.addr() as u64;
        let [_, mut rows, mut columns] = call.sizes;
        let Cover { mut across, mut down, mut shift, mut each, .. } = cover;
        let [mut p0, mut p1, mut p2, mut p3] = call.words;
        // The driver reads as many as the entry has parameters.
        let mut params: [*mut c_void; 11] = [
            (&raw mut target).cast(),
            (&raw mut rows).cast(),
            (&raw mut columns).cast(),
            (&raw mut across).cast(),
            (&raw mut down).cast(),
            (&raw mut shift).cast(),
            (&raw mut each).cast(),
            (&raw mut p0).cast(),
            (&raw mut p1).cast(),
            (&raw mut p2).cast(),
            (&raw mut p3).cast(),
        ];
        let held = self.settings.hold(context, [], [&y.as_view()])?;
        // SAFETY: the parameters are those of every generator's entry; the cover is one of this tensor, which is
        // borrowed until the call is queued, and noted as used on its stream.
        unsafe { cuda::launch(function, cover.blocks, cover.threads, &held, &mut params) }
    }

    /// What [`GeneratorKernel::run_into`] would launch on a CUDA device for this tensor.
    ///
    /// # Errors
    /// As there.
    pub fn plan<'a>(&self, y: impl Into<TensorViewMut<'a>>) -> Result<Plan> {
        let y = y.into();
        let call = self.checked(&y.as_view())?;
        let busy = y.device().info().map_or(BUSY, |info| u64::from(info.multiprocessors) * RESIDENT);
        let cover = self.cover(&call, y.dtype(), y.address(), busy)?;
        let replaced = match self.settings.strategy {
            Strategy::ExplicitParallel | Strategy::Table => Some("a generator has no such kernel"),
            Strategy::RegisterCopy if cover.variant == Variant::Direct => Some("rows are no whole, aligned vectors"),
            _ => None,
        };
        Ok(Plan {
            strategy: cover.variant.strategy(),
            replaced,
            variant: cover.variant,
            threads: cover.threads,
            blocks: cover.blocks,
            head: 0,
            vectors_per_thread: 1,
            n: y.numel() as u64,
        })
    }

    /// Checks the tensor to be written, and the settings of a launch for it.
    fn checked(&self, y: &TensorView<'_>) -> Result<Call> {
        let call = self.call(y.dtype(), y.shape())?;
        y.layout().require_contiguous("the output of a generator")?;
        self.settings.check(y.device())?;
        Ok(call)
    }

    /// Checks type and shape.
    fn call(&self, dtype: DType, shape: &Shape) -> Result<Call> {
        let info = &self.def.info;
        check::dtype(info, dtype)?;
        let wrong = |why: &str| -> crate::Error {
            ErrorKind::Parameter { name: "shape", value: shape.to_string(), why: why.to_owned() }.into()
        };
        let sizes = match (self.encoding, &shape[..]) {
            (Encoding::Alibi, &[heads, rows, columns]) if rows == columns => [heads, rows, columns],
            (Encoding::Alibi, _) => {
                return Err(wrong("alibi is made in the shape (num_heads, seq_len, seq_len)"));
            }
            (Encoding::Sinusoidal, &[rows, columns]) if columns.is_multiple_of(2) => [1, rows, columns],
            (Encoding::Sinusoidal, &[_, columns]) => {
                return Err(ErrorKind::Parameter {
                    name: "d_model",
                    value: columns.to_string(),
                    why: "must be even: a sine and a cosine for each frequency".to_owned(),
                }
                .into());
            }
            (Encoding::Sinusoidal, _) => return Err(wrong("sinusoidal is made in the shape (seq_len, d_model)")),
            (Encoding::Planes(_), &[planes, rows, columns]) => [planes, rows, columns],
            (Encoding::Planes(_), &[rows, columns]) => [1, rows, columns],
            (Encoding::Planes(_), &[columns]) => [1, 1, columns],
            (Encoding::Planes(_), _) => {
                return Err(wrong("a generator's shape is (planes, rows, columns), (rows, columns) or (columns)"));
            }
        };
        if sizes.iter().any(|&size| size > MAX_SIZE) {
            return Err(wrong("a dimension of a generator is at most 2^31"));
        }
        let sizes = sizes.map(|size| size as u32);
        let words = match self.encoding {
            Encoding::Alibi => Alibi::new(sizes[0]).words(),
            Encoding::Sinusoidal => Sinusoidal::new(sizes[2].max(2)).words(sizes[2]),
            Encoding::Planes(params) => {
                let [a, b, c, d, ..] = params::words(info, &params, DType::F32)?;
                [a, b, c, d]
            }
        };
        Ok(Call { sizes, words })
    }

    /// A grid that covers the tensor, for a device with `busy` threads at once.
    fn cover(&self, call: &Call, dtype: DType, address: usize, busy: u64) -> Result<Cover> {
        let [planes, rows, columns] = call.sizes;
        let vector = 16 / dtype.size() as u32;
        let vectors = columns.is_multiple_of(vector) && address.is_multiple_of(16);
        let (variant, lanes) = match self.settings.strategy {
            Strategy::Auto | Strategy::RegisterCopy if vectors => (Variant::RegisterCopy, columns / vector),
            _ => (Variant::Direct, columns),
        };
        let block = match variant {
            Variant::RegisterCopy => self.settings.threads.min(MOST_THREADS),
            _ => self.settings.threads,
        };
        // As wide as a row, if that is a divisor of the block; narrower where it wastes an eighth less of the threads.
        let padded = |shift: u32| u64::from(lanes.div_ceil(1 << shift)) << shift;
        let widest = block.trailing_zeros().min(lanes.next_power_of_two().trailing_zeros());
        let shift = (3..widest).rev().fold(
            widest,
            |best, shift| {
                if padded(shift) * 8 < padded(best) * 7 { shift } else { best }
            },
        );
        let height = block >> shift;
        let threads = padded(shift) * u64::from(rows) * u64::from(planes);
        let wanted = self.def.rows[dtype.size().ilog2().min(2) as usize].clamp(1, RUN);
        let wanted = if variant == Variant::Direct { wanted.max(ROWS_OF_SINGLES) } else { wanted };
        let deepest = u64::from(rows.div_ceil(height)).clamp(1, u64::from(wanted));
        let mut each = (threads / (busy / SPARE).max(1)).clamp(1, deepest) as u32;
        if dtype.size() == 1 {
            // A part of a run, of which the beginning costs more than the rows: see GeneratorOp::next.
            each = each.next_power_of_two().clamp(MIN_OF_A_RUN, RUN);
        } else if dtype.size() == 2 {
            each = each.next_multiple_of(GROUP);
        }
        let (across, down) = (lanes.div_ceil(1 << shift), rows.div_ceil(height * each));
        let blocks = u64::from(across) * u64::from(down) * u64::from(planes);
        if blocks > MAX_BLOCKS {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of {rows} rows and {columns} columns in {planes} planes", self.def.info.name),
                advice: "a grid has at most 2^31 - 1 blocks: take more threads, or views of a part each".to_owned(),
            }
            .into());
        }
        Ok(Cover { across, down, shift, each, blocks: blocks as u32, threads: block, variant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

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
                    let cover = kernel.cover(&call, dtype, 4096, busy).unwrap();
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
        let cover = |columns, address| {
            let kernel = kernels::sinusoidal(SinusoidalLayout::Interleaved);
            let call = Call { sizes: [1, 4096, columns], words: Words::default() };
            kernel.cover(&call, DType::F16, address, BUSY).unwrap()
        };
        assert_eq!(cover(512, 4096).variant, Variant::RegisterCopy);
        assert_eq!(cover(516, 4096).variant, Variant::Direct);
        assert_eq!(cover(512, 4098).variant, Variant::Direct);
        let wide = kernels::sinusoidal(SinusoidalLayout::Halves).threads(1024);
        let call = Call { sizes: [1, 4096, 512], words: Words::default() };
        assert_eq!(wide.cover(&call, DType::F16, 4096, BUSY).unwrap().threads, MOST_THREADS);
        assert_eq!(wide.cover(&call, DType::F16, 4098, BUSY).unwrap().threads, 1024);
        // 96 vectors: three blocks of 32 side by side rather than one of 128.
        assert_eq!((cover(768, 4096).shift, cover(768, 4096).across), (5, 3));
    }
}

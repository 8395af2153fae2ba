//! Fusion at run time: ops that become one kernel, with nothing but the driver.
//!
//! ```
//! use pointwise::prelude::*;
//! use pointwise::fusion::Lazy;
//!
//! let cpu = Device::cpu();
//! let [gate, up, residual] = [0.5_f32, 2.0, 1.0].map(|value| Tensor::full(&cpu, value, [4, 8]).unwrap());
//! let y = (gate.lazy().silu() * up.lazy() + residual.lazy()).eval()?;
//! assert_eq!(y.shape().dims(), [4, 8]);
//! # Ok::<(), pointwise::Error>(())
//! ```
//!
//! An [`Expr`] is a formula of tensors, which [`Expr::eval`] computes in one pass. A [`Graph`] is the same step by step; it
//! becomes a [`Fused`] kernel, which runs on any tensors. Floats are computed in f32, and rounded once, where they are stored.
//!
//! On a CUDA device a kernel's text is put together from the ops' bodies, which the build compiled and checked, and the driver
//! assembles it: some 10 to 40 ms the first time, less than 1 ms from the driver's cache on disk. One structure is assembled once per
//! process and device, for each way in which tensors lie; sizes do not count. Where 4,096 are loaded, the one that was used longest ago
//! makes room, and is assembled again when it is called. On the CPU the same steps run block by block through
//! the ops' loops.

mod body;
mod check;
mod compose;
mod cpu;
mod expr;
pub(crate) mod graph;
mod kernels;
mod plan;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

pub use check::FusedReport;
pub use expr::{Expr, Lazy, eval_all};
pub use graph::{Graph, MAX_FUSED_DRAWS, MAX_FUSED_OPERANDS, MAX_FUSED_RESULTS, MAX_FUSED_STEPS, Value};
pub use plan::FusedPlan;
pub use pointwise_core::rows::Reduction;

use graph::{Arg, StepKind};
use pointwise_core::DType;
use pointwise_core::rows::WARP;

use crate::cuda::LoadedKernel;
use crate::error::Result;
use crate::kernel::{LaunchSettings, Rng};
use crate::shape::Shape as TensorShape;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Device, Stream};

/// A kernel that was made of a [`Graph`]. A clone is the same kernel.
#[derive(Clone)]
pub struct Fused<'a> {
    pub(crate) program: Arc<Program>,
    settings: LaunchSettings,
    /// The places that masks of dropout draw from.
    rngs: Vec<Rng<'a>>,
}

/// A graph and its results.
pub(crate) struct Program {
    pub(crate) graph: Graph,
    pub(crate) results: Vec<usize>,
    /// Rounds of reductions.
    rounds: usize,
    /// The structure as text: graphs that differ in numbers alone have the same.
    key: String,
    /// Its kernels by device and variant, if they are still loaded.
    loaded: Mutex<HashMap<(usize, Variant), Weak<LoadedKernel>>>,
}

/// How a kernel's text depends on tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Variant {
    shape: Shape,
    /// Elements of a vector; 1 for single elements.
    lanes: usize,
    /// Dimensions of the steps that a kernel is given, the one along a row included.
    rank: usize,
    /// How each tensor lies along the innermost dimension: results, then operands.
    inner: Vec<Inner>,
    /// For each place to draw from: true if it is in memory. Empty before a call has them.
    placed: Vec<bool>,
}

/// How a kernel goes over the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    /// One vector for each thread.
    Elements,
    /// A row for so many threads. `held` vectors of a row are a thread's, at most; it is 0 where a row has more than that.
    Rows { threads: u32, held: usize },
}

/// How a tensor lies along the innermost dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Inner {
    Dense,
    /// One element for all.
    One,
    /// By a step that a kernel is given.
    Strided,
}

impl Variant {
    /// Threads of a block.
    fn block(&self) -> u32 {
        match self.shape {
            Shape::Elements => 256,
            // Four rows, each of a warp.
            Shape::Rows { threads: WARP, .. } => 4 * WARP,
            Shape::Rows { threads, .. } => threads,
        }
    }

    /// The lanes of a thread: of all vectors that it has at a time.
    fn width(&self) -> usize {
        match self.shape {
            Shape::Rows { held, .. } => self.lanes * held.max(1),
            Shape::Elements => self.lanes,
        }
    }

    /// Dimensions besides the one along a row.
    fn outer(&self) -> usize {
        match self.shape {
            Shape::Elements => self.rank,
            Shape::Rows { .. } => self.rank - 1,
        }
    }
}

impl Program {
    /// Tensors of a call: results, then operands, and the indices if elements draw random words.
    fn tensors(&self) -> usize {
        self.results.len() + self.graph.operands.len() + usize::from(self.graph.draws > 0)
    }

    /// The number of the tensor of indices, if elements draw random words. There is no memory of it: the address of an element is its
    /// row-major index, so that a walk finds it as any tensor's.
    fn indices(&self) -> Option<usize> {
        (self.graph.draws > 0).then(|| self.tensors() - 1)
    }

    /// The element type of a tensor; indices count as bytes.
    fn tensor(&self, k: usize) -> DType {
        match k.checked_sub(self.results.len()) {
            None => self.graph.values[self.results[k]].dtype,
            Some(operand) => self.graph.operands.get(operand).copied().unwrap_or(DType::U8),
        }
    }

    fn is_of_rows(&self) -> bool {
        self.rounds > 0
    }

    /// Which values these need, without what is one for each row: that is known before a row's elements are gone over.
    fn needed(&self, wanted: &[usize]) -> Vec<bool> {
        self.needed_through(wanted, false)
    }

    /// Which values the results need.
    fn needed_at_all(&self) -> Vec<bool> {
        self.needed_through(&self.results, true)
    }

    fn needed_through(&self, wanted: &[usize], through_rows: bool) -> Vec<bool> {
        let mut needed = vec![false; self.graph.values.len()];
        wanted.iter().for_each(|value| needed[*value] = true);
        for step in self.graph.steps.iter().rev() {
            let results = step.first..step.first + step.results;
            if !results.clone().any(|value| needed[value]) || !through_rows && self.graph.values[step.first].is_row {
                continue;
            }
            for arg in &step.args {
                if let Arg::Value(value) = arg {
                    needed[*value] = true;
                }
            }
        }
        needed
    }

    /// The reductions that the results need: step, reduction, argument, and the round of each.
    fn reductions(&self) -> impl Iterator<Item = (usize, Reduction, usize, usize)> {
        let needed = self.needed_at_all();
        self.graph.steps.iter().enumerate().filter_map(move |(at, step)| match (step.kind, &*step.args) {
            (StepKind::Reduce(reduction), [Arg::Value(arg)]) if needed[step.first] => {
                Some((at, reduction, *arg, self.graph.values[*arg].depth))
            }
            _ => None,
        })
    }

    fn reductions_of(&self, round: usize) -> Vec<(usize, Reduction, usize)> {
        let of_round = self.reductions().filter(|(.., it)| *it == round);
        of_round.map(|(step, reduction, arg, _)| (step, reduction, arg)).collect()
    }

    /// The place of a reduction among all.
    fn slot(&self, step: usize) -> usize {
        self.reductions().position(|(at, ..)| at == step).unwrap_or(0)
    }
}

impl<'a> Fused<'a> {
    fn new(graph: Graph, results: Vec<usize>) -> Fused<'static> {
        let mut program = Program { graph, results, rounds: 0, key: String::new(), loaded: Mutex::default() };
        program.rounds = program.reductions().map(|(.., round)| round + 1).max().unwrap_or(0);
        program.key = kernels::key(&program);
        Fused { program: Arc::new(program), settings: LaunchSettings::new(), rngs: Vec::new() }
    }

    /// Returns the kernel on a stream; `None` is the device's own.
    #[must_use]
    pub fn on_stream<'s>(mut self, stream: impl Into<Option<&'s Stream>>) -> Fused<'a> {
        self.settings.stream = stream.into().cloned();
        self
    }

    /// Returns the kernel with a place for each mask of dropout to draw from, in the order of the graph. Element `i`, counted in
    /// row-major order, takes word `i` of the place, as in [`ops::dropout`](crate::ops::dropout).
    #[must_use]
    pub fn rngs<'b>(self, rngs: impl IntoIterator<Item = Rng<'b>>) -> Fused<'b> {
        Fused { program: self.program, settings: self.settings, rngs: rngs.into_iter().collect() }
    }

    /// Computes the results in new contiguous tensors.
    ///
    /// # Errors
    /// Fails for another number of operands, other element types than the graph's, operands on different devices or that cannot be
    /// broadcast together; for an op without a body; for a first call in a capture; for lack of memory; the driver's.
    pub fn run(&self, operands: &[TensorView<'_>]) -> Result<Vec<Tensor>> {
        let shape = self.check_operands(operands)?;
        let device = operands[0].device();
        let mut results = Vec::with_capacity(self.program.results.len());
        for k in 0..self.program.results.len() {
            results.push(Tensor::empty(device, self.result_type(k), plan::result_shape(&self.program, k, &shape)?)?);
        }
        let mut views = Vec::with_capacity(results.len());
        for result in &mut results {
            views.push(result.view_mut()?);
        }
        self.run_checked(operands, &mut views, &shape)?;
        drop(views);
        Ok(results)
    }

    /// Computes the results into tensors that are there. A result may be an operand's very memory, if both have the same shape.
    ///
    /// # Errors
    /// Fails as [`Fused::run`], and for results of another number, shape, element type or device, and for memory that two results
    /// share, or a result and an operand that is not the same view. Results may take turns in one buffer, row by row.
    pub fn run_into(&self, operands: &[TensorView<'_>], results: &mut [TensorViewMut<'_>]) -> Result<()> {
        let shape = self.check_operands(operands)?;
        self.run_checked(operands, results, &shape)
    }

    /// Returns what a call would launch.
    ///
    /// # Errors
    /// Fails as [`Fused::run`] for operands that do not fit.
    pub fn plan(&self, operands: &[TensorView<'_>]) -> Result<FusedPlan> {
        let shape = self.check_operands(operands)?;
        plan::describe(&self.program, operands, &shape)
    }

    /// Returns the PTX of the kernel that a call on a device of a compute capability (90 is 9.0) would launch.
    ///
    /// # Errors
    /// Fails as [`Fused::plan`], and for an op without a body.
    pub fn ptx(&self, operands: &[TensorView<'_>], sm: u32) -> Result<String> {
        let shape = self.check_operands(operands)?;
        let variant = plan::variant_of_new_results(&self.program, operands, &shape)?;
        kernels::text(&self.program, &variant, sm)
    }

    /// Returns the element type of result `k`; of the last one for any larger `k`.
    #[must_use]
    pub fn result_type(&self, k: usize) -> DType {
        self.program.tensor(k.min(self.program.results.len() - 1))
    }

    /// Returns the shape of result `k` of a call: that to which the operands broadcast, or, of what is one for each row, that with 1
    /// in place of the last dimension.
    ///
    /// # Errors
    /// Fails as [`Fused::run`] for operands that do not fit.
    pub fn result_shape(&self, k: usize, operands: &[TensorView<'_>]) -> Result<TensorShape> {
        let shape = self.check_operands(operands)?;
        plan::result_shape(&self.program, k.min(self.program.results.len() - 1), &shape)
    }

    /// Checks the operands; returns the shape that they broadcast to.
    fn check_operands(&self, operands: &[TensorView<'_>]) -> Result<TensorShape> {
        plan::check_operands(&self.program, operands)
    }

    fn run_checked(
        &self,
        operands: &[TensorView<'_>],
        results: &mut [TensorViewMut<'_>],
        shape: &TensorShape,
    ) -> Result<()> {
        plan::check_results(&self.program, operands, results, shape)?;
        let device = operands[0].device();
        self.settings.check(device)?;
        self.check_rngs(device, results)?;
        if shape.contains(&0) && !(self.program.is_of_rows() && results.iter().any(|result| result.numel() > 0)) {
            return Ok(());
        }
        match device.context() {
            None => {
                let places = self.rngs.iter().map(Rng::on_cpu).collect::<Result<Vec<_>>>()?;
                // SAFETY: operands and results are checked; the results are exclusively borrowed.
                unsafe { cpu::run(&self.program, &places, operands, results, shape) }
            }
            // SAFETY: as above; the places are checked.
            Some(context) => unsafe { kernels::launch(self, context, operands, results, shape) },
        }
    }

    fn check_rngs(&self, device: &Device, results: &[TensorViewMut<'_>]) -> Result<()> {
        let (wanted, given) = (self.program.graph.draws, self.rngs.len());
        if wanted != given {
            let what = format!("{given} places to draw from in a fused kernel with {wanted} masks of dropout");
            return Err(graph::unsupported(what, "give one for each by `rngs`"));
        }
        let views: Vec<TensorView<'_>> = results.iter().map(TensorViewMut::as_view).collect();
        self.rngs.iter().try_for_each(|rng| rng.check("dropout in a fused kernel", device, &views))
    }
}

impl fmt::Debug for Fused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fused").field("steps", &self.program.key).finish_non_exhaustive()
    }
}

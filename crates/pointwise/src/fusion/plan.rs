//! From tensors to the variant of a kernel and its launches.

use std::fmt;

use pointwise_core::formula::MAX_TENSORS;
use pointwise_core::rows::WARP;

use super::compose::DIMENSION_WORDS;
use super::graph::{Arg, StepKind, unsupported};
use super::{Inner, Program, Shape as Form, Variant};
use crate::error::{ErrorKind, Result};
use crate::kernel::{Limit, OperandStrides, Places, Walk, broadcast};
use crate::shape::Shape;
use crate::tensor::{Overlap, TensorView, TensorViewMut, interleave, overlap};

/// The most threads of a row.
const MAX_THREADS: u32 = 512;

/// The launches of a call of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FusedPlan {
    /// Rounds of reductions over a row; 0 for a kernel on elements.
    pub rounds: usize,
    /// Elements of a vector; 1 where threads have single elements.
    pub lanes: usize,
    /// Threads of a block.
    pub threads: u32,
    /// True if a row's threads read it once: each has up to four vectors.
    pub is_held: bool,
    /// Launches: two where a vector kernel leaves some elements, one for fewer than 2^31 elements else.
    pub launches: usize,
    /// The steps, one a line.
    pub steps: String,
}

impl fmt::Display for FusedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FusedPlan { rounds, lanes, threads, is_held, launches, steps } = self;
        match rounds {
            0 => writeln!(f, "on elements: vectors of {lanes}, blocks of {threads} threads, launches: {launches}")?,
            _ => writeln!(
                f,
                "on rows: {rounds} round(s), vectors of {lanes}, blocks of {threads} threads, a row is read {}, launches: \
                 {launches}",
                if *is_held { "once".to_owned() } else { format!("{} times", rounds + 1) }
            )?,
        }
        f.write_str(steps)
    }
}

/// A kernel and the places that it is launched for.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) variant: Variant,
    /// Over items: vectors, elements or rows.
    pub(super) walk: Walk<MAX_TENSORS>,
    /// The first element of each tensor.
    pub(super) start: Places<MAX_TENSORS>,
    /// Vectors of a row.
    pub(super) len: u32,
    /// Steps along a row.
    pub(super) row: Places<MAX_TENSORS>,
}

/// The tensors of a call: results, then operands.
pub(super) struct Tensors {
    pub(super) at: [usize; MAX_TENSORS],
    pub(super) along: [OperandStrides; MAX_TENSORS],
}

impl Tensors {
    /// The tensors of a program, of checked views.
    pub(super) fn new<'a>(program: &Program, views: impl Iterator<Item = TensorView<'a>>, shape: &Shape) -> Tensors {
        let mut tensors = Tensors { at: [0; MAX_TENSORS], along: [OperandStrides::default(); MAX_TENSORS] };
        for ((view, at), along) in views.zip(&mut tensors.at).zip(&mut tensors.along) {
            (*at, *along) = (view.address(), broadcast(view.shape(), view.strides(), shape));
        }
        if let Some(k) = program.indices() {
            tensors.along[k] = broadcast(shape, &shape.contiguous_strides(), shape);
        }
        tensors
    }
}

/// Returns the launches of a call. The shape has elements, or rows without elements.
pub(super) fn launches(program: &Program, tensors: &Tensors, shape: &Shape) -> Result<Vec<Launch>> {
    if program.is_of_rows() { rows(program, tensors, shape) } else { Ok(elements(program, tensors, shape)) }
}

/// Elements of a vector: 16 bytes of the widest tensor, but at least four.
fn lanes(program: &Program) -> usize {
    let widest = (0..program.tensors()).map(|k| program.tensor(k).size()).max().unwrap_or(1);
    (16 / widest).max(4)
}

/// True if a tensor's vectors may begin `step` elements behind its first element.
fn is_aligned(program: &Program, tensors: &Tensors, lanes: usize, k: usize, step: i64) -> bool {
    if k >= program.tensors() {
        return true;
    }
    let dtype = program.tensor(k);
    let bytes = (lanes * dtype.size()).min(16) as i64;
    (tensors.at[k] as i64).wrapping_add(dtype.offset(step)) % bytes == 0
}

fn elements(program: &Program, tensors: &Tensors, shape: &Shape) -> Vec<Launch> {
    let walk = Walk::new(shape, &tensors.along);
    let lanes = lanes(program);
    let aligned = |k: usize, step: i64| is_aligned(program, tensors, lanes, k, step);
    let none = [0; MAX_TENSORS];
    let single = |walk: Walk<MAX_TENSORS>, start| {
        let inner = vec![Inner::Dense; program.tensors()];
        let variant = Variant { shape: Form::Elements, lanes: 1, rank: walk.dims().len(), inner, placed: Vec::new() };
        Launch { variant, walk, start, len: 0, row: none }
    };
    let vectors = |walk: &Walk<MAX_TENSORS>| {
        let items = walk.rows(lanes, aligned)?;
        let steps = walk.inner().1;
        let inner = (0..program.tensors()).map(|k| if steps[k] == 1 { Inner::Dense } else { Inner::One }).collect();
        let variant = Variant { shape: Form::Elements, lanes, rank: items.dims().len(), inner, placed: Vec::new() };
        Some(Launch { variant, walk: items, start: [0; MAX_TENSORS], len: 0, row: none })
    };
    if let Some(all) = vectors(&walk) {
        return vec![all];
    }
    let n = walk.numel() as usize;
    let body = n - n % lanes;
    if walk.is_flat() && body > 0 {
        let steps = walk.inner().1;
        let flat = |n: usize| Shape::new(&[n]).map(|shape| Walk::contiguous(&shape, steps));
        if let (Ok(body_walk), Ok(tail)) = (flat(body), flat(n - body))
            && let Some(vectors) = vectors(&body_walk)
        {
            return vec![vectors, single(tail, steps.map(|step| step * body as i64))];
        }
    }
    vec![single(walk, [0; MAX_TENSORS])]
}

fn rows(program: &Program, tensors: &Tensors, shape: &Shape) -> Result<Vec<Launch>> {
    let last = shape.rank().saturating_sub(1);
    let (len, outer) = (shape.last().copied().unwrap_or(1), Shape::new(&shape.dims()[..last])?);
    let mut steps: Places<MAX_TENSORS> = std::array::from_fn(|k| tensors.along[k][last]);
    let mut along = tensors.along;
    along.iter_mut().for_each(|steps| steps[last..].fill(0));
    if len == 1 {
        steps = [0; MAX_TENSORS];
    }
    let walk = Walk::new(&outer, &along);
    let mut lanes = lanes(program);
    let is_dense = steps[..program.tensors()].iter().all(|step| matches!(step, 0 | 1));
    let is_aligned = (0..program.tensors()).filter(|&k| steps[k] == 1).all(|k| {
        let mut steps = walk.dims().map(|(_, steps)| steps[k]).chain([0]);
        steps.all(|step| is_aligned(program, tensors, lanes, k, step))
    });
    if !(is_dense && is_aligned && len.is_multiple_of(lanes)) {
        lanes = 1;
    }
    let Ok(vectors) = u32::try_from(len / lanes) else {
        return Err(unsupported(format!("rows of {len} elements in a fused kernel"), "reduce parts of them"));
    };
    let (threads, held) = threads(vectors, lanes, program.tensors());
    let inner = (0..program.tensors())
        .map(|k| match steps[k] {
            0 => Inner::One,
            1 => Inner::Dense,
            _ => Inner::Strided,
        })
        .collect();
    let variant =
        Variant { shape: Form::Rows { threads, held }, lanes, rank: walk.dims().len() + 1, inner, placed: Vec::new() };
    Ok(vec![Launch { variant, walk, start: [0; MAX_TENSORS], len: vectors, row: steps }])
}

/// The threads of a row of so many vectors, and how many of them a thread has; 0 if it has them in turn. Several vectors for each
/// thread are on their way at once: up to four, where threads have as many each and warps are whole.
fn threads(vectors: u32, lanes: usize, tensors: usize) -> (u32, usize) {
    let most: &[u32] = match tensors {
        _ if lanes == 1 => &[1],
        ..=4 => &[4, 2, 1],
        5..=8 => &[2, 1],
        _ => &[1],
    };
    for &each in most {
        let threads = vectors / each;
        let is_whole = each == 1 || vectors.is_multiple_of(each * WARP);
        if is_whole && (1..=MAX_THREADS).contains(&threads) {
            return (threads.next_multiple_of(WARP), each as usize);
        }
    }
    (vectors.clamp(1, MAX_THREADS).next_multiple_of(WARP), usize::from(vectors == 0))
}

/// The elements of a vector and the threads of a row of `len` elements whose tensors are aligned and dense: the tree of its sums.
pub(super) fn tree(program: &Program, len: usize) -> (usize, usize) {
    let lanes = lanes(program);
    let lanes = if len.is_multiple_of(lanes) { lanes } else { 1 };
    let vectors = u32::try_from(len / lanes).unwrap_or(u32::MAX - WARP);
    (lanes, threads(vectors, lanes, program.tensors()).0 as usize)
}

impl Launch {
    /// Calls `run` for each part that one launch can do: its first elements, its items, and the steps that the kernel is given.
    pub(super) fn parts(
        &self,
        program: &Program,
        mut run: impl FnMut(&Places<MAX_TENSORS>, u32, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let tensors = program.tensors();
        self.walk.parts(Limit::STEPS, self.start, &mut |part, start| {
            // A part may have fewer dimensions than the whole: the kernel walks dimensions of size 1 for the others.
            let missing = self.variant.outer() - part.dims().len();
            let mut words: Vec<u32> = Vec::with_capacity(self.variant.rank.max(1) * (DIMENSION_WORDS + tensors));
            let mut dim = |size: usize, steps: &Places<MAX_TENSORS>| {
                words.extend(divisor(size));
                words.extend(steps[..tensors].iter().map(|&step| step as u32));
            };
            (0..missing).for_each(|_| dim(1, &[0; MAX_TENSORS]));
            part.dims().for_each(|(size, steps)| dim(size, steps));
            if program.is_of_rows() {
                dim(1, &self.row);
            }
            words.resize(self.variant.rank.max(1) * (DIMENSION_WORDS + tensors), 0);
            run(&start, part.numel() as u32, &words)
        })
    }

    fn count(&self) -> usize {
        self.walk.count_parts(Limit::STEPS) as usize
    }
}

/// The words that divide by a size: size, multiplier, shift.
fn divisor(size: usize) -> [u32; 3] {
    // Dimensions of size 1 stand outside of all others, where the index that is left is 0: any quotient of it is right.
    if size < 2 { [1, 0, 0] } else { pointwise_core::launch::Divisor::new(size as u32).words() }
}

/// Returns the shape of a result.
pub(super) fn result_shape(program: &Program, k: usize, shape: &Shape) -> Result<Shape> {
    if !program.graph.values[program.results[k]].is_row {
        return Ok(*shape);
    }
    row_shape(shape)
}

pub(super) fn check_operands(program: &Program, operands: &[TensorView<'_>]) -> Result<Shape> {
    let types = &program.graph.operands;
    let [first, ..] = operands else {
        return Err(unsupported("a fused kernel without operands".to_owned(), "give at least one tensor"));
    };
    if operands.len() != types.len() {
        let what = format!("{} operands of a fused kernel of {}", operands.len(), types.len());
        return Err(unsupported(what, "give the tensors in the order in which the graph has them"));
    }
    let mut shape = *first.shape();
    for (k, (operand, dtype)) in operands.iter().zip(types).enumerate() {
        if operand.dtype() != *dtype {
            let op = format!("operand {k} of a fused kernel");
            return Err(ErrorKind::DType { op, got: operand.dtype(), allowed: vec![*dtype] }.into());
        }
        if operand.device() != first.device() {
            let what = format!("operand {k} of a fused kernel");
            let (expected, got) = (*first.device(), *operand.device());
            return Err(ErrorKind::DeviceMismatch { what, expected, got }.into());
        }
        shape = shape.broadcast_with(operand.shape())?;
    }
    check_masks(program, operands, &shape)?;
    Ok(shape)
}

/// Refuses dropout of a value with fewer elements than the kernel goes over: it has one random word for each of its own.
fn check_masks(program: &Program, operands: &[TensorView<'_>], whole: &Shape) -> Result<()> {
    let graph = &program.graph;
    if graph.draws == 0 {
        return Ok(());
    }
    let mut shapes = vec![Shape::new(&[])?; graph.values.len()];
    shapes.iter_mut().zip(operands).for_each(|(shape, operand)| *shape = *operand.shape());
    for step in &graph.steps {
        let mut shape = Shape::new(&[])?;
        for arg in &step.args {
            if let Arg::Value(value) = arg {
                shape = shape.broadcast_with(&shapes[*value])?;
            }
        }
        match step.kind {
            StepKind::Reduce(_) => shape = row_shape(&shape)?,
            StepKind::DropoutMask { .. } if shape != *whole => {
                let what = format!("dropout of {shape} in a fused kernel of {whole}");
                return Err(unsupported(what, "compute what has fewer elements first"));
            }
            _ => {}
        }
        shapes[step.first..step.first + step.results].fill(shape);
    }
    Ok(())
}

/// Returns a shape with 1 in place of the last dimension.
fn row_shape(shape: &Shape) -> Result<Shape> {
    let mut dims = shape.dims().to_vec();
    if let Some(last) = dims.last_mut() {
        *last = 1;
    }
    Shape::new(&dims)
}

pub(super) fn check_results(
    program: &Program,
    operands: &[TensorView<'_>],
    results: &[TensorViewMut<'_>],
    shape: &Shape,
) -> Result<()> {
    if results.len() != program.results.len() {
        let what = format!("{} results of a fused kernel of {}", results.len(), program.results.len());
        return Err(unsupported(what, "give a tensor for each result"));
    }
    for (k, result) in results.iter().enumerate() {
        let (view, what) = (result.as_view(), format!("result {k} of a fused kernel"));
        let (dtype, expected) = (program.tensor(k), result_shape(program, k, shape)?);
        if view.dtype() != dtype {
            return Err(ErrorKind::DType { op: what, got: view.dtype(), allowed: vec![dtype] }.into());
        }
        if *view.shape() != expected {
            return Err(ErrorKind::ShapeMismatch { what, expected, got: *view.shape() }.into());
        }
        if view.device() != operands[0].device() {
            let (expected, got) = (*operands[0].device(), *view.device());
            return Err(ErrorKind::DeviceMismatch { what, expected, got }.into());
        }
        // A result that a row has once is written while other threads read the row's elements.
        let is_row = program.graph.values[program.results[k]].is_row;
        for (i, operand) in operands.iter().enumerate() {
            let met = overlap(operand, &view);
            if met == Overlap::Partial || met == Overlap::Exact && is_row {
                return Err(ErrorKind::Overlap { what: format!("operand {i} and {what}") }.into());
            }
        }
        for (i, other) in results[..k].iter().enumerate() {
            let other = other.as_view();
            if overlap(&other, &view) != Overlap::None && !interleave(&other, &view) {
                return Err(ErrorKind::Overlap { what: format!("result {i} and {what}") }.into());
            }
        }
    }
    Ok(())
}

/// Returns the variant of a call with new results.
pub(super) fn variant_of_new_results(program: &Program, operands: &[TensorView<'_>], shape: &Shape) -> Result<Variant> {
    let launches = new_launches(program, operands, shape)?;
    let first = launches.into_iter().next();
    first.map(|launch| launch.variant).ok_or_else(|| unsupported("no launch".to_owned(), "give operands with elements"))
}

fn new_launches(program: &Program, operands: &[TensorView<'_>], shape: &Shape) -> Result<Vec<Launch>> {
    // As new results lie: contiguous and aligned.
    let (first, count) = (operands[0], program.results.len());
    let views = std::iter::repeat_n(first, count).chain(operands.iter().copied());
    let mut tensors = Tensors::new(program, views, shape);
    for k in 0..count {
        let own = result_shape(program, k, shape)?;
        tensors.at[k] = 0;
        tensors.along[k] = broadcast(&own, &own.contiguous_strides(), shape);
    }
    launches(program, &tensors, shape)
}

/// Returns what a call would launch.
pub(super) fn describe(program: &Program, operands: &[TensorView<'_>], shape: &Shape) -> Result<FusedPlan> {
    let launches = new_launches(program, operands, shape)?;
    let Some(first) = launches.first() else {
        return Err(unsupported("no launch".to_owned(), "give operands with elements"));
    };
    Ok(FusedPlan {
        rounds: program.rounds,
        lanes: first.variant.lanes,
        threads: first.variant.block(),
        is_held: matches!(first.variant.shape, Form::Rows { held: 1.., .. }),
        launches: launches.iter().map(Launch::count).sum(),
        steps: program.key.clone(),
    })
}

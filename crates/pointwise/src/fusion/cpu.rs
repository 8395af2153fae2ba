//! Fused kernels on the CPU: block by block through the ops' loops.
//!
//! A value is a buffer of one block: f32 for floats, elements for integers and bools. A row is gone over once for each round of
//! reductions and once for the results, and its sums have the tree of a device's kernel.

use pointwise_core::convert::rounded;
use pointwise_core::formula::{MAX_INPUTS, MAX_OUTPUTS, MAX_TENSORS, MAX_WORDS, ParamWords};
use pointwise_core::rows::{Reduction, WARP};
use pointwise_core::{DType, Draw, Philox};

use super::Program;
use super::graph::{Arg, Step, StepKind};
use super::plan::{self, Tensors};
use crate::cpu::draw::dropout_mask;
use crate::cpu::parallel::{TASK, split, tasks};
use crate::cpu::{FormulaFn, Source, Target, blocks, runs};
use crate::element::is_narrow;
use crate::error::Result;
use crate::kernel::{OperandStrides, Places, Walk};
use crate::shape::Shape;
use crate::tensor::{TensorView, TensorViewMut};

/// Elements of a block: ten buffers of f32 stay in a cache of 48 KiB. Half as many take between 0.9 and 1.6 of the time where tensors come
/// from memory, by where these lie.
const BLOCK: usize = 1024;

/// A program with its loops, and the memory of a call: results, then operands.
struct Call<'a> {
    program: &'a Program,
    /// The places that masks of dropout draw from.
    places: &'a [Philox],
    loops: Vec<Option<FormulaFn>>,
    at: [*mut u8; MAX_TENSORS],
    /// By value the result that it is, if it can be computed where that lies: no operand is there, and its elements are a buffer's.
    direct: Vec<Option<usize>>,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl Sync for Call<'_> {}

/// A line of a cache. A vector of 64 bytes that lies across two takes twice as long.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u64; 8]);

/// The buffers of a thread, in one piece of memory.
struct Buffers {
    /// Keeps the memory. It is written through `first` alone.
    _memory: Vec<Line>,
    first: *mut u8,
    /// The offset of each value, in bytes.
    places: Vec<usize>,
}

impl Buffers {
    /// The first element of a value's buffer.
    fn at(&self, value: usize) -> *mut u8 {
        self.first.wrapping_add(self.places[value])
    }
}

/// The values that a row needs, the same for all rows.
struct Passes {
    /// All.
    all: Vec<bool>,
    rounds: Vec<Round>,
    /// The values needed by results with an element for each of the row's; `None` if there are no such results.
    last: Option<Vec<bool>>,
}

/// A round of reductions.
struct Round {
    /// Step, reduction and argument of each.
    reductions: Vec<(usize, Reduction, usize)>,
    /// The values that they need.
    needed: Vec<bool>,
}

impl Passes {
    fn new(program: &Program) -> Passes {
        let rounds = (0..program.rounds).map(|round| {
            let reductions = program.reductions_of(round);
            let given: Vec<usize> = reductions.iter().map(|(_, _, arg)| *arg).collect();
            let needed = program.needed(&given);
            Round { reductions, needed }
        });
        let of_elements = program.results.iter().copied().filter(|it| !program.graph.values[*it].is_row);
        let of_elements: Vec<usize> = of_elements.collect();
        Passes {
            all: program.needed_at_all(),
            rounds: rounds.collect(),
            last: (!of_elements.is_empty()).then(|| program.needed(&of_elements)),
        }
    }
}

/// The place of a value's elements: in a buffer, or in a tensor.
#[derive(Clone, Copy)]
struct Elements {
    pointer: *mut u8,
    step: isize,
}

/// Runs a program.
///
/// # Safety
/// The views are checked: of the program's types, on the CPU, results of the operands' common shape, which share memory with an operand
/// only if they are the same view. The results may be written. There is a place for each step that draws.
pub(super) unsafe fn run(
    program: &Program,
    places: &[Philox],
    operands: &[TensorView<'_>],
    results: &mut [TensorViewMut<'_>],
    shape: &Shape,
) -> Result<()> {
    let mut at = [std::ptr::null_mut(); MAX_TENSORS];
    let count = results.len();
    for (at, result) in at.iter_mut().zip(results.iter_mut()) {
        *at = result.as_mut_ptr()?;
    }
    for (at, operand) in at[count..].iter_mut().zip(operands) {
        *at = operand.as_ptr().cast_mut();
    }
    let views: Vec<TensorView<'_>> = results.iter().map(TensorViewMut::as_view).collect();
    let along = Tensors::new(program, views.iter().chain(operands).copied(), shape).along;
    let mut loops = Vec::with_capacity(program.graph.steps.len());
    for step in &program.graph.steps {
        loops.push(match step.kind {
            StepKind::Op { def, .. } => Some(def.cpu(in_loops(step.dtype))?),
            _ => None,
        });
    }
    let mut direct = vec![None; program.graph.values.len()];
    for (k, &value) in program.results.iter().enumerate() {
        let known = &program.graph.values[value];
        // A result shares memory with no operand but one that is the same view.
        let is_free = !is_narrow(known.dtype) && !known.is_row && !at[count..program.tensors()].contains(&at[k]);
        direct[value] = is_free.then_some(k).or(direct[value]);
    }
    let call = Call { program, places, loops, at, direct };
    // SAFETY: the caller's contract.
    unsafe { if program.is_of_rows() { call.rows(shape, &along) } else { call.elements(shape, &along) } };
    Ok(())
}

/// The type of the loops for values of a type.
fn in_loops(dtype: DType) -> DType {
    if dtype.is_float() { DType::F32 } else { dtype }
}

impl Call<'_> {
    fn buffers(&self) -> Buffers {
        // All that are ever read, so that none is missing, and the other results of their steps, which are written.
        let graph = &self.program.graph;
        let mut needed = self.program.needed_at_all();
        for step in &graph.steps {
            let results = &mut needed[step.first..step.first + step.results];
            let is_any = results.contains(&true);
            results.fill(is_any);
        }
        // Blocks of tensors begin at the same place of a page; a load that follows a store to the same place of another page waits. So no
        // two buffers begin there.
        const APART: usize = 5 * size_of::<Line>();
        let mut end = 4 * APART;
        let mut places = Vec::with_capacity(needed.len());
        for (known, is_needed) in graph.values.iter().zip(needed) {
            places.push(end);
            if is_needed {
                end += BLOCK * known.dtype.size().max(size_of::<f32>()) + APART;
            }
        }
        let mut memory = vec![Line([0; 8]); end.div_ceil(size_of::<Line>()) + 1];
        let first = memory.as_mut_ptr().cast();
        Buffers { _memory: memory, first, places }
    }

    /// Computes all elements.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor.
    unsafe fn elements(&self, shape: &Shape, along: &[OperandStrides; MAX_TENSORS]) {
        let walk = Walk::new(shape, along);
        let needed = self.program.needed(&self.program.results);
        split(walk.numel() as usize, |start, len| {
            let mut buffers = self.buffers();
            runs(&walk, start, len, |first, step, n| {
                let mut done = 0;
                while done < n {
                    let block = BLOCK.min(n - done);
                    let place = std::array::from_fn(|k| first[k] + step[k] * done as i64);
                    // SAFETY: the caller's contract: places of the walk.
                    unsafe {
                        self.compute(&mut buffers, &place, step, block, &needed, &|step| self.is_of_elements(step));
                        self.store(&buffers, &place, step, block, false);
                    }
                    done += block;
                }
            });
        });
    }

    fn is_of_elements(&self, step: &Step) -> bool {
        !self.program.graph.values[step.first].is_row
    }

    /// Computes all rows.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor.
    unsafe fn rows(&self, shape: &Shape, along: &[OperandStrides; MAX_TENSORS]) {
        let last = shape.rank().saturating_sub(1);
        let len = shape.last().copied().unwrap_or(1);
        let step: Places<MAX_TENSORS> = std::array::from_fn(|k| if len == 1 { 0 } else { along[k][last] });
        let mut outer_along = *along;
        outer_along.iter_mut().for_each(|steps| steps[last..].fill(0));
        let Ok(outer) = Shape::new(&shape.dims()[..last]) else { return };
        let walk = Walk::new(&outer, &outer_along);
        let rows = walk.numel() as usize;
        let together = (TASK / len.max(1)).max(1);
        let passes = Passes::new(self.program);
        tasks(rows.div_ceil(together), |task| {
            let mut buffers = self.buffers();
            for row in task * together..rows.min((task + 1) * together) {
                let place = walk.place(row as u64);
                // SAFETY: the caller's contract: places of the walk.
                unsafe { self.row(&mut buffers, &passes, &place, &step, len) };
            }
        });
    }

    /// Computes a row.
    ///
    /// # Safety
    /// The row's elements are valid in every tensor.
    unsafe fn row(
        &self,
        buffers: &mut Buffers,
        passes: &Passes,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
        len: usize,
    ) {
        let (program, all) = (self.program, &passes.all);
        let (lanes, threads) = plan::tree(program, len);
        for step in program.graph.steps.iter().filter(|step| matches!(step.kind, StepKind::Len) && all[step.first]) {
            // SAFETY: the buffer has room for one f32.
            unsafe { buffers.at(step.first).cast::<f32>().write(len as f32) };
        }
        // SAFETY: values of rows are buffers of one element.
        unsafe { self.compute_of_rows(buffers, place, step, all, 0) };
        for (round, Round { reductions, needed }) in passes.rounds.iter().enumerate() {
            let mut parts: Vec<Vec<f32>> =
                reductions.iter().map(|(_, reduction, _)| vec![reduction.neutral(); threads]).collect();
            let mut done = 0;
            while done < len {
                let block = BLOCK.min(len - done);
                let at = std::array::from_fn(|k| place[k] + step[k] * done as i64);
                // SAFETY: the caller's contract.
                unsafe { self.compute(buffers, &at, step, block, needed, &|step| self.is_of_elements(step)) };
                for ((_, reduction, arg), parts) in reductions.iter().zip(&mut parts) {
                    let elements = self.elements_of(buffers, *arg, &at, step);
                    for i in 0..block {
                        // SAFETY: the block's values are computed; floats that are no buffer are f32.
                        let value = unsafe { elements.pointer.cast::<f32>().offset(i as isize * elements.step).read() };
                        let part = &mut parts[(done + i) / lanes % threads];
                        *part = reduction.join(*part, value);
                    }
                }
                done += block;
            }
            for ((at, reduction, _), parts) in reductions.iter().zip(parts) {
                let total = together(*reduction, &parts);
                let total = if *reduction == Reduction::Mean { total / len as f32 } else { total };
                let value = program.graph.steps[*at].first;
                // SAFETY: the buffer has room for one f32.
                unsafe { buffers.at(value).cast::<f32>().write(total) };
            }
            // SAFETY: values of rows are buffers of one element.
            unsafe { self.compute_of_rows(buffers, place, step, all, round + 1) };
        }
        if let Some(needed) = &passes.last {
            let mut done = 0;
            while done < len {
                let block = BLOCK.min(len - done);
                let at = std::array::from_fn(|k| place[k] + step[k] * done as i64);
                // SAFETY: the caller's contract.
                unsafe {
                    self.compute(buffers, &at, step, block, needed, &|step| self.is_of_elements(step));
                    self.store(buffers, &at, step, block, false);
                }
                done += block;
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.store(buffers, place, step, 1, true) };
    }

    /// Computes what is one value for each row and needs so many rounds of reductions.
    ///
    /// # Safety
    /// The place is valid in every operand.
    unsafe fn compute_of_rows(
        &self,
        buffers: &mut Buffers,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
        needed: &[bool],
        depth: usize,
    ) {
        let is_due = |step: &Step| {
            !self.is_of_elements(step)
                && !matches!(step.kind, StepKind::Reduce(_) | StepKind::Len)
                && self.program.graph.values[step.first].depth == depth
        };
        // SAFETY: the caller's contract.
        unsafe { self.compute(buffers, place, step, 1, needed, &is_due) };
    }

    /// Returns the elements of a value, in a block that begins at a place.
    fn elements_of(
        &self,
        buffers: &Buffers,
        value: usize,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
    ) -> Elements {
        let known = &self.program.graph.values[value];
        let is_operand = value < self.program.graph.operands.len();
        if is_operand && !is_narrow(known.dtype) {
            let k = self.program.results.len() + value;
            let pointer = self.at[k].wrapping_offset(known.dtype.offset(place[k]) as isize);
            return Elements { pointer, step: step[k] as isize };
        }
        Elements { pointer: self.place_of(buffers, value, place, step), step: isize::from(!known.is_row) }
    }

    /// Returns the address that a value is computed at, in a block that begins at a place.
    fn place_of(
        &self,
        buffers: &Buffers,
        value: usize,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
    ) -> *mut u8 {
        match self.direct[value] {
            Some(k) if step[k] == 1 => self.at[k].wrapping_offset(self.program.tensor(k).offset(place[k]) as isize),
            _ => buffers.at(value),
        }
    }

    /// Computes the needed values of a block, by the steps that `is_due` says.
    ///
    /// # Safety
    /// `n` elements from the place on, at the steps, are valid in every operand.
    unsafe fn compute(
        &self,
        buffers: &mut Buffers,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
        n: usize,
        needed: &[bool],
        is_due: &dyn Fn(&Step) -> bool,
    ) {
        let graph = &self.program.graph;
        for (value, dtype) in graph.operands.iter().enumerate() {
            if needed[value] && is_narrow(*dtype) {
                let k = self.program.results.len() + value;
                let pointer = self.at[k].wrapping_offset(dtype.offset(place[k]) as isize);
                let source = Source { pointer, step: step[k] as isize, word: None };
                // SAFETY: the caller's contract; the buffer has room for a block.
                unsafe { blocks::widen(*dtype, source, n, buffers.at(value).cast()) };
            }
        }
        for (at, of) in graph.steps.iter().enumerate() {
            let results = of.first..of.first + of.results;
            if !is_due(of) || !results.clone().any(|value| needed[value]) {
                continue;
            }
            // Arrays: a block is over too soon for memory to be allocated for each step.
            let mut sources = [Source { pointer: std::ptr::null(), step: 0, word: None }; MAX_INPUTS];
            for (source, arg) in sources.iter_mut().zip(&of.args) {
                match arg {
                    Arg::Word(word) => source.word = Some(graph.words[*word]),
                    Arg::Value(value) => {
                        let elements = self.elements_of(buffers, *value, place, step);
                        (source.pointer, source.step) = (elements.pointer, elements.step);
                    }
                }
            }
            let mut targets = [Target { pointer: std::ptr::null_mut(), step: 1 }; MAX_OUTPUTS];
            for (target, value) in targets.iter_mut().zip(results.clone()) {
                target.pointer = self.place_of(buffers, value, place, step);
            }
            let (sources, targets) = (&sources[..of.args.len()], &targets[..results.len()]);
            match (of.kind, self.loops[at]) {
                (StepKind::Op { words, .. }, Some(run)) => {
                    let mut params: ParamWords = [0; MAX_WORDS];
                    params.iter_mut().zip(&graph.words[words..]).for_each(|(param, word)| *param = *word);
                    // SAFETY: sources and targets are of the op's types and apart; the caller's contract.
                    unsafe { run(sources, targets, n, &params, &Draw::NONE) };
                }
                (StepKind::Convert { to }, _) => {
                    let [source] = sources else { continue };
                    // SAFETY: as above.
                    unsafe { convert(of.dtype, to, *source, targets[0].pointer, n) };
                }
                (StepKind::DropoutMask { draw, limit }, _) => {
                    let Some((k, philox)) = self.program.indices().zip(self.places.get(draw)) else { continue };
                    let (limit, mask) = (graph.words[limit], targets[0].pointer);
                    // SAFETY: the buffer has room for a block.
                    unsafe {
                        if step[k] == 1 {
                            dropout_mask(*philox, place[k] as u64, limit, mask, n);
                            continue;
                        }
                        for i in 0..n {
                            let index = place[k] + step[k] * i as i64;
                            dropout_mask(*philox, index as u64, limit, mask.add(i), 1);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Stores the results of a block: those of rows, or the others.
    ///
    /// # Safety
    /// `n` elements from the place on, at the steps, may be written in every result; the values are computed.
    unsafe fn store(
        &self,
        buffers: &Buffers,
        place: &Places<MAX_TENSORS>,
        step: &Places<MAX_TENSORS>,
        n: usize,
        of_rows: bool,
    ) {
        for (k, &value) in self.program.results.iter().enumerate() {
            let known = &self.program.graph.values[value];
            if known.is_row != of_rows {
                continue;
            }
            let dtype = known.dtype;
            let pointer = self.at[k].wrapping_offset(dtype.offset(place[k]) as isize);
            let target = Target { pointer, step: step[k] as isize };
            // A result is no operand, and n is 1 where there is one value for each row.
            let from = self.place_of(buffers, value, place, step);
            if from == pointer {
                continue;
            }
            // SAFETY: the caller's contract.
            unsafe {
                if is_narrow(dtype) {
                    blocks::narrow(dtype, from.cast(), n, target);
                    continue;
                }
                if target.step == 1 {
                    // Fits: a block is short.
                    std::ptr::copy(from, pointer, dtype.bytes_of(n).unwrap_or_default());
                    continue;
                }
                for i in 0..n as i64 {
                    let [from_at, to_at] = [i, i * step[k]].map(|place| dtype.offset(place) as isize);
                    std::ptr::copy(from.offset(from_at), pointer.offset(to_at), dtype.size());
                }
            }
        }
    }
}

/// The answer of the parts of a row's threads, in the order of a device: a butterfly in each warp, then one over the warps.
fn together(reduction: Reduction, parts: &[f32]) -> f32 {
    let warps: Vec<f32> = parts.chunks(WARP as usize).map(|parts| butterfly(reduction, parts)).collect();
    if let [one] = warps[..] { one } else { butterfly(reduction, &warps) }
}

fn butterfly(reduction: Reduction, parts: &[f32]) -> f32 {
    let mut lanes = [reduction.neutral(); WARP as usize];
    lanes[..parts.len()].copy_from_slice(parts);
    for apart in [16, 8, 4, 2, 1] {
        lanes = std::array::from_fn(|lane| reduction.join(lanes[lane], lanes[lane ^ apart]));
    }
    lanes[0]
}

/// Converts `n` elements, by the rules of `pointwise_core::cast`.
///
/// # Safety
/// They are valid for reading, and the target for writing so many.
unsafe fn convert(from: DType, to: DType, source: Source, target: *mut u8, n: usize) {
    // SAFETY: the caller's contract, at each element.
    unsafe {
        let each = |one: &mut dyn FnMut(isize)| (0..n as isize).for_each(one);
        let at = |i: isize, size: usize| source.pointer.offset(i * source.step * size as isize);
        if from.is_float() {
            let x = |i| at(i, 4).cast::<f32>().read();
            match to {
                DType::Bool => each(&mut |i| target.offset(i).write(u8::from(x(i) != 0.0))),
                DType::I8 => each(&mut |i| target.cast::<i8>().offset(i).write(x(i) as i8)),
                DType::U8 => each(&mut |i| target.offset(i).write(x(i) as i64 as u8)),
                DType::I16 => each(&mut |i| target.cast::<i16>().offset(i).write(x(i) as i16)),
                DType::I32 => each(&mut |i| target.cast::<i32>().offset(i).write(x(i) as i32)),
                DType::I64 => each(&mut |i| target.cast::<i64>().offset(i).write(x(i) as i64)),
                _ => each(&mut |i| target.cast::<f32>().offset(i).write(rounded(x(i), to))),
            }
            return;
        }
        let x = |i: isize| match from {
            DType::Bool => i64::from(at(i, 1).read() != 0),
            DType::U8 => at(i, 1).read().into(),
            DType::I8 => at(i, 1).cast::<i8>().read().into(),
            DType::I16 => at(i, 2).cast::<i16>().read().into(),
            DType::I32 => at(i, 4).cast::<i32>().read().into(),
            _ => at(i, 8).cast::<i64>().read(),
        };
        match to {
            DType::Bool => each(&mut |i| target.offset(i).write(u8::from(x(i) != 0))),
            DType::U8 | DType::I8 => each(&mut |i| target.offset(i).write(x(i) as u8)),
            DType::I16 => each(&mut |i| target.cast::<i16>().offset(i).write(x(i) as i16)),
            DType::I32 => each(&mut |i| target.cast::<i32>().offset(i).write(x(i) as i32)),
            DType::I64 => each(&mut |i| target.cast::<i64>().offset(i).write(x(i))),
            _ => each(&mut |i| target.cast::<f32>().offset(i).write(rounded(x(i) as f32, to))),
        }
    }
}

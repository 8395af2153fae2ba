//! The PTX of a fused kernel: loads, the bodies of its steps, stores.
//!
//! On elements, a thread has one vector along the innermost dimension, or one element. On rows, a warp or a block has a row, and
//! goes over it once for each round of reductions and once for the results; a row of up to four vectors for each thread is read
//! once. A value is a register for each lane: f32 for floats, 32 bits for integers and bools, 64 bits for i64.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use pointwise_core::rows::{Reduction, WARP};
use pointwise_core::{Blocks, DType};

use super::body::{Body, Names};
use super::graph::{Arg, Source, Step, StepKind};
use super::{Inner, Program, Shape, Variant};

/// The name of the entry.
pub(super) const SYMBOL: &str = "pointwise_fused";
/// Words of a dimension in the steps that a kernel is given, beside one for each tensor: size, multiplier, shift.
pub(super) const DIMENSION_WORDS: usize = 3;

/// Bodies by where they are needed: op and element type.
pub(super) type Bodies = HashMap<(usize, DType), Arc<Body>>;

/// The key of a step's body.
pub(super) fn body_key(step: &Step) -> Option<(usize, DType)> {
    match step.kind {
        StepKind::Op { def, .. } => Some((std::ptr::from_ref(def) as usize, step.dtype)),
        _ => None,
    }
}

/// Returns the text of a kernel for devices of a compute capability.
pub(super) fn compose(program: &Program, variant: &Variant, bodies: &Bodies, sm: u32) -> String {
    let waits = sm >= 90;
    let mut writer = Writer {
        program,
        variant,
        bodies,
        registers: String::new(),
        code: String::new(),
        copies: 0,
        temporaries: [0; 3],
        labels: 0,
        has_fp8: waits,
        names: vec![Vec::new(); program.graph.values.len()],
        written: vec![false; program.graph.steps.len()],
        loaded: vec![None; program.graph.operands.len()],
        places: Vec::new(),
        index: String::new(),
    };
    match variant.shape {
        Shape::Elements => writer.elements(),
        Shape::Rows { .. } => writer.rows(),
    }
    let (version, target) = if waits { ("7.8", "sm_90") } else { ("7.0", "sm_80") };
    let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n\n.visible .entry {SYMBOL}(\n");
    let tensors = program.tensors();
    let pointers = (0..tensors).map(|k| format!("\t.param .u64 t{k}"));
    let words = (0..program.graph.words.len()).map(|k| format!("\t.param .u64 w{k}"));
    let places = (0..program.graph.draws).map(|k| format!("\t.param .align 8 .b8 place{k}[{}]", size_of::<Blocks>()));
    let bytes = 4 * variant.rank.max(1) * (DIMENSION_WORDS + tensors);
    let more = [
        "\t.param .u32 items".to_owned(),
        "\t.param .u32 len".to_owned(),
        format!("\t.param .align 4 .b8 steps[{bytes}]"),
    ];
    text += &pointers.chain(words).chain(places).chain(more).collect::<Vec<_>>().join(",\n");
    let threads = variant.block();
    _ = write!(text, "\n)\n.maxntid {threads}, 1, 1\n{{\n{}", writer.registers);
    if let Shape::Rows { .. } = variant.shape {
        let reductions = program.reductions().count().max(1);
        _ = writeln!(text, "\t.shared .align 16 .b8 parts[{}];", 128 * reductions);
    }
    if waits {
        text += "\tgriddepcontrol.wait;\n";
    }
    text += &writer.code;
    text += "$end:\n\tret;\n}\n";
    text
}

/// A text in the making.
struct Writer<'a> {
    program: &'a Program,
    variant: &'a Variant,
    bodies: &'a Bodies,
    registers: String,
    code: String,
    /// Copies of bodies so far.
    copies: usize,
    /// Temporary registers so far: of 16, 32 and 64 bits.
    temporaries: [usize; 3],
    labels: usize,
    /// True for a device with instructions for 8-bit floats.
    has_fp8: bool,
    /// The registers of each value, one for each lane, or one where all lanes have the same.
    names: Vec<Vec<String>>,
    /// The steps that are computed.
    written: Vec<bool>,
    /// Lanes and words of the operands that are loaded, and not converted yet.
    loaded: Vec<Option<(usize, Vec<String>)>>,
    /// The places that masks of dropout draw from.
    places: Vec<Place>,
    /// The row-major index of a thread's first element.
    index: String,
}

/// Adds a line of code.
macro_rules! line {
    ($writer:expr, $($text:tt)*) => {{
        $writer.code.push('\t');
        _ = writeln!($writer.code, $($text)*);
    }};
}

mod convert;
mod random;

use random::Place;

impl Writer<'_> {
    fn temporary(&mut self, bits: usize) -> String {
        let (class, name) = match bits {
            16 => (0, "h"),
            64 => (2, "q"),
            _ => (1, "t"),
        };
        let register = format!("%{name}{}", self.temporaries[class]);
        self.temporaries[class] += 1;
        _ = writeln!(self.registers, "\t.reg .b{bits} {register};");
        register
    }

    fn declared(&mut self, kind: &str, name: &str) -> String {
        _ = writeln!(self.registers, "\t.reg .{kind} {name};");
        name.to_owned()
    }

    /// The registers of a value: declared when it is first written.
    fn registers_of(&mut self, value: usize, lanes: usize) -> Vec<String> {
        if self.names[value].len() != lanes {
            let bits = if self.program.graph.values[value].dtype == DType::I64 { 64 } else { 32 };
            self.names[value] = (0..lanes).map(|_| self.temporary(bits)).collect();
        }
        self.names[value].clone()
    }

    /// A value's register in a lane.
    fn at(&self, value: usize, lane: usize) -> String {
        let names = &self.names[value];
        names.get(lane).or(names.first()).cloned().unwrap_or_default()
    }

    /// The offset of each tensor for the item in a register, in elements, as 32-bit registers.
    fn offsets(&mut self, item: &str) -> Vec<String> {
        let (tensors, rank) = (self.program.tensors(), self.variant.outer());
        let stride = 4 * (DIMENSION_WORDS + tensors);
        let mut offsets = Vec::with_capacity(tensors);
        for _ in 0..tensors {
            let offset = self.temporary(32);
            line!(self, "mov.b32 {offset}, 0;");
            offsets.push(offset);
        }
        let mut rest = item.to_owned();
        for dim in (0..rank).rev() {
            let base = dim * stride;
            let mut index = rest.clone();
            if dim > 0 {
                let [size, multiplier, shift, quotient, along] = std::array::from_fn(|_| self.temporary(32));
                line!(self, "ld.param.u32 {size}, [steps+{base}];");
                line!(self, "ld.param.u32 {multiplier}, [steps+{}];", base + 4);
                line!(self, "ld.param.u32 {shift}, [steps+{}];", base + 8);
                line!(self, "mul.hi.u32 {quotient}, {rest}, {multiplier};");
                line!(self, "shr.u32 {quotient}, {quotient}, {shift};");
                line!(self, "mul.lo.u32 {along}, {quotient}, {size};");
                line!(self, "sub.u32 {along}, {rest}, {along};");
                (rest, index) = (quotient, along);
            }
            for (k, offset) in offsets.iter().enumerate() {
                let step = self.temporary(32);
                line!(self, "ld.param.u32 {step}, [steps+{}];", base + 4 * (DIMENSION_WORDS + k));
                line!(self, "mad.lo.u32 {offset}, {index}, {step}, {offset};");
            }
        }
        offsets
    }

    /// The addresses at offsets in elements.
    fn addresses(&mut self, offsets: &[String]) -> Vec<String> {
        let mut addresses = Vec::with_capacity(offsets.len());
        for (k, offset) in offsets.iter().enumerate() {
            let [first, address] = std::array::from_fn(|_| self.temporary(64));
            line!(self, "ld.param.u64 {first}, [t{k}];");
            line!(self, "mul.wide.s32 {address}, {offset}, {};", self.program.tensor(k).size());
            line!(self, "add.s64 {address}, {address}, {first};");
            addresses.push(address);
        }
        addresses
    }

    /// One vector or element for each thread.
    fn elements(&mut self) {
        let [block, threads, thread, item, items] =
            ["%block", "%threads", "%thread", "%item", "%items"].map(|name| self.declared("b32", name));
        self.declared("pred", "%out");
        line!(self, "mov.u32 {block}, %ctaid.x;");
        line!(self, "mov.u32 {threads}, %ntid.x;");
        line!(self, "mov.u32 {thread}, %tid.x;");
        line!(self, "mad.lo.u32 {item}, {block}, {threads}, {thread};");
        line!(self, "ld.param.u32 {items}, [items];");
        line!(self, "setp.ge.u32 %out, {item}, {items};");
        line!(self, "@%out bra $end;");
        self.places();
        let offsets = self.offsets(&item);
        let addresses = self.addresses(&offsets);
        let results = self.program.results.clone();
        let needed = self.program.needed(&results);
        self.load_all(&addresses, &needed);
        self.unpack_all(&needed);
        self.compute(&needed, false);
        for (k, value) in results.iter().enumerate() {
            self.store(k, *value, &addresses[k], self.variant.lanes);
        }
    }

    /// A row for each warp or block.
    fn rows(&mut self) {
        let Shape::Rows { threads, held } = self.variant.shape else { return };
        let [block, thread, row, along, items, len, warp, lane] =
            ["%block", "%thread", "%row", "%along", "%items", "%len", "%warp", "%lane"]
                .map(|name| self.declared("b32", name));
        for name in ["%out", "%none", "%is"] {
            self.declared("pred", name);
        }
        line!(self, "mov.u32 {block}, %ctaid.x;");
        line!(self, "mov.u32 {thread}, %tid.x;");
        line!(self, "shr.u32 {warp}, {thread}, 5;");
        line!(self, "and.b32 {lane}, {thread}, 31;");
        if threads == WARP {
            line!(self, "shl.b32 {row}, {block}, 2;");
            line!(self, "add.u32 {row}, {row}, {warp};");
            line!(self, "mov.b32 {along}, {lane};");
        } else {
            line!(self, "mov.b32 {row}, {block};");
            line!(self, "mov.b32 {along}, {thread};");
        }
        line!(self, "ld.param.u32 {items}, [items];");
        line!(self, "ld.param.u32 {len}, [len];");
        line!(self, "setp.ge.u32 %out, {row}, {items};");
        line!(self, "@%out bra $end;");
        self.places();
        let offsets = self.offsets(&row);
        let rows = self.addresses(&offsets);
        let results = self.program.results.clone();
        let is_row = |value: usize| self.program.graph.values[value].is_row;
        let of_elements: Vec<usize> = results.iter().copied().filter(|value| !is_row(*value)).collect();
        let mut loaded = None;
        // The length of a row is known before its elements.
        let all = self.program.needed_at_all();
        self.compute(&all, true);
        if held > 0 {
            // Threads without a vector load nothing and give nothing.
            line!(self, "setp.ge.u32 %none, {along}, {len};");
            let addresses = self.along(&rows, &along);
            let skip = self.label();
            line!(self, "@%none bra {skip};");
            self.load_all(&addresses, &all);
            line!(self, "{skip}:");
            loaded = Some(addresses);
        }
        for round in 0..self.program.rounds {
            let reductions: Vec<(usize, Reduction, usize)> = self.program.reductions_of(round);
            let mut totals = Vec::new();
            for (_, reduction, _) in &reductions {
                let total = self.temporary(32);
                line!(self, "mov.b32 {total}, {};", neutral(*reduction));
                totals.push(total);
            }
            let given: Vec<usize> = reductions.iter().map(|(_, _, arg)| *arg).collect();
            self.pass(&rows, loaded.is_some(), threads, &given, |writer, _| {
                for ((_, reduction, arg), total) in reductions.iter().zip(&totals) {
                    for lane in 0..writer.variant.width() {
                        let value = writer.at(*arg, lane);
                        line!(writer, "{} {total}, {total}, {value};", join(*reduction));
                    }
                }
            });
            for (k, (step, reduction, _)) in reductions.iter().enumerate() {
                self.reduce(&totals[k], *reduction, threads, *step);
            }
            if threads > WARP {
                line!(self, "bar.sync 0;");
            }
            for (k, (step, reduction, _)) in reductions.iter().enumerate() {
                self.finish(&totals[k], *reduction, threads, *step);
                self.written[*step] = true;
            }
            // Every thread computes the values that a row has once.
            self.compute(&all, true);
        }
        if !of_elements.is_empty() {
            let addresses = loaded;
            self.pass(&rows, addresses.is_some(), threads, &of_elements, |writer, at| {
                let at = addresses.as_deref().unwrap_or(at);
                for (k, value) in results.iter().enumerate() {
                    if of_elements.contains(value) && !writer.program.graph.values[*value].is_row {
                        writer.store(k, *value, &at[k], writer.variant.width());
                    }
                }
            });
        }
        line!(self, "setp.ne.u32 %is, {along}, 0;");
        line!(self, "@%is bra $end;");
        for (k, value) in results.iter().enumerate() {
            if self.program.graph.values[*value].is_row {
                self.store(k, *value, &rows[k], 1);
            }
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$label{}", self.labels)
    }

    /// The addresses of the vector `along` in the rows.
    fn along(&mut self, rows: &[String], along: &str) -> Vec<String> {
        let (lanes, results) = (self.variant.lanes, self.program.results.len());
        let tensors = self.program.tensors();
        let stride = 4 * (DIMENSION_WORDS + tensors);
        let mut addresses = Vec::with_capacity(rows.len());
        for (k, row) in rows.iter().enumerate() {
            let size = self.program.tensor(k).size();
            let is_row = k < results && self.program.graph.values[self.program.results[k]].is_row;
            addresses.push(match self.variant.inner[k] {
                Inner::One => row.clone(),
                _ if is_row => row.clone(),
                Inner::Dense => {
                    let address = self.temporary(64);
                    line!(self, "mul.wide.u32 {address}, {along}, {};", lanes * size);
                    line!(self, "add.s64 {address}, {address}, {row};");
                    address
                }
                Inner::Strided => {
                    let [address, step] = [self.temporary(64), self.temporary(32)];
                    let scaled = self.temporary(64);
                    // Behind the outer dimensions stands the step along a row.
                    line!(
                        self,
                        "ld.param.u32 {step}, [steps+{}];",
                        self.variant.outer() * stride + 4 * (DIMENSION_WORDS + k)
                    );
                    line!(self, "mul.wide.s32 {scaled}, {step}, {size};");
                    line!(self, "cvt.u64.u32 {address}, {along};");
                    line!(self, "mul.lo.s64 {address}, {address}, {scaled};");
                    line!(self, "add.s64 {address}, {address}, {row};");
                    address
                }
            });
        }
        addresses
    }

    /// Goes over the row: computes the `wanted` values of each vector, and does `then`.
    fn pass(
        &mut self,
        rows: &[String],
        is_loaded: bool,
        threads: u32,
        wanted: &[usize],
        then: impl FnOnce(&mut Self, &[String]),
    ) {
        let needed = self.program.needed(wanted);
        let done = self.label();
        if is_loaded {
            line!(self, "@%none bra {done};");
            self.unpack_all(&needed);
            self.compute(&needed, false);
            then(self, rows);
            line!(self, "{done}:");
            return;
        }
        let (again, at) = (self.label(), self.temporary(32));
        line!(self, "mov.b32 {at}, %along;");
        line!(self, "{again}:");
        line!(self, "setp.ge.u32 %none, {at}, %len;");
        line!(self, "@%none bra {done};");
        let addresses = self.along(rows, &at);
        let before = self.written.clone();
        self.load_all(&addresses, &needed);
        self.unpack_all(&needed);
        self.compute(&needed, false);
        then(self, &addresses);
        // The next round computes the values of its vectors anew.
        self.written = before;
        line!(self, "add.u32 {at}, {at}, {threads};");
        line!(self, "bra {again};");
        line!(self, "{done}:");
    }

    /// The parts of a warp's threads together, and to shared memory if there are several warps.
    fn reduce(&mut self, total: &str, reduction: Reduction, threads: u32, step: usize) {
        self.butterfly(total, reduction);
        if threads > WARP {
            let [address, part] = [self.temporary(32), self.temporary(32)];
            let slot = self.program.slot(step);
            line!(self, "mov.u32 {address}, parts;");
            line!(self, "shl.b32 {part}, %warp, 2;");
            line!(self, "add.u32 {address}, {address}, {part};");
            line!(self, "setp.ne.u32 %is, %lane, 0;");
            line!(self, "@!%is st.shared.b32 [{address}+{}], {total};", 128 * slot);
        }
    }

    /// The answer of a reduction to the registers of its value.
    fn finish(&mut self, total: &str, reduction: Reduction, threads: u32, step: usize) {
        if threads > WARP {
            let [address, part] = [self.temporary(32), self.temporary(32)];
            let slot = self.program.slot(step);
            line!(self, "mov.b32 {total}, {};", neutral(reduction));
            line!(self, "mov.u32 {address}, parts;");
            line!(self, "shl.b32 {part}, %lane, 2;");
            line!(self, "add.u32 {address}, {address}, {part};");
            line!(self, "setp.lt.u32 %is, %lane, {};", threads / WARP);
            line!(self, "@%is ld.shared.b32 {total}, [{address}+{}];", 128 * slot);
            self.butterfly(total, reduction);
        }
        let value = self.program.graph.steps[step].first;
        let [answer] = &self.registers_of(value, 1)[..] else { return };
        if reduction == Reduction::Mean {
            let [count, lanes] = [self.temporary(32), self.temporary(32)];
            line!(self, "mul.lo.u32 {lanes}, %len, {};", self.variant.lanes);
            line!(self, "cvt.rn.f32.u32 {count}, {lanes};");
            line!(self, "div.rn.f32 {answer}, {total}, {count};");
        } else {
            line!(self, "mov.b32 {answer}, {total};");
        }
    }

    fn butterfly(&mut self, total: &str, reduction: Reduction) {
        let other = self.temporary(32);
        for apart in [16, 8, 4, 2, 1] {
            line!(self, "shfl.sync.bfly.b32 {other}, {total}, {apart}, 31, -1;");
            line!(self, "{} {total}, {total}, {other};", join(reduction));
        }
    }

    /// Loads the operands that are needed.
    fn load_all(&mut self, addresses: &[String], needed: &[bool]) {
        self.index = self.program.indices().map_or(String::new(), |k| addresses[k].clone());
        let results = self.program.results.len();
        for k in 0..self.program.graph.operands.len() {
            if needed[k] {
                let dtype = self.program.tensor(results + k);
                let is_one = self.variant.inner[results + k] == Inner::One;
                let (width, lanes) = if is_one { (1, 1) } else { (self.variant.width(), self.variant.lanes) };
                let mut words = Vec::new();
                for first in (0..width).step_by(lanes) {
                    let offset = self.apart(first) * dtype.size();
                    words.extend(self.load(dtype, &addresses[results + k], offset, lanes));
                }
                self.loaded[k] = Some((width, words));
            }
        }
    }

    /// Converts the operands that are needed, where they were loaded and not converted yet. What a later round needs stays packed:
    /// it takes fewer registers.
    fn unpack_all(&mut self, needed: &[bool]) {
        let results = self.program.results.len();
        for (k, is_needed) in needed.iter().enumerate().take(self.program.graph.operands.len()) {
            if *is_needed && let Some((lanes, words)) = self.loaded[k].take() {
                let names = self.registers_of(k, lanes);
                self.unpack(self.program.tensor(results + k), &words, &names);
            }
        }
    }

    /// The elements between a thread's first vector and the one that begins with a lane: other threads' vectors lie between.
    fn apart(&self, lane: usize) -> usize {
        match self.variant.shape {
            Shape::Rows { threads, .. } => lane * threads as usize,
            Shape::Elements => lane,
        }
    }

    /// Loads so many elements, `offset` bytes behind an address; returns their words of 32 bits, of i64 of 64 bits.
    fn load(&mut self, dtype: DType, address: &str, offset: usize, lanes: usize) -> Vec<String> {
        let size = dtype.size();
        if size == 8 {
            return self.transfers(64, lanes, |writer, at, group| {
                line!(writer, "ld.global{}.b64 {}, [{address}+{}];", vector(group.len()), list(group), offset + 8 * at);
            });
        }
        if size * lanes < 4 {
            let word = self.temporary(32);
            line!(self, "ld.global.u{} {word}, [{address}+{offset}];", 8 * size * lanes);
            return vec![word];
        }
        self.transfers(32, size * lanes / 4, |writer, at, group| {
            line!(writer, "ld.global{}.b32 {}, [{address}+{}];", vector(group.len()), list(group), offset + 4 * at);
        })
    }

    /// So many registers, in groups of 16 bytes.
    fn transfers(
        &mut self,
        bits: usize,
        count: usize,
        mut each: impl FnMut(&mut Self, usize, &[String]),
    ) -> Vec<String> {
        let words: Vec<String> = (0..count).map(|_| self.temporary(bits)).collect();
        for (k, group) in words.chunks(128 / bits).enumerate() {
            each(self, k * (128 / bits), group);
        }
        words
    }

    /// Stores so many lanes of a value, a vector at a time.
    fn store(&mut self, k: usize, value: usize, address: &str, width: usize) {
        let lanes = self.variant.lanes.min(width);
        for first in (0..width).step_by(lanes) {
            self.store_vector(k, value, address, first, lanes);
        }
    }

    fn store_vector(&mut self, k: usize, value: usize, address: &str, first: usize, lanes: usize) {
        let dtype = self.program.tensor(k);
        let values: Vec<String> = (first..first + lanes).map(|lane| self.at(value, lane)).collect();
        let size = dtype.size();
        let offset = self.apart(first) * size;
        let (bits, words): (usize, Vec<String>) = match size {
            8 => (64, values),
            4 => (32, values),
            _ if lanes == 1 => {
                let word = self.packed_one(dtype, &values[0]);
                line!(self, "st.global.b{} [{address}+{offset}], {word};", 8 * size);
                return;
            }
            _ => (32, values.chunks(4 / size).map(|lanes| self.packed(dtype, lanes)).collect()),
        };
        for (i, group) in words.chunks(128 / bits).enumerate() {
            line!(self, "st.global{}.b{bits} [{address}+{}], {};", vector(group.len()), offset + 16 * i, list(group));
        }
    }

    /// Computes the steps that are needed and not written yet: those of one value for each row, or the others.
    fn compute(&mut self, needed: &[bool], of_rows: bool) {
        let program = self.program;
        // A step is ready if the reductions that it needs are done.
        let mut ready = self.written.clone();
        let mut due = Vec::new();
        for (at, step) in program.graph.steps.iter().enumerate() {
            let is_reduction = matches!(step.kind, StepKind::Reduce(_));
            if ready[at] || is_reduction {
                continue;
            }
            ready[at] = step.args.iter().all(|arg| match arg {
                Arg::Value(value) => match program.graph.values[*value].source {
                    Source::Step(step) => ready[step],
                    _ => true,
                },
                Arg::Word(_) => true,
            });
            let is_row = program.graph.values[step.first].is_row;
            let is_needed = (step.first..step.first + step.results).any(|value| needed[value]);
            if ready[at] && is_needed && is_row == of_rows {
                due.push(at);
            }
        }
        // Registers first: the lanes are computed one after another.
        let lanes_of = |writer: &Self, step: &Step| {
            let is_one = |arg: &Arg| match arg {
                Arg::Value(value) => writer.names[*value].len() == 1,
                Arg::Word(_) => true,
            };
            // Each element has a word of its own.
            let is_one_for_all = !matches!(step.kind, StepKind::DropoutMask { .. }) && step.args.iter().all(is_one);
            if is_one_for_all { 1 } else { writer.variant.width() }
        };
        let mut counts = Vec::with_capacity(due.len());
        for &at in &due {
            let step = &program.graph.steps[at];
            let lanes = if of_rows { 1 } else { lanes_of(self, step) };
            for value in step.first..step.first + step.results {
                self.registers_of(value, lanes);
            }
            self.written[at] = true;
            counts.push(lanes);
        }
        for lane in 0..self.variant.width() {
            for (&at, &lanes) in due.iter().zip(&counts) {
                if lane < lanes {
                    self.step(&program.graph.steps[at], lane);
                }
            }
        }
    }

    /// Computes one lane of a step.
    fn step(&mut self, step: &Step, lane: usize) {
        match step.kind {
            StepKind::Op { def, words } => {
                let Some(body) = body_key(step).and_then(|key| self.bodies.get(&key)).cloned() else { return };
                let mut operands = Vec::with_capacity(step.args.len());
                for (k, arg) in step.args.iter().enumerate() {
                    operands.push(match arg {
                        Arg::Value(value) => self.at(*value, lane),
                        Arg::Word(word) => {
                            let bits = if step.dtype == DType::I64 && !def.info.is_bool(k) { 64 } else { 32 };
                            let register = self.temporary(bits);
                            line!(self, "ld.param.b{bits} {register}, [w{word}];");
                            register
                        }
                    });
                }
                let params: Vec<String> = (words..self.program.graph.words.len()).map(|k| format!("w{k}")).collect();
                let results: Vec<String> =
                    (step.first..step.first + step.results).map(|it| self.at(it, lane)).collect();
                let copy = self.copies;
                self.copies += 1;
                let names = Names { operands: &operands, words: &params, results: &results };
                body.write(copy, &names, &mut self.registers, &mut self.code);
            }
            StepKind::Convert { to } => {
                let Some(Arg::Value(from)) = step.args.first() else { return };
                let (from, to_register) = (self.at(*from, lane), self.at(step.first, lane));
                self.convert(step.dtype, to, &from, &to_register);
            }
            StepKind::Len => {
                let count = self.temporary(32);
                let value = self.at(step.first, lane);
                line!(self, "mul.lo.u32 {count}, %len, {};", self.variant.lanes);
                line!(self, "cvt.rn.f32.u32 {value}, {count};");
            }
            StepKind::DropoutMask { draw, limit } => self.dropout_mask(step.first, draw, limit, lane),
            StepKind::Reduce(_) => {}
        }
    }
}

/// The instruction that joins two parts of a reduction.
fn join(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum | Reduction::Mean => "add.rn.f32",
        Reduction::Max => "max.NaN.f32",
        Reduction::Min => "min.NaN.f32",
    }
}

/// The answer of nothing, as bits.
fn neutral(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum | Reduction::Mean => "0f00000000",
        Reduction::Max => "0fFF800000",
        Reduction::Min => "0f7F800000",
    }
}

/// The suffix of an access to so many registers.
fn vector(count: usize) -> &'static str {
    match count {
        1 => "",
        2 => ".v2",
        _ => ".v4",
    }
}

/// Registers as an access names them.
fn list(registers: &[String]) -> String {
    match registers {
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(", ")),
    }
}

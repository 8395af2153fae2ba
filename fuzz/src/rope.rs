//! Calls of the rotary embedding: layouts, positions, offsets, sections, tables, shapes that do not fit.

use pointwise::rope::{
    Frequencies, FrequencySource, MropeLayout, MropeSections, OutOfRange, ROPE, ROPE_SETTINGS, RopeAngles, RopeConfig,
    RopeDirection, RopeFrequencies, RopeKernel, RopeLayout, RopeOperands, RopePairs, RopePositions, RopePrecision,
    RotatedLanes,
};
use pointwise::{DType, Strategy, Tensor};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into_place, same};
use crate::make::{self, Place};
use crate::random::Random;

const LAYOUTS: [RopeLayout; 5] =
    [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd, RopeLayout::Thd, RopeLayout::Sd];
const FOUR: [RopeLayout; 3] = [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd];
const STRANGE: [i64; 8] = [i64::MIN, i64::MAX, -1, 0, 1, 1 << 40, i32::MAX as i64, i32::MIN as i64];

pub(crate) fn run(case: &mut Case) -> Outcome {
    match case.random.below(8) {
        0 => named(case),
        1 => frequencies(case),
        _ => kernel(case),
    }
}

/// The sizes of a call.
struct Sizes {
    batch: usize,
    seq: usize,
    heads: usize,
    dim: usize,
}

impl Sizes {
    fn of(&self, layout: RopeLayout, heads: usize) -> Vec<usize> {
        let Sizes { batch, seq, dim, .. } = *self;
        match layout {
            RopeLayout::Bshd => vec![batch, seq, heads, dim],
            RopeLayout::Bhsd => vec![batch, heads, seq, dim],
            RopeLayout::Sbhd => vec![seq, batch, heads, dim],
            RopeLayout::Thd => vec![seq, heads, dim],
            RopeLayout::Sd => vec![seq, dim],
        }
    }
}

/// The dimensions of the batch, the sequence, the heads and the lanes.
fn axes(layout: RopeLayout) -> [usize; 4] {
    match layout {
        RopeLayout::Bhsd => [0, 2, 1, 3],
        RopeLayout::Sbhd => [1, 0, 2, 3],
        _ => [0, 1, 2, 3],
    }
}

/// Whole numbers of an integer type, small or strange.
fn ids(case: &mut Case, dtype: DType, shape: &[usize], wild: bool) -> Result<Tensor, String> {
    let mut bytes = Vec::new();
    for _ in 0..shape.iter().product() {
        let id = if wild && case.random.once_in(4) { case.random.pick(&STRANGE) } else { case.random.below(40) as i64 };
        bytes.extend_from_slice(&id.to_ne_bytes()[..dtype.size()]);
    }
    must("ids", Tensor::from_bytes(&case.device, dtype, &bytes, shape))
}

/// The starts of the sequences.
fn bounds(case: &mut Case, dtype: DType, seq: usize, wild: bool) -> Result<Tensor, String> {
    if wild {
        let count = case.random.below(4);
        return ids(case, dtype, &[count], true);
    }
    let (mut at, mut bytes, count) = (case.random.below(2), Vec::new(), 1 + case.random.below(4));
    for _ in 0..count {
        bytes.extend_from_slice(&(at as i64).to_ne_bytes()[..dtype.size()]);
        at += case.random.below(seq + 1);
    }
    must("bounds", Tensor::from_bytes(&case.device, dtype, &bytes, [count]))
}

/// The tensors that positions may refer to.
struct Positions {
    ids: Tensor,
    axes: Tensor,
    batch: Tensor,
    bounds: Tensor,
    starts: Tensor,
}

impl Positions {
    fn new(case: &mut Case, sizes: &Sizes) -> Result<Positions, String> {
        let Sizes { batch, seq, .. } = *sizes;
        let (wild, dtype) = (case.random.once_in(4), case.random.pick(&[DType::I32, DType::I64, DType::I64]));
        let dtype = if case.random.once_in(20) { DType::I16 } else { dtype };
        let shape = case.random.pick(&[vec![seq], vec![batch, seq], vec![1, seq], vec![seq + 1]]);
        let triple = case.random.pick(&[vec![3, seq], vec![3, batch, seq]]);
        let bounds = bounds(case, dtype, seq, wild)?;
        let starts = ids(case, dtype, &[bounds.numel().saturating_sub(1)], wild)?;
        Ok(Positions {
            ids: ids(case, dtype, &shape, wild)?,
            axes: ids(case, dtype, &triple, wild)?,
            batch: ids(case, dtype, &[batch], wild)?,
            bounds,
            starts,
        })
    }

    fn pick(&self, random: &mut Random, dim: usize) -> RopePositions<'_> {
        match random.below(6) {
            0 => RopePositions::Offset(random.pick(&STRANGE)),
            1 => RopePositions::BatchOffsets(self.batch.view()),
            2 => RopePositions::Ids(self.ids.view()),
            3 => {
                let layout = random.pick(&[MropeLayout::Chunked, MropeLayout::Interleaved]);
                RopePositions::Axes {
                    ids: self.axes.view(),
                    sections: MropeSections { sections: sections(random, dim), layout },
                }
            }
            4 => RopePositions::Sequences {
                cu_seqlens: self.bounds.view(),
                offsets: random.once_in(2).then(|| self.starts.view()),
            },
            _ => RopePositions::Offset(random.below(40) as i64),
        }
    }
}

/// Sections of half a head, or of anything.
fn sections(random: &mut Random, dim: usize) -> [usize; 3] {
    if random.once_in(10) {
        return [random.pick(&[usize::MAX, 1 << 40, 0]), random.below(9), random.pick(&[1, usize::MAX])];
    }
    let time = random.below(dim / 2 + 1);
    let height = random.below(dim / 2 - time + 1);
    [time, height, dim / 2 - time - height]
}

fn kernel(case: &mut Case) -> Outcome {
    let random = &mut case.random;
    let layout = random.pick(&LAYOUTS);
    let batch = if FOUR.contains(&layout) { random.pick(&[1, 2, 3, 2, 0]) } else { 1 };
    let dim = random.pick(&[2, 4, 6, 8, 8, 16, 64, 130, 1, 0, 7]);
    let sizes = Sizes { batch, seq: random.pick(&[1, 2, 5, 9, 33, 0]), heads: random.pick(&[1, 2, 3, 0]), dim };
    let k_heads = random.pick(&[1, 2, 1, 0]);
    let dtype = if random.once_in(20) { make::dtype(random) } else { random.pick(&make::WIDE_FLOATS) };
    let shape = sizes.of(layout, sizes.heads);
    // The lanes of a head must be contiguous.
    let place = if random.once_in(10) { Place::to_read(random, &shape) } else { Place::lanes(random, &shape) };
    let with_k = random.once_in(2);
    let width = random.pick(&[dim, dim / 2, dim / 2, dim, 4, 1, 0]);
    let rows = random.pick(&[sizes.seq, sizes.seq + 3, 40, 40, 1, 0]);
    let table = random.pick(&[
        vec![rows, width],
        vec![rows, 1, 1, width],
        vec![1, sizes.seq, width],
        vec![batch, sizes.seq, width],
    ]);
    let table_type = random.pick(&[DType::F32, dtype]);
    let rotary = random.pick(&[4, dim, dim, dim]).max(2) & !1;

    let q_tensor = place.tensor(case, dtype)?;
    let q = place.view(&q_tensor)?;
    let k_tensor = make::tensor(case, dtype, &sizes.of(layout, k_heads))?;
    let k = with_k.then(|| k_tensor.view());
    let (raw, cos, sin) = (
        make::tensor(case, DType::F32, &table)?,
        make::tensor(case, table_type, &table)?,
        make::tensor(case, table_type, &table)?,
    );
    let frequencies = must("frequencies", RopeConfig::default_rope(rotary, 1e4).frequencies(0))?;
    let frequencies = must("frequencies", RopeFrequencies::new(&case.device, &frequencies))?;
    let positions = Positions::new(case, &sizes)?;

    let random = &mut case.random;
    let angles = match random.below(4) {
        0 => RopeAngles::Raw(raw.view()),
        1 => RopeAngles::Tables { cos: cos.view(), sin: sin.view() },
        2 => RopeAngles::Frequencies(&frequencies, RopePrecision::Hf),
        _ => RopeAngles::Frequencies(&frequencies, RopePrecision::Exact),
    };
    let pairs = random.pick(&[RopePairs::Half, RopePairs::Interleaved, RopePairs::InterleavedToHalf]);
    let mut kernel = RopeKernel::new(angles, pairs)
        .layout(layout)
        .positions(positions.pick(random, dim))
        .out_of_range(random.pick(&[OutOfRange::Error, OutOfRange::Identity, OutOfRange::Identity]))
        .direction(random.pick(&[RopeDirection::Forward, RopeDirection::Backward]))
        .rotated_lanes(random.pick(&[RotatedLanes::Lead, RotatedLanes::Trail]));
    if random.once_in(3) {
        kernel = kernel.rotary_dim(random.pick(&[2, 4, dim, 0, 3, usize::MAX, dim / 2]));
    }
    if random.once_in(4) {
        kernel = kernel.output_scale(random.pick(&[1.0, 0.5, f32::NAN, f32::INFINITY, 0.0]), 2.0);
    }
    if random.once_in(4) {
        kernel = kernel.attention_factor(random.pick(&[1.0, 2.0, f64::NAN, 1e300, 0.0, -1.0]));
    }
    if random.once_in(4) {
        kernel = kernel
            .threads(random.pick(&[32, 0, 31, 1024, u32::MAX]))
            .heads_per_thread(random.pick(&[0, 1, u32::MAX]))
            .strategy(random.pick(&Strategy::ALL))
            .shared_angles(random.once_in(2));
    }
    let what = format!("{kernel:?} of {q:?} and {:?}", k.map(|k| *k.shape()));
    let Some((y, y_k)) = case.outcome(kernel.run(q, k))? else { return Ok(()) };
    let contiguous = copy(&q, &q_tensor)?;
    let (of_copy, _) = must(&what, kernel.run(&contiguous, None))?;
    same(&format!("{what}, contiguous and without k"), &y, &of_copy)?;
    let lanes = Place::lanes(&mut case.random, y.shape());
    into_place(case, &what, &y, &lanes, |to| kernel.run_into(q, None, to, None))?;
    other_layout(case, &kernel, layout, &contiguous, &y).map_err(|why| format!("{what}: {why}"))?;
    if let Some(y_k) = &y_k {
        let mut z = must("a copy", y.copy())?;
        let lanes = Place::lanes(&mut case.random, y_k.shape());
        into_place(case, &what, y_k, &lanes, |to| kernel.run_into(q, k, &mut z, Some(to)))?;
        same(&format!("{what}, q beside k"), &z, &y)?;
    }
    let (mut over, mut over_k) = (contiguous, must("a copy", k_tensor.copy())?);
    let in_place = kernel.run_inplace(&mut over, with_k.then(|| (&mut over_k).into()));
    if pairs == RopePairs::InterleavedToHalf {
        return case.any(in_place);
    }
    must(&format!("{what}, in place"), in_place)?;
    same(&format!("{what}, in place"), &over, &y)?;
    y_k.map_or(Ok(()), |y_k| same(&format!("{what}, k in place"), &over_k, &y_k))
}

/// The same tokens in another order of the dimensions give the same lanes.
fn other_layout(case: &mut Case, kernel: &RopeKernel<'_>, layout: RopeLayout, q: &Tensor, y: &Tensor) -> Outcome {
    if !FOUR.contains(&layout) {
        return Ok(());
    }
    let other = case.random.pick(&FOUR);
    let mut order = [0; 4];
    for (from, to) in axes(layout).into_iter().zip(axes(other)) {
        order[to] = from;
    }
    let (z, _) = must("another layout", kernel.clone().layout(other).run(must("permute", q.permute(&order))?, None))?;
    let want = must("permute", y.permute(&order))?;
    same(&format!("layout {other:?}"), &z, &copy(&want, y)?)
}

/// The named ops, their settings as text.
fn named(case: &mut Case) -> Outcome {
    let def = &ROPE[case.random.below(ROPE.len())];
    let mut op = def.op();
    for _ in 0..case.random.below(4) {
        let names: Vec<&str> = ROPE_SETTINGS.iter().map(|setting| setting.name).chain(["no\npe", ""]).collect();
        // Files have tests of their own.
        let name = case.random.pick(&names);
        let value = setting(&mut case.random, name);
        if name != "config"
            && let Some(next) = case.outcome(op.clone().set(name, value))?
        {
            op = next;
        }
    }
    case.any(op.check())?;
    let head = case.random.pick(&[0, 1, 2, 7, 8, 64, 128, 1 << 20, usize::MAX]);
    case.any(op.config(head))?;
    let (dim, seq) = (case.random.pick(&[8, 8, 64, 7, 0]), case.random.below(6));
    let dtype = case.random.pick(&make::WIDE_FLOATS);
    let q = make::tensor(case, dtype, &[1, seq, 2, dim])?;
    let shape = case.random.pick(&[vec![seq], vec![1, seq], vec![3, 1, seq], vec![3, seq]]);
    let wild = case.random.once_in(4);
    let id_type = case.random.pick(&[DType::I32, DType::I64]);
    let ids = ids(case, id_type, &shape, wild)?;
    let table = make::tensor(case, DType::F32, &[seq, dim / 2])?;
    let random = &mut case.random;
    let mut operands = RopeOperands::new(&q);
    operands.k = random.once_in(3).then(|| q.view());
    operands.position_ids = random.once_in(3).then(|| ids.view());
    operands.cos = random.once_in(4).then(|| table.view());
    operands.sin = random.once_in(4).then(|| table.view());
    operands.freqs = random.once_in(6).then(|| table.view());
    let Some((y, y_k)) = case.outcome(op.run(&operands))? else { return Ok(()) };
    y_k.map_or(Ok(()), |y_k| same(&format!("{op:?}: k, which is q"), &y_k, &y))
}

/// A setting's value as text: one that serves, or not.
fn setting(random: &mut Random, name: &str) -> &'static str {
    let values: &[&str] = match name {
        "layout" => &["bshd", "bhsd", "sbhd", "thd", "sd"],
        "pairs" => &["half", "interleaved", "interleaved_to_half"],
        "rotated_lanes" => &["lead", "trail"],
        "direction" => &["forward", "backward"],
        "precision" => &["hf", "exact"],
        "truncate" => &["true", "false"],
        "short_factor" | "long_factor" => &["1,1,1,1", "1,2", "0.5,0.5,0.5,-1", ",", "1e300,1,1,1"],
        _ => &["0", "1", "2", "4", "8", "16", "4096", "0.5", "1e4", "1e300"],
    };
    if random.once_in(5) {
        let strange = ["", " ", "nan", "inf", "-1", "1e999", "99999999999999999999", "0x8", "\u{e9}", "1,", "a\nb"];
        return random.pick(&strange);
    }
    random.pick(values)
}

/// Frequencies that somebody made by hand.
fn frequencies(case: &mut Case) -> Outcome {
    let random = &mut case.random;
    let mut list = || -> Vec<f64> {
        let strange = [1.0, 0.5, 0.0, -0.0, -1.0, 1e-300, 1e300, 1e22, 3.4e38, f64::NAN, f64::INFINITY];
        let usual = random.once_in(2);
        (0..random.below(6)).map(|_| if usual { 0.5 } else { random.pick(&strange) }).collect()
    };
    let (exact, rounded) = (list(), list());
    let rounded: Vec<f32> = if random.once_in(2) { &exact } else { &rounded }.iter().map(|x| *x as f32).collect();
    let turns = vec![random.word(); if random.once_in(4) { random.below(6) } else { exact.len() }];
    let attention_factor = random.pick(&[1.0, 0.5, 0.0, -1.0, 1e300, f64::NAN]);
    let positions: Vec<i64> = (0..random.below(5)).map(|_| random.pick(&STRANGE)).collect();
    let precision = random.pick(&[RopePrecision::Exact, RopePrecision::Hf]);
    let layout = random.pick(&[MropeLayout::Chunked, MropeLayout::Interleaved]);
    let sections = MropeSections { sections: sections(random, 2 * rounded.len()), layout };

    case.any(Frequencies::from_inv_freq(&rounded, attention_factor))?;
    case.any(Frequencies::from_inv_freq_f64(exact.clone(), attention_factor))?;
    let made = Frequencies { inv_freq: rounded, inv_freq_f64: exact, turns, attention_factor };
    case.any(RopeFrequencies::new(&case.device.clone(), &made))?;
    if let Some(axes) = case.outcome(sections.axes())? {
        let rows: Vec<[i64; 3]> = positions.iter().map(|at| [*at, 0, i64::MAX]).collect();
        case.any(made.cos_sin_mrope(&rows, &axes, precision))?;
    }
    let Some(checked) = case.outcome(FrequencySource::frequencies(&made, 3))? else { return Ok(()) };
    let (cos, sin) = checked.cos_sin(&positions, precision);
    if cos.len() == sin.len() && cos.len() == positions.len() * checked.inv_freq.len() {
        return Ok(());
    }
    Err(format!("{} cosines and {} sines of {positions:?} and {checked:?}", cos.len(), sin.len()))
}

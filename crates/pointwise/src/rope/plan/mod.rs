//! Plans the launch of a call: the template, the width of accesses, the work of a block, and the kernel.

mod full_head;
mod per_block;
mod per_thread;

use pointwise_core::DType;
use pointwise_core::rope::{
    AXES, BATCH_OFFSETS, IDS, NEIGHBOURS, OwnAngles, PerThread, RopeWalk, SEQUENCES, TOKENS_INNER,
};

pub(super) use full_head::{FullHeadKind, FullHeadPlan};

use super::options::TYPES;
use super::{Pointers, Source};
use crate::Strategy;
use crate::error::Result;
use crate::kernel::Entry;

/// The launch settings of a user.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) strategy: Strategy,
    /// The most threads of a block.
    pub(super) threads: Option<u32>,
    pub(super) heads_per_thread: Option<u32>,
    /// True if the threads of a block share cosines and sines; `None` leaves the choice to the plan.
    pub(super) shared_angles: Option<bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { strategy: Strategy::Auto, threads: None, heads_per_thread: None, shared_angles: None }
    }
}

/// The most threads of a block whose threads find their own angles, unless the user gives another number.
const OWN_THREADS: u32 = 128;
/// The most threads of any block: more have not enough registers.
const MOST_THREADS: u32 = 512;
/// Threads that a multiprocessor needs if they find their own angles. If there are fewer, each gets less work, so that
/// there are more.
const OWN_ENOUGH: u64 = 256;

/// A launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct RopePlan {
    pub(super) strategy: Strategy,
    pub(super) blocks: [u32; 3],
    pub(super) threads: [u32; 3],
    pub(super) template: Template,
}

/// A template and its kernel's parameters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Template {
    /// The threads of a block share cosines and sines; the parameters are the call's walk.
    PerBlock,
    /// Threads find their own cosines and sines.
    PerThread(PerThread),
    /// Likewise, for heads that rotate whole.
    FullHead(FullHeadPlan),
}

/// A call to plan.
pub(super) struct Planned<'a> {
    pub(super) multiprocessors: u32,
    pub(super) l2_bytes: u64,
    pub(super) dtype: DType,
    pub(super) source: Source,
    pub(super) pointers: &'a Pointers,
}

/// True if there is anything to rotate.
pub(super) fn has_work(walk: &RopeWalk) -> bool {
    walk.tokens > 0 && walk.q.heads + walk.k.heads > 0
}

/// Plans a call whose walk counts elements; after [`Template::PerBlock`] it counts vectors. `None` if there is nothing
/// to rotate: the templates' plans divide by tokens and by heads.
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &mut RopeWalk) -> Result<Option<RopePlan>> {
    has_work(walk).then(|| choose(settings, call, walk)).transpose()
}

/// Picks the template that is likely to be the fastest, and plans the call.
fn choose(settings: &Settings, call: &Planned<'_>, walk: &mut RopeWalk) -> Result<RopePlan> {
    let [_, token, head] = walk.q.input;
    if token < head {
        walk.flags |= TOKENS_INNER;
    }
    if let Some(plan) = full_head::plan(settings, call, walk) {
        return Ok(plan);
    }
    // If a token's heads lie together, a block's threads have enough of them to share their reads.
    let had_better_share = settings.shared_angles.is_none()
        && matches!(settings.strategy, Strategy::Auto | Strategy::RegisterCopy)
        && walk.flags & TOKENS_INNER == 0
        && reads_much(call, walk)
        && is_enough(call, walk, 2);
    match per_thread::plan(settings, call, walk) {
        Some(plan) if !had_better_share => Ok(plan),
        _ => per_block::plan(settings, call, walk),
    }
}

/// True if heads of 16 bits rotate whole by angles or tables of f32. These are many bytes beside a head's: a thread
/// that reads its own needs more than two heads to be fast. 8,192 tokens of Llama 3 8B by angles took 56 us; with
/// angles shared by a block they took 46 to 48, with four heads a thread 48 (H200, `docs/notebook/rope.md`).
fn reads_much(call: &Planned<'_>, walk: &RopeWalk) -> bool {
    call.dtype.size() == 2
        && matches!(call.source, Source::Angles | Source::Tables)
        && walk.rest_lanes == 0
        && walk.flags & (IDS | BATCH_OFFSETS | NEIGHBOURS) == 0
}

/// True if there are enough threads for the device when each rotates `share` heads.
fn is_enough(call: &Planned<'_>, walk: &RopeWalk, share: u32) -> bool {
    let heads = (walk.q.heads + walk.k.heads).div_ceil(share);
    let threads = lanes_of_a_head(call, walk).saturating_mul(u64::from(heads));
    threads >= u64::from(call.multiprocessors) * OWN_ENOUGH
}

/// Gives each thread `share` heads.
fn group(walk: &mut RopeWalk, share: u32) {
    for side in [&mut walk.q, &mut walk.k] {
        side.groups = side.heads.div_ceil(share);
        side.step = [side.input[2], side.output[2]].map(|stride| stride.saturating_mul(i64::from(side.groups)));
    }
}

/// True if kernels whose threads find their own angles can serve, and the user asks for no other.
fn may_be_own(settings: &Settings, walk: &RopeWalk) -> bool {
    let pairing = walk.flags & NEIGHBOURS;
    settings.shared_angles != Some(true)
        && walk.flags & (SEQUENCES | AXES) == 0
        && (pairing == 0 || pairing == NEIGHBOURS)
}

/// True if angles are computed from frequencies.
fn is_on_the_fly(source: Source) -> bool {
    matches!(source, Source::Hf | Source::Exact)
}

/// Threads for one head of all tokens, with two of the widest vectors each.
fn lanes_of_a_head(call: &Planned<'_>, walk: &RopeWalk) -> u64 {
    let widest = 16 / call.dtype.size() as u32;
    u64::from((2 * walk.half + walk.rest_lanes).div_ceil(2 * widest)) * u64::from(walk.tokens)
}

/// Picks the strategy, and the elements of a vector, for a kernel whose threads find their own angles. Little work gets
/// narrow vectors.
fn own_vector(settings: &Settings, call: &Planned<'_>, walk: &RopeWalk) -> Option<(Strategy, u32)> {
    let work = lanes_of_a_head(call, walk).saturating_mul(u64::from(walk.q.heads + walk.k.heads));
    let is_little = work < u64::from(call.multiprocessors) * OWN_ENOUGH;
    let narrow = settings.strategy == Strategy::Auto && is_little;
    narrow
        .then(|| widest_vector(Strategy::ExplicitParallel, call, walk))
        .flatten()
        .or_else(|| widest_vector(settings.strategy, call, walk))
}

/// Returns the widest vector that the strategy allows and that fits: its strategy and its elements.
fn widest_vector(strategy: Strategy, call: &Planned<'_>, walk: &RopeWalk) -> Option<(Strategy, u32)> {
    let widest = 16 / call.dtype.size() as u32;
    let serves = |vector: u32| vectors_fit(vector, call, walk) && angles_fit(vector, call, walk);
    match strategy {
        Strategy::Auto | Strategy::RegisterCopy if serves(widest) => Some((Strategy::RegisterCopy, widest)),
        Strategy::Auto | Strategy::RegisterCopy | Strategy::ExplicitParallel if serves(widest / 2) => {
            Some((Strategy::ExplicitParallel, widest / 2))
        }
        _ => None,
    }
}

/// True if all factors of cosines, sines and heads are 1.
fn is_plain(walk: &RopeWalk) -> bool {
    [walk.factor, walk.sin_sign, walk.q.scale, if walk.k.heads > 0 { walk.k.scale } else { 1.0 }] == [1.0; 4]
}

/// The angles of threads that find their own, with vectors of `vector` elements; the tables' strides are left out.
fn own_angles(vector: u32, walk: &RopeWalk) -> Option<OwnAngles> {
    Some(OwnAngles {
        pairs: if walk.flags & NEIGHBOURS == 0 { [vector, vector / 2] } else { [vector / 2, walk.half / 2] },
        factor: walk.factor,
        sin_sign: walk.sin_sign,
        ids: offsets([walk.tokens / walk.seq.size, walk.seq.size], walk.ids, 1, 0)?,
        offset: walk.offset,
        rows: walk.rows,
        ..OwnAngles::default()
    })
}

/// Strides of the two tables.
fn table_offsets(walk: &RopeWalk) -> Option<[[u32; 2]; 2]> {
    // A table without a number of rows has one for each token.
    let rows = if walk.rows == i64::MAX { walk.seq.size } else { u32::try_from(walk.rows).ok()? };
    let dims = [walk.tokens / walk.seq.size, rows];
    let strides = |strides| offsets(dims, strides, 1, walk.half);
    Some([strides(walk.first)?, strides(walk.second)?])
}

/// Strides in vectors; `None` if one is negative, or if the offset of element `last` of the last row has more than 32
/// bits.
fn offsets<const N: usize>(dims: [u32; N], strides: [i64; N], vector: u32, last: u32) -> Option<[u32; N]> {
    let (mut narrow, mut farthest) = ([0; N], u64::from(last / vector));
    for ((dim, stride), narrow) in dims.into_iter().zip(strides).zip(&mut narrow) {
        // A stride that is never taken can be anything.
        if dim > 1 {
            let stride = u64::try_from(stride).ok()? / u64::from(vector);
            farthest = farthest.checked_add(stride.checked_mul(u64::from(dim - 1))?)?;
            *narrow = u32::try_from(stride).ok()?;
        }
    }
    (farthest <= u64::from(u32::MAX)).then_some(narrow)
}

/// True if every load of a thread's angles is aligned. One load reads the angles of both its vectors if it is wide
/// enough, unless pairs are neighbours.
fn angles_fit(vector: u32, call: &Planned<'_>, walk: &RopeWalk) -> bool {
    let size = match call.source {
        Source::Hf | Source::Angles | Source::Tables => 4,
        Source::Exact => 8,
        Source::OwnTables => call.dtype.size(),
    };
    let half = vector as usize / 2 * size;
    let joined = walk.flags & NEIGHBOURS == 0 && call.source != Source::Exact && half < 16;
    let (entries, bytes) = if joined { (vector, 2 * half) } else { (vector / 2, half.min(16)) };
    [call.pointers.first, call.pointers.second].iter().all(|table| table.addr().is_multiple_of(bytes))
        && [walk.first, walk.second].iter().flatten().all(|stride| stride % i64::from(entries) == 0)
}

/// True if every access of vectors of `vector` elements is aligned and whole.
fn vectors_fit(vector: u32, &Planned { dtype, pointers, .. }: &Planned<'_>, walk: &RopeWalk) -> bool {
    let rest = walk.rest_lanes;
    let lanes = [walk.half, walk.rotated_at, rest, if rest > 0 { walk.rest_at } else { 0 }];
    let strides = [walk.q.input, walk.q.output, walk.k.input, walk.k.output];
    let bytes = vector as usize * dtype.size();
    let tensors = [pointers.qx, pointers.qy.cast_const(), pointers.kx, pointers.ky.cast_const()];
    lanes.iter().all(|lane| lane.is_multiple_of(vector))
        && strides.iter().flatten().all(|stride| stride % i64::from(vector) == 0)
        && tensors.iter().all(|tensor| tensor.addr().is_multiple_of(bytes))
}

pointwise_macros::host! { (crate) (*crate::embed::embedded()) Rope; }

/// Finds the kernel for a plan, a source and an element type.
pub(super) fn entry(plan: &RopePlan, source: Source, dtype: DType) -> Option<&'static Entry> {
    debug_assert!(TYPES.contains(&dtype));
    find(&plan.template, source, dtype, plan.strategy)
}

#[cfg(test)]
mod tests {
    use pointwise_core::rope::{Count, INTERLEAVED_IN, INTERLEAVED_OUT, Side};

    use super::*;
    use crate::rope::RopeLayout;
    use crate::shape::Shape;

    #[test]
    fn every_entry_is_embedded() {
        let kernels = crate::embed::embedded();
        for symbol in SYMBOLS {
            assert!(
                kernels.is_empty() || kernels.is_bound(symbol, (pointwise_core::row::of_symbol(symbol), 0)),
                "{symbol}"
            );
        }
    }

    /// Tokens, heads of q and of k, lanes that rotate (half) and that do not, elements of a vector.
    pub(super) const SHAPES: [(u32, u32, u32, u32, u32, u32); 12] = [
        (1, 32, 8, 64, 0, 8),
        (7, 64, 8, 64, 0, 4),
        (5, 128, 128, 32, 128, 8),
        (33, 3, 0, 48, 0, 4),
        (19, 1, 0, 32, 0, 8),
        (21, 0, 3, 32, 16, 8),
        (600, 1, 0, 64, 0, 8),
        (3, 71, 1, 32, 0, 1),
        (2, 5, 3, 2048, 64, 8),
        (2, 3, 2, 1500, 700, 1),
        (4, 2, 1, 1, 5, 1),
        (9, 5, 1, 16, 24, 8),
    ];

    pub(super) fn side(heads: u32, share: u32) -> Side {
        Side { heads, groups: heads.div_ceil(share), ..Side::default() }
    }

    /// Plans 32 heads of q and 8 of k of 128 lanes with `half` rotating pairs. Returns the heads of a thread that finds
    /// its own angles; `None` if blocks share them.
    fn planned(source: Source, dtype: DType, tokens: u32, half: u32, is_bhsd: bool, flags: u32) -> Option<u32> {
        let side = |heads: u32| {
            let (lanes, far) = (128, 128 * i64::from(if is_bhsd { tokens } else { heads }));
            let strides = if is_bhsd { [0, lanes, far] } else { [0, far, lanes] };
            Side { heads, input: strides, output: strides, scale: 1.0, ..Side::default() }
        };
        let mut walk = RopeWalk {
            q: side(32),
            k: side(8),
            tokens,
            seq: Count::new(tokens),
            half,
            pair_lanes: half,
            rest_lanes: 128 - 2 * half,
            rest_at: 2 * half,
            first: [0, i64::from(half)],
            second: [0, i64::from(half)],
            rows: i64::from(tokens),
            flags,
            ..RopeWalk::default()
        };
        match on_an_h200(&Settings::default(), source, dtype, &mut walk).unwrap().template {
            Template::PerBlock => None,
            Template::PerThread(per_thread) => Some(32 / per_thread.q.groups),
            Template::FullHead(_) => Some(1),
        }
    }

    fn on_an_h200(settings: &Settings, source: Source, dtype: DType, walk: &mut RopeWalk) -> Option<RopePlan> {
        let (from, to) = (std::ptr::null(), std::ptr::null_mut());
        let [ids, starts, first, second] = [from; 4];
        let pointers = &Pointers { qx: from, qy: to, kx: from, ky: to, ids, starts, first, second };
        let call = Planned { multiprocessors: 132, l2_bytes: 60 << 20, dtype, source, pointers };
        plan(settings, &call, walk).unwrap()
    }

    /// The walk of contiguous tensors of a layout: batch entries, tokens, heads of q, heads of k; 128 lanes a head.
    fn contiguous(layout: RopeLayout, [batch, seq, q, k]: [usize; 4]) -> RopeWalk {
        let side = |heads: usize| {
            let mut shape = vec![128; layout.rank()];
            for (dim, size) in layout.dims().into_iter().zip([batch, seq, heads]) {
                dim.into_iter().for_each(|dim| shape[dim] = size);
            }
            let strides = Shape::new(&shape).unwrap().contiguous_strides();
            let strides = layout.dims().map(|dim| dim.map_or(0, |dim| strides[dim]));
            Side { heads: heads as u32, input: strides, output: strides, scale: 1.0, ..Side::default() }
        };
        RopeWalk {
            q: side(q),
            k: side(k),
            tokens: (batch * seq) as u32,
            seq: Count::new(seq as u32),
            half: 64,
            pair_lanes: 64,
            first: [0, 64],
            second: [0, 64],
            rows: 4096,
            ..RopeWalk::default()
        }
    }

    /// No template's plan divides by a dimension of 0; one side alone has a plan.
    #[test]
    fn nothing_to_rotate_has_no_plan() {
        use RopeLayout::{Bhsd, Bshd, Sbhd, Sd, Thd};
        let empty = |layout: RopeLayout| {
            let sizes = [[0, 128, 32, 8], [2, 0, 32, 8], [0, 0, 32, 0], [2, 0, 0, 8], [2, 128, 0, 0], [0, 128, 0, 0]];
            let has = layout.dims().map(|dim| dim.is_some());
            let known = move |[batch, seq, q, k]: [usize; 4]| match has {
                [true, _, _] => [batch, seq, q, k],
                // One sequence, without tokens if there was no batch.
                [_, _, true] => [1, batch * seq, q, k],
                _ => [1, 0, q.min(1), k.min(1)],
            };
            sizes.map(known)
        };
        let settings = [None, Some(true), Some(false)].into_iter().flat_map(|shared_angles| {
            [Strategy::Auto, Strategy::ExplicitParallel, Strategy::Direct].map(|strategy| Settings {
                strategy,
                shared_angles,
                ..Settings::default()
            })
        });
        for settings in settings {
            for source in [Source::Hf, Source::Exact, Source::Angles, Source::Tables, Source::OwnTables] {
                for (layout, dtype) in [Bshd, Bhsd, Sbhd, Thd, Sd].into_iter().flat_map(|l| TYPES.map(|d| (l, d))) {
                    let of = |sizes| on_an_h200(&settings, source, dtype, &mut contiguous(layout, sizes));
                    for sizes in empty(layout) {
                        assert!(of(sizes).is_none(), "{sizes:?} of {layout:?} by {source:?}, {settings:?}");
                    }
                    let [batch, heads] = [0, 2].map(|dim| if layout.dims()[dim].is_some() { 2 } else { 1 });
                    for sizes in [[batch, 3, heads, 0], [batch, 3, 0, heads], [batch, 3, heads, heads]] {
                        assert!(of(sizes).is_some(), "{sizes:?} of {layout:?} by {source:?}, {settings:?}");
                    }
                }
            }
        }
    }

    /// A call goes to a template that has code for it.
    #[test]
    fn each_template_takes_the_calls_it_serves() {
        let template = |source, half, flags| {
            let mut walk = contiguous(RopeLayout::Bshd, [1, 512, 32, 8]);
            (walk.half, walk.pair_lanes, walk.rest_at, walk.rest_lanes) = (half, half, 2 * half, 128 - 2 * half);
            walk.flags |= flags;
            match on_an_h200(&Settings::default(), source, DType::BF16, &mut walk).unwrap().template {
                Template::PerBlock => "per_block",
                Template::PerThread(_) => "per_thread",
                Template::FullHead(_) => "full_head",
            }
        };
        for flags in [0, IDS, NEIGHBOURS] {
            assert_eq!(
                [Source::Hf, Source::OwnTables].map(|of| template(of, 64, flags)),
                ["per_thread", "full_head"],
                "{flags}"
            );
        }
        for (half, flags) in [(32, 0), (64, IDS | NEIGHBOURS), (64, BATCH_OFFSETS)] {
            assert_eq!(
                [Source::Hf, Source::OwnTables].map(|of| template(of, half, flags)),
                ["per_thread"; 2],
                "{flags}"
            );
        }
        for flags in [SEQUENCES, AXES | IDS, INTERLEAVED_IN, INTERLEAVED_OUT] {
            assert_eq!([Source::Hf, Source::OwnTables].map(|of| template(of, 64, flags)), ["per_block"; 2], "{flags}");
        }
    }

    #[test]
    fn offsets_have_32_bits() {
        let most = i64::from(u32::MAX);
        assert_eq!(offsets([3, 4], [80, 8], 8, 64), Some([10, 1]));
        assert_eq!([0, 1].map(|last| offsets([2], [most], 1, last)), [Some([u32::MAX]), None]);
        assert_eq!(offsets([2, 2], [most - 8, 16], 1, 0), None);
        // A dimension of one has no step.
        assert_eq!([1, 2].map(|dim| offsets([dim], [-8], 8, 0)), [Some([0]), None]);
    }

    #[test]
    fn vectors_are_aligned_in_every_tensor_and_table() {
        let fit = |walk: &RopeWalk, at: [usize; 6]| {
            let [qx, qy, kx, ky, first, second] = at.map(std::ptr::without_provenance_mut::<u8>);
            let (ids, starts) = (std::ptr::null(), std::ptr::null());
            let pointers = &Pointers { qx, qy, kx, ky, ids, starts, first, second };
            let (dtype, source) = (DType::BF16, Source::OwnTables);
            let call = Planned { multiprocessors: 132, l2_bytes: 60 << 20, dtype, source, pointers };
            [vectors_fit(8, &call, walk), angles_fit(8, &call, walk)]
        };
        let walk = contiguous(RopeLayout::Bshd, [2, 3, 4, 4]);
        assert_eq!(fit(&walk, [4096; 6]), [true; 2]);
        for tensor in 0..6 {
            let mut at = [4096; 6];
            at[tensor] += 8;
            assert_eq!(fit(&walk, at), [tensor >= 4, tensor < 4], "{tensor}");
        }
        for dim in 0..3 {
            for end in 0..4 {
                let mut walk = walk;
                let RopeWalk { q, k, .. } = &mut walk;
                [&mut q.input, &mut q.output, &mut k.input, &mut k.output][end][dim] += 4;
                assert_eq!(fit(&walk, [4096; 6]), [false, true], "{end} {dim}");
            }
        }
        for table in 0..2 {
            let mut walk = walk;
            [&mut walk.first, &mut walk.second][table][1] += 4;
            assert_eq!(fit(&walk, [4096; 6]), [true, false], "{table}");
        }
    }

    /// The backward pass is not plain: it negates the sine.
    #[test]
    fn plain_calls_multiply_by_nothing() {
        let walk = RopeWalk { factor: 1.0, sin_sign: 1.0, ..contiguous(RopeLayout::Bshd, [2, 3, 4, 4]) };
        assert!(is_plain(&walk));
        let changes: [fn(&mut RopeWalk); 4] = [
            |walk| walk.factor = 2.0,
            |walk| walk.sin_sign = -1.0,
            |walk| walk.q.scale = 2.0,
            |walk| {
                walk.k.scale = 2.0;
            },
        ];
        for (k, change) in changes.into_iter().enumerate() {
            let mut walk = walk;
            change(&mut walk);
            assert!(!is_plain(&walk), "{k}");
        }
        assert!(is_plain(&RopeWalk { k: Side::default(), ..walk }));
    }

    #[test]
    fn a_threads_heads_are_as_far_apart_as_there_are_groups() {
        let mut walk = contiguous(RopeLayout::Bshd, [1, 3, 5, 2]);
        walk.q.output[2] = 256;
        group(&mut walk, 2);
        assert_eq!((walk.q.groups, walk.q.step, walk.k.groups, walk.k.step), (3, [3 * 128, 3 * 256], 1, [128; 2]));
    }

    #[test]
    fn angles_that_are_read_are_for_more_heads_than_two() {
        use DType::{BF16, F32};
        let of = |source, dtype, tokens, is_bhsd| planned(source, dtype, tokens, 64, is_bhsd, 0);
        for source in [Source::Angles, Source::Tables] {
            assert_eq!([16, 512, 8192].map(|tokens| of(source, BF16, tokens, false)), [Some(1), None, None]);
            assert_eq!([16, 512, 8192].map(|tokens| of(source, BF16, tokens, true)), [Some(1), Some(2), Some(4)]);
            // Heads that rotate in part, and given positions, are planned as on the fly.
            assert_eq!(planned(source, BF16, 8192, 32, false, 0), Some(2));
            assert_eq!(planned(source, BF16, 8192, 64, false, IDS), Some(2));
        }
        assert_eq!(of(Source::Angles, F32, 8192, false), Some(2));
        assert_eq!([512, 8192].map(|tokens| of(Source::Hf, BF16, tokens, false)), [Some(2); 2]);
        assert_eq!(of(Source::OwnTables, BF16, 8192, false), Some(1));
    }
}

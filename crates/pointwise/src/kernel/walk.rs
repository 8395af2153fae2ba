//! The layout engine: from shapes and strides to the loop a kernel runs. Arithmetic only, no memory touched.

use pointwise_core::formula::MAX_TENSORS;
use pointwise_core::launch::{Divisor, GROUP, GROUPED_TENSORS, MAX_DIMS, MAX_ITEMS, MAX_REACH, MAX_ROW_DIMS, SPLITS};
#[cfg(doc)]
use pointwise_core::launch::{Groups, Steps};

use crate::shape::Shape;

/// Tensors of a walk: the result, and up to three operands behind it.
pub(crate) const TENSORS: usize = 4;

/// An index of each tensor, or a step in it, in elements.
pub(crate) type Places<const N: usize = TENSORS> = [i64; N];

/// The strides of one tensor along the dimensions of a result's shape; empty for one that has no elements of its own to
/// step along: an operand that is a number, or is not there.
pub(crate) type OperandStrides = [i64; MAX_DIMS];

/// A loop over the elements of a result, which is tensor 0, with every tensor's step along each dimension. Outermost
/// dimension first; none has the size 1, and no two could be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk<const N: usize = TENSORS> {
    rank: usize,
    sizes: [usize; MAX_DIMS],
    steps: [Places<N>; MAX_DIMS],
}

/// Words of [`Steps`] of as many tensors and dimensions as there can be.
const STEP_WORDS: usize = 1 + MAX_TENSORS + SPLITS * (3 + MAX_TENSORS);
/// [`Steps`] of any number of tensors and dimensions, as its words.
pub(crate) type StepWords = [u32; STEP_WORDS];
/// Words of [`Groups`] of as many tensors as there can be.
const GROUP_WORDS: usize = 4 + 2 * GROUPED_TENSORS + GROUP + SPLITS * (3 + GROUPED_TENSORS);
/// [`Groups`] of any number of tensors, as its words.
pub(crate) type GroupWords = [u32; GROUP_WORDS];

/// The limits of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Items stay below this.
    items: u64,
    /// And the elements that the steps lead away from where a tensor starts.
    reach: u64,
}

impl Limit {
    /// The limits of a kernel that is given [`Steps`].
    pub(crate) const STEPS: Limit = Limit { items: MAX_ITEMS, reach: MAX_REACH };

    /// Returns the limits of a flat kernel, whose indices count vectors of `lanes` elements.
    pub(crate) const fn flat(lanes: usize) -> Limit {
        Limit { items: MAX_ITEMS * lanes as u64, reach: u64::MAX }
    }

    /// Returns the limits of a class.
    pub(crate) fn of(class: Class, lanes: usize) -> Limit {
        if class == Class::Flat { Limit::flat(lanes) } else { Limit::STEPS }
    }
}

/// Which template runs a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Every operand lies like the result or is one value: vectors.
    Flat,
    /// The innermost dimension of every operand is contiguous or one value: vectors along it.
    Rows,
    /// Anything: element by element; or, where results are contiguous and each operand lies like them or is one value along
    /// a row, vectors across the ends of rows.
    Strided,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 3] = [Class::Flat, Class::Rows, Class::Strided];

    /// `flat`, `rows` or `strided`: the last part of a kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Flat => "flat",
            Class::Rows => "rows",
            Class::Strided => "strided",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The strides of an operand of shape `shape` broadcast to `result`; it does broadcast.
pub(crate) fn broadcast(shape: &Shape, strides: &[i64], result: &Shape) -> OperandStrides {
    let mut along = OperandStrides::default();
    let new = result.rank() - shape.rank();
    for (dim, (&size, &stride)) in shape.iter().zip(strides).enumerate() {
        along[new + dim] = if size == 1 { 0 } else { stride };
    }
    along
}

impl<const N: usize> Walk<N> {
    /// The loop over a result of shape `shape`, the strides of the tensors along it being `along`. Dimensions are put
    /// in the order of the result's strides, so that stores come one after another, and merged where one step serves
    /// both.
    #[inline]
    pub(crate) fn new(shape: &Shape, along: &[OperandStrides; N]) -> Walk<N> {
        let mut walk = Walk { rank: 0, sizes: [1; MAX_DIMS], steps: [[0; N]; MAX_DIMS] };
        for (dim, &size) in shape.iter().enumerate() {
            if size != 1 {
                walk.sizes[walk.rank] = size;
                walk.steps[walk.rank] = std::array::from_fn(|k| along[k][dim]);
                walk.rank += 1;
            }
        }
        walk.sort();
        walk.merge();
        walk
    }

    /// As [`Walk::new`], of tensors that are contiguous and of this shape, or numbers, by their steps.
    #[inline]
    pub(crate) fn contiguous(shape: &Shape, steps: Places<N>) -> Walk<N> {
        let mut walk = Walk { rank: 0, sizes: [1; MAX_DIMS], steps: [[0; N]; MAX_DIMS] };
        if shape.numel() != 1 {
            (walk.rank, walk.sizes[0], walk.steps[0]) = (1, shape.numel(), steps);
        }
        walk
    }

    /// Insertion sort: stable, and nearly always there is nothing to do.
    #[inline]
    fn sort(&mut self) {
        for end in 1..self.rank {
            let mut dim = end;
            while dim > 0 && self.steps[dim - 1][0].unsigned_abs() < self.steps[dim][0].unsigned_abs() {
                self.sizes.swap(dim - 1, dim);
                self.steps.swap(dim - 1, dim);
                dim -= 1;
            }
        }
    }

    #[inline]
    fn merge(&mut self) {
        let mut last = 0;
        for dim in 1..self.rank {
            let inner = self.sizes[dim] as i64;
            let (outer_steps, steps) = (self.steps[last], self.steps[dim]);
            // A step that would overflow is none that another dimension's steps add up to.
            if (0..N).all(|k| steps[k].checked_mul(inner) == Some(outer_steps[k])) {
                self.sizes[last] *= self.sizes[dim];
                self.steps[last] = steps;
            } else {
                last += 1;
                self.sizes[last] = self.sizes[dim];
                self.steps[last] = steps;
            }
        }
        self.rank = if self.rank == 0 { 0 } else { last + 1 };
    }

    /// The place of item `index` in the walk's order, in each tensor.
    pub(crate) fn place(&self, index: u64) -> Places<N> {
        let (mut place, mut rest) = ([0; N], index);
        for (size, steps) in self.dims().rev() {
            let at = (rest % size as u64) as i64;
            rest /= size as u64;
            place = std::array::from_fn(|k| place[k] + at * steps[k]);
        }
        place
    }

    /// Elements of the result.
    pub(crate) fn numel(&self) -> u64 {
        self.sizes[..self.rank].iter().map(|&size| size as u64).product()
    }

    /// Sizes and steps of the dimensions, outermost first.
    pub(crate) fn dims(&self) -> impl DoubleEndedIterator<Item = (usize, &Places<N>)> + ExactSizeIterator {
        self.sizes[..self.rank].iter().copied().zip(&self.steps)
    }

    /// Size and steps of the innermost dimension; a single element is a dimension of size 1.
    pub(crate) fn inner(&self) -> (usize, Places<N>) {
        match self.rank.checked_sub(1) {
            Some(last) => (self.sizes[last], self.steps[last]),
            None => (1, [0; N]),
        }
    }

    /// True if along the innermost dimension each tensor is contiguous or one value, and the first is contiguous.
    fn is_inner_dense(&self) -> bool {
        let (size, steps) = self.inner();
        size == 1 || steps[0] == 1 && steps[1..].iter().all(|&step| step == 0 || step == 1)
    }

    /// True if one template call does it: there is a single dimension, along which tensors lie alike or are one value.
    pub(crate) fn is_flat(&self) -> bool {
        self.rank <= 1 && self.is_inner_dense()
    }

    /// The walk by vectors of `lanes` elements along the innermost dimension, if vectors never straddle rows and each
    /// lies as `aligned` (addresses and steps in elements of a tensor) asks.
    pub(crate) fn rows(&self, lanes: usize, aligned: impl Fn(usize, i64) -> bool) -> Option<Walk<N>> {
        let (size, steps) = self.inner();
        if self.rank == 0 || self.rank > MAX_ROW_DIMS || !self.is_inner_dense() || !size.is_multiple_of(lanes) {
            return None;
        }
        let dense = (0..N).filter(|&k| steps[k] == 1);
        for k in dense {
            let outer = self.steps[..self.rank - 1].iter().map(|step| step[k]);
            if !std::iter::once(0).chain(outer).all(|step| aligned(k, step)) {
                return None;
            }
        }
        let mut walk = *self;
        let last = self.rank - 1;
        walk.sizes[last] = size / lanes;
        walk.steps[last] = steps.map(|step| step * lanes as i64);
        if walk.sizes[last] == 1 {
            walk.rank -= 1;
        }
        Some(walk)
    }

    /// True if one launch can do it by vectors of `lanes` elements that go across the ends of rows, each across one end at most.
    /// The walk has two or three dimensions. The elements of each tensor lie one after another, as `aligned` asks. A tensor
    /// behind the first `results` may be one value along a row instead.
    pub(crate) fn goes_across(&self, lanes: usize, results: usize, aligned: impl Fn(usize) -> bool) -> bool {
        let (size, steps) = self.inner();
        let is_small = self.numel() < Limit::STEPS.items && self.reach() < Limit::STEPS.reach;
        let fits = |k: usize| self.is_dense(k) && aligned(k);
        matches!(self.rank, 2 | 3)
            && size >= lanes
            && is_small
            && (0..N).all(|k| k >= results && steps[k] == 0 || fits(k))
    }

    /// True if the elements of tensor `k` lie one after another, in the order of the walk.
    fn is_dense(&self, k: usize) -> bool {
        let mut step = 1;
        self.dims().rev().all(|(size, steps)| {
            let is_next = steps[k] == step;
            step = step.saturating_mul(size as i64);
            is_next
        })
    }

    /// Which tensors do not move along the innermost dimension.
    pub(crate) fn once(&self) -> [bool; N] {
        self.inner().1.map(|step| step == 0)
    }

    /// True if each element of tensor `k` is met once.
    pub(crate) fn meets_once(&self, k: usize) -> bool {
        self.steps[..self.rank].iter().all(|step| step[k] != 0)
    }

    /// How far the steps along a dimension lead from where it begins, in the tensor where that is farthest.
    fn reach_along(&self, dim: usize) -> u64 {
        let farthest = self.steps[dim].iter().map(|step| step.unsigned_abs()).max().unwrap_or(0);
        farthest.saturating_mul((self.sizes[dim] as u64).saturating_sub(1))
    }

    /// How far all steps together lead, in the tensor where that is farthest along each dimension.
    fn reach(&self) -> u64 {
        (0..self.rank).fold(0_u64, |sum, dim| sum.saturating_add(self.reach_along(dim)))
    }

    /// The dimension along which a walk that one launch cannot do is taken apart, and how many of its indices a part has.
    fn cut(&self, limit: Limit) -> Option<(usize, usize)> {
        if self.reach() >= limit.reach {
            // In halves: no tensor is so large that there would be many.
            let widest = (0..self.rank).max_by_key(|&dim| self.reach_along(dim)).unwrap_or(0);
            return Some((widest, self.sizes[widest].div_ceil(2)));
        }
        if self.numel() < limit.items || self.rank == 0 {
            return None;
        }
        let inner = self.numel() / self.sizes[0] as u64;
        Some((0, ((limit.items - 1) / inner).max(1) as usize))
    }

    /// The walk over `size` indices of a dimension.
    fn part(&self, dim: usize, size: usize) -> Walk<N> {
        let mut part = *self;
        part.sizes[dim] = size;
        if size == 1 {
            part.sizes[dim..part.rank].rotate_left(1);
            part.steps[dim..part.rank].rotate_left(1);
            part.rank -= 1;
        }
        part
    }

    /// The walk in parts that a launch each can do, with the places at which they start.
    pub(crate) fn parts<E>(
        &self,
        limit: Limit,
        start: Places<N>,
        run: &mut impl FnMut(&Walk<N>, Places<N>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((dim, together)) = self.cut(limit) else {
            return run(self, start);
        };
        let (size, steps) = (self.sizes[dim], self.steps[dim]);
        (0..size).step_by(together).try_for_each(|index| {
            let start = std::array::from_fn(|k| start[k] + index as i64 * steps[k]);
            self.part(dim, together.min(size - index)).parts(limit, start, run)
        })
    }

    /// How many [`parts`](Walk::parts) there are. Those of one size are counted once: a view that repeats an element may
    /// have 2^31 of them.
    pub(crate) fn count_parts(&self, limit: Limit) -> u64 {
        let Some((dim, together)) = self.cut(limit) else {
            return 1;
        };
        let (whole, rest) = (self.sizes[dim] / together, self.sizes[dim] % together);
        let count = |size: usize| if size == 0 { 0 } else { self.part(dim, size).count_parts(limit) };
        whole as u64 * count(together) + count(rest)
    }

    /// Returns the words of [`Steps`] for a kernel of the first `tensors` tensors, with `splits` dimensions besides the outermost.
    /// The walk keeps to [`Limit::STEPS`], and has at most `splits + 1` dimensions.
    pub(crate) fn step_words(&self, tensors: usize, splits: usize) -> StepWords {
        debug_assert!(self.numel() < MAX_ITEMS);
        let mut words = [0; STEP_WORDS];
        let (head, tail) = words.split_at_mut(1 + tensors);
        let used = self.rank.saturating_sub(1);
        head[0] = used.max(1) as u32;
        let strides = |words: &mut [u32], steps: &Places<N>| {
            for (word, step) in words.iter_mut().zip(steps) {
                *word = *step as i32 as u32;
            }
        };
        if self.rank > 0 {
            strides(&mut head[1..], &self.steps[0]);
        }
        let put = |words: &mut [u32], size: Divisor, steps: &Places<N>| {
            words[..3].copy_from_slice(&size.words());
            strides(&mut words[3..], steps);
        };
        for (slot, words) in tail.chunks_exact_mut(3 + tensors).take(splits).enumerate() {
            if used == 0 && slot == 0 {
                // The one dimension as the innermost: no item is so large that something would be left for the outermost.
                let steps = if self.rank == 0 { [0; N] } else { self.steps[0] };
                put(words, Divisor::new(MAX_ITEMS as u32), &steps);
            } else if slot < used {
                let dim = self.rank - 1 - slot;
                put(words, Divisor::new(self.sizes[dim] as u32), &self.steps[dim]);
            }
        }
        words
    }

    /// The dimension that threads of a kernel of single elements have groups of: one of which groups leave little over.
    /// Not the innermost if there is the choice, for neighbouring threads have neighbours there, but one along which an
    /// operand's elements lie close together.
    fn divided(&self) -> usize {
        let cost = |dim: usize| {
            let (size, steps) = (self.sizes[dim], &self.steps[dim]);
            let waste = size.div_ceil(GROUP) * GROUP * 16 / size;
            let closest = steps[1..].iter().map(|step| step.unsigned_abs()).filter(|&step| step > 0).min();
            (waste, dim + 1 == self.rank, closest)
        };
        (0..self.rank).min_by_key(|&dim| cost(dim)).unwrap_or(0)
    }

    /// Returns the groups of elements that threads of a kernel of single elements have, of `most` each: [`GROUP`] or one.
    /// The walk keeps to [`Limit::STEPS`].
    fn grouped(&self, most: usize) -> Grouped<N> {
        if most == 1 {
            return Grouped { walk: *self, divided: 0, apart: [0; N], ends: [0; GROUP - 1] };
        }
        let dim = self.divided();
        let (size, is_innermost) = (self.sizes[dim], dim + 1 >= self.rank);
        let count = size.div_ceil(GROUP);
        // A group of neighbours; but along the innermost dimension neighbouring threads have these, so that a group's
        // elements lie apart.
        let (within, between) = if is_innermost { (count, 1) } else { (1, GROUP) };
        let mut walk = *self;
        walk.sizes[dim] = count;
        walk.steps[dim] = self.steps[dim].map(|step| step * between as i64);
        if count == 1 && self.rank > 0 {
            walk.sizes[dim..self.rank].rotate_left(1);
            walk.steps[dim..self.rank].rotate_left(1);
            walk.rank -= 1;
        }
        let end = |k: usize| {
            let end = size.saturating_sub((k + 1) * within).div_ceil(between);
            // If every group has the element, their index does not matter. A single group has no index.
            if end >= count { u32::MAX } else { end as u32 }
        };
        Grouped {
            walk,
            divided: (self.rank.max(1) - 1 - dim) as u32,
            apart: std::array::from_fn(|k| (self.steps[dim][k] * within as i64) as i32),
            ends: std::array::from_fn(end),
        }
    }

    /// The words of [`Groups`] for a kernel that reads nothing of them but the steps, from element to element: see
    /// [`ACROSS`](pointwise_core::launch::ACROSS).
    pub(crate) fn steps_for_groups(&self, tensors: usize) -> GroupWords {
        let mut words = [0; GROUP_WORDS];
        let steps = self.step_words(tensors, SPLITS);
        // Behind `divided`, `apart` and `ends`.
        words.iter_mut().skip(1 + tensors + (GROUP - 1)).zip(steps).for_each(|(word, step)| *word = step);
        words
    }

    /// Returns the words of [`Groups`], which a kernel of single elements of the first `tensors` tensors is given, and the
    /// number of its items. A thread has `most` elements.
    pub(crate) fn group_words(&self, tensors: usize, most: usize) -> (GroupWords, u64) {
        let Grouped { walk, divided, apart, ends } = self.grouped(most);
        let mut words = [0; GROUP_WORDS];
        let all = std::iter::once(divided).chain(apart[..tensors].iter().map(|&step| step as u32)).chain(ends);
        let steps = walk.step_words(tensors, SPLITS);
        for (word, value) in words.iter_mut().zip(all.chain(steps)) {
            *word = value;
        }
        (words, walk.numel())
    }
}

/// [`Walk::grouped`].
struct Grouped<const N: usize> {
    walk: Walk<N>,
    divided: u32,
    apart: [i32; N],
    ends: [u32; GROUP - 1],
}

#[cfg(test)]
mod tests {
    use pointwise_core::launch::{Dim, Groups, Steps};
    use proptest::prelude::*;

    use super::*;

    impl<const N: usize> Walk<N> {
        /// Returns the steps for a kernel of the first `K` tensors. The walk keeps to [`Limit::STEPS`], and has at most `D + 1`
        /// dimensions.
        fn steps<const K: usize, const D: usize>(&self) -> Steps<K, D> {
            debug_assert!(self.numel() < MAX_ITEMS);
            let of = |places: &Places<N>| -> [i32; K] { std::array::from_fn(|k| places[k] as i32) };
            // A single item has no step.
            let outer = if self.rank == 0 { [0; K] } else { of(&self.steps[0]) };
            let splits = self.rank.saturating_sub(1);
            let none = Dim { size: Divisor::default(), strides: [0; K] };
            let mut steps = Steps { splits: splits.max(1) as u32, outer, inner: [none; D] };
            if splits == 0 {
                // The one dimension as the innermost: no item is so large that something would be left for the outermost.
                steps.inner[0] = Dim { size: Divisor::new(MAX_ITEMS as u32), strides: outer };
            }
            for slot in 0..splits {
                let dim = self.rank - 1 - slot;
                let size = Divisor::new(self.sizes[dim] as u32);
                steps.inner[slot] = Dim { size, strides: of(&self.steps[dim]) };
            }
            steps
        }

        fn groups<const K: usize>(&self, most: usize) -> (Groups<K>, u64) {
            let Grouped { walk, divided, apart, ends } = self.grouped(most);
            (Groups { steps: walk.steps(), divided, apart: std::array::from_fn(|k| apart[k]), ends }, walk.numel())
        }
    }

    /// Returns the place of an item, as a kernel finds it from its steps.
    fn place<const D: usize>(steps: &Steps<TENSORS, D>, item: u32) -> Places {
        assert!(steps.splits > 0, "which kernels do not ask");
        let mut at = [0; TENSORS];
        let mut rest = item;
        for d in 0..steps.splits as usize {
            let (next, index) = steps.inner[d].size.divide(rest);
            (0..TENSORS).for_each(|k| at[k] += i64::from(index as i32 * steps.inner[d].strides[k]));
            rest = next;
        }
        std::array::from_fn(|k| at[k] + i64::from(rest as i32 * steps.outer[k]))
    }

    /// A struct of 32-bit words as these.
    fn words_of<const N: usize, const D: usize>(steps: &Steps<N, D>) -> Vec<u32> {
        let mut words = vec![steps.splits];
        words.extend(steps.outer.map(|stride| stride as u32));
        for dim in &steps.inner {
            words.extend(dim.size.words());
            words.extend(dim.strides.map(|stride| stride as u32));
        }
        words
    }

    #[test]
    fn the_words_of_steps_are_those_of_the_struct() {
        for (shape, along) in [
            (&[][..], [[0; MAX_DIMS]; 4]),
            (&[7], [[3, 0, 0, 0, 0, 0, 0, 0]; 4]),
            (
                &[5, 6, 7],
                [[100, -9, 1, 0, 0, 0, 0, 0], [0, 7, 1, 0, 0, 0, 0, 0], [60, 8, 0, 0, 0, 0, 0, 0], [0; MAX_DIMS]],
            ),
        ] {
            let walk = Walk::<TENSORS>::new(&Shape::new(shape).unwrap(), &along);
            let (three, seven) = (walk.steps::<4, 3>(), walk.steps::<3, 7>());
            assert_eq!(words_of(&three)[..], walk.step_words(4, 3)[..words_of(&three).len()]);
            let unused = |words: &[u32]| words[1 + 3 + walk.rank.max(2).saturating_sub(1) * 6..].to_vec();
            let (expected, got) = (words_of(&seven), walk.step_words(3, 7));
            let used = expected.len() - unused(&expected).len();
            assert_eq!(expected[..used], got[..used]);
        }
    }

    #[test]
    fn contiguous_tensors_are_one_dimension() {
        for dims in [&[][..], &[1], &[7], &[5, 1, 1023], &[3, 0]] {
            let shape = Shape::new(dims).unwrap();
            let (contiguous, number) = (shape.contiguous_strides(), [0; MAX_DIMS]);
            let mut steps = [0; MAX_DIMS];
            steps[..dims.len()].copy_from_slice(&contiguous);
            let general = Walk::<3>::new(&shape, &[steps, steps, number]);
            let short = Walk::contiguous(&shape, [1, 1, 0]);
            assert_eq!(general.numel(), short.numel());
            if !dims.contains(&0) {
                assert_eq!(general.dims().collect::<Vec<_>>(), short.dims().collect::<Vec<_>>(), "{dims:?}");
            }
        }
    }

    #[test]
    fn the_words_of_groups_are_those_of_the_struct() {
        for dims in [&[][..], &[7], &[5, 1023], &[8, 8], &[3, 4, 5, 6]] {
            let walk = walk(dims, [dims, &[], &[]]);
            for most in [GROUP, 1] {
                let (groups, items) = walk.groups::<4>(most);
                let mut expected = vec![groups.divided];
                expected.extend(groups.apart.map(|step| step as u32));
                expected.extend(groups.ends);
                expected.extend(words_of(&groups.steps));
                let (words, count) = walk.group_words(4, most);
                let used = expected.len() - (SPLITS - walk.grouped(most).walk.rank.saturating_sub(1).max(1)) * 7;
                assert_eq!((&words[..used], count), (&expected[..used], items));
            }
        }
    }

    /// The places of all items, in order of size.
    fn places(walk: &Walk, start: Places) -> Vec<Places> {
        let steps: Steps<TENSORS, SPLITS> = walk.steps();
        let mut all: Vec<Places> = (0..walk.numel() as u32)
            .map(|item| {
                let at = place(&steps, item);
                std::array::from_fn(|k| start[k] + at[k])
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// The places of all elements by groups, in order of size; those that take the place of others that there are not
    /// left out.
    fn places_of_groups(walk: &Walk, start: Places, most: usize) -> Vec<Places> {
        let (groups, items) = walk.groups::<TENSORS>(most);
        let mut all = Vec::new();
        for item in 0..items as u32 {
            let (mut rest, mut along) = (item, 0);
            for d in 0..groups.steps.splits {
                let (next, index) = groups.steps.inner[d as usize].size.divide(rest);
                if groups.divided == d {
                    along = index;
                }
                rest = next;
            }
            if groups.divided == groups.steps.splits {
                along = rest;
            }
            let first = place(&groups.steps, item);
            for i in 0..GROUP {
                if i == 0 || along < groups.ends[i - 1] {
                    all.push(std::array::from_fn(|k| start[k] + first[k] + i64::from(i as i32 * groups.apart[k])));
                }
            }
        }
        all.sort_unstable();
        all
    }

    /// The same from the definition: every index of the shape.
    fn model(dims: &[usize], along: &[OperandStrides; TENSORS]) -> Vec<Places> {
        let mut all = vec![Places::default()];
        for (d, &size) in dims.iter().enumerate() {
            all = all
                .iter()
                .flat_map(|at| (0..size as i64).map(move |i| std::array::from_fn(|k| at[k] + i * along[k][d])))
                .collect();
        }
        all.sort_unstable();
        all
    }

    fn contiguous(dims: &[usize]) -> OperandStrides {
        let mut along = OperandStrides::default();
        let mut step = 1;
        for d in (0..dims.len()).rev() {
            along[d] = step;
            step *= dims[d] as i64;
        }
        along
    }

    fn walk(dims: &[usize], operands: [&[usize]; 3]) -> Walk {
        let shape = Shape::new(dims).unwrap();
        let of = |dims: &[usize]| broadcast(&Shape::new(dims).unwrap(), &contiguous(dims)[..dims.len()], &shape);
        Walk::new(&shape, &[contiguous(dims), of(operands[0]), of(operands[1]), of(operands[2])])
    }

    #[test]
    fn dimensions_are_merged() {
        let rank = |dims: &[usize], a: &[usize], b: &[usize]| walk(dims, [a, b, &[]]).dims().len();
        assert_eq!(rank(&[4, 5, 6], &[4, 5, 6], &[4, 5, 6]), 1);
        assert_eq!(rank(&[4, 5, 6], &[4, 5, 6], &[1]), 1);
        assert_eq!(rank(&[4, 5, 6], &[4, 5, 6], &[5, 6]), 2); // bias
        assert_eq!(rank(&[4, 5, 6], &[4, 5, 6], &[4, 1, 1]), 2); // scale
        assert_eq!(rank(&[4, 5], &[4, 1], &[1, 5]), 2); // outer product
        assert_eq!(rank(&[4, 5, 6, 7], &[4, 5, 6, 7], &[5, 1, 1]), 3); // channels
        assert_eq!(rank(&[2, 3, 4, 5], &[2, 1, 4, 1], &[1, 3, 1, 5]), 4); // interleaved
        assert_eq!(rank(&[1, 1], &[1, 1], &[]), 0);
    }

    #[test]
    fn rows_need_whole_aligned_vectors() {
        let aligned = |_: usize, step: i64| step % 8 == 0;
        let bias = walk(&[4, 16], [&[4, 16], &[16], &[]]);
        assert!(!bias.is_flat());
        let rows = bias.rows(8, aligned).unwrap();
        assert_eq!((rows.numel(), rows.inner().1), (8, [8, 8, 8, 0]));
        assert!(walk(&[4, 12], [&[4, 12], &[12], &[]]).rows(8, aligned).is_none());
        assert!(bias.rows(8, |_, _| false).is_none());
        // One vector a row: the row is the item.
        assert_eq!(walk(&[4, 8], [&[4, 8], &[8], &[]]).rows(8, aligned).unwrap().dims().len(), 1);
    }

    /// The kernel is given as many dimensions as it has room for.
    #[test]
    fn rows_of_many_dimensions_have_no_vectors() {
        let aligned = |_: usize, _: i64| true;
        let four = walk(&[2, 3, 4, 16], [&[2, 1, 4, 16], &[1, 3, 1, 16], &[]]);
        let five = walk(&[2, 3, 4, 5, 16], [&[2, 1, 4, 1, 16], &[1, 3, 1, 5, 16], &[]]);
        assert_eq!([&four, &five].map(|walk| walk.dims().len()), [MAX_ROW_DIMS, MAX_ROW_DIMS + 1]);
        assert!(four.rows(8, aligned).is_some() && five.rows(8, aligned).is_none());
    }

    #[test]
    fn an_operand_that_is_repeated_is_met_more_than_once() {
        let bias = walk(&[4, 16], [&[4, 16], &[16], &[]]);
        assert_eq!([0, 1, 2, 3].map(|k| bias.meets_once(k)), [true, true, false, false]);
    }

    /// An operand's strides may lead much farther than those of the result.
    #[test]
    fn a_walk_is_split_where_one_tensor_alone_reaches_too_far() {
        let shape = Shape::new(&[4, 3]).unwrap();
        let mut far = OperandStrides::default();
        (far[0], far[1]) = (1 << 30, 1);
        let walk = Walk::new(&shape, &[contiguous(&[4, 3]), OperandStrides::default(), OperandStrides::default(), far]);
        let mut parts = Vec::new();
        let mut part = |part: &Walk, start: Places| {
            parts.push((part.numel(), start));
            Ok::<(), ()>(())
        };
        walk.parts(Limit::STEPS, Places::default(), &mut part).unwrap();
        assert_eq!(parts, [(6, [0; 4]), (6, [6, 0, 0, 2 << 30])]);
    }

    /// As many as would take years to visit.
    #[test]
    fn parts_are_counted_by_their_sizes() {
        let of = |size: usize, step: i64| {
            let mut along = OperandStrides::default();
            along[0] = step;
            Walk::<TENSORS>::new(&Shape::new(&[size]).unwrap(), &[along; TENSORS])
        };
        let most = MAX_ITEMS as usize - 1;
        for size in [1, most, most + 1, most * 3, most * 3 + 1, 1 << 62] {
            assert_eq!(of(size, 0).count_parts(Limit::STEPS), size.div_ceil(most) as u64, "{size}");
        }
        // Halves as far as the reach asks; of their 2^31 items the last is a part of its own.
        assert_eq!(of(1 << 62, 1).count_parts(Limit::STEPS), 1 << 32);
        // Halves of two sizes at every cut.
        let odd = 0x1555_5555_5555_5555;
        assert!(of(odd, 1).count_parts(Limit::STEPS) >= odd as u64 / MAX_REACH);
    }

    #[test]
    fn groups_leave_little_over() {
        let divided = |dims: &[usize]| {
            let walk = walk(dims, [dims, &dims[dims.len() - 1..], &[]]);
            let (groups, items) = walk.groups::<2>(GROUP);
            (groups.divided, groups.apart[0], groups.ends, items)
        };
        const ALL: u32 = u32::MAX;
        // Neighbours of the outer dimension; quarters of the inner one; where neither divides, what wastes less.
        assert_eq!(divided(&[8, 8]), (1, 8, [ALL; 3], 16));
        assert_eq!(divided(&[3, 8]), (0, 2, [ALL; 3], 6));
        assert_eq!(divided(&[5, 1023]), (0, 256, [ALL, ALL, 255], 5 * 256));
        assert_eq!(divided(&[1023, 5]), (1, 5, [ALL, ALL, 255], 256 * 5));
        assert_eq!(divided(&[3, 3]), (1, 3, [ALL, ALL, 0], 3));
        assert_eq!(walk(&[], [&[], &[], &[]]).groups::<2>(GROUP).0.ends, [0; 3]);
    }

    #[test]
    fn a_transposed_operand_is_read_by_neighbours() {
        let shape = Shape::new(&[4, 8, 16]).unwrap();
        let mut x = OperandStrides::default();
        (x[0], x[1], x[2]) = (128, 1, 8);
        let walk =
            Walk::new(&shape, &[contiguous(&[4, 8, 16]), x, OperandStrides::default(), OperandStrides::default()]);
        let (groups, _) = walk.groups::<2>(GROUP);
        assert_eq!((groups.divided, groups.apart), (1, [16, 1]));
    }

    #[test]
    fn the_result_decides_the_order() {
        let shape = Shape::new(&[6, 7]).unwrap();
        let (mut y, mut x) = (OperandStrides::default(), OperandStrides::default());
        (y[0], y[1], x[0], x[1]) = (1, 6, 7, 1);
        let turned = Walk::new(&shape, &[y, x, OperandStrides::default(), OperandStrides::default()]);
        assert_eq!(turned.inner(), (6, [1, 7, 0, 0]));
    }

    proptest! {
        #[test]
        fn every_element_is_found_once(
            dims in prop::collection::vec(1..6_usize, 0..6),
            ones in prop::array::uniform3(0..64_u32),
            order in 0..6_usize,
            items in 2..60_u64,
            reach in 1..400_u64,
        ) {
            // The result in another order of dimensions, operands broadcast along some.
            let rank = dims.len();
            let mut turned = dims.clone();
            turned.rotate_left(if rank == 0 { 0 } else { order % rank });
            let steps = contiguous(&turned);
            let mut along = [OperandStrides::default(); TENSORS];
            for d in 0..rank {
                along[0][d] = steps[(d + rank - order % rank) % rank];
                for k in 0..3 {
                    along[k + 1][d] = if ones[k] >> d & 1 == 1 { 0 } else { contiguous(&dims)[d] };
                }
            }
            let expected = model(&dims, &along);
            let walk = Walk::new(&Shape::new(&dims).unwrap(), &along);
            prop_assert_eq!(places(&walk, Places::default()), expected.clone());
            for most in [GROUP, 1] {
                prop_assert_eq!(places_of_groups(&walk, Places::default(), most), expected.clone());
            }
            let (mut found, mut parts) = (Vec::new(), 0);
            let limit = Limit { items, reach };
            walk.parts(limit, Places::default(), &mut |part, start| {
                assert!(part.numel() < items);
                assert!((0..part.rank).map(|dim| part.reach_along(dim)).sum::<u64>() < reach);
                assert!(part.sizes[..part.rank].iter().all(|&size| size > 1));
                found.extend(places(part, start));
                parts += 1;
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(walk.count_parts(limit), parts);
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}

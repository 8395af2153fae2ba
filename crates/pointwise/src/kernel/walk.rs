//! The layout engine: from shapes and strides to the loop a kernel runs. Arithmetic only, no memory touched.

use pointwise_core::launch::{Divisor, MAX_DIMS, MAX_ITEMS, Steps};

use crate::shape::Shape;

/// Tensors of a walk: the result, and up to three operands behind it.
pub(crate) const TENSORS: usize = 4;

/// An index of each tensor, or a step in it, in elements.
pub(crate) type Places = [i64; TENSORS];

/// The strides of one tensor along the dimensions of a result's shape; empty for one that has no elements of its own to
/// step along: an operand that is a number, or is not there.
pub(crate) type Along = [i64; MAX_DIMS];

/// A loop over the elements of a result, with every tensor's step along each dimension. Outermost dimension first; none
/// has the size 1, and no two could be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    rank: usize,
    sizes: [usize; MAX_DIMS],
    steps: [Places; MAX_DIMS],
}

/// Which template runs a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Every operand lies like the result or is one value: vectors.
    Flat,
    /// The innermost dimension of every operand is contiguous or one value: vectors along it.
    Rows,
    /// Anything: element by element.
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
pub(crate) fn broadcast(shape: &Shape, strides: &[i64], result: &Shape) -> Along {
    let mut along = Along::default();
    let new = result.rank() - shape.rank();
    for (dim, (&size, &stride)) in shape.iter().zip(strides).enumerate() {
        along[new + dim] = if size == 1 { 0 } else { stride };
    }
    along
}

impl Walk {
    /// The loop over a result of shape `shape`, the strides of the tensors along it being `along`. Dimensions are put in
    /// the order of the result's strides, so that stores come one after another, and merged where one step serves both.
    #[inline]
    pub(crate) fn new(shape: &Shape, along: &[Along; TENSORS]) -> Walk {
        let mut walk = Walk { rank: 0, sizes: [1; MAX_DIMS], steps: [Places::default(); MAX_DIMS] };
        for (dim, &size) in shape.iter().enumerate() {
            if size != 1 {
                walk.sizes[walk.rank] = size;
                walk.steps[walk.rank] = [along[0][dim], along[1][dim], along[2][dim], along[3][dim]];
                walk.rank += 1;
            }
        }
        walk.sort();
        walk.merge();
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
            if (0..TENSORS).all(|k| steps[k].checked_mul(inner) == Some(outer_steps[k])) {
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

    /// Elements of the result.
    pub(crate) fn numel(&self) -> u64 {
        self.sizes[..self.rank].iter().map(|&size| size as u64).product()
    }

    /// Sizes and steps of the dimensions, outermost first.
    pub(crate) fn dims(&self) -> impl DoubleEndedIterator<Item = (usize, &Places)> + ExactSizeIterator {
        self.sizes[..self.rank].iter().copied().zip(&self.steps)
    }

    /// Size and steps of the innermost dimension; a single element is a dimension of size 1.
    pub(crate) fn inner(&self) -> (usize, Places) {
        match self.rank.checked_sub(1) {
            Some(last) => (self.sizes[last], self.steps[last]),
            None => (1, Places::default()),
        }
    }

    /// Whether every tensor's elements lie one after another along the innermost dimension, or are one.
    fn is_inner_dense(&self) -> bool {
        let (size, steps) = self.inner();
        size == 1 || steps[0] == 1 && steps[1..].iter().all(|&step| step == 0 || step == 1)
    }

    /// Whether one template call does it: a single dimension, along which tensors lie alike or are one value.
    pub(crate) fn is_flat(&self) -> bool {
        self.rank <= 1 && self.is_inner_dense()
    }

    /// The walk by vectors of `lanes` elements along the innermost dimension, if vectors never straddle rows and each lies
    /// as `aligned` (addresses and steps in elements of a tensor) asks.
    pub(crate) fn rows(&self, lanes: usize, aligned: impl Fn(usize, i64) -> bool) -> Option<Walk> {
        let (size, steps) = self.inner();
        if self.rank == 0 || !self.is_inner_dense() || !size.is_multiple_of(lanes) {
            return None;
        }
        let dense = (0..TENSORS).filter(|&k| steps[k] == 1);
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

    /// Which tensors do not move along the innermost dimension.
    pub(crate) fn once(&self) -> [bool; TENSORS] {
        self.inner().1.map(|step| step == 0)
    }

    /// The walk in parts of fewer than `limit` items each, with the places at which each starts.
    pub(crate) fn parts<E>(
        &self,
        limit: u64,
        start: Places,
        run: &mut impl FnMut(&Walk, Places) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.numel() < limit || self.rank == 0 {
            return run(self, start);
        }
        let (size, step) = (self.sizes[0], self.steps[0]);
        let at = |index: usize| -> Places { std::array::from_fn(|k| start[k] + index as i64 * step[k]) };
        let inner = self.numel() / size as u64;
        let together = ((limit - 1) / inner) as usize;
        if together == 0 {
            let mut rest = *self;
            rest.sizes.rotate_left(1);
            rest.steps.rotate_left(1);
            rest.rank -= 1;
            return (0..size).try_for_each(|index| rest.parts(limit, at(index), run));
        }
        (0..size).step_by(together).try_for_each(|index| {
            let mut part = *self;
            part.sizes[0] = together.min(size - index);
            run(&part, at(index))
        })
    }

    /// What a kernel of `N` tensors is given. The walk has fewer than [`MAX_ITEMS`] items.
    pub(crate) fn steps<const N: usize>(&self) -> Steps<N> {
        debug_assert!(self.numel() < MAX_ITEMS);
        let of = |places: &Places| -> [i64; N] { std::array::from_fn(|k| places[k]) };
        // Of a single item there is no step.
        let outer = if self.rank == 0 { [0; N] } else { of(&self.steps[0]) };
        let splits = self.rank.saturating_sub(1);
        let mut steps = Steps { splits: splits as u32, sizes: Default::default(), strides: [[0; N]; MAX_DIMS - 1], outer };
        for slot in 0..splits {
            let dim = self.rank - 1 - slot;
            steps.sizes[slot] = Divisor::new(self.sizes[dim] as u32);
            steps.strides[slot] = of(&self.steps[dim]);
        }
        steps
    }
}

//! Shapes with strides, and the transformations of views: arithmetic that touches no memory.

use crate::error::{ErrorKind, Result};
use crate::shape::{IntoShape, MAX_RANK, Shape, Strides};

/// A shape and the step, in elements, along each of its dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
}

/// A layout, and the distance in elements from the old layout's first element to its own.
pub(crate) type Moved = (Layout, i64);

impl Layout {
    /// The layout of elements one after another, the last dimension innermost.
    pub fn contiguous(shape: Shape) -> Layout {
        Layout { shape, strides: shape.contiguous_strides() }
    }

    /// A layout with any strides: 0 repeats, a negative one walks backwards.
    ///
    /// # Errors
    /// Another number of strides than dimensions; a distance between two elements that does not fit an `i64`.
    pub fn strided(shape: Shape, strides: &[i64]) -> Result<Layout> {
        if strides.len() != shape.rank() {
            return Err(ErrorKind::Parameter {
                name: "strides",
                value: format!("{strides:?}"),
                why: format!("shape {shape} needs {} strides, one a dimension", shape.rank()),
            }
            .into());
        }
        let strides = Strides::from_slice(strides)?;
        let layout = Layout { shape, strides };
        layout.checked_reach().ok_or_else(|| ErrorKind::Parameter {
            name: "strides",
            value: format!("{strides:?}"),
            why: format!("elements of shape {shape} would lie too far apart to address"),
        })?;
        Ok(layout)
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// True if the elements lie one after another, the last dimension innermost. Strides of dimensions of size 1 do not
    /// matter, and a view without elements is contiguous.
    pub fn is_contiguous(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let mut expected = 1_i64;
        for (&dim, &stride) in self.shape.iter().zip(self.strides.iter()).rev() {
            if dim != 1 {
                if stride != expected {
                    return false;
                }
                expected *= dim as i64;
            }
        }
        true
    }

    /// True if two indices may name the same element. The answer is exact for every layout that the transformations
    /// here make of a contiguous tensor. For another layout it may be true though the elements are distinct, never the
    /// reverse.
    pub fn may_repeat(&self) -> bool {
        if self.shape.contains(&0) {
            return false;
        }
        let mut steps = [(0_u64, 0_u64); MAX_RANK];
        let mut count = 0;
        for (&dim, &stride) in self.shape.iter().zip(self.strides.iter()) {
            if dim > 1 {
                steps[count] = (stride.unsigned_abs(), dim as u64 - 1);
                count += 1;
            }
        }
        let steps = &mut steps[..count];
        steps.sort_unstable();
        // The distance the dimensions so far can bridge; the next step must be longer.
        let mut reach = 0_u64;
        for &(step, times) in steps.iter() {
            if step <= reach {
                return true;
            }
            reach = reach.saturating_add(step.saturating_mul(times));
        }
        false
    }

    /// The lowest and highest offset of an element, in elements from the first; `None` without elements.
    pub fn reach(&self) -> Option<(i64, i64)> {
        if self.shape.contains(&0) {
            return None;
        }
        self.checked_reach()
    }

    fn checked_reach(&self) -> Option<(i64, i64)> {
        let (mut low, mut high) = (0_i64, 0_i64);
        for (&dim, &stride) in self.shape.iter().zip(self.strides.iter()) {
            let far = stride.checked_mul(i64::try_from(dim.saturating_sub(1)).ok()?)?;
            if far < 0 {
                low = low.checked_add(far)?;
            } else {
                high = high.checked_add(far)?;
            }
        }
        // Later code counts offsets in bytes, up to 8 an element, up to one past the highest.
        high.checked_sub(low)?.checked_add(1)?.checked_mul(8)?;
        Some((low, high))
    }

    fn check_dim(&self, name: &'static str, dim: usize) -> Result<()> {
        if dim < self.shape.rank() {
            return Ok(());
        }
        Err(ErrorKind::Parameter {
            name,
            value: dim.to_string(),
            why: format!("shape {} has {} dimensions", self.shape, self.shape.rank()),
        }
        .into())
    }

    pub(crate) fn transpose(&self, d0: usize, d1: usize) -> Result<Layout> {
        self.check_dim("d0", d0)?;
        self.check_dim("d1", d1)?;
        let mut dims = self.dims_array();
        let mut strides = self.strides;
        dims.swap(d0, d1);
        strides.swap(d0, d1);
        self.with(&dims[..self.shape.rank()], strides)
    }

    pub(crate) fn permute(&self, order: &[usize]) -> Result<Layout> {
        let rank = self.shape.rank();
        let mut seen = [false; MAX_RANK];
        let fits = order.len() == rank && order.iter().all(|&d| d < rank && !std::mem::replace(&mut seen[d], true));
        if !fits {
            return Err(ErrorKind::Parameter {
                name: "order",
                value: format!("{order:?}"),
                why: format!("must name each of the {rank} dimensions once"),
            }
            .into());
        }
        let mut dims = [0; MAX_RANK];
        let mut strides = Strides::new(rank);
        for (i, &d) in order.iter().enumerate() {
            dims[i] = self.shape[d];
            strides[i] = self.strides[d];
        }
        self.with(&dims[..rank], strides)
    }

    pub(crate) fn narrow(&self, dim: usize, start: usize, len: usize) -> Result<Moved> {
        self.check_dim("dim", dim)?;
        let size = self.shape[dim];
        if start.checked_add(len).is_none_or(|end| end > size) {
            return Err(ErrorKind::Parameter {
                name: "start, len",
                value: format!("{start}, {len}"),
                why: format!("dimension {dim} of shape {} has {size} elements", self.shape),
            }
            .into());
        }
        let mut dims = self.dims_array();
        dims[dim] = len;
        let layout = self.with(&dims[..self.shape.rank()], self.strides)?;
        // Without elements there is nothing to point at: stay where the memory is known to be.
        let moved = if layout.shape.contains(&0) { 0 } else { start as i64 * self.strides[dim] };
        Ok((layout, moved))
    }

    pub(crate) fn select(&self, dim: usize, index: usize) -> Result<Moved> {
        self.check_dim("dim", dim)?;
        if index >= self.shape[dim] {
            return Err(ErrorKind::Parameter {
                name: "index",
                value: index.to_string(),
                why: format!("dimension {dim} of shape {} has {} elements", self.shape, self.shape[dim]),
            }
            .into());
        }
        let (layout, moved) = self.narrow(dim, index, 1)?;
        Ok((layout.squeeze(dim)?, moved))
    }

    pub(crate) fn step(&self, dim: usize, step: usize) -> Result<Layout> {
        self.check_dim("dim", dim)?;
        let (true, Ok(factor)) = (step > 0, i64::try_from(step)) else {
            return Err(ErrorKind::Parameter {
                name: "step",
                value: step.to_string(),
                why: "must be at least 1 and fit an i64".to_owned(),
            }
            .into());
        };
        let mut dims = self.dims_array();
        let mut strides = self.strides;
        dims[dim] = dims[dim].div_ceil(step);
        // A dimension of one element is never stepped along: its stride may be anything.
        if dims[dim] > 1 {
            strides[dim] = strides[dim].saturating_mul(factor);
        }
        self.with(&dims[..self.shape.rank()], strides)
    }

    pub(crate) fn expand(&self, shape: Shape) -> Result<Layout> {
        let fits = shape.rank() >= self.shape.rank()
            && shape.iter().rev().zip(self.shape.iter().rev()).all(|(&to, &from)| to == from || from == 1);
        if !fits {
            let why = format!(
                "shape {} cannot become that: only dimensions of size 1 are repeated, new ones come in front",
                self.shape
            );
            return Err(ErrorKind::Parameter { name: "shape", value: shape.to_string(), why }.into());
        }
        let mut strides = Strides::new(shape.rank());
        let new = shape.rank() - self.shape.rank();
        for (i, (&from, &stride)) in self.shape.iter().zip(self.strides.iter()).enumerate() {
            if shape[new + i] == from {
                strides[new + i] = stride;
            }
        }
        Ok(Layout { shape, strides })
    }

    pub(crate) fn reshape(&self, shape: impl IntoShape) -> Result<Layout> {
        let shape = shape.into_shape()?;
        if shape.numel() != self.shape.numel() {
            return Err(ErrorKind::ShapeMismatch {
                what: format!("reshape ({} elements cannot become {})", self.shape.numel(), shape.numel()),
                expected: self.shape,
                got: shape,
            }
            .into());
        }
        self.require_contiguous("what is reshaped")?;
        Ok(Layout::contiguous(shape))
    }

    pub(crate) fn require_contiguous(&self, what: &'static str) -> Result<()> {
        if self.is_contiguous() {
            return Ok(());
        }
        Err(ErrorKind::NotContiguous { what, shape: self.shape, strides: self.strides.to_vec() }.into())
    }

    pub(crate) fn unsqueeze(&self, dim: usize) -> Result<Layout> {
        let rank = self.shape.rank();
        if dim > rank {
            self.check_dim("dim", dim)?;
        }
        if rank == MAX_RANK {
            return Err(ErrorKind::RankTooHigh { rank: rank + 1 }.into());
        }
        let mut dims = [1; MAX_RANK];
        let mut strides = Strides::new(rank + 1);
        dims[..dim].copy_from_slice(&self.shape[..dim]);
        dims[dim + 1..=rank].copy_from_slice(&self.shape[dim..]);
        strides[..dim].copy_from_slice(&self.strides[..dim]);
        strides[dim + 1..].copy_from_slice(&self.strides[dim..]);
        self.with(&dims[..=rank], strides)
    }

    /// The last dimension as two: groups of `size` neighbours, which it is a multiple of, and the elements of a group. One of a
    /// single element becomes one group of one.
    pub(crate) fn groups(&self, size: usize) -> Result<Layout> {
        let rank = self.shape.rank();
        let Layout { shape, mut strides } = self.unsqueeze(rank)?;
        let mut dims = [0; MAX_RANK];
        dims[..=rank].copy_from_slice(&shape);
        if let ([.., last, own], [.., step, own_step]) = (&mut dims[..=rank], &mut *strides)
            && *last != 1
        {
            (*last, *own) = (*last / size, size);
            // A single group is never stepped over: its stride may be anything.
            (*step, *own_step) = (step.saturating_mul(size as i64), *step);
        }
        self.with(&dims[..=rank], strides)
    }

    pub(crate) fn squeeze(&self, dim: usize) -> Result<Layout> {
        self.check_dim("dim", dim)?;
        if self.shape[dim] != 1 {
            return Err(ErrorKind::Parameter {
                name: "dim",
                value: dim.to_string(),
                why: format!(
                    "dimension {dim} of shape {} has size {}: only one of size 1 can be dropped",
                    self.shape, self.shape[dim]
                ),
            }
            .into());
        }
        let rank = self.shape.rank();
        let mut dims = [0; MAX_RANK];
        let mut strides = Strides::new(rank - 1);
        dims[..dim].copy_from_slice(&self.shape[..dim]);
        dims[dim..rank - 1].copy_from_slice(&self.shape[dim + 1..]);
        strides[..dim].copy_from_slice(&self.strides[..dim]);
        strides[dim..].copy_from_slice(&self.strides[dim + 1..]);
        self.with(&dims[..rank - 1], strides)
    }

    fn dims_array(&self) -> [usize; MAX_RANK] {
        let mut dims = [0; MAX_RANK];
        dims[..self.shape.rank()].copy_from_slice(&self.shape);
        dims
    }

    fn with(&self, dims: &[usize], strides: Strides) -> Result<Layout> {
        Ok(Layout { shape: Shape::new(dims)?, strides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dims: &[usize]) -> Layout {
        Layout::contiguous(Shape::new(dims).unwrap())
    }

    #[test]
    fn contiguity_ignores_sizes_of_one_and_empty_views() {
        assert!(layout(&[2, 3]).is_contiguous());
        assert!(layout(&[]).is_contiguous());
        let shape = Shape::new(&[1, 3]).unwrap();
        assert!(Layout::strided(shape, &[77, 1]).unwrap().is_contiguous());
        let shape = Shape::new(&[0, 3]).unwrap();
        assert!(Layout::strided(shape, &[5, 7]).unwrap().is_contiguous());
        assert!(!layout(&[2, 3]).transpose(0, 1).unwrap().is_contiguous());
    }

    #[test]
    fn repetition_is_seen() {
        assert!(!layout(&[4, 5, 6]).permute(&[2, 0, 1]).unwrap().may_repeat());
        assert!(!layout(&[4, 9]).step(1, 4).unwrap().transpose(0, 1).unwrap().may_repeat());
        let expanded = layout(&[1, 5]).expand(Shape::new(&[3, 5]).unwrap());
        assert!(expanded.unwrap().may_repeat());
        // Windows of 3, one apart.
        let shape = Shape::new(&[4, 3]).unwrap();
        assert!(Layout::strided(shape, &[1, 1]).unwrap().may_repeat());
        assert!(Layout::strided(shape, &[2, 1]).unwrap().may_repeat());
        assert!(!Layout::strided(shape, &[-3, 1]).unwrap().may_repeat());
    }

    #[test]
    fn reach_walks_both_ways() {
        let shape = Shape::new(&[3, 4]).unwrap();
        let layout = Layout::strided(shape, &[-4, 1]).unwrap();
        assert_eq!(layout.reach(), Some((-8, 3)));
        let shape = Shape::new(&[0, 4]).unwrap();
        assert_eq!(Layout::contiguous(shape).reach(), None);
        let shape = Shape::new(&[3]).unwrap();
        assert!(Layout::strided(shape, &[i64::MAX]).is_err());
        // Bytes of elements of 8 each are counted in as many bits.
        let two = Shape::new(&[2]).unwrap();
        assert_eq!([2, 1].map(|below| Layout::strided(two, &[(1 << 60) - below]).is_ok()), [true, false]);
        assert!(Layout::strided(shape, &[1, 1]).is_err());
    }

    #[test]
    fn moves() {
        let a = layout(&[4, 6]);
        let (narrow, moved) = a.narrow(1, 2, 3).unwrap();
        assert_eq!((narrow.shape().dims(), moved), (&[4, 3][..], 2));
        assert_eq!(narrow.strides(), [6, 1]);
        let (row, moved) = a.select(0, 3).unwrap();
        assert_eq!((row.shape().dims(), moved), (&[6][..], 18));
        assert!(a.narrow(1, 4, 3).is_err());
        assert!(a.narrow(1, usize::MAX, 3).is_err());
        assert!(a.select(0, 4).is_err());
        assert_eq!(a.narrow(0, 4, 0).unwrap().1, 0);
    }

    #[test]
    fn reshapes() {
        let a = layout(&[4, 6]);
        assert_eq!(a.unsqueeze(2).unwrap().shape().dims(), [4, 6, 1]);
        assert_eq!(a.unsqueeze(0).unwrap().strides()[1..], [6, 1]);
        assert!(a.unsqueeze(3).is_err());
        assert_eq!(a.unsqueeze(1).unwrap().squeeze(1).unwrap(), a, "there and back");
        assert!(a.squeeze(0).is_err());
        assert_eq!(a.reshape([24]).unwrap().strides(), [1]);
        assert!(a.reshape([25]).is_err());
        assert!(a.transpose(0, 1).unwrap().reshape([24]).is_err());
        assert!(a.permute(&[0, 0]).is_err());
        assert_eq!(a.step(1, 4).unwrap().shape().dims(), [4, 2]);
        assert!(a.step(1, 0).is_err());
        let row = layout(&[6]).expand(Shape::new(&[4, 6]).unwrap()).unwrap();
        assert_eq!(row.strides(), [0, 1]);
        assert!(a.expand(Shape::new(&[4, 7]).unwrap()).is_err());
    }
}

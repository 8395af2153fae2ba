//! Shapes: up to eight dimensions, kept inline, whose product is known to fit.

use std::fmt;
use std::ops::Deref;

use pointwise_core::launch::MAX_DIMS;

use crate::error::{ErrorKind, Result};

/// The most dimensions a tensor can have: those that a kernel walks.
pub const MAX_RANK: usize = MAX_DIMS;

/// The sizes of a tensor's dimensions, outermost first. Reads like a slice.
///
/// Holds at most [`MAX_RANK`] dimensions, and their product (a 0 counted as 1) fits an `i64`: no arithmetic on a shape
/// can overflow.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    // Dimensions from `rank` on are 0, so that the derived comparisons hold.
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar: no dimensions, one element.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], rank: 0 };

    /// A shape of these dimensions.
    ///
    /// # Errors
    /// More than [`MAX_RANK`] dimensions, or a product that does not fit.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(ErrorKind::RankTooHigh { rank: dims.len() }.into());
        }
        dims.iter()
            .try_fold(1_i64, |product, &dim| product.checked_mul(i64::try_from(dim.max(1)).ok()?))
            .ok_or_else(|| ErrorKind::SizeOverflow { dims: dims.to_vec() })?;
        let mut shape = Shape::SCALAR;
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape.rank = dims.len() as u8;
        Ok(shape)
    }

    /// The sizes.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.dims[..usize::from(self.rank)]
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.dims().iter().product()
    }

    /// The strides, in elements, of a tensor of this shape whose elements lie one after another, the last dimension
    /// innermost.
    pub fn contiguous_strides(&self) -> Strides {
        let mut strides = Strides::new(self.rank());
        let mut stride = 1_i64;
        for (dim, out) in self.dims().iter().zip(strides.iter_mut()).rev() {
            *out = stride;
            stride *= (*dim).max(1) as i64;
        }
        strides
    }

    /// Returns the shape that all of `shapes` broadcast to: aligned at their last dimensions, each size equal or 1.
    ///
    /// # Errors
    /// Sizes that differ and are not 1; the error shows the two shapes and the dimension.
    pub fn broadcast(shapes: &[&Shape]) -> Result<Shape> {
        let Some((first, rest)) = shapes.split_first() else {
            return Ok(Shape::SCALAR);
        };
        rest.iter().try_fold(**first, |result, shape| result.broadcast_with(shape))
    }

    /// [`Shape::broadcast`] of two shapes.
    ///
    /// # Errors
    /// The errors of [`Shape::broadcast`].
    pub fn broadcast_with(&self, other: &Shape) -> Result<Shape> {
        let (long, short) = if self.rank >= other.rank { (self, other) } else { (other, self) };
        let offset = long.rank() - short.rank();
        let mut dims = long.dims;
        for (i, &b) in short.dims().iter().enumerate() {
            let dim = offset + i;
            let a = dims[dim];
            dims[dim] = match (a, b) {
                _ if a == b => a,
                (1, _) => b,
                (_, 1) => a,
                _ => {
                    return Err(ErrorKind::Broadcast { a: *self, b: *other, dim }.into());
                }
            };
        }
        Shape::new(&dims[..long.rank()])
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        self.dims()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.dims() == other
    }
}

impl PartialEq<&[usize]> for Shape {
    fn eq(&self, other: &&[usize]) -> bool {
        self.dims() == *other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.dims() == other
    }
}

impl PartialEq<Vec<usize>> for Shape {
    fn eq(&self, other: &Vec<usize>) -> bool {
        self.dims() == other
    }
}

/// Lets `for dim in tensor.shape()` work, which a slice's own iterator does not do.
impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Steps between neighbours along each dimension, in elements. Reads like a slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strides {
    steps: [i64; MAX_RANK],
    rank: u8,
}

impl Strides {
    /// `rank` strides of 0; `rank` is a shape's, so it fits.
    pub(crate) fn new(rank: usize) -> Strides {
        Strides { steps: [0; MAX_RANK], rank: rank.min(MAX_RANK) as u8 }
    }

    /// The strides of `steps`.
    ///
    /// # Errors
    /// More than [`MAX_RANK`] of them.
    pub(crate) fn from_slice(steps: &[i64]) -> Result<Strides> {
        if steps.len() > MAX_RANK {
            return Err(ErrorKind::RankTooHigh { rank: steps.len() }.into());
        }
        let mut strides = Strides::new(steps.len());
        strides.copy_from_slice(steps);
        Ok(strides)
    }
}

impl Deref for Strides {
    type Target = [i64];

    #[inline]
    fn deref(&self) -> &[i64] {
        &self.steps[..usize::from(self.rank)]
    }
}

impl std::ops::DerefMut for Strides {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        &mut self.steps[..usize::from(self.rank)]
    }
}

impl fmt::Debug for Strides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A type that converts to a shape: `[2, 3]`, `&[2, 3]`, `vec![2, 3]`, `6`, a [`Shape`], or `[]` for a scalar.
pub trait IntoShape {
    /// The shape.
    ///
    /// # Errors
    /// The errors of [`Shape::new`].
    fn into_shape(self) -> Result<Shape>;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(*self)
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self])
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}

impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}

impl IntoShape for &Vec<usize> {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

//! Ops on rows: their kernels, and a call of them. A row is the last dimension of the shape that the operands broadcast to; of groups
//! that is a group.

mod call;
mod plan;
mod shapes;
mod typed;

pub(super) use shapes::{is_summed, result_shape, shape_of_rows};
pub use typed::{RowClass, RowReferenceFn, TypedRows, reference_of_rows};

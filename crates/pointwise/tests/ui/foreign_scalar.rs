//! Memory of a tensor is read as the types of its element types alone.

#[derive(Clone, Copy)]
struct Pair(u8, bool);

impl pointwise::Scalar for Pair {
    const DTYPE: pointwise::DType = pointwise::DType::I16;
}

fn main() {}

use pointwise::prelude::*;

fn masked_fill(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    ops::masked_fill(x, mask, f32::NEG_INFINITY)
}

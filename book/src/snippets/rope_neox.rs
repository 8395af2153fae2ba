use pointwise::prelude::*;
use pointwise::rope::rope_neox;

fn rotate(q: &Tensor, k: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    rope_neox(q, Some(k.view()), 0) // [batch, sequence, heads, lanes]; from position 0 on
}

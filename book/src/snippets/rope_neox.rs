use pointwise::prelude::*;
use pointwise::rope::rope_neox;

fn rotate(q: &Tensor, k: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    rope_neox(q, Some(k.view()), 0) // [batch, sequence, heads, head_dim]; the first token is at position 0
}

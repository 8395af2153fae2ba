use pointwise::prelude::*;

fn dropout(x: &Tensor) -> Result<Tensor> {
    let place = Philox::new(42); // the next call goes on at place.after(x.numel() as u64)
    ops::dropout(x, 0.1, place)
}

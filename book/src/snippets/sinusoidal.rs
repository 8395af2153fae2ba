use pointwise::kernel::SinusoidalLayout;
use pointwise::prelude::*;

fn sinusoidal(device: &Device) -> Result<Tensor> {
    ops::sinusoidal(device, DType::F32, 128, 512, SinusoidalLayout::Interleaved) // or Halves
}

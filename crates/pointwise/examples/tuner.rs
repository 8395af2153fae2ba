//! Launch settings: by hand, and measured once by the tuner.

use pointwise::prelude::*;
use pointwise::{Strategy, tuner::Tuner};

fn main() -> Result<()> {
    let device = Device::best()?;
    let x = Tensor::full(&device, 0.5_f32, [1 << 20])?;
    let mut y = Tensor::empty(&device, DType::F32, [1 << 20])?;

    // The plan says what a call launches, and why another strategy took the place of the one that was asked for.
    println!("by default: {:?}", kernels::silu().plan(&x, &y)?);
    let by_hand = kernels::silu().strategy(Strategy::RegisterCopy).threads(128);
    println!("by hand:    {:?}", by_hand.plan(&x, &y)?);

    if device.is_cpu() {
        println!("the tuner measures on a GPU, and there is none here");
        return Ok(());
    }
    // Settings are kept in a file, by op, element type, size, layout, device and driver.
    let mut tuner = Tuner::load();
    let choice = tuner.tune(&kernels::silu(), &x, &mut y)?;
    println!("measured:   {choice:?}");
    kernels::silu().tuned(&tuner).run_into(&x, &mut y)
}

//! Calls on more elements than 32 bits count.

use pointwise::{DType, Device, Tensor, kernels};
use pointwise_testkit::inputs;

use crate::Outcome;

/// 2^32 elements behind the first of a tensor: they begin with some that are no whole vector, and their number is 0 in
/// 32 bits. By a binary op and by a copy.
pub(crate) fn views_of_2_to_32(device: &Device) -> Outcome {
    const N: usize = 1 << 32;
    const ENDS: usize = 1 << 20;
    let ends = [0, N + 16 - ENDS];
    let mut x = Tensor::zeros(device, DType::U8, [N + 16])?;
    for (seed, at) in [(1, ends[0]), (2, ends[1])] {
        let part = Tensor::from_bytes(device, DType::U8, &inputs::mixed(DType::U8, ENDS, seed), [ENDS])?;
        part.view().copy_into(x.view_mut()?.narrow(0, at, ENDS)?)?;
    }
    let source = x.view().narrow(0, 1, N)?;
    for by_copy in [false, true] {
        let mut y = Tensor::zeros(device, DType::U8, [N + 16])?;
        let target = y.view_mut()?.narrow(0, 1, N)?;
        if by_copy {
            source.copy_into(target)?;
        } else {
            kernels::maximum().run_into(source, source, target)?;
        }
        for at in ends {
            let [mut expected, got] = [&x, &y].map(|t| t.view().narrow(0, at, ENDS).and_then(|end| end.to_vec::<u8>()));
            if let Ok(expected) = &mut expected {
                // What the views leave out.
                if at == 0 {
                    expected[0] = 0;
                } else {
                    expected[ENDS - 15..].fill(0);
                }
            }
            assert!(expected? == got?, "from element {at}, by a copy: {by_copy}");
        }
    }
    Ok(())
}

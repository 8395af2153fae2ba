//! Calls on more elements than 32 bits count, on so many that threads have several vectors, and on more than the level-2
//! cache holds.

use pointwise::kernel::UnaryKernel;
use pointwise::{DType, Device, Tensor, kernels};
use pointwise_testkit::inputs;

use crate::{Outcome, same_on_the_cpu};

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
                // The elements that the views leave out.
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

/// Two vectors a thread, though not every thread has the second, with single elements before and behind: results of the
/// operand's size in place, narrower ones in a tensor of their own.
pub(crate) fn vectors_in_turn(device: &Device) -> Outcome {
    const N: usize = (1 << 25) + 4 * 700 + 2;
    let bytes = inputs::mixed(DType::F32, N + 1, 3);
    let run = |device: &Device, kernel: UnaryKernel, result: DType| -> pointwise::Result<Tensor> {
        let mut x = Tensor::from_bytes(device, DType::F32, &bytes, [N + 1])?;
        if result == DType::F32 {
            kernel.run_inplace(x.view_mut()?.narrow(0, 1, N)?)?;
            return Ok(x);
        }
        let mut y = Tensor::zeros(device, result, [N + 4])?;
        kernel.run_into(x.view().narrow(0, 1, N)?, y.view_mut()?.narrow(0, 1, N)?)?;
        Ok(y)
    };
    for (kernel, result) in [(kernels::floor(), DType::F32), (kernels::isnan(), DType::Bool)] {
        let [got, expected] = [device, &Device::cpu()].map(|device| run(device, kernel.clone(), result));
        same_on_the_cpu(&got?, &expected?, &format!("results of {result}"))?;
    }
    Ok(())
}

/// A value for each row beside rows that are no whole vectors, more of them than stay in the level-2 cache: results that are
/// narrower than operands, and results in place; the column as the second operand and as the first.
pub(crate) fn columns_of_large_rows(device: &Device) -> Outcome {
    const WIDTH: usize = 2047;
    let rows = device.info().map_or(0, |info| info.l2_bytes) / (4 * WIDTH) + 3;
    // From the second element on: the first vector is not the tensor's.
    let x = inputs::mixed(DType::F32, 4 + rows * WIDTH, 5);
    let column = inputs::mixed(DType::F32, rows, 6);
    let run = |device: &Device| -> pointwise::Result<[Tensor; 3]> {
        let mut x = Tensor::from_bytes(device, DType::F32, &x, [4 + rows * WIDTH])?;
        let column = Tensor::from_bytes(device, DType::F32, &column, [rows, 1])?;
        let matrix = x.view().narrow(0, 4, rows * WIDTH)?.reshape([rows, WIDTH])?;
        let [less, greater] = [kernels::lt().run(matrix, &column)?, kernels::gt().run(&column, matrix)?];
        let target = x.view_mut()?.narrow(0, 4, rows * WIDTH)?.reshape([rows, WIDTH])?;
        kernels::mul().run_inplace(target, &column)?;
        Ok([less, greater, x])
    };
    let [got, expected] = [run(device)?, run(&Device::cpu())?];
    for ((got, expected), what) in got.iter().zip(&expected).zip(["lt", "gt", "mul"]) {
        same_on_the_cpu(got, expected, what)?;
    }
    Ok(())
}

//! Threads with several vectors, against threads with one.

use pointwise::{DType, Device, Tensor, kernel::UnaryDef};
use pointwise_testkit::{inputs, judge};

type Checked = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Threads of a block.
const THREADS: u32 = 64;
/// Elements beside whole blocks of two vectors a thread.
const BESIDE: &[isize] = &[-9, -1, 0, 1, 8, 77, 600];
/// Elements before the first of a view.
const OFFSETS: &[usize] = &[0, 3];

/// Sizes around those of one to five blocks of two vectors a thread.
fn sizes(dtype: DType) -> impl Iterator<Item = usize> {
    let block = (2 * THREADS as usize * 16 / dtype.size()) as isize;
    [1, 2, 5].into_iter().flat_map(move |blocks| BESIDE.iter().map(move |beside| (blocks * block + beside) as usize))
}

fn same(what: &str, dtype: DType, got: &Tensor, expected: &Tensor) -> Checked {
    match judge::same_bits(dtype, &got.to_bytes()?, &expected.to_bytes()?) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} differs").into()),
    }
}

/// A unary op with two to five vectors a thread, to another tensor and in place.
///
/// # Errors
/// The first difference, and those of the library.
pub fn check(device: &Device, def: &'static UnaryDef, dtype: DType) -> Checked {
    let result = def.info.result.of(dtype);
    let most = sizes(dtype).max().unwrap_or(0) + 16;
    let x = Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, most, 6), [most])?;
    let kernel = |vectors| def.kernel().threads(THREADS).vectors_per_thread(vectors);
    for n in sizes(dtype) {
        for &offset in OFFSETS {
            let run = |vectors| -> pointwise::Result<Tensor> {
                let mut y = Tensor::zeros(device, result, [most])?;
                kernel(vectors).run_into(x.view().narrow(0, offset, n)?, y.view_mut()?.narrow(0, offset, n)?)?;
                Ok(y)
            };
            let one = run(1)?;
            for vectors in 2..6 {
                let what = format!("{vectors} vectors, size {n}, offset {offset}");
                same(&what, result, &run(vectors)?, &one)?;
                if result == dtype {
                    let (mut expected, mut inplace) = (x.copy()?, x.copy()?);
                    kernel(1).run_inplace(expected.view_mut()?.narrow(0, offset, n)?)?;
                    kernel(vectors).run_inplace(inplace.view_mut()?.narrow(0, offset, n)?)?;
                    same(&format!("{what}, in place"), dtype, &inplace, &expected)?;
                }
            }
        }
    }
    Ok(())
}

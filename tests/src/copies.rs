//! Copies views of all kinds into new tensors, and into views of other tensors.

use pointwise::{DType, Device, Tensor, TensorView, tensor::MAX_RANK};
use pointwise_testkit::inputs;

type Outcome = std::result::Result<(), String>;

/// Copies views by `to_tensor` and `copy_into`, and compares with the elements that the host gathers.
///
/// # Errors
/// The first wrong copy, in words; the errors of the library.
pub fn check(device: &Device, dtype: DType) -> Outcome {
    let shape = [5, 33, 36];
    let n: usize = shape.iter().product();
    let x = Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, n, 41), shape).map_err(say)?;
    for (name, view) in views(&x).map_err(say)? {
        let wanted = view.to_bytes().map_err(say)?;
        let copy = view.to_tensor().map_err(say)?;
        if (copy.dtype(), copy.shape(), copy.device()) != (dtype, view.shape(), device) {
            return Err(format!("{name}: {copy:?}"));
        }
        if copy.to_bytes().map_err(say)? != wanted {
            return Err(format!("{dtype}, {name}: to_tensor copied something else"));
        }
        into(&view, &wanted).map_err(|why| format!("{dtype}, {name}: {why}"))?;
    }
    Ok(())
}

fn say(error: pointwise::Error) -> String {
    error.to_string()
}

/// Contiguous and not, repeated, of one element, of none, and of the most dimensions.
fn views(x: &Tensor) -> pointwise::Result<Vec<(&'static str, TensorView<'_>)>> {
    let view = x.view();
    let column = view.narrow(2, 3, 1)?;
    Ok(vec![
        ("whole", view),
        ("a part, not aligned", view.select(0, 2)?.narrow(0, 1, 7)?),
        ("turned", view.transpose(0, 2)?),
        ("permuted", view.permute(&[1, 0, 2])?),
        ("every second column", view.step(2, 2)?),
        ("a column", view.select(2, 35)?),
        ("a column repeated", column.expand([5, 33, 7])?),
        ("repeated in front", view.select(0, 1)?.expand([3, 33, 36])?),
        ("one element repeated", column.narrow(0, 4, 1)?.narrow(1, 0, 1)?.expand([2, 3, 50])?),
        ("one element", view.select(0, 4)?.select(0, 32)?.select(0, 35)?),
        ("none", view.narrow(1, 5, 0)?.transpose(0, 2)?),
        ("eight dimensions", view.reshape([5, 3, 11, 2, 2, 3, 3, 1])?.permute(&[7, 5, 0, 2, 4, 6, 1, 3])?),
    ])
}

/// Into every second element of the last dimension of a tensor whose other elements stay.
fn into(view: &TensorView<'_>, wanted: &[u8]) -> Outcome {
    let (dtype, mut dims) = (view.dtype(), view.shape().to_vec());
    if dims.len() == MAX_RANK {
        return Ok(());
    }
    dims.push(2);
    let size = dtype.size();
    let guard = vec![1; wanted.len() * 2];
    let mut y = Tensor::from_bytes(view.device(), dtype, &guard, dims.as_slice()).map_err(say)?;
    let last = dims.len() - 1;
    view.copy_into(y.view_mut().map_err(say)?.select(last, 1).map_err(say)?).map_err(say)?;
    let got = y.to_bytes().map_err(say)?;
    for (pair, wanted) in got.chunks_exact(2 * size).zip(wanted.chunks_exact(size)) {
        if pair[..size].iter().any(|&byte| byte != 1) {
            return Err("copy_into wrote beside the view".to_owned());
        }
        if pair[size..] != *wanted {
            return Err("copy_into copied something else".to_owned());
        }
    }
    Ok(())
}

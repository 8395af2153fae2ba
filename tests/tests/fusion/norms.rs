//! Norms and softmax as formulas, against the family's ops.

use pointwise::fusion::Lazy;
use pointwise::{DType, Device, Tensor, ops};

use crate::{Outcome, tensor};

/// Each is the op of its name but for the order of its sums.
pub(crate) fn norms(device: &Device) -> Outcome {
    for (dtype, bound) in [(DType::F32, 1e-5), (DType::BF16, 1e-2)] {
        for shape in [[3, 1], [2, 37], [4, 1024], [2, 9000]] {
            let [x, weight, bias] = [100, 101, 102].map(|seed| tensor(device, dtype, &shape, seed));
            let (x, weight, bias) = (x?, weight?, bias?);
            let (weight, bias) = (weight.select(0, 0)?, bias.select(0, 0)?);
            let lazy = x.lazy();
            near(
                "rms_norm",
                &lazy.rms_norm(weight, 1e-6).eval()?,
                &ops::rms_norm(&x, weight, 1e-6, 0.0, false)?,
                bound,
            )?;
            let normal = ops::layer_norm(&x, weight, bias, 1e-5)?;
            near("layer_norm", &lazy.layer_norm(weight, bias, 1e-5).eval()?, &normal, bound)?;
            near("l2_normalize", &lazy.l2_normalize(1e-12).eval()?, &ops::l2_normalize(&x, 1e-12)?, bound)?;
            near("softmax", &lazy.softmax().eval()?, &ops::softmax(&x, 1.0)?, bound)?;
            near("log_softmax", &lazy.log_softmax().eval()?, &ops::log_softmax(&x, 1.0)?, bound)?;
            near("logsumexp", &lazy.logsumexp().eval()?, &ops::logsumexp(&x)?, bound)?;
        }
    }
    // Rows of infinities.
    let rows = Tensor::from_slice(device, &[f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, f32::INFINITY], [2, 2])?;
    let sums = rows.lazy().logsumexp().eval()?.to_vec::<f32>()?;
    let shares = rows.lazy().softmax().eval()?.to_vec::<f32>()?;
    if sums != [f32::NEG_INFINITY, f32::INFINITY] || !shares[..2].iter().all(|share| share.is_nan()) {
        return Err(format!("rows of infinities on {device}: {sums:?}, {shares:?}").into());
    }
    Ok(())
}

fn near(what: &str, got: &Tensor, wanted: &Tensor, bound: f32) -> Outcome {
    let numbers = |t: &Tensor| t.view().to_dtype(DType::F32)?.to_vec::<f32>();
    for (i, (a, b)) in numbers(got)?.into_iter().zip(numbers(wanted)?).enumerate() {
        if (a - b).abs() > bound * b.abs().max(1.0) {
            return Err(format!("{what} of {:?}, element {i}: {a}, {b}", got.shape()).into());
        }
    }
    Ok(())
}

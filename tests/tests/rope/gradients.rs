//! The backward pass.

use libtest_mimic::Failed;
use pointwise::rope::{
    RopeAngles, RopeConfig, RopeDirection, RopeFrequencies, RopeKernel, RopeLayout, RopePairs, RopePositions,
    RopePrecision,
};
use pointwise::{DType, Device, Tensor};

use crate::Outcome;
use crate::logical::{Logical, MODELS};
use crate::oracle::{Angles, compare};

/// Forward, then backward, gives the input back.
pub(crate) fn there_and_back(device: &Device) -> Outcome {
    for model in MODELS.iter().filter(|model| model.heads[1] > 0) {
        let x = Logical::random([1, 4, model.heads[1], model.head_dim], DType::F32, 12);
        let angles = Angles::new(device, DType::F32, model.rotary_dim, 8);
        let kernel = RopeKernel::new(angles.of("exact"), model.pairs)
            .rotated_lanes(model.lanes)
            .positions(RopePositions::Offset(1_000_003));
        let (y, _) = kernel.run(&x.tensor(device, DType::F32, RopeLayout::Bshd), None)?;
        let (back, _) = kernel.direction(RopeDirection::Backward).run(&y, None)?;
        let got = Logical::read(x.dims, RopeLayout::Bshd, &back.view());
        compare(model.name, DType::F32, &got, &(x.clone(), vec![16.0; x.values.len()]))?;
    }
    Ok(())
}

/// cuDNN's table of folds: a small attention in f64 around our rotation has the same values and gradients by each.
pub(crate) fn folded_softmax_scale(device: &Device) -> Outcome {
    const S: usize = 5;
    const D: usize = 8;
    let alpha = 1.0 / (D as f64).sqrt();
    let c = std::f64::consts::LOG2_E;
    // Scale on Q, on K, of the attention; whether its exponential is 2^x.
    let folds = [
        (1.0, 1.0, alpha, false),
        (alpha, 1.0, 1.0, false),
        (alpha.sqrt(), alpha.sqrt(), 1.0, false),
        (1.0, 1.0, alpha * c, true),
        (alpha * c, 1.0, 1.0, true),
        (alpha.sqrt() * c, alpha.sqrt(), 1.0, true),
    ];
    let random = |seed| Logical::random([1, S, 1, D], DType::F32, seed).values;
    let (q, k, v, d_out) = (random(21), random(22), random(23), random(24));
    let frequencies = RopeFrequencies::new(device, &RopeConfig::default_rope(D, 1e4).frequencies(0).unwrap())?;
    let rope = |x: &[f64], scale: f64, direction: RopeDirection| -> Result<Vec<f64>, Failed> {
        let x: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let x = Tensor::from_slice(device, &x, [1, S, 1, D])?;
        let kernel = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Exact), RopePairs::Half)
            .output_scale(scale as f32, 1.0)
            .direction(direction);
        Ok(kernel.run(&x, None)?.0.to_vec::<f32>()?.into_iter().map(f64::from).collect())
    };
    let dot = |a: &[f64], i: usize, b: &[f64], j: usize| (0..D).map(|d| a[i * D + d] * b[j * D + d]).sum::<f64>();
    let mut first: Option<[Vec<f64>; 4]> = None;
    for (on_q, on_k, attention, log2) in folds {
        let (q2, k2) = (rope(&q, on_q, RopeDirection::Forward)?, rope(&k, on_k, RopeDirection::Forward)?);
        let exp = |x: f64| if log2 { x.exp2() } else { x.exp() };
        let (mut out, mut d_q2, mut d_k2, mut d_v) =
            (vec![0.0; S * D], vec![0.0; S * D], vec![0.0; S * D], vec![0.0; S * D]);
        for i in 0..S {
            let weights: Vec<f64> = (0..S).map(|j| exp(attention * dot(&q2, i, &k2, j))).collect();
            let sum: f64 = weights.iter().sum();
            let weights: Vec<f64> = weights.iter().map(|w| w / sum).collect();
            let d_weights: Vec<f64> = (0..S).map(|j| dot(&d_out, i, &v, j)).collect();
            let mean: f64 = weights.iter().zip(&d_weights).map(|(w, d)| w * d).sum();
            for j in 0..S {
                // The gradient of the scores as the exponential takes them: of 2^x it has ln 2.
                let d_score = weights[j] * (d_weights[j] - mean) * if log2 { std::f64::consts::LN_2 } else { 1.0 };
                for d in 0..D {
                    out[i * D + d] += weights[j] * v[j * D + d];
                    d_v[j * D + d] += weights[j] * d_out[i * D + d];
                    d_q2[i * D + d] += attention * d_score * k2[j * D + d];
                    d_k2[j * D + d] += attention * d_score * q2[i * D + d];
                }
            }
        }
        let d_q = rope(&d_q2, on_q, RopeDirection::Backward)?;
        let d_k = rope(&d_k2, on_k, RopeDirection::Backward)?;
        let results = [out, d_q, d_k, d_v];
        let reference = first.get_or_insert_with(|| results.clone());
        for (name, (got, expected)) in ["out", "dQ", "dK", "dV"].into_iter().zip(results.iter().zip(reference.iter())) {
            for (got, expected) in got.iter().zip(expected) {
                let is_near = (got - expected).abs() <= 2e-5;
                if !is_near {
                    return Err(format!("fold ({on_q}, {on_k}, {attention}): {name} is {got}, not {expected}").into());
                }
            }
        }
    }
    Ok(())
}

//! HF's own outputs, other sources' designs, a rule of one's own.

use libtest_mimic::Failed;
use pointwise::rope::{
    FrequencyRule, FrequencySource, RopeAngles, RopeConfig, RopeDirection, RopeFrequencies, RopeKernel, RopeLayout,
    RopePairs, RopePositions, RopePrecision, RotatedLanes,
};
use pointwise::{DType, Device, Tensor};
use serde_json::Value;

use crate::Outcome;
use crate::logical::{Logical, half};
use crate::oracle::{Turn, compare, oracle};

pub(crate) fn floats(hex: &Value) -> Vec<f32> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 8).map(|i| f32::from_bits(u32::from_str_radix(&hex[8 * i..8 * i + 8], 16).unwrap())).collect()
}

/// HF's own `apply_rotary_pos_emb` of six models.
pub(crate) fn golden_outputs(device: &Device) -> Outcome {
    let golden: Value = serde_json::from_str(include_str!("../../golden/rope_apply.json")).unwrap();
    let positions: Vec<i64> = golden["positions"].as_array().unwrap().iter().map(|p| p.as_i64().unwrap()).collect();
    let ids = Tensor::from_slice(device, &positions, [positions.len()])?;
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let rot = case["rotary_dim"].as_u64().unwrap() as usize;
        let pairs: RopePairs = case["pairs"].as_str().unwrap().parse().unwrap();
        let layout: RopeLayout = case["input_layout"].as_str().unwrap().parse().unwrap();
        let rows = positions.len();
        let input = |seed: &Value, heads: usize| -> Result<Tensor, Failed> {
            let mut state = seed.as_u64().unwrap() as u32;
            let values: Vec<f32> = (0..heads * rows * rot)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((state >> 22) as f32 - 512.0) / 256.0
                })
                .collect();
            let shape = if layout == RopeLayout::Bshd { [1, rows, heads, rot] } else { [1, heads, rows, rot] };
            Ok(Tensor::from_slice(device, &values, shape)?)
        };
        let (q, k) = (input(&golden["seeds"]["q"], 2)?, input(&golden["seeds"]["k"], 1)?);
        let config = RopeConfig::from_hf_json(&case["config"].to_string()).unwrap();
        let frequencies = RopeFrequencies::new(device, &config.frequencies(1_048_576).unwrap())?;
        let (cos, sin) = (floats(&case["cos"]), floats(&case["sin"]));
        let cos = Tensor::from_slice(device, &cos, [1, rows, rot / 2])?;
        let sin = Tensor::from_slice(device, &sin, [1, rows, rot / 2])?;
        let sources = [
            (RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePositions::Ids(ids.view())),
            (RopeAngles::Tables { cos: cos.view(), sin: sin.view() }, RopePositions::Offset(0)),
        ];
        for (which, (angles, positions)) in sources.into_iter().enumerate() {
            let kernel = RopeKernel::new(angles, pairs).layout(layout).rotary_dim(rot).positions(positions);
            let (q_out, k_out) = kernel.run(&q, Some(k.view()))?;
            let outputs = [(q_out, "q_out_bhsd"), (k_out.unwrap(), "k_out_bhsd")];
            for (ours, key) in outputs {
                let ours = match layout {
                    RopeLayout::Bshd => ours.view().transpose(1, 2)?.to_vec::<f32>()?,
                    _ => ours.to_vec::<f32>()?,
                };
                let theirs = floats(&case[key]);
                assert_eq!(ours.len(), theirs.len());
                for (i, (our, their)) in ours.iter().zip(&theirs).enumerate() {
                    // From HF's own tables the very bits. From ours, whose cosines differ from PyTorch's in the last
                    // place, an ULP of the larger of the two products (at most 2 in magnitude, times the factor).
                    let allowed = if which == 1 { 0.0 } else { 6e-7 };
                    let is_near = (our - their).abs() <= allowed;
                    if !is_near {
                        return Err(
                            format!("{name} {key} source {which}: element {i} is {our:e}, not {their:e}").into()
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

/// A lane of a rotated row from the row, the position and the lane's index.
type Formula<'a> = &'a dyn Fn(&dyn Fn(usize) -> f64, f64, usize) -> f64;

/// The five source designs, each by its own formula.
pub(crate) fn source_designs(device: &Device) -> Outcome {
    let (n, s, h, d) = (2, 6, 3, 32);
    let x = Logical::random([n, s, h, d], DType::F32, 11);
    let inv = |i: usize| 10_000.0_f64.powf(-(i as f64) / (d as f64 / 2.0));
    let frequencies = RopeFrequencies::new(device, &RopeConfig::default_rope(d, 1e4).frequencies(0).unwrap())?;
    let mut expected = x.clone();
    let mut set = |formula: Formula<'_>, position: &dyn Fn(usize, usize) -> f64, x: &Logical| {
        for b in 0..n {
            for s in 0..s {
                for h in 0..h {
                    let lane = |i: usize| x.values[x.at([b, s, h, i])];
                    for i in 0..d {
                        let at = x.at([b, s, h, i]);
                        expected.values[at] = formula(&lane, position(b, s), i);
                    }
                }
            }
        }
        expected.clone()
    };
    let size: Vec<f64> = vec![8.0; x.values.len()];
    let check = |name: &str, layout: RopeLayout, kernel: RopeKernel<'_>, expected: &Logical| -> Outcome {
        let (output, _) = kernel.layout(layout).run(&x.tensor(device, DType::F32, layout), None)?;
        // The formulas' f64 frequencies differ from f32's by up to 1e-7 of the angle, 11 at most.
        compare(name, DType::F32, &Logical::read(x.dims, layout, &output.view()), &(expected.clone(), size.clone()))
    };
    let on_the_fly = || RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Exact), RopePairs::Half);

    // TileLang's blog: X[N, S, H, D], on the fly, one offset.
    let rotated = set(
        &|x, position, i| {
            let angle = position * inv(i % (d / 2));
            if i < d / 2 {
                x(i) * angle.cos() - x(i + d / 2) * angle.sin()
            } else {
                x(i) * angle.cos() + x(i - d / 2) * angle.sin()
            }
        },
        &|_, s| (s + 5) as f64,
        &x,
    );
    check("tilelang", RopeLayout::Bshd, on_the_fly().positions(RopePositions::Offset(5)), &rotated)?;

    // cuDNN's frontend: raw angles [S, 1, 1, rope_dim], the lanes before pass, one scale on every lane; both
    // directions.
    let rope_dim = 12;
    let angle_of = |s: usize, j: usize| (s as f32 * 0.37) * (j as f32 + 0.5) * 0.1;
    for backward in [false, true] {
        let freqs: Vec<f32> =
            (0..s).flat_map(|s| (0..rope_dim).map(move |j| angle_of(s, j % (rope_dim / 2)))).collect();
        let freqs = Tensor::from_slice(device, &freqs, [s, 1, 1, rope_dim])?;
        let sign = if backward { -1.0 } else { 1.0 };
        let rotated = set(
            &|x, position, i| {
                let nope = d - rope_dim;
                let scale = 0.3_f32 as f64;
                if i < nope {
                    return scale * x(i);
                }
                let j = i - nope;
                let angle = f64::from(angle_of(position as usize, j % (rope_dim / 2)));
                let partner = if j < rope_dim / 2 { -x(i + rope_dim / 2) } else { x(i - rope_dim / 2) };
                scale * (x(i) * angle.cos() + sign * partner * angle.sin())
            },
            &|_, s| s as f64,
            &x,
        );
        let kernel = RopeKernel::new(RopeAngles::Raw(freqs.view()), RopePairs::Half)
            .rotary_dim(rope_dim)
            .rotated_lanes(RotatedLanes::Trail)
            .output_scale(0.3, 1.0)
            .direction(if backward { RopeDirection::Backward } else { RopeDirection::Forward });
        check("cudnn", RopeLayout::Bhsd, kernel, &rotated)?;
    }

    // TileOPs and the Metal kernel: tables [S, D/2] in the tensor's type; interleaved pairs.
    let positions: Vec<i64> = (0..s as i64).collect();
    let (cos, sin) = RopeConfig::default_rope(d, 1e4).frequencies(0).unwrap().cos_sin(&positions, RopePrecision::Exact);
    let (cos, sin) = (Tensor::from_slice(device, &cos, [s, d / 2])?, Tensor::from_slice(device, &sin, [s, d / 2])?);
    let tables = || RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
    let rotated = set(
        &|x, position, i| {
            let angle = position * inv(i / 2);
            if i % 2 == 0 {
                x(i) * angle.cos() - x(i + 1) * angle.sin()
            } else {
                x(i - 1) * angle.sin() + x(i) * angle.cos()
            }
        },
        &|_, s| s as f64,
        &x,
    );
    check("tileops", RopeLayout::Bshd, RopeKernel::new(tables(), RopePairs::Interleaved).rotary_dim(d), &rotated)?;
    check("metal", RopeLayout::Sbhd, RopeKernel::new(tables(), RopePairs::Interleaved).rotary_dim(d), &rotated)?;

    // Triton's tutorial kernel turns the other way: our backward.
    let rotated = set(
        &|x, position, i| {
            let angle = position * inv(i % (d / 2));
            if i < d / 2 {
                x(i) * angle.cos() + x(i + d / 2) * angle.sin()
            } else {
                -x(i - d / 2) * angle.sin() + x(i) * angle.cos()
            }
        },
        &|_, s| s as f64,
        &x,
    );
    let kernel = RopeKernel::new(tables(), RopePairs::Half).rotary_dim(d).direction(RopeDirection::Backward);
    check("triton", RopeLayout::Bhsd, kernel, &rotated)
}

/// A rule of one's own runs in the same kernel.
pub(crate) fn users_rule(device: &Device) -> Outcome {
    struct Halving;
    impl FrequencyRule for Halving {
        fn rotary_dim(&self) -> usize {
            16
        }
        fn inv_freq(&self, i: usize, _rotary_dim: usize) -> f64 {
            0.5_f64.powi(i as i32)
        }
    }
    let frequencies = RopeFrequencies::new(device, &Halving.frequencies(0).unwrap())?;
    let model = half("own", 2, 0, 16, 16);
    let x = Logical::random([1, 9, 2, 16], DType::F32, 13);
    let angle = |_: usize, s: usize, i: usize| {
        let angle = s as f64 * 0.5_f64.powi(i as i32);
        (angle.cos(), angle.sin())
    };
    let kernel = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePairs::Half);
    let (y, _) = kernel.run(&x.tensor(device, DType::F32, RopeLayout::Bshd), None)?;
    let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
    compare("own rule", DType::F32, &Logical::read(x.dims, RopeLayout::Bshd, &y.view()), &oracle(&x, &turn))
}

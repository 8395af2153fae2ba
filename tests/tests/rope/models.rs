//! Every model, layout, source and access width; packed buffers; a prefill.

use libtest_mimic::Failed;
use pointwise::rope::{RopeAngles, RopeDirection, RopeKernel, RopeLayout, RopePairs, RopePositions};
use pointwise::{DType, Device, Strategy, Tensor, TensorView, TensorViewMut};

use crate::Outcome;
use crate::logical::{Logical, Model, half};
use crate::oracle::{Angles, SOURCES, Turn, compare, oracle, run, same_bits};

/// One model in every layout, by every source of angles and access width, both ways, in place and not.
pub(crate) fn every_way(device: &Device, model: &Model, dtype: DType) -> Outcome {
    let (batch, seq) = (2, 5);
    let [q_heads, k_heads] = model.heads;
    let q = Logical::random([batch, seq, q_heads, model.head_dim], dtype, 1);
    let k = Logical::random([batch, seq, k_heads, model.head_dim], dtype, 2);
    let angles = Angles::new(device, dtype, model.rotary_dim, 64);
    let strategies: &[Strategy] = match !device.is_cpu() {
        true => &[Strategy::RegisterCopy, Strategy::ExplicitParallel, Strategy::Direct],
        false => &[Strategy::Auto],
    };
    let mut round = 0;
    for source in SOURCES {
        for backward in [false, true] {
            let scales = if backward { [1.0, 1.0] } else { [0.75_f32, 1.25] };
            let offset = 40;
            let angle = |_: usize, s: usize, i: usize| angles.at(source, dtype, (s + offset) as i64, i);
            let turn =
                |scale: f32| Turn { model: *model, angle: &angle, backward, scale: f64::from(scale), factor: 0.5 };
            let expected = [oracle(&q, &turn(scales[0])), oracle(&k, &turn(scales[1]))];
            for layout in [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd] {
                for (inplace, shared) in [(false, true), (true, true), (false, false), (true, false)] {
                    // The CPU has no blocks.
                    let again = device.is_cpu() && shared;
                    if inplace && model.pairs == RopePairs::InterleavedToHalf || again {
                        continue;
                    }
                    // Not in step with the ways.
                    round += 1 + usize::from(round % 13 == 12);
                    let strategy = strategies[round % strategies.len()];
                    let kernel = |angles| {
                        RopeKernel::new(angles, model.pairs)
                            .layout(layout)
                            .rotary_dim(model.rotary_dim)
                            .rotated_lanes(model.lanes)
                            .positions(RopePositions::Offset(offset as i64))
                            .output_scale(scales[0], scales[1])
                            .attention_factor(0.5)
                            .direction(if backward { RopeDirection::Backward } else { RopeDirection::Forward })
                            .strategy(strategy)
                            .shared_angles(shared)
                            .heads_per_thread([1, 2, 7, 9][round % 4])
                            .threads([256, 32, 1024, 96, 512][round % 5])
                    };
                    let what =
                        format!("{source} {layout:?} backward {backward} in place {inplace} {strategy} {shared}");
                    let tensor = |x: &Logical, device: &Device| x.tensor(device, dtype, layout);
                    let (q_in, k_in) = (tensor(&q, device), (k_heads > 0).then(|| tensor(&k, device)));
                    let outputs = run(&kernel(angles.of(source)), &q_in, k_in.as_ref(), inplace)?;
                    for ((output, expected), dims) in outputs.iter().zip(&expected).zip([q.dims, k.dims]) {
                        if let Some(output) = output {
                            let got = Logical::read(dims, layout, &output.view());
                            compare(&what, dtype, &got, expected)?;
                        }
                    }
                    if !device.is_cpu() {
                        let cpu = Device::cpu();
                        let here = Angles::new(&cpu, dtype, model.rotary_dim, 64);
                        let (q_in, k_in) = (tensor(&q, &cpu), (k_heads > 0).then(|| tensor(&k, &cpu)));
                        let ours = run(&kernel(here.of(source)), &q_in, k_in.as_ref(), inplace)?;
                        same_bits(&what, &outputs, &ours)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Views of packed buffers, in place and not, at alignments good and bad; what lies around is left alone.
pub(crate) fn strides(device: &Device, dtype: DType) -> Outcome {
    let (tokens, heads, head_dim) = (7_usize, [6_usize, 2, 2], 64_usize);
    let model = half("packed", heads[0], heads[1], head_dim, 32);
    let angles = Angles::new(device, dtype, 32, 64);
    for (lead, tail) in [(0, 0), (1, 0), (4, 0), (8, 3)] {
        // A row: some lanes, q's heads, k's, v's, some lanes.
        let row = lead + heads.iter().sum::<usize>() * head_dim + tail;
        let buffer = Logical::random([1, tokens, 1, row], dtype, 9);
        let cut = |first: usize, count: usize| {
            let mut part = Logical { dims: [1, tokens, count, head_dim], values: Vec::new() };
            for token in 0..tokens {
                let at = token * row + lead + first * head_dim;
                part.values.extend_from_slice(&buffer.values[at..at + count * head_dim]);
            }
            part
        };
        let angle = |_: usize, s: usize, i: usize| angles.at("hf", dtype, s as i64, i);
        let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
        let parts = [cut(0, heads[0]), cut(heads[0], heads[1])];
        let expected = parts.each_ref().map(|part| oracle(part, &turn));
        for (inplace, shared) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut packed = buffer.tensor(device, dtype, RopeLayout::Sd);
            let mut target = Tensor::zeros(device, dtype, [tokens, row])?;
            let kernel =
                RopeKernel::new(angles.of("hf"), RopePairs::Half).layout(RopeLayout::Thd).shared_angles(shared);
            let places = [(0, heads[0]), (heads[0], heads[1])];
            let into = if inplace { packed.as_mut_ptr()? } else { target.as_mut_ptr()? };
            let [q_out, k_out] = places.map(|(first, count)| {
                let pointer = into.wrapping_add((lead + first * head_dim) * dtype.size());
                let strides = [row as i64, head_dim as i64, 1];
                // SAFETY: the parts are inside the buffer and apart from each other, and nothing else uses it.
                unsafe {
                    TensorViewMut::from_raw_parts(device, pointer, dtype, [tokens, count, head_dim], &strides).unwrap()
                }
            });
            if inplace {
                kernel.run_inplace(q_out, Some(k_out))?;
            } else {
                let [q, k] = places.map(|(first, count)| {
                    let lanes = packed.view().narrow(1, lead + first * head_dim, count * head_dim).unwrap();
                    let strides = [row as i64, head_dim as i64, 1];
                    // SAFETY: as above, to read.
                    unsafe {
                        let (pointer, shape) = (lanes.device_ptr(), [tokens, count, head_dim]);
                        if device.is_cpu() {
                            TensorView::from_raw_parts(device, lanes.as_ptr(), dtype, shape, &strides).unwrap()
                        } else {
                            TensorView::from_raw_parts(device, pointer, dtype, shape, &strides).unwrap()
                        }
                    }
                });
                kernel.run_into(q, Some(k), q_out, Some(k_out))?;
            }
            let result = if inplace { &packed } else { &target };
            let after = Logical::read(buffer.dims, RopeLayout::Sd, &result.view());
            for (part, (first, count)) in expected.iter().zip(places) {
                let mut got = Logical { dims: part.0.dims, values: Vec::new() };
                for token in 0..tokens {
                    let at = token * row + lead + first * head_dim;
                    got.values.extend_from_slice(&after.values[at..at + count * head_dim]);
                }
                compare(&format!("packed at {lead}, in place {inplace}"), dtype, &got, part)?;
            }
            for (i, value) in after.values.iter().enumerate() {
                let outside = !(lead..lead + (heads[0] + heads[1]) * head_dim).contains(&(i % row));
                let before = if inplace { buffer.values[i] } else { 0.0 };
                if outside && *value != before {
                    return Err(format!("packed at {lead}, in place {inplace}: wrote outside, at {i}").into());
                }
            }
        }
    }
    Ok(())
}

/// Tables that no vector of entries is aligned in, by both templates.
pub(crate) fn odd_tables(device: &Device, dtype: DType) -> Outcome {
    let (seq, width) = (9_usize, 16_usize);
    let model = half("odd tables", 3, 1, 32, 32);
    let x = Logical::random([1, seq, 3, 32], dtype, 21);
    // Rows of 17 entries; the first is no cosine.
    let wide: Vec<f32> = (0..seq * (width + 1)).map(|i| (i as f32 * 0.7).sin()).collect();
    let table = Tensor::from_slice(device, &wide, [seq, width + 1])?;
    let entry = |s: usize, i: usize, first: usize| f64::from(wide[s * (width + 1) + first + i]);
    for first in [0, 1] {
        let view = table.view().narrow(1, first, width)?;
        let angle = |_: usize, s: usize, i: usize| (entry(s, i, first), entry(s, i, first));
        let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
        for shared in [true, false] {
            let tables = RopeAngles::Tables { cos: view, sin: view };
            let kernel = RopeKernel::new(tables, RopePairs::Half).rotary_dim(32).shared_angles(shared);
            let (output, _) = kernel.run(&x.tensor(device, dtype, RopeLayout::Bshd), None)?;
            let got = Logical::read(x.dims, RopeLayout::Bshd, &output.view());
            compare(&format!("odd tables from {first}, shared {shared}"), dtype, &got, &oracle(&x, &turn))?;
        }
    }
    Ok(())
}

/// A prefill of a real size: every element against the CPU's bits, on a GPU; on the CPU, parallel against token by
/// token.
pub(crate) fn large(device: &Device, dtype: DType) -> Outcome {
    let (seq, q_heads, k_heads, head_dim) = (1100, 9, 2, 128);
    let q = Logical::random([1, seq, q_heads, head_dim], dtype, 5);
    let k = Logical::random([1, seq, k_heads, head_dim], dtype, 6);
    for source in SOURCES {
        let ways = [RopeLayout::Bshd, RopeLayout::Bhsd].map(|layout| [(layout, true), (layout, false)]);
        for (layout, shared) in ways.into_iter().flatten() {
            let at = |device: &Device| -> Result<_, Failed> {
                let angles = Angles::new(device, dtype, head_dim, seq);
                let kernel = RopeKernel::new(angles.of(source), RopePairs::Half).layout(layout).shared_angles(shared);
                let tensors = [&q, &k].map(|x| x.tensor(device, dtype, layout));
                Ok(run(&kernel, &tensors[0], Some(&tensors[1]), false)?)
            };
            let whole = at(device)?;
            if !device.is_cpu() {
                same_bits(source, &whole, &at(&Device::cpu())?)?;
                continue;
            }
            let angles = Angles::new(device, dtype, head_dim, seq);
            let got = Logical::read(q.dims, layout, &whole[0].as_ref().unwrap().view());
            for s in [0, 1, 511, 512, 1099] {
                let dims = [1, 1, q_heads, head_dim];
                let token = |x: &Logical| Logical {
                    dims,
                    values: x.values[x.at([0, s, 0, 0])..][..q_heads * head_dim].to_vec(),
                };
                let kernel =
                    RopeKernel::new(angles.of(source), RopePairs::Half).positions(RopePositions::Offset(s as i64));
                let (alone, _) = kernel.run(&token(&q).tensor(device, dtype, RopeLayout::Bshd), None)?;
                if Logical::read(dims, RopeLayout::Bshd, &alone.view()) != token(&got) {
                    return Err(format!("{source} {layout:?}: token {s} differs from itself alone").into());
                }
            }
        }
    }
    Ok(())
}

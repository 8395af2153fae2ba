//! Operands of every rank, and of dimensions that are 0: rotated, or refused by name.

use pointwise::rope::{
    MropeLayout, MropeSections, RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopeLayout, RopeOperands,
    RopePairs, RopePositions, RopePrecision, rope_op,
};
use pointwise::{DType, Device, Tensor};

const LAYOUTS: [RopeLayout; 5] =
    [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd, RopeLayout::Thd, RopeLayout::Sd];

/// Tensors of each rank that a tensor can have: of dimensions 1, of 2, and of 0.
fn all_ranks(dtype: DType) -> Vec<Tensor> {
    let of = |(rank, dim): (usize, usize)| Tensor::zeros(&Device::cpu(), dtype, vec![dim; rank]).unwrap();
    (0..=8).flat_map(|rank| [1, 2, 0].map(|dim| (rank, dim))).map(of).collect()
}

/// q of a layout, two of everything.
fn pairs_of(layout: RopeLayout) -> Tensor {
    let shape: &[usize] = match layout {
        RopeLayout::Thd => &[2, 2, 2],
        RopeLayout::Sd => &[2, 2],
        _ => &[2, 2, 2, 2],
    };
    Tensor::zeros(&Device::cpu(), DType::F32, shape).unwrap()
}

/// Runs a call that may be refused: by an error that names one of `words`, not by a panic.
#[track_caller]
fn judged(what: &str, result: pointwise::Result<(Tensor, Option<Tensor>)>, words: &[&str]) -> bool {
    let Err(error) = result else { return true };
    let message = error.to_string();
    assert!(words.iter().any(|word| message.contains(word)), "{what}: {message}");
    false
}

#[test]
fn kernels_judge_every_rank() {
    let frequencies = RopeConfig::default_rope(2, 1e4).frequencies(0).unwrap();
    let frequencies = RopeFrequencies::new(&Device::cpu(), &frequencies).unwrap();
    let on_the_fly = RopeAngles::Frequencies(&frequencies, RopePrecision::Hf);
    let (floats, ids) = (all_ranks(DType::F32), all_ranks(DType::I64));
    let sections = MropeSections { sections: [1, 0, 0], layout: MropeLayout::Chunked };
    for layout in LAYOUTS {
        let kernel = |angles| RopeKernel::new(angles, RopePairs::Half).layout(layout);
        let q = pairs_of(layout);
        let (mut good, mut calls) = (0, 0);
        let mut run = |what: &str, result, words: &[&str]| {
            calls += 1;
            good += usize::from(judged(&format!("{what} of {layout:?}"), result, words));
        };
        for x in &floats {
            let what = x.shape().to_string();
            run(&what, kernel(on_the_fly).run(x, None), &["`q`", "head_dim"]);
            run(&what, kernel(on_the_fly).run(&q, Some(x.view())), &["`k`", "k, which"]);
            run(&what, kernel(RopeAngles::Raw(x.view())).run(&q, None), &["`freqs`", "rotary_dim", "rows"]);
            let tables = RopeAngles::Tables { cos: x.view(), sin: x.view() };
            run(&what, kernel(tables).run(&q, None), &["`cos`", "rotary_dim", "rows"]);
            for other in &floats {
                let tables = RopeAngles::Tables { cos: x.view(), sin: other.view() };
                run(&what, kernel(tables).run(&q, None), &["`cos`", "`sin`", "sin", "rotary_dim", "rows"]);
            }
        }
        for ids in &ids {
            let (what, view) = (ids.shape().to_string(), ids.view());
            let places = [
                (RopePositions::BatchOffsets(view), "offsets"),
                (RopePositions::Ids(view), "position_ids"),
                (RopePositions::Axes { ids: view, sections }, "position_ids"),
                (RopePositions::Sequences { cu_seqlens: view, offsets: None }, "cu_seqlens"),
            ];
            for (positions, word) in places {
                run(&what, kernel(on_the_fly).positions(positions).run(&q, None), &[word]);
            }
            let starts = Tensor::from_slice(&Device::cpu(), &[0_i64, 1, 2], [3]).unwrap();
            let positions = RopePositions::Sequences { cu_seqlens: starts.view(), offsets: Some(view) };
            run(&what, kernel(on_the_fly).positions(positions).run(&q, None), &["offsets", "cu_seqlens"]);
        }
        assert!(good > 5 && calls > 900, "{good} of {calls}");
    }
}

#[test]
fn named_ops_judge_every_rank() {
    let (floats, ids) = (all_ranks(DType::F32), all_ranks(DType::I32));
    for name in ["bshd", "bhsd", "sbhd", "thd", "sd"] {
        let q = pairs_of(name.parse().unwrap());
        let op = rope_op("rope_neox").unwrap().op().set("layout", name).unwrap();
        let plain = RopeOperands::new(&q);
        let run = |operands: &RopeOperands<'_>, what: &Tensor, words: &[&str]| {
            judged(&format!("{} of {name}", what.shape()), op.run(operands), words)
        };
        for x in &floats {
            run(&RopeOperands::new(x), x, &["`q`", "head_dim"]);
            run(&RopeOperands { k: Some(x.view()), ..plain }, x, &["`k`", "k, which"]);
            run(&RopeOperands { freqs: Some(x.view()), ..plain }, x, &["`freqs`", "rotary_dim", "rows"]);
            let tables = RopeOperands { cos: Some(x.view()), sin: Some(x.view()), ..plain };
            run(&tables, x, &["`cos`", "rotary_dim", "rows"]);
        }
        for x in &ids {
            run(&RopeOperands { position_ids: Some(x.view()), ..plain }, x, &["position_ids"]);
        }
    }
    let scalar = Tensor::zeros(&Device::cpu(), DType::F32, Vec::new()).unwrap();
    let q = pairs_of(RopeLayout::Bshd);
    let message =
        |operands: &RopeOperands<'_>| rope_op("rope_neox").unwrap().op().run(operands).unwrap_err().to_string();
    let freqs = message(&RopeOperands { freqs: Some(scalar.view()), ..RopeOperands::new(&q) });
    assert!(freqs.contains("`freqs` is []: its shape must be [rows, width]"), "{freqs}");
    let q = message(&RopeOperands::new(&scalar));
    assert!(q.contains("`q` contradicts `[batch, sequence, heads, head_dim]`: its shape is []"), "{q}");
}

/// Without heads of q the call is no call in place, though two tensors without elements have one address: the lanes of k
/// that do not rotate are copied.
#[test]
fn the_rest_of_k_is_copied_beside_an_empty_q() {
    let frequencies = RopeConfig::default_rope(4, 1e4).frequencies(0).unwrap();
    let frequencies = RopeFrequencies::new(&Device::cpu(), &frequencies).unwrap();
    let kernel = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePairs::Half);
    let q = Tensor::zeros(&Device::cpu(), DType::F32, [1, 3, 0, 8]).unwrap();
    let k = Tensor::full(&Device::cpu(), 2.0_f32, [1, 3, 2, 8]).unwrap();
    let (_, rotated) = kernel.run(&q, Some(k.view())).unwrap();
    let rotated = rotated.unwrap().to_vec::<f32>().unwrap();
    assert!(rotated.chunks(8).all(|head| head[4..] == [2.0; 4]), "{rotated:?}");
}

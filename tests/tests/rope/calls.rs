//! Refused calls, graphs, and sizes beyond 31 bits.

use libtest_mimic::Failed;
use pointwise::rope::{
    MropeLayout, MropeSections, OutOfRange, RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopeLayout, RopePairs,
    RopePositions, RopePrecision,
};
use pointwise::{DType, Device, Strategy, Stream, Tensor, TensorViewMut, bf16};
use pointwise_testkit::inputs;
use pointwise_testkit::judge::same_bits;

use crate::Outcome;
use crate::logical::Logical;
use crate::oracle::{Angles, SOURCES};

/// Calls that are refused, and their messages.
pub(crate) fn mistakes(device: &Device) -> Outcome {
    let q = Tensor::zeros(device, DType::F32, [2, 6, 4, 32])?;
    let k = Tensor::zeros(device, DType::F32, [2, 6, 1, 32])?;
    let angles = Angles::new(device, DType::F32, 16, 6);
    let kernel = || RopeKernel::new(angles.of("tables"), RopePairs::Half).rotary_dim(16);
    let refused = |what: &str, result: pointwise::Result<(Tensor, Option<Tensor>)>, words: &str| -> Outcome {
        match result {
            Ok(_) => Err(format!("{what} was not refused").into()),
            Err(error) if error.to_string().contains(words) => Ok(()),
            Err(error) => Err(format!("{what}: \"{error}\" does not say \"{words}\"").into()),
        }
    };
    kernel().run(&q, Some(k.view()))?;
    refused("odd", kernel().rotary_dim(15).run(&q, None), "rotary_dim")?;
    let wide = Tensor::zeros(device, DType::F32, [6, 20])?;
    let tables = RopeAngles::Tables { cos: wide.view(), sin: wide.view() };
    refused("too many lanes", RopeKernel::new(tables, RopePairs::Half).run(&q, None), "head_dim")?;
    refused("width", RopeKernel::new(tables, RopePairs::Half).rotary_dim(16).run(&q, None), "`cos`")?;
    let narrow = Tensor::zeros(device, DType::F32, [6, 4])?;
    let tables = RopeAngles::Tables { cos: angles.cos.view(), sin: narrow.view() };
    refused("sin", RopeKernel::new(tables, RopePairs::Half).run(&q, None), "sin")?;
    refused("short table", kernel().positions(RopePositions::Offset(1)).run(&q, None), "rows 0 to 5")?;
    refused("negative", kernel().positions(RopePositions::Offset(-1)).run(&q, None), "rows 0 to 5")?;
    refused("layout", kernel().layout(RopeLayout::Thd).run(&q, None), "[tokens, heads, head_dim]")?;
    refused("rank", kernel().run(&k.copy()?.reshape([12, 32])?, None), "[batch, sequence, heads, head_dim]")?;
    let other = Tensor::zeros(device, DType::F32, [2, 5, 1, 32])?;
    refused("k", kernel().run(&q, Some(other.view())), "heads alone")?;
    let half_k = Tensor::zeros(device, DType::F16, [2, 6, 1, 32])?;
    refused("k's type", kernel().run(&q, Some(half_k.view())), "f16")?;
    let ints = Tensor::zeros(device, DType::I32, [2, 6, 4, 32])?;
    refused("type", kernel().run(&ints, None), "i32")?;
    let ids = Tensor::zeros(device, DType::I64, [7])?;
    refused("ids", kernel().positions(RopePositions::Ids(ids.view())).run(&q, None), "position_ids")?;
    let ids = Tensor::zeros(device, DType::F32, [6])?;
    refused("ids' type", kernel().positions(RopePositions::Ids(ids.view())).run(&q, None), "position_ids")?;
    let starts = Tensor::zeros(device, DType::I32, [3])?;
    let sequences = RopePositions::Sequences { cu_seqlens: starts.view(), offsets: None };
    let ids = Tensor::zeros(device, DType::I64, [3, 6])?;
    let sections = MropeSections { sections: [4, 2, 1], layout: MropeLayout::Chunked };
    let axes = RopePositions::Axes { ids: ids.view(), sections };
    refused("sections", kernel().positions(axes).run(&q, None), "mrope_section")?;
    refused("sequences", kernel().positions(sequences).run(&q, None), "thd")?;
    refused("threads", kernel().threads(33).run(&q, None), "threads")?;
    refused("no heads", kernel().heads_per_thread(0).run(&q, None), "heads_per_thread")?;
    refused("a table", kernel().strategy(Strategy::Table).run(&q, None), "strategy")?;
    refused("scale", kernel().output_scale(f32::NAN, 1.0).run(&q, None), "output_scale")?;
    refused("transposed", kernel().run(q.view().transpose(2, 3)?, None), "last dimension")?;
    let ids = Tensor::from_slice(device, &[0_i32, 1, 2, 3, 4, 9], [6])?;
    let by_ids = kernel().positions(RopePositions::Ids(ids.view()));
    if device.is_cpu() {
        refused("an id", by_ids.clone().run(&q, None), "rows 0 to 5")?;
    }
    by_ids.out_of_range(OutOfRange::Identity).run(&q, None)?;
    let packed = Tensor::zeros(device, DType::F32, [6, 4, 32])?;
    let i32s = |values: &[i32]| Tensor::from_slice(device, values, [values.len()]);
    let (one, whole, late) = (i32s(&[0])?, i32s(&[0, 6])?, i32s(&[1])?);
    let by_starts = |cu_seqlens: &Tensor, offsets: &Tensor| {
        let (cu_seqlens, offsets) = (cu_seqlens.view(), Some(offsets.view()));
        kernel().layout(RopeLayout::Thd).positions(RopePositions::Sequences { cu_seqlens, offsets }).run(&packed, None)
    };
    refused("no sequence's end", by_starts(&one, &one), "cu_seqlens")?;
    let wide = Tensor::zeros(device, DType::I64, [1])?;
    refused("offsets' type", by_starts(&whole, &wide), "beside cu_seqlens")?;
    by_starts(&whole, &one)?;
    if device.is_cpu() {
        refused("a late sequence", by_starts(&whole, &late), "rows 0 to 5")?;
        let (below, behind) = (i32s(&[0, 1, 2, 3, 4, -1])?, i32s(&[0, 1])?);
        refused("a negative id", kernel().positions(RopePositions::Ids(below.view())).run(&q, None), "rows 0 to 5")?;
        let offsets = RopePositions::BatchOffsets(behind.view());
        refused("an offset", kernel().positions(offsets).run(&q, None), "rows 0 to 5")?;
    }
    let each = Tensor::zeros(device, DType::F32, [2, 6, 16])?;
    let by_token = RopeKernel::new(RopeAngles::Tables { cos: each.view(), sin: each.view() }, RopePairs::Half);
    by_token.run(&q, None)?;
    refused("places of tokens", by_token.positions(RopePositions::Offset(1)).run(&q, None), "a row for each token")?;
    let mut moved = q.copy()?;
    let to_half = RopeKernel::new(angles.of("hf"), RopePairs::InterleavedToHalf);
    let result = to_half.run_inplace(&mut moved, None);
    refused("in place", result.map(|()| (moved, None)), "in place")?;
    let mut target = q.copy()?;
    let result = kernel().run_into(&q, Some(k.view()), &mut target, None);
    refused("an output", result.map(|()| (target, None)), "give both")?;
    let mut target = q.copy()?;
    let strides = k.shape().contiguous_strides();
    for (over, words) in [(q.device_ptr(), "an input and an output"), (target.device_ptr(), "the outputs")] {
        // SAFETY: as many elements as k has of a tensor that has more; the call is refused before it writes.
        let k_out = unsafe { TensorViewMut::from_raw_parts(device, over, DType::F32, k.shape(), &strides) }?;
        let result = kernel().run_into(&q, Some(k.view()), &mut target, Some(k_out));
        refused(words, result.map(|()| (k.copy().unwrap(), None)), words)?;
    }
    let scalar = Tensor::zeros(device, DType::F32, Vec::new())?;
    refused(
        "a scalar table",
        RopeKernel::new(RopeAngles::Raw(scalar.view()), RopePairs::Half).run(&q, None),
        "`freqs`",
    )?;
    Ok(())
}

/// Nothing to do is no mistake: tensors without batch entries, tokens or heads, in every layout and way.
pub(crate) fn nothing_to_do(device: &Device) -> Outcome {
    let lanes = 64;
    let angles = Angles::new(device, DType::F32, lanes, 128);
    let shape = |layout: RopeLayout, [batch, seq, heads]: [usize; 3]| match layout {
        RopeLayout::Bshd => vec![batch, seq, heads, lanes],
        RopeLayout::Bhsd => vec![batch, heads, seq, lanes],
        RopeLayout::Sbhd => vec![seq, batch, heads, lanes],
        RopeLayout::Thd => vec![batch * seq, heads, lanes],
        RopeLayout::Sd => vec![0, lanes],
    };
    let zeros = |shape: Vec<usize>| Tensor::zeros(device, DType::F32, shape);
    for layout in [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd, RopeLayout::Thd, RopeLayout::Sd] {
        for [batch, seq, heads, k_heads] in [[0, 128, 32, 8], [1, 0, 32, 8], [1, 128, 0, 0], [0, 0, 0, 0]] {
            let mut q = zeros(shape(layout, [batch, seq, heads]))?;
            let mut k = zeros(shape(layout, [batch, seq, k_heads]))?;
            for (source, shared) in SOURCES.into_iter().flat_map(|source| [(source, true), (source, false)]) {
                let kernel = RopeKernel::new(angles.of(source), RopePairs::Half).layout(layout);
                for kernel in [kernel.clone(), kernel.shared_angles(shared)] {
                    let (q_out, k_out) = kernel.run(&q, Some(k.view()))?;
                    if [Some(&q_out), k_out.as_ref()].into_iter().flatten().any(|out| out.numel() > 0) {
                        return Err(format!("{source} {layout:?}: something of nothing").into());
                    }
                    kernel.run(&q, None)?;
                    kernel.run_inplace(&mut q, Some(k.view_mut()?))?;
                }
            }
        }
    }
    one_side_without_heads(device, &angles)
}

/// k is rotated beside a q that has no heads.
fn one_side_without_heads(device: &Device, angles: &Angles) -> Outcome {
    let x = Logical::random([2, 128, 3, 64], DType::F32, 23);
    for layout in [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd] {
        let k = x.tensor(device, DType::F32, layout);
        let none = Logical { dims: [2, 128, 0, 64], values: Vec::new() }.tensor(device, DType::F32, layout);
        for (source, shared) in SOURCES.into_iter().flat_map(|source| [(source, true), (source, false)]) {
            let kernel = RopeKernel::new(angles.of(source), RopePairs::Half).layout(layout).shared_angles(shared);
            let (_, beside) = kernel.run(&none, Some(k.view()))?;
            let (alone, _) = kernel.run(&k, None)?;
            if beside.map(|beside| beside.to_bytes()).transpose()? != Some(alone.to_bytes()?) {
                return Err(format!("{source} {layout:?}: k beside no heads differs from k alone").into());
            }
        }
    }
    Ok(())
}

pub(crate) fn graph_capture(device: &Device) -> Outcome {
    let stream = Stream::new(device)?;
    let x = Logical::random([1, 8, 4, 64], DType::BF16, 14);
    let q = x.tensor(device, DType::BF16, RopeLayout::Bshd);
    let mut y = Tensor::zeros(device, DType::BF16, [1, 8, 4, 64])?;
    let angles = Angles::new(device, DType::BF16, 64, 8);
    let kernel = RopeKernel::new(angles.of("hf"), RopePairs::Half).on(&stream);
    // Loads the kernel, which a capture forbids.
    kernel.run_into(&q, None, &mut y, None)?;
    stream.synchronize()?;
    let expected = y.to_bytes()?;
    y.copy_from_bytes(&vec![0; expected.len()])?;
    let mut graph = stream.capture(|_| kernel.run_into(&q, None, &mut y, None))?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    if y.to_bytes()? == expected { Ok(()) } else { Err("the graph's result differs".into()) }
}

/// More elements than 31 bits can count, and more tokens than a grid's y axis has.
pub(crate) fn beyond_31_bits(device: &Device) -> Outcome {
    let (tokens, heads, head_dim) = (70_000, 256, 128);
    let n = tokens * heads * head_dim;
    assert!(n > 1 << 31);
    let pattern: Vec<u8> =
        (0..heads * head_dim).flat_map(|i| bf16::from_f32((i % 251) as f32 / 64.0).to_le_bytes()).collect();
    let bytes = pattern.repeat(tokens);
    let mut x = Tensor::from_bytes(device, DType::BF16, &bytes, [1, tokens, heads, head_dim])?;
    let frequencies = RopeConfig::default_rope(head_dim, 1e4).frequencies(0).unwrap();
    let on_device = RopeFrequencies::new(device, &frequencies)?;
    RopeKernel::new(RopeAngles::Frequencies(&on_device, RopePrecision::Hf), RopePairs::Half)
        .run_inplace(&mut x, None)?;
    for token in [0, 1, 35_000, 65_535, 65_536, 69_999] {
        let got = x.view().narrow(1, token, 1)?.to_bytes()?;
        let cpu = Device::cpu();
        let here = RopeFrequencies::new(&cpu, &frequencies)?;
        let mut row = Tensor::from_bytes(&cpu, DType::BF16, &pattern, [1, 1, heads, head_dim])?;
        RopeKernel::new(RopeAngles::Frequencies(&here, RopePrecision::Hf), RopePairs::Half)
            .positions(RopePositions::Offset(token as i64))
            .run_inplace(&mut row, None)?;
        if got != row.to_bytes()? {
            return Err(format!("token {token} is wrong").into());
        }
    }
    Ok(())
}

/// Whichever kernel serves a call, its results have the same bits, also where products overflow or underflow.
pub(crate) fn kernels_alike(device: &Device, dtype: DType) -> Outcome {
    let (tokens, heads, dim) = (33, 3, 64);
    let tensor = |device: &Device, shape: &[usize], seed| {
        Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, shape.iter().product(), seed), shape)
    };
    for pairs in [RopePairs::Half, RopePairs::Interleaved] {
        let results = |device: &Device| -> Result<Vec<Vec<u8>>, Failed> {
            let q = tensor(device, &[1, tokens, heads, dim], 1)?;
            let (cos, sin) = (tensor(device, &[tokens, dim / 2], 3)?, tensor(device, &[tokens, dim / 2], 5)?);
            let angles = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
            let kernel = RopeKernel::new(angles, pairs).layout(RopeLayout::Bshd);
            let positions: Vec<i64> = (0..tokens as i64).collect();
            let ids = Tensor::from_slice(device, &positions, [tokens])?;
            let by_ids = kernel.clone().positions(RopePositions::Ids(ids.view()));
            let mut results = Vec::new();
            for kernel in [kernel.clone(), kernel.clone().shared_angles(true), by_ids] {
                results.push(kernel.run(&q, None)?.0.to_bytes()?);
            }
            // Heads that lie farther apart than tokens.
            let apart = q.view().transpose(1, 2)?.to_tensor()?;
            let kernel = kernel.layout(RopeLayout::Bhsd).shared_angles(false);
            results.push(kernel.run(&apart, None)?.0.view().transpose(1, 2)?.to_tensor()?.to_bytes()?);
            Ok(results)
        };
        let expected = results(&Device::cpu())?.remove(0);
        for (which, got) in results(device)?.iter().enumerate() {
            if let Some(i) = same_bits(dtype, got, &expected) {
                return Err(format!("{pairs:?} of {dtype}, way {which}: element {i:?} differs from the CPU's").into());
            }
        }
    }
    Ok(())
}

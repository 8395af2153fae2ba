//! Every source of positions.

use pointwise::rope::{
    MropeAxis, MropeLayout, MropeSections, OutOfRange, RopeAngles, RopeKernel, RopeLayout, RopePairs, RopePositions,
};
use pointwise::{DType, Device, Tensor};

use crate::Outcome;
use crate::logical::{Logical, half};
use crate::oracle::{Angles, SOURCES, Turn, compare, oracle, run, same_bits};

/// Every way to give positions, near and far, by every source.
pub(crate) fn positions(device: &Device, dtype: DType) -> Outcome {
    every_position(device, dtype, 16, RopeLayout::Bhsd)?;
    // All lanes: another kernel, which has each layout in a way of its own.
    [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Sbhd]
        .into_iter()
        .try_for_each(|layout| every_position(device, dtype, 32, layout))
}

/// Many heads by rows at given positions, in several waves of blocks: bit for bit as on the CPU. The last token's position
/// is none of the table's.
pub(crate) fn many_given(device: &Device, dtype: DType) -> Outcome {
    let (tokens, q_heads, k_heads, head_dim, rows) = (32_000, 31, 2, 128, 5_000);
    let ids: Vec<i32> = (0..tokens as i32).map(|token| token.wrapping_mul(7_919) % rows as i32).collect();
    let ids = [&ids[1..], &[rows as i32]].concat();
    let at = |device: &Device| -> pointwise::Result<_> {
        let angles = Angles::new(device, dtype, head_dim, rows);
        let ids = Tensor::from_slice(device, &ids, [tokens])?;
        let kernel = RopeKernel::new(angles.of("own_tables"), RopePairs::Half)
            .layout(RopeLayout::Thd)
            .positions(RopePositions::Ids(ids.view()))
            .out_of_range(OutOfRange::Identity);
        let numbers = |seed: usize, heads: usize| {
            let values: Vec<u8> = (0..251 * 2).map(|i| ((i * seed) % 119) as u8).collect();
            let bytes: Vec<u8> =
                values.iter().copied().cycle().take(tokens * heads * head_dim * dtype.size()).collect();
            Tensor::from_bytes(device, dtype, &bytes, [tokens, heads, head_dim])
        };
        let (q, k) = kernel.run(&numbers(37, q_heads)?, Some(numbers(53, k_heads)?.view()))?;
        Ok([Some(q), k])
    };
    same_bits("many given positions", &at(device)?, &at(&Device::cpu())?)
}

/// Tests heads of 32 lanes with so many that rotate.
fn every_position(device: &Device, dtype: DType, rotary_dim: usize, batched: RopeLayout) -> Outcome {
    let (batch, seq) = (3_usize, 6_usize);
    let model = half("positions", 3, 2, 32, rotary_dim);
    let angles = Angles::new(device, dtype, rotary_dim, 50);
    let far = [
        0,
        1,
        4095,
        4096,
        4097,
        8191,
        32_767,
        131_071,
        262_143,
        1_048_575,
        i64::from(i32::MAX),
        -1,
        49,
        50,
        12,
        7,
        3,
        2,
    ];
    let near: Vec<i32> = far.iter().map(|id| *id as i32).collect();
    let wide = Tensor::from_slice(device, &far, [batch, seq])?;
    let narrow = Tensor::from_slice(device, &near, [batch, seq])?;
    let offsets = Tensor::from_slice(device, &[5_i64, 44, 0], [batch])?;
    let starts = Tensor::from_slice(device, &[1_i32, 4, 4, 11, 17], [5])?;
    let starts_wide = Tensor::from_slice(device, &[0_i64, 9, 18], [3])?;
    let shifts = Tensor::from_slice(device, &[10_i32, 3, 20, 47], [4])?;
    // Sequences of starts, with tokens 0 and 17 in none.
    let in_sequence = |t: usize| {
        let starts = [1, 4, 4, 11, 17];
        (0..4).rev().find(|i| (starts[*i]..starts[i + 1]).contains(&t)).map(|i| (i, (t - starts[i]) as i64))
    };
    type Place<'a> = (&'a str, RopePositions<'a>, Box<dyn Fn(usize, usize) -> Option<i64> + 'a>);
    let given: Vec<Place<'_>> = vec![
        ("offset", RopePositions::Offset(46), Box::new(|_, s| Some(46 + s as i64))),
        ("far", RopePositions::Offset(1_048_570), Box::new(|_, s| Some(1_048_570 + s as i64))),
        ("negative", RopePositions::Offset(-3), Box::new(|_, s| Some(s as i64 - 3))),
        ("offsets", RopePositions::BatchOffsets(offsets.view()), Box::new(|b, s| Some([5, 44, 0][b] + s as i64))),
        ("ids_i64", RopePositions::Ids(wide.view()), Box::new(|b, s| Some(far[b * seq + s]))),
        ("ids_i32", RopePositions::Ids(narrow.view()), Box::new(|b, s| Some(far[b * seq + s]))),
        ("one_row", RopePositions::Ids(wide.view().narrow(0, 1, 1)?), Box::new(|_, s| Some(far[seq + s]))),
        ("one_list", RopePositions::Ids(wide.view().select(0, 2)?), Box::new(|_, s| Some(far[2 * seq + s]))),
        (
            "columns",
            RopePositions::Ids(wide.view().select(1, 3)?.unsqueeze(1)?.expand([batch, seq])?),
            Box::new(|b, _| Some(far[b * seq + 3])),
        ),
        (
            "sequences",
            RopePositions::Sequences { cu_seqlens: starts.view(), offsets: None },
            Box::new(move |b, s| in_sequence(b * seq + s).map(|(_, at)| at)),
        ),
        (
            "sequences_offsets",
            RopePositions::Sequences { cu_seqlens: starts.view(), offsets: Some(shifts.view()) },
            Box::new(move |b, s| in_sequence(b * seq + s).map(|(i, at)| [10, 3, 20, 47][i] + at)),
        ),
        (
            "sequences_i64",
            RopePositions::Sequences { cu_seqlens: starts_wide.view(), offsets: None },
            Box::new(|b, s| Some(((b * 6 + s) % 9) as i64)),
        ),
    ];
    let q = Logical::random([batch, seq, 3, 32], dtype, 3);
    let k = Logical::random([batch, seq, 2, 32], dtype, 4);
    let sources = SOURCES.into_iter().flat_map(|source| [(source, true), (source, false)]);
    for (name, positions, place) in &given {
        for (source, shared) in sources.clone() {
            let sequences = name.starts_with("sequences");
            let layout = if sequences { RopeLayout::Thd } else { batched };
            let angle = |b: usize, s: usize, i: usize| match place(b, s) {
                Some(position) => angles.at(source, dtype, position, i),
                None => (1.0, 0.0),
            };
            let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
            let kernel = RopeKernel::new(angles.of(source), RopePairs::Half)
                .layout(layout)
                .positions(*positions)
                .rotary_dim(rotary_dim)
                .shared_angles(shared)
                // One head of q each, as their number is odd.
                .heads_per_thread(if shared { 1 } else { 2 })
                .out_of_range(OutOfRange::Identity);
            let tensors = [&q, &k].map(|x| x.tensor(device, dtype, layout));
            let outputs = run(&kernel, &tensors[0], Some(&tensors[1]), false)?;
            for (output, x) in outputs.iter().flatten().zip([&q, &k]) {
                let got = Logical::read(x.dims, layout, &output.view());
                compare(
                    &format!("{name} {source} {layout:?}, {rotary_dim} lanes, shared {shared}"),
                    dtype,
                    &got,
                    &oracle(x, &turn),
                )?;
            }
        }
    }
    // A table with a row for each token: HF's cos and sin of [batch, sequence, head_dim].
    let rows: Vec<f32> = (0..batch * seq * rotary_dim).map(|i| (i as f32).sin()).collect();
    let (cos, sin) = (
        Tensor::from_slice(device, &rows, [batch, seq, rotary_dim])?,
        Tensor::from_slice(device, &rows, [batch, seq, rotary_dim])?,
    );
    let angle = |b: usize, s: usize, i: usize| {
        let value = f64::from(rows[(b * seq + s) * rotary_dim + i]);
        (value, value)
    };
    let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
    let tables = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
    let kernel = RopeKernel::new(tables, RopePairs::Half).rotary_dim(rotary_dim);
    let (output, _) = kernel.run(&q.tensor(device, dtype, RopeLayout::Bshd), None)?;
    let got = Logical::read(q.dims, RopeLayout::Bshd, &output.view());
    compare("a row a token", dtype, &got, &oracle(&q, &turn))?;
    // A table that knows no position.
    let none = Tensor::from_slice::<f32>(device, &[], [0, rotary_dim])?;
    let tables = RopeAngles::Tables { cos: none.view(), sin: none.view() };
    let kernel = RopeKernel::new(tables, RopePairs::Half).rotary_dim(rotary_dim).out_of_range(OutOfRange::Identity);
    let (output, _) = kernel.run(&q.tensor(device, dtype, RopeLayout::Bshd), None)?;
    let turned = Logical::read(q.dims, RopeLayout::Bshd, &output.view()) != q;
    if turned { Err("tokens turned by a table without rows".into()) } else { Ok(()) }
}

/// Three positions a token; each pair takes one: by sections and in turn, from every source.
pub(crate) fn axes(device: &Device, dtype: DType) -> Outcome {
    let (batch, seq) = (2_usize, 5_usize);
    let model = half("axes", 3, 2, 40, 32);
    let angles = Angles::new(device, dtype, 32, 50);
    // Time, height and width of each token; 50 and -1 are in no table.
    let ids: Vec<i64> = (0..3 * batch * seq).map(|i| [3, 49, 0, 50, 17, 8, -1][i % 7]).collect();
    let narrow: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    let (wide, narrow) =
        (Tensor::from_slice(device, &ids, [3, batch, seq])?, Tensor::from_slice(device, &narrow, [3, batch, seq])?);
    let [q, k] = [3, 2].map(|heads| Logical::random([batch, seq, heads, 40], dtype, 31));
    for layout in [MropeLayout::Chunked, MropeLayout::Interleaved] {
        let sections = MropeSections { sections: [6, 5, 5], layout };
        for source in SOURCES {
            for (ids_of, one_row) in [(wide.view(), false), (narrow.view(), false), (wide.view().select(1, 1)?, true)] {
                let angle = |b: usize, s: usize, i: usize| {
                    let axis = match sections.axis(i) {
                        MropeAxis::Time => 0,
                        MropeAxis::Height => 1,
                        MropeAxis::Width => 2,
                    };
                    let b = if one_row { 1 } else { b };
                    angles.at(source, dtype, ids[(axis * batch + b) * seq + s], i)
                };
                let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
                let kernel = RopeKernel::new(angles.of(source), RopePairs::Half)
                    .positions(RopePositions::Axes { ids: ids_of, sections })
                    .rotary_dim(32)
                    .out_of_range(OutOfRange::Identity);
                let tensors = [&q, &k].map(|x| x.tensor(device, dtype, RopeLayout::Bshd));
                let outputs = run(&kernel, &tensors[0], Some(&tensors[1]), false)?;
                for (output, x) in outputs.iter().flatten().zip([&q, &k]) {
                    let got = Logical::read(x.dims, RopeLayout::Bshd, &output.view());
                    compare(&format!("{layout:?} {source}"), dtype, &got, &oracle(x, &turn))?;
                }
            }
        }
    }
    Ok(())
}

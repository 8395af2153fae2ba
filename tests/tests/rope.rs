//! Rotary embedding against an f64 oracle and HF's golden values, on the device of `POINTWISE_DEVICE` (`auto`, `cpu`,
//! `cuda`, `cuda:N`); on a GPU also bit for bit against the CPU.
//!
//! `cargo test -p tests --test rope`; `--ignored` adds what needs tens of GiB of GPU memory.

use std::f64::consts::TAU;

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::rope::FrequencySource;
use pointwise::rope::{
    Frequencies, FrequencyRule, OutOfRange, RopeAngles, RopeConfig, RopeDirection, RopeFrequencies, RopeKernel,
    RopeLayout, RopePairs, RopePositions, RopePrecision, RotatedLanes,
};
use pointwise::{DType, Device, Strategy, Stream, Tensor, TensorView, TensorViewMut, bf16, f16};
use serde_json::Value;
use tests::inputs::Random;

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let name = std::env::var("POINTWISE_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let device = Device::parse(&name).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let mut trials = Vec::new();
    for model in MODELS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let run = move || every_way(&device, model, dtype);
            trials.push(Trial::test(format!("models::{}::{dtype}", model.name), run));
        }
    }
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        trials.push(Trial::test(format!("strides::{dtype}"), move || strides(&device, dtype)));
        trials.push(Trial::test(format!("positions::{dtype}"), move || positions(&device, dtype)));
        trials.push(Trial::test(format!("large::{dtype}"), move || large(&device, dtype)));
    }
    let mut add = |name: &str, run: fn(&Device) -> Outcome| {
        trials.push(Trial::test(name, move || run(&device)));
    };
    add("golden_outputs", golden_outputs);
    add("source_designs", source_designs);
    add("there_and_back", there_and_back);
    add("folded_softmax_scale", folded_softmax_scale);
    add("users_rule", users_rule);
    add("mistakes", mistakes);
    if device.is_cuda() {
        add("graph_capture", graph_capture);
        trials.push(Trial::test("beyond_2_to_31", move || beyond_31_bits(&device)).with_ignored_flag(true));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Heads and lanes of a model.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    heads: [usize; 2],
    head_dim: usize,
    rotary_dim: usize,
    lanes: RotatedLanes,
    pairs: RopePairs,
}

const fn half(name: &'static str, q: usize, k: usize, head_dim: usize, rotary_dim: usize) -> Model {
    Model { name, heads: [q, k], head_dim, rotary_dim, lanes: RotatedLanes::Lead, pairs: RopePairs::Half }
}

const fn interleaved(name: &'static str, q: usize, k: usize, head_dim: usize, rotary_dim: usize) -> Model {
    Model { pairs: RopePairs::Interleaved, ..half(name, q, k, head_dim, rotary_dim) }
}

/// The models' dimensions, and odd ones.
const MODELS: &[Model] = &[
    half("llama_8b", 32, 8, 128, 128),
    half("qwen25_7b", 28, 4, 128, 128),
    half("gpt_oss", 64, 8, 64, 64),
    half("falcon_7b", 71, 1, 64, 64),
    half("phi_35", 32, 32, 96, 96),
    half("phi_2", 32, 32, 80, 32),
    half("gpt_neox_20b", 8, 8, 96, 24),
    half("stablelm_3b", 8, 8, 80, 20),
    half("gemma_3", 8, 4, 256, 256),
    half("gemma_4", 8, 4, 512, 512),
    half("mimo", 5, 3, 192, 64),
    half("vit_72", 3, 1, 72, 72),
    half("q_alone", 14, 0, 128, 128),
    half("two_lanes", 3, 2, 2, 2),
    half("odd_head", 3, 2, 7, 4),
    interleaved("gpt_j", 16, 16, 256, 64),
    interleaved("glm_4", 32, 2, 128, 64),
    interleaved("six_of_ten", 3, 1, 10, 6),
    Model { lanes: RotatedLanes::Trail, ..interleaved("deepseek_v3", 128, 1, 192, 64) },
    Model { lanes: RotatedLanes::Trail, ..half("trail_half", 4, 2, 128, 64) },
    Model { pairs: RopePairs::InterleavedToHalf, ..half("deepseek_to_half", 16, 1, 64, 64) },
    Model { pairs: RopePairs::InterleavedToHalf, lanes: RotatedLanes::Trail, ..half("to_half_trail", 3, 1, 48, 20) },
];

/// What a tensor holds, by batch, token, head and lane, whatever its layout.
#[derive(Clone, PartialEq)]
struct Logical {
    dims: [usize; 4],
    values: Vec<f64>,
}

impl Logical {
    fn at(&self, [b, s, h, d]: [usize; 4]) -> usize {
        ((b * self.dims[1] + s) * self.dims[2] + h) * self.dims[3] + d
    }

    /// Values of a type between -4 and 4.
    fn random(dims: [usize; 4], dtype: DType, seed: u64) -> Logical {
        let mut random = Random(seed);
        let count = dims.iter().product();
        let values = (0..count).map(|_| rounded(dtype, (random.next_u64() >> 40) as f64 / (1 << 21) as f64 - 4.0));
        Logical { dims, values: values.collect() }
    }

    /// The tensor of a layout.
    fn tensor(&self, device: &Device, dtype: DType, layout: RopeLayout) -> Tensor {
        let [b, s, h, d] = self.dims;
        let shape: Vec<usize> = match layout {
            RopeLayout::Bshd => vec![b, s, h, d],
            RopeLayout::Bhsd => vec![b, h, s, d],
            RopeLayout::Sbhd => vec![s, b, h, d],
            RopeLayout::Thd => vec![b * s, h, d],
            RopeLayout::Sd => vec![b * s, d],
        };
        let mut bytes = vec![0; self.values.len() * dtype.size()];
        for (from, to) in self.order(layout).into_iter().enumerate() {
            encode(dtype, self.values[to], &mut bytes[from * dtype.size()..][..dtype.size()]);
        }
        Tensor::from_bytes(device, dtype, &bytes, &shape[..]).unwrap()
    }

    /// The logical index of each element of a tensor of a layout.
    fn order(&self, layout: RopeLayout) -> Vec<usize> {
        let [b, s, h, d] = self.dims;
        let mut order = Vec::with_capacity(self.values.len());
        let mut push = |b, s, h| order.extend((0..d).map(|d| self.at([b, s, h, d])));
        match layout {
            RopeLayout::Bhsd => each([b, h, s], |b, h, s| push(b, s, h)),
            RopeLayout::Sbhd => each([s, b, h], |s, b, h| push(b, s, h)),
            _ => each([b, s, h], push),
        }
        order
    }

    /// What a tensor of a layout holds.
    fn read(dims: [usize; 4], layout: RopeLayout, view: &TensorView<'_>) -> Logical {
        let bytes = view.to_bytes().unwrap();
        let mut logical = Logical { dims, values: vec![0.0; dims.iter().product()] };
        let size = view.dtype().size();
        for (from, to) in logical.order(layout).into_iter().enumerate() {
            logical.values[to] = decode(view.dtype(), &bytes[from * size..][..size]);
        }
        logical
    }
}

fn each([a, b, c]: [usize; 3], mut visit: impl FnMut(usize, usize, usize)) {
    for i in 0..a {
        for j in 0..b {
            for k in 0..c {
                visit(i, j, k);
            }
        }
    }
}

fn encode(dtype: DType, value: f64, to: &mut [u8]) {
    match dtype {
        DType::F32 => to.copy_from_slice(&(value as f32).to_le_bytes()),
        DType::F16 => to.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        _ => to.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        DType::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        _ => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
    }
}

fn rounded(dtype: DType, value: f64) -> f64 {
    let mut bytes = [0; 4];
    encode(dtype, value, &mut bytes[..dtype.size()]);
    decode(dtype, &bytes[..dtype.size()])
}

/// Half a unit in the last place, relative.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 2.0_f64.powi(-24),
        DType::F16 => 2.0_f64.powi(-11),
        _ => 2.0_f64.powi(-8),
    }
}

/// The oracle's settings: cosine and sine of each batch entry, token and pair in f64, and what is done with them.
struct Turn<'a> {
    model: Model,
    angle: &'a dyn Fn(usize, usize, usize) -> (f64, f64),
    backward: bool,
    scale: f64,
    factor: f64,
}

/// What comes out, in f64, and the size of what was summed: the measure of rounding errors.
fn oracle(x: &Logical, turn: &Turn<'_>) -> (Logical, Vec<f64>) {
    let (model, rot) = (turn.model, turn.model.rotary_dim);
    let base = if model.lanes == RotatedLanes::Trail { model.head_dim - rot } else { 0 };
    let of_half = |i: usize| (base + i, base + i + rot / 2);
    let of_neighbours = |i: usize| (base + 2 * i, base + 2 * i + 1);
    let mut y = x.clone();
    y.values.iter_mut().for_each(|value| *value *= turn.scale);
    let mut size: Vec<f64> = y.values.iter().map(|value| value.abs()).collect();
    let [b, s, h, _] = x.dims;
    for i in 0..rot / 2 {
        let ((from1, from2), (to1, to2)) = match (model.pairs, turn.backward) {
            (RopePairs::Half, _) => (of_half(i), of_half(i)),
            (RopePairs::Interleaved, _) => (of_neighbours(i), of_neighbours(i)),
            (RopePairs::InterleavedToHalf, false) => (of_neighbours(i), of_half(i)),
            (RopePairs::InterleavedToHalf, true) => (of_half(i), of_neighbours(i)),
        };
        for b in 0..b {
            for s in 0..s {
                let (cos, sin) = (turn.angle)(b, s, i);
                let scale = turn.scale * turn.factor;
                let (cos, sin) = (cos * scale, if turn.backward { -sin } else { sin } * scale);
                for h in 0..h {
                    let (x1, x2) = (x.values[x.at([b, s, h, from1])], x.values[x.at([b, s, h, from2])]);
                    let (at1, at2) = (x.at([b, s, h, to1]), x.at([b, s, h, to2]));
                    y.values[at1] = x1 * cos - x2 * sin;
                    y.values[at2] = x2 * cos + x1 * sin;
                    let sum = (x1.abs() + x2.abs()) * scale.abs();
                    (size[at1], size[at2]) = (sum, sum);
                }
            }
        }
    }
    (y, size)
}

fn compare(what: &str, dtype: DType, got: &Logical, expected: &(Logical, Vec<f64>)) -> Outcome {
    let (expected, size) = expected;
    for (i, ((got, expected), size)) in got.values.iter().zip(&expected.values).zip(size).enumerate() {
        // The sine's 2 ULP and the rounded products, then one rounding.
        let allowed = expected.abs() * rounding(dtype) * 1.01 + size * 4e-7 + 1e-7 * f64::from(dtype == DType::F16);
        // A NaN is not right.
        let right = (got - expected).abs() <= allowed;
        if !right {
            return Err(format!("{what}: element {i} is {got}, not {expected} (allowed: {allowed:e})").into());
        }
    }
    Ok(())
}

/// Tables and frequencies of one case, on the device and for the oracle.
struct Angles {
    frequencies: Frequencies,
    on_device: RopeFrequencies,
    rows: usize,
    raw: Tensor,
    cos: Tensor,
    sin: Tensor,
    own_cos: Tensor,
    own_sin: Tensor,
}

const SOURCES: [&str; 5] = ["hf", "exact", "raw", "tables", "own_tables"];

impl Angles {
    fn new(device: &Device, dtype: DType, rotary_dim: usize, rows: usize) -> Angles {
        let config = RopeConfig::default_rope(rotary_dim, 10_000.0);
        let frequencies = config.frequencies(0).unwrap();
        let positions: Vec<i64> = (0..rows as i64).collect();
        let (cos, sin) = frequencies.cos_sin(&positions, RopePrecision::Hf);
        let raw: Vec<f32> =
            positions.iter().flat_map(|p| frequencies.inv_freq.iter().map(move |inv| *p as f32 * inv)).collect();
        let shape = [rows, rotary_dim / 2];
        let own = |table: &[f32]| {
            let mut bytes = vec![0; table.len() * dtype.size()];
            for (value, to) in table.iter().zip(bytes.chunks_exact_mut(dtype.size())) {
                encode(dtype, f64::from(*value), to);
            }
            Tensor::from_bytes(device, dtype, &bytes, shape).unwrap()
        };
        Angles {
            on_device: RopeFrequencies::new(device, &frequencies).unwrap(),
            raw: Tensor::from_slice(device, &raw, shape).unwrap(),
            own_cos: own(&cos),
            own_sin: own(&sin),
            cos: Tensor::from_slice(device, &cos, shape).unwrap(),
            sin: Tensor::from_slice(device, &sin, shape).unwrap(),
            rows,
            frequencies,
        }
    }

    fn of(&self, source: &str) -> RopeAngles<'_> {
        match source {
            "hf" => RopeAngles::Frequencies(&self.on_device, RopePrecision::Hf),
            "exact" => RopeAngles::Frequencies(&self.on_device, RopePrecision::Exact),
            "raw" => RopeAngles::Raw(self.raw.view()),
            "tables" => RopeAngles::Tables { cos: self.cos.view(), sin: self.sin.view() },
            _ => RopeAngles::Tables { cos: self.own_cos.view(), sin: self.own_sin.view() },
        }
    }

    /// Cosine and sine of a position in f64; not turned where a table ends.
    fn at(&self, source: &str, dtype: DType, position: i64, pair: usize) -> (f64, f64) {
        let turned = |angle: f64| (angle.cos(), angle.sin());
        let known = (0..self.rows as i64).contains(&position);
        let product = f64::from(position as f32 * self.frequencies.inv_freq[pair]);
        match source {
            "hf" => turned(product),
            "exact" => {
                let turns = (position as u64).wrapping_mul(self.frequencies.turns[pair]);
                turned(turns as i64 as f64 / 2.0_f64.powi(64) * TAU)
            }
            _ if !known => (1.0, 0.0),
            "raw" => turned(product),
            "tables" => {
                let (cos, sin) = turned(product);
                (rounded(DType::F32, cos), rounded(DType::F32, sin))
            }
            _ => {
                let (cos, sin) = self.frequencies.cos_sin(&[position], RopePrecision::Hf);
                (rounded(dtype, f64::from(cos[pair])), rounded(dtype, f64::from(sin[pair])))
            }
        }
    }
}

/// Runs the kernel on tensors of a layout, in place or not.
fn run(
    kernel: &RopeKernel<'_>,
    q: &Tensor,
    k: Option<&Tensor>,
    inplace: bool,
) -> pointwise::Result<[Option<Tensor>; 2]> {
    if inplace {
        let mut q = q.try_clone()?;
        let mut k = k.map(Tensor::try_clone).transpose()?;
        kernel.run_inplace(&mut q, k.as_mut().map(Tensor::view_mut))?;
        return Ok([Some(q), k]);
    }
    let (q, k) = kernel.run(q, k.map(Tensor::view))?;
    Ok([Some(q), k])
}

/// One model in every layout, by every source of angles and access width, both ways, in place and not.
fn every_way(device: &Device, model: &Model, dtype: DType) -> Outcome {
    let (batch, seq) = (2, 5);
    let [q_heads, k_heads] = model.heads;
    let q = Logical::random([batch, seq, q_heads, model.head_dim], dtype, 1);
    let k = Logical::random([batch, seq, k_heads, model.head_dim], dtype, 2);
    let angles = Angles::new(device, dtype, model.rotary_dim, 64);
    let strategies: &[Strategy] = match device.is_cuda() {
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
                for inplace in [false, true] {
                    if inplace && model.pairs == RopePairs::InterleavedToHalf {
                        continue;
                    }
                    round += 1;
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
                            .heads_per_thread([1, 4, 7][round % 3])
                    };
                    let what = format!("{source} {layout:?} backward {backward} in place {inplace} {strategy}");
                    let tensor = |x: &Logical, device: &Device| x.tensor(device, dtype, layout);
                    let (q_in, k_in) = (tensor(&q, device), (k_heads > 0).then(|| tensor(&k, device)));
                    let outputs = run(&kernel(angles.of(source)), &q_in, k_in.as_ref(), inplace)?;
                    for ((output, expected), dims) in outputs.iter().zip(&expected).zip([q.dims, k.dims]) {
                        if let Some(output) = output {
                            let got = Logical::read(dims, layout, &output.view());
                            compare(&what, dtype, &got, expected)?;
                        }
                    }
                    if device.is_cuda() {
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

fn same_bits(what: &str, a: &[Option<Tensor>], b: &[Option<Tensor>]) -> Outcome {
    for (a, b) in a.iter().zip(b) {
        if let (Some(a), Some(b)) = (a, b) {
            let (a_bytes, b_bytes) = (a.to_bytes()?, b.to_bytes()?);
            if let Some(at) = a_bytes.iter().zip(&b_bytes).position(|(a, b)| a != b) {
                return Err(format!("{what}: byte {at} differs from the CPU's").into());
            }
        }
    }
    Ok(())
}

/// Views of packed buffers, in place and not, at alignments good and bad; what lies around is left alone.
fn strides(device: &Device, dtype: DType) -> Outcome {
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
        for inplace in [true, false] {
            let mut packed = buffer.tensor(device, dtype, RopeLayout::Sd);
            let mut target = Tensor::zeros(device, dtype, [tokens, row])?;
            let kernel = RopeKernel::new(angles.of("hf"), RopePairs::Half).layout(RopeLayout::Thd);
            let places = [(0, heads[0]), (heads[0], heads[1])];
            let into = if inplace { packed.as_mut_ptr() } else { target.as_mut_ptr() };
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

/// Every way to give positions, near and far, by every source.
fn positions(device: &Device, dtype: DType) -> Outcome {
    let (batch, seq) = (3_usize, 6_usize);
    let model = half("positions", 3, 2, 32, 16);
    let angles = Angles::new(device, dtype, 16, 50);
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
    for (name, positions, place) in &given {
        for source in SOURCES {
            let sequences = name.starts_with("sequences");
            let layout = if sequences { RopeLayout::Thd } else { RopeLayout::Bhsd };
            let angle = |b: usize, s: usize, i: usize| match place(b, s) {
                Some(position) => angles.at(source, dtype, position, i),
                None => (1.0, 0.0),
            };
            let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
            let kernel = RopeKernel::new(angles.of(source), RopePairs::Half)
                .layout(layout)
                .positions(*positions)
                .rotary_dim(16)
                .out_of_range(OutOfRange::Identity);
            let tensors = [&q, &k].map(|x| x.tensor(device, dtype, layout));
            let outputs = run(&kernel, &tensors[0], Some(&tensors[1]), false)?;
            for (output, x) in outputs.iter().flatten().zip([&q, &k]) {
                let got = Logical::read(x.dims, layout, &output.view());
                compare(&format!("{name} {source}"), dtype, &got, &oracle(x, &turn))?;
            }
        }
    }
    // A table with a row for each token: HF's cos and sin of [batch, sequence, head_dim].
    let rows: Vec<f32> = (0..batch * seq * 16).map(|i| (i as f32).sin()).collect();
    let (cos, sin) =
        (Tensor::from_slice(device, &rows, [batch, seq, 16])?, Tensor::from_slice(device, &rows, [batch, seq, 16])?);
    let angle = |b: usize, s: usize, i: usize| {
        let value = f64::from(rows[(b * seq + s) * 16 + i]);
        (value, value)
    };
    let turn = Turn { model, angle: &angle, backward: false, scale: 1.0, factor: 1.0 };
    let tables = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
    let kernel = RopeKernel::new(tables, RopePairs::Half).rotary_dim(16);
    let (output, _) = kernel.run(&q.tensor(device, dtype, RopeLayout::Bshd), None)?;
    let got = Logical::read(q.dims, RopeLayout::Bshd, &output.view());
    compare("a row a token", dtype, &got, &oracle(&q, &turn))
}

/// A prefill of a real size: every element against the CPU's bits, on a GPU; on the CPU, parallel against token by
/// token.
fn large(device: &Device, dtype: DType) -> Outcome {
    let (seq, q_heads, k_heads, head_dim) = (1100, 9, 2, 128);
    let q = Logical::random([1, seq, q_heads, head_dim], dtype, 5);
    let k = Logical::random([1, seq, k_heads, head_dim], dtype, 6);
    for source in SOURCES {
        for layout in [RopeLayout::Bshd, RopeLayout::Bhsd] {
            let at = |device: &Device| -> Result<_, Failed> {
                let angles = Angles::new(device, dtype, head_dim, seq);
                let kernel = RopeKernel::new(angles.of(source), RopePairs::Half).layout(layout);
                let tensors = [&q, &k].map(|x| x.tensor(device, dtype, layout));
                Ok(run(&kernel, &tensors[0], Some(&tensors[1]), false)?)
            };
            let whole = at(device)?;
            if device.is_cuda() {
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

fn floats(hex: &Value) -> Vec<f32> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 8).map(|i| f32::from_bits(u32::from_str_radix(&hex[8 * i..8 * i + 8], 16).unwrap())).collect()
}

/// HF's own `apply_rotary_pos_emb` of six models.
fn golden_outputs(device: &Device) -> Outcome {
    let golden: Value = serde_json::from_str(include_str!("../golden/rope_apply.json")).unwrap();
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
                    if (our - their).abs() > allowed {
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
fn source_designs(device: &Device) -> Outcome {
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

/// Forward, then backward, gives the input back.
fn there_and_back(device: &Device) -> Outcome {
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
fn folded_softmax_scale(device: &Device) -> Outcome {
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
                if (got - expected).abs() > 2e-5 {
                    return Err(format!("fold ({on_q}, {on_k}, {attention}): {name} is {got}, not {expected}").into());
                }
            }
        }
    }
    Ok(())
}

/// A rule of one's own runs in the same kernel.
fn users_rule(device: &Device) -> Outcome {
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

/// What is refused, and in which words.
fn mistakes(device: &Device) -> Outcome {
    let q = Tensor::zeros(device, DType::F32, [2, 6, 4, 32])?;
    let k = Tensor::zeros(device, DType::F32, [2, 6, 1, 32])?;
    let angles = Angles::new(device, DType::F32, 16, 6);
    let kernel = || RopeKernel::new(angles.of("tables"), RopePairs::Half);
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
    refused("rank", kernel().run(&k.try_clone()?.reshape([12, 32])?, None), "[batch, sequence, heads, head_dim]")?;
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
    refused("sequences", kernel().positions(sequences).run(&q, None), "thd")?;
    refused("threads", kernel().threads(33).run(&q, None), "threads")?;
    refused("scale", kernel().output_scale(f32::NAN, 1.0).run(&q, None), "output_scale")?;
    refused("transposed", kernel().run(q.view().transpose(2, 3)?, None), "last dimension")?;
    let ids = Tensor::from_slice(device, &[0_i32, 1, 2, 3, 4, 9], [6])?;
    let by_ids = kernel().positions(RopePositions::Ids(ids.view()));
    if device.is_cpu() {
        refused("an id", by_ids.clone().run(&q, None), "rows 0 to 5")?;
    }
    by_ids.out_of_range(OutOfRange::Identity).run(&q, None)?;
    let mut moved = q.try_clone()?;
    let to_half = RopeKernel::new(angles.of("hf"), RopePairs::InterleavedToHalf);
    let result = to_half.run_inplace(&mut moved, None);
    refused("in place", result.map(|()| (moved, None)), "in place")?;
    let mut target = q.try_clone()?;
    let result = kernel().run_into(&q, Some(k.view()), &mut target, None);
    refused("an output", result.map(|()| (target, None)), "give both")?;
    // Nothing to do is no mistake.
    let none = Tensor::zeros(device, DType::F32, [2, 0, 4, 32])?;
    kernel().run(&none, None)?;
    Ok(())
}

fn graph_capture(device: &Device) -> Outcome {
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
    stream.begin_capture()?;
    kernel.run_into(&q, None, &mut y, None)?;
    let graph = stream.end_capture()?;
    // SAFETY: q, y and the frequencies live on, and nothing else uses them before the stream is done.
    unsafe { graph.launch(&stream)? };
    stream.synchronize()?;
    if y.to_bytes()? == expected { Ok(()) } else { Err("the graph's result differs".into()) }
}

/// More elements than 31 bits can count, and more tokens than a grid's y axis has.
fn beyond_31_bits(device: &Device) -> Outcome {
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

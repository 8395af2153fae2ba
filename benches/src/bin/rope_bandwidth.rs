//! Rotary embedding of models' q and k, beside a copy of the same bytes:
//! `rope [--model NAME]... [--tokens N]... [--dtype NAME]... [--all] [--json FILE]`.
//!
//! Bytes are 2 (q + k), read and written. Times are medians of events around single launches; with few tokens the data
//! stays in the level-2 cache, for the copy as for the kernel. `--all` adds layouts, directions, table sources and in
//! place to the forward BSHD pass. The share is the copy's time over the kernel's.

use benches::{median, random, times};
use pointwise::rope::{
    RopeAngles, RopeConfig, RopeDirection, RopeFrequencies, RopeKernel, RopeLayout, RopePairs, RopePrecision,
    RotatedLanes,
};
use pointwise::{DType, Device, Tensor, TensorViewMut};
use serde_json::json;

/// Heads of q and k, lanes, lanes that rotate.
struct Model {
    name: &'static str,
    q: usize,
    k: usize,
    head_dim: usize,
    rotary_dim: usize,
    pairs: RopePairs,
    lanes: RotatedLanes,
}

const fn model(name: &'static str, q: usize, k: usize, head_dim: usize) -> Model {
    let (pairs, lanes) = (RopePairs::Half, RotatedLanes::Lead);
    Model { name, q, k, head_dim, rotary_dim: head_dim, pairs, lanes }
}

const MODELS: &[Model] = &[
    model("llama-8b", 32, 8, 128),
    model("llama-70b", 64, 8, 128),
    model("phi-3.5", 32, 32, 96),
    Model {
        rotary_dim: 64,
        pairs: RopePairs::Interleaved,
        lanes: RotatedLanes::Trail,
        ..model("deepseek-v3", 128, 128, 192)
    },
    Model { rotary_dim: 64, pairs: RopePairs::Interleaved, ..model("gpt-j", 16, 16, 256) },
    model("gpt-oss", 64, 8, 64),
    // The shapes of workloads.csv: one tensor.
    model("rows-64", 1, 0, 64),
    model("rows-128", 1, 0, 128),
    model("heads-32", 32, 0, 128),
];

/// One way to run the kernel.
#[derive(Clone, Copy)]
struct Way {
    source: &'static str,
    layout: RopeLayout,
    direction: RopeDirection,
    inplace: bool,
}

const PLAIN: Way = Way { source: "hf", layout: RopeLayout::Bshd, direction: RopeDirection::Forward, inplace: false };

fn ways(all: bool) -> Vec<Way> {
    let mut ways = vec![PLAIN];
    if all {
        ways.extend(["exact", "angles", "tables", "own_tables"].map(|source| Way { source, ..PLAIN }));
        ways.extend([RopeLayout::Bhsd, RopeLayout::Thd].map(|layout| Way { layout, ..PLAIN }));
        ways.push(Way { layout: RopeLayout::Bhsd, source: "tables", ..PLAIN });
        ways.push(Way { direction: RopeDirection::Backward, ..PLAIN });
        ways.push(Way { inplace: true, ..PLAIN });
        ways.push(Way { inplace: true, layout: RopeLayout::Bhsd, ..PLAIN });
    }
    ways
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut names, mut tokens, mut dtypes, mut all, mut file) = (Vec::new(), Vec::new(), Vec::new(), false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--model" => names.extend(arguments.next()),
            "--tokens" => tokens.push(arguments.next().ok_or("--tokens needs a number")?.parse::<usize>()?),
            "--dtype" => dtypes.extend(arguments.next()),
            "--all" => all = true,
            "--json" => file = arguments.next(),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    if tokens.is_empty() {
        tokens = vec![1, 16, 512, 4096, 8192, 32_768];
    }
    let device = Device::cuda(0)?;
    let info = device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}", info.name, info.driver.0, info.driver.1);
    let mut rows = Vec::new();
    for model in MODELS.iter().filter(|model| names.is_empty() || names.iter().any(|name| name == model.name)) {
        for &tokens in &tokens {
            for dtype in [DType::BF16, DType::F16, DType::F32] {
                if !dtypes.is_empty() && !dtypes.iter().any(|name| name == dtype.name()) {
                    continue;
                }
                for way in ways(all) {
                    let (kernel, copy) = measure(&device, model, tokens, dtype, way)?;
                    let bytes = 2 * tokens * (model.q + model.k) * model.head_dim * dtype.size();
                    let rate = |ms: f64| bytes as f64 / ms / 1e6;
                    let (layout, direction) = (format!("{:?}", way.layout), format!("{:?}", way.direction));
                    println!(
                        "{:12} {tokens:6} {dtype:4} {:10} {layout:4} {direction:8} {:8} {:9.2} us {:7.1} GB/s  {:.3} of \
                         the copy's {:.2} us",
                        model.name,
                        way.source,
                        if way.inplace { "in place" } else { "out" },
                        kernel * 1e3,
                        rate(kernel),
                        copy / kernel,
                        copy * 1e3,
                    );
                    rows.push(json!({
                        "model": model.name, "tokens": tokens, "dtype": dtype.name(), "source": way.source,
                        "layout": layout, "direction": direction, "in_place": way.inplace, "us": kernel * 1e3,
                        "copy_us": copy * 1e3, "gb_per_s": rate(kernel), "share": copy / kernel,
                    }));
                }
            }
        }
    }
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_string_pretty(&json!({ "device": info.name, "rows": rows }))?)?;
    }
    Ok(())
}

/// Milliseconds of the kernel, and of a copy of q and k.
fn measure(device: &Device, model: &Model, tokens: usize, dtype: DType, way: Way) -> pointwise::Result<(f64, f64)> {
    let shape = |heads: usize| match way.layout {
        RopeLayout::Bhsd => vec![1, heads, tokens, model.head_dim],
        RopeLayout::Thd => vec![tokens, heads, model.head_dim],
        _ => vec![1, tokens, heads, model.head_dim],
    };
    let tensor = |heads: usize| -> pointwise::Result<Tensor> {
        random(device, dtype, tokens * heads * model.head_dim)?.reshape(&shape(heads)[..])
    };
    let mut q = tensor(model.q)?;
    let mut k = if model.k > 0 { Some(tensor(model.k)?) } else { None };
    let mut q_out = Tensor::empty(device, dtype, &shape(model.q)[..])?;
    let mut k_out = if model.k > 0 { Some(Tensor::empty(device, dtype, &shape(model.k)[..])?) } else { None };

    let frequencies = RopeConfig::default_rope(model.rotary_dim, 500_000.0).frequencies(0)?;
    let on_device = RopeFrequencies::new(device, &frequencies)?;
    let pairs = model.rotary_dim / 2;
    let table = |dtype: DType| random(device, dtype, tokens * pairs)?.reshape([tokens, pairs]);
    let (cos, sin) = (table(DType::F32)?, table(DType::F32)?);
    let (own_cos, own_sin) = (table(dtype)?, table(dtype)?);
    let angles = match way.source {
        "hf" => RopeAngles::Frequencies(&on_device, RopePrecision::Hf),
        "exact" => RopeAngles::Frequencies(&on_device, RopePrecision::Exact),
        "angles" => RopeAngles::Raw(cos.view()),
        "tables" => RopeAngles::Tables { cos: cos.view(), sin: sin.view() },
        _ => RopeAngles::Tables { cos: own_cos.view(), sin: own_sin.view() },
    };
    let kernel = RopeKernel::new(angles, model.pairs)
        .layout(way.layout)
        .rotary_dim(model.rotary_dim)
        .rotated_lanes(model.lanes)
        .direction(way.direction);
    let ours = median(times(device, 3, 21, || {
        if way.inplace {
            kernel.run_inplace(&mut q, k.as_mut().map(TensorViewMut::from))
        } else {
            kernel.run_into(&q, k.as_ref().map(Tensor::view), &mut q_out, k_out.as_mut().map(TensorViewMut::from))
        }
    })?);
    // One copy of as many bytes.
    let n = tokens * (model.q + model.k) * model.head_dim;
    let from = random(device, dtype, n)?;
    let mut to = Tensor::empty(device, dtype, [n])?;
    let copy = median(times(device, 3, 21, || to.copy_from(&from))?);
    Ok((ours, copy))
}

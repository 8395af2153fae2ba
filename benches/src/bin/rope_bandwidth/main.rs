//! Rotary embedding of models' q and k, beside a copy of the same bytes and an empty launch:
//!
//!     rope_bandwidth [--model NAME]... [--tokens N]... [--dtype NAME]... [--source NAME]... [--lines] [--json FILE]
//!     rope_bandwidth --sweep [--source NAME]... [--json FILE]
//!
//! The first tries every layout, direction, in place and not, by every source of angles, and the reference workloads;
//! `--lines` prints each way, not the plain and the slowest alone. `--sweep` tries ways to launch on shapes of each
//! kind: angles shared by a block or not, the width of accesses, threads, heads a thread.
//!
//! Bytes are 2 (q + k), read and written. Times are medians of events around single launches, cold (the level-2 cache
//! overwritten before each) and warm, on the device alone: it is kept busy while the host queues. The share is the
//! copy's time over the kernel's. The copy goes from buffer to buffer, also where the kernel works in place.

mod cases;
mod timing;

use cases::{COMMON, DTYPES, MODELS, Model, TOKENS, WORKLOADS, Way, Workload};
use pointwise::rope::{
    RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopeLayout, RopePositions, RopePrecision, RotatedLanes,
};
use pointwise::{DType, Strategy, Tensor, TensorView, TensorViewMut};
use serde_json::{Value, json};
use timing::{Bench, Times};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let (mut names, mut tokens, mut dtypes, mut sources) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut lines, mut sweeps, mut file) = (false, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--model" => names.push(value()?),
            "--tokens" => tokens.push(value()?.parse::<usize>()?),
            "--dtype" => dtypes.push(value()?),
            "--source" => sources.push(value()?),
            "--lines" => lines = true,
            "--sweep" => sweeps = true,
            "--json" => file = Some(value()?),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let tokens = if tokens.is_empty() { TOKENS.to_vec() } else { tokens };
    let known = ["hf", "exact", "angles", "tables", "own_tables", "hf_tables"];
    let sources: Vec<&str> = match sources.is_empty() {
        true if sweeps => known.to_vec(),
        true => vec!["hf", "tables", "angles"],
        false => known.into_iter().filter(|known| sources.iter().any(|source| source == known)).collect(),
    };
    let models: Vec<Model> = match names.is_empty() {
        true => MODELS[..COMMON].to_vec(),
        false => MODELS.iter().filter(|model| names.iter().any(|name| name == model.name)).copied().collect(),
    };
    let dtypes: Vec<DType> = DTYPES
        .iter()
        .filter(|dtype| dtypes.is_empty() || dtypes.iter().any(|name| name == dtype.name()))
        .copied()
        .collect();

    let most = tokens.iter().copied().max().unwrap_or(1);
    let bytes = models.iter().map(|model| 4 * model.elements(most)).max().unwrap_or(0);
    let bench =
        if sweeps { Bench::new(2 << 30, 32_768 * 128)? } else { Bench::new(bytes.max(1 << 28), most.max(8192) * 128)? };
    let info = bench.device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}", info.name, info.driver.0, info.driver.1);
    let empty = bench.launch()?;
    println!("# an empty launch: cold {:.2} us, warm {:.2} us", empty.cold, empty.warm);
    let rows = if sweeps {
        sweep(&bench, &sources)?
    } else {
        let mut rows = Vec::new();
        for model in &models {
            for &tokens in &tokens {
                for &dtype in &dtypes {
                    rows.extend(every_way(&bench, model, tokens, dtype, &sources, lines, empty)?);
                }
            }
        }
        if names.is_empty() {
            rows.extend(workloads(&bench, empty)?);
        }
        rows
    };
    if let Some(file) = file {
        let all = json!({
            "device": info.name, "empty_cold_us": empty.cold, "empty_warm_us": empty.warm, "rows": rows,
        });
        pointwise_cli::draft::replace(file.as_ref(), serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

/// Every way of the sources on one shape: a row each, and what is worth a line.
fn every_way(
    bench: &Bench,
    model: &Model,
    tokens: usize,
    dtype: DType,
    sources: &[&'static str],
    lines: bool,
    empty: Times,
) -> Outcome<Vec<Value>> {
    let bytes = model.elements(tokens) * dtype.size();
    let copy = bench.copy(bytes)?;
    let mut measured = Vec::new();
    for way in Way::all(sources) {
        measured.push((way, measure(bench, model, tokens, dtype, way, None)?));
    }
    let head = format!("{:11} {tokens:6} {dtype:4}", model.name);
    let line = |what: &str, name: &str, time: Times| {
        let rate = 2.0 * bytes as f64 / time.cold / 1e3;
        let shares = format!("{:.3} cold {:.3} warm of the copy", copy.cold / time.cold, copy.warm / time.warm);
        let over = format!("{:.2} {:.2} of an empty launch", time.cold / empty.cold, time.warm / empty.warm);
        let us = format!("{:8.2} us cold {:8.2} warm {rate:6.0} GB/s", time.cold, time.warm);
        println!("{head} {what:7} {name:30} {us}  {}", if tokens < 128 { over } else { shares });
    };
    if lines {
        measured.iter().for_each(|(way, time)| line("", &way.name(), *time));
    } else {
        measured.iter().take(1).for_each(|(way, time)| line("plain", &way.name(), *time));
        let slowest = measured.iter().max_by(|a, b| a.1.cold.total_cmp(&b.1.cold));
        slowest.iter().for_each(|(way, time)| line("slowest", &way.name(), *time));
    }
    let rows = measured.into_iter().map(|(way, time)| {
        json!({
            "model": model.name, "tokens": tokens, "dtype": dtype.name(), "way": way.name(),
            "cold_us": time.cold, "warm_us": time.warm, "copy_cold_us": copy.cold, "copy_warm_us": copy.warm,
        })
    });
    Ok(rows.collect())
}

/// The launch settings of a kernel; [`RopeKernel::shared_angles`] and so on.
#[derive(Clone, Copy)]
struct Setting {
    shared: bool,
    strategy: Strategy,
    threads: u32,
    heads: u32,
}

impl Setting {
    fn name(&self) -> String {
        let Setting { shared, strategy, threads, heads } = self;
        format!("{} {strategy} {threads} threads {heads} heads", if *shared { "per_block" } else { "per_thread" })
    }
}

/// Times one way, launched by its defaults or as asked.
fn measure(
    bench: &Bench,
    model: &Model,
    tokens: usize,
    dtype: DType,
    way: Way,
    setting: Option<Setting>,
) -> Outcome<Times> {
    let frequencies = RopeConfig::default_rope(model.rotary_dim, 500_000.0).frequencies(0)?;
    let on_device = RopeFrequencies::new(&bench.device, &frequencies)?;
    let pairs = model.rotary_dim / 2;
    let table = |i: usize, dtype: DType| view(bench, &bench.tables[i], 0, dtype, &[tokens, pairs]);
    let angles = match way.source {
        "hf" => RopeAngles::Frequencies(&on_device, RopePrecision::Hf),
        "exact" => RopeAngles::Frequencies(&on_device, RopePrecision::Exact),
        "angles" => RopeAngles::Raw(table(0, DType::F32)?),
        "tables" => RopeAngles::Tables { cos: table(0, DType::F32)?, sin: table(1, DType::F32)? },
        // Tables like HF's: as wide as the rotated lanes; half the width is needed.
        "hf_tables" => {
            let table = |i: usize| view(bench, &bench.tables[i], 0, dtype, &[tokens, model.rotary_dim]);
            RopeAngles::Tables { cos: table(0)?, sin: table(1)? }
        }
        _ => RopeAngles::Tables { cos: table(0, dtype)?, sin: table(1, dtype)? },
    };
    let mut kernel = RopeKernel::new(angles, model.pairs)
        .layout(way.layout)
        .rotary_dim(model.rotary_dim)
        .rotated_lanes(model.lanes)
        .direction(way.direction);
    if let Some(Setting { shared, strategy, threads, heads }) = setting {
        kernel = kernel.shared_angles(shared).strategy(strategy).threads(threads).heads_per_thread(heads);
    }
    let ids = if way.ids { Some(position_ids(bench, tokens)?) } else { None };
    if let Some(ids) = &ids {
        kernel = kernel.positions(RopePositions::Ids(ids.view()));
    }
    let shape = |heads: usize| match way.layout {
        RopeLayout::Bhsd => vec![1, heads, tokens, model.head_dim],
        RopeLayout::Thd => vec![tokens, heads, model.head_dim],
        _ => vec![1, tokens, heads, model.head_dim],
    };
    let (q, k) = (shape(model.q), shape(model.k));
    let after_q = tokens * model.q * model.head_dim * dtype.size();
    let source = |at: usize, shape: &[usize]| view(bench, &bench.input, at, dtype, shape);
    let target = |at: usize, shape: &[usize]| view_mut(bench, &bench.output, at, dtype, shape);
    let has_k = model.k > 0;
    bench.times(|| {
        let k_out = if has_k { Some(target(after_q, &k)?) } else { None };
        if way.inplace {
            return kernel.run_inplace(target(0, &q)?, k_out);
        }
        let k_in = if has_k { Some(source(after_q, &k)?) } else { None };
        kernel.run_into(source(0, &q)?, k_in, target(0, &q)?, k_out)
    })
}

/// The reference workloads, on the fly and by tables.
fn workloads(bench: &Bench, empty: Times) -> Outcome<Vec<Value>> {
    let mut rows = Vec::new();
    for Workload { case, dtype, shape: [batch, seq, heads, head_dim], pairs, peers } in WORKLOADS {
        let frequencies = RopeConfig::default_rope(*head_dim, 10_000.0).frequencies(0)?;
        let on_device = RopeFrequencies::new(&bench.device, &frequencies)?;
        let by_ids = *batch == 0;
        let dims = if by_ids { vec![*seq, *heads, *head_dim] } else { vec![*batch, *seq, *heads, *head_dim] };
        let ids = position_ids(bench, *seq)?;
        let best = peers.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        for source in ["hf", "tables", "own_tables"] {
            let of = if source == "own_tables" { *dtype } else { DType::F32 };
            let table = |i: usize| view(bench, &bench.tables[i], 0, of, &[*seq, head_dim / 2]);
            let angles = match source {
                "hf" => RopeAngles::Frequencies(&on_device, RopePrecision::Hf),
                _ => RopeAngles::Tables { cos: table(0)?, sin: table(1)? },
            };
            let mut kernel = RopeKernel::new(angles, *pairs).rotary_dim(*head_dim).rotated_lanes(RotatedLanes::Lead);
            if by_ids {
                kernel = kernel.layout(RopeLayout::Thd).positions(RopePositions::Ids(ids.view()));
            }
            let time = bench.times(|| {
                let target = view_mut(bench, &bench.output, 0, *dtype, &dims)?;
                kernel.run_into(view(bench, &bench.input, 0, *dtype, &dims)?, None, target, None)
            })?;
            println!(
                "{case:28} {dtype:4} {source:6} {:7.2} us cold, an event more than busy; best peer {best:7.2} busy; \
                 {:.2} over an empty launch",
                time.cold,
                time.cold - empty.cold,
            );
            rows.push(json!({
                "workload": case, "dtype": dtype.name(), "source": source, "cold_us": time.cold, "warm_us": time.warm,
                "best_peer_us": best,
            }));
        }
    }
    Ok(rows)
}

/// Ways to launch a case.
fn settings(model: &Model, tokens: usize) -> Vec<Setting> {
    let most_heads = model.q.max(model.k) as u32;
    let small = tokens * (model.q + model.k) <= 1 << 15;
    let mut settings = Vec::new();
    for shared in [true, false] {
        let strategies: &[Strategy] = match small && !shared {
            true => &[Strategy::RegisterCopy, Strategy::ExplicitParallel],
            false => &[Strategy::RegisterCopy],
        };
        let threads: &[u32] = if shared { &[96, 160, 256] } else { &[64, 96, 128, 192, 256] };
        for &strategy in strategies {
            for &threads in threads {
                let heads = [1, 2, 4, 8].into_iter().filter(|heads| *heads <= most_heads);
                settings.extend(heads.map(|heads| Setting { shared, strategy, threads, heads }));
            }
        }
    }
    settings
}

/// Ways to launch, tried on shapes of each kind: a line each, the fastest first.
fn sweep(bench: &Bench, sources: &[&str]) -> Outcome<Vec<Value>> {
    let find = |name: &str| MODELS.iter().find(|model| model.name == name).ok_or("no such model");
    let bshd = Way::PLAIN;
    let tables = Way { source: "tables", ..bshd };
    let (bhsd, bhsd_tables) = (Way { layout: RopeLayout::Bhsd, ..bshd }, Way { layout: RopeLayout::Bhsd, ..tables });
    let own = Way { source: "own_tables", inplace: true, ..bhsd };
    let hf = |way: Way| Way { source: "hf_tables", ..way };
    let ids = Way { layout: RopeLayout::Thd, ids: true, ..bshd };
    let mut cases = Vec::new();
    // Decoding, a few tokens, prefill.
    cases.extend([1, 16, 128, 512, 2048, 8192].map(|tokens| ("llama-8b", tokens, DType::BF16, bshd)));
    cases.extend([1, 512, 8192].map(|tokens| ("llama-8b", tokens, DType::F32, bshd)));
    cases.extend([512, 8192].map(|tokens| ("llama-8b", tokens, DType::BF16, bhsd)));
    cases.extend([1, 512, 8192].map(|tokens| ("llama-8b", tokens, DType::BF16, tables)));
    cases.extend([512, 8192].map(|tokens| ("llama-8b", tokens, DType::BF16, bhsd_tables)));
    cases.extend([("llama-8b", 8192, DType::BF16, own), ("llama-8b", 8192, DType::F32, bhsd)]);
    cases.extend([("llama-8b", 8192, DType::F32, bhsd_tables), ("llama-8b", 8192, DType::BF16, hf(bshd))]);
    cases.extend([1, 512, 8192].map(|tokens| ("gpt-j", tokens, DType::BF16, bshd)));
    cases.extend([("gpt-j", 8192, DType::BF16, bhsd), ("gpt-j", 8192, DType::F32, bshd)]);
    cases.extend([1, 512, 8192].map(|tokens| ("deepseek-v3", tokens, DType::BF16, bshd)));
    cases.push(("phi-3.5", 8192, DType::BF16, bshd));
    // One tensor, of a head or of 32, on the fly and by tables as HF makes them.
    cases.extend([2048, 4096, 8192].map(|tokens| ("rows-128", tokens, DType::BF16, bshd)));
    cases.extend([("rows-128", 8192, DType::BF16, tables), ("rows-64", 2048, DType::F16, bshd)]);
    cases.extend([4096, 8192].map(|tokens| ("rows-128", tokens, DType::BF16, hf(bshd))));
    cases.push(("rows-64", 2048, DType::F16, hf(bshd)));
    cases.extend([2048, 4096, 8192].map(|tokens| ("heads-32", tokens, DType::F16, bshd)));
    cases.extend([4096, 8192].map(|tokens| ("heads-32", tokens, DType::F16, hf(bshd))));
    // Position ids.
    cases.extend([2048, 4096, 32_768].map(|tokens| ("heads-32", tokens, DType::F16, hf(ids))));
    cases.extend([4096, 32_768].map(|tokens| ("heads-32", tokens, DType::F16, ids)));
    // Angles that each thread reads and takes the sines of; tables where heads do not rotate whole, or pairs are
    // neighbours.
    let angles = Way { source: "angles", ..bshd };
    let bhsd_angles = Way { source: "angles", ..bhsd };
    cases.extend([16, 512, 8192, 32_768].map(|tokens| ("llama-8b", tokens, DType::BF16, angles)));
    cases.extend([("llama-8b", 8192, DType::BF16, bhsd_angles), ("llama-8b", 8192, DType::F32, angles)]);
    for model in ["phi-3.5", "deepseek-v3", "gpt-j"] {
        cases.extend([angles, bhsd_angles, tables, bhsd_tables].map(|way| (model, 8192, DType::BF16, way)));
    }
    let mut rows = Vec::new();
    for (name, tokens, dtype, way) in cases.into_iter().filter(|case| sources.contains(&case.3.source)) {
        let model = find(name)?;
        let copy = bench.copy(model.elements(tokens) * dtype.size())?;
        let mut tried = vec![("default".to_owned(), measure(bench, model, tokens, dtype, way, None)?)];
        for setting in settings(model, tokens) {
            tried.push((setting.name(), measure(bench, model, tokens, dtype, way, Some(setting))?));
        }
        println!("{name:11} {tokens:6} {dtype:4} {:28} copy {:.2} {:.2} us", way.name(), copy.cold, copy.warm);
        let (_, default) = tried[0];
        tried.sort_by(|a, b| a.1.cold.total_cmp(&b.1.cold));
        let line = |(setting, time): &(String, Times)| {
            let shares = format!("{:.3} {:.3}", copy.cold / time.cold, copy.warm / time.warm);
            println!("    {setting:48} cold {:8.2} warm {:8.2} us, of the copy {shares}", time.cold, time.warm);
        };
        line(&("default".to_owned(), default));
        // The best eight, and the best two of each kind.
        let kinds = ["per_block", "per_thread register_copy", "per_thread explicit_parallel"];
        let mut seen = [0; 3];
        for (n, row) in tried.iter().filter(|row| row.0 != "default").enumerate() {
            let kind = kinds.iter().position(|kind| row.0.starts_with(kind)).unwrap_or(0);
            seen[kind] += 1;
            if n < 8 || seen[kind] <= 2 {
                line(row);
            }
        }
        for (setting, time) in &tried {
            rows.push(json!({
                "model": name, "tokens": tokens, "dtype": dtype.name(), "way": way.name(), "setting": setting,
                "cold_us": time.cold, "warm_us": time.warm, "copy_cold_us": copy.cold, "copy_warm_us": copy.warm,
            }));
        }
    }
    Ok(rows)
}

/// Position ids out of order, as a server has them.
fn position_ids(bench: &Bench, tokens: usize) -> pointwise::Result<Tensor> {
    let ids: Vec<i32> = (0..tokens as i32).map(|i| i.wrapping_mul(1_103).rem_euclid(tokens as i32)).collect();
    Tensor::from_slice(&bench.device, &ids, [tokens])
}

/// A contiguous view of a buffer from a byte on.
fn view<'a>(
    bench: &Bench,
    buffer: &'a Tensor,
    at: usize,
    dtype: DType,
    shape: &[usize],
) -> pointwise::Result<TensorView<'a>> {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    assert!(at + bytes <= buffer.byte_len(), "the buffer is too short");
    // SAFETY: the bytes are inside the buffer, which outlives the view, and are numbers of any float type.
    unsafe { TensorView::from_raw_parts(&bench.device, buffer.device_ptr() + at as u64, dtype, shape, &strides(shape)) }
}

/// Like [`view`], to write.
fn view_mut<'a>(
    bench: &Bench,
    buffer: &'a Tensor,
    at: usize,
    dtype: DType,
    shape: &[usize],
) -> pointwise::Result<TensorViewMut<'a>> {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    assert!(at + bytes <= buffer.byte_len(), "the buffer is too short");
    // SAFETY: as above; only work of one stream writes to the buffer, and nothing reads what it holds.
    unsafe {
        TensorViewMut::from_raw_parts(&bench.device, buffer.device_ptr() + at as u64, dtype, shape, &strides(shape))
    }
}

fn strides(shape: &[usize]) -> Vec<i64> {
    (0..shape.len()).map(|dim| shape[dim + 1..].iter().product::<usize>() as i64).collect()
}

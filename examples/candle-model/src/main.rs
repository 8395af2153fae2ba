//! candle_transformers' Llama and Qwen3 beside the same model with pointwise's parts: logits, training, time.
//!
//! `cargo run --release [--features cuda] -- [--cuda] [--large] [--bf16] [--long]`. `--long`: 2,048 words on the CPU, too.
#![forbid(unsafe_code)]

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_model::model::{Decoder, Sizes};
use candle_model::parts::{Candle, Parts, Pointwise};
use candle_model::{device, has, in_turns, seconds};
use candle_nn::{AdamW, Optimizer, VarBuilder, VarMap, loss};
use candle_transformers::models::{llama, qwen3};
use pointwise::rope::RopeConfig;

const EPS: f64 = 1e-5;
const THETA: f64 = 500_000.0;
const LEN: usize = 2048;
const STEPS: usize = 5;

fn main() -> Result<()> {
    let device = device()?;
    let dtype = if has("--bf16") { DType::BF16 } else { DType::F32 };
    let mut sizes = Sizes::new(has("--large"));
    // Llama 3.1's frequencies, which `RopeConfig::from_hf_json` reads from a model's config.json, too.
    run("Llama", &sizes, &RopeConfig::llama3(sizes.head_dim, THETA), dtype, &device)?;
    sizes.norms_heads = true;
    run("Qwen3", &sizes, &RopeConfig::default_rope(sizes.head_dim, THETA), dtype, &device)
}

/// A model of candle_transformers as a function of words.
type Original = Box<dyn FnMut(&Tensor) -> Result<Tensor>>;

/// Loads the model of candle_transformers that has the same weights.
fn original(sizes: &Sizes, vb: VarBuilder<'_>, dtype: DType, device: &Device) -> Result<Original> {
    if sizes.norms_heads {
        let mut model = qwen3::ModelForCausalLM::new(
            &qwen3::Config {
                vocab_size: sizes.vocab,
                hidden_size: sizes.hidden,
                intermediate_size: sizes.intermediate,
                num_hidden_layers: sizes.layers,
                num_attention_heads: sizes.heads,
                head_dim: sizes.head_dim,
                attention_bias: false,
                num_key_value_heads: sizes.kv_heads,
                max_position_embeddings: LEN,
                sliding_window: None,
                max_window_layers: 0,
                tie_word_embeddings: false,
                rope_theta: THETA,
                rms_norm_eps: EPS,
                use_sliding_window: false,
                hidden_act: candle_nn::Activation::Silu,
            },
            vb,
        )?;
        return Ok(Box::new(move |words| {
            model.clear_kv_cache();
            model.forward(words, 0)?.squeeze(1)
        }));
    }
    let config = llama::Config {
        hidden_size: sizes.hidden,
        intermediate_size: sizes.intermediate,
        vocab_size: sizes.vocab,
        num_hidden_layers: sizes.layers,
        num_attention_heads: sizes.heads,
        num_key_value_heads: sizes.kv_heads,
        use_flash_attn: false,
        rms_norm_eps: EPS,
        rope_theta: THETA as f32,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: Some(llama::Llama3RopeConfig {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 8192,
            rope_type: llama::Llama3RopeType::Llama3,
        }),
        max_position_embeddings: LEN,
        tie_word_embeddings: false,
    };
    let model = llama::Llama::load(vb, &config)?;
    let mut cache = llama::Cache::new(false, dtype, &config, device)?;
    Ok(Box::new(move |words| model.forward(words, 0, &mut cache)))
}

fn words(sizes: &Sizes, len: usize, device: &Device) -> Result<Tensor> {
    let words: Vec<u32> = (0..len as u32).map(|at| at.wrapping_mul(2_654_435_761) % sizes.vocab as u32).collect();
    Tensor::from_vec(words, (1, len), device)
}

fn run(name: &str, sizes: &Sizes, rope: &RopeConfig, dtype: DType, device: &Device) -> Result<()> {
    let weights = VarMap::new();
    let vb = VarBuilder::from_varmap(&weights, dtype, device);
    let model = Decoder::new(sizes, &vb)?;
    let mut original = original(sizes, vb.clone(), dtype, device)?;
    let ours = Pointwise::new(rope, EPS, LEN, device)?;
    println!("{name}, {} layers of {}, {}, {device:?}", sizes.layers, sizes.hidden, dtype.as_str());

    let text = words(sizes, 128, device)?;
    let expected = original(&text)?.to_dtype(DType::F32)?;
    let logits = model.forward(&text, &ours, true)?.squeeze(1)?.to_dtype(DType::F32)?;
    let scale = expected.abs()?.max_all()?.to_scalar::<f32>()?;
    let off = (&logits - &expected)?.abs()?.max_all()?.to_scalar::<f32>()?;
    println!("  logits: off by {off:.1e}, the largest is {scale:.2}");
    let bound = if dtype == DType::F32 { 1e-4 } else { 5e-2 };
    let is_close = off <= bound * scale; // false for NaN
    if !is_close {
        candle_core::bail!("{name}: the logits differ");
    }

    // candle_transformers' model; this one of candle's parts, and of pointwise's.
    let fused = Candle::new(rope, EPS, LEN, true, dtype, device)?;
    let repeated = Decoder::new(&Sizes { in_groups: !sizes.in_groups, ..sizes.clone() }, &vb)?;
    println!(
        "  {:<22}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "us a layer, forward", "candle", "its parts", "pointwise", "its, rep.", "pw, rep."
    );
    let lengths: &[usize] = if device.is_cpu() && !has("--long") { &[1, 128] } else { &[1, 128, 2048] };
    for &len in lengths {
        let text = words(sizes, len, device)?;
        let calls = if device.is_cpu() { 2 } else { 10 };
        let (theirs, of_parts) =
            in_turns(device, calls, || original(&text).map(drop), || model.forward(&text, &fused, true).map(drop))?;
        let (again, with_ours) =
            in_turns(device, calls, || original(&text).map(drop), || model.forward(&text, &ours, true).map(drop))?;
        let (parts_repeated, ours_repeated) = in_turns(
            device,
            calls,
            || repeated.forward(&text, &fused, true).map(drop),
            || repeated.forward(&text, &ours, true).map(drop),
        )?;
        let each = |seconds: f64| format!("{:>12.1}", seconds * 1e6 / sizes.layers as f64);
        let all = [theirs.min(again), of_parts, with_ours, parts_repeated, ours_repeated].map(each).concat();
        println!("  {:<22}{all}", format!("{len} words"));
    }

    // candle_transformers' models drop gradients at their fused norms: the same model of candle's steps stands in.
    let len = 128;
    let steps = Candle::new(rope, EPS, len, false, dtype, device)?;
    let all = weights.all_vars().len();
    for (parts, what) in
        [(&fused as &dyn Parts, "candle's fused ops"), (&steps, "candle's steps"), (&ours, "pointwise")]
    {
        let count = gradients(&model, &weights, parts, &words(sizes, len, device)?);
        println!(
            "  {what}: {}",
            count.map_or_else(|error| first_line(&error), |count| format!("{count} of {all} weights have gradients"))
        );
    }
    let (theirs, their_time) = train(sizes, &weights, &steps, dtype, device)?;
    let (losses, time) = train(sizes, &weights, &ours, dtype, device)?;
    println!("  losses: candle {theirs:.4?}, pointwise {losses:.4?}");
    println!("  ms a step of {len} words: candle {:.2}, pointwise {:.2}", their_time * 1e3, time * 1e3);
    // Weights of 16 bits part after the first step: candle's Llama rounds elsewhere.
    let (bound, steps) = if dtype == DType::F32 { (1e-3, losses.len()) } else { (5e-2, 1) };
    if !losses.iter().zip(&theirs).take(steps).all(|(a, b)| (a - b).abs() <= bound * b.abs().max(0.1)) {
        candle_core::bail!("{name}: the losses differ");
    }
    Ok(())
}

fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn loss_of(model: &Decoder, parts: &dyn Parts, text: &Tensor) -> Result<Tensor> {
    let len = text.dim(1)?;
    let logits = model.forward(text, parts, false)?.narrow(1, 0, len - 1)?.squeeze(0)?;
    loss::cross_entropy(&logits.to_dtype(DType::F32)?, &text.narrow(1, 1, len - 1)?.squeeze(0)?)
}

/// Returns the number of weights that a walk back reaches.
fn gradients(model: &Decoder, weights: &VarMap, parts: &dyn Parts, text: &Tensor) -> Result<usize> {
    let grads = loss_of(model, parts, text)?.backward()?;
    Ok(weights.all_vars().iter().filter(|var| grads.get(var).is_some()).count())
}

/// Trains a copy of the weights. Returns the losses, and the seconds of a step.
fn train(sizes: &Sizes, weights: &VarMap, parts: &dyn Parts, dtype: DType, device: &Device) -> Result<(Vec<f32>, f64)> {
    let copy = VarMap::new();
    for (name, var) in weights.data().lock().map_err(|_| candle_core::Error::msg("a thread panicked"))?.iter() {
        let var = Var::from_tensor(&var.as_tensor().copy()?)?;
        copy.data().lock().map_err(|_| candle_core::Error::msg("a thread panicked"))?.insert(name.clone(), var);
    }
    let model = Decoder::new(sizes, &VarBuilder::from_varmap(&copy, dtype, device))?;
    let mut optimizer = AdamW::new_lr(copy.all_vars(), 1e-3)?;
    let text = words(model.sizes(), 128, device)?;
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        let loss = loss_of(&model, parts, &text)?;
        optimizer.backward_step(&loss)?;
        losses.push(loss.to_scalar::<f32>()?);
    }
    let time = seconds(device, 1, || optimizer.backward_step(&loss_of(&model, parts, &text)?))?;
    Ok((losses, time))
}

//! Gradients through candle's graph: of every op by finite differences, of candle's functions by candle's own.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::ops as nn;
use pointwise::kernel::OpDef;
use pointwise_candle::{Arg, Op, PointwiseOps, args, functions, op, ops};

use crate::against_candle::operands;
use crate::candle_functions::FUNCTIONS;
use crate::layouts::{Five, Snake};
use crate::support::{assert_close, numbers, random, values};

/// The shape of a call: rows of 5.
const SHAPE: [usize; 2] = [3, 5];

/// Returns the weight of an element in the loss.
fn loss_weight(at: usize) -> f64 {
    0.5 + 0.25 * (at % 7) as f64
}

/// Returns the loss in f64: the op's results, weighted.
fn reference_loss(def: &'static OpDef, operands: &[Vec<f64>]) -> f64 {
    let (rows, len) = (SHAPE[0], SHAPE[1]);
    let mut loss = 0.0;
    let types = pointwise::DType::F32;
    if let Some(oracle) = def.row_oracle(types, &[]).unwrap() {
        let mut at = vec![0; def.info.results.len()];
        for row in 0..rows {
            // An operand that each row has once has one element a row.
            let of_row = |x: &Vec<f64>| if x.len() == rows { row..row + 1 } else { row * len..(row + 1) * len };
            let slices: Vec<&[f64]> = operands.iter().map(|x| &x[of_row(x)]).collect();
            for (k, result) in oracle.at(&slices, len).iter().enumerate() {
                for y in result.iter().filter(|_| def.info.result_has_gradient(k)) {
                    loss += loss_weight(at[k]) * y.value;
                    at[k] += 1;
                }
            }
        }
        return loss;
    }
    let oracle = def.double(&[]).unwrap().unwrap();
    for at in 0..rows * len {
        let x: Vec<f64> = operands.iter().map(|x| x[at]).collect();
        let weight = loss_weight(at);
        loss += weight * oracle.at(&x, 0).iter().sum::<f64>();
    }
    loss
}

/// Returns the loss of results in candle's graph, as [`reference_loss`] has it.
fn loss(results: &[Tensor]) -> Result<Tensor> {
    let mut loss: Option<Tensor> = None;
    for y in results {
        let weights: Vec<f32> = (0..y.elem_count()).map(|at| loss_weight(at) as f32).collect();
        let weighted = (y * Tensor::from_vec(weights, y.dims(), &Device::Cpu)?)?.sum_all()?;
        loss = Some(match loss {
            Some(loss) => (loss + weighted)?,
            None => weighted,
        });
    }
    Ok(loss.unwrap())
}

/// Compares the gradients of a call with central differences of the loss in f64.
pub(crate) fn check(def: &'static OpDef) -> Result<()> {
    let info = &def.info;
    let count = SHAPE[0] * SHAPE[1];
    let (mut args, mut vars, mut points) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..info.operands.len() {
        if info.is_bool(k) {
            let bits: Vec<u8> = (0..count).map(|at| u8::from(at % 3 != 0)).collect();
            points.push(bits.iter().map(|&bit| f64::from(bit)).collect());
            args.push(Arg::from(Tensor::from_vec(bits, &SHAPE[..], &Device::Cpu)?));
            vars.push(None);
            continue;
        }
        let shape = if info.is_row_operand(k) { &SHAPE[..1] } else { &SHAPE[..] };
        let count = shape.iter().product();
        if !info.operand_has_gradient(k) {
            // Labels, codes.
            let whole: Vec<i64> = (0..count as i64).collect();
            points.push(whole.iter().map(|&x| x as f64).collect());
            let dtype = info.fixed_operand(k).unwrap().name().parse().map_err(candle_core::Error::wrap)?;
            args.push(Arg::from(Tensor::from_vec(whole, shape, &Device::Cpu)?.to_dtype(dtype)?));
            vars.push(None);
            continue;
        }
        // Away from kinks, in every domain, and with min < x < max of clamp_tensor.
        let floats = numbers(count, 11 + k as u64, 0.15 + 0.3 * k as f32, 0.4 + 0.3 * k as f32);
        points.push(floats.iter().map(|&x| f64::from(x)).collect());
        let var = Var::from_tensor(&Tensor::from_vec(floats, shape, &Device::Cpu)?)?;
        args.push(Arg::from(var.as_tensor()));
        vars.push(Some(var));
    }
    let results = Op::from(def).run(&args)?.into_iter().enumerate();
    let results: Vec<Tensor> = results.filter(|(k, _)| info.result_has_gradient(*k)).map(|(_, y)| y).collect();
    let grads = loss(&results)?.backward()?;
    for (k, var) in vars.iter().enumerate() {
        let Some(var) = var else { continue };
        let grad = grads.get(var).unwrap_or_else(|| panic!("{} has no gradient of operand {k}", info.name));
        for (at, got) in values(grad)?.into_iter().enumerate() {
            // Large beside what ops on rows round to the element type.
            let step = 1e-3;
            let mut moved: Vec<Vec<f64>> = points.clone();
            moved[k][at] += step;
            let above = reference_loss(def, &moved);
            moved[k][at] -= 2.0 * step;
            let slope = (above - reference_loss(def, &moved)) / (2.0 * step);
            let bound = 1e-3 * slope.abs().max(1.0);
            assert!((got - slope).abs() <= bound, "{}, operand {k}, element {at}: {got}, slope {slope}", info.name);
        }
    }
    Ok(())
}

#[test]
fn gradients_are_slopes() -> Result<()> {
    let mut count = 0;
    for def in ops().filter(|def| def.backward.is_some()) {
        check(def)?;
        count += 1;
    }
    assert!(count > 60, "{count} ops have gradients: the registry is nearly empty");
    Ok(())
}

#[test]
fn ops_of_ones_own_have_gradients() -> Result<()> {
    check(Snake::<f64>::def())?;
    // Five operands and two results: more than candle's custom ops have.
    check(Five::def())
}

#[test]
fn gradients_agree_with_candles() -> Result<()> {
    for (name, count, function) in FUNCTIONS {
        let has_gradient = op(name)?.info().types.contains(&pointwise::DType::F32)
            && ops().any(|def| def.info.name == *name && def.backward.is_some());
        // candle has none for its sigmoid's relatives and drops it at its steps: see docs/candle.md.
        if !has_gradient || matches!(*name, "floor" | "ceil" | "sign" | "amax" | "amin") {
            continue;
        }
        let vars: Vec<Var> = operands(name, *count, DType::F32)?.iter().map(Var::from_tensor).collect::<Result<_>>()?;
        let tensors: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
        let args: Vec<Arg> = tensors.iter().map(Arg::from).collect();
        let ours = loss(&[op(name)?.run_one(&args)?])?.backward()?;
        let theirs = loss(&[function(&tensors)?])?.backward()?;
        for var in &vars {
            let (ours, theirs) = (ours.get(var).unwrap(), theirs.get(var).unwrap());
            assert_close(&format!("the gradient of {name}"), ours, theirs, 2e-5);
        }
    }
    Ok(())
}

#[test]
fn norms_have_the_gradients_of_candles_steps() -> Result<()> {
    let x = Var::from_tensor(&random(&[2, 3, 16], 1, -2.0, 2.0, DType::F32)?)?;
    let (weight, bias) = (random(&[16], 2, 0.5, 1.5, DType::F32)?, random(&[16], 3, -1.0, 1.0, DType::F32)?);
    let (weight, bias) = (Var::from_tensor(&weight)?, Var::from_tensor(&bias)?);
    let pairs = [
        (functions::rms_norm(&x, &weight, 1e-5)?, nn::rms_norm_slow(&x, &weight, 1e-5)?, 2),
        (functions::layer_norm(&x, &weight, &bias, 1e-5)?, nn::layer_norm_slow(&x, &weight, &bias, 1e-5)?, 3),
        (functions::softmax(&x)?, nn::softmax(&x, 2)?, 1),
    ];
    for (ours, theirs, count) in pairs {
        let (ours, theirs) = (loss(&[ours])?.backward()?, loss(&[theirs])?.backward()?);
        for var in [&x, &weight, &bias].into_iter().take(count) {
            assert_close("a gradient", ours.get(var).unwrap(), theirs.get(var).unwrap(), 1e-5);
        }
    }
    Ok(())
}

/// The reason for this crate's norms: candle's fused ones are constants to its graph (its issue 2168).
#[test]
fn candles_fused_ops_drop_gradients() -> Result<()> {
    let x = Var::from_tensor(&random(&[2, 16], 1, -2.0, 2.0, DType::F32)?)?;
    let weight = Var::from_tensor(&random(&[16], 2, 0.5, 1.5, DType::F32)?)?;
    let bias = Var::from_tensor(&random(&[16], 3, 0.5, 1.5, DType::F32)?)?;
    let table = random(&[2, 8], 4, -1.0, 1.0, DType::F32)?;
    let fused = [
        ("rms_norm", nn::rms_norm(&x, &weight, 1e-5)?),
        ("layer_norm", nn::layer_norm(&x, &weight, &bias, 1e-5)?),
        ("softmax_last_dim", nn::softmax_last_dim(&x)?),
        ("rope", candle_nn::rotary_emb::rope(&x.reshape((1, 1, 2, 16))?, &table, &table)?),
    ];
    for (name, y) in fused {
        // No error says that the walk back ends here.
        let grads = y.sum_all()?.backward()?;
        assert!(grads.get(&x).is_none(), "{name} of candle has a gradient now: say so in docs/candle.md");
    }
    Ok(())
}

#[test]
fn broadcast_operands_have_summed_gradients() -> Result<()> {
    for dtype in [DType::F32, DType::BF16] {
        let x = Var::from_tensor(&random(&[4, 3, 6], 1, 1.0, 2.0, dtype)?)?;
        for shape in [&[6][..], &[3, 1], &[4, 1, 1], &[1], &[]] {
            let y = Var::from_tensor(&random(shape, 2, 1.0, 2.0, dtype)?)?;
            let ours = x.pointwise_with("mul", &args![y.as_tensor()])?.sum_all()?.backward()?;
            let theirs = x.to_dtype(DType::F32)?.broadcast_mul(&y.to_dtype(DType::F32)?)?.sum_all()?.backward()?;
            assert_close(&format!("{shape:?}"), ours.get(&y).unwrap(), theirs.get(&y).unwrap(), 1e-2);
            assert_eq!(ours.get(&y).unwrap().dtype(), dtype);
        }
    }
    // Operands of two types: each gradient has its own.
    let (a, b) = (random(&[5], 1, 1.0, 2.0, DType::F32)?, random(&[5], 2, 1.0, 2.0, DType::BF16)?);
    let (a, b) = (Var::from_tensor(&a)?, Var::from_tensor(&b)?);
    let grads = a.pointwise_with("mul", &args![b.as_tensor()])?.sum_all()?.backward()?;
    assert_close("of a", grads.get(&a).unwrap(), &b, 0.0);
    assert_close("of b", grads.get(&b).unwrap(), &a.to_dtype(DType::BF16)?, 0.0);
    Ok(())
}

#[test]
fn gated_ops_and_dropout_have_gradients() -> Result<()> {
    let x = Var::from_tensor(&random(&[3, 10], 1, -2.0, 2.0, DType::F32)?)?;
    let ours = loss(&[functions::silu_and_mul(x.as_tensor())?])?.backward()?;
    let theirs = loss(&[nn::swiglu(&x)?])?.backward()?;
    assert_close("silu_and_mul", ours.get(&x).unwrap(), theirs.get(&x).unwrap(), 1e-6);
    let place = pointwise::Philox::new(3);
    let y = pointwise_candle::dropout(&x, 0.5, place)?;
    let kept = (y.ne(0.0_f32)?.to_dtype(DType::F32)? * 2.0)?;
    let grads = y.sum_all()?.backward()?;
    assert_close("dropout", grads.get(&x).unwrap(), &kept, 0.0);
    Ok(())
}

#[test]
fn results_that_the_loss_leaves_out_have_no_gradient() -> Result<()> {
    let x = Var::from_tensor(&random(&[2, 8], 1, -2.0, 2.0, DType::F32)?)?;
    let residual = Var::from_tensor(&random(&[2, 8], 2, -2.0, 2.0, DType::F32)?)?;
    let weight = Var::from_tensor(&random(&[8], 3, 0.5, 1.5, DType::F32)?)?;
    let (y, sum) = functions::add_rms_norm(&x, &residual, &weight, 1e-5)?;
    let grads = sum.sum_all()?.backward()?;
    assert_close("of the sum alone", grads.get(&x).unwrap(), &x.ones_like()?, 0.0);
    assert_close("of the weight", grads.get(&weight).unwrap(), &weight.zeros_like()?, 0.0);
    // A second walk over the same graph, from the other result.
    let ours = loss(&[y])?.backward()?;
    let theirs = loss(&[nn::rms_norm_slow(&(x.as_tensor() + residual.as_tensor())?, &weight, 1e-5)?])?.backward()?;
    for var in [&x, &residual, &weight] {
        assert_close("of y alone", ours.get(var).unwrap(), theirs.get(var).unwrap(), 1e-5);
    }
    Ok(())
}

#[test]
fn walks_on_several_threads_do_not_meet() -> Result<()> {
    let vars: Vec<Var> =
        (0..5).map(|k| Var::from_tensor(&random(&[64], k, 0.5, 1.5, DType::F32)?)).collect::<Result<_>>()?;
    let args: Vec<Arg> = vars.iter().map(|var| Arg::from(var.as_tensor())).collect();
    let results = Op::from(Five::def()).run(&args)?;
    let grads: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let walk = |factor: f64| {
            let results = &results;
            let var = &vars[4];
            scope.spawn(move || -> Result<Vec<f64>> {
                let loss = (&results[0] * factor)?.sum_all()?;
                let mut grad = Vec::new();
                for _ in 0..50 {
                    grad = values(loss.backward()?.get(var).unwrap())?;
                }
                Ok(grad)
            })
        };
        let threads: Vec<_> = [1.0, 2.0, 3.0, 4.0].map(walk).into_iter().collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>()
    })?;
    for (at, grad) in grads.iter().enumerate() {
        assert_eq!(*grad, vec![(at + 1) as f64; 64]);
    }
    Ok(())
}
